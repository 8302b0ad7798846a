"""Replacements without text: taken in, they would leave nothing of the source that they replace, nor of its file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ragistry.errors import SourceError
from ragistry.library.ingest.source import Reading
from ragistry.library.service import DocumentService
from ragistry.utils.chunker import chunk_extracted
from ragistry.utils.documents.extract import extract


def blank_replacements(paths: Sequence[Path], collection: str, library: DocumentService) -> list[Path]:
    """Those of the files that have the name of a source of the collection, and nothing to search in them."""
    names = set(library.list_sources(collection))
    return [path for path in paths if path.name in names and path.is_file() and _is_blank(path, library.reading)]


def refusal(path: Path) -> SourceError:
    """Why such a file is not taken in."""
    return SourceError(
        f"{path.name!r} has no text; the earlier source of this name stays, delete it if you do not want it"
    )


def _is_blank(path: Path, reading: Reading) -> bool:
    if path.suffix.lower() == ".pdf":
        return False  # without text it fails anyway, and it takes long to read twice
    try:
        extracted = extract(path, pdf_engine=reading.pdf_engine, limits=reading.limits)
    except SourceError:
        return False  # the ingest says what is wrong with it, and leaves the source alone
    return not chunk_extracted(extracted, reading.chunk_size, reading.chunk_overlap)
