"""Is each line of each chunk in the place that is named for it? ``python -m benchmarks.places [--quick]``.

The lines of the generated files say where they are. The pages of the shared PDFs (``RAGISTRY_DATA``) are read again by
pdfium, one by one: no other page may have more of the words of a line than the one that is named for it. A line of
which no page has half of the words, such as one that OCR read, is counted as unknown. ``--quick`` reads only the
generated files.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pypdfium2

from benchmarks.quality import DATA
from ragistry.chunking.chunker import chunk_document
from ragistry.chunking.places import place_at
from ragistry.errors import SourceError
from ragistry.readers.blocks import words_of
from ragistry.types import Chunk, Document
from tests.readers import placed_files

SIZES = (200, 1_000)
COUNTS = ([1] * 300, [0, 3, 40, 1, 0, 7] * 4, [200, 1])
"""Lines of the places of generated files: many tiny ones, mixed ones, a long one."""
_HYPHEN = re.compile("[-\u00ad\u2010\ufffe\x02]\\s*")
KNOWN = 0.5
"""Share of the words of a line that a page must have to be compared."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the generated files only")
    quick = parser.parse_args().quick
    print("| files | chunks | lines | unknown | in another place |\n|---|--:|--:|--:|--:|")
    wrong = 0
    with TemporaryDirectory() as folder:
        for kind in placed_files.MAKERS:
            wrong += _print_generated(Path(folder), kind)
    for path in () if quick else sorted((DATA / "pdfs").glob("*.pdf")):
        wrong += _print_pdf(path)
    sys.exit(1 if wrong else 0)


def _print_generated(folder: Path, kind: str) -> int:
    chunks = lines = 0
    found: list[str] = []
    for counts in COUNTS:
        path = folder / f"a.{kind}"
        places = placed_files.MAKERS[kind](path, counts)
        for size in SIZES:
            cut = chunk_document(path, size, size // 8)
            chunks += len(cut)
            lines += sum(chunk.text.count("\n") + 1 for chunk in cut)
            found += placed_files.misplaced(path, places, cut)
    print(f"| generated .{kind} | {chunks:,} | {lines:,} | 0 | {len(found)} |", flush=True)
    for line in found[:3]:
        print(f"  {line}", file=sys.stderr)
    return len(found)


def _print_pdf(path: Path) -> int:
    try:
        cuts = [chunk for size in SIZES for chunk in chunk_document(path, size, size // 8)]
    except SourceError:
        return 0  # encrypted or broken
    with pypdfium2.PdfDocument(path) as document:
        texts = [page.get_textpage().get_text_range() for page in document]
    pages = [words_of(text) | words_of(_HYPHEN.sub("", text)) for text in texts]
    lines, unknown, wrong = 0, 0, list[str]()
    for line, page in _lines(cuts):
        words = words_of(line)
        held = [(words & one).total() for one in pages]
        lines += bool(words)
        if max(held, default=0) < KNOWN * words.total():
            unknown += 1
        elif held[page - 1] < max(held):
            wrong.append(f"{line!r} is on page {held.index(max(held)) + 1}, not {page}")
    print(f"| {path.name} | {len(cuts):,} | {lines:,} | {unknown} | {len(wrong)} |", flush=True)
    for one in wrong[:3]:
        print(f"  {one}", file=sys.stderr)
    return len(wrong)


def _lines(chunks: Sequence[Chunk]) -> Iterator[tuple[str, int]]:
    for chunk in chunks:
        document, offset = Document(chunk.text, chunk.metadata, 1.0), 0
        for line in chunk.text.split("\n"):
            yield line, place_at(document, offset)["page"]
            offset += len(line) + 1


if __name__ == "__main__":
    main()
