"""Write a backup of a workspace to one zip file, and restore one to a new folder, checking every file.

A backup contains the files below ``config``, the Python files next to that folder, the library, and the documentation
repositories. A local store is copied as a snapshot, while other processes may write to it. From any other store, the
library is copied source by source to a local one. Indexes are left out, because they can be rebuilt.

The last entry, ``manifest.json``, has the size and the SHA-256 of every other entry.

Restored files are written to the folder `RESTORING` in the new one, and moved when they are complete. While that folder
exists, the workspace cannot be opened. A killed restore leaves it, and the next restore removes everything that the
killed one wrote.
"""

from __future__ import annotations

import os
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from errno import EINVAL
from hashlib import file_digest, sha256
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragistry import __version__
from ragistry.config.folder import RESTORING
from ragistry.config.settings import CONFIG_FOLDER, Settings
from ragistry.errors import ConfigError, RagistryError, SourceNotFoundError, StoreCorruptError, StoreError
from ragistry.library.contract.collection import open_version
from ragistry.library.contract.entries import entry_lock, names, read_entry
from ragistry.library.copying import copy_library
from ragistry.protocols import LibraryStore
from ragistry.stores.local import LocalStore
from ragistry.stores.registry import open_local
from ragistry.types import Progress
from ragistry.utils.disk import remedy
from ragistry.utils.wording import shown

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
        name = str(error.filename or path)
        is_ours = name.startswith((str(path), str(path.with_name(f".{path.name}."))))  # the backup, or its folder
        place = "" if is_ours else f" ({name!r})"
        raise StoreError(
            f"the backup {str(path)!r} cannot be written: {error.strerror or error}{place}; {remedy(error)}, or give "
            "another path"
        ) from error
    return backup.report


class _Backup:
    """A backup that is being written; ``work`` is a folder for temporary copies."""

    def __init__(self, zipped: ZipFile, work: Path) -> None:
        self.zipped = zipped
        self.work = work
        self.files: dict[str, FileRecord] = {}
        self.report = BackupReport()

    def add_configuration(self, root: Path) -> None:
        """Add the configuration files and the user's Python files, without hidden files, which may have passwords."""
        for path in (*sorted((root / CONFIG_FOLDER).rglob("*")), *sorted(root.glob("*.py"))):
            name = path.relative_to(root)
            if path.is_file() and not any(part.startswith(".") for part in name.parts):
                with path.open("rb") as stream:
                    self._add(name.as_posix(), stream)

    def add_library(self, store: LibraryStore, progress: Progress | None) -> None:
        folder = self.work / "library"
        if is_local := isinstance(store, LocalStore):
            store.copy_to(folder)
        with closing(open_local(folder)) as copy:
            for _ in () if is_local else range(ROUNDS):
                report = copy_library(store, copy, prune=True, progress=progress)
                if not report.differences:
                    break
            else:
                if not is_local:
                    raise StoreError(f"the library changes too often to be copied ({report.differences[0]}); try again")
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


# --- restore ---


LARGEST_MANIFEST = 50_000_000
"""Maximum size of the manifest in bytes; a documentation repository needs about 300."""
AGAIN = "copy the file again, or use another backup"
_UNREADABLE = (BadZipFile, zlib.error, EOFError, RuntimeError)
"""Exceptions of `zipfile` for damage, and for features that our backups never use, such as passwords."""


def restore_backup(path: Path, folder: Path) -> Manifest:
    """Restore a backup as a workspace, completely or not at all.

    Args:
        path: The backup.
        folder: Folder of the workspace. It must be empty, missing, or left by a killed restore.

    Raises:
        SourceNotFoundError: The file does not exist.
        ConfigError: The folder is not empty.
        StoreCorruptError: The file is not a complete backup.
        StoreError: The file cannot be read, or the folder cannot be written.
    """
    if not path.is_file():
        raise SourceNotFoundError(f"the file {str(path)!r} does not exist; give a file that `ragistry backup` wrote")
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{str(folder)!r} is not a folder; give an empty or a new folder")
    with _readable(path), ZipFile(path) as archive:
        manifest = _manifest(archive, path, folder)
        with _staging(folder, manifest) as staging:
            for name, record in manifest.files.items():
                _extract(archive, name, record, staging / name, path)
    return manifest


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (*_UNREADABLE, OSError) as error:
        # A negative offset in a damaged file is EINVAL without a file name.
        if isinstance(error, OSError) and (error.filename or error.errno != EINVAL):
            place = error.filename or path
            raise StoreError(
                f"{str(place)!r} cannot be read or written: {error.strerror or error}; nothing was restored; "
                f"{remedy(error)}"
            ) from error
        raise StoreCorruptError(
            f"{str(path)!r} is not a complete backup of Ragistry ({shown(str(error))}); {AGAIN}"
        ) from error


def _manifest(archive: ZipFile, path: Path, folder: Path) -> Manifest:
    """Read the manifest, and check that it matches the entries of the backup."""
    entries = {info.filename: info for info in archive.infolist()}
    if MANIFEST not in entries or entries[MANIFEST].file_size > LARGEST_MANIFEST:
        raise StoreCorruptError(f"{str(path)!r} is not a backup of Ragistry; give a file that `ragistry backup` wrote")
    try:
        manifest = Manifest.model_validate_json(archive.read(MANIFEST))
    except ValidationError as error:
        raise BadZipFile(f"{MANIFEST} is not a manifest") from error
    if manifest.format != FORMAT:
        raise StoreError(
            f"{str(path)!r} was made by {shown(manifest.program)} (format {manifest.format}, this one has {FORMAT}); "
            "restore it with that version"
        )
    if len(archive.infolist()) != len(entries) or entries.keys() - {MANIFEST} != manifest.files.keys():
        raise BadZipFile(f"its entries differ from its {MANIFEST}")
    for info in archive.infolist():  # a malicious backup may have links, or entries outside the folder
        name, kind = PurePosixPath(info.filename), stat.S_IFMT(info.external_attr >> 16)
        inside = folder.resolve() in (folder / name).resolve().parents and ".." not in name.parts
        if not inside or str(name) != info.filename or kind not in (0, stat.S_IFREG):
            raise BadZipFile(f"the entry {shown(info.filename)} is not a plain file below the folder")
    return manifest


@contextmanager
def _staging(folder: Path, manifest: Manifest) -> Iterator[Path]:
    """Yield a temporary folder whose content is moved to ``folder`` after the block; after an error, it is removed."""
    new, mark = not folder.exists(), folder / RESTORING
    if not new and not mark.exists() and any(folder.iterdir()):
        raise ConfigError(f"{str(folder)!r} is not an empty folder; give an empty or a new folder")
    lock, staging = FileLock(mark / "lock", timeout=0), mark / "files"
    try:
        lock.acquire()  # it creates the folders
    except Timeout as error:
        raise ConfigError(
            f"another process restores a backup to {str(folder)!r}; wait until it ends, or give another folder"
        ) from error
    try:
        _remove_remains(folder, manifest)
        staging.mkdir()
        try:
            yield staging
            for path in staging.iterdir():
                path.rename(folder / path.name)
        except BaseException:
            with suppress(OSError):
                _remove(folder / PurePosixPath(name).parts[0] for name in manifest.files)
                lock.release()
                _remove([mark])
                if new:
                    folder.rmdir()
            raise
    finally:
        lock.release()
    _remove([mark])


def _remove_remains(folder: Path, manifest: Manifest) -> None:
    """Remove what a killed restore of this backup left. Raises `ConfigError` if the folder has anything else."""
    remains = [path for path in folder.iterdir() if path.name != RESTORING]
    for path in (inner for top in remains for inner in (top, *top.rglob("*"))):
        record = manifest.files.get(path.relative_to(folder).as_posix())
        if path.is_symlink() or (not path.is_dir() and (record is None or not _is_equal(path, record))):
            raise ConfigError(
                f"{str(path)!r} is not from this backup, of which a restore to {str(folder)!r} has not ended; give the "
                "backup of that restore, or a new folder"
            )
    _remove([*remains, folder / RESTORING / "files"])


def _is_equal(path: Path, record: FileRecord) -> bool:
    with path.open("rb") as stream:
        return path.stat().st_size == record.size and file_digest(stream, "sha256").hexdigest() == record.sha256


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Add the file name to a write error, because the system leaves it out."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _extract(archive: ZipFile, name: str, record: FileRecord, target: Path, path: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    size, digest = 0, sha256()
    with archive.open(name) as entry, target.open("xb") as stream:
        while size <= record.size and (block := entry.read(BLOCK)):
            with _named(target):
                stream.write(block)
            digest.update(block)
            size += len(block)
        with _named(target):
            stream.flush()
            os.fsync(stream.fileno())
    if (size, digest.hexdigest()) != (record.size, record.sha256):
        raise StoreCorruptError(f"{shown(name)} in {str(path)!r} is damaged; {AGAIN}")
