"""What extraction is allowed to spend, and what it hands to the chunker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from ragistry.errors import ConfigError, ExtractionError, RagistryError
from ragistry.utils.documents.blocks import Place

FEW = 0.05
"""Share of the words or characters of a document that may be missing in its text; above it is said."""
Format = Literal["text", "markdown", "pdf"]


@dataclass(frozen=True, slots=True)
class ExtractLimits:
    """What one file may cost; past a limit it is refused with an error that names the limit.

    ``seconds``: to read a PDF, TeX or an office document, to fetch a web page, to read a page by OCR. ``pages``: of a
    PDF. ``bytes``: of any file. ``characters``: of the text of a PDF, TeX or an office document. ``memory``: bytes of
    address space of the process that reads them, its libraries included (on systems that can limit it). Plain text and
    Markdown are read in this process, in a time and memory that ``bytes`` limits. Raises
    `ConfigError` unless all are above 0.
    """

    seconds: float = 60.0
    pages: int = 5_000
    bytes: int = 200_000_000
    characters: int = 50_000_000
    memory: int = 1_000_000_000

    def __post_init__(self) -> None:
        for name, value in ((limit.name, getattr(self, limit.name)) for limit in fields(self)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ConfigError(f"the limit {name!r} of extraction must be a number above 0, got {value!r}")


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of one source and where its parts came from.

    ``source``: the path as given, or the name of a text. ``page_starts``: the offset of each page's first character,
    of PDFs and slides; a page without text has the offset of the next one. ``metadata``: what the document says about
    itself, scalars and lists of text. ``warnings``: what a reader of the text should know, one line each; those that
    say what is missing in it are in ``lost`` too. ``digest``: SHA-256 of the file's bytes, in hexadecimal.
    ``page_labels``: number of each page as it is printed, empty where that is how it is counted; none if all are.
    ``places``: offsets of the text, each with the place that begins there, of documents other than PDFs.
    """

    text: str
    source: str
    format: Format = "text"
    page_starts: tuple[int, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    digest: str = field(default="", compare=False)
    places: tuple[tuple[int, Place], ...] = ()
    page_labels: tuple[str, ...] = ()


def read_at_most(path: str, limit: int) -> bytes:
    """The bytes of a file; more than ``limit`` of them if it has more, whatever its file system says of its size."""
    with Path(path).open("rb") as stream:
        data = stream.read(min(os.fstat(stream.fileno()).st_size, limit) + 1)  # so much memory is taken at once
        while len(data) <= limit and (more := stream.read(1 << 20)):
            data += more
    return data


@contextmanager
def reader_errors(shown: str) -> Iterator[None]:
    """Turn whatever a reader raises in the block into an `ExtractionError` that names the source.

    A damaged file can make a reader raise anything, so that a list of its exceptions would never be complete. Libraries
    in Rust raise panics that are no `Exception`.
    """
    try:
        yield
    except (RagistryError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise ExtractionError(
            f"{shown!r} cannot be read ({reason}); it may be damaged: open it in its program and save it again"
        ) from error
