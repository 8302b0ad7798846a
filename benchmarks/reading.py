"""Measure what the readers of documents find: planted phrases, and the shared files beside kreuzberg and pdftotext.

    python -m benchmarks.reading [--quick]

For each kind of content a script builds a file with twenty planted phrases, which are looked for in the text that
`extract` returns; the files are those of the readers' tests. The shared files (``RAGISTRY_DATA``) are read by kreuzberg
too, which read them all before: words that only it finds are listed. PDFs are compared with ``pdftotext``, if it is
installed. Times are CPU milliseconds of one read in this process, the smallest of several. ``--quick`` reads only the
planted files.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from kreuzberg import ExtractionConfig, detect_mime_type_from_path, extract_bytes_sync

from ragistry.utils.documents.blocks import ReadDocument, words_of
from ragistry.utils.documents.extract import extract
from ragistry.utils.documents.readers import read_document
from tests.utils import test_docx, test_odf, test_pptx, test_sheets

ROUNDS = 5


def planted() -> Iterator[tuple[str, str, bytes, list[str]]]:
    """Yield the suffix, the kind of content, a file and its twenty phrases."""
    for kind, make in test_docx.KINDS.items():
        yield ".docx", kind, make(), test_docx.PHRASES
    for kind, make in test_odf.KINDS.items():
        yield ".odp" if "slides" in kind else ".odt", kind, make(), test_odf.PHRASES
    for kind, put in test_pptx.KINDS.items():
        deck = test_pptx.deck_of([f"Slide of {number}" for number in range(20)])
        for slide, phrase in zip(deck.slides, test_pptx.PHRASES, strict=True):
            put(slide, phrase)
        yield ".pptx", kind, test_pptx.saved(deck), test_pptx.PHRASES
    for kind in test_sheets.KINDS:
        yield ".xlsx", kind, test_sheets.planted(kind), test_sheets.PHRASES


def by_kreuzberg(path: Path) -> str:
    try:
        config = ExtractionConfig(output_format="markdown", use_cache=False)
        return str(extract_bytes_sync(path.read_bytes(), detect_mime_type_from_path(str(path)), config=config).content)
    except Exception:  # noqa: BLE001, what it does not read counts as empty
        return ""


def found_in(text: str, phrases: Iterable[str]) -> int:
    text = " ".join(text.split())
    return sum(phrase in text for phrase in phrases)


def milliseconds(read: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = process_time()
        read()
        times.append(process_time() - start)
    return 1_000 * min(times)


def print_planted(folder: Path) -> None:
    print("| format | content | planted | kreuzberg | now |\n|---|---|--:|--:|--:|")
    missing = 0
    for suffix, kind, data, phrases in planted():
        path = folder / f"planted{suffix}"
        path.write_bytes(data)
        now = found_in(extract(path).text, phrases)
        missing += len(phrases) - now
        print(f"| {suffix} | {kind} | {len(phrases)} | {found_in(by_kreuzberg(path), phrases)} | {now} |")
    print(f"\nplanted phrases that were not found: {missing}\n")


def print_shared(folder: Path) -> None:
    print("| file | words | only kreuzberg | lost | ms kreuzberg | ms now |\n|---|--:|--:|---|--:|--:|")
    for path in sorted(folder.iterdir()):
        if path.suffix in (".pdf", ".md"):
            continue
        data, before = path.read_bytes(), by_kreuzberg(path)
        found = extract(path)
        only = (words_of(before) - words_of(found.text)).total()
        old = milliseconds(lambda path=path: by_kreuzberg(path))  # type: ignore[misc]
        new = milliseconds(lambda data=data, path=path: read_document(data, path.name, _no_pdf))  # type: ignore[misc]
        lost = "; ".join(found.lost) or "-"
        print(f"| {path.name} | {words_of(found.text).total():,} | {only} | {lost} | {old:.1f} | {new:.1f} |")
    print()


def _no_pdf(_: bytes) -> ReadDocument:
    return ReadDocument()


def print_pdfs(folder: Path) -> None:
    if shutil.which("pdftotext") is None:
        print("pdftotext is not installed (apt-get install poppler-utils)")
        return
    print("| PDF | words | missing | share | without their letters |\n|---|--:|--:|--:|--:|")
    total = missing = without = 0
    for path in sorted(folder.glob("*.pdf")):
        command = ["pdftotext", "-enc", "UTF-8", str(path), "-"]
        printed = subprocess.run(command, capture_output=True, timeout=120, check=False).stdout.decode(errors="replace")
        try:
            text = extract(path).text
        except Exception as error:  # noqa: BLE001, a file that is refused is a line
            print(f"| {path.name} | refused: {str(error)[:80]} | | |")
            continue
        wanted, known, letters = words_of(printed), words_of(text), letters_of(text)
        absent = {word: count for word, count in wanted.items() if word not in known}
        lacking = sum(count for word, count in absent.items() if letters_of(word) not in letters)
        total, missing, without = total + wanted.total(), missing + sum(absent.values()), without + lacking
        share = sum(absent.values()) / max(1, wanted.total())
        print(f"| {path.name} | {wanted.total():,} | {sum(absent.values())} | {share:.2%} | {lacking} |")
    share = missing / max(1, total)
    print(f"| all | {total:,} | {missing} | {share:.2%} | {without} ({without / max(1, total):.2%}) |")


def letters_of(text: str) -> str:
    """Return letters and digits only: pdftotext removes the hyphen of each word that breaks at one."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the planted files")
    options = parser.parse_args()
    data = Path(os.environ.get("RAGISTRY_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    with TemporaryDirectory() as folder:
        print_planted(Path(folder))
    if not options.quick:
        print_shared(data / "office")
        print_pdfs(data / "pdfs")


if __name__ == "__main__":
    main()
