"""The systems of a comparison: a technique with its name, everything that decides its rankings, and its index."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragistry.errors import ConfigError
from ragistry.evaluation.systems.index import DatasetIndex
from ragistry.evaluation.systems.record import plain
from ragistry.techniques.classes import retrieve_complaints, wanted_resources
from ragistry.techniques.registry import RegisteredTechnique
from ragistry.utils.plugins import written


@dataclass(frozen=True, slots=True)
class System:
    """A technique with its name in the report.

    ``configuration``: what decides its rankings, including defaults. ``not_resumed``: why earlier answers are never
    reused; empty if they are. ``own_top_k``: its ``top_k`` is part of what is compared, so it is always asked with it.
    ``embeds``: the embedder affects its rankings.
    """

    name: str
    technique: RegisteredTechnique
    configuration: dict[str, Any]
    index: DatasetIndex | None = None
    own_top_k: bool = False
    embeds: bool = False
    not_resumed: str = ""

    @property
    def chunks_per_document(self) -> float:
        """Average number of chunks per document; 1 if unknown."""
        return 1.0 if self.index is None else max(1.0, self.index.cost.chunks / self.index.cost.documents)


def is_ready(given: Any) -> bool:
    """Whether a technique from a program is a ready object."""
    return not isinstance(given, type) and callable(getattr(given, "retrieve", None))


def registered(name: str, made: Any) -> RegisteredTechnique:
    """The technique with its name, under which stages are recorded. Raises `ConfigError` if it has no usable method."""
    if wrong := retrieve_complaints(made):
        raise ConfigError("; ".join(wrong))
    return made if isinstance(made, RegisteredTechnique) else RegisteredTechnique(name, made)


def ready_system(name: str, given: Any) -> System:
    """A technique object with its own store; its configuration is its attributes."""
    inner = given.technique if isinstance(given, RegisteredTechnique) else given
    configuration, not_resumed = described(type(inner), {})
    try:
        configuration["config"] = plain(json.loads(json.dumps(getattr(inner, "__dict__", {}))))
    except (TypeError, ValueError, RecursionError) as error:
        not_resumed = not_resumed or f"what it keeps cannot be written down ({error})"
    return System(name, registered(name, inner), configuration, not_resumed=not_resumed)


def parameters_of(function: Any) -> dict[str, bool]:
    """The resources that a function takes by name, and whether each is required."""
    wanted = wanted_resources(function, 0) if callable(function) else {}
    # it may search the store with its own embedder, which needs vectors there
    return wanted | {"embedder": False} if "store" in wanted else wanted


def described(cls: type[Any], config: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """A class with its code and configuration, and why its answers cannot be resumed; empty if they can."""
    code = code_hash(cls)
    reason = (
        f"{cls.__qualname__} is made inside a function, whose variables it may use" if "<" in cls.__qualname__ else ""
    )
    found = {"use": f"{written(cls.__module__)}:{cls.__qualname__}", "code": code, "config": plain(config)}
    return found, reason if code else f"{cls.__qualname__} has no source file"


def code_hash(cls: type[Any]) -> str | None:
    """SHA-256, hexadecimal, of the source files of a class and of its base classes.

    Files that these import are not included. None if the class has no file, such as one typed at a prompt.
    """
    files = {kind.__module__: _source_file(kind) for kind in cls.__mro__}
    if files[cls.__module__] is None:
        return None
    digest = sha256()
    for _, file in sorted(files.items()):
        if file is not None:
            digest.update(sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _source_file(kind: type[Any]) -> Path | None:
    if kind.__module__.partition(".")[0] in sys.stdlib_module_names and kind.__module__ != "__main__":
        return None
    try:
        file = Path(inspect.getfile(kind))
    except (TypeError, OSError):
        return None
    return file if file.suffix == ".py" and file.is_file() else None
