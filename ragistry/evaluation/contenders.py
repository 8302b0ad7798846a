"""What is compared, ready to be asked: techniques of a workspace or of a program over the corpus of a test set."""

from __future__ import annotations

import inspect
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from ragistry.config.problems import Problems
from ragistry.config.yaml_file import YamlFile
from ragistry.errors import ConfigError, EvaluationError
from ragistry.evaluation.grid import Variant
from ragistry.evaluation.indexing import DatasetIndex
from ragistry.evaluation.record import model_of
from ragistry.protocols import Technique
from ragistry.techniques.check import Checked, check_entries
from ragistry.techniques.entry import read_entries
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.techniques.shape import takes_everything, wanted_resources
from ragistry.types import Document
from ragistry.workspace import Workspace

JUDGES = ("generator", "reranker")
"""Models that a technique may ask beside the embedder, which all have in common."""
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Contender:
    """A technique under the name that the report gives it.

    ``configuration``: all that decides its rankings, defaults included. ``own_top_k``: its ``top_k`` is part of what
    is compared, so it is asked for no other.
    """

    name: str
    technique: RegisteredTechnique
    configuration: dict[str, Any]
    index: DatasetIndex | None = None
    own_top_k: bool = False

    @property
    def chunks_per_document(self) -> float:
        """How many chunks make up a document, on average; 1 where that is not known."""
        return 1.0 if self.index is None else max(1.0, self.index.cost.chunks / self.index.cost.documents)


class Unbuilt:
    """A technique that could not be made: it says why when it is asked, so that the others can be compared."""

    def __init__(self, reason: ConfigError) -> None:
        self.reason = reason

    def retrieve(self, query: str, **_: Any) -> list[Document]:  # noqa: ARG002, nothing can be found
        raise self.reason


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
    problems = Problems()
    changed = replace(file, data={**file.data, "techniques": bodies})
    checked = check_entries(changed, read_entries(changed, problems), problems)
    problems.report()
    return Varied(changed, checked)


def from_workspace(
    workspace: Workspace, entries: Varied, variants: Sequence[Variant], index: DatasetIndex, models: Mapping[str, Any]
) -> list[Contender]:
    """Techniques of techniques.yaml over an index.

    ``models``: what techniques get beside the store, by parameter name. One that needs something else fails when it
    is asked.
    """
    resources = {"store": index.store, **models}
    if index.store is workspace.store:
        resources["library"] = workspace.library
    registry = TechniqueRegistry(entries.file, entries.checked, resources)
    return [_named(registry, variant, index, models) for variant in variants]


def _named(registry: TechniqueRegistry, variant: Variant, index: DatasetIndex, models: Mapping[str, Any]) -> Contender:
    entry = variant.name if variant.changes else variant.technique
    technique: Technique
    try:
        technique = registry.get(entry).technique
    except ConfigError as error:
        technique = Unbuilt(error)
    return Contender(
        variant.name,
        RegisteredTechnique(variant.name, technique),
        {**resolved(registry, entry, models), **index.configuration},
        index,
        own_top_k="top_k" in variant.changes,
    )


def resolved(registry: TechniqueRegistry, name: str, models: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with the defaults that it leaves out, the models that it asks, and what it stands on."""
    entry, cls = registry.entry(name), registry.technique_class(name)
    model = getattr(cls, "Config", None)
    config = entry.config
    if isinstance(model, type) and issubclass(model, BaseModel):
        config = model.model_validate(config).model_dump(mode="json")
    found: dict[str, Any] = {"use": entry.use, "config": config}
    found |= _asked(JUDGES if takes_everything(cls) else wanted_resources(cls), models)
    if entry.base is not None:
        found["base"] = {entry.base: resolved(registry, entry.base, models)}
    if entry.bases:
        found["bases"] = {base: resolved(registry, base, models) for base in entry.bases}
    references = getattr(cls, "references", None)  # a pipeline names its steps in its own configuration
    if callable(references):
        found["references"] = {other: resolved(registry, other, models) for other in references(entry.config)}
    return found


def _asked(wanted: Container[str], models: Mapping[str, Any]) -> dict[str, Any]:
    """The models that a constructor wants, where there are any: another one gives other rankings."""
    found = {name: model_of(models[name]) for name in JUDGES if name in wanted and name in models}
    return {"models": found} if found else {}


def is_ready(given: Any) -> bool:
    """Whether a technique of a program is an object that needs nothing more."""
    return not isinstance(given, type) and callable(getattr(given, "retrieve", None))


def from_ready(name: str, given: Any) -> Contender:
    """A technique object over whatever store it was made with."""
    inner = given.technique if isinstance(given, RegisteredTechnique) else given
    return Contender(name, RegisteredTechnique(name, inner), _described(inner))


def from_factory(given: Any, variant: Variant, index: DatasetIndex, models: Mapping[str, Any]) -> Contender:
    """A technique that is made for this comparison, by its class or by a function.

    A class is called with its configuration (empty, or what a grid says), a function with none; both get ``store``
    and those of the ``models`` that they have a parameter for.
    """
    if not callable(given):
        raise EvaluationError(
            f"technique {variant.technique!r} is {given!r:.80}; give a name of techniques.yaml, an object with "
            "retrieve(query), or a class or function that makes one"
        )
    if variant.changes and not isinstance(given, type):
        raise EvaluationError(f"the grid changes {variant.technique!r}, which is no class; give its class")
    made = _made(given, variant, {"store": index.store, **models})
    asked = _asked(inspect.signature(given).parameters, models)
    configuration = {**_described(made), **asked, "changes": dict(variant.changes), **index.configuration}
    technique = RegisteredTechnique(variant.name, made)
    return Contender(variant.name, technique, configuration, index, own_top_k="top_k" in variant.changes)


def _made(given: Any, variant: Variant, resources: Mapping[str, Any]) -> Any:
    config = [dict(variant.changes)] if isinstance(given, type) else []
    asked = list(inspect.signature(given).parameters.values())[len(config) :]
    missing = [
        one.name for one in asked if one.default is one.empty and one.name not in resources and one.kind in NAMED
    ]
    if missing:
        return Unbuilt(
            ConfigError(f"{variant.technique!r} needs {', '.join(missing)}; there are {', '.join(resources)}")
        )
    return given(*config, **{one.name: resources[one.name] for one in asked if one.name in resources})


def _described(technique: Any) -> dict[str, Any]:
    """What can be known of an object's configuration."""
    kind = type(technique)
    found: dict[str, Any] = {"use": f"{kind.__module__}:{kind.__qualname__}"}
    config = getattr(technique, "config", None)
    if isinstance(config, BaseModel):
        found["config"] = config.model_dump(mode="json")
    return found
