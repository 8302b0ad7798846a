"""Do `read` and `grep` return what the texts contain, and how fast?

    python -m benchmarks.lines [--files 1000] [--chunks 100000 | --quick]

Files of all formats are taken in: the shared corpora (``RAGISTRY_DATA``), the fixtures, the manual, the planted files
of X out of random lines must be found by ``grep`` on exactly the lines on which Python finds them, in composed form.

Then a library of short synthetic passages without real vectors: the processor time of the first page of ``grep``, and
the passages that were read in it.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from unicodedata import normalize

from benchmarks.reading import planted
from ragistry import Workspace, open_workspace
from ragistry.evaluation import read_beir
from ragistry.readers.extract import extract
from ragistry.readers.formats import SUPPORTED_FORMATS
from ragistry.tools.grep import GrepRequest, grep
from ragistry.tools.reach import Reach
from ragistry.tools.read import ReadRequest, read
from ragistry.types import EmbeddedChunk
from ragistry.utils.quoting import visible
from tests.tools.test_reading import SCRIPTS

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("RAGISTRY_DATA", ROOT.parent / "shared" / "data"))
HASHED = "ragistry.testing.hashed:HashingEmbedder"
CORPORA = ("xquad-zh", "xquad-es", "xquad-de", "miracl-yo", "xquad-en", "cranfield", "cisi", "npl")
LITERALS = 300
LARGEST = 1_000_000
CHUNKS_A_SOURCE = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_000, help="0: none")
    parser.add_argument("--chunks", type=int, default=100_000, help="0: none")
    parser.add_argument("--quick", action="store_true", help="100 files and 10,000 chunks")
    options = parser.parse_args()
    if options.quick:
        options.files, options.chunks = 100, 10_000
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        if options.files:
            (Path(folder) / "files").mkdir()
            faults += check_files(Path(folder) / "files", options.files)
        if options.chunks:
            (Path(folder) / "many").mkdir()
            print_scan(Path(folder) / "many", options.chunks)
    sys.exit(1 if faults else 0)


def check_files(folder: Path, most: int) -> int:
    """Compare lines and literals with the extracted texts. Return the number of faults."""
    paths = list(make_files(folder / "in", most))
    formats = Counter(path.suffix for path in paths)
    print(f"{len(paths):,} files: {', '.join(f'{count} {suffix}' for suffix, count in formats.most_common())}")
    with open_workspace(folder, embed_model=HASHED) as opened:
        library = opened.library
        library.create_collection("files")
        for path in paths:
            try:
                library.ingest_file(path, "files")
            except Exception as error:  # noqa: BLE001, a file that is refused is a line
                print(f"refused: {path.name}: {str(error)[:100]}")
        texts = {info.source_file: extract(info.source_path).text for info in library.store.sources()}
        wrong = check_lines(opened, texts)
        return wrong + check_literals(opened, texts)


def make_files(folder: Path, most: int) -> Iterator[Path]:
    """Copy and write files with unlike names, at most ``most``."""
    folder.mkdir()
    written = 0

    def write(name: str, data: bytes) -> Path:
        nonlocal written
        written += 1
        path = folder / f"{written:04} {name}"
        path.write_bytes(data)
        return path

    for root in (DATA, ROOT / "fixtures", ROOT / "docs"):
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix in SUPPORTED_FORMATS and path.stat().st_size < LARGEST:
                yield write(path.name, path.read_bytes())
    for one in planted():
        yield write(f"planted{one.suffix}", one.make())
    for name, line in SCRIPTS.items():
        lines = [f"{line} {number}" + "  " * (number % 2) if number % 3 else "" for number in range(200)]
        yield write(f"{name}.txt", "\n".join(lines).encode())
    corpora = [read_beir(DATA / name).corpus for name in CORPORA if (DATA / name).is_dir()]
    for documents in zip(*corpora, strict=False):
        for document in documents:
            if written >= most:
                return
            if document.text.strip():
                yield write("document.txt", f"{document.title}\n\n{document.text}".encode())


def check_lines(opened: Workspace, texts: dict[str, str]) -> int:
    """Read the lines of each chunk together, and its first and last one alone. Return how many lines differ."""
    reach, checked, calls, wrong = Reach(opened.library), 0, 0, 0
    known = opened.store.sources()
    opened.store.sources = lambda _=None: known  # type: ignore[attr-defined] # they do not change, and are asked for often
    began = process_time()
    for source, text in texts.items():
        lines = text.split("\n")
        for chunk in opened.store.scan({"source_file": source}):
            first = text.count("\n", 0, chunk.metadata["start"]) + 1
            count = chunk.content.count("\n") + 1
            for start, most in ((first, count), (first, 1), (first + count - 1, 1)):
                found = read(reach, ReadRequest(source, line=start, lines=most, max_tokens=50_000))
                calls += 1
                for number, shown in enumerate(found.lines, start):
                    checked += 1
                    expected, told = visible(lines[number - 1]).strip(), shown.text.strip()
                    # Invisible characters are not shown, and blanks at ends of lines that no chunk has are lost.
                    # A line may be longer than an answer.
                    if shown.line != number or told != (expected[: len(told)] if found.next_column > 1 else expected):
                        wrong += 1
                        if wrong <= 10:
                            print(f"{source}, line {number}: {told[:80]!r}, not {expected[:80]!r}")
                if len(found.lines) < most and not found.notes:
                    wrong += 1
                    print(f"{source}, line {start}: {len(found.lines)} lines of {most}")
    spent = process_time() - began
    print(
        f"{calls:,} reads of {checked:,} lines of chunks: {wrong} wrong, {1e3 * spent / calls:.2f} CPU-ms each",
        flush=True,
    )
    return wrong


def check_literals(opened: Workspace, texts: dict[str, str]) -> int:
    """Find literals that are cut out of random lines. Return how many lines are missing or too many."""
    chance, reach, missing, extra, found = random.Random(0), Reach(opened.library), 0, 0, 0
    lines = {source: [normalize("NFC", line) for line in text.split("\n")] for source, text in texts.items()}
    full = {source: [line for line in found if len(line.strip()) > 3] for source, found in lines.items()}
    names = [source for source, found in full.items() if found]
    for _ in range(LITERALS):
        line = chance.choice(full[chance.choice(names)]).strip()
        at = chance.randrange(len(line) - 2)
        pattern = line[at : at + chance.choice((2, 3, 5, 8, 13, 30))].strip() or line[:3]
        pattern = chance.choice((pattern, normalize("NFD", pattern)))
        if any(ord(one) < 32 for one in pattern):
            continue
        wanted = normalize("NFC", pattern)
        expected = {(name, number) for name in names for number, text in enumerate(lines[name], 1) if wanted in text}
        told: set[tuple[str, int]] = set()
        cursor: str | None = None
        while cursor != "":
            page = grep(reach, GrepRequest(pattern, max_tokens=50_000, cursor=cursor))
            told |= {(one.source, each.line) for one in page.sources for each in one.lines}
            cursor = page.cursor
        if told != expected:
            print(f"{pattern!r}: missing {sorted(expected - told)[:3]}, extra {sorted(told - expected)[:3]}")
        missing, extra, found = missing + len(expected - told), extra + len(told - expected), found + len(told)
    print(f"{LITERALS} literals, {found:,} lines: {missing} missing, {extra} extra")
    return missing + extra


def print_scan(folder: Path, chunks: int) -> None:
    """Print the time of the first pages over synthetic passages."""
    words = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("n", "r", "st", "ld")]
    chance = random.Random(0)
    with open_workspace(folder, embed_model=HASHED) as opened:
        opened.library.create_collection("many")
        size = opened.embedder.fingerprint.dimension
        vector = [1.0, *[0.0] * (size - 1)]
        for number in range(chunks // CHUNKS_A_SOURCE):
            opened.store.add_documents(list(passages(f"{number:06}.txt", words, vector, chance)))
        reach = Reach(opened.library)
        print("| first page of | chunks | read | CPU-s | chunks a CPU-second |\n|---|--:|--:|--:|--:|")
        for request in (
            GrepRequest(r"zq[0-9]{4}x", regex=True), GrepRequest("Zq17x", ignore_case=True), GrepRequest("zq17x"),
            GrepRequest(r"(b|d)an \w+st$", regex=True), GrepRequest("ban", count=True),
        ):  # fmt: skip
            began = process_time()
            page = grep(reach, request)
            spent = process_time() - began
            kind = (
                "regex"
                if request.regex
                else "any case"
                if request.ignore_case
                else "count"
                if request.count
                else "literal"
            )
            cells = (f"{request.pattern} ({kind})".replace("|", "\\|"), f"{page.chunks:,}", f"{page.chunks_read:,}")
            print(f"| {' | '.join(cells)} | {spent:.2f} | {page.chunks_read / spent:,.0f} |", flush=True)


def passages(source: str, words: list[str], vector: list[float], chance: random.Random) -> Iterator[EmbeddedChunk]:
    """Yield the consecutive passages of a source of lines, 700 characters each."""
    start = feeds = 0
    for number in range(CHUNKS_A_SOURCE):
        text = "\n".join(" ".join(chance.choices(words, k=14)) for _ in range(12))
        metadata = {
            "collection": "many", "source_file": source, "source_hash": source, "chunk_index": number, "start": start,
            "end": start + len(text), "line_feeds": feeds, "line": feeds + 1, "ingested_at": 1.0,
        }  # fmt: skip
        yield EmbeddedChunk(text, metadata, vector)
        start, feeds = start + len(text) + 1, feeds + text.count("\n") + 1


if __name__ == "__main__":
    main()
