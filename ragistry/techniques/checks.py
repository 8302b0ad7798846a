"""Read and check techniques.yaml: all its errors are found before a technique is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ragistry.config.problems import Problems, dotted
from ragistry.config.yaml_file import YamlFile
from ragistry.errors import ConfigError
from ragistry.techniques.classes import (
    MODELS,
    Reserved,
    Wanted,
    complaints,
    config_model,
    find_class,
    modules_beside,
    takes_everything,
    wanted_resources,
)
from ragistry.utils.plugins import BrokenPluginError
from ragistry.utils.wording import did_you_mean

if TYPE_CHECKING:
    from ragistry.techniques.registry import TechniqueRegistry

DEFAULT_TECHNIQUE = "naive"
WITH_WORDS = "hybrid"
AUTO = "auto"
"""As ``default`` or ``base``, unless an entry has this name: `WITH_WORDS` if the store has word search, else
`DEFAULT_TECHNIQUE`."""


Complaint = tuple[tuple[str, ...], str]
"""The keys of a value in an entry, and what is wrong with the value."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A configured technique: its class, what it builds on, the models that it names, and its own configuration."""

    name: str
    use: str
    config: dict[str, Any]
    base: str | None = None
    bases: tuple[str, ...] = ()
    models: dict[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> list[str | int]:
        """Where the entry is in its file."""
        return ["techniques", self.name]


@dataclass(slots=True)
class Checked:
    """The entries, the class of each valid one, and the reason for each that is unusable.

    ``links``: what each builds on.
    """

    entries: dict[str, Entry]
    classes: dict[str, type[Any]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    links: dict[str, list[str]] = field(default_factory=dict)

    def break_dependents(self) -> None:
        """What builds on a broken technique is broken too, for the same reason."""
        for name in self.broken:
            self.classes.pop(name, None)
        while below := {
            name: used for name in self.classes for used in self.links.get(name, ()) if used in self.broken
        }:
            for name, used in below.items():
                self.broken[name] = self.broken[used]
                del self.classes[name]


def read_entries(file: YamlFile, problems: Problems) -> dict[str, Entry]:
    """The well-formed entries of the file; errors of the others are added to ``problems``."""
    for key in file.data.keys() - {"techniques", "default"}:
        problems.add(file, [key], f"unknown setting {key!r}; there are default, techniques")
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


def check_entries(
    file: YamlFile, entries: dict[str, Entry], problems: Problems, resources: Mapping[str, Any] | None = None
) -> Checked:
    """Find the class of every entry, and check its configuration, its bases, and the models it names.

    ``resources``: holds the generators and rerankers that entries name; without it, these names are not checked.
    """
    checked = Checked(entries)
    links = checked.links
    with modules_beside(file.path):
        for name, entry in entries.items():
            cls = None
            found: list[Complaint] = []
            try:
                cls = find_class(entry.use)
                found += [(("use",), said) for said in complaints(cls)]
            except BrokenPluginError as error:
                checked.broken[name] = str(error)
            except ConfigError as error:
                found.append(_unknown_use(entry, error, file.data["techniques"][name]))
            if cls is not None and not found:
                checked.classes[name] = cls
                _check_config(file, entry, cls, problems)
                found += [
                    *_check_reserved(entry, cls),
                    *_check_models(entry, cls, {} if resources is None else resources),
                ]
            links[name] = _links(entry, cls, entries)
            found += [_unknown_link(entry, used, entries) for used in links[name] if used not in entries]
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


def _unknown_use(entry: Entry, error: ConfigError, body: Any) -> Complaint:
    if body and "use" in body:
        return ("use",), str(error)
    meant = next((f", or write 'use' for {key!r}" for key in entry.config if did_you_mean(key, ["use"])), "")
    return (), f"has no `use`, and {error}{meant}"


def _check_config(file: YamlFile, entry: Entry, cls: type[Any], problems: Problems) -> None:
    if (model := config_model(cls)) is not None:
        try:
            model.model_validate(entry.config)
        except ValidationError as error:
            problems.add_validation(file, entry.keys, model, error)
            return
    disagreements = getattr(cls, "disagreements", None)
    if callable(disagreements) and entry.bases:
        for key, said in disagreements(entry.config, entry.bases).items():
            problems.add(file, [*entry.keys, key], f"techniques.{entry.name}.{key}: {said}")


def _check_reserved(entry: Entry, cls: type[Any]) -> Iterator[Complaint]:
    """Check that the class accepts the bases and models of the entry, and that the bases it needs are there."""
    wanted = wanted_resources(cls)
    given = {"base": entry.base, "bases": entry.bases, **entry.models}
    for key, value in given.items():
        if value and key not in wanted and not takes_everything(cls):
            yield (key,), f"{cls.__name__} does not take a parameter {key!r}; remove this key"
    for key, example in (("base", "base: auto"), ("bases", "bases: [naive, bm25]")):
        if wanted.get(key) and not given[key]:
            yield (), f"{cls.__name__} needs {key}; write `{example}`"


def _check_models(entry: Entry, cls: type[Any], resources: Mapping[str, Any]) -> Iterator[Complaint]:
    """Check that the models named by the entry, or by its class's configuration, exist."""
    named = [Wanted((), kind, name) for kind, name in entry.models.items()]
    more = getattr(cls, "wanted", None)
    for path, kind, name in [*named, *(more(entry.config) if callable(more) else [])]:
        known = resources.get(f"{kind}s") if name is not None else None
        if known is not None and name not in known:
            there = f"there are {', '.join(known) or 'none'} in config/models.yaml"
            yield (*path, kind), f"no {kind} {name!r}{did_you_mean(name, known)}; {there}"


def _links(entry: Entry, cls: type[Any] | None, entries: Mapping[str, Entry]) -> list[str]:
    """The techniques that an entry builds on, including those its class finds in its configuration."""
    more = getattr(cls, "references", None)
    base = [] if entry.base is None else [entry.base]
    if base == [AUTO] and AUTO not in entries:  # one of two, depending on the store
        base = [name for name in (WITH_WORDS, DEFAULT_TECHNIQUE) if name in entries] or base
    return [*base, *entry.bases, *(more(entry.config) if callable(more) else [])]


def _unknown_link(entry: Entry, used: str, entries: Mapping[str, Entry]) -> Complaint:
    key = "base" if used == entry.base else "bases" if used in entry.bases else ""
    known = [*entries, AUTO] if key == "base" and used != AUTO else list(entries)
    return (key,) if key else (), f"no technique {used!r}{did_you_mean(used, known)}; there are {', '.join(known)}"


_SHORT = {"minilm": "all-minilm-l6-v2", "multilingual": "multilingual-e5-small"}


def model_name(name: str) -> str:
    """The bare name of an embedding model, in lower case, without server, owner and the tag ``latest``."""
    name = name.partition(":")[2] if name.startswith(("ollama:", "openai:", "tei:")) else name
    name = name.rpartition("/")[2].removesuffix(":latest").lower()
    return _SHORT.get(name, name)


def check_agreement(registry: TechniqueRegistry, embed_model: str, chunk_size: int) -> None:
    """Raise `InvalidConfigError` for every ``embedding_model`` and ``chunk_size`` that differs from the settings."""
    problems = Problems()
    for name in registry.names():
        entry = registry.entry(name)
        model, size = entry.config.get("embedding_model"), entry.config.get("chunk_size")
        if isinstance(model, str) and embed_model != "tei" and model_name(model) != model_name(embed_model):
            problems.add(
                registry.file, [*entry.keys, "embedding_model"],
                f"techniques.{name}.embedding_model: {model!r}, but the store is made with {embed_model!r}; "
                f"set embed_model: {model} in documents.yaml and run `ragistry reembed`, or remove this key",
            )  # fmt: skip
        if isinstance(size, int) and size != chunk_size:
            problems.add(
                registry.file, [*entry.keys, "chunk_size"],
                f"techniques.{name}.chunk_size: {size}, but the store is made with chunks of {chunk_size}; "
                f"set chunk_size: {size} in documents.yaml and ingest again, or remove this key",
            )  # fmt: skip
    problems.report()
