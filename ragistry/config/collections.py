"""The collections of documents.yaml: read, and edited in place with comments kept."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError

from ragistry.config.files import NAME_RULE, CollectionEntry
from ragistry.config.problems import Problems
from ragistry.config.settings import CONFIG_FOLDER, DEFAULTS
from ragistry.config.yaml_file import read_yaml
from ragistry.errors import CollectionAlreadyExistsError, ConfigError, InvalidCollectionNameError


class CollectionsFile:
    """``config/documents.yaml`` of a workspace, which decides what collections there are."""

    def __init__(self, root: Path) -> None:
        self.path = root / CONFIG_FOLDER / "documents.yaml"
        self._read: tuple[tuple[int, int, int], list[CollectionEntry]] | None = None

    def entries(self) -> list[CollectionEntry]:
        """The collections in the file's order; none where there is no file. Read again only after a change."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return []
        version = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._read is None or self._read[0] != version:
            self._read = (version, self._parse())
        return self._read[1]

    def _parse(self) -> list[CollectionEntry]:
        file, problems, entries = read_yaml(self.path), Problems(), []
        for index, item in enumerate(file.data.get("collections") or []):
            try:
                entries.append(CollectionEntry.model_validate(item))
            except ValidationError as error:
                problems.add_validation(file, ["collections", index], CollectionEntry, error)
        problems.report()
        return entries

    def add(self, name: str, description: str = "", display_name: str | None = None) -> CollectionEntry:
        """Write one more collection, in a file that is made where there is none.

        Raises `CollectionAlreadyExistsError`, `InvalidCollectionNameError`.
        """
        try:
            entry = CollectionEntry(name=name, description=description, display_name=display_name)
        except ValidationError as error:
            raise InvalidCollectionNameError(f"{name!r} cannot name a collection; use {NAME_RULE}") from error
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=10):
                if any(known.name == name for known in self.entries()):
                    raise CollectionAlreadyExistsError(f"collection {name!r} exists; choose another name")
                self._append(entry)
        except Timeout as error:
            raise ConfigError(f"{str(self.path)!r} is being edited by another process; try again") from error
        except OSError as error:
            raise ConfigError(f"cannot write {str(self.path)!r}: {error.strerror}; make it writable") from error
        return entry

    def _append(self, entry: CollectionEntry) -> None:
        from ruamel.yaml import YAML

        yaml = YAML(typ="rt", pure=True)
        yaml.preserve_quotes = True
        yaml.width = 4096  # never fold a line that its owner wrote in one piece
        yaml.indent(mapping=2, sequence=4, offset=2)
        origin = self.path if self.path.exists() else DEFAULTS / "documents.yaml"
        tree = yaml.load(origin.read_text(encoding="utf-8")) or {}
        if not tree.get("collections"):
            tree["collections"] = []
        tree["collections"].append(entry.model_dump(exclude_none=True, exclude_defaults=True) | {"name": entry.name})
        # A reader sees the old file or the new one: the new one is whole before it takes the name.
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                yaml.dump(tree, stream)
                stream.flush()
                os.fsync(stream.fileno())
            if self.path.exists():
                Path(temporary).chmod(self.path.stat().st_mode & 0o777)
            else:
                Path(temporary).chmod(0o644)
            Path(temporary).replace(self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
