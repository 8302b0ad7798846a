"""From a file or a text to chunks that are ready to be embedded: all that can fail on the source itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from os import fspath, walk
from pathlib import Path
from typing import Literal

from ragistry.errors import SourceError, SourceNotFoundError
from ragistry.library.report import Failure
from ragistry.protocols import Embedder, TokenCounter
from ragistry.types import Chunk, SourceInfo
from ragistry.utils.chunker import chunk_extracted
from ragistry.utils.extract import SUPPORTED_FORMATS, extract
from ragistry.utils.extracted import Extracted, ExtractLimits

SMALLEST = 50
"""Characters below which a chunk is not made to fit a model: what is still too long is reported instead."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How sources are read and cut: characters of a chunk and of its overlap, the PDF engine, the limits.

    ``fit``: nobody chose the size, so a source whose chunks are too long for the model is cut smaller.
    """

    chunk_size: int
    chunk_overlap: int
    fit: bool = False
    pdf_engine: Literal["pypdfium2", "pypdf"] = "pypdfium2"
    limits: ExtractLimits = field(default_factory=ExtractLimits)

    def signature(self) -> bytes:
        """What changes the chunks of an unchanged file."""
        return f"{self.chunk_size}/{self.chunk_overlap}/{self.fit}/{self.pdf_engine}".encode()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to take in, and its name in the collection."""

    path: str
    source_file: str

    def content_hash(self, reading: Reading) -> str:
        """Hash of the bytes and of how they are read; empty for what is no ordinary file."""
        path, digest = Path(self.path), sha256(reading.signature())
        try:
            if not path.is_file() or path.stat().st_size > reading.limits.bytes:
                return ""
            with path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
        except OSError:
            return ""  # whoever extracts the text says what is wrong with the file
        return digest.hexdigest()

    def extracted(self, reading: Reading) -> Extracted:
        """The file's text. Raises `SourceError`."""
        return extract(self.path, pdf_engine=reading.pdf_engine, limits=reading.limits)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text that somebody has in hand, and its name in the collection."""

    text: str
    source_file: str
    path: str = ""

    def content_hash(self, reading: Reading) -> str:
        return sha256(reading.signature() + self.text.encode(errors="surrogatepass")).hexdigest()

    def extracted(self, reading: Reading) -> Extracted:  # noqa: ARG002, the text is read already
        return Extracted(text=self.text, source=self.source_file, format="text")


def chunks_of(extracted: Extracted, reading: Reading, embedder: Embedder) -> list[Chunk]:
    """The chunks of a source, each with its ``token_count`` where the embedder counts tokens."""
    size, overlap = reading.chunk_size, reading.chunk_overlap
    chunks = chunk_extracted(extracted, size, overlap)
    if not isinstance(embedder, TokenCounter):
        return chunks
    counts = embedder.count_tokens([chunk.text for chunk in chunks])
    limit = embedder.fingerprint.max_tokens
    while reading.fit and limit and size > SMALLEST and max(counts, default=0) > limit:
        # Characters a token differ by language and by subject: what is too long says by how much.
        smaller = max(SMALLEST, int(size * 0.95 * limit / max(counts)))
        size, overlap = smaller, overlap * smaller // size
        chunks = chunk_extracted(extracted, size, overlap)
        counts = embedder.count_tokens([chunk.text for chunk in chunks])
    for chunk, count in zip(chunks, counts, strict=True):
        chunk.metadata["token_count"] = count
    return chunks


def one_file(path: str | Path) -> SourceFile:
    """A file by itself; its name in the collection is its bare name."""
    return SourceFile(fspath(path), Path(path).name)


@dataclass(frozen=True, slots=True)
class Listing:
    """The readable files of a folder, and the folders below it that could not be listed."""

    files: list[SourceFile]
    failed: list[Failure]

    @property
    def complete(self) -> bool:
        """Whether a file that is not listed is not there."""
        return not self.failed


def list_folder(folder: str | Path) -> Listing:
    """Every file of a supported format below a folder, hidden ones left out, in the order of their names.

    Raises `SourceNotFoundError` where there is no such folder.
    """
    root = Path(folder)
    if not root.is_dir():
        raise SourceNotFoundError(f"no such folder: {fspath(folder)!r}; check the path")
    errors: list[OSError] = []
    files = [SourceFile(str(path), path.relative_to(root).as_posix()) for path in sorted(_visible(root, errors))]
    return Listing(files, [_unlisted(error) for error in errors])


def readable_files(folder: str | Path) -> list[SourceFile]:
    """The files of `list_folder`."""
    return list_folder(folder).files


def files_of(folder: str | Path) -> list[SourceFile]:
    """The same; raises `SourceError` too where there is no such file."""
    files = readable_files(folder)
    if not files:
        raise nothing_readable(folder)
    return files


def vanished(folder: str | Path, files: Iterable[SourceFile], stored: Iterable[SourceInfo]) -> list[str]:
    """The names of the sources that were taken in from a folder and are no longer among its files."""
    present, root = {file.source_file for file in files}, Path(folder).resolve()
    return [
        info.source_file
        for info in stored
        if info.source_file not in present and info.source_path and Path(info.source_path) == root / info.source_file
    ]


def nothing_readable(folder: str | Path) -> SourceError:
    """What is wrong with a folder that holds nothing to take in."""
    return SourceError(f"no readable files in {fspath(folder)!r}; formats are {', '.join(SUPPORTED_FORMATS)}")


def _visible(root: Path, errors: list[OSError]) -> Iterator[Path]:
    for directory, folders, names in walk(root, onerror=errors.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and Path(name).suffix.lower() in SUPPORTED_FORMATS:
                yield Path(directory) / name


def _unlisted(error: OSError) -> Failure:
    reason = f"cannot list {error.filename!r}: {error.strerror}; make the folder readable"
    return Failure(str(error.filename), SourceError(reason))
