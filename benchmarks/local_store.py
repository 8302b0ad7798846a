"""`LocalStore` beside ChromaDB by itself: ``python -m benchmarks.local_store [--quick] [--sizes N …] [--keep DIR]``.

Both sides hold the same chunks and are asked the same in turn within one run; a figure is the median of the rounds.
``--keep`` builds into a folder once and uses it again. `scale` measures how the store grows.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from benchmarks.local_store_build import Built, Cost, build, raw_collection
from benchmarks.local_store_data import Truth, query_vectors
from benchmarks.local_store_process import memory_rows, reingest_row, search_command_row
from benchmarks.local_store_queries import FILTERS, arbitrary_rows, filtered_rows, list_rows, unfiltered_rows
from benchmarks.local_store_row import Row, print_table, share
from benchmarks.local_store_words import hybrid_row, words_rows

WORDS_SIZE, MEMORY_SIZE = 20_000, 100_000
INGEST = 0.4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4,000 chunks and few rounds: about a minute")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of chunks")
    parser.add_argument("--keep", type=Path, help="folder for what is built, to be used again by the next run")
    options = parser.parse_args()
    rounds = 11 if options.quick else 51
    sizes = options.sizes or ([4_000] if options.quick else [WORDS_SIZE, MEMORY_SIZE])
    with tempfile.TemporaryDirectory() as name:
        temporary = Path(name)
        folder = options.keep or temporary
        rows = [row for size in sizes for row in rows_of(build(folder, size), rounds, temporary)]
        rows += [reingest_row(temporary), search_command_row(temporary, 1_000 if options.quick else 10_000)]
        if MEMORY_SIZE in sizes:
            rows += memory_rows(build(folder, MEMORY_SIZE), temporary)
    print(f"{os.cpu_count()} cores; medians of {rounds} rounds\n")
    print_table(rows)


def rows_of(built: Built, rounds: int, temporary: Path) -> list[Row]:
    """All that is measured on one size."""
    queries, truth = query_vectors(rounds), Truth(built.chunks)
    rows = ingest_rows(built)
    with raw_collection(built.raw) as raw:
        rows += unfiltered_rows(built, raw, queries, truth)
        for name in FILTERS:
            rows += filtered_rows(built, raw, queries, truth, name)
        rows += [*arbitrary_rows(built, raw, queries), *list_rows(built, raw, rounds)]
    if built.chunks <= WORDS_SIZE:
        rows += [*words_rows(built, rounds, temporary), hybrid_row(built, rounds)]
    return rows


def ingest_rows(built: Built) -> list[Row]:
    """Written, and also searched as fast as it will be: what that needs is made by the first searches."""

    def row(work: str, ours: Cost) -> Row:
        raw = built.upserted
        ratio = ours.wall / raw.wall
        return Row(
            f"{built.chunks:,}: {work}", f"{ours.wall:.1f} s, {ours.cpu:.1f} of CPU",
            f"{raw.wall:.1f} s, {raw.cpu:.1f} of CPU", f"{share(ratio)}, by CPU {share(ours.cpu / raw.cpu)}",
            share(INGEST), ratio <= INGEST,
        )  # fmt: skip

    return [row("ingest", built.written), row("ingest, and all that searches need", built.searched)]


if __name__ == "__main__":
    main()
