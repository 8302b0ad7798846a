"""The arguments that an entry with ``use`` may set, and their check against the class that it names."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model


def arguments_model(cls: Any, resources: Collection[str]) -> type[BaseModel]:
    """Return a pydantic model of the arguments that an entry may set.

    Args:
        cls: The class or function. The nested model ``Config`` of a class is the model; without one, its parameters
            are. A subclass with a constructor of its own adds its parameters to the model.
        resources: Parameters that the program sets, not the entry.
    """
    own: Any = getattr(cls, "Config", None)
    known = set(resources)
    if has_model := isinstance(own, type) and issubclass(own, BaseModel):
        known |= own.model_fields.keys()
        if "Config" in next(layer for one in cls.__mro__ if (layer := vars(one)).keys() & {"Config", "__init__"}):
            return own
    annotated: Any = cls.__init__ if isinstance(cls, type) else cls  # type: ignore[misc] # of any class
    try:
        hints = get_type_hints(annotated, include_extras=True)
    except (NameError, TypeError):  # names imported only for type checkers
        hints = {}
    parameters = inspect.signature(cls).parameters.values()
    fields: dict[str, Any] = {
        p.name: (hints.get(p.name, Any), ... if p.default is p.empty else p.default)
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in known
    }
    if has_model:
        return create_model(cls.__name__, __base__=own, **fields)
    extra = any(p.kind is p.VAR_KEYWORD for p in parameters)
    config = ConfigDict(extra="allow" if extra else "forbid", arbitrary_types_allowed=True, protected_namespaces=())
    return create_model(cls.__name__, __config__=config, **fields)


def checked_arguments(model: type[BaseModel], config: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that an entry sets, converted. Raises `ValidationError`."""
    parsed = model.model_validate(config)
    return {name: getattr(parsed, name) for name in parsed.model_fields_set}
