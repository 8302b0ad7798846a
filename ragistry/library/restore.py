"""Restore a backup to a new folder, and check every file.

The files are written to the folder `RESTORING` in it, and moved when they are complete. While that folder exists, the
workspace cannot be opened. A killed restore leaves it, and the next restore removes everything that the killed one
wrote.
"""

from __future__ import annotations

import os
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL
from hashlib import file_digest, sha256
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo

from filelock import FileLock, Timeout
from pydantic import ValidationError

from ragistry.config.folder import RESTORING
from ragistry.errors import ConfigError, SourceNotFoundError, StoreCorruptError, StoreError
from ragistry.library.backup import BLOCK, FORMAT, MANIFEST, FileRecord, Manifest
from ragistry.utils.disk import remedy
from ragistry.utils.wording import shown

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
    for info in archive.infolist():
        _check_safe(info, folder)
    return manifest


def _check_safe(info: ZipInfo, folder: Path) -> None:
    """Refuse an entry outside the folder, or a link: a backup may be malicious."""
    name, kind = PurePosixPath(info.filename), stat.S_IFMT(info.external_attr >> 16)
    inside = folder.resolve() in (folder / name).resolve().parents and ".." not in name.parts
    if not inside or str(name) != info.filename or kind not in (0, stat.S_IFREG):
        raise BadZipFile(f"the entry {shown(info.filename)} is not a plain file below the folder")


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
