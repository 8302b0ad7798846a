"""Zip files, read as folders of their members.

Only the member that is being read is unpacked.
"""

from __future__ import annotations

import os
from bz2 import BZ2Decompressor
from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from io import BytesIO, FileIO
from operator import itemgetter
from pathlib import Path
from struct import unpack_from
from typing import BinaryIO
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo
from zlib import crc32

from ragistry.errors import ExtractionError, SourceError
from ragistry.library.ingest.own_files import is_backup, is_own_member
from ragistry.library.ingest.report import Failure
from ragistry.library.ingest.source import ReadOptions, SourceFile, extract_bytes, hash_of
from ragistry.library.ingest.source_metadata import SourceMetadata
from ragistry.readers.encoding import names_encoding
from ragistry.readers.extracted import Extracted, ExtractLimits, reader_errors
from ragistry.readers.formats import UNREAD_FORMATS, is_readable, suffix_of
from ragistry.readers.text_files import LARGEST, is_document, is_media, is_worth_reading, kind_of, sample_of
from ragistry.utils.ids import composed
from ragistry.utils.metadata import date_text

ZIP = ".zip"
MEMBERS = 10_000
"""Maximum number of members."""
TOTAL = 2_000_000_000
"""Maximum size of all members in bytes."""
RATIO = 200
"""Maximum ratio of the size of all members to the size of the zip file; text has a ratio of 3 to 20."""
SMALL = 10_000_000
"""Size of all members in bytes up to which any ratio is allowed."""
DIRECTORY = 8_000_000
"""Maximum size of the directory in bytes, 800 for each of `MEMBERS`; usual are 100."""
ENCRYPTED, UTF_8 = 0x1, 0x800
"""Flags of a member: its content is encrypted, its name is UTF-8."""
UNICODE_PATH = 0x7075
"""Kind of an extra field."""
_STEPS = {ZIP_STORED: 1 << 20, ZIP_DEFLATED: 1 << 20}
"""Number of compressed bytes that are read at once, by compression method."""
_STEP = 4_096
"""The number for other methods, whose output `ZipFile` does not limit; LZMA makes at most 30 MB of it."""


def is_zip(path: str | Path) -> bool:
    """Return whether a path is an existing zip file."""
    return suffix_of(path) == ZIP and Path(path).is_file()


@dataclass(frozen=True, slots=True)
class ZipMember(SourceFile):
    """A file in a zip file.

    Attributes:
        path: Path of the zip file.
        source_file: Name in the collection.
        member: Name in the zip file.
        name: The same name, with ``/`` as separator.
    """

    member: str
    name: str

    @property
    def place(self) -> str:
        return f"{os.path.realpath(self.path)}/{self.name}"

    @property
    def shown(self) -> str:
        return f"{self.path}/{self.name}"

    def open(self) -> BinaryIO:
        return BytesIO(self._data(ExtractLimits()))

    def digest(self, limits: ExtractLimits) -> bytes | None:
        try:
            return self._data(limits)
        except SourceError:
            return None  # the reader reports what is wrong

    def hash_of(self, digest: bytes, reading: ReadOptions) -> str:
        return hash_of(digest, reading, self.name)

    def read(self, reading: ReadOptions) -> tuple[Extracted, bytes]:
        data = self._data(reading.limits)
        return extract_bytes(data, self.name, self.shown, reading), data

    def _data(self, limits: ExtractLimits) -> bytes:
        """Unpack the member. Raises `ExtractionError`."""
        if suffix_of(self.name) == ZIP:
            raise ExtractionError(
                f"{self.shown!r} is a zip file in a zip file, which is not supported; unpack it first"
            )
        with reader_errors(self.shown):
            status = Path(self.path).stat()
            archive = _opened(self.path, (status.st_mtime_ns, status.st_size))
            info = archive.getinfo(self.member)
            if info.flag_bits & ENCRYPTED:
                raise ExtractionError(f"{self.shown!r} is encrypted; unpack it with its password first")
            if info.file_size > limits.bytes:
                raise ExtractionError(
                    f"{self.shown!r} has {info.file_size:,} bytes, more than the limit of {limits.bytes:,}; "
                    "split it or increase limits.megabytes"
                )
            return _unpacked_bzip2(archive, info) if info.compress_type == ZIP_BZIP2 else _unpacked(archive, info)


def _unpacked(archive: ZipFile, info: ZipInfo) -> bytes:
    """Unpack a member, up to the size that the directory states."""
    data, step = BytesIO(), _STEPS.get(info.compress_type, _STEP)
    with archive.open(info) as stream:
        while block := stream.read(step):
            data.write(block)
    return data.getvalue()


def _unpacked_bzip2(archive: ZipFile, info: ZipInfo) -> bytes:
    """Unpack a member with bzip2, up to the size that the directory states.

    `ZipFile` does not limit the output of bzip2, which may turn one byte into a megabyte.
    """
    if info.compress_size > 2 * info.file_size + 10_000:
        raise BadZipFile(f"{info.file_size:,} bytes cannot take {info.compress_size:,} when packed")
    packed = copy(info)
    packed.compress_type, packed.file_size = ZIP_STORED, info.compress_size
    del packed.CRC  # which is that of the unpacked bytes
    data = BZ2Decompressor().decompress(_unpacked(archive, packed), info.file_size)
    if len(data) != info.file_size or crc32(data) != info.CRC:
        raise BadZipFile(f"bad size or CRC-32 of {info.filename!r}")
    return data


class _Archive(ZipFile):
    """A zip file with a size limit for its directory, which `ZipFile` reads at once.

    Raises `ExtractionError` for a damaged file.
    """

    _file: FileIO | None = None

    def __init__(self, path: str) -> None:
        self._file = _BoundedFile(path)
        try:
            super().__init__(self._file)
        except BadZipFile as error:
            raise ExtractionError(f"{path!r} is damaged or not a zip file; get the file again") from error

    def close(self) -> None:
        super().close()
        if self._file is not None:
            self._file.close()


class _BoundedFile(FileIO):
    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > DIRECTORY:
            raise ExtractionError(
                f"{self.name!r} has a directory of {size:,} bytes, more than {DIRECTORY:,}; unpack it into a folder"
            )
        return super().read(size)


@lru_cache(maxsize=1)
def _opened(path: str, changed: tuple[int, int]) -> ZipFile:  # noqa: ARG001, part of the key
    """Open a zip file, and keep the last one open to read its directory only once."""
    return _Archive(path)


def archive_of(path: str) -> Path | None:
    """Return the zip file that contains a path."""
    return next((parent for parent in Path(path).parents if is_zip(parent)), None)


def is_member(path: str) -> bool:
    """Return whether a path is a member of a zip file.

    If the zip file cannot be read now, the path counts as a member.
    """
    archive = archive_of(path)
    if archive is None:
        return False
    try:
        status = archive.stat()
        return path[len(str(archive)) + 1 :] in _names(str(archive), (status.st_mtime_ns, status.st_size))
    except (OSError, SourceError):
        return True


@lru_cache(maxsize=4)
def _names(path: str, changed: tuple[int, int]) -> frozenset[str]:  # noqa: ARG001, part of the key
    with reader_errors(path), _Archive(path) as archive:
        return frozenset(_names_inside(_checked(archive, path)))


@dataclass(slots=True)
class ZipListing:
    """The members of a zip file; see `Listing` for the attributes. What is left out has its kind."""

    members: list[ZipMember] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    is_backup: bool = False


def members_of(path: str, name: str, *, all_text: bool = False) -> ZipListing:
    """List the members of a zip file that are read.

    A zip file in it is listed too, so that its refusal is reported. Of several members of one name, the last one is
    listed, as every program unpacks them, and the others are failures, unless they are equal to it. A member outside
    the folder is a failure too.

    Args:
        path: Path of the zip file.
        name: Prefix of the members' names in the collection.
        all_text: See `list_folder`.

    Raises:
        SourceError: The zip file is damaged, or exceeds a limit.
    """
    listing = ZipListing()
    with reader_errors(path), _Archive(path) as archive:
        infos = _checked(archive, path)
        inside_of = _names_inside(infos)
        if is_backup(inside_of):
            return ZipListing(is_backup=True)
        last: dict[str, tuple[str, ZipInfo]] = {}
        for inside, info in zip(inside_of, infos, strict=True):
            if not inside:
                problem = f"a file {info.filename!r}, which leads out of it and is not read; rename it in the zip file"
                listing.failed.append(_failure(path, info.filename, problem))
            if not inside or _is_hidden(inside):
                continue
            suffix, (_, other) = suffix_of(inside), last.get(composed(inside), ("", info))
            if suffix in UNREAD_FORMATS and not is_readable(suffix):
                listing.unread[suffix] += 1
            elif (
                suffix == ZIP
                or is_document(inside)
                or not (kind := _unwanted(archive, info, inside, all_text=all_text))
            ):
                if (info.CRC, info.file_size) != (other.CRC, other.file_size):
                    problem = (
                        f"two different files that are both unpacked as {inside!r}, and only the last one is read; "
                        "rename one of them"
                    )
                    listing.failed.append(_failure(path, inside, problem))
                last[composed(inside)] = inside, info
            else:
                listing.left_out.append((f"{name}/{inside}", kind))
    for inside, info in sorted(last.values(), key=itemgetter(0)):
        metadata = SourceMetadata(modified=_modified(info))
        listing.members.append(ZipMember(path, f"{name}/{inside}", info.filename, inside, metadata=metadata))
    return listing


def _unwanted(archive: ZipFile, info: ZipInfo, name: str, *, all_text: bool) -> str:
    """Look into a member, and return its kind if it is left out; see `_Walk`."""
    is_known = is_readable(suffix_of(name))
    is_long = info.compress_type == ZIP_BZIP2 and info.file_size > LARGEST
    if info.flag_bits & ENCRYPTED or is_long or (is_media(name) and not all_text):
        return "" if is_known else kind_of(name)
    try:
        with reader_errors(name):
            sample = _sample_of(archive, info, is_known=is_known or info.file_size > LARGEST)
    except ExtractionError:
        return "" if is_known else kind_of(name)
    is_wanted = not is_own_member(name, sample) and is_worth_reading(name, sample, info.file_size, all_text=all_text)
    return "" if is_wanted else kind_of(name, sample)


def _sample_of(archive: ZipFile, info: ZipInfo, *, is_known: bool) -> bytes:
    """Unpack the bytes that decide."""
    unpacked = _unpacked_bzip2(archive, info) if info.compress_type == ZIP_BZIP2 else None
    with archive.open(info) if unpacked is None else BytesIO(unpacked) as stream:
        return sample_of(stream, info.file_size, is_known=is_known)


def _failure(path: str, name: str, problem: str) -> Failure:
    return Failure(f"{path}/{name}", SourceError(f"{path!r} has {problem}"))


def _modified(info: ZipInfo) -> str:
    """Return the modification time of a member, which is recorded without a time zone; empty if it is invalid."""
    try:
        return date_text(datetime(*info.date_time).astimezone())
    except (ValueError, OverflowError, OSError):
        return ""


def _checked(archive: ZipFile, path: str) -> list[ZipInfo]:
    """Return the files in a zip file. Raises `ExtractionError`."""
    infos = [info for info in archive.infolist() if info.filename and not info.is_dir()]
    total, size = sum(info.file_size for info in infos), Path(path).stat().st_size
    if len(infos) > MEMBERS:
        raise ExtractionError(f"{path!r} has {len(infos):,} files, more than {MEMBERS:,}; unpack it into a folder")
    if total > TOTAL or (total > SMALL and total > RATIO * size):
        raise ExtractionError(
            f"{path!r} has {total:,} bytes when unpacked, more than {TOTAL:,} or more than {RATIO} times its size; "
            "unpack it into a folder if you trust it"
        )
    return infos


def _names_inside(infos: Sequence[ZipInfo]) -> list[str]:
    """Return the paths of the files in a zip file; empty for one that leads out of it."""
    raw = [info.orig_filename.encode("cp437") for info in infos if not info.flag_bits & UTF_8]
    encoding = names_encoding([name for name in raw if not name.isascii()])
    names = []
    for info in infos:
        name = info.orig_filename
        if not info.flag_bits & UTF_8:
            name = _unicode_name(info) or name.encode("cp437").decode(encoding, "replace")
        name = name.partition("\0")[0]
        # Windows removes blanks at the end of a name, and some programs begin each name with "./".
        parts = [part.rstrip() or part for part in name.replace("\\", "/").split("/") if part != "."]
        first = "".join(parts[:1])
        leads_out = ".." in parts or not first or (first[1:] == ":" and first[0].isalpha())
        names.append("" if leads_out else "/".join(filter(None, parts)))
    return names


def _unicode_name(info: ZipInfo) -> str:
    """Return the name in UTF-8 that a program has added to one in another encoding; empty without it."""
    extra = info.extra
    while len(extra) >= 4:
        kind, length = unpack_from("<HH", extra)
        if kind == UNICODE_PATH and length > 5:
            return extra[9 : 4 + length].decode("utf-8", "replace")
        extra = extra[4 + length :]
    return ""


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "~$", "__MACOSX")) for part in name.split("/"))
