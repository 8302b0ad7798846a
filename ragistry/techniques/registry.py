"""techniques.yaml as techniques: every entry checked when the file is loaded, built when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any

from ragistry.config.problems import Problems
from ragistry.config.yaml_file import YamlFile, read_yaml
from ragistry.errors import ConfigError, InvalidConfigError, PipelineError, UnknownTechniqueError
from ragistry.techniques.catalogue import modules_beside
from ragistry.techniques.check import Checked, check_entries
from ragistry.techniques.entry import AUTO, DEFAULT_TECHNIQUE, WITH_WORDS, Entry, read_entries
from ragistry.techniques.registered import RegisteredTechnique, told_of
from ragistry.techniques.shape import RESOURCES, SETTING, takes_everything, wanted_resources
from ragistry.utils.suggest import did_you_mean


class TechniqueRegistry:
    """Techniques by name.

    ``resources`` gives what constructors ask for by parameter name (``store``, ``embedder``, …). It may be any
    mapping; an item is looked up when the first technique that wants it is built. ``searches_words``: whether its
    store does, which ``auto`` goes by. ``one_place``: there is nothing to choose from, as over the store of a
    repository; a technique that chooses where to search then stands for what it stands on, wherever it is named.
    """

    def __init__(self, file: YamlFile, checked: Checked, resources: Mapping[str, Any]) -> None:
        self.file = file
        self.broken = checked.broken
        self.searches_words = True
        self.one_place = False
        self._checked = checked
        self._resources = resources
        self._built: dict[str, RegisteredTechnique] = {}
        self._lock = RLock()

    @classmethod
    def load(cls, path: str | Path, resources: Mapping[str, Any] | None = None) -> TechniqueRegistry:
        """Read and check a techniques.yaml.

        Raises `InvalidConfigError` with every problem as ``file:line: …``. A technique of an installed plugin that
        cannot be imported is no such problem: it is listed in ``broken``, and the others work.
        """
        path = Path(path)
        if not path.is_file():
            raise InvalidConfigError(f"{path}: there is no such file; `ragistry init` writes one")
        file, problems = read_yaml(path), Problems()
        checked = check_entries(file, read_entries(file, problems), problems)
        default, written = file.data.get("default"), file.data.get("techniques")
        known = list(written) if isinstance(written, dict) else []
        if default not in (None, AUTO, *known):
            problems.add(
                file,
                ["default"],
                f"default: no technique {default!r}{did_you_mean(default, map(str, known))}; there are "
                f"{', '.join(map(str, known)) or 'none'}",
            )
        problems.report()
        return cls(file, checked, {} if resources is None else resources)

    @property
    def default(self) -> str:
        """The technique of a search that names none: the file's ``default``, else ``naive``, else its first."""
        named, names = self.file.data.get("default"), self.names()
        meant = self._meant(DEFAULT_TECHNIQUE if named is None else str(named))
        return meant if meant in names or named not in (None, AUTO) else next(iter(names), meant)

    def _meant(self, name: str) -> str:
        """The technique that a name stands for: ``auto`` is what can run here."""
        if name != AUTO or AUTO in self.names():
            return name
        return WITH_WORDS if self.searches_words and WITH_WORDS in self.names() else DEFAULT_TECHNIQUE

    def names(self) -> list[str]:
        """Every technique that works, in the order of the file."""
        return list(self._checked.classes)

    def entry(self, name: str) -> Entry:
        """How the technique is configured, ``auto`` as what it means here. Raises `UnknownTechniqueError`."""
        self._known(name)
        entry = self._checked.entries[name]
        return entry if entry.base is None else replace(entry, base=self._meant(entry.base))

    def technique_class(self, name: str) -> type[Any]:
        """The class that the technique is made of. Raises `UnknownTechniqueError`."""
        self._known(name)
        return self._checked.classes[name]

    def get(self, name: str) -> RegisteredTechnique:
        """The technique, built on first use and kept.

        Raises `UnknownTechniqueError`, and `ConfigError` where something that it needs is not here.
        """
        self._known(name)
        if self.one_place:
            name = self._searching(name)
        with self._lock:
            if name not in self._built:
                self._built[name] = RegisteredTechnique(name, self._build(self.entry(name)))
            return self._built[name]

    def _searching(self, name: str) -> str:
        """The technique itself or, of one that only chooses where to search, the first below it that does search."""
        passed: set[str] = set()
        while "targets" in wanted_resources(self.technique_class(name)) and name not in passed:
            passed.add(name)
            name = self.entry(name).base or DEFAULT_TECHNIQUE
        return name

    def _known(self, name: str) -> None:
        if name in self.broken:
            raise ConfigError(self.broken[name])
        if name not in self._checked.classes:
            raise UnknownTechniqueError(
                f"no technique {name!r}{did_you_mean(str(name), self.names())}; there are "
                f"{', '.join(self.names()) or 'none'} in {self.file.path}"
            )

    def _build(self, entry: Entry) -> Any:
        cls = self._checked.classes[entry.name]
        given: dict[str, Any] = {}
        wanted = wanted_resources(cls)
        if takes_everything(cls):
            wanted = {name: False for name in RESOURCES if name != "name"} | wanted
        for name, required in wanted.items():
            if name == "name":
                given[name] = entry.name
            elif name == "registry":
                given[name] = self
            elif name == "base" and entry.base is not None:
                given[name] = self.get(entry.base)
            elif name == "bases" and entry.bases:
                given[name] = [self.get(base) for base in entry.bases]
            elif name in self._resources:
                given[name] = self._resources[name]
            elif required:
                raise ConfigError(
                    f"{self.file.place(entry.keys)}: technique {entry.name!r} needs a {name}, and none is configured "
                    f"here; {SETTING.get(name, 'configure one in the workspace')}, or pass resources={{{name!r}: …}}"
                )
        try:
            with told_of(entry.name), modules_beside(self.file.path):
                return cls(dict(entry.config), **given)
        except (ConfigError, PipelineError) as error:
            if str(self.file.path) in str(error):
                raise
            kind = PipelineError if isinstance(error, PipelineError) else ConfigError
            raise kind(f"{self.file.place(entry.keys)}: technique {entry.name!r}: {error}") from error
