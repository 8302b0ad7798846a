"""Pages per CPU-second: pypdfium2 in its worker process, as Ragistry reads PDFs, against pypdf called directly.

Over the real PDFs of ``../shared/data/pdfs`` (or ``$RAGISTRY_DATA/pdfs``) that both can read. Both sides count the CPU
of their processes, the worker's start included; ours also rejoins hyphenated words. Run: ``python benchmarks/extract.py
[--quick]``.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
from collections.abc import Callable
from pathlib import Path

from pypdf import PdfReader

from ragistry.errors import ExtractionError
from ragistry.readers.extract import extract
from ragistry.readers.reader_process import close_workers

DATA = Path(os.environ.get("RAGISTRY_DATA") or Path(__file__).resolve().parents[1] / "../shared/data")
SLOW_FOR_PYPDF = "german-geometry-book.pdf"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"two rounds, without {SLOW_FOR_PYPDF}")
    quick = parser.parse_args().quick
    files = [file for file in sorted((DATA / "pdfs").glob("*.pdf")) if not (quick and file.name == SLOW_FOR_PYPDF)]
    if not files:
        raise SystemExit(f"no PDFs in {DATA / 'pdfs'}; set RAGISTRY_DATA")
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    readable = [file for file in files if with_pypdf(file) and with_ragistry(file)]
    rounds = 2 if quick else 3
    ours, pages = measure(with_ragistry, readable, rounds)
    theirs, _ = measure(with_pypdf, readable, rounds)
    print(f"{len(readable)} PDFs, {pages // rounds} pages, {rounds} round(s)\n")
    print("| reader | pages per CPU-second |\n|---|--:|")
    print(f"| ragistry.readers.extract (pypdfium2 in a worker) | {pages / ours:.0f} |")
    print(f"| pypdf in this process | {pages / theirs:.0f} |")
    print(f"| ratio | {theirs / ours:.1f} |")


def with_ragistry(file: Path) -> int:
    """Pages read; 0 where the file cannot be."""
    try:
        return len(extract(file).page_starts)
    except ExtractionError:
        return 0


def with_pypdf(file: Path) -> int:
    try:
        pages = PdfReader(file).pages
        return len(pages) if sum(len(page.extract_text()) for page in pages) else 0
    except Exception:  # noqa: BLE001 - on a damaged file, pypdf raises anything
        return 0


def measure(read: Callable[[Path], int], files: list[Path], rounds: int) -> tuple[float, int]:
    """CPU-seconds of this process and of those it started, and pages."""
    close_workers()
    before = cpu_seconds()
    pages = sum(read(file) for _ in range(rounds) for file in files)
    close_workers()
    return cpu_seconds() - before, pages


def cpu_seconds() -> float:
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    main()
