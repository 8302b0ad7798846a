"""Numbers in the configuration: ``true`` is not accepted, although Python treats it as 1."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"must be a number, got {value!r}")
    return value


not_bool = BeforeValidator(_no_truth)
Whole = Annotated[int, not_bool]
Number = Annotated[float, not_bool]
WholeOrNone = Annotated[int | None, not_bool]
NumberOrNone = Annotated[float | None, not_bool]
"""With None outside, so that the JSON Schema contains the bounds of the field."""
