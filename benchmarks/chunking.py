"""Our chunker by what it lets retrieval find, beside published figures: ``python -m benchmarks.chunking [--quick]``.

Five long texts and 472 questions whose answers are ranges of characters (Smith and Troynikov, Evaluating Chunking
Strategies for Retrieval, Chroma technical report, 2024), all-MiniLM-L6-v2, exact search, the five nearest chunks of all
texts. ``auto`` is what a library does without settings.

A larger chunk finds more because more is shown. So settings are chosen by the recall within equally many characters,
on each half of the questions, and tested against ``auto`` on both. Vectors are kept between runs; each setting takes
some three minutes of CPU time for them. The data are looked for in RAGISTRY_DATA, else in ../shared/data.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np

from benchmarks.chunk_scores import ChunkScores, Piece, chunk_scores, token_ranges
from benchmarks.quality import paired_p
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.data.files import read_chunking_set
from ragistry.evaluation.statistics import holm
from ragistry.evaluation.systems.recorded_answers import RecordedEmbedder, cached_embedder
from ragistry.library.ingest.source import ReadOptions, chunks_of
from ragistry.models.minilm import MiniLMEmbedder, load_tokenizer
from ragistry.models.registry import chunking_of
from ragistry.readers.extracted import Extracted

DATA = Path(os.environ.get("RAGISTRY_DATA", Path(__file__).resolve().parents[1] / "../shared/data"))
CACHE = Path(os.environ.get("RAGISTRY_BENCH_CACHE", Path.home() / ".cache" / "ragistry")) / "chunking"
TOP_K = 5
"""As many chunks as the published figures are of."""
Offsets = dict[str, list[tuple[int, int]]]
"""Of each text, where its tokens are."""
SETTINGS = (
    "auto",
    "1000/150",
    "1000/0",
    "800/120",
    "700/0",
    "700/0+fit",
    "600/90",
    "500/0",
    "400/60",
    "400/0",
    "300/0",
)
SPELLING = "in characters; with +fit, chunks that are too long for the model are cut again; or auto"
QUICK_TEXTS, QUICK_SETTINGS = ("chatlogs", "state_of_the_union", "wikitexts"), ("auto", "700/0", "400/0")
CHARACTERS, DEPTH = 4_000, 50
"""What a reader is shown at most when settings are compared, and how many chunks are ranked for that."""
PUBLISHED = (
    ("Recursive, 200 tokens, overlap 0", 75.7, 6.5),
    ("TokenText, 250 tokens, overlap 125", 82.4, 3.5),
    ("Cluster, 200 tokens, overlap 0", 75.2, 7.2),
)
"""Recall and IoU in per cent; their standard error is about 1.8."""


class Result(NamedTuple):
    """One way to cut: its chunks, the scores of each question, and each question's recall within `CHARACTERS`."""

    name: str
    chunks: Sequence[Piece]
    tokens: float
    scores: list[ChunkScores]
    in_tokens: list[ChunkScores]
    within: list[float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK_TEXTS)}, and fewer settings")
    parser.add_argument("--settings", nargs="+", metavar="SIZE/OVERLAP", help=SPELLING)
    parser.add_argument(
        "--pieces", type=Path, nargs="*", default=[], help="JSON of others' chunks: [[text, start, end]]"
    )
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where vectors are kept [{CACHE}]")
    options = parser.parse_args()
    if not (DATA / "chunking-eval").is_dir():
        raise SystemExit(f"no chunking-eval in {str(DATA)!r}; set RAGISTRY_DATA to the folder that has it")
    logging.getLogger("ragistry.models").setLevel(logging.ERROR)  # how many chunks are too long is in the table
    asked = read_chunking_set(DATA / "chunking-eval")
    if options.quick:
        asked = only(asked, QUICK_TEXTS)
    embedder, tokens = cached_embedder(MiniLMEmbedder(), options.cache / "vectors.db"), offsets(asked)
    settings = options.settings or (QUICK_SETTINGS if options.quick else SETTINGS)
    ways = [(name, pieces_of(asked.texts, reading(name), embedder)) for name in settings]
    ways += [(path.stem, [Piece(*row) for row in json.loads(path.read_text())]) for path in options.pieces]
    results = [result_of(name, asked, chunks, embedder, tokens) for name, chunks in ways]
    print_scores(asked, results)
    print_halves(results)


def only(asked: Dataset, names: Sequence[str]) -> Dataset:
    """A few of the texts, and the questions on them."""
    spans = {query: by_text for query, by_text in asked.spans.items() if by_text.keys() <= set(names)}
    corpus = [document for document in asked.corpus if document.id in names]
    return Dataset(asked.name, corpus, {query: asked.queries[query] for query in spans}, {}, spans=spans)


def answer(asked: Dataset, query: str) -> list[Piece]:
    """The ranges that answer a question."""
    return [Piece(text, *span) for text, spans in asked.spans[query].items() for span in spans]


def pieces_of(texts: dict[str, str], reading: ReadOptions, embedder: RecordedEmbedder) -> list[Piece]:
    """The chunks that a library would make of the texts, as Markdown."""
    return [
        Piece(name, chunk.metadata["start"], chunk.metadata["end"])
        for name, text in texts.items()
        for chunk in chunks_of(Extracted(text, f"{name}.md", "markdown"), reading, embedder)
    ]


def retrieved(asked: Dataset, chunks: Sequence[Piece], embedder: RecordedEmbedder, top_k: int) -> list[list[Piece]]:
    """For each question the ``top_k`` chunks of all texts that are nearest to it, compared exactly."""
    rows = embedder.embed([asked.texts[text][start:end] for text, start, end in chunks])
    queries = embedder.embed(list(asked.judged.values()), role="query")
    order = np.argsort(-(queries @ rows.T), axis=1, kind="stable")[:, :top_k]
    return [[chunks[row] for row in best] for best in order.tolist()]


def scored(
    asked: Dataset, chunks: Sequence[Piece], found: Sequence[Sequence[Piece]], tokens: Offsets | None = None
) -> list[ChunkScores]:
    """The scores of every question, in their order; counted in tokens where ``tokens`` says where those are."""

    def counted(pieces: Sequence[Piece]) -> Sequence[Piece]:
        return pieces if tokens is None else token_ranges(pieces, tokens)

    everything = counted(chunks)
    return [
        chunk_scores(counted(answer(asked, query)), counted(best), everything)
        for query, best in zip(asked.judged, found, strict=True)
    ]


def reading(setting: str) -> ReadOptions:
    if setting == "auto":
        return ReadOptions(*chunking_of("minilm"), fit=True)
    sizes, _, fit = setting.partition("+")
    size, _, overlap = sizes.partition("/")
    return ReadOptions(int(size), int(overlap or 0), fit=bool(fit))


def offsets(asked: Dataset) -> Offsets:
    """Where the model's tokens are in each text."""
    tokenizer = load_tokenizer()
    return {name: tokenizer.encode(text, add_special_tokens=False).offsets for name, text in asked.texts.items()}


def result_of(
    name: str, asked: Dataset, chunks: Sequence[Piece], embedder: RecordedEmbedder, tokens: Offsets
) -> Result:
    ranked = retrieved(asked, chunks, embedder, DEPTH)
    best = [found[:TOP_K] for found in ranked]
    within = [
        chunk_scores(answer(asked, query), shown(found), ()).recall
        for query, found in zip(asked.judged, ranked, strict=True)
    ]
    lengths = MiniLMEmbedder().count_tokens([asked.texts[text][start:end] for text, start, end in chunks])
    return Result(
        name, chunks, fmean(lengths), scored(asked, chunks, best), scored(asked, chunks, best, tokens), within
    )


def shown(ranked: Sequence[Piece]) -> list[Piece]:
    """The best chunks that make up `CHARACTERS` characters; the last one is cut there."""
    left, taken = CHARACTERS, []
    for text, start, end in ranked:
        if left > 0:
            taken.append(Piece(text, start, min(end, start + left)))
            left -= end - start
    return taken


def print_scores(asked: Dataset, results: Sequence[Result]) -> None:
    print(f"{len(asked.judged)} questions, {TOP_K} chunks each; per cent, 95 % intervals by bootstrap\n")
    print(
        "| setting | chunks | mean characters | mean tokens | recall | precision | precision omega | IoU "
        "| recall, IoU in tokens |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for result in results:
        mean = fmean(end - start for _, start, end in result.chunks)
        recall, precision, omega, iou = (figure(column) for column in zip(*result.scores, strict=True))
        by_token = ", ".join(
            f"{100 * fmean(getattr(one, of) for one in result.in_tokens):.1f}" for of in ("recall", "iou")
        )
        print(
            f"| {result.name} | {len(result.chunks)} | {mean:.0f} | {result.tokens:.0f} | {recall} | {precision} | "
            f"{omega} | {iou} | {by_token} |"
        )
    for name, recall, iou in PUBLISHED:
        print(f"| published, over all five texts: {name} | | | | {recall} | | | {iou} | |")


def figure(values: Sequence[float]) -> str:
    draw = np.random.default_rng(0).integers(len(values), size=(10_000, len(values)))
    low, high = np.quantile(np.asarray(values)[draw].mean(axis=1), [0.025, 0.975])
    return f"{100 * fmean(values):.1f} ({100 * low:.1f} to {100 * high:.1f})"


def print_halves(results: Sequence[Result]) -> None:
    """Each half by itself: recall within equally many characters, tested against that of ``auto``; recall and IoU."""
    order = list(range(len(results[0].within)))
    random.Random(0).shuffle(order)
    halves = [sorted(order[::2]), sorted(order[1::2])]
    base = next((result for result in results if result.name == "auto"), results[0])
    pairs = [(result, half) for result in results if result is not base for half in halves]
    tests = holm([paired_p(at(result, half), at(base, half)) for result, half in pairs])
    ps = {(result.name, half[0]): f"{p:.3f}" for (result, half), p in zip(pairs, tests, strict=True)}
    print(f"\nRecall within {CHARACTERS:,} characters, and of {TOP_K} chunks, on the halves A and B of the questions")
    print(f"p: paired randomisation against {base.name}, Holm over all\n")
    print("| setting | within | A | B | p, A | p, B | recall A | recall B | IoU A | IoU B |\n|---|" + "--:|" * 9)
    for result in results:
        cells = [f"{100 * fmean(at(result, half)):.1f}" for half in halves]
        cells += [ps.get((result.name, half[0]), "") for half in halves]
        for of in ("recall", "iou"):
            cells += [f"{100 * fmean(getattr(result.scores[q], of) for q in half):.1f}" for half in halves]
        print(f"| {result.name} | {figure(result.within)} | " + " | ".join(cells) + " |")
    best = [max(results, key=lambda result, half=half: fmean(at(result, half))).name for half in halves]
    print(f"\nMost within {CHARACTERS:,} characters on half A: {best[0]}; on half B: {best[1]}.")


def at(result: Result, half: Sequence[int]) -> list[float]:
    return [result.within[question] for question in half]


if __name__ == "__main__":
    main()
