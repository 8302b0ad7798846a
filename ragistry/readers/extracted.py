"""The limits and the result of extraction."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragistry.errors import ConfigError, ExtractionError, RagistryError
from ragistry.readers.blocks import Place, reason_of

if TYPE_CHECKING:
    from ragistry.readers.markdown import Outline

FEW = 0.05
"""Share of the words or characters of a document above which missing ones are reported."""
FEW_WORDS, FEW_WORDS_SHARE = 10, 0.02
"""Words of a kind of content, and share of all words, from which missing ones are reported."""
Format = Literal["text", "markdown", "pdf"]


@dataclass(frozen=True, slots=True)
class ExtractLimits:
    """The limits of one file. A file over a limit is refused with an error that names the limit.

    Plain text and Markdown are read in this process, in time and memory that ``bytes`` limits.

    Attributes:
        seconds: Time to read a PDF, TeX or an office document, to fetch a web page, or to read a page by OCR.
        pages: Pages of a PDF.
        bytes: Size of any file.
        characters: Length of the text of a PDF, TeX or an office document.
        memory: Bytes of address space of the process that reads these, including libraries, if the system can limit it.

    Raises:
        ConfigError: A limit is not above 0.
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
    """The text of one source, with its metadata.

    Attributes:
        text: The text.
        source: The path as passed, or the name of a text.
        format: Format of the text.
        metadata: Metadata of the document: scalars and lists of text.
        warnings: Warnings about the text, one line each, including those in ``lost``.
        lost: Parts of the document that are missing in the text, one line each.
        digest: SHA-256 of the file's bytes, in hexadecimal.
        places: Offsets of the text, each with the place that begins there; a page of a PDF without text begins where
            the next one does.
        line_numbers: For each line of the text, the number of the line of the file that it is from; empty if unknown.
        outline: The outline of Markdown; see `extract.outlined`.
    """

    text: str
    source: str
    format: Format = "text"
    metadata: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    digest: str = field(default="", compare=False)
    places: tuple[tuple[int, Place], ...] = ()
    line_numbers: Sequence[int] = ()
    outline: Outline | None = field(default=None, compare=False, repr=False)


def are_many(missing: int, words: int) -> bool:
    """Return whether enough of the words of a document are missing to be reported."""
    return missing >= FEW_WORDS or missing > FEW_WORDS_SHARE * words


def read_at_most(path: str, limit: int) -> bytes:
    """Read a file; return more than ``limit`` bytes if it is larger, even if its file system reports another size."""
    with Path(path).open("rb") as stream:
        data = stream.read(min(os.fstat(stream.fileno()).st_size, limit) + 1)  # allocates this size
        while len(data) <= limit and (more := stream.read(1 << 20)):
            data += more
    return data


@contextmanager
def reader_errors(name: str) -> Iterator[None]:
    """Translate all errors of a reader in the block to an `ExtractionError` with the name of the source.

    For a damaged file, a reader may raise any exception. Libraries in Rust raise panics that are not an `Exception`.
    """
    try:
        yield
    except (RagistryError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise ExtractionError(
            f"{name!r} cannot be read ({reason_of(error)}); it may be damaged: open it in its program and save it again"
        ) from error
