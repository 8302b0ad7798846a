"""Restore a backup to a new folder, and check every file."""

from __future__ import annotations

import os
import shutil
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL
from hashlib import sha256
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo

from pydantic import ValidationError

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
        folder: Folder of the workspace. It must be empty or missing.

    Raises:
        SourceNotFoundError: The file does not exist.
        ConfigError: The folder is not empty.
        StoreCorruptError: The file is not a complete backup.
        StoreError: The file cannot be read, or the folder cannot be written.
    """
    if not path.is_file():
        raise SourceNotFoundError(f"the file {str(path)!r} does not exist; give a file that `ragistry backup` wrote")
    new = not folder.exists()
    if not new and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{str(folder)!r} is not an empty folder; give an empty or a new folder")
    with _readable(path), ZipFile(path) as archive:
        manifest = _manifest(archive, path, folder)
        with _staging(folder, new) as staging:
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
def _staging(folder: Path, new: bool) -> Iterator[Path]:
    """Yield a temporary folder whose content replaces ``folder`` after the block.

    After an error, the content is removed.
    """
    staging = folder / ".restoring"
    made = [staging]
    try:
        staging.mkdir(parents=True)
        yield staging
        made += [folder / path.name for path in staging.iterdir()]
        for path in made[1:]:
            (staging / path.name).rename(path)
        staging.rmdir()
    except BaseException:
        with suppress(OSError):
            for path in filter(Path.exists, made):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            if new:
                folder.rmdir()
        raise


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
