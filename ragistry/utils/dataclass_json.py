"""Convert dataclasses to the values of their JSON and back, as pydantic reads their fields.

The metadata of a field may have any argument of `pydantic.Field`; ``alias`` is its name in JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


def _built(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


adapter_of: Callable[[Any], TypeAdapter[Any]] = cache(_built)
"""Return the adapter of a type. It is built at the first call, which takes a few milliseconds."""


def to_json(value: Any) -> Any:
    """Convert a dataclass to plain values. Values of other types in it, such as dates, stay as they are."""
    return adapter_of(type(value)).dump_python(value, by_alias=True, warnings=False)


def from_json(kind: type[T], values: Mapping[str, Any]) -> T:
    """Convert plain values to a dataclass. Unknown keys are ignored.

    Raises:
        ValidationError: A value is missing, or has another type.
    """
    value: T = adapter_of(kind).validate_python(values)
    return value
