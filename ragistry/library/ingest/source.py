"""From a file or a text to chunks that are ready to be embedded: all that can fail on the source itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import BinaryIO, Literal

from ragistry.errors import SourceError
from ragistry.library.ingest.report import Failure
from ragistry.protocols import Embedder
from ragistry.types import Chunk
from ragistry.utils.breadcrumb import searched_text
from ragistry.utils.chunker import chunk_extracted
from ragistry.utils.documents.extract import extract
from ragistry.utils.documents.extracted import Extracted, ExtractLimits, reader_errors
from ragistry.utils.text.detection import detect_language
from ragistry.utils.text.languages import AUTO, analysis_language
from ragistry.utils.urls import url_name

SMALLEST = 50
"""Characters below which a chunk is not made to fit a model: what is still too long is reported instead."""
UNCHUNKED = 0.01
"""Share of the characters of a text that may be in no chunk; above it is said."""
ATTEMPTS = 3
"""How often a file is read that changes meanwhile, before it is given up for now."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How sources are read and cut: characters of a chunk and of its overlap, the PDF engine, the limits.

    ``fit``: nobody chose the size, so the chunks that are too long for the model are cut again. ``headings``: a chunk
    is searched by its title and headings as well (`utils.breadcrumb`). ``language``: of the words; ``auto``: each
    source by its own, which is detected. ``ocr``: the language in which OCR reads pages of PDFs; empty: it does not.
    """

    chunk_size: int
    chunk_overlap: int
    fit: bool = False
    pdf_engine: Literal["pypdfium2", "pypdf"] = "pypdfium2"
    limits: ExtractLimits = field(default_factory=ExtractLimits)
    headings: bool = True
    language: str = "english"
    ocr: str = ""

    def extract(self, path: str, on_read: Callable[[bytes], object] = lambda _: None) -> Extracted:
        """The text of a file. Raises `SourceError`."""
        return extract(path, pdf_engine=self.pdf_engine, limits=self.limits, ocr=self.ocr, on_read=on_read)

    def signature(self, name: str = "") -> bytes:
        """What changes the chunks of an unchanged file of this name."""
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
        return "/".join(map(str, parts)).encode()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to take in, and its name in the collection."""

    path: str
    source_file: str

    @property
    def place(self) -> str:
        """Where the source is, by which it is told from another of its name."""
        return os.path.realpath(self.path) if self.path else ""

    @property
    def shown(self) -> str:
        """The source as its owner named it."""
        return self.path or self.source_file

    def open(self) -> BinaryIO:
        """Its bytes. Raises `SourceError`, `OSError`."""
        return Path(self.path).open("rb")

    def content_hash(self, reading: Reading) -> str:
        """Hash of the bytes and of how they are read; empty for what is no ordinary file."""
        path, digest = Path(self.path), sha256(reading.signature(self.path))
        try:
            if not path.is_file() or path.stat().st_size > reading.limits.bytes:
                return ""
            with path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
        except (OSError, ValueError):
            return ""  # whoever extracts the text says what is wrong with the file
        return digest.hexdigest()

    def read(self, reading: Reading, content: str) -> tuple[Extracted, str]:
        """The file's text, and the `content_hash` of the very bytes that it was made of; ``content``: that of just now.

        Raises `SourceError`, also for a file that does not stay the same for as long as it takes to read it.
        """
        for _ in range(ATTEMPTS):
            changed_at, seen = self._changed_at(), list[bytes]()
            text = reading.extract(self.path, seen.append)
            if seen:
                return text, sha256(reading.signature(self.path) + seen[0]).hexdigest()
            earlier, content = content, self.content_hash(reading)  # another process read the bytes of a PDF
            if content == earlier and self._changed_at() == changed_at:
                return text, content
        raise SourceError(f"{self.path!r} changed while it was read; ingest it again")

    def _changed_at(self) -> tuple[int, int] | None:
        try:
            status = Path(self.path).stat()
        except (OSError, ValueError):
            return None
        return status.st_mtime_ns, status.st_ino


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text that somebody has in hand, and its name in the collection."""

    text: str
    source_file: str
    path: str = ""
    place: str = ""

    @property
    def shown(self) -> str:
        return self.source_file

    def content_hash(self, reading: Reading) -> str:
        return sha256(reading.signature() + self.text.encode(errors="surrogatepass")).hexdigest()

    def read(self, reading: Reading, content: str) -> tuple[Extracted, str]:  # noqa: ARG002, it is read already
        return Extracted(text=self.text, source=self.source_file, format="text"), content


@dataclass(frozen=True, slots=True)
class SourceBytes:
    """A file that is on no disk, such as a web page, and its name in the collection, whose suffix is its format.

    ``place``: its URL; empty where it has none, as on standard input.
    """

    data: bytes = field(repr=False)
    source_file: str
    place: str = ""
    path: str = ""

    @property
    def shown(self) -> str:
        return self.place or self.source_file

    def content_hash(self, reading: Reading) -> str:
        return sha256(reading.signature(self.source_file) + self.data).hexdigest()

    def read(self, reading: Reading, content: str) -> tuple[Extracted, str]:
        return extract_bytes(self.data, self.source_file, self.shown, reading), content


IngestSource = SourceFile | SourceText | SourceBytes


def extract_bytes(data: bytes, name: str, shown: str, reading: Reading) -> Extracted:
    """The text of bytes that are the file ``name``, called ``shown`` in errors. Raises `SourceError`."""
    with TemporaryDirectory(prefix="ragistry-") as folder:
        path = Path(folder) / f"source{PurePath(name).suffix}"
        path.write_bytes(data)
        try:
            return reading.extract(str(path))
        except SourceError as error:
            raise type(error)(str(error).replace(str(path), shown)) from error


@dataclass(frozen=True, slots=True)
class ToRead:
    """A source to read, wherever that is done.

    ``unchanged``: the `content_hash` with which it need not be read. ``seen``: `look_at` its path, where it was listed.
    """

    source: IngestSource
    unchanged: str = ""
    seen: tuple[int, int, bool] | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """What reading a source gave: the hash of its content, and its chunks; None where it is unchanged.

    ``language``: the analysis that suits its words; empty where it is not to be detected, or cannot be. ``lost``: the
    warnings that say what is in no chunk.
    """

    content: str
    chunks: list[Chunk] | None = None
    warnings: tuple[str, ...] = ()
    language: str = ""
    lost: tuple[str, ...] = ()


def read_listed(item: ToRead, reading: Reading, embedder: Embedder) -> Read | None:
    """`read_source`; None where the file that is found here is not the one that was listed."""
    return read_source(item, reading, embedder) if look_at(item.source.path) == item.seen else None


def read_source(item: ToRead, reading: Reading, embedder: Embedder) -> Read:
    """All that can be done with a source before its collection is known.

    Raises `SourceError`, whatever is wrong with the file, and `ModelError` where tokens cannot be counted.
    """
    with reader_errors(item.source.shown):
        content = item.source.content_hash(reading)
        if content and content == item.unchanged:
            return Read(content)
        extracted, content = item.source.read(reading, content)
        chunks = chunks_of(extracted, reading, embedder)
        detected = detect_language([chunk.text for chunk in chunks]) if reading.language == AUTO else None
        language = "" if detected is None else analysis_language(detected.language)
        outside = _outside(extracted.text, chunks)
        return Read(content, chunks, extracted.warnings + outside, language, extracted.lost + outside)


def _outside(text: str, chunks: Sequence[Chunk]) -> tuple[str, ...]:
    """What is said where characters of a text are in no chunk, but for blanks."""
    gaps, end = [], 0
    for chunk in sorted(chunks, key=lambda chunk: int(chunk.metadata["start"])):
        gaps.append(text[end : chunk.metadata["start"]])
        end = max(end, chunk.metadata["end"])
    missing = len("".join("".join([*gaps, text[end:]]).split())) if chunks else 0
    if missing <= UNCHUNKED * len(text):
        return ()
    return (f"{missing:,} of its {len(text):,} characters are in no chunk; set another chunk_size",)


def look_at(path: str) -> tuple[int, int, bool] | None:
    """Size, time of the last change, and whether it may be read; None for what is not there.

    A worker compares them: the same path may lead to another file on its machine, or to none.
    """
    try:
        status = Path(path).stat() if path else None
    except (OSError, ValueError):
        return None
    return None if status is None else (status.st_size, status.st_mtime_ns, os.access(path, os.R_OK))


def chunks_of(extracted: Extracted, reading: Reading, embedder: Embedder) -> list[Chunk]:
    """The chunks of a source, each with its ``token_count`` by the embedder."""
    size, overlap = reading.chunk_size, reading.chunk_overlap
    limit = embedder.fingerprint.max_tokens
    room = partial(_room, embedder, limit) if reading.fit and limit else None
    chunks = chunk_extracted(extracted, size, overlap, room=room, headings=reading.headings)
    counts = embedder.count_tokens([chunk.text for chunk in chunks])
    for chunk, count in zip(chunks, counts, strict=True):
        chunk.metadata["token_count"] = count
    return chunks


def _room(embedder: Embedder, limit: int, chunks: Sequence[Chunk]) -> list[int]:
    """How many characters the pieces of each chunk may have; one of ``limit`` tokens may stay whole.

    Characters a token differ by language and by subject: what is too long says by how much.
    """
    counts = embedder.count_tokens([searched_text(*chunk) for chunk in chunks])
    return [
        len(text) if count <= limit else max(SMALLEST, int(0.95 * len(text) * limit / count))
        for (text, _), count in zip(chunks, counts, strict=True)
    ]


def fetched(
    urls: Sequence[str], limits: ExtractLimits, *, allow_private: bool = False
) -> tuple[list[SourceBytes], list[Failure]]:
    """The pages at URLs, named after them, and those that cannot be had. ``allow_private``: see `Fetcher`."""
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
    """A file to ingest under a name, or one with the reason why it cannot be."""
    return (SourceFile if _is_utf8(os.path.realpath(path)) else MisnamedFile)(path, name)


class MisnamedFile(SourceFile):
    """A file with a path that cannot be stored. It is not read."""

    __slots__ = ()

    def content_hash(self, reading: Reading) -> str:  # noqa: ARG002, there is nothing to remember it by
        return ""

    def read(self, reading: Reading, content: str) -> tuple[Extracted, str]:  # noqa: ARG002
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
    """The common prefix of all paths below a folder."""
    real = os.path.realpath(folder)
    return real if real.endswith(os.sep) else real + os.sep
