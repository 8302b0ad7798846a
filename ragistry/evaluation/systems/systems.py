"""The compared systems: what each entry needs, everything that decides its rankings, and which can be compared."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ragistry.errors import ConfigError, EvaluationError
from ragistry.evaluation.data.dataset import Run
from ragistry.evaluation.systems.foreign import N_RESULTS, ForeignTechnique, RecordedForeign, RunTechnique, is_run
from ragistry.evaluation.systems.index import DatasetIndex
from ragistry.evaluation.systems.recorded_answers import AnswerStore, model_of, plain
from ragistry.evaluation.systems.variants import Variant
from ragistry.techniques.classes import (
    MODELS,
    RESOURCES,
    config_model,
    takes_everything,
    wanted_resources,
)
from ragistry.techniques.registered import RegisteredTechnique, registered
from ragistry.techniques.registry import TechniqueRegistry

PACKAGES = ("ragistry", "numpy", "onnxruntime", "tokenizers", "tantivy", "PyStemmer")
"""Packages that can change a ranking or a figure."""
Want = tuple[str, str | None]
"""A resource, and the name of the generator or reranker; None: the default one."""


@dataclass(frozen=True, slots=True)
class System:
    """A compared technique.

    Attributes:
        name: Name in the report.
        technique: The technique.
        configuration: Everything that decides its rankings, including defaults.
        index: The index that it searches; None for an object with its own store.
        own_top_k: The grid varies its ``top_k``, so it is ranked with its own.
        search_top_k: Number of results of a search; None for the technique's own.
        run: Its rankings, if it is a run that is not asked.
    """

    name: str
    technique: RegisteredTechnique
    configuration: dict[str, Any]
    index: DatasetIndex | None = None
    own_top_k: bool = False
    search_top_k: int | None = None
    run: Run | None = None

    @property
    def chunks_per_document(self) -> float:
        """Average number of chunks per document; 1 if unknown."""
        return 1.0 if self.index is None else max(1.0, self.index.cost.chunks / self.index.cost.documents)


def versions() -> dict[str, str]:
    """Return the installed version of each relevant package."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def is_entry(given: Any) -> bool:
    """Return whether a technique from a program is a name or an entry for `TechniqueRegistry.build`."""
    return isinstance(given, str) or (isinstance(given, Mapping) and isinstance(given.get("use"), str | type))


def unbuilt(given: Any) -> Any:
    """Replace built techniques by their entries, so that a comparison builds them over its own index."""
    if isinstance(given, RegisteredTechnique) and given.entry is not None:
        return unbuilt(given.entry)
    if is_entry(given) and not isinstance(given, str):
        return {key: _unbuilt_parts(value) for key, value in given.items()}
    return given


def _unbuilt_parts(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _unbuilt_parts(one) for key, one in value.items()}
    return [_unbuilt_parts(one) for one in value] if isinstance(value, list | tuple) else unbuilt(value)


def with_contenders(
    registry: TechniqueRegistry, variants: Sequence[Variant], given: Mapping[str, Any]
) -> tuple[TechniqueRegistry, list[Variant], dict[str, Exception]]:
    """Add the entries and classes of a program, and those that a grid changes, to a registry.

    Args:
        registry: The techniques of the workspace.
        variants: Everything that is compared.
        given: Technique → what a program gave. None: the entry of techniques.yaml; a name: that entry.

    Returns:
        The registry, the variants with the names of their entries in it, and, by these names, the errors of classes
        that are not techniques.

    Raises:
        UnknownTechniqueError: The registry has no such technique.
        InvalidConfigError: An entry has errors, or the grid has a value that an entry cannot have.
    """
    of_file = registry.file.data["techniques"]
    entries: dict[str, dict[str, Any]] = {"build": {}, "grid": {}}
    classes: dict[str, dict[str, Any]] = {}
    found = []
    for one in variants:
        own, entry = given[one.technique], one.technique
        if one.changes or own is not None:
            entry = one.name if one.changes else one.technique
            entry = f"{entry} of the program" if entry in of_file else entry
            if isinstance(own, type):
                classes[entry] = {"use": own, **one.changes}
            elif own is None or is_entry(own):
                body: Any = one.technique if own is None else own
                if isinstance(body, str):
                    body = {"use": registry.entry(body).use, **(of_file[body] or {})}
                entries["grid" if one.changes else "build"][entry] = {**body, **one.changes}
        found.append(replace(one, entry=entry))
    for origin, added in entries.items():
        registry = registry.extended(added, origin=origin) if added else registry
    errors: dict[str, Exception] = {}
    for entry, body in classes.items():
        try:
            registry = registry.extended({entry: body})
        except ConfigError as error:
            errors[entry] = error
    _check_is_read(registry, [one for one in found if one.changes and one.entry not in errors])
    return registry, found, errors


def is_ready(given: Any) -> bool:
    """Return whether a technique from a program is a ready object or a run."""
    if is_entry(given):
        return False
    return is_run(given) or (not isinstance(given, type) and callable(getattr(given, "retrieve", None)))


def ready_system(name: str, given: Any, answers: AnswerStore | None = None) -> System:
    """Make a system of an object with its own store, whose configuration is its attributes, or of a run.

    ``answers``: keeps what a function or an endpoint answers.
    """
    if is_run(given):
        return System(name, RegisteredTechnique(name, RunTechnique()), {"use": "run"}, run=given)
    inner = given.technique if isinstance(given, RegisteredTechnique) else given
    configuration = describe(type(inner), {})
    with suppress(TypeError, ValueError, RecursionError):  # Attributes may be anything.
        configuration["config"] = plain(json.loads(json.dumps(getattr(inner, "__dict__", {}))))
    search_top_k = own_top_k(inner)
    if answers is not None and isinstance(inner, ForeignTechnique) and inner.identity is not None:
        inner = RecordedForeign(inner, answers)
    return System(name, registered(name, inner), configuration, search_top_k=search_top_k)


def own_top_k(technique: Any) -> int | None:
    """Return the number of results of an object that a program gave; None if it has its own default for None."""
    parameter = inspect.signature(technique.retrieve).parameters.get("top_k")
    if parameter is None or parameter.default is None:
        return None
    return parameter.default if type(parameter.default) is int else N_RESULTS


def parameters_of(function: Any) -> dict[str, bool]:
    """Return the resources that a function takes by name, and whether each is required."""
    wanted = wanted_resources(function, 0) if callable(function) else {}
    # It may search the store with its own embedder, which needs vectors there.
    return wanted | {"embedder": False} if "store" in wanted else wanted


def _check_is_read(registry: TechniqueRegistry, variants: Sequence[Variant]) -> None:
    """Raise `EvaluationError` for a parameter of the grid that no variant reads, by ``read_if`` of the settings."""
    is_read: dict[str, bool] = {}
    for one in variants:
        model: Any = config_model(registry.technique_class(one.entry))
        for key, name, *values in getattr(model, "read_if", ()):
            if key in one.changes:
                said = f"{one.technique}.{key} is read only with {name}: {' or '.join(map(str, values))}"
                config = model.model_validate(registry.entry(one.entry).config)
                is_read[said] = is_read.get(said, False) or getattr(config, name) in values
    for said in (said for said, is_so in is_read.items() if not is_so):
        raise EvaluationError(f"grid: {said}; add that to the grid")


def comparable(registry: TechniqueRegistry, *, on_library: bool) -> tuple[list[str], list[str]]:
    """List the techniques that can be compared without further configuration.

    Args:
        registry: The techniques.
        on_library: The library of the workspace is searched, not the index of a test set.

    Returns:
        Techniques whose models are configured, and those of them that are left out because they choose between
        collections: a test set is a single collection.
    """
    names = [name for name in registry.names() if not registry.missing_model(name)]
    routed = [name for name in names if not on_library and router_of(registry, name) is not None]
    return [name for name in names if name not in routed], routed


def router_of(registry: TechniqueRegistry, name: str) -> str | None:
    """Return the technique that chooses between collections, among an entry and its bases; None without one."""
    for one in with_bases(registry, name):
        wanted = wanted_resources(registry.technique_class(one))
        if "targets" in wanted or wanted.get("library"):
            return one
    return None


def with_bases(registry: TechniqueRegistry, name: str) -> list[str]:
    """List an entry and everything that it builds on."""
    return [name, *(one for base in registry.builds_on(name) for one in with_bases(registry, base))]


def wants(registry: TechniqueRegistry, name: str) -> set[Want]:
    """Return the resources that an entry needs, including those of pipeline nodes."""
    entry, cls = registry.entry(name), registry.technique_class(name)
    names = set(wanted_resources(cls))
    if takes_everything(cls) or ("registry" in names and not hasattr(cls, "references")):
        names = set(RESOURCES)  # It can get anything from the registry.
    nodes = cls.wanted(entry.config) if hasattr(cls, "wanted") else []
    return {(name, entry.models.get(name)) for name in names} | {(one.resource, one.name) for one in nodes}


def model_in(resources: Mapping[str, Any], want: Want) -> Any:
    """Return the named model, or the default one; None if it is not configured."""
    kind, name = want
    return resources.get(kind) if name is None else resources.get(f"{kind}s", {}).get(name)


def resolve(registry: TechniqueRegistry, name: str) -> dict[str, Any]:
    """Return an entry with its defaults, code, models and bases."""
    entry, cls = registry.entry(name), registry.technique_class(name)
    config, model = dict(entry.config), config_model(cls)
    if model is not None:
        for key, value in model.model_validate(config):
            config.setdefault(model.model_fields[key].alias or key, value)
    found = describe(cls, config)
    models = [(want, model_in(registry.resources, want)) for want in wants(registry, name) if want[0] in MODELS]
    if judges := {want[1] or want[0]: model_of(one) for want, one in models if one is not None}:
        found["models"] = judges
    if (encoder := registry.resources.get("encoders", {}).get(config.get("encoder"))) is not None:
        found["encoder"] = encoder.fingerprint
    bases = {one: resolve(registry, one) for one in registry.builds_on(name)}
    if bases:
        found["bases"] = bases
    return found


def describe(cls: type[Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a class with its code and configuration."""
    use = f"{cls.__module__}:{cls.__qualname__}"
    return {"use": use, "code": code_hash(cls), "config": plain(config)}


def code_hash(cls: type[Any]) -> str | None:
    """Return the SHA-256, hexadecimal, of the source files of a class and of its base classes.

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
