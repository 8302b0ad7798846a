"""The local store beside engines of one purpose: ``python -m benchmarks.engines [--quick] [--chunks N]``.

ChromaDB, LanceDB, sqlite-vec and usearch search vectors, tantivy and bm25s search words. All keep the same chunks on
disk and are asked the same in turn within one run. Figures are CPU seconds of an ingest, and the median CPU
milliseconds of a search for 10 results with their texts; usearch and bm25s keep no texts. ChromaDB and usearch search
approximately with their defaults, so the recall stands beside; the others compare all vectors. A peer that is not
installed is named (`.[bench]` installs all).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.local_store_data import DIMENSION, Truth, query_texts, query_vectors, sources
from benchmarks.local_store_row import share
from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk
from ragistry.utils.ids import id_of

RESULTS = 10
Search = Callable[[int], Sequence[str]]


class Side(NamedTuple):
    """A filled engine. ``spent``: CPU seconds of its ingest; ``search``: the ids of the results of a query."""

    name: str
    spent: float
    search: Search


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
    print(f"{number:,} chunks of {DIMENSION} dimensions; median of {rounds} searches; CPU time\n")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for title, makers in (("vectors", DENSE), ("words", LEXICAL)):
            sides = list(filter(None, (_made(make, corpus, Path(folder), stack) for make in makers)))
            _print(title, sides, rounds, corpus, truth if title == "vectors" else None)


def _made(make: Callable[..., Side], corpus: Corpus, folder: Path, stack: ExitStack) -> Side | None:
    own = folder / make.__name__
    own.mkdir()
    try:
        return make(corpus, own, stack)
    except ImportError as error:
        print(f"left out: {make.__name__.replace('_', '-')} is not installed ({error.name})", file=sys.stderr)
        return None


def _print(title: str, sides: Sequence[Side], rounds: int, corpus: Corpus, truth: Truth | None) -> None:
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    recalls: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(-1, rounds):  # the first in vain
        for side in sides:
            start = process_time()
            found = side.search(max(number, 0))
            if number >= 0:
                times[side.name].append((process_time() - start) * 1e3)
                if truth is not None:
                    recalls[side.name].append(truth.recall(corpus.queries[number], found))
    ours = sides[0]
    print(f"| {title} | ingest, CPU s | Ragistry / it | search, CPU ms | Ragistry / it | recall |")
    print("|---|--:|--:|--:|--:|--:|")
    for side in sides:
        search, recall = median(times[side.name]), recalls[side.name]
        print(
            f"| {side.name} | {side.spent:.2f} | {share(ours.spent / side.spent)} | {search:.2f} "
            f"| {share(median(times[ours.name]) / search)} | {f'{np.mean(recall):.3f}' if recall else ''} |"
        )
    print()


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
    return Side("Ragistry", spent, lambda number: [one.id for one in store.search(corpus.queries[number], RESULTS)])


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

    def search(number: int) -> Sequence[str]:
        found: Any = rows.query([corpus.queries[number]], n_results=RESULTS, include=["documents", "distances"])
        return found["ids"][0]  # type: ignore[no-any-return]

    return Side("ChromaDB", _filled(fill), search)


def lancedb(corpus: Corpus, folder: Path, stack: ExitStack) -> Side:  # noqa: ARG001, nothing to close
    import lancedb as lance

    rows = [
        {"id": name, "vector": vector, "text": chunk.text, "source": chunk.metadata["source_file"]}
        for name, vector, chunk in zip(corpus.ids, corpus.vectors, corpus.chunks, strict=True)
    ]
    database = lance.connect(folder)
    spent = _filled(lambda: database.create_table("chunks", rows))
    table = database.open_table("chunks")

    def search(number: int) -> Sequence[str]:
        query = (
            table.search(corpus.queries[number])
            .distance_type("cosine")
            .select(["id", "text", "_distance"])
            .limit(RESULTS)
        )
        return [row["id"] for row in query.to_list()]

    return Side("LanceDB", spent, search)


def sqlite_vec(corpus: Corpus, folder: Path, stack: ExitStack) -> Side:
    import apsw  # the sqlite3 of some Pythons loads no extensions
    import sqlite_vec as extension

    database = stack.enter_context(closing(apsw.Connection(str(folder / "rows.db"))))
    database.enable_load_extension(True)
    extension.load(database)

    def fill() -> None:
        with database:
            database.execute("CREATE TABLE texts (id TEXT, text TEXT)")
            database.execute(f"CREATE VIRTUAL TABLE rows USING vec0(vector float[{DIMENSION}] distance_metric=cosine)")
            texts = zip(corpus.ids, (chunk.text for chunk in corpus.chunks), strict=True)
            database.executemany("INSERT INTO texts VALUES (?, ?)", texts)
            vectors = ((number, vector.tobytes()) for number, vector in enumerate(corpus.vectors, 1))
            database.executemany("INSERT INTO rows (rowid, vector) VALUES (?, ?)", vectors)

    asked = (
        "SELECT texts.id, texts.text FROM (SELECT rowid, distance FROM rows WHERE vector MATCH ? AND k = ?) AS near "
        "JOIN texts ON texts.rowid = near.rowid ORDER BY near.distance"
    )
    spent = _filled(fill)
    return Side(
        "sqlite-vec", spent,
        lambda number: [row[0] for row in database.execute(asked, (corpus.queries[number].tobytes(), RESULTS))],
    )  # fmt: skip


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
