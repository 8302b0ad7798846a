"""The collections of documents.yaml: read, and edited in place with all that its owner wrote kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError

from ragistry.config import yaml_edits
from ragistry.config.files import NAME_RULE, CollectionEntry
from ragistry.config.problems import Problems, explain
from ragistry.config.settings import CONFIG_FOLDER, DEFAULTS
from ragistry.config.yaml_file import read_yaml
from ragistry.errors import (
    CollectionAlreadyExistsError,
    CollectionNotFoundError,
    ConfigError,
    InvalidCollectionNameError,
    RagistryError,
)
from ragistry.utils.suggest import did_you_mean

Version = tuple[int, int, int]
LOCK_TIMEOUT = 10.0
"""Seconds that an edit waits for that of another process."""


class CollectionsFile:
    """``config/documents.yaml`` of a workspace, which decides what collections there are.

    Safe for threads and processes. An edit raises `ConfigError` where the file cannot be written, and changes nothing.
    """

    def __init__(self, root: Path) -> None:
        self.path = root / CONFIG_FOLDER / "documents.yaml"
        self._read: tuple[Version | None, list[CollectionEntry]] = (None, [])

    def version(self) -> Version | None:
        """What is another after every change of the file; None where there is no file."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def entries(self) -> list[CollectionEntry]:
        """The collections in the file's order; none where there is no file. Read again only after a change."""
        version, known = self.version(), self._read
        if known[0] != version:
            self._read = known = (version, self._parse() if version else [])
        return known[1]

    def entry(self, name: str) -> CollectionEntry:
        """A collection by its name. Raises `CollectionNotFoundError`."""
        return self.entries()[self._index(name)]

    def add(self, name: str, description: str = "", display_name: str | None = None) -> CollectionEntry:
        """Write one more collection, in a file that is made where there is none.

        Raises `CollectionAlreadyExistsError`, `InvalidCollectionNameError`.
        """
        entry = _entry(name=name, description=description, display_name=display_name)
        fields = entry.model_dump(exclude_none=True, exclude_defaults=True)

        def change(text: str) -> str:
            self._check_free(name)
            return yaml_edits.with_entry(text, fields)

        self._edit(change)
        return entry

    def update(self, name: str, *, description: str | None = None, display_name: str | None = None) -> CollectionEntry:
        """Write another description or display name. Raises `CollectionNotFoundError`."""
        wanted = {"description": description, "display_name": display_name}
        fields = {key: value for key, value in wanted.items() if value is not None}
        changed = _entry(**(self.entry(name).model_dump() | fields))
        self._edit(lambda text: yaml_edits.with_fields(text, self._index(name), fields))
        return changed

    def begin_rename(self, name: str, new_name: str) -> None:
        """Write the new name, and the old one as ``formerly``, until `end_rename`: its chunks belong to it by both.

        Raises `CollectionNotFoundError`, `CollectionAlreadyExistsError`, `InvalidCollectionNameError`.
        """
        _entry(name=new_name)

        def change(text: str) -> str:
            index = self._index(name)
            self._check_free(new_name)
            return yaml_edits.with_fields(text, index, {"name": new_name, "formerly": name})

        self._edit(change)

    def end_rename(self, name: str) -> None:
        """Take ``formerly`` out: no chunk has the old name any more."""
        self._edit(lambda text: yaml_edits.with_fields(text, self._index(name), {"formerly": None}))

    def remove(self, name: str, before: Callable[[], object]) -> None:
        """Take a collection out, after ``before`` was called, when nothing but the write itself is left to fail."""
        self._edit(lambda text: yaml_edits.without_entry(text, self._index(name)), before)

    def _parse(self) -> list[CollectionEntry]:
        file, problems = read_yaml(self.path), Problems()
        entries: dict[str, CollectionEntry] = {}
        for index, item in enumerate(file.data.get("collections") or []):
            try:
                entry = CollectionEntry.model_validate(item)
            except ValidationError as error:
                problems.add_validation(file, ["collections", index], CollectionEntry, error)
                continue
            if entry.name in entries:
                problems.add(file, ["collections", index], f"collection {entry.name!r} stands here twice; rename one")
            entries[entry.name] = entry
        problems.report()
        return list(entries.values())

    def _index(self, name: str) -> int:
        known = [entry.name for entry in self.entries()]
        if name not in known:
            raise CollectionNotFoundError(
                f"no collection {name!r}{did_you_mean(str(name), known)}; there are {', '.join(known) or 'none'} in "
                f"{self.path}; create it there, or with `ragistry ingest … --create DESCRIPTION`"
            )
        return known.index(name)

    def _check_free(self, name: str) -> None:
        for entry in self.entries():
            if name == entry.name:
                raise CollectionAlreadyExistsError(f"collection {name!r} exists; choose another name")
            if name == entry.formerly:
                raise CollectionAlreadyExistsError(
                    f"collection {entry.name!r} is being renamed from {name!r}; choose another name, or wait"
                )

    def _edit(self, change: Callable[[str], str], before: Callable[[], object] = lambda: None) -> None:
        """Put what ``change`` makes of the text in its place, alone among those who edit it with this program.

        Whoever saves the file from an editor meanwhile is not overwritten: the change is made to what they wrote.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=LOCK_TIMEOUT):
                done = False
                while not done:
                    version, _ = self.version(), self.entries()  # whose reader tells what is wrong with the file
                    text = change(self._text())
                    before()
                    done = version == self.version()
                replace_text(self.path, text)
        except RagistryError:
            raise  # some are also OSError
        except Timeout as error:
            raise ConfigError(f"{str(self.path)!r} is being edited by another process; try again") from error
        except OSError as error:
            raise ConfigError(f"cannot write {str(self.path)!r}: {error.strerror}; make it writable") from error

    def _text(self) -> str:
        path = self.path if self.path.exists() else DEFAULTS / self.path.name
        return path.read_bytes().decode("utf-8")  # line ends stay as they are


def _entry(**fields: str | None) -> CollectionEntry:
    try:
        return CollectionEntry.model_validate(fields)
    except ValidationError as error:
        if any("name" in item["loc"] for item in error.errors()):
            name = fields["name"]
            raise InvalidCollectionNameError(f"{name!r} cannot name a collection; use {NAME_RULE}") from error
        raise ConfigError(f"collection {fields['name']!r}: {explain(error.errors()[0], CollectionEntry)}") from error


def replace_text(path: Path, text: str) -> None:
    """Write a file so that a reader, and a crash, find the old text or the new one, whole."""
    path = Path(os.path.realpath(path))
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    with suppress(OSError):  # where a folder cannot be opened, the system decides when its entries are safe
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
