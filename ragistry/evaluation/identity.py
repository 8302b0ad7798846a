"""What an object is made of, as plain values, so that one can tell whether it is the same as another day.

Its class and its code, its configuration, and all that it keeps beside it. What cannot be told is named: answers of
such an object are never taken for those of another.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any

from pydantic import BaseModel

from ragistry.errors import RagistryError
from ragistry.evaluation.own_code import code_of
from ragistry.evaluation.record import model_of
from ragistry.pipelines.pipeline import Pipeline
from ragistry.protocols import Embedder, Generator, Reranker
from ragistry.techniques.registered import RegisteredTechnique

LARGEST = 4_000
"""Characters of an attribute that is written out; of a larger one its hash is."""
WIRING = "successors"
"""What PocketFlow keeps on a node: the pipeline's own record of it is described instead."""


class Description:
    """``unknown``: the attributes that nothing could be said of, by path; none: the description tells all.

    ``given``: resources by name, which the comparison itself describes.
    """

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self.unknown: list[str] = []
        self._given = {id(part): name for name, part in (given or {}).items()}
        self._inside: list[int] = []

    def of(self, made: Any, path: str = "") -> dict[str, Any]:
        """An object, and by recursion what it keeps. ``path``: where it was found."""
        if isinstance(made, RegisteredTechnique):
            return self.of(made.technique, path)
        found: dict[str, Any] = {"use": name_of(type(made)), "code": code_of(type(made))}
        if found["code"] is None or encloses(type(made)):
            self.unknown.append(f"{path}the code of {type(made).__name__}")
        if id(made) in self._inside:
            return {**found, "again": len(self._inside) - self._inside.index(id(made))}
        self._inside.append(id(made))
        if isinstance(made, Pipeline):
            found |= self._steps(made, path)
        else:
            kept = {name: self._written(value, f"{path}{name}") for name, value in _attributes(made)}
            found |= {"config": kept.pop("config")} if "config" in kept else {}
            found |= {"state": kept} if kept else {}
        self._inside.pop()
        return found

    def _steps(self, pipeline: Pipeline, path: str) -> dict[str, Any]:
        flow = pipeline.flow
        steps = {
            name: {**self.of(step.node, f"{path}{name}."), "on": dict(step.on)} for name, step in flow.steps.items()
        }
        budgets = {"max_steps": self._value(flow.max_steps, path), "max_seconds": self._value(flow.max_seconds, path)}
        return {"start": flow.first, "steps": steps, **budgets}

    def _written(self, value: Any, path: str) -> Any:
        found = self._value(value, path)
        text = json.dumps(found, sort_keys=True)
        return found if len(text) <= LARGEST else {"sha256": sha256(text.encode()).hexdigest()}

    def _value(self, value: Any, path: str) -> Any:
        if id(value) in self._given:
            return f"the {self._given[id(value)]} of the comparison"
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if isinstance(value, BaseModel):
            return value.model_dump(mode="json")
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return {key: self._value(item, f"{path}.{key}") for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(item, f"{path}[{at}]") for at, item in enumerate(value)]
        return str(value) if isinstance(value, Path) else self._part(value, path)

    def _part(self, value: Any, path: str) -> Any:
        """A class, a function of a module, a model, a technique or a dataclass."""
        if isinstance(value, type | FunctionType):
            code = code_of(value) if is_named(value) else None
            if code is not None:
                return {"use": name_of(value), "code": code}
        elif model := _model(value):
            return {"model": model}
        elif is_dataclass(value) or callable(getattr(value, "retrieve", None)):
            return self.of(value, f"{path}.")
        self.unknown.append(f"{path}, a {type(value).__name__}")
        return f"unknown {type(value).__name__}"


def is_named(made: Any) -> bool:
    """Whether a class or function stands in its module under its name, so that the module's code is all of it."""
    return "<" not in made.__qualname__ and getattr(made, "__closure__", None) is None


def encloses(kind: type[Any]) -> bool:
    """Whether methods of a class use variables of a function that it was made in, which its code does not tell."""
    local = [one for one in kind.__mro__ if "<locals>" in one.__qualname__]
    methods = [found for one in local for found in vars(one).values() if isinstance(found, FunctionType)]
    return any(set(method.__code__.co_freevars) - {"__class__"} for method in methods)


def name_of(made: Any) -> str:
    """``module:Class``, of a class, a function or, for want of a name, of whatever it is."""
    named = made if hasattr(made, "__qualname__") else type(made)
    return f"{named.__module__}:{named.__qualname__}"


def _model(value: Any) -> Any:
    """By what to tell a model from another; None for what is none, or cannot be reached to say so."""
    try:
        return model_of(value) if isinstance(value, Embedder | Generator | Reranker) else None
    except (RagistryError, OSError):
        return None


def _attributes(made: Any) -> Iterator[tuple[str, Any]]:
    """What an object keeps: in its ``__dict__``, or in slots."""
    slots = [name for kind in type(made).__mro__ for name in _names(kind.__dict__.get("__slots__", ()))]
    for name in [*getattr(made, "__dict__", {}), *slots]:
        if name not in ("__dict__", "__weakref__", WIRING) and hasattr(made, name):
            yield name, getattr(made, name)


def _names(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else list(slots)
