"""Read and edit the collections in documents.yaml; edits keep comments and formatting."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from ragistry.config.files import NAME_RULE, CollectionEntry, DocumentsFile, read_file
from ragistry.config.problems import Problems, explain
from ragistry.config.replacing import replace_text
from ragistry.config.settings import CONFIG_FOLDER, DEFAULTS
from ragistry.config.yaml_edits import with_entry, with_fields, without_entry
from ragistry.errors import (
    CollectionAlreadyExistsError,
    CollectionNotFoundError,
    ConfigError,
    InvalidCollectionNameError,
    RagistryError,
)
from ragistry.utils.disk import remedy
from ragistry.utils.metadata import value_problem
from ragistry.utils.wording import no_collection, shown

if TYPE_CHECKING:
    from filelock import FileLock

_log = logging.getLogger(__name__)
Version = tuple[int, int, int]
HALF_SAVED = 1.0
"""Seconds for which a broken file that was changed just now is read again before it counts as broken."""
LOCK_TIMEOUT = 30.0
"""Seconds that an edit waits for another edit, or for a source that is being written to a collection."""


class CollectionsFile:
    """``config/documents.yaml`` of a workspace, which defines the collections.

    Safe for threads and processes. An edit raises `ConfigError` and changes nothing if the file cannot be written.

    ``used_by``: describes what else has a name, such as "a repository"; empty if nothing has. ``edited``: functions
    called after each edit by this object.
    """

    def __init__(self, root: Path, used_by: Callable[[str], str] = lambda _: "") -> None:
        self.path = root / CONFIG_FOLDER / "documents.yaml"
        self.edited: list[Callable[[], object]] = []
        self._removing = self.path.with_name(f".{self.path.name}.removing")
        self._used_by = used_by
        self._read: tuple[Version | None, list[CollectionEntry]] = (None, [])

    def version(self) -> Version | None:
        """Return a value that changes with the file; None without a file."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def entries(self) -> list[CollectionEntry]:
        """Return the collections in the order of the file, which is read again only after a change."""
        version, known = self.version(), self._read
        if known[0] != version:
            self._read = known = (version, self._parse() if version else [])
        return known[1]

    def entry(self, name: str) -> CollectionEntry:
        """Return a collection. Raises `CollectionNotFoundError`."""
        entries = self.entries()
        found = next((entry for entry in entries if entry.name == name), None)
        if found is not None:
            return found
        if other := self._used_by(name):
            raise CollectionNotFoundError(
                f"{name!r} is {other}, not a collection; search it with technique 'routed', without a collection"
            )
        raise CollectionNotFoundError(no_collection(name, [entry.name for entry in entries]))

    @contextmanager
    def collection_lock(self, name: str) -> Iterator[CollectionEntry]:
        """Lock a collection against removal and new names while the block writes to it.

        Raises `CollectionNotFoundError`, also at the end of the block if the collection was removed by hand.
        """
        with self.file_lock():
            yield self.entry(name)
            self.entry(name)

    @contextmanager
    def file_lock(self) -> Iterator[None]:
        """Lock the file against edits by this program. Does nothing in a read-only folder.

        Raises `ConfigError` if another process keeps the lock longer than `LOCK_TIMEOUT`.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(self._lock())
            except TimeoutError as error:
                raise self._in_use() from error
            except OSError:
                pass  # a read-only folder
            yield

    def add(self, name: str, description: str = "", display_name: str | None = None) -> CollectionEntry:
        """Add a collection; creates the file if it is missing.

        Raises `CollectionAlreadyExistsError`, `InvalidCollectionNameError`.
        """
        entry = _entry(name=name, description=description, display_name=display_name)
        fields = entry.model_dump(exclude_none=True, exclude_defaults=True)

        def change(text: str) -> str:
            self._check_free(name)
            return with_entry(text, fields)

        self._edit(change)
        return entry

    def update(self, name: str, *, description: str | None = None, display_name: str | None = None) -> CollectionEntry:
        """Change the description or display name; "" removes it. Raises `CollectionNotFoundError`."""
        entry = self.entry(name)
        wanted = {"description": (entry.description, description), "display_name": (entry.display_name, display_name)}
        fields = {key: new or None for key, (old, new) in wanted.items() if new is not None and new != (old or "")}
        changed = _entry(**(entry.model_dump() | fields))
        if fields:
            self._edit(lambda text: with_fields(text, self._index(name), fields))
        return changed

    def begin_rename(self, name: str, new_name: str, before: Callable[[], object] = lambda: None) -> None:
        """Write the new name, and the old one as ``formerly`` until `end_rename`; chunks may have either name.

        ``before``: called, at least once, when only the write itself can still fail. Raises
        `CollectionNotFoundError`, `CollectionAlreadyExistsError`, `InvalidCollectionNameError`.
        """
        _entry(name=new_name)

        def change(text: str) -> str:
            index = self._index(name)
            self._check_free(new_name)
            return with_fields(text, index, {"name": new_name, "formerly": name})

        self._edit(change, before)

    def end_rename(self, name: str) -> None:
        """Remove ``formerly``: every chunk has the new name."""
        self._edit(lambda text: with_fields(text, self._index(name), {"formerly": None}))

    def remove(self, name: str, before: Callable[[], object]) -> None:
        """Remove a collection. ``before`` is called when only the write itself can still fail.

        If the process is killed after ``before`` has removed the chunks, `finish_removal` removes the collection.
        """

        def noted() -> None:
            replace_text(self._removing, name)
            try:
                before()
            except BaseException:
                self._removing.unlink()
                raise

        self._edit(lambda text: without_entry(text, self._index(name)), noted)
        self._removing.unlink(missing_ok=True)

    def finish_removal(self, is_empty: Callable[[str], bool]) -> None:
        """Remove a collection whose removal was killed, if its chunks are gone. Does nothing in a read-only folder."""
        with suppress(OSError, RagistryError):  # such as a removal that is running
            name = self._removing.read_text(encoding="utf-8")
            with self._lock().acquire(timeout=0):
                pass
            if name in [entry.name for entry in self.entries()] and is_empty(name):
                self.remove(name, lambda: None)
            self._removing.unlink(missing_ok=True)

    def _parse(self) -> list[CollectionEntry]:
        """Read the collections. The whole file must be valid: a misspelt ``collections`` would mean an empty library.

        An editor may be saving a file that changed just now and is invalid or empty, so it is read again.
        """
        end = time.monotonic() + HALF_SAVED
        while True:
            problems, content = Problems(), None
            with problems.gather():
                _, content = read_file(self.path, DocumentsFile, problems)
            entries = content.collections if content is not None else []
            suspicious = problems.lines or (self._read[1] and not self.path.read_bytes().strip())
            if not suspicious or time.monotonic() > end or time.time() - self.path.stat().st_mtime > 2 * HALF_SAVED:
                problems.report()
                return entries
            time.sleep(0.05)

    def _index(self, name: str) -> int:
        """Return the place of a collection in the file. Raises `CollectionNotFoundError`."""
        return self.entries().index(self.entry(name))

    def _check_free(self, name: str) -> None:
        for entry in self.entries():
            if name == entry.name:
                raise CollectionAlreadyExistsError(f"collection {name!r} exists; choose another name")
            if name == entry.formerly:
                raise CollectionAlreadyExistsError(
                    f"collection {entry.name!r} is being renamed from {name!r}; choose another name, or wait"
                )
        if other := self._used_by(name):
            raise CollectionAlreadyExistsError(
                f"{name!r} is already the name of {other}; give the collection another name"
            )

    def _edit(self, change: Callable[[str], str], before: Callable[[], object] = lambda: None) -> None:
        """Apply ``change`` to the text of the file; this program makes one edit at a time.

        If an editor saves the file meanwhile, the change is applied again to the saved text.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock():
                again, end = False, time.monotonic() + LOCK_TIMEOUT
                while time.monotonic() < end:
                    version, _ = self.version(), self.entries()  # raises if the file is invalid
                    old = self._text()
                    text = change(old.decode())
                    before()
                    if version == self.version() and replace_text(self.path, text, expected=old):
                        break
                    again = True
                else:
                    raise ConfigError(
                        f"{str(self.path)!r} is being changed by another program all the time; stop it first"
                    )
        except RagistryError:
            raise  # some are also OSError
        except TimeoutError as error:
            raise self._in_use() from error
        except OSError as error:
            raise ConfigError(f"cannot write {str(self.path)!r}: {error.strerror}; {remedy(error)}") from error
        if again:
            _log.warning("%r was saved by another program at the same time; both changes are kept", str(self.path))
        for notify in list(self.edited):
            notify()

    def _lock(self) -> FileLock:
        from filelock import FileLock  # not at the top, because a search locks nothing

        return FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=LOCK_TIMEOUT)

    def _in_use(self) -> ConfigError:
        return ConfigError(
            f"{str(self.path)!r} is locked by another process, which edits it or writes to a collection; try again"
        )

    def _text(self) -> bytes:
        path = self.path if self.path.exists() else DEFAULTS / self.path.name
        return path.read_bytes()  # line ends stay as they are


def _entry(**fields: str | None) -> CollectionEntry:
    try:
        entry = CollectionEntry.model_validate(fields)
    except ValidationError as error:
        if any("name" in item["loc"] for item in error.errors()):
            name = fields["name"]
            raise InvalidCollectionNameError(f"{name!r} cannot be the name of a collection; use {NAME_RULE}") from error
        raise ConfigError(f"collection {fields['name']!r}: {explain(error.errors()[0], CollectionEntry)}") from error
    for field, value in fields.items():
        if problem := value_problem(value):
            raise ConfigError(f"collection {entry.name!r}: its {field}, {shown(value)}, {problem}")
    return entry
