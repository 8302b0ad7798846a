"""Entries of techniques.yaml as they are compared: varied by a grid, checked, and written out with every default."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from ragistry.config.problems import Problems
from ragistry.config.yaml_file import YamlFile
from ragistry.evaluation.grid import Variant
from ragistry.evaluation.identity import Description
from ragistry.evaluation.own_code import code_of
from ragistry.evaluation.record import model_of
from ragistry.techniques.catalogue import modules_beside
from ragistry.techniques.check import Checked, check_entries
from ragistry.techniques.entry import read_entries
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.techniques.shape import takes_everything, wanted_resources
from ragistry.utils.resolve import resolve_object
from ragistry.workspace import Workspace

JUDGES = ("generator", "reranker")
"""Models that a technique may ask beside the embedder, which all have in common."""


@dataclass(frozen=True, slots=True)
class VariedFile(YamlFile):
    """techniques.yaml with entries that stand in no file: what is wrong with those is wrong with the grid."""

    variants: frozenset[str] = frozenset()

    def place(self, keys: Sequence[str | int]) -> str:
        return "grid" if self.variants.intersection(map(str, keys[1:2])) else YamlFile.place(self, keys)


@dataclass(frozen=True, slots=True)
class Varied:
    """The entries of a workspace's techniques.yaml, those that a grid changes among them, all of them checked."""

    file: YamlFile
    checked: Checked


def varied(workspace: Workspace, variants: Sequence[Variant]) -> Varied:
    """Check everything that is named before anything is indexed.

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
    return Varied(changed, checked)


def resolved(registry: TechniqueRegistry, name: str, models: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with the defaults that it leaves out, its code, the models that it asks, and what it stands on."""
    entry, cls = registry.entry(name), registry.technique_class(name)
    config = _with_defaults(getattr(cls, "Config", None), entry.config)
    found: dict[str, Any] = {"use": entry.use, "code": code_of(cls), "config": config}
    found |= asked(JUDGES if takes_everything(cls) else wanted_resources(cls), models)
    if entry.base is not None:
        found["base"] = {entry.base: resolved(registry, entry.base, models)}
    if entry.bases:
        found["bases"] = {base: resolved(registry, base, models) for base in entry.bases}
    with modules_beside(registry.file.path):
        nodes = {use: code_of(resolve_object(use)) for use in _nodes(entry.config)}
    if nodes:
        found["nodes"] = nodes
    references = getattr(cls, "references", None)  # a pipeline names its steps in its own configuration
    if callable(references):
        found["references"] = {other: resolved(registry, other, models) for other in references(entry.config)}
    return found


def _with_defaults(model: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as plain values; what becomes a value that is none is told as the file has it."""
    written = {name: Description().plain(value, name) for name, value in config.items()}
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return written
    found = {}
    for name, value in model.model_validate(config):
        description, field = Description(), model.model_fields.get(name)
        plain = description.plain(value, name)
        alias = (field and field.alias) or name
        found[name] = written.get(alias, plain) if description.unknown else plain
    return found


def asked(wanted: Container[str], models: Mapping[str, Any]) -> dict[str, Any]:
    """The models that a constructor wants, where there are any: another one gives other rankings."""
    found = {name: model_of(models[name]) for name in JUDGES if name in wanted and name in models}
    return {"models": found} if found else {}


def stands_on(registry: TechniqueRegistry, name: str) -> Iterator[str]:
    """The entry, and all that it stands on."""
    yield name
    entry = registry.entry(name)
    references = getattr(registry.technique_class(name), "references", None)
    for other in filter(None, [entry.base, *entry.bases, *(references(entry.config) if callable(references) else [])]):
        yield from stands_on(registry, other)


def _nodes(config: Mapping[str, Any]) -> list[str]:
    """The classes of nodes that the steps of a pipeline name."""
    steps = config.get("steps")
    bodies = steps.values() if isinstance(steps, Mapping) else ()
    return [body["node"] for body in bodies if isinstance(body, Mapping) and isinstance(body.get("node"), str)]
