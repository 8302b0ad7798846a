"""Everything that can be known of techniques.yaml before a technique is built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from ragistry.config.problems import Problems
from ragistry.config.yaml_file import YamlFile
from ragistry.errors import ConfigError
from ragistry.techniques.catalogue import find_class, modules_beside
from ragistry.techniques.entry import AUTO, DEFAULT_TECHNIQUE, WITH_WORDS, Entry
from ragistry.techniques.shape import complaints, takes_everything, wanted_resources
from ragistry.utils.plugins import BrokenPluginError
from ragistry.utils.suggest import did_you_mean


@dataclass(slots=True)
class Checked:
    """The entries, the class of each that works, and the reason for each whose plugin does not."""

    entries: dict[str, Entry]
    classes: dict[str, type[Any]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)


def check_entries(file: YamlFile, entries: dict[str, Entry], problems: Problems) -> Checked:
    """Find the class of every entry and check its configuration and what it stands on."""
    checked = Checked(entries)
    with modules_beside(file.path):
        for entry in entries.values():
            _find(file, entry, checked, problems)
        for name in list(checked.classes):
            _check_config(file, entries[name], checked.classes[name], problems)
            _check_base(file, entries[name], checked.classes[name], problems)
    links = {name: _references(entries[name], checked.classes.get(name), entries) for name in entries}
    for name, used in links.items():
        _check_references(file, entries[name], used, entries, problems)
    for cycle in _cycles(links):
        problems.add(file, ["techniques", cycle[0]], f"techniques stand on each other: {' -> '.join(cycle)}")
    _spread_breakage(checked, links)
    return checked


def _find(file: YamlFile, entry: Entry, checked: Checked, problems: Problems) -> None:
    try:
        cls = find_class(entry.use)
    except BrokenPluginError as error:
        checked.broken[entry.name] = str(error)
        return
    except ConfigError as error:
        if "use" in (file.data["techniques"][entry.name] or {}):
            problems.add(file, [*entry.keys, "use"], f"techniques.{entry.name}.use: {error}")
        else:  # its own name stands for it
            meant = next((f", or write 'use' for {key!r}" for key in entry.config if did_you_mean(key, ["use"])), "")
            problems.add(file, entry.keys, f"techniques.{entry.name}: says no `use`: {error}{meant}")
        return
    wrong = complaints(cls)
    for complaint in wrong:
        problems.add(file, [*entry.keys, "use"], f"techniques.{entry.name}.use: {complaint}")
    if not wrong:
        checked.classes[entry.name] = cls


def _check_config(file: YamlFile, entry: Entry, cls: type[Any], problems: Problems) -> None:
    model = getattr(cls, "Config", None)
    if isinstance(model, type) and issubclass(model, BaseModel):
        try:
            model.model_validate(entry.config)
        except ValidationError as error:
            problems.add_validation(file, entry.keys, model, error)
            return
    disagreements = getattr(cls, "disagreements", None)
    if callable(disagreements) and entry.bases:
        for key, said in disagreements(entry.config, entry.bases).items():
            problems.add(file, [*entry.keys, key], f"techniques.{entry.name}.{key}: {said}")


def _check_base(file: YamlFile, entry: Entry, cls: type[Any], problems: Problems) -> None:
    wanted = wanted_resources(cls)
    for key, given in (("base", entry.base is not None), ("bases", bool(entry.bases))):
        if given and key not in wanted and not takes_everything(cls):
            problems.add(file, [*entry.keys, key], f"techniques.{entry.name}.{key}: {cls.__name__} takes no {key}")
        if not given and wanted.get(key):
            example = "base: naive" if key == "base" else "bases: [naive, mmr]"
            problems.add(file, entry.keys, f"techniques.{entry.name}: {cls.__name__} needs {key}; write `{example}`")


def _references(entry: Entry, cls: type[Any] | None, entries: dict[str, Entry]) -> list[str]:
    """The techniques that an entry stands on; a class that names more in its own configuration says which."""
    named = [entry.base] if entry.base is not None else []
    if named == [AUTO] and AUTO not in entries:  # for one of two, whichever can run
        named = [one for one in (WITH_WORDS, DEFAULT_TECHNIQUE) if one in entries] or named
    more = getattr(cls, "references", None)
    return [*named, *entry.bases, *(more(entry.config) if callable(more) else [])]


def _check_references(
    file: YamlFile, entry: Entry, used: list[str], entries: dict[str, Entry], problems: Problems
) -> None:
    for name in used:
        if name not in entries:
            key = "base" if name == entry.base else "bases" if name in entry.bases else ""
            problems.add(
                file, [*entry.keys, key] if key else entry.keys,
                f"techniques.{entry.name}{'.' + key if key else ''}: no technique {name!r}"
                f"{did_you_mean(name, entries)}; there are {', '.join(entries)}",
            )  # fmt: skip


def _cycles(links: dict[str, list[str]]) -> list[list[str]]:
    """Each cycle once, written from the name that stands first in the file."""
    found: list[list[str]] = []
    done: set[str] = set()

    def follow(name: str, path: list[str]) -> None:
        if name in path:
            cycle = path[path.index(name) :]
            if not any(set(cycle) == set(known) for known in found):
                found.append([*cycle, name])
            return
        if name in done or name not in links:
            return
        for other in links[name]:
            follow(other, [*path, name])
        done.add(name)

    for name in links:
        follow(name, [])
    return found


def _spread_breakage(checked: Checked, links: dict[str, list[str]]) -> None:
    """What stands on a broken technique is broken too."""
    changed = bool(checked.broken)
    while changed:
        changed = False
        for name in list(checked.classes):
            reason = next((checked.broken[used] for used in links[name] if used in checked.broken), None)
            if reason is not None:
                del checked.classes[name]
                checked.broken[name] = reason
                changed = True
