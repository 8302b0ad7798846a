"""Sources of an ingest (files, texts, bytes), and the steps that read and chunk them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import file_digest, sha256
from pathlib import Path
from stat import S_ISREG
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Literal

from ragistry.chunking.breadcrumb import searched_text
from ragistry.errors import SourceError
from ragistry.library.ingest.report import Failure
from ragistry.library.ingest.source_metadata import NO_METADATA, SourceMetadata
from ragistry.protocols import Embedder
from ragistry.readers.extracted import Extracted, ExtractLimits, reader_errors
from ragistry.readers.formats import AddedReader, added_readers, suffix_of
from ragistry.text.languages import AUTO, analysis_language
from ragistry.types import Chunk
from ragistry.utils.urls import url_name

SMALLEST = 50
"""Minimum size in characters to which chunks are split for a model; longer ones are reported."""
UNCHUNKED = 0.01
"""Fraction of a text that may be in no chunk without a warning."""


READER_VERSION = 4
"""Version of the readers. Raise it when they read a file otherwise: the next ingest then reads every file again."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Settings for reading and chunking sources.

    Attributes:
        chunk_size: Maximum number of characters of a chunk.
        chunk_overlap: Number of characters that consecutive chunks share.
        fit: Whether to split chunks that are too long for the model. It is false if the user set the size.
        pdf_engine: Library that reads PDFs.
        limits: Limits of files.
        headings: Whether searches of a chunk include its title and headings (`chunking.breadcrumb`).
        language: Language of the texts; ``auto`` detects it for each source.
        ocr: Language for OCR of PDF pages; empty to disable OCR.
        version: Version of the readers.
        readers: Readers of the configuration, by suffix.
    """

    chunk_size: int
    chunk_overlap: int
    fit: bool = False
    pdf_engine: Literal["pypdfium2", "pypdf"] = "pypdfium2"
    limits: ExtractLimits = field(default_factory=ExtractLimits)
    headings: bool = True
    language: str = "english"
    ocr: str = ""
    version: int = READER_VERSION
    readers: Mapping[str, AddedReader] = field(default_factory=dict)

    def extract(self, path: str) -> Extracted:
        """Extract the text of a file. Raises `SourceError`."""
        from ragistry.readers.extract import extract  # imports every reader

        return extract(path, pdf_engine=self.pdf_engine, limits=self.limits, ocr=self.ocr)

    def signature(self, name: str = "") -> bytes:
        """Return the settings that affect the chunks of a file with this name.

        Raises `ConfigError` if its reader does not exist.
        """
        parts: list[object] = [
            self.chunk_size,
            self.chunk_overlap,
            self.fit,
            self.pdf_engine,
            self.headings,
            self.language == AUTO,
        ]
        if self.ocr and name.lower().endswith(".pdf"):
            parts.append(f"ocr {self.ocr}")
        if name and self.version > 1:
            parts.append(f"readers {self.version}")
        parts += [f"reader {reader.version()}" for reader in added_readers(suffix_of(name)).values()]
        return "/".join(map(str, parts)).encode()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to ingest, and its name in the collection. ``real_path``: the path without links, if it is known."""

    path: str
    source_file: str
    metadata: SourceMetadata = field(default=NO_METADATA, kw_only=True)
    real_path: str = field(default="", kw_only=True, compare=False, repr=False)

    @property
    def place(self) -> str:
        """Path that distinguishes the source from others of the same name."""
        return self.real_path or (os.path.realpath(self.path) if self.path else "")

    @property
    def shown(self) -> str:
        """The source as the user named it."""
        return self.path or self.source_file

    def open(self) -> BinaryIO:
        """Open the file. Raises `SourceError` or `OSError`."""
        return Path(self.path).open("rb")

    def digest(self, limits: ExtractLimits) -> bytes | None:
        """Return what identifies the content; None if the file is unreadable, which the reader reports."""
        path = Path(self.path)
        try:
            status = path.stat()
            if not S_ISREG(status.st_mode) or status.st_size > limits.bytes:
                return None
            with path.open("rb") as stream:
                return file_digest(stream, "sha256").hexdigest().encode()
        except (OSError, ValueError):
            return None

    def hash_of(self, digest: bytes, reading: ReadOptions) -> str:
        """Return a hash of the content with this `digest`, and of the settings."""
        return hash_of(digest, reading, self.path)

    def read(self, reading: ReadOptions) -> tuple[Extracted, bytes]:
        """Return the text, and the `digest` of the bytes that were read: the file may have changed.

        Raises:
            SourceError: The file cannot be read.
        """
        extracted = reading.extract(self.path)
        return extracted, extracted.digest.encode()


def hash_of(digest: bytes, reading: ReadOptions, name: str = "") -> str:
    """Return a hash of a content, and of the settings that affect the chunks of a file with this name."""
    return sha256(reading.signature(name) + digest).hexdigest()


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text to ingest, and its name in the collection."""

    text: str
    source_file: str
    path: str = ""
    place: str = ""
    metadata: SourceMetadata = field(default=NO_METADATA, kw_only=True)

    @property
    def shown(self) -> str:
        return self.source_file

    def digest(self, limits: ExtractLimits) -> bytes:  # noqa: ARG002
        return self.text.encode(errors="surrogatepass")

    def hash_of(self, digest: bytes, reading: ReadOptions) -> str:
        return hash_of(digest, reading)

    def read(self, reading: ReadOptions) -> tuple[Extracted, bytes]:
        numbers = range(1, self.text.count("\n") + 2)
        return Extracted(self.text, self.source_file, "text", line_numbers=numbers), self.digest(reading.limits)


@dataclass(frozen=True, slots=True)
class SourceBytes:
    """Bytes to ingest, such as a web page, and their name in the collection.

    The suffix of the name is the format. ``place`` is the URL; empty for bytes without URL, such as standard input.
    """

    data: bytes = field(repr=False)
    source_file: str
    place: str = ""
    path: str = ""
    metadata: SourceMetadata = field(default=NO_METADATA, kw_only=True)

    @property
    def shown(self) -> str:
        return self.place or self.source_file

    def digest(self, limits: ExtractLimits) -> bytes:  # noqa: ARG002
        return self.data

    def hash_of(self, digest: bytes, reading: ReadOptions) -> str:
        return hash_of(digest, reading, self.source_file)

    def read(self, reading: ReadOptions) -> tuple[Extracted, bytes]:
        return extract_bytes(self.data, self.source_file, self.shown, reading), self.data


IngestSource = SourceFile | SourceText | SourceBytes


def with_metadata(source: IngestSource, **changes: Any) -> IngestSource:
    """Return the source with changed fields of `SourceMetadata`."""
    return replace(source, metadata=replace(source.metadata, **changes))


def extract_bytes(data: bytes, name: str, shown: str, reading: ReadOptions) -> Extracted:
    """Extract the text of the bytes of a file.

    Args:
        data: The bytes.
        name: Name of the file; its suffix is the format.
        shown: Name in errors.
        reading: Settings for reading.

    Raises:
        SourceError: The bytes cannot be read.
    """
    with TemporaryDirectory(prefix="ragistry-") as folder:
        path = Path(folder) / f"source{suffix_of(name)}"
        path.write_bytes(data)
        try:
            return reading.extract(str(path))
        except SourceError as error:
            raise type(error)(str(error).replace(str(path), shown)) from error


@dataclass(frozen=True, slots=True)
class ToRead:
    """A source to read, in this process or on a worker.

    Attributes:
        source: The source.
        stored: Hash of the stored version; empty if there is none.
        is_kept: Whether the stored version stays if its content has not changed.
        seen: Size and time of the file when it was listed, for a worker that may see another file.
    """

    source: IngestSource
    stored: str = ""
    is_kept: bool = False
    seen: tuple[int, int, bool] | None = None


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The result of reading a source.

    Attributes:
        content: Hash of the content.
        chunks: The chunks; None if the source is unchanged.
        warnings: Warnings about the source.
        language: Detected language of the texts; empty if it was not detected.
        lost: Warnings about text that is in no chunk.
        is_read_again: Whether it differs from the stored version only in the version of the readers.
        vectors: The vectors that a worker has made, by `searched_text`.
    """

    content: str
    chunks: list[Chunk] | None = None
    warnings: tuple[str, ...] = ()
    language: str = ""
    lost: tuple[str, ...] = ()
    is_read_again: bool = False
    vectors: dict[str, Any] = field(default_factory=dict)


def read_source(item: ToRead, reading: ReadOptions, embedder: Embedder) -> ReadResult:
    """Read and chunk a source, before its collection is known.

    Raises:
        SourceError: The source cannot be read.
        ModelError: The tokens cannot be counted.
    """
    from ragistry.text.detection import detect_language

    source = item.source
    with reader_errors(source.shown):
        known = source.digest(reading.limits) if item.is_kept else None
        if known is not None and _content_hash(source, known, reading) == item.stored:
            return ReadResult(item.stored)
        extracted, digest = source.read(reading)
        content = _content_hash(source, digest, reading)
        chunks = chunks_of(extracted, reading, embedder)
        detected = detect_language([chunk.text for chunk in chunks]) if reading.language == AUTO else None
        language = "" if detected is None else analysis_language(detected.language)
        outside = _outside(extracted.text, chunks)
        earlier = (replace(reading, version=version) for version in range(1, reading.version))
        is_read_again = item.stored not in ("", content) and any(
            _content_hash(source, digest, one) == item.stored for one in earlier
        )
        return ReadResult(
            content, chunks, extracted.warnings + outside, language, extracted.lost + outside, is_read_again
        )


def _content_hash(source: IngestSource, digest: bytes, reading: ReadOptions) -> str:
    return source.metadata.combined(source.hash_of(digest, reading))


def _outside(text: str, chunks: Sequence[Chunk]) -> tuple[str, ...]:
    """Warn if too many characters of a text are in no chunk, except blanks."""
    gaps, end = [], 0
    for chunk in sorted(chunks, key=lambda chunk: int(chunk.metadata["start"])):
        gaps.append(text[end : chunk.metadata["start"]])
        end = max(end, chunk.metadata["end"])
    missing = len("".join("".join([*gaps, text[end:]]).split())) if chunks else 0
    if missing <= UNCHUNKED * len(text):
        return ()
    return (f"{missing:,} of its {len(text):,} characters are in no chunk; set another chunk_size",)


def look_at(path: str) -> tuple[int, int, bool] | None:
    """Return the size, modification time and readability of a file.

    A worker compares these values with its own, because a path may lead to another file on its machine.

    Returns:
        The values, or None if the file does not exist.
    """
    try:
        status = Path(path).stat() if path else None
    except (OSError, ValueError):
        return None
    return None if status is None else (status.st_size, status.st_mtime_ns, os.access(path, os.R_OK))


def chunks_of(extracted: Extracted, reading: ReadOptions, embedder: Embedder) -> list[Chunk]:
    """Split a source into chunks.

    ``token_count`` is the number of tokens of a chunk with its title and headings, as the model sees it.
    """
    from ragistry.chunking.chunker import chunk_extracted

    limit = embedder.fingerprint.max_tokens

    def measured(chunks: Sequence[Chunk]) -> list[int]:
        """Set the number of tokens, and return how many characters the pieces of each chunk may have.

        The number of characters per token varies, so it is measured on the chunk.
        """
        counts = embedder.count_tokens([searched_text(*chunk) for chunk in chunks]) if chunks else []
        for chunk, tokens in zip(chunks, counts, strict=True):
            chunk.metadata["token_count"] = tokens
        return [
            len(text) if not limit or tokens <= limit else max(SMALLEST, int(0.95 * len(text) * limit / tokens))
            for (text, _), tokens in zip(chunks, counts, strict=True)
        ]

    room = measured if reading.fit and limit else None
    chunks = chunk_extracted(extracted, reading.chunk_size, reading.chunk_overlap, room=room, headings=reading.headings)
    if room is None:
        measured(chunks)
    return chunks


def fetched(
    urls: Sequence[str], limits: ExtractLimits, *, allow_private: bool = False
) -> tuple[list[SourceBytes], list[Failure]]:
    """Fetch the URLs; return the pages and the failures.

    Args:
        urls: The URLs. They become the names of the pages.
        limits: Limits of web pages.
        allow_private: See `Fetcher`.
    """
    if not urls:
        return [], []
    from ragistry.fetch import Fetcher

    pages, failed = [], []
    with closing(Fetcher(limits, allow_private=allow_private)) as fetcher:
        for url in dict.fromkeys(url.partition("#")[0] for url in urls):
            try:
                page = fetcher.fetch(url)
            except SourceError as error:
                failed.append(Failure(url, error))
            else:
                pages.append(SourceBytes(page.data, url_name(url, page.suffix), url))
    return pages, failed


def source_file(path: str, name: str) -> SourceFile:
    """Create the source for a file.

    If its path is not UTF-8, reading the source raises an error.
    """
    real_path = os.path.realpath(path)
    return (SourceFile if _is_utf8(real_path) else MisnamedFile)(path, name, real_path=real_path)


class MisnamedFile(SourceFile):
    """A file whose path cannot be stored. It is not read."""

    __slots__ = ()

    def digest(self, limits: ExtractLimits) -> bytes | None:  # noqa: ARG002, the file is not read
        return None

    def read(self, reading: ReadOptions) -> tuple[Extracted, bytes]:  # noqa: ARG002
        wrong = next(part for part in Path(os.path.realpath(self.path)).parts if not _is_utf8(part))
        raise SourceError(f"'{_escaped(self.path)}': the name '{_escaped(wrong)}' is not UTF-8; rename it")


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escaped(name: str) -> str:
    return os.fsencode(name).decode(errors="backslashreplace")


def start_of(folder: str | Path) -> str:
    """Return the common prefix of all paths below a folder."""
    real = os.path.realpath(folder)
    return real if real.endswith(os.sep) else real + os.sep
