"""Compare stored PDFs with the text that the second PDF engine reads in their files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ragistry.errors import ExtractionError
from ragistry.library.ingest.source import ReadOptions, hash_of
from ragistry.plugins import resolve_object
from ragistry.types import SourceInfo

SECONDS = 60.0
"""No further PDF is compared after that time; the second engine is about ten times as slow as the first."""


class PdfComparison(NamedTuple):
    """The result of a comparison.

    Attributes:
        incomplete: Sources that lack words, each with a line about them.
        compared: Number of compared PDFs.
        left: Number of PDFs that were not compared, because the time was over.
    """

    incomplete: list[tuple[SourceInfo, str]]
    compared: int
    left: int


def compare_pdfs(sources: Sequence[SourceInfo], reading: ReadOptions) -> PdfComparison:
    """Compare the PDFs whose files are unchanged, the last ingested ones first.

    Args:
        sources: Sources of a store; those that are not files in PDF are ignored.
        reading: Settings for reading.
    """
    end = time.monotonic() + SECONDS
    pdfs = [info for info in sources if info.source_path.lower().endswith(".pdf") and Path(info.source_path).is_file()]
    incomplete: list[tuple[SourceInfo, str]] = []
    compare_engines = resolve_object("ragistry.readers.pdf:compare_engines")
    compared = 0
    for number, info in enumerate(sorted(pdfs, key=lambda info: -info.ingested_at)):
        if time.monotonic() > end:
            return PdfComparison(incomplete, compared, len(pdfs) - number)
        try:
            digest, line = compare_engines(info.source_path, reading.pdf_engine, reading.limits)
        except (ExtractionError, OSError):
            continue  # The second engine does not read every file that the first one reads.
        if hash_of(digest, reading, info.source_path) == info.source_hash:
            compared += 1
            if line:
                incomplete.append((info, line))
    return PdfComparison(incomplete, compared, 0)
