"""The techniques of techniques.yaml: checked when the file is loaded, each built on first use."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import isfinite
from pathlib import Path
from threading import RLock
from traceback import walk_tb
from typing import Any

from ragistry.config.problems import Problems
from ragistry.config.settings import DEFAULTS
from ragistry.config.yaml_file import YamlFile, read_yaml
from ragistry.errors import (
    ConfigError,
    InvalidConfigError,
    PipelineError,
    RagistryError,
    TechniqueError,
    UnknownTechniqueError,
)
from ragistry.protocols import Technique
from ragistry.techniques.checks import (
    AUTO,
    DEFAULT_TECHNIQUE,
    WITH_WORDS,
    Checked,
    Entry,
    check_entries,
    read_entries,
)
from ragistry.techniques.classes import (
    MODELS,
    RESOURCES,
    modules_beside,
    resources_for,
    takes_everything,
    wanted_resources,
)
from ragistry.trace import stage
from ragistry.types import Document, Where
from ragistry.utils.limits import check_query, check_top_k
from ragistry.utils.where import matches, normalise
from ragistry.utils.wording import did_you_mean


class TechniqueRegistry:
    """Techniques by name.

    ``resources`` holds what constructors ask for by parameter name (``store``, ``embedder``, …). It may be any
    mapping; an item is read when the first technique that needs it is built. Its ``generators`` and ``rerankers`` are
    mappings by name, from which ``generator: NAME`` in an entry selects. ``searches_words``: whether the store has word
    search, which decides what ``auto`` means. ``one_place``: there is only one place to search, such as the store of a
    repository; a technique that chooses collections is then replaced by its base. ``broken``: why the other techniques
    of the file do not work; ``mistakes``: the errors in their entries, line by line.
    """

    def __init__(self, file: YamlFile, checked: Checked, resources: Mapping[str, Any]) -> None:
        self.file = file
        self.broken = checked.broken
        self.mistakes: dict[str, list[str]] = {}
        self.searches_words = True
        self.one_place = False
        self.resources = resources
        self._checked = checked
        self._built: dict[str, RegisteredTechnique] = {}
        self._lock = RLock()

    @classmethod
    def load(
        cls, path: str | Path, resources: Mapping[str, Any] | None = None, *, keep_broken: bool = False
    ) -> TechniqueRegistry:
        """Read and check a techniques.yaml; one without ``techniques`` has those of the packaged file.

        Raises `InvalidConfigError` with every problem as ``file:line: …``. A technique of an installed plugin that
        cannot be imported is not an error: ``broken`` lists it, and the others work. With ``keep_broken`` an entry with
        errors is not an error either.
        """
        path = Path(path)
        if not path.is_file():
            raise InvalidConfigError(f"{path}: there is no such file; `ragistry init` writes one")
        file, problems = read_yaml(path), Problems()
        if file.data.get("techniques") is None:
            packaged = read_yaml(DEFAULTS / "techniques.yaml").data
            file = replace(file, data=packaged | {key: value for key, value in file.data.items() if value is not None})
        resources = {} if resources is None else resources
        checked = check_entries(file, read_entries(file, problems), problems, resources)
        default, written = file.data.get("default"), file.data["techniques"]
        known = list(map(str, written)) if isinstance(written, dict) else []
        if default not in (None, AUTO) and str(default) not in known:
            there = f"there are {', '.join([*known, AUTO])}"
            said = f"default: no technique {default!r}{did_you_mean(default, [*known, AUTO])}; {there}"
            problems.add(file, ["default"], said)
        mistakes: dict[str, list[str]] = {}
        for line in problems.lines if keep_broken else ():
            if (keys := problems.keys.get(line, ()))[:1] == ("techniques",) and len(keys) > 1:
                mistakes.setdefault(str(keys[1]), []).append(line)
        problems.lines = [line for line in problems.lines if not any(line in lines for lines in mistakes.values())]
        problems.report()
        checked.broken |= {name: "; ".join(lines) for name, lines in mistakes.items()}
        checked.break_dependents()
        registry = cls(file, checked, resources)
        registry.mistakes = mistakes
        return registry

    @property
    def default(self) -> str:
        """The technique of a search that names none: the file's ``default``, else ``naive``, else its first."""
        named, names = self.file.data.get("default"), self.names()
        meant = self._meant(DEFAULT_TECHNIQUE if named is None else str(named))
        known = meant in names or meant in self.broken
        return meant if known or named not in (None, AUTO) else next(iter(names), meant)

    def _meant(self, name: str) -> str:
        """Resolve the name ``auto`` to the technique that can run here."""
        if name != AUTO or AUTO in self.names():
            return name
        with_words = WITH_WORDS in self.names() or WITH_WORDS in self.broken
        return WITH_WORDS if self.searches_words and with_words else DEFAULT_TECHNIQUE

    def names(self) -> list[str]:
        """Every usable technique, in the order of the file."""
        return list(self._checked.classes)

    def entry(self, name: str) -> Entry:
        """The configuration of a technique, with ``auto`` resolved. Raises `UnknownTechniqueError`."""
        self._known(name)
        entry = self._checked.entries[name]
        return entry if entry.base is None else replace(entry, base=self._meant(entry.base))

    def technique_class(self, name: str) -> type[Any]:
        """The class of the technique. Raises `UnknownTechniqueError`."""
        self._known(name)
        return self._checked.classes[name]

    def missing_model(self, name: str) -> str:
        """``"generator"`` or ``"reranker"`` if the technique or a base needs one that is missing; else ``""``.

        Raises `UnknownTechniqueError`.
        """
        entry, wanted = self.entry(name), wanted_resources(self.technique_class(name))
        below = [*entry.bases, *filter(None, [entry.base])]
        if hasattr(
            cls := self.technique_class(name), "wanted"
        ):  # a pipeline: its nodes need models, and its steps name techniques
            wanted |= {node.resource: True for node in cls.wanted(entry.config) if node.name is None}
            below += cls.references(entry.config)
        for kind in MODELS:
            if wanted.get(kind) and kind not in entry.models and kind not in self.resources:
                return kind
        return next(filter(None, map(self.missing_model, below)), "")

    def get(self, name: str) -> RegisteredTechnique:
        """The technique, built on first use and kept.

        Raises `UnknownTechniqueError`, and `ConfigError` if something that it needs is missing.
        """
        self._known(name)
        if self.one_place:
            name = self._searching(name)
        with self._lock:
            if name not in self._built:
                self._built[name] = RegisteredTechnique(name, self._build(self.entry(name)))
            return self._built[name]

    def _searching(self, name: str) -> str:
        """The technique itself; for one that only chooses collections, its first base that searches."""
        passed: set[str] = set()
        while "targets" in wanted_resources(self.technique_class(name)) and name not in passed:
            passed.add(name)
            name = self.entry(name).base or DEFAULT_TECHNIQUE
        return name

    def _known(self, name: str) -> None:
        if name in self.broken:
            raise (InvalidConfigError if self.mistakes else ConfigError)(self.broken[name])
        if name not in self._checked.classes:
            raise UnknownTechniqueError(
                f"no technique {name!r}{did_you_mean(str(name), self.names())}; there are "
                f"{', '.join(self.names()) or 'none'} in {self.file.path}"
            )

    def _build(self, entry: Entry) -> Any:
        cls, place = self._checked.classes[entry.name], self.file.place(entry.keys)
        own: dict[str, Any] = {"name": entry.name, "registry": self}
        if entry.base is not None:
            own["base"] = self.get(entry.base)
        if entry.bases:
            own["bases"] = [self.get(base) for base in entry.bases]
        wanted = wanted_resources(cls)
        if takes_everything(cls):
            wanted = {name: False for name in RESOURCES if name != "name"} | wanted
        user = f"technique {entry.name!r}"
        try:
            given = resources_for(user, wanted, own, self.resources, entry.models)
            with named_errors(entry.name), modules_beside(self.file.path):
                return cls(dict(entry.config), **given)
        except (ConfigError, PipelineError) as error:
            if str(self.file.path) in str(error):
                raise
            said = str(error) if str(error).startswith(user) else f"{user}: {error}"
            kind = PipelineError if isinstance(error, PipelineError) else ConfigError
            raise kind(f"{place}: {said}") from error


@contextmanager
def named_errors(technique: str) -> Iterator[None]:
    """Add a note to exceptions of a technique's code: the name of the technique and the line in the user's file."""
    try:
        yield
    except Exception as error:
        line = _own_line(error)
        if line or not isinstance(error, RagistryError):  # if only our code ran, its message is enough
            error.add_note(f"technique {technique!r} failed{line}")
        raise


INSTALLED = tuple(
    f"{folder}{os.sep}"
    for folder in (
        Path(__file__).parents[1],
        *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),
    )
)
"""Folders of this package, of Python and of installed packages."""


def _own_line(error: Exception) -> str:
    """The innermost line in a file that is neither part of this package nor installed; empty without one."""
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = [f" at {file}:{line}" for file, line in frames if not file.startswith((*INSTALLED, "<"))]
    return own[-1] if own else ""


class RegisteredTechnique:
    """A named technique that checks its input and its results, and records the stage.

    ``where`` also limits access, so a document that does not meet it is an error, never a result. At most ``top_k``
    documents are returned, because the caller may have no room for more.
    """

    __slots__ = ("name", "technique")

    def __init__(self, name: str, technique: Technique) -> None:
        self.name = name
        self.technique = technique

    def __getattr__(self, name: str) -> Any:
        """All other attributes are those of the technique."""
        return getattr(object.__getattribute__(self, "technique"), name)

    def __repr__(self) -> str:
        return f"<technique {self.name!r}: {type(self.technique).__name__}>"

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        check_query(query)
        if top_k is not None:
            check_top_k(top_k)
        condition = None if where is None else normalise(where)
        with stage(self.name) as this, named_errors(self.name):
            documents = self.technique.retrieve(query, top_k=top_k, where=condition)
            self._check(documents, condition)
            documents = documents[:top_k]
            this.documents_out = len(documents)
        return documents

    def _check(self, documents: Any, condition: Where | None) -> None:
        if not isinstance(documents, list) or not all(isinstance(item, Document) for item in documents):
            raise TechniqueError(
                f"technique {self.name!r} returned {type(documents).__name__} {str(documents)[:80]!r}; "
                "retrieve must return a list of Document"
            )
        for document in documents:
            if not _is_finite(document.score):
                raise TechniqueError(
                    f"technique {self.name!r} gave document {document.id!r} the score {document.score!r}; "
                    "a score must be a finite number, by which documents are ordered"
                )
            if condition is not None and not matches(condition, document.metadata):
                raise TechniqueError(
                    f"technique {self.name!r} ignored where={condition!r}: it returned {document.id!r}; "
                    "pass `where` on to the store or base"
                )


def _is_finite(score: Any) -> bool:
    try:
        return isfinite(score)
    except (TypeError, ValueError, OverflowError):
        return False
