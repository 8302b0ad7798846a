"""Chunking speed and quality beside langchain-text-splitters, chonkie and semchunk, in one run.

    python benchmarks/chunker.py [--quick]

20 MB of real English (about 2 with --quick), chunks of 1,200 characters with their metadata, best of several rounds of
CPU time, one thread. A peer that is not installed is left out: pip install --editable ".[bench]". The data are looked
for in RAGISTRY_DATA, else in ../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ragistry.chunking.chunker import chunk_extracted
from ragistry.readers.extract import extract
from ragistry.readers.extracted import Extracted

DATA = Path(os.environ.get("RAGISTRY_DATA", Path(__file__).resolve().parents[1] / "../shared/data"))
PASSAGES = ("scifact", "hotpotqa-pooled500", "cranfield", "cisi", "cacm", "claude-docs", "xquad-en", "npl")
SIZE, OVERLAP = 1200, 200
RATIO_BAR, ENDS_BAR, SHAPE_BAR = 3.0, 98.0, 20.0

Piece = tuple[str, dict[str, Any]]
Chunker = Callable[[Extracted], list[Piece]]


class Result(NamedTuple):
    name: str
    overlap: int
    speed: float
    ends: float
    chunks: int


def documents(size: int) -> list[Extracted]:
    """Real English of about ``size`` bytes: passages joined to documents of 2 to 400 KB, and Markdown pages."""
    dice = random.Random(0)
    plain = (replace(page, format="text") for page in markdown_pages())  # the peers read no structure either
    found = [*_joined_passages(dice), *_whole_texts(), *plain]
    dice.shuffle(found)
    total, taken = 0, []
    for document in found:
        if total < size:
            taken.append(document)
            total += len(document.text.encode())
    return taken


def markdown_pages() -> Iterator[Extracted]:
    for page in _passages("hugo-known-item"):
        yield Extracted(page["text"], page["_id"], "markdown", metadata={"title": page["title"]})
    for path in sorted((DATA / "docs-etcd").rglob("*.md")):
        yield extract(path)


def _joined_passages(dice: random.Random) -> Iterator[Extracted]:
    for name in PASSAGES:
        parts = [f"{passage.get('title', '')}\n\n{passage['text']}".strip() for passage in _passages(name)]
        at = 0
        while at < len(parts):
            some = int(4 * 10 ** dice.uniform(0, 2))
            yield Extracted("\n\n".join(parts[at : at + some]), f"{name}-{at}.txt")
            at += some


def _whole_texts() -> Iterator[Extracted]:
    for path in sorted((DATA / "chunking-eval").glob("*.md.gz")):
        yield Extracted(gzip.decompress(path.read_bytes()).decode(), path.name.replace(".md.gz", ".txt"))


def _passages(name: str) -> list[dict[str, Any]]:
    packed = DATA / name / "corpus.jsonl.gz"
    raw = gzip.decompress(packed.read_bytes()) if packed.exists() else packed.with_suffix("").read_bytes()
    return [json.loads(line) for line in raw.splitlines()]


def hard_shapes(size: int) -> dict[str, str]:
    """Texts of about ``size`` bytes that chunkers stumble over."""
    dice = random.Random(0)
    chinese = "".join(passage["text"] for passage in _passages("xquad-zh"))
    english = "\n".join(document.text for document in documents(size))
    words = re.findall(r"\w+", english[: size // 4])
    emoji = ["👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "é", "ñ̃", "❤️", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "क्षि", "😀"]

    def filled(text: str) -> str:
        return text * (size // len(text.encode()) + 1)

    return {
        "no blanks": "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=size)),
        "Chinese": filled(chinese),
        "CRLF": english.replace("\n", "\r\n")[:size],
        "one endless line": filled(" ".join(words)),
        "identical paragraphs": filled("The same paragraph, again and again. It never changes.\n\n"),
        "emoji and combining marks": filled("".join(dice.choices(emoji, k=5000))),
        "emoji words": filled(" ".join("".join(dice.choices(emoji, k=4)) for _ in range(2000))),
        "lines of dots": filled("Contents " + "." * 300 + " 12\n"),
        "blanks": filled("word" + " " * 3000),
    }


def ragistry(overlap: int) -> Chunker:
    return lambda document: chunk_extracted(document, SIZE, overlap)


def langchain(overlap: int) -> Chunker:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(chunk_size=SIZE, chunk_overlap=overlap, add_start_index=True)

    def chunk(document: Extracted) -> list[Piece]:
        pieces = []
        for index, piece in enumerate(splitter.create_documents([document.text], [{"source": document.source}])):
            start = piece.metadata["start_index"]
            piece.metadata.update(chunk_index=index, end=start + len(piece.page_content))
            pieces.append((piece.page_content, piece.metadata))
        return pieces

    return chunk


def chonkie(overlap: int) -> Chunker | None:
    from chonkie import RecursiveChunker

    chunker = RecursiveChunker(tokenizer="character", chunk_size=SIZE)

    def chunk(document: Extracted) -> list[Piece]:
        return [
            (piece.text, _metadata(document, index, piece.start_index, piece.end_index))
            for index, piece in enumerate(chunker.chunk(document.text))
        ]

    return None if overlap else chunk  # it has no overlap


def semchunk(overlap: int) -> Chunker:
    from semchunk import chunkerify

    chunker = chunkerify(len, SIZE)

    def chunk(document: Extracted) -> list[Piece]:
        texts, offsets = chunker(document.text, offsets=True, overlap=overlap or None)
        return [
            (text, _metadata(document, index, start, end))
            for index, (text, (start, end)) in enumerate(zip(texts, offsets, strict=True))
        ]

    return chunk


def _metadata(document: Extracted, index: int, start: int, end: int) -> dict[str, Any]:
    return {"source": document.source, "chunk_index": index, "start": start, "end": end}


def measure(chunkers: list[Chunker], texts: list[Extracted], rounds: int) -> list[float]:
    """MB of UTF-8 per CPU-second of each chunker: its best round; they take turns."""
    size = sum(len(document.text.encode()) for document in texts) / 1e6
    best = [float("inf")] * len(chunkers)
    for _ in range(rounds):
        for at, chunker in enumerate(chunkers):
            began = time.process_time()
            for document in texts:
                chunker(document)
            best[at] = min(best[at], time.process_time() - began)
    return [size / seconds for seconds in best]


_ENDS_SENTENCE = re.compile(r"""[.!?…。]["')\]}*_»”]*$""")
_BLANK_LINE = re.compile(r"\s*?\n\s*?\n|\s*\Z")


def ends_well(text: str, piece: Piece) -> bool:
    """Whether a piece ends at a sentence or paragraph; every chunker is judged by the same rule."""
    start = piece[1].get("start", piece[1].get("start_index"))
    end = start + len(piece[0].rstrip())
    return bool(_ENDS_SENTENCE.search(text[max(start, end - 10) : end]) or _BLANK_LINE.match(text, end))


def ends(chunker: Chunker, texts: list[Extracted]) -> tuple[float, int]:
    """How many per cent of the pieces end well, and how many pieces there are."""
    judged = [ends_well(document.text, piece) for document in texts for piece in chunker(document)]
    return 100 * sum(judged) / len(judged), len(judged)


def compare(texts: list[Extracted], overlap: int, rounds: int) -> list[Result]:
    names, chunkers = [], []
    for make in (ragistry, chonkie, langchain, semchunk):
        try:
            chunker = make(overlap)
        except ImportError as missing:
            print(f"left out: {make.__name__} ({missing})\n")
            continue
        if chunker:
            names.append(make.__name__)
            chunkers.append(chunker)
    speeds = measure(chunkers, texts, rounds)
    return [
        Result(name, overlap, speed, *ends(chunker, texts))
        for name, chunker, speed in zip(names, chunkers, speeds, strict=True)
    ]


def show(title: str, texts: list[Extracted], rounds: int) -> None:
    results = [result for overlap in (0, OVERLAP) for result in compare(texts, overlap, rounds)]
    ours = {result.overlap: result.speed for result in results if result.name == "ragistry"}
    total = sum(len(document.text.encode()) for document in texts) / 1e6
    print(f"\n{title}: {total:.1f} MB in {len(texts)} documents, chunks of {SIZE} characters, metadata included\n")
    print("| chunker | overlap | MB per CPU-second | ours / it | ends at sentence or paragraph, % | chunks |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, overlap, speed, well, chunks in results:
        print(f"| {name} | {overlap} | {speed:.1f} | {ours[overlap] / speed:.1f} | {well:.1f} | {chunks} |")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--quick", action="store_true", help="a tenth of the text, one round")
    quick = arguments.parse_args().quick
    if not DATA.is_dir():
        raise SystemExit(f"no data at {str(DATA)!r}; set RAGISTRY_DATA to the folder that has scifact/")
    size, rounds = (2_000_000, 1) if quick else (20_000_000, 3)
    show("English", documents(size), rounds)
    print(f"\nBars: {RATIO_BAR:g} times the fastest peer; {ENDS_BAR:g} % of ends.")
    show("Markdown, ours with its headings and fences", list(markdown_pages()), rounds)
    print(f"\n| hard shape | MB per CPU-second, overlap 0 | overlap {OVERLAP} |\n|---|--:|--:|")
    for name, text in hard_shapes(size // 10).items():
        speeds = measure([ragistry(0), ragistry(OVERLAP)], [Extracted(text, "shape.txt")], rounds)
        print(f"| {name} | {speeds[0]:.0f} | {speeds[1]:.0f} |")
    print(f"\nBar: {SHAPE_BAR:g} MB per CPU-second.")


if __name__ == "__main__":
    main()
