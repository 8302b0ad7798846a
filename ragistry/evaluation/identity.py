"""What an object is made of, as plain values, so that one can tell whether it is the same as another day.

Its class and its code, its configuration, and all that it keeps beside it, what it read from a file when it was made
among that; of a file that it reads later nothing is known. What cannot be told is named: answers of such an object are
never taken for those of another.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any
from uuid import UUID

from pydantic import AnyUrl, BaseModel, SecretBytes, SecretStr

from ragistry.errors import ModelError, RagistryError
from ragistry.evaluation.own_code import code_of
from ragistry.pipelines.pipeline import Pipeline
from ragistry.protocols import Embedder, Generator, Reranker
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.utils.own_modules import written

LARGEST = 4_000
"""Characters of an attribute that is written out; of a larger one its hash is."""
ACTS = ("retrieve", "generate", "rerank", "embed")
"""Methods of what does something: its code counts, whatever it keeps."""
AS_TEXT = (Path, date, time, timedelta, Decimal, UUID, AnyUrl, SecretStr, SecretBytes)
"""What its text tells. That of a secret is stars: a key decides no ranking."""
STARS = str(SecretStr("secret"))
SECRET = re.compile(r"(api_?key|access_token|auth_token|authorization|passw(or)?d|secret)$", re.IGNORECASE)
"""Ends of the names of texts that are secrets too: reports and recordings are shown to others."""
LOGIN = re.compile(r"(?<=//)[^/?#\s]*@")
"""The part of an address that says who asks, with a password perhaps."""
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
            found |= _digest(made)
        self._inside.pop()
        return found

    def _steps(self, pipeline: Pipeline, path: str) -> dict[str, Any]:
        flow = pipeline.flow
        steps = {
            name: {**self.of(step.node, f"{path}{name}."), "on": dict(step.on)} for name, step in flow.steps.items()
        }
        budgets = {"max_steps": self.plain(flow.max_steps, path), "max_seconds": self.plain(flow.max_seconds, path)}
        return {"start": flow.first, "steps": steps, **budgets}

    def _written(self, value: Any, path: str) -> Any:
        found = self.plain(value, path)
        text = json.dumps(found, sort_keys=True)
        return found if len(text) <= LARGEST else {"sha256": sha256(text.encode()).hexdigest()}

    def plain(self, value: Any, path: str = "") -> Any:
        """Any value as JSON has it, the same in every process. ``path``: where it was found."""
        if value is None or type(value) in (bool, int):  # first, for what keeps millions of them
            return value
        if id(value) in self._given:
            return f"the {self._given[id(value)]} of the comparison"
        if isinstance(value, Enum):
            return self.plain(value.value, path)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, str):
            return STARS if SECRET.search(path) else LOGIN.sub("", value)
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, AS_TEXT):
            return str(value)
        if isinstance(value, re.Pattern):
            return {"pattern": self.plain(value.pattern, path), "flags": value.flags}
        return self._gathered(value, path) if _gathers(value) else self._part(value, path)

    def _gathered(self, value: Any, path: str) -> Any:
        """What holds other values; unknown where it holds itself. A set has an order that is the same every time."""
        if id(value) in self._inside:
            return self._unknown(value, path)
        self._inside.append(id(value))
        found: Any
        if isinstance(value, list | tuple):
            found = [self.plain(item, f"{path}[{at}]") for at, item in enumerate(value)]
        elif isinstance(value, BaseModel | Mapping):
            found = {str(key): self.plain(item, f"{path}.{key}") for key, item in dict(value).items()}
        else:
            found = sorted((self.plain(item, f"{path}[]") for item in value), key=str)
        self._inside.pop()
        return found

    def _part(self, value: Any, path: str) -> Any:
        """A class, a function of a module, a technique, a model or a dataclass."""
        if isinstance(value, type | FunctionType):
            code = code_of(value) if is_named(value) else None
            return self._unknown(value, path) if code is None else {"use": name_of(value), "code": code}
        if _acts(value, "retrieve"):
            return self.of(value, f"{path}.")
        if array := _array(value):
            return array
        if fingerprint := _fingerprint(value):
            return {"model": fingerprint}
        if is_dataclass(value):
            return self.of(value, f"{path}.")
        if server := _server(value):
            return self.plain(server, path)
        if not isinstance(value, Generator | Reranker):
            return self._unknown(value, path)
        before, found = len(self.unknown), self.of(value, f"{path}.")
        name = getattr(value, "model", None)
        if isinstance(name, str) and name:  # with it a connection, of which nothing is known, decides nothing
            del self.unknown[before:]
            found["model"] = name
        return found

    def _unknown(self, value: Any, path: str) -> str:
        self.unknown.append(f"{path}, a {type(value).__name__}")
        return f"unknown {type(value).__name__}"


def settings_of(model: Any) -> dict[str, Any]:
    """The class of a generator or reranker, and all that it keeps that has a plain value: its name, its address.

    Not its code: answers that a model gave stay its own when the class that asks it changes.
    """
    found = Description().of(model)
    named = {"model": str(model.model)} if hasattr(model, "model") else {}
    config = {"config": found["config"]} if "config" in found else {}
    digest = {"digest": found["digest"]} if "digest" in found else {}
    return {"use": found["use"], **config, **found.get("state", {}), **named, **digest}


def is_named(made: Any) -> bool:
    """Whether a class or function stands in its module under its name, so that the module's code is all of it."""
    return "<" not in made.__qualname__ and getattr(made, "__closure__", None) is None


def encloses(kind: type[Any]) -> bool:
    """Whether methods of a class use variables of a function that it was made in, which its code does not tell."""
    local = [one for one in kind.__mro__ if "<locals>" in one.__qualname__]
    methods = [found for one in local for found in vars(one).values() if isinstance(found, FunctionType)]
    return any(set(method.__code__.co_freevars) - {"__class__"} for method in methods)


def name_of(made: Any) -> str:
    """``module:Class``, of a class, a function or, for want of a name, of whatever it is; as a file would name it."""
    named = made if hasattr(made, "__qualname__") else type(made)
    return f"{written(named.__module__)}:{named.__qualname__}"


def _acts(value: Any, *acts: str) -> bool:
    return any(callable(getattr(value, act, None)) for act in acts)


def _gathers(value: Any) -> bool:
    """Whether a value is no more than the values in it."""
    if isinstance(value, list | tuple | set | frozenset):
        return True
    if isinstance(value, BaseModel):
        return not _acts(value, *ACTS)
    return isinstance(value, Mapping) and (
        all(isinstance(key, str) for key in value) or all(isinstance(key, int) for key in value)
    )


def _array(value: Any) -> dict[str, Any]:
    """Of an array or a number of numpy its type, shape and bytes; empty of what is none, or holds other objects."""
    import numpy as np

    if not isinstance(value, np.ndarray | np.generic) or value.dtype.hasobject:
        return {}
    return {"array": [value.dtype.str, *value.shape], "sha256": sha256(value.tobytes()).hexdigest()}


def _fingerprint(value: Any) -> dict[str, Any] | None:
    """Of an embedder; None for what is none, or cannot be reached to say so."""
    try:
        return asdict(value.fingerprint) if isinstance(value, Embedder) else None
    except (RagistryError, OSError):
        return None


def _server(value: Any) -> dict[str, str]:
    """Of a connection to a model's server, which decides what answers, where that is; empty of what is none.

    And the model that it serves, where it is there and tells: another may be behind the same address another day.
    """
    from ragistry.embedders.served import ask_served
    from ragistry.ollama.client import OllamaClient
    from ragistry.ollama.http import JsonClient

    if isinstance(value, OllamaClient):  # which is told the model by whoever asks
        return {"at": value.host}
    if not isinstance(value, JsonClient):
        return {}
    try:
        served = ask_served(value, None)
    except ModelError:
        return {"at": value.base_url}
    return {"at": value.base_url, "model": served.model, "digest": served.digest}


def _digest(made: Any) -> dict[str, str]:
    """Of what asks Ollama for one model, the digest of that, where the server is there: a name may be pulled anew."""
    from ragistry.ollama.client import OllamaClient

    clients = [value for _, value in _attributes(made) if isinstance(value, OllamaClient)]
    name = getattr(made, "model", None) if clients else None
    try:
        found = clients[0].digest(name) if isinstance(name, str) else ""
    except ModelError:
        found = ""
    return {"digest": found} if found else {}


def _attributes(made: Any) -> Iterator[tuple[str, Any]]:
    """What an object keeps: in its ``__dict__``, or in slots."""
    slots = [name for kind in type(made).__mro__ for name in _names(kind.__dict__.get("__slots__", ()))]
    for name in [*getattr(made, "__dict__", {}), *slots]:
        if name not in ("__dict__", "__weakref__", WIRING) and hasattr(made, name):
            yield name, getattr(made, name)


def _names(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else list(slots)
