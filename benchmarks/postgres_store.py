"""`PostgresStore`, and postings in SQL in place of its word index: ``python -m benchmarks.postgres_store [--quick]``.

Both ways to search words hold the same chunks, in one server, and are asked the same in turn; a figure is the median
and the 95th percentile of the rounds. The server runs without fsync, so that the disk of the machine does not count.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from statistics import median, quantiles
from time import perf_counter

import psycopg

from benchmarks.local_store_data import CHUNKS, Source, Truth, query_texts, query_vectors, sources
from ragistry.stores.postgres import PostgresStore
from ragistry.text.analysis import analyse, query_terms
from ragistry.types import EmbeddedChunk
from ragistry.utils.ids import chunk_id
from tests.postgres_server import postgres_server

FILTERS = ("half", "tenth", "p1", "p01")

POSTINGS = """
CREATE TABLE terms (term text PRIMARY KEY, number integer NOT NULL, chunks integer NOT NULL);
CREATE TABLE postings (term integer NOT NULL, chunk integer NOT NULL, times smallint NOT NULL, length smallint NOT NULL)
"""
POSTING_INDEXES = """
CREATE INDEX ON postings (term) INCLUDE (chunk, times, length);
CREATE INDEX ON postings (chunk);
"""
BM25 = """
SELECT chunk, sum(asked.weight * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / %(average)s))) AS score
FROM postings JOIN (
    SELECT number AS term, ln(1 + (%(count)s - chunks + 0.5) / (chunks + 0.5)) AS weight FROM terms
    WHERE term = ANY(%(terms)s)
) AS asked USING (term) GROUP BY chunk ORDER BY score DESC LIMIT 10
"""


class Postings:
    """The other way: a row for each term of each chunk."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute(POSTINGS)
        self.count, self.average = 0, 0.0

    def build(self, texts: Sequence[str]) -> None:
        numbers: dict[str, int] = {}
        frequencies: Counter[str] = Counter()
        with self.connection.cursor().copy("COPY postings FROM STDIN") as copy:
            for chunk, text in enumerate(texts):
                terms = Counter(analyse(text))
                frequencies.update(terms.keys())
                self.average += terms.total() / len(texts)
                for term, times in terms.items():
                    number = numbers.setdefault(term, len(numbers))
                    copy.write_row((number, chunk, times, terms.total()))
        with self.connection.cursor().copy("COPY terms FROM STDIN") as copy:
            for term, number in numbers.items():
                copy.write_row((term, number, frequencies[term]))
        self.count = len(texts)
        self.connection.execute(POSTING_INDEXES)
        self.connection.execute("VACUUM ANALYZE postings")

    def search(self, query: str) -> list[int]:
        given = {"average": self.average, "count": self.count, "terms": list(query_terms(query))}
        return [chunk for chunk, _ in self.connection.execute(BM25, given)]

    def replace(self, first: int, texts: Sequence[str]) -> None:
        """Replace the chunks from ``first`` on, with the counts of their terms."""
        with self.connection.transaction():
            chunks = list(range(first, first + len(texts)))
            self.connection.execute(
                "WITH gone AS (DELETE FROM postings WHERE chunk = ANY(%s) RETURNING term) UPDATE terms "
                "SET chunks = chunks - n FROM (SELECT term, count(*) AS n FROM gone GROUP BY term) AS g "
                "WHERE number = g.term",
                (chunks,),
            )
            rows, frequencies = [], Counter[str]()
            for chunk, text in zip(chunks, texts, strict=True):
                terms = Counter(analyse(text))
                frequencies.update(terms.keys())
                rows += [(term, chunk, times, terms.total()) for term, times in terms.items()]
            numbers = dict(
                self.connection.execute(
                    "UPDATE terms SET chunks = chunks + n FROM unnest(%s::text[], %s::int[]) AS a (word, n) "
                    "WHERE term = word RETURNING term, number",
                    (list(frequencies), list(frequencies.values())),
                ).fetchall()
            )
            with self.connection.cursor().copy("COPY postings FROM STDIN") as copy:
                for term, *row in rows:
                    copy.write_row((numbers[term], *row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="12,000 chunks and few rounds: about a minute")
    options = parser.parse_args()
    size, rounds = (12_000, 20) if options.quick else (50_000, 100)
    print(f"{os.cpu_count()} cores; {size:,} chunks of 384 numbers; medians (95th percentiles) of {rounds} rounds\n")
    print("| what | PostgresStore | postings in SQL |\n|---|--:|--:|")
    given = list(sources(size))
    with postgres_server() as server, closing(PostgresStore(server.url)) as store:
        measure_writing(store, given)
        measure_words(store, Postings(server.url), given, rounds)
        measure_vectors(store, Truth(size), rounds)


def row(what: str, ours: str, other: str = "") -> None:
    print(f"| {what} | {ours} | {other} |", flush=True)


def seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def times(works: Sequence[Callable[[], object]]) -> str:
    taken = [seconds(work) * 1000 for work in works]
    return f"{median(taken):.2f} ms ({quantiles(taken, n=20)[-1]:.2f})"


def measure_writing(store: PostgresStore, given: list[Source]) -> None:
    count = sum(len(source.chunks) for source in given)
    taken = seconds(lambda: [store.replace_source(*source) for source in given])
    row(f"write {len(given):,} sources", f"{count / taken:,.0f} chunks/s")


def measure_words(store: PostgresStore, postings: Postings, given: list[Source], rounds: int) -> None:
    texts = [text for source in given for text in _texts(source)]
    queries = query_texts(rounds)
    ours, other = seconds(lambda: store.search_text("word")), seconds(lambda: postings.build(texts))
    row("build the index of words", f"{ours:.1f} s", f"{other:.1f} s")
    number = {
        chunk_id(source.collection, source.source_file, index): place * CHUNKS + index
        for place, source in enumerate(given)
        for index in range(CHUNKS)
    }
    shared = sum(
        len({number[d.id] for d in store.search_text(query)}.intersection(postings.search(query))) for query in queries
    )
    row("BM25, 10 best", times([lambda q=q: store.search_text(q) for q in queries]),
        times([lambda q=q: postings.search(q) for q in queries]))  # fmt: skip
    row("of them in both", f"{shared / (10 * rounds):.1%}")
    row("BM25 in a tenth of the sources",
        times([lambda q=q: store.search_text(q, where={"collection": "tenth"}) for q in queries]))  # fmt: skip
    step = max(1, len(given) // rounds)
    picked = [(place, given[place]) for place in range(0, len(given), step)][:rounds]
    row(
        f"replace a source of {CHUNKS} chunks",
        times([lambda s=source: store.replace_source(*s[:2], _changed(s.chunks)) for _, source in picked]),
        times([lambda p=place, s=source: postings.replace(p * CHUNKS, _texts(s)) for place, source in picked]),
    )

    def replace_and_search(source: Source, query: str) -> None:
        store.replace_source(*source)
        store.search_text(query)

    pairs = zip(picked, queries, strict=False)
    row("replace a source and search words", times([lambda s=s, q=q: replace_and_search(s, q) for (_, s), q in pairs]))


def _texts(source: Source) -> list[str]:
    return [chunk.text for chunk in source.chunks]


def _changed(chunks: Sequence[EmbeddedChunk]) -> list[EmbeddedChunk]:
    return [chunk._replace(text=f"{chunk.text} again") for chunk in chunks]


def measure_vectors(store: PostgresStore, truth: Truth, rounds: int) -> None:
    queries = query_vectors(rounds)
    row("dense, 10 best, all compared", times([lambda q=q: store.search(q.tolist()) for q in queries]))
    row("build HNSW", f"{seconds(store.flush):.1f} s")
    recall = sum(truth.recall(q, [d.id for d in store.search(q.tolist())]) for q in queries) / rounds
    row(f"dense, 10 best, recall {recall:.3f}", times([lambda q=q: store.search(q.tolist()) for q in queries]))
    for name in FILTERS:
        where = {"collection": name}
        found = [[d.id for d in store.search(q.tolist(), where=where)] for q in queries]
        recall = sum(truth.recall(q, ids, name) for q, ids in zip(queries, found, strict=True)) / rounds
        row(f"dense in {name!r}, recall {recall:.3f}",
            times([lambda q=q, w=where: store.search(q.tolist(), where=w) for q in queries]))  # fmt: skip


if __name__ == "__main__":
    main()
