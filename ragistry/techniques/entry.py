"""One entry of techniques.yaml, taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ragistry.config.problems import Problems
from ragistry.config.yaml_file import YamlFile

RESERVED = ("use", "base", "bases")
DEFAULT_TECHNIQUE = "naive"
WITH_WORDS = "hybrid"
AUTO = "auto"
"""As ``default`` of a file or ``base`` of an entry, where nothing else is called that: `WITH_WORDS` where the store
searches words, else `DEFAULT_TECHNIQUE`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A configured technique: what it is made of, what it stands on, and the rest as its own configuration."""

    name: str
    use: str
    config: dict[str, Any]
    base: str | None = None
    bases: tuple[str, ...] = ()

    @property
    def keys(self) -> list[str | int]:
        """Where the entry stands in its file."""
        return ["techniques", self.name]


def read_entries(file: YamlFile, problems: Problems) -> dict[str, Entry]:
    """The well-formed entries of the file; what is wrong with the others goes to ``problems``."""
    for key in file.data.keys() - {"techniques", "default"}:
        problems.add(file, [key], f"unknown setting {key!r}; there are default, techniques")
    section = file.data.get("techniques")
    if section is None:
        section = {}
    if not isinstance(section, dict):
        problems.add(file, ["techniques"], f"techniques: must be a mapping of names, got {section!r}")
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
    use, base, bases = body.get("use", name), body.get("base"), body.get("bases", [])
    wrong = [
        (key, wanted, value)
        for key, wanted, value, right in (
            ("use", "the name of a technique or 'module:Class'", use, isinstance(use, str)),
            ("base", "the name of a technique", base, base is None or isinstance(base, str)),
            ("bases", "a list of names of techniques", bases, _are_names(bases)),
        )
        if not right
    ]
    for key, wanted, value in wrong:
        problems.add(file, [*keys, key], f"techniques.{name}.{key}: must be {wanted}, got {value!r}")
    if wrong:
        return None
    config = {str(key): value for key, value in body.items() if key not in RESERVED}
    return Entry(name, use, config, base, tuple(bases))


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
