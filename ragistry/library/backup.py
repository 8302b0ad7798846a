"""Write a backup of a workspace to one zip file, which `library.restore` reads.

It contains the files below ``config``, the Python files next to that folder, the library, and the documentation
repositories. A local store is copied as a snapshot, while other processes may write to it. From any other store, the
library is copied source by source to a local one. Indexes are left out, because they can be rebuilt.

The last entry, ``manifest.json``, has the size and the SHA-256 of every other entry.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile

from pydantic import BaseModel, ConfigDict, Field

from ragistry import __version__
from ragistry.config.settings import CONFIG_FOLDER, Settings
from ragistry.errors import ConfigError, RagistryError, StoreError
from ragistry.library.contract.collection import open_version
from ragistry.library.contract.entries import entry_lock, names, read_entry
from ragistry.library.copying import copy_library
from ragistry.protocols import LibraryStore
from ragistry.stores.local import LocalStore
from ragistry.stores.registry import open_local
from ragistry.types import Progress
from ragistry.utils.disk import remedy

FORMAT = 1
MANIFEST = "manifest.json"
DATA = PurePosixPath(str(Settings.model_fields["data_dir"].default))
"""The data folder in a restored workspace."""
STORE_FILE = "store.db"
COMPRESSION = 1
"""Compression level of zlib: a higher one takes much longer and saves little, because vectors hardly shrink."""
BLOCK = 1 << 20
ROUNDS = 5
"""Number of attempts to copy a library that is being written."""
UPDATE_SECONDS = 60.0
"""Seconds that a backup waits for the update of a documentation repository."""


class FileRecord(BaseModel):
    """The size in bytes and the SHA-256 of a file, as the manifest records them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: int = Field(ge=0)
    sha256: str


class Manifest(BaseModel):
    """The files of a backup, the program that wrote it, and the time in ISO 8601."""

    model_config = ConfigDict(frozen=True)

    format: int
    program: str
    created: str
    files: dict[str, FileRecord]


@dataclass(slots=True)
class BackupReport:
    """The result of a backup.

    Attributes:
        size: Size of the file in bytes.
        sources: Number of sources.
        chunks: Number of chunks of the library.
        waiting: Number of them that wait for their vectors.
        repositories: Names of the documentation repositories.
    """

    size: int = 0
    sources: int = 0
    chunks: int = 0
    waiting: int = 0
    repositories: list[str] = field(default_factory=list)


def write_backup(
    path: Path,
    root: Path,
    store: LibraryStore,
    repositories: Path,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> BackupReport:
    """Write a backup of a workspace to a file, completely or not at all.

    The folder of ``path`` also needs space for a copy of the largest store.

    Args:
        path: The file to write.
        root: Folder of the workspace.
        store: Store of the library.
        repositories: Folder of the documentation repositories.
        force: Replace an existing file.
        progress: Called before each source, if the library is copied source by source.

    Raises:
        ConfigError: The file exists, or its folder does not.
        StoreLockedError: A documentation repository is being updated.
        StoreError: A store cannot be read, or the file cannot be written.
    """
    if path.exists() and not force:
        raise ConfigError(f"the file {str(path)!r} already exists; give another name, or add --force to replace it")
    if not path.parent.is_dir():
        raise ConfigError(f"the folder {str(path.parent)!r} for the backup does not exist; create it, or give another")
    try:
        # Errors are ignored, because a thread of tantivy may still write a lock file into a closed index.
        with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent, ignore_cleanup_errors=True) as folder:
            new = Path(folder, "backup")
            with new.open("xb") as stream:
                with ZipFile(stream, "w", ZIP_DEFLATED, compresslevel=COMPRESSION) as zipped:
                    backup = _Backup(zipped, Path(folder))
                    backup.add_configuration(root)
                    backup.add_library(store, progress)
                    backup.add_repositories(repositories)
                    backup.add_manifest()
                stream.flush()
                os.fsync(stream.fileno())
            new.chmod(0o600)  # it contains the text of every document
            backup.report.size = new.stat().st_size
            new.replace(path)
    except RagistryError:  # some are also OSError
        raise
    except OSError as error:
        raise StoreError(
            f"the backup {str(path)!r} cannot be written: {error.strerror or error}{_other_place(error, path)}; "
            f"{remedy(error)}, or give another path"
        ) from error
    return backup.report


def _other_place(error: OSError, path: Path) -> str:
    """Return the file of the error, unless it is the backup or its temporary file."""
    name = str(error.filename or path)
    return "" if name.startswith((str(path), str(path.with_name(f".{path.name}.")))) else f" ({name!r})"


class _Backup:
    """A backup that is being written; ``work`` is a folder for temporary copies."""

    def __init__(self, zipped: ZipFile, work: Path) -> None:
        self.zipped = zipped
        self.work = work
        self.files: dict[str, FileRecord] = {}
        self.report = BackupReport()

    def add_configuration(self, root: Path) -> None:
        for path in _configuration(root):
            with path.open("rb") as stream:
                self._add(path.relative_to(root).as_posix(), stream)

    def add_library(self, store: LibraryStore, progress: Progress | None) -> None:
        folder = self.work / "library"
        if isinstance(store, LocalStore):
            store.copy_to(folder)
        else:
            _copy_until_equal(store, folder, progress)
        with closing(open_local(folder)) as copy:
            sources = copy.sources()
            self.report.sources, self.report.chunks = len(sources), copy.count()
            self.report.waiting = sum(info.waiting for info in sources)
        self._add_store(DATA, folder)

    def add_repositories(self, root: Path) -> None:
        for name in names(root):
            folder, place = self.work / name, DATA / root.name
            with entry_lock(root, name, UPDATE_SECONDS):
                if (entry := read_entry(root, name)) is None:  # removed since the names were listed
                    continue
                if entry.folder:
                    with closing(open_version(root / entry.folder)) as store:
                        store.copy_to(folder)
                self._add(f"{place / name}.json", BytesIO((root / f"{name}.json").read_bytes()))
            if entry.folder:
                self._add_store(place / entry.folder, folder)
            self.report.repositories.append(name)

    def add_manifest(self) -> None:
        created = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = Manifest(format=FORMAT, program=f"ragistry {__version__}", created=created, files=self.files)
        self._add(MANIFEST, BytesIO(manifest.model_dump_json(indent=1).encode()))

    def _add_store(self, place: PurePosixPath, folder: Path) -> None:
        with (folder / STORE_FILE).open("rb") as stream:
            self._add(str(place / STORE_FILE), stream)
        (folder / STORE_FILE).unlink()

    def _add(self, name: str, stream: BinaryIO) -> None:
        size, digest = 0, sha256()
        with self.zipped.open(name, "w", force_zip64=True) as entry:
            while block := stream.read(BLOCK):
                entry.write(block)
                digest.update(block)
                size += len(block)
        self.files[name] = FileRecord(size=size, sha256=digest.hexdigest())


def _configuration(root: Path) -> Iterator[Path]:
    """List the configuration files and the user's Python files.

    Hidden files are left out, because they may contain passwords.
    """
    for path in (*sorted((root / CONFIG_FOLDER).rglob("*")), *sorted(root.glob("*.py"))):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(root).parts):
            yield path


def _copy_until_equal(store: LibraryStore, folder: Path, progress: Progress | None) -> None:
    with closing(open_local(folder)) as copy:
        for _ in range(ROUNDS):
            report = copy_library(store, copy, prune=True, progress=progress)
            if not report.differences:
                return
    raise StoreError(f"the library changes too often to be copied ({report.differences[0]}); try again")
