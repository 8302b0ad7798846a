"""The local store beside engines of one purpose: ``python -m benchmarks.engines [--quick] [--chunks N]``.

ChromaDB, LanceDB, sqlite-vec and usearch search vectors, tantivy and bm25s search words. All keep the same chunks on
disk and are asked the same in turn within one run, and one table has all ratios. Figures are CPU seconds of an ingest,
and the median CPU milliseconds of a search for 10 results with their texts; usearch and bm25s keep no texts and have no
conditions. Our ingest includes the index of words, whichever it is compared with. ChromaDB and usearch search
approximately with their defaults, so the recall stands beside; the others compare all vectors. A peer that is not
installed is named (`.[bench]` installs all).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.local_store_data import DIMENSION, Truth, query_texts, query_vectors, sources
from benchmarks.local_store_row import share
from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk, Where
from ragistry.utils.ids import id_of

RESULTS = 10
PART = "tenth"
"""The collection of filtered searches, which has a tenth of all sources."""
Search = Callable[[int], Sequence[str]]


class Side(NamedTuple):
    """A filled engine.

    ``spent``: CPU seconds of its ingest; ``search``: the ids of the results of a query; ``filtered``: in `PART` only.
    """

    name: str
    spent: float
    search: Search
    filtered: Search | None = None


class Corpus(NamedTuple):
    """What every engine gets, in the order of ``ids``."""

    ids: list[str]
    chunks: list[EmbeddedChunk]
    vectors: NDArray[np.float32]
    queries: NDArray[np.float32]
    texts: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4,000 chunks and 11 rounds")
    parser.add_argument("--chunks", type=int, help="number of chunks [20000]")
    options = parser.parse_args()
    number, rounds = options.chunks or (4_000 if options.quick else 20_000), 11 if options.quick else 51
    chunks = [chunk for source in sources(number) for chunk in source.chunks]
    vectors = np.stack([np.asarray(chunk.embedding, np.float32) for chunk in chunks])
    corpus = Corpus(
        [id_of(one.text, one.metadata) for one in chunks], chunks, vectors, query_vectors(rounds), query_texts(rounds)
    )
    truth = Truth(number)
    command = f"`python -m benchmarks.engines --chunks {number}`"
    print(f"{number:,} chunks of {DIMENSION} dimensions, median of {rounds} searches, CPU time: {command}\n")
    print("| work | Ragistry | peer | its figure | Ragistry / it | recall: ours | its |\n|---|--:|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for kind, makers in (("vectors", DENSE), ("words", LEXICAL)):
            sides = [_made(make, corpus, Path(folder), stack) for make in makers]
            compared = [side for side in sides if isinstance(side, Side)]
            _print("ingest, s", compared, [side.spent for side in compared])
            _print_searches(f"search by {kind}, ms", compared, rounds, corpus, truth if kind == "vectors" else None)
            if kind == "vectors":
                filtered = [side._replace(search=side.filtered) for side in compared if side.filtered]
                _print_searches(f"search in a tenth by {kind}, ms", filtered, rounds, corpus, truth, PART)
            for missing in sides:
                if isinstance(missing, str):
                    print(f"| {kind} | | {missing} | not installed | | | |")


def _made(make: Callable[..., Side], corpus: Corpus, folder: Path, stack: ExitStack) -> Side | str:
    """Return a filled engine, or its name if it is not installed."""
    own = folder / make.__name__
    own.mkdir()
    try:
        return make(corpus, own, stack)
    except ImportError:
        return make.__name__.replace("_", "-")


def _print_searches(
    work: str, sides: Sequence[Side], rounds: int, corpus: Corpus, truth: Truth | None, part: str | None = None
) -> None:
    times: list[list[float]] = [[] for _ in sides]
    recalls: list[list[float]] = [[] for _ in sides]
    for number in range(-1, rounds):  # the first in vain
        for side, spent, recall in zip(sides, times, recalls, strict=True):
            start = process_time()
            found = side.search(max(number, 0))
            if number >= 0:
                spent.append((process_time() - start) * 1e3)
                if truth is not None:
                    recall.append(truth.recall(corpus.queries[number], found, part))
    shown = [f"{np.mean(recall):.3f}" if recall else "" for recall in recalls]
    _print(work, sides, list(map(median, times)), shown)


def _print(work: str, sides: Sequence[Side], figures: Sequence[float], recalls: Sequence[str] = ()) -> None:
    """Print a row for each peer; the first side is ours."""
    recalls = recalls or [""] * len(sides)
    for side, figure, recall in list(zip(sides, figures, recalls, strict=True))[1:]:
        print(
            f"| {work} | {figures[0]:.2f} | {side.name} | {figure:.2f} | {share(figures[0] / figure)} | {recalls[0]} "
            f"| {recall} |",
            flush=True,
        )


def _filled(fill: Callable[[], object]) -> float:
    start = process_time()
    fill()
    return process_time() - start


def ragistry_vectors(corpus: Corpus, folder: Path, stack: ExitStack) -> Side:
    """Our store, with its index of words, which every ingest makes."""
    store = stack.enter_context(closing(LocalStore(folder, exclusive=True)))

    def fill() -> None:
        store.add_documents(corpus.chunks)
        store.flush()

    spent = _filled(fill)

    def search(number: int, where: Where | None = None) -> Sequence[str]:
        return [one.id for one in store.search(corpus.queries[number], RESULTS, where=where)]

    return Side("Ragistry", spent, search, partial(search, where={"collection": PART}))


def ragistry_words(corpus: Corpus, folder: Path, stack: ExitStack) -> Side:
    """Our store again; the time of its ingest includes the vectors."""
    side = ragistry_vectors(corpus, folder, stack)
    store = stack.enter_context(closing(LocalStore(folder)))
    return side._replace(search=lambda number: [one.id for one in store.search_text(corpus.texts[number], RESULTS)])


def chromadb(corpus: Corpus, folder: Path, stack: ExitStack) -> Side:  # noqa: ARG001, nothing to close
    import chromadb as chroma

    rows = chroma.PersistentClient(str(folder)).create_collection("chunks", metadata={"hnsw:space": "cosine"})

    def fill() -> None:
        for start in range(0, len(corpus.ids), 5_000):
            part = corpus.chunks[start : start + 5_000]
            rows.upsert(
                corpus.ids[start : start + 5_000],
                embeddings=[chunk.embedding for chunk in part],
                documents=[chunk.text for chunk in part],
                metadatas=[chunk.metadata for chunk in part],
            )

    def search(number: int, where: Any = None) -> Sequence[str]:
        wanted: Any = ["documents", "distances"]
        found: Any = rows.query([corpus.queries[number]], n_results=RESULTS, where=where, include=wanted)
        return found["ids"][0]  # type: ignore[no-any-return]

    return Side("ChromaDB", _filled(fill), search, partial(search, where={"collection": PART}))


def lancedb(corpus: Corpus, folder: Path, stack: ExitStack) -> Side:  # noqa: ARG001, nothing to close
    import lancedb as lance

    rows = [
        {"id": name, "vector": vector, "text": chunk.text, "collection": chunk.metadata["collection"]}
        for name, vector, chunk in zip(corpus.ids, corpus.vectors, corpus.chunks, strict=True)
    ]
    database = lance.connect(folder)
    spent = _filled(lambda: database.create_table("chunks", rows))
    table = database.open_table("chunks")

    def search(number: int, condition: str = "") -> Sequence[str]:
        query = table.search(corpus.queries[number]).distance_type("cosine").select(["id", "text", "_distance"])
        if condition:
            query = query.where(condition, prefilter=True)
        return [row["id"] for row in query.limit(RESULTS).to_list()]

    return Side("LanceDB", spent, search, partial(search, condition=f"collection = '{PART}'"))


def sqlite_vec(corpus: Corpus, folder: Path, stack: ExitStack) -> Side:
    import apsw  # the sqlite3 of some Pythons loads no extensions
    import sqlite_vec as extension

    database = stack.enter_context(closing(apsw.Connection(str(folder / "rows.db"))))
    database.enable_load_extension(True)
    extension.load(database)

    def fill() -> None:
        with database:
            database.execute("CREATE TABLE texts (id TEXT, text TEXT)")
            columns = f"vector float[{DIMENSION}] distance_metric=cosine, collection text"
            database.execute(f"CREATE VIRTUAL TABLE rows USING vec0({columns})")
            texts = zip(corpus.ids, (chunk.text for chunk in corpus.chunks), strict=True)
            database.executemany("INSERT INTO texts VALUES (?, ?)", texts)
            vectors = (
                (number, vector.tobytes(), chunk.metadata["collection"])
                for number, (vector, chunk) in enumerate(zip(corpus.vectors, corpus.chunks, strict=True), 1)
            )
            database.executemany("INSERT INTO rows (rowid, vector, collection) VALUES (?, ?, ?)", vectors)

    def search(number: int, condition: str = "") -> Sequence[str]:
        asked = (
            "SELECT texts.id, texts.text FROM (SELECT rowid, distance FROM rows WHERE vector MATCH ? AND k = ?"
            f"{condition}) AS near JOIN texts ON texts.rowid = near.rowid ORDER BY near.distance"
        )
        return [row[0] for row in database.execute(asked, (corpus.queries[number].tobytes(), RESULTS))]

    return Side("sqlite-vec", _filled(fill), search, partial(search, condition=f" AND collection = '{PART}'"))


def usearch(corpus: Corpus, folder: Path, stack: ExitStack) -> Side:  # noqa: ARG001, nothing to close
    from usearch.index import Index

    index = Index(ndim=DIMENSION, metric="cos", dtype="f32")

    def fill() -> None:
        index.add(np.arange(len(corpus.ids)), corpus.vectors)
        index.save(str(folder / "index"))

    spent = _filled(fill)
    return Side(
        "usearch", spent,
        lambda number: [corpus.ids[key] for key in index.search(corpus.queries[number], RESULTS).keys.tolist()],
    )  # fmt: skip


def tantivy(corpus: Corpus, folder: Path, stack: ExitStack) -> Side:  # noqa: ARG001, nothing to close
    import tantivy as engine

    builder = engine.SchemaBuilder()
    builder.add_text_field("id", stored=True)
    builder.add_text_field("text", stored=True, tokenizer_name="en_stem")
    index = engine.Index(builder.build(), path=str(folder))

    def fill() -> None:
        writer = index.writer()
        for name, chunk in zip(corpus.ids, corpus.chunks, strict=True):
            writer.add_document(engine.Document(id=name, text=chunk.text))
        writer.commit()
        writer.wait_merging_threads()

    spent = _filled(fill)
    index.reload()
    searcher = index.searcher()

    def search(number: int) -> Sequence[str]:
        hits = searcher.search(index.parse_query(corpus.texts[number], ["text"]), RESULTS).hits
        return [searcher.doc(address)["id"][0] for _, address in hits]

    return Side("tantivy", spent, search)


def bm25s(corpus: Corpus, folder: Path, stack: ExitStack) -> Side:  # noqa: ARG001, nothing to close
    import bm25s as engine

    index = engine.BM25()

    def fill() -> None:
        words = engine.tokenize([chunk.text for chunk in corpus.chunks], show_progress=False)
        index.index(words, show_progress=False)
        index.save(str(folder))

    def search(number: int) -> Sequence[str]:
        words = engine.tokenize([corpus.texts[number]], show_progress=False)
        found, _ = index.retrieve(words, k=RESULTS, show_progress=False)
        return [corpus.ids[row] for row in found[0].tolist()]

    return Side("bm25s", _filled(fill), search)


DENSE = (ragistry_vectors, chromadb, lancedb, sqlite_vec, usearch)
LEXICAL = (ragistry_words, tantivy, bm25s)


if __name__ == "__main__":
    main()
