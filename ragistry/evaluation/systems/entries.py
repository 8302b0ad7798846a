"""Entries of techniques.yaml for a comparison: varied by a grid, checked, and completed with defaults.

A grid is ``hybrid.k=10,60`` or ``chunk_size=document,500``: every combination of the values is compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ragistry.config.problems import Problems
from ragistry.config.yaml_file import YamlFile
from ragistry.errors import EvaluationError
from ragistry.evaluation.systems.index import Chunking
from ragistry.evaluation.systems.record import model_of
from ragistry.evaluation.systems.systems import described
from ragistry.techniques.checks import Checked, Entry, check_entries, read_entries
from ragistry.techniques.classes import MODELS, RESOURCES, complaints, config_model, takes_everything, wanted_resources
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.utils.wording import did_you_mean
from ragistry.workspace import Workspace

Want = tuple[str, str | None]
"""A resource, and the name of the generator or reranker; None: the default one."""

Grid = Mapping[str, Sequence[Any]]
"""Parameter → values. ``TECHNIQUE.PARAMETER`` changes an entry of techniques.yaml, ``chunk_size`` the chunks."""

_COMMA = re.compile(r",(?![^\[{]*[\]}])")
"""A comma between values, outside brackets."""
CHUNK_SIZE = "chunk_size"
WHOLE = "document"
LIBRARY = "library"
OVERLAP_SHARE = 0.15
"""Overlap of a chunk size given without one, as a share of it; the default settings have 150 of 1,000 characters."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One column of a comparison: a technique, the changes of its entry, and the chunking."""

    name: str
    technique: str
    chunking: Chunking
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def entry(self) -> str:
        """The name of its entry in the result of `checked_entries`."""
        return self.name if self.changes else self.technique


def parse_grid(lines: Iterable[str]) -> dict[str, list[Any]]:
    """``["hybrid.k=10,60"]`` as ``{"hybrid.k": [10, 60]}``; values are JSON, such as ``[1, 0]``, or else text."""
    grid: dict[str, list[Any]] = {}
    for line in lines:
        key, equals, text = (part.strip() for part in line.partition("="))
        values = [value.strip() for value in _COMMA.split(text)]
        if not equals or not key or not all(values):
            raise EvaluationError(
                f"a grid is written TECHNIQUE.PARAMETER=VALUE,VALUE, got {line!r}; try hybrid.k=10,60"
            )
        if key in grid:
            raise EvaluationError(f"the grid names {key!r} twice; write all its values after one =")
        grid[key] = [_value(value) for value in values]
    return grid


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
    """Every technique with every combination of its grid values, in order.

    The name shows the varied values: ``hybrid[k=10,chunk_size=500/75]``. Raises `EvaluationError` for a parameter of a
    technique that is not compared, and for a combination that comes twice.
    """
    for key, values in grid.items():
        technique, dot, _ = key.partition(".")
        if not values:
            raise EvaluationError(f"the grid has no values for {key!r}; give one or more")
        if key != CHUNK_SIZE and not (dot and technique in techniques):
            known = ", ".join([CHUNK_SIZE, *(f"{name}.PARAMETER" for name in techniques)])
            raise EvaluationError(f"the grid names {key!r}{did_you_mean(technique, techniques)}; it may name {known}")
    sizes = [parse_chunking(size) for size in grid.get(CHUNK_SIZE, [chunking])]
    found: dict[str, Variant] = {}
    for technique in techniques:
        own = {key.partition(".")[2]: values for key, values in grid.items() if key.partition(".")[0] == technique}
        for size, values in product(sizes, product(*own.values())):
            changes = dict(zip(own, values, strict=True))
            shown = changes | ({CHUNK_SIZE: size} if CHUNK_SIZE in grid else {})
            settings = ",".join(f"{key}={value}" for key, value in shown.items())
            name = f"{technique}[{settings}]" if settings else technique
            if name in found:
                raise EvaluationError(f"{name!r} would be compared twice; name each technique and each value once")
            found[name] = Variant(name, technique, size, changes)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class VariedFile(YamlFile):
    """techniques.yaml with additional entries from the grid, whose errors are errors of the grid."""

    variants: frozenset[str] = frozenset()

    def place(self, keys: Sequence[str | int]) -> str:
        return "grid" if self.variants.intersection(map(str, keys[1:2])) else YamlFile.place(self, keys)


def checked_entries(
    workspace: Workspace, variants: Sequence[Variant], given: Mapping[str, Any]
) -> tuple[YamlFile, Checked]:
    """techniques.yaml with the entries changed by a grid, and with entries for the classes that a program passes.

    Everything is checked before indexing. Raises `UnknownTechniqueError`, and `InvalidConfigError` for a value that
    an entry cannot have.
    """
    file, problems = workspace.registry.file, Problems()
    broken = workspace.registry.broken
    bodies = {name: body for name, body in (file.data.get("techniques") or {}).items() if name not in broken}
    of_file = [one for one in variants if given[one.technique] is None]
    for one in of_file:
        entry = workspace.registry.entry(one.technique)
        if one.changes:
            bodies[one.name] = {"use": entry.use, **(bodies[one.technique] or {}), **one.changes}
    names = frozenset(one.name for one in of_file if one.changes)
    varied = VariedFile(file.path, {**file.data, "techniques": bodies}, file.tree, names)
    checked = check_entries(varied, read_entries(varied, problems), problems, workspace.registry.resources)
    problems.report()
    for one in variants:
        if isinstance(cls := given[one.technique], type) and not complaints(cls):
            checked.entries[one.entry] = Entry(one.entry, cls.__qualname__, dict(one.changes))
            checked.classes[one.entry] = cls
    return varied, checked


def all_entries(registry: TechniqueRegistry, name: str) -> list[str]:
    """The entry and everything it builds on."""
    return [name, *(one for below in builds_on(registry, name) for one in all_entries(registry, below))]


def builds_on(registry: TechniqueRegistry, name: str) -> list[str]:
    """The techniques that an entry names; a pipeline names its steps in its own configuration."""
    entry, references = registry.entry(name), getattr(registry.technique_class(name), "references", None)
    base = [] if entry.base is None else [entry.base]
    return [*base, *entry.bases, *(references(entry.config) if callable(references) else [])]


def wants(registry: TechniqueRegistry, name: str) -> set[Want]:
    """The resources that an entry needs, including those of pipeline nodes."""
    entry, cls = registry.entry(name), registry.technique_class(name)
    names = set(wanted_resources(cls))
    if takes_everything(cls) or ("registry" in names and not hasattr(cls, "references")):
        names = set(RESOURCES)  # it can get anything from the registry
    nodes = cls.wanted(entry.config) if hasattr(cls, "wanted") else []
    return {(name, entry.models.get(name)) for name in names} | {(one.resource, one.name) for one in nodes}


def model_in(resources: Mapping[str, Any], want: Want) -> Any:
    """The named model, or the default one; None if there is none."""
    kind, name = want
    return resources.get(kind) if name is None else resources.get(f"{kind}s", {}).get(name)


def resolved(registry: TechniqueRegistry, name: str) -> tuple[dict[str, Any], str]:
    """An entry with its defaults, code and models, and those of its bases; and why it cannot be resumed."""
    entry, cls = registry.entry(name), registry.technique_class(name)
    config, model = dict(entry.config), config_model(cls)
    if model is not None:
        for key, value in model.model_validate(config):
            config.setdefault(model.model_fields[key].alias or key, value)
    found, not_resumed = described(cls, config)
    models = [(want, model_in(registry.resources, want)) for want in wants(registry, name) if want[0] in MODELS]
    if judges := {want[1] or want[0]: model_of(one) for want, one in models if one is not None}:
        found["models"] = judges
    if bases := {one: resolved(registry, one)[0] for one in builds_on(registry, name)}:
        found["bases"] = bases
    return found, not_resumed
