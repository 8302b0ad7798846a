"""The registry of the techniques in techniques.yaml, each built on first use."""

from __future__ import annotations

import logging
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ragistry.config.problems import Problems
from ragistry.config.yaml_file import YamlFile, read_yaml
from ragistry.errors import (
    ConfigError,
    InvalidConfigError,
    PipelineError,
    UnknownTechniqueError,
)
from ragistry.plugins import modules_of
from ragistry.protocols import Embedder, Technique
from ragistry.techniques.checks import (
    AUTO,
    DEFAULT_TECHNIQUE,
    WITH_WORDS,
    Checked,
    Entry,
    Parts,
    VariedFile,
    bases_of,
    check_default,
    check_entries,
    model_name,
    not_a_technique,
    packaged_file,
    read_entries,
    unknown_technique,
)
from ragistry.techniques.classes import (
    MODELS,
    RESOURCES,
    configuration_of,
    missing_model,
    modules_folder,
    resources_for,
    retrieve_complaints,
    takes_everything,
    wanted_resources,
)
from ragistry.techniques.phrases import PhraseSearch
from ragistry.techniques.registered import RegisteredTechnique, name_error, registered
from ragistry.trace import degraded
from ragistry.types import EmbedderFingerprint, Role
from ragistry.utils.fingerprints import differences

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

log = logging.getLogger(__name__)


class _RecordedEmbedder:
    """An embedder that reports with each vector that it is not the one of the settings."""

    def __init__(self, embedder: Embedder, note: str) -> None:
        self._embedder, self._note = embedder, note
        self.fingerprint, self.count_tokens = embedder.fingerprint, embedder.count_tokens

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        degraded(self._note)
        return self._embedder.embed(texts, role=role)


class TechniqueRegistry:
    """Techniques by name.

    Attributes:
        file: The techniques.yaml.
        resources: The arguments that constructors take by parameter name (``store``, ``embedder``, …). It may be any
            mapping; an item is read when the first technique that needs it is built. Its ``generators`` and
            ``rerankers`` are mappings by name, from which ``generator: NAME`` in an entry selects.
        broken: The techniques that cannot be used, with the reason.
        mistakes: The errors in the entries of broken techniques, line by line.
        searches_words: Whether the store searches words, which decides the meaning of ``auto``.
        one_place: Whether there is only one place to search, such as the store of a repository. A technique that
            chooses collections is then replaced by its base.
        parts: What a program gave in entries of its own.
        language: Language of chunks whose metadata have none, in which phrases are compared.
        embedder_of: Returns the embedder of a fingerprint, or None if it is not known here.
    """

    def __init__(
        self, file: YamlFile, checked: Checked, resources: Mapping[str, Any], parts: Parts | None = None
    ) -> None:
        self.file = file
        self.parts = Parts() if parts is None else parts
        self.broken = checked.broken
        self.mistakes: dict[str, list[str]] = {}
        self.searches_words = True
        self.one_place = False
        self.language = "english"
        self.embedder_of: Callable[[EmbedderFingerprint], Embedder | None] = lambda _: None
        self.resources = resources
        self._recorded: tuple[EmbedderFingerprint, TechniqueRegistry] | None = None
        self._checked = checked
        self._folder = modules_folder(file.path)
        self._built = {name: registered(name, made) for name, made in self.parts.ready.items()}
        self._lock = RLock()

    @classmethod
    def load(
        cls, path: str | Path, resources: Mapping[str, Any] | None = None, *, keep_broken: bool = False
    ) -> TechniqueRegistry:
        """Read and check a techniques.yaml; a file without ``techniques`` has those of the packaged file.

        A technique of an installed plugin that cannot be imported is not an error: it is in ``broken``, and the others
        work.

        Args:
            path: The file.
            resources: See `TechniqueRegistry`.
            keep_broken: Put entries with errors into ``broken`` instead of raising.

        Raises:
            InvalidConfigError: The file has errors; all of them, as ``file:line: …``.
        """
        path = Path(path)
        if not path.is_file():
            raise InvalidConfigError(f"{path}: no such file; `ragistry init` writes one")
        file, problems = read_yaml(path), Problems()
        if file.data.get("techniques") is None:
            packaged = packaged_file().data
            file = replace(file, data=packaged | {key: value for key, value in file.data.items() if value is not None})
        resources = {} if resources is None else resources
        checked = check_entries(file, read_entries(file, problems), problems, resources)
        check_default(file, problems)
        mistakes = _take_mistakes(problems) if keep_broken else {}
        problems.report()
        checked.broken |= {name: "; ".join(lines) for name, lines in mistakes.items()}
        checked.break_dependents()
        registry = cls(file, checked, resources)
        registry.mistakes = mistakes
        if line := checked.removed.get(str(file.data.get("default"))):
            log.warning("%s: default: %s; %s is used", path, line, registry.default)
        return registry

    @property
    def removed(self) -> str:
        """One line that names the entries whose technique was removed from the package; empty if there are none."""
        lines = "; ".join(self._checked.removed.values())
        return f"{self.file.path}: {lines}" if lines else ""

    @property
    def default(self) -> str:
        """The technique of a search that does not name one: the file's ``default``, else ``naive``, else its first."""
        named, names = self.file.data.get("default"), self.names()
        named = AUTO if named in self._checked.removed else named
        meant = self._meant(DEFAULT_TECHNIQUE if named is None else str(named))
        known = meant in names or meant in self.broken
        return meant if known or named not in (None, AUTO) else next(iter(names), meant)

    def _meant(self, name: str) -> str:
        """Resolve the name ``auto`` to the technique that can run here."""
        if name != AUTO or AUTO in self.names():
            return name
        with_words = WITH_WORDS in self.names() or WITH_WORDS in self.broken
        return WITH_WORDS if self.searches_words and with_words else DEFAULT_TECHNIQUE

    @property
    def is_packaged(self) -> bool:
        """Whether the file is the packaged one, which is nothing to edit, so that messages do not name it."""
        return self.file.path == packaged_file().path

    def names(self) -> list[str]:
        """List the usable techniques in the order of the file."""
        return list(self._checked.classes)

    def entry(self, name: str) -> Entry:
        """Return the configuration of a technique, with ``auto`` resolved. Raises `UnknownTechniqueError`."""
        self._known(name)
        entry = self._checked.entries[name]
        return entry if entry.base is None else replace(entry, base=self._meant(entry.base))

    def technique_class(self, name: str) -> type[Any]:
        """Return the class of a technique. Raises `UnknownTechniqueError`."""
        self._known(name)
        return self._checked.class_of(name)

    def missing_model(self, name: str) -> str:
        """Return the kind of model that the technique or a base needs and that is not configured.

        Returns:
            ``"generator"``, ``"reranker"``, or ``""`` if no model is missing.

        Raises:
            UnknownTechniqueError: No technique has this name.
        """
        entry, cls = self.entry(name), self.technique_class(name)
        wanted = wanted_resources(cls)
        if hasattr(cls, "wanted"):  # the nodes of a pipeline need models
            wanted |= {node.resource: True for node in cls.wanted(entry.config) if node.name is None}
        for kind in MODELS:
            if wanted.get(kind) and kind not in entry.models and kind not in self.resources:
                return kind
        return next(filter(None, map(self.missing_model, self.builds_on(name))), "")

    def unusable(self, name: str) -> str:
        """Return why a technique cannot run in this workspace; empty if neither its entry nor a model prevents it.

        Raises:
            UnknownTechniqueError: No technique has this name.
        """
        if name in self.broken:
            return self.broken[name]
        kind = self.missing_model(name)
        return kind and missing_model(f"technique {name!r}", kind, self.resources.get(f"{kind}s", {}))

    def builds_on(self, name: str) -> list[str]:
        """List the techniques that a technique builds on directly. Raises `UnknownTechniqueError`."""
        return bases_of(self.entry(name), self.technique_class(name))

    def get(self, name: str) -> RegisteredTechnique:
        """Return a technique; it is built on first use.

        Raises:
            UnknownTechniqueError: No technique has this name.
            ConfigError: Something that it needs is missing.
        """
        if self.one_place:
            name = self._searching(name)
        with self._lock:
            if name not in self._built:
                self._built[name] = self._build(self.entry(name))
            return self._built[name]

    def base(self, name: str) -> RegisteredTechnique:
        """Return a technique as the base of another one; see `RegisteredTechnique`. Raises the errors of `get`."""
        built = self.get(name)
        return RegisteredTechnique(built.name, built.technique, is_base=True, over=[built])

    def build(self, entry: Mapping[str, Any], *, name: str = "built") -> RegisteredTechnique:
        """Build a technique from an entry, as techniques.yaml could have it.

        ``use`` may also be a class. A base, and the ``technique`` of a step, is a name of techniques.yaml, another
        entry, or an object with ``retrieve``. ``generator`` and ``reranker`` are names of models.yaml, objects or
        functions.

        Args:
            entry: The entry.
            name: Name of the technique in the trace and in errors. It may be a name of techniques.yaml, whose technique
                does not change; inside the entry, that name still means the technique of the file.

        Raises:
            InvalidConfigError: The entry has errors; all of them.
            ConfigError: A base is not a technique, or something that the technique needs is missing.
        """
        own = name if name not in self._checked.entries else f"{name} (built)"
        made = self.extended({own: entry}).get(own)
        made.name, made.entry = name, entry
        return made

    def extended(self, entries: Mapping[str, Mapping[str, Any]], *, origin: str = "build") -> TechniqueRegistry:
        """Return a registry that also has these entries; they are checked as those of a file.

        Arguments and errors are those of `build`. ``origin``: the place of the entries in errors.
        """
        parts = Parts()
        for name, entry in entries.items():
            if name in self._checked.entries:
                raise ConfigError(f"{name!r} is the name of another technique; choose another name")
            parts.add(name, entry)
        names = frozenset(parts.bodies)
        file = VariedFile(self.file.path, {"techniques": parts.bodies}, self.file.tree, names, origin)
        ready = {name: Entry(name, type(made).__qualname__, {}) for name, made in parts.ready.items()}
        known, problems = {**self._checked.entries, **ready}, Problems()
        own = read_entries(file, problems)
        checked = check_entries(file, own, problems, self.resources, known=known, classes=parts.classes)
        problems.report()
        checked.entries = {**known, **own}
        checked.classes = {
            **self._checked.classes,
            **{name: type(parts.ready[name]) for name in ready},
            **checked.classes,
        }
        checked.broken |= self.broken
        checked.removed |= self._checked.removed
        bodies = {**self.file.data["techniques"], **parts.bodies}
        file = replace(file, data={**self.file.data, "techniques": bodies})
        parts.ready, parts.models = self.parts.ready | parts.ready, self.parts.models | parts.models
        registry = self._with(file, checked, self.resources, parts)
        registry._built |= self._built
        return registry

    def with_resources(self, resources: Mapping[str, Any]) -> TechniqueRegistry:
        """Return a registry of the same entries over other resources."""
        return self._with(self.file, self._checked, resources, self.parts)

    def _with(self, file: YamlFile, checked: Checked, resources: Mapping[str, Any], parts: Parts) -> TechniqueRegistry:
        made = TechniqueRegistry(file, checked, resources, parts)
        made.searches_words, made.one_place, made.language = self.searches_words, self.one_place, self.language
        return made

    def current(self) -> TechniqueRegistry:
        """Return this registry, or the last one of `with_recorded_embedder` while its embedder is the recorded one."""
        known = self._recorded
        return self if known is None or self.resources["store"].embedder() != known[0] else known[1]

    def with_recorded_embedder(self, tried: TechniqueRegistry) -> TechniqueRegistry | None:
        """Return a registry with the embedder of the vectors in the store, which reports that it was used.

        It is needed if the setting ``embed_model`` was changed, here or for another process, and for a search during
        which `reembed` replaces the vectors. None: ``tried`` has this embedder, or it is not known here.
        """
        store, own = self.resources["store"], self.resources["embedder"].fingerprint
        recorded = store.embedder() if "reembed" in store.abilities else None
        if recorded is None or not differences(recorded, tried.resources["embedder"].fingerprint):
            return None
        if not differences(recorded, own):
            return self
        if (embedder := self.embedder_of(recorded)) is None:
            return None
        note = (
            f"the vectors are those of {recorded.model!r}, with which this search was made; run `ragistry "
            f"reembed` for {own.model!r}, unless embed_model was changed after this program started: then "
            "start it again"
        )
        own = {"embedder": _RecordedEmbedder(embedder, note)}
        registry = self.with_resources(ChainMap(own, self.resources))  # type: ignore[arg-type] # it is only read
        self._recorded = recorded, registry
        return registry

    def chosen(self, technique: str | Technique | Mapping[str, Any] | None) -> RegisteredTechnique:
        """Return the technique of a search.

        Args:
            technique: A name, an object with ``retrieve``, or an entry as in `build`; None for the default.

        Raises:
            UnknownTechniqueError: No technique has this name.
            ConfigError: It is not a technique, or something that it needs is missing.
        """
        if technique is None or isinstance(technique, str):
            return self.get(technique or self.default)
        if isinstance(technique, RegisteredTechnique):
            return technique
        if isinstance(technique, Mapping):
            return self.build(technique)
        if isinstance(technique, type) or retrieve_complaints(technique):
            raise not_a_technique("technique", technique)
        return RegisteredTechnique(type(technique).__name__, technique)

    def _searching(self, name: str) -> str:
        """Return the name itself, or for a technique that only chooses collections its first base that searches."""
        passed: set[str] = set()
        while "targets" in wanted_resources(self.technique_class(name)) and name not in passed:
            passed.add(name)
            name = self.entry(name).base or DEFAULT_TECHNIQUE
        return name

    def check_agreement(self, embed_model: str, chunk_size: int) -> None:
        """Compare ``embedding_model`` and ``chunk_size`` of the entries with the settings of the store.

        Raises:
            InvalidConfigError: They differ; the error lists every entry.
        """
        problems = Problems()
        for name in self.names():
            entry = self.entry(name)
            model, size = entry.config.get("embedding_model"), entry.config.get("chunk_size")
            if isinstance(model, str) and embed_model != "tei" and model_name(model) != model_name(embed_model):
                problems.add(
                    self.file, [*entry.keys, "embedding_model"],
                    f"techniques.{name}.embedding_model: {model!r}, but the store is made with {embed_model!r}; "
                    f"set embed_model: {model} in documents.yaml and run `ragistry reembed`, or remove this key",
                )  # fmt: skip
            if isinstance(size, int) and size != chunk_size:
                problems.add(
                    self.file, [*entry.keys, "chunk_size"],
                    f"techniques.{name}.chunk_size: {size}, but the store is made with chunks of {chunk_size}; "
                    f"set chunk_size: {size} in documents.yaml and ingest again, or remove this key",
                )  # fmt: skip
        problems.report()

    def _known(self, name: str) -> None:
        if name in self._checked.removed:
            raise UnknownTechniqueError(self._checked.removed[name])
        if name in self.broken:
            raise (InvalidConfigError if self.mistakes else ConfigError)(self.broken[name])
        if name not in self._checked.classes:
            there = f"there are {', '.join(self.names()) or 'none'}"
            raise UnknownTechniqueError(unknown_technique(name, self.names(), there))

    def _build(self, entry: Entry) -> RegisteredTechnique:
        cls = self._checked.class_of(entry.name)
        wanted = wanted_resources(cls)
        chooses = "targets" in wanted  # its base searches the collections, also for phrases
        own: dict[str, Any] = {"name": entry.name, "registry": self}
        if entry.base is not None:
            own["base"] = self.get(entry.base) if chooses else self.base(entry.base)
        if entry.bases:
            own["bases"] = [self.base(base) for base in entry.bases]
        if takes_everything(cls):
            wanted = {name: False for name in RESOURCES if name != "name"} | wanted
        references = [self.get(name) for name in cls.references(entry.config)] if hasattr(cls, "references") else []
        user = f"technique {entry.name!r}"
        models = self.parts.models.get(entry.name, {})
        try:
            if unused := models.keys() - wanted:
                raise ConfigError(f"{cls.__name__} does not take a parameter {min(unused)!r}; remove this key")
            own |= models
            given = resources_for(user, wanted, own, self.resources, entry.models)
            with modules_of(self._folder):
                config = configuration_of(cls, entry.config)
                try:
                    made = cls(config, **given)
                except Exception as error:
                    model = type(config).__name__
                    is_mistaken = isinstance(config, BaseModel) and model in str(error)
                    name_error(error, entry.name, f"; config is a {model}, so read config.NAME" if is_mistaken else "")
                    raise
        except (ConfigError, PipelineError) as error:
            if str(self.file.path) in str(error):
                raise
            said = str(error) if str(error).startswith(user) else f"{user}: {error}"
            kind = PipelineError if isinstance(error, PipelineError) else ConfigError
            raise kind(said if self.is_packaged else f"{self.file.place(entry.keys)}: {said}") from error
        phrases = PhraseSearch(self.resources, self.language, chooses_targets=chooses)
        return RegisteredTechnique(
            entry.name, made, sets_top_k="top_k" in entry.config, phrases=phrases, entry=entry.name,
            over=[*own.get("bases", ()), *([own["base"]] if "base" in own else ()), *references],
        )  # fmt: skip


def _take_mistakes(problems: Problems) -> dict[str, list[str]]:
    """Remove the errors inside entries from the problems, and return them by the name of the entry."""
    mistakes: dict[str, list[str]] = {}
    for line in problems.lines:
        keys = problems.keys.get(line, ())
        if keys[:1] == ("techniques",) and len(keys) > 1:
            mistakes.setdefault(str(keys[1]), []).append(line)
    problems.lines = [line for line in problems.lines if not any(line in lines for lines in mistakes.values())]
    return mistakes
