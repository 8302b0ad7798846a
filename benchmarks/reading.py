"""Measure what the readers of documents find: planted phrases, and the shared files beside kreuzberg and pdftotext.

    python -m benchmarks.reading [--quick]

For each kind of content a script builds a file with twenty planted phrases. They are looked for in the text that
`extract` returns and by searches in a library, and the places of the results are compared with those of the phrases;
the files are those of the readers' tests. The shared files (``RAGISTRY_DATA``) are read by kreuzberg too: words that
only it finds are listed. PDFs are compared with ``pdftotext``, if it is installed. Times are CPU milliseconds of one
read in this process, the smallest of several. ``--quick`` reads only the planted files.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from kreuzberg import ExtractionConfig, detect_mime_type_from_path, extract_bytes_sync

from ragistry import open_workspace
from ragistry.chunking.places import place_at
from ragistry.library.service import DocumentService
from ragistry.readers.blocks import ReadDocument, words_of
from ragistry.readers.by_format import read_document
from ragistry.readers.extract import extract
from ragistry.readers.formats import SUPPORTED_FORMATS
from tests.readers.planted_files import OFFICE, PLANTED, Planted

ROUNDS = 5


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


def print_planted(folder: Path) -> int:
    """Print a line for each kind of content. Return the number of phrases that are missing or misplaced anywhere."""
    print("| format | content | planted | kreuzberg | read | found by a search | place right |")
    print("|---|---|--:|--:|--:|--:|--:|")
    faults = 0
    files = folder / "files"
    files.mkdir()
    (folder / "library").mkdir()
    with open_workspace(folder / "library") as workspace:
        library = workspace.library
        library.create_collection("planted")
        for one in [*OFFICE, *PLANTED]:
            path = files / f"planted{one.suffix}"
            path.write_bytes(one.make())
            read = found_in(extract(path).text, one.phrases)
            library.ingest_file(path, "planted")
            found, right = _searched(library, one)
            library.delete_source(path.name, "planted")
            counts = [read, found, *([] if one.place is None else [right])]
            faults += sum(len(one.phrases) - count for count in counts)
            cells = [one.suffix, one.kind, len(one.phrases), found_in(by_kreuzberg(path), one.phrases), read, found]
            print("|", " | ".join(map(str, cells)), "|", "-" if one.place is None else right, "|", flush=True)
    covered = {one.suffix for one in [*OFFICE, *PLANTED]}
    print(f"\nphrases that are not read, not found, or in another place: {faults}")
    print(f"formats without planted files: {', '.join(sorted({*SUPPORTED_FORMATS} - covered))}")
    print("not covered: pages read by OCR, encrypted files, places of formats with `-`\n")
    return faults


def _searched(library: DocumentService, planted_file: Planted) -> tuple[int, int]:
    """Return how many phrases a search for their words finds, and how many of these in their places."""
    found = right = 0
    for number, phrase in enumerate(planted_file.phrases):
        documents = library.search(f'"{phrase}"', technique="bm25").documents
        hits = [(one, " ".join(one.content.split())) for one in documents]
        one = next((one for one, content in hits if phrase in content), None)
        if one is None:
            continue
        found += 1
        if planted_file.place is not None:
            at = re.search(phrase.replace(" ", r"\s+") + r"(?!\d)", one.content)
            named = place_at(one, at.start() if at else 0)
            right += all(named.get(key) == value for key, value in planted_file.place(number).items())
    return found, right


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
        faults = print_planted(Path(folder))
    if not options.quick:
        print_shared(data / "office")
        print_pdfs(data / "pdfs")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
