"""The lexical index: nDCG@10 against published or computed figures, and speed beside bare tantivy, in one run.

    python -m benchmarks.lexical [--quick]

Bare tantivy indexes the same texts with its own default analyser and parses the same queries; both give the keys of
the ten best. The two sides take turns, query by query. The data are looked for in RAGISTRY_DATA, else in
../shared/data beside the repository; the figures of reference are those of its READMEs (k1 1.2, b 0.75).
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, median, quantiles
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np
import tantivy

from benchmarks.scifact import DATA, judgements, ndcg, records
from ragistry.stores.lexical import LexicalIndex
from ragistry.utils.analysis import analyse

PASSAGES = ("scifact", "hotpotqa-pooled500", "cranfield", "cisi", "cacm", "npl")
CHUNK = 830
SOURCE = 20
"""Chunks of a source, as they lie in a collection whose sources came between those of others."""
SPEED_BAR = 2.0


class Set(NamedTuple):
    name: str
    language: str
    reference: float | None
    bar: Callable[[float], bool] | None = None
    wanted: str = ""


def within(reference: float, tolerance: float) -> Callable[[float], bool]:
    return lambda score: abs(score - reference) <= tolerance


SETS = (
    Set("scifact", "english", 0.6789, within(0.6789, 0.01), "± .01"),
    Set("xquad-en", "english", 0.963, within(0.963, 0.005), "± .005"),
    Set("xquad-de", "german", 0.940, within(0.940, 0.005), "± .005"),
    Set("xquad-es", "spanish", 0.960, within(0.960, 0.005), "± .005"),
    Set("xquad-zh", "chinese", None, lambda score: score >= 0.95, "≥ .95"),
    Set("cranfield", "english", 0.376),
    Set("cisi", "english", 0.394),
    Set("cacm", "english", 0.521),
    Set("npl", "english", 0.436),
    Set("hotpotqa-pooled500", "english", 0.784),
    Set("hugo-known-item", "english", 0.591),
    Set("claude-docs", "english", 0.702),
    Set("miracl-yo", "none", 0.377),
)


def texts_of(name: str) -> dict[str, str]:
    return {item["_id"]: f"{item.get('title', '')} {item['text']}" for item in records(DATA / name, "corpus.jsonl")}


def quality(data: Set, root: Path) -> float:
    """nDCG@10 over the judged queries of the set."""
    corpus, qrels = texts_of(data.name), judgements(DATA / data.name)
    names = list(corpus)
    LexicalIndex.build(root / data.name, enumerate(corpus.values()), language=data.language)
    index = LexicalIndex(root / data.name, language=data.language)
    return mean(
        ndcg([names[key] for key in index.search(query["text"], 10)[0]], qrels[query["_id"]])
        for query in records(DATA / data.name, "queries.jsonl")
        if query["_id"] in qrels
    )


def chunks(count: int) -> list[str]:
    """Real English in pieces of 830 characters, as they come and then shuffled."""
    text = " ".join(text for name in PASSAGES for text in texts_of(name).values())
    pieces = [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)][:count]
    random.Random(0).shuffle(pieces)
    return pieces


def queries(count: int) -> list[str]:
    found = [item["text"] for name in PASSAGES[:3] for item in records(DATA / name, "queries.jsonl")]
    random.Random(1).shuffle(found)
    return found[:count]


class Bare:
    """Tantivy as its own documentation uses it."""

    def __init__(self, folder: Path, texts: list[str]) -> None:
        fields = tantivy.SchemaBuilder()
        fields.add_integer_field("key", indexed=True, fast=True)
        fields.add_text_field("text")
        folder.mkdir()
        self.index = tantivy.Index(fields.build(), str(folder))
        writer = self.index.writer(128_000_000, 1)
        for key, text in enumerate(texts):
            writer.add_document(tantivy.Document(key=key, text=text))
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()

    def search(self, query: str) -> list[int | float | bool | None]:
        searcher = self.index.searcher()
        parsed, _ = self.index.parse_query_lenient(query, ["text"])
        hits = searcher.search(parsed, 10, count=False).hits  # counting would cost it more
        return searcher.fast_field_values("key", [address for _, address in hits])


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    start = perf_counter()
    work()
    return (perf_counter() - start) * 1000


def row(name: str, ours: list[float], bare: list[float]) -> None:
    ratio = median(ours) / median(bare)
    p95, bare95 = quantiles(ours, n=20)[-1], quantiles(bare, n=20)[-1]
    print(f"| {name} | {median(ours):.3f} | {p95:.3f} | {median(bare):.3f} | {bare95:.3f} | {ratio:.2f} |")


def selections(count: int) -> Iterator[tuple[str, np.ndarray]]:
    dice = np.random.default_rng(0)
    for share in (0.5, 0.05, 0.005):
        size = int(count * share)
        yield f"filter {share:.1%}, scattered", np.sort(dice.choice(count, size, replace=False))
        firsts = np.sort(dice.choice(count // SOURCE, size // SOURCE, replace=False)) * SOURCE
        yield f"filter {share:.1%}, sources", np.add.outer(firsts, np.arange(SOURCE)).ravel()
        yield f"filter {share:.1%}, one run", np.arange(count // 3, count // 3 + size)


def speed(count: int, asked: list[str], root: Path) -> None:
    pieces = chunks(count)
    bare = Bare(root / "bare", pieces)
    LexicalIndex.build(root / "ours", enumerate(pieces))
    index = LexicalIndex(root / "ours")
    for query in asked[:50]:
        bare.search(query), index.search(query, 10)
    print(f"\n{len(pieces):,} chunks of {CHUNK} characters, {len(asked)} queries, top 10.")
    print(f"Bar without a filter: p50 at most {SPEED_BAR:g} times bare tantivy's. It has no filter beside it.")
    print("\n| query | ours p50 ms | p95 | bare tantivy p50 ms | p95 | ours / bare |\n|---|--:|--:|--:|--:|--:|")
    turns = [(timed(lambda q=q: index.search(q, 10)), timed(lambda q=q: bare.search(q))) for q in asked]
    unfiltered = [turn[1] for turn in turns]
    row("no filter", [turn[0] for turn in turns], unfiltered)
    for name, allowed in selections(len(pieces)):
        row(name, [timed(lambda q=q, a=allowed: index.search(q, 10, allowed=a)) for q in asked], unfiltered)
    letters = " ".join(pieces[:40])[:20_000]
    once = [timed(lambda: index.search(letters, 10)) for _ in range(20)]
    row("a query of 20,000 characters", once, [timed(lambda: bare.search(letters)) for _ in range(20)])
    work(index, pieces, root)


def work(index: LexicalIndex, pieces: list[str], root: Path) -> None:
    """What else the store asks of the index."""
    size = sum(len(text.encode()) for text in pieces) / 1e6
    start = process_time()
    for text in pieces:
        analyse(text)
    analysed = process_time() - start
    built = timed(lambda: LexicalIndex.build(root / "again", enumerate(pieces)))
    files = sum(path.stat().st_size for path in (root / "again").iterdir())
    print("\n| work | |\n|---|--:|")
    print(f"| analysis, MB per CPU-second | {size / analysed:.1f} |")
    print(f"| build, {len(pieces):,} chunks, s | {built / 1000:.2f} |")
    print(f"| files, MB | {files / 1e6:.1f} |")
    print(f"| open, ms | {typical(lambda: LexicalIndex(root / 'ours')):.1f} |")
    print(f"| check, ms | {typical(index.check):.1f} |")
    print(f"| all keys, ms | {typical(index.keys):.1f} |")
    for batch in (1, 100, 1000):
        some = list(enumerate(pieces[:batch]))
        print(f"| apply, {batch:,} that are there, ms | {typical(lambda s=some: index.apply(s, [])):.0f} |")
    print(f"| first search after an apply, ms | {median(first(index, pieces) for _ in range(5)):.2f} |")


def typical(work: Callable[[], object]) -> float:
    return median(timed(work) for _ in range(5))


def first(index: LexicalIndex, pieces: list[str]) -> float:
    index.apply([(0, pieces[0])], [])
    return timed(lambda: index.search(pieces[0][:80], 10))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the small sets, and 3,000 chunks")
    quick = parser.parse_args().quick
    if not DATA.is_dir():
        raise SystemExit(f"no data at {str(DATA)!r}; set RAGISTRY_DATA to the folder that has scifact/")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        print("| set | language | nDCG@10 | reference | difference | asked for | |\n|---|---|--:|--:|--:|--:|---|")
        for data in SETS:
            if quick and not data.name.startswith("xquad"):
                continue
            score = quality(data, root)
            against = f"{data.reference:.4f} | {score - data.reference:+.4f}" if data.reference else "- | -"
            verdict = "" if data.bar is None else "holds" if data.bar(score) else "MISSED"
            print(f"| {data.name} | {data.language} | {score:.4f} | {against} | {data.wanted} | {verdict} |")
        speed(*(3000, queries(50), root) if quick else (20_000, queries(500), root))


if __name__ == "__main__":
    main()
