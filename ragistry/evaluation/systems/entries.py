"""Entries of techniques.yaml as they are compared: varied by a grid, checked, and written out with every default.

A grid is ``hybrid.k=10,60`` or ``chunk_size=document,500``: every combination of the values is compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from pydantic import BaseModel

from ragistry.config.problems import Problems
from ragistry.config.yaml_file import YamlFile
from ragistry.errors import EvaluationError
from ragistry.evaluation.systems.index import Chunking
from ragistry.evaluation.systems.record import model_of, plain
from ragistry.evaluation.systems.systems import MODELS, code_hash
from ragistry.techniques.catalogue import modules_beside
from ragistry.techniques.check import Checked, check_entries
from ragistry.techniques.entry import read_entries
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.techniques.shape import RESOURCES, takes_everything, wanted_resources
from ragistry.utils.resolve import resolve_object
from ragistry.utils.suggest import did_you_mean
from ragistry.workspace import Workspace

Grid = Mapping[str, Sequence[Any]]
"""Parameter → values. ``TECHNIQUE.PARAMETER`` changes an entry of techniques.yaml, ``chunk_size`` the chunks."""

CHUNK_SIZE = "chunk_size"
WHOLE = "document"
LIBRARY = "library"
OVERLAP_SHARE = 0.15
"""Overlap of a chunk size that comes without one, as in the default of 150 of 1,000 characters."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One column of a comparison: a technique, what is changed in its entry, and how the documents are cut."""

    name: str
    technique: str
    chunking: Chunking
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def entry(self) -> str:
        """The name of its entry among `checked_entries`."""
        return self.name if self.changes else self.technique


def parse_grid(lines: Iterable[str]) -> dict[str, list[Any]]:
    """``["hybrid.k=10,60"]`` as ``{"hybrid.k": [10, 60]}``; what is JSON, such as ``[1, 0]``, as that, else text."""
    grid: dict[str, list[Any]] = {}
    for line in lines:
        key, equals, text = line.partition("=")
        values = _split(text)
        if not equals or not key.strip() or not all(values):
            raise EvaluationError(
                f"a grid is written TECHNIQUE.PARAMETER=VALUE,VALUE, got {line!r}; try hybrid.k=10,60"
            )
        if key.strip() in grid:
            raise EvaluationError(f"the grid names {key.strip()!r} twice; write all its values after one =")
        grid[key.strip()] = [_value(value) for value in values]
    return grid


def _split(text: str) -> list[str]:
    """What is between the commas, of which those within brackets separate nothing."""
    found, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth <= 0:
            found.append("")
        else:
            found[-1] += character
    return [value.strip() for value in found]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def parse_chunking(size: Any) -> Chunking:
    """``document``, ``500``, ``500/75`` (characters, and how many neighbours share), or ``library``."""
    if isinstance(size, Chunking):
        return size
    if size is None or size == WHOLE:
        return Chunking()
    if size == LIBRARY:
        return Chunking(library=True)
    characters, _, shared = str(size).partition("/")
    if characters.isdecimal() and (shared or "0").isdecimal() and int(characters) > int(shared or "0"):
        return Chunking(int(characters), int(shared) if shared else int(int(characters) * OVERLAP_SHARE))
    raise EvaluationError(f"a chunk size is 'document', 500, or 500/75 with the overlap below the size, got {size!r}")


def variants(techniques: Sequence[str], chunking: Chunking, grid: Grid) -> list[Variant]:
    """Every technique with every combination of what the grid says of it, in order.

    A name tells what was varied: ``hybrid[k=10,chunk_size=500/75]``. Raises `EvaluationError` for a parameter of a
    technique that is not compared, and for a combination that comes twice.
    """
    for key, values in grid.items():
        technique, dot, _ = key.partition(".")
        if not values:
            raise EvaluationError(f"the grid has no values for {key!r}; give one or more")
        if key != CHUNK_SIZE and not (dot and technique in techniques):
            known = [CHUNK_SIZE, *(f"{name}.PARAMETER" for name in techniques)]
            raise EvaluationError(
                f"the grid names {key!r}{did_you_mean(technique, techniques)}; it may name {', '.join(known)}"
            )
    sizes = [parse_chunking(size) for size in grid.get(CHUNK_SIZE, [chunking])]
    found = []
    for technique in techniques:
        own = {key.partition(".")[2]: values for key, values in grid.items() if key.partition(".")[0] == technique}
        for size, values in product(sizes, product(*own.values())):
            found.append(_variant(technique, dict(zip(own, values, strict=True)), size, CHUNK_SIZE in grid))
    names = [variant.name for variant in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise EvaluationError(f"{twice!r} would be compared twice; name each technique and each value once")
    return found


def _variant(technique: str, changes: dict[str, Any], chunking: Chunking, named: bool) -> Variant:
    shown = changes | ({CHUNK_SIZE: chunking} if named else {})
    settings = ",".join(f"{key}={value}" for key, value in shown.items())
    return Variant(f"{technique}[{settings}]" if settings else technique, technique, chunking, changes)


@dataclass(frozen=True, slots=True)
class VariedFile(YamlFile):
    """techniques.yaml with entries that are in no file: what is wrong with those is wrong with the grid."""

    variants: frozenset[str] = frozenset()

    def place(self, keys: Sequence[str | int]) -> str:
        return "grid" if self.variants.intersection(map(str, keys[1:2])) else YamlFile.place(self, keys)


def checked_entries(workspace: Workspace, variants: Sequence[Variant]) -> tuple[YamlFile, Checked]:
    """techniques.yaml with the entries that a grid changes, all of them checked before anything is indexed.

    Raises `UnknownTechniqueError`, and `InvalidConfigError` for a value that an entry cannot have.
    """
    file = workspace.registry.file
    bodies = dict(file.data.get("techniques") or {})
    for variant in variants:
        entry = workspace.registry.entry(variant.technique)
        if variant.changes:
            bodies[variant.name] = {"use": entry.use, **(bodies[variant.technique] or {}), **variant.changes}
    names = frozenset(variant.name for variant in variants if variant.changes)
    changed, problems = VariedFile(file.path, {**file.data, "techniques": bodies}, file.tree, names), Problems()
    checked = check_entries(changed, read_entries(changed, problems), problems)
    problems.report()
    return changed, checked


def resolved(registry: TechniqueRegistry, name: str, models: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with its defaults, the hash of its code, the models that it asks, and the same of what it builds on."""
    entry, cls = registry.entry(name), registry.technique_class(name)
    found: dict[str, Any] = {
        "use": entry.use,
        "code": code_hash(cls),
        "config": _with_defaults(getattr(cls, "Config", None), entry.config),
    }
    judges = {one: model_of(models[one]) for one in MODELS[1:] if one in _wanted(cls) and one in models}
    parts = {
        "models": judges,
        "base": [entry.base] if entry.base is not None else [],
        "bases": entry.bases,
        "references": _references(cls, entry.config),
    }
    for key, part in parts.items():
        if part:
            found[key] = part if key == "models" else {one: resolved(registry, one, models) for one in part}
    steps = entry.config.get("steps")
    nodes = (
        [body.get("node") for body in steps.values() if isinstance(body, Mapping)] if isinstance(steps, Mapping) else []
    )
    if any(nodes):
        with modules_beside(registry.file.path):
            found["nodes"] = {use: code_hash(resolve_object(use)) for use in nodes if isinstance(use, str)}
    return found


def wanted_by(registry: TechniqueRegistry, name: str) -> set[str]:
    """The resources that an entry and all that it builds on ask for."""
    found: set[str] = set()
    for used in builds_on(registry, name):
        cls = registry.technique_class(used)
        wanted = _wanted(cls)
        if "registry" in wanted and not callable(getattr(cls, "references", None)):
            wanted = set(RESOURCES)  # it may ask the registry for anything
        found |= wanted
    return found


def builds_on(registry: TechniqueRegistry, name: str) -> Iterator[str]:
    """The entry, and all that it builds on."""
    yield name
    entry = registry.entry(name)
    references = _references(registry.technique_class(name), entry.config)
    for other in filter(None, [entry.base, *entry.bases, *references]):
        yield from builds_on(registry, other)


def _wanted(cls: type[Any]) -> set[str]:
    return set(RESOURCES) if takes_everything(cls) else set(wanted_resources(cls))


def _references(cls: type[Any], config: Mapping[str, Any]) -> list[str]:
    """A pipeline names its steps in its own configuration."""
    references = getattr(cls, "references", None)
    return list(references(config)) if callable(references) else []


def _with_defaults(model: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as plain values: what the file says, and the defaults that it leaves out."""
    found = dict(config)
    if isinstance(model, type) and issubclass(model, BaseModel):
        for name, value in model.model_validate(config):
            alias = (known.alias if (known := model.model_fields.get(name)) else None) or name
            found.setdefault(alias, value)
    return plain(found)
