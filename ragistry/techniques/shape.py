"""Whether a class has the shape of a technique, found out before it is used."""

from __future__ import annotations

import inspect
from typing import Any

RESOURCES = ("name", "store", "embedder", "generator", "reranker", "base", "bases", "library", "targets", "registry")
SETTING = {
    "generator": "set `generate_model` in config/documents.yaml",
    "reranker": "set `rerank_url` in config/documents.yaml",
}
"""What configures a resource that a workspace may lack."""


def takes_everything(cls: type[Any]) -> bool:
    """Whether the constructor takes ``**resources``: whatever there is."""
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(cls).parameters.values())


def wanted_resources(cls: type[Any]) -> dict[str, bool]:
    """What the constructor asks for by name, and whether it must have it."""
    if cls.__init__ is object.__init__:
        return {}
    parameters = list(inspect.signature(cls).parameters.values())[1:]
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return {p.name: p.default is p.empty for p in named}


def complaints(cls: type[Any]) -> list[str]:
    """What keeps the class from being a technique; empty where nothing does."""
    return [*_constructor(cls), *retrieve_complaints(cls)]


def _constructor(cls: type[Any]) -> list[str]:
    try:
        parameters = list(inspect.signature(cls).parameters.values())
    except ValueError:
        return [f"{cls.__name__} has a constructor that cannot be inspected; write __init__(self, config)"]
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        return [f"{cls.__name__}.__init__ must take the configuration first: __init__(self, config)"]
    if parameters[0].name in RESOURCES:
        first = parameters[0].name
        return [f"{cls.__name__}.__init__ takes {first!r} first; write __init__(self, config, *, {first})"]
    return [
        f"{cls.__name__}.__init__ asks for {name!r}, which nobody provides; there are {', '.join(RESOURCES)}"
        for name, required in wanted_resources(cls).items()
        if required and name not in RESOURCES
    ]


def retrieve_complaints(technique: Any) -> list[str]:
    """What is wrong with the ``retrieve`` of a class or an object."""
    cls = technique if isinstance(technique, type) else type(technique)
    retrieve = getattr(technique, "retrieve", None)
    if not callable(retrieve):
        return [f"{cls.__name__} has no method retrieve(self, query, *, top_k=None, where=None)"]
    parameters = inspect.signature(retrieve).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return []
    missing = [name for name in ("top_k", "where") if name not in parameters]
    if not missing:
        return []
    return [
        f"{cls.__name__}.retrieve does not take {' and '.join(missing)}; "
        "write retrieve(self, query, *, top_k=None, where=None) or retrieve(self, query, **options)"
    ]
