"""The entries of techniques.yaml, read and checked before a technique is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pydantic import ValidationError

from ragistry.config.problems import Problems, dotted
from ragistry.config.settings import DEFAULTS
from ragistry.config.yaml_file import YamlFile, read_yaml
from ragistry.errors import ConfigError
from ragistry.plugins import BrokenPluginError, modules_of
from ragistry.protocols import Technique
from ragistry.techniques.classes import (
    MODELS,
    Complaint,
    Reserved,
    Wanted,
    complaints,
    config_model,
    find_class,
    modules_folder,
    retrieve_complaints,
    takes_everything,
    wanted_resources,
)
from ragistry.utils.removed import removed
from ragistry.utils.wording import did_you_mean

DEFAULT_TECHNIQUE = "naive"
WITH_WORDS = "hybrid"
AUTO = "auto"
"""As ``default`` or ``base``, unless an entry has this name: `WITH_WORDS` if the store has word search, else
`DEFAULT_TECHNIQUE`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry: the class of the technique, its bases, the models that it names, and its own configuration."""

    name: str
    use: str
    config: dict[str, Any]
    base: str | None = None
    bases: tuple[str, ...] = ()
    models: dict[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> list[str | int]:
        """The place of the entry in its file."""
        return ["techniques", self.name]


@dataclass(slots=True)
class Checked:
    """The checked entries.

    Attributes:
        entries: All well-formed entries by name.
        classes: The class of each usable technique; None for an entry of the packaged file before its first use.
        broken: The other techniques, with the reason.
        removed: The techniques that were removed from the package, with what replaces them. They are not errors,
            because `ragistry init` wrote them.
        links: The techniques that each entry builds on.
    """

    entries: dict[str, Entry]
    classes: dict[str, type[Any] | None] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    removed: dict[str, str] = field(default_factory=dict)
    links: dict[str, list[str]] = field(default_factory=dict)

    def class_of(self, name: str) -> type[Any]:
        """Return the class of a usable technique."""
        cls = self.classes[name]
        if cls is None:
            cls = self.classes[name] = find_class(self.entries[name].use)
        return cls

    def break_dependents(self) -> None:
        """Mark the techniques that build on a broken one as broken, for the same reason."""
        for name in self.broken:
            self.classes.pop(name, None)
        while below := {
            name: used
            for name in self.classes
            for used in self.links.get(name, ())
            if used in self.broken or used in self.removed
        }:
            for name, used in below.items():
                self.broken[name] = self.broken.get(used) or self.removed[used]
                del self.classes[name]


def read_entries(file: YamlFile, problems: Problems) -> dict[str, Entry]:
    """Read the well-formed entries of the file; add the errors of the others to ``problems``."""
    for key in file.data:
        if key not in ("techniques", "default"):
            problems.add(file, [key], f"unknown setting {key!r}; the settings are default and techniques")
    section = file.data.get("techniques")
    if not isinstance(section, dict) or not section:
        problems.add(file, ["techniques"], f"techniques: must be a mapping of names to entries, got {section!r}")
        return {}
    entries = (_read(file, name, body, problems) for name, body in section.items())
    return {entry.name: entry for entry in entries if entry is not None}


def _read(file: YamlFile, name: Any, body: Any, problems: Problems) -> Entry | None:
    keys: list[str | int] = ["techniques", name]
    if not isinstance(name, str):
        problems.add(file, keys, f"techniques.{name}: a name must be text, got {name!r}; write it in quotes")
        return None
    body = {} if body is None else body
    if not isinstance(body, dict):
        problems.add(file, keys, f"techniques.{name}: must be a mapping such as {{use: naive}}, got {body!r}")
        return None
    try:
        reserved = Reserved.model_validate(body)
    except ValidationError as error:
        problems.add_validation(file, keys, Reserved, error)
        return None
    models = {kind: chosen for kind in MODELS if (chosen := getattr(reserved, kind))}
    config = {key: value for key, value in body.items() if key not in Reserved.model_fields}
    return Entry(name, reserved.use or name, config, reserved.base or None, tuple(reserved.bases), models)


class Parts:
    """The entries, classes and objects in an entry of a program, each with a name of its own.

    Attributes:
        bodies: The entries as techniques.yaml could have them.
        classes: The classes that ``use`` gives instead of a name.
        ready: The objects that are techniques.
        models: The generators and rerankers of an entry that are objects instead of names.
    """

    def __init__(self) -> None:
        self.bodies: dict[str, Any] = {}
        self.classes: dict[str, type[Any]] = {}
        self.ready: dict[str, Technique] = {}
        self.models: dict[str, dict[str, Any]] = {}

    def add(self, name: str, entry: Any) -> None:
        """Add an entry and everything in it. Raises `ConfigError` if a part is not a technique."""
        if not isinstance(entry, Mapping):
            raise ConfigError(f"build: {name} is {entry!r:.80}; write an entry such as {{'use': 'hybrid'}}")
        self.bodies[name] = body = dict(entry)
        if isinstance(use := body.get("use"), type):
            self.classes[name], body["use"] = use, use.__qualname__
        self.models[name] = {kind: body.pop(kind) for kind in MODELS if not isinstance(body.get(kind, ""), str)}
        if "base" in body:
            body["base"] = self._name(body["base"], f"{name}.base")
        if isinstance(bases := body.get("bases"), list | tuple):
            body["bases"] = [self._name(base, f"{name}.bases[{number}]") for number, base in enumerate(bases)]
        if isinstance(steps := body.get("steps"), Mapping):
            body["steps"] = {step: self._step(part, f"{name}.{step}") for step, part in steps.items()}

    def _step(self, part: Any, name: str) -> Any:
        if not isinstance(part, Mapping):
            return part
        if "technique" in part:
            return {**part, "technique": self._name(part["technique"], name)}
        if isinstance(node := part.get("node"), type):
            if "<locals>" in node.__qualname__:
                raise ConfigError(
                    f"build: {name} is {node.__qualname__}, which only its function knows; define the class in a "
                    "module or at the prompt, or use PipelineBuilder"
                )
            return {**part, "node": f"{node.__module__}:{node.__qualname__}"}
        return part

    def _name(self, part: Any, name: str) -> Any:
        if isinstance(part, str):
            return part
        if isinstance(part, Mapping):
            self.add(name, part)
        elif isinstance(part, type) or retrieve_complaints(part):
            raise not_a_technique(f"build: {name}", part)
        else:
            self.ready[name] = part
        return name


def not_a_technique(place: str, part: Any) -> ConfigError:
    """Make the error for a value that has to be a technique."""
    said = "a class; write {'use': CLASS}" if isinstance(part, type) else "; ".join(retrieve_complaints(part))
    if not isinstance(part, type) and any(callable(getattr(part, name, None)) for name in ("invoke", "run")):
        said += "; as_technique of ragistry.evaluation makes one of a function of a query"
    return ConfigError(f"{place} is {part!r:.80}, which is not a technique: {said}")


@dataclass(frozen=True, slots=True)
class VariedFile(YamlFile):
    """techniques.yaml with entries of a program.

    Attributes:
        names: The names of these entries.
        origin: The place of their errors.
    """

    names: frozenset[str] = frozenset()
    origin: str = ""

    def place(self, keys: Sequence[str | int]) -> str:
        return self.origin if self.names.intersection(map(str, keys[1:2])) else YamlFile.place(self, keys)


def packaged_file() -> YamlFile:
    """Read the techniques.yaml of this package."""
    return read_yaml(DEFAULTS / "techniques.yaml")


def check_entries(
    file: YamlFile,
    entries: dict[str, Entry],
    problems: Problems,
    resources: Mapping[str, Any],
    *,
    known: Mapping[str, Entry] | None = None,
    classes: Mapping[str, type[Any]] | None = None,
) -> Checked:
    """Find the class of every entry, and check its configuration, its bases and the models that it names.

    The class of an entry that is the same in the packaged file is not imported before it is used.

    Args:
        file: The techniques.yaml.
        entries: The entries, as `read_entries` returns them.
        problems: The errors are added here.
        resources: The generators and rerankers that entries may name; names of a kind that it lacks are not checked.
        known: Checked entries that these may build on.
        classes: The classes of entries whose ``use`` is not a name.
    """
    checked = Checked(entries)
    there = {**(known or {}), **entries}
    links = checked.links
    bodies: Any = file.data.get("techniques")
    packaged = packaged_file().data["techniques"]
    with modules_of(modules_folder(file.path)):
        for name, entry in entries.items():
            cls = None
            found: list[Complaint] = []
            try:
                if name in packaged and bodies[name] == packaged[name]:
                    checked.classes[name] = None
                else:
                    cls = (classes or {}).get(name) or find_class(entry.use)
                    found += [(("use",), said) for said in complaints(cls)]
            except BrokenPluginError as error:
                checked.broken[name] = str(error)
            except ConfigError as error:
                if line := removed("technique", entry.use):
                    checked.removed[name] = line
                    continue
                if bodies[name] and "use" in bodies[name]:
                    found.append((("use",), str(error)))
                else:
                    near = next((key for key in entry.config if did_you_mean(key, ["use"])), None)
                    meant = "" if near is None else f", or write 'use' for {near!r}"
                    found.append(((), f"has no `use`, and {error}{meant}"))
            if cls is not None and not found:
                checked.classes[name] = cls
                model: Any = config_model(cls)
                try:
                    if model is not None:
                        model.model_validate(entry.config)
                except ValidationError as error:
                    problems.add_validation(file, entry.keys, model, error)
                mistakes = getattr(cls, "mistakes", None)
                found += mistakes(entry.config, entry.bases) if callable(mistakes) else ()
                wanted = wanted_resources(cls)
                given: dict[str, Any] = {"base": entry.base, "bases": entry.bases, **entry.models}
                for key, value in given.items():
                    if value and key not in wanted and not takes_everything(cls):
                        found.append(((key,), f"{cls.__name__} does not take a parameter {key!r}; remove this key"))
                for key, example in (("base", "base: auto"), ("bases", "bases: [naive, bm25]")):
                    if wanted.get(key) and not given[key]:
                        found.append(((), f"{cls.__name__} needs {key}; write `{example}`"))
                found += _check_models(entry, cls, resources)
            both = [one for one in (WITH_WORDS, DEFAULT_TECHNIQUE) if one in there]
            links[name] = bases_of(entry, cls)
            if entry.base == AUTO and AUTO not in there and both:
                links[name] = [*both, *links[name][1:]]
            for used in (one for one in links[name] if one not in there):
                key = "base" if used == entry.base else "bases" if used in entry.bases else ""
                names = [*there, AUTO] if key == "base" and used != AUTO else list(there)
                said = unknown_technique(used, names, f"the file has {', '.join(names)}")
                found.append(((key,) if key else (), said))
            for path, said in found:
                keys = [*entry.keys, *path]
                problems.add(file, keys, f"{dotted(keys)}: {said}")
    try:
        TopologicalSorter(links).prepare()
    except CycleError as error:
        # The sorter reads links as dependencies, so it lists the techniques of a cycle backwards.
        cycle = list(reversed(error.args[1]))
        problems.add(file, ["techniques", cycle[0]], f"techniques build on each other: {' -> '.join(cycle)}")
    checked.break_dependents()
    return checked


def check_default(file: YamlFile, problems: Problems) -> None:
    """Check that the ``default`` of the file is one of its techniques."""
    default, entries = file.data.get("default"), file.data["techniques"]
    known = [*(map(str, entries) if isinstance(entries, dict) else ()), AUTO]
    if default is not None and str(default) not in known:
        there = f"the file has {', '.join(known)}"
        problems.add(file, ["default"], f"default: {unknown_technique(default, known, there)}")


def unknown_technique(name: object, known: Sequence[str], there: str) -> str:
    """Say that a technique does not exist: what replaces a removed one, else the nearest name and those that exist."""
    return removed("technique", str(name)) or f"no technique {name!r}{did_you_mean(name, known)}; {there}"


def _check_models(entry: Entry, cls: type[Any], resources: Mapping[str, Any]) -> Iterator[Complaint]:
    """Check that the models exist that the entry or its configuration names."""
    named = [Wanted((), kind, name) for kind, name in entry.models.items()]
    more = getattr(cls, "wanted", None)
    for path, kind, name in [*named, *(more(entry.config) if callable(more) else [])]:
        known = resources.get(f"{kind}s") if name is not None else None
        if known is not None and name not in known:
            there = f"config/models.yaml has {', '.join(known) or 'none'}"
            yield (*path, kind), f"no {kind} {name!r}{did_you_mean(name, known)}; {there}"


def bases_of(entry: Entry, cls: type[Any] | None) -> list[str]:
    """List the techniques that an entry builds on, including those that its class finds in its configuration."""
    more = getattr(cls, "references", None)
    base = [] if entry.base is None else [entry.base]
    return [*base, *entry.bases, *(more(entry.config) if callable(more) else [])]


_SHORT = {"minilm": "all-minilm-l6-v2", "multilingual": "multilingual-e5-small"}


def model_name(name: str) -> str:
    """Return the bare name of an embedding model in lower case, without server, owner and the tag ``latest``."""
    name = name.partition(":")[2] if name.startswith(("ollama:", "openai:", "tei:")) else name
    name = name.rpartition("/")[2].removesuffix(":latest").lower()
    return _SHORT.get(name, name)
