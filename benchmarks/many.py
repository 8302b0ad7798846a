"""Many queries in one call: `search_many` against a loop of `search`, and the event loop during `asearch`.

Both sides run in turns over the same short queries, each of which is new to the cache of queries.

usage: python -m benchmarks.many [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from benchmarks.serve_load import Texts, fill
from ragistry import Workspace, open_workspace
from ragistry.utils.limits import QUERIES

TECHNIQUES = ("naive", "hybrid", "bm25")
ROUNDS, QUICK_QUERIES = 3, 200
WORDS = 6
BEAT = 0.01
"""Seconds between two beats of the event loop."""
AT_ONCE = 16


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of a call."""
    cpu, wall = process_time(), perf_counter()
    call()
    return process_time() - cpu, perf_counter() - wall


def row(workspace: Workspace, texts: Texts, technique: str, number: int) -> str:
    """A technique as a row: CPU and wall seconds of the loop and of one call, and the medians of their ratios."""
    pairs = []
    for turn in range(ROUNDS):
        first, second = ([texts.text(WORDS) for _ in range(number)] for _ in range(2))

        def one_call(queries: list[str] = first) -> object:
            return workspace.search_many(queries, technique)

        def loop(queries: list[str] = second) -> object:
            return [workspace.search(query, technique) for query in queries]

        if turn % 2:
            many = timed(one_call)
            single = timed(loop)
        else:
            single = timed(loop)
            many = timed(one_call)
        pairs.append((single, many))
    cells = []
    for kind in range(2):
        sides = [median(pair[side][kind] for pair in pairs) for side in range(2)]
        cells.append(f"{sides[0]:.2f} | {sides[1]:.2f} | {median(a[kind] / b[kind] for a, b in pairs):.2f}")
    return f"| {technique} | {' | '.join(cells)} |"


async def longest_pause(workspace: Workspace, queries: list[str]) -> float:
    """The longest time between two beats of the event loop while these queries are searched, `AT_ONCE` at a time."""
    free = asyncio.Semaphore(AT_ONCE)
    pauses: list[float] = []

    async def search(query: str) -> None:
        async with free:
            await workspace.asearch(query)

    async def beat() -> None:
        while True:
            began = perf_counter()
            await asyncio.sleep(BEAT)
            pauses.append(perf_counter() - began)

    beating = asyncio.create_task(beat())
    await asyncio.gather(*map(search, queries))
    beating.cancel()
    return max(pauses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_QUERIES} queries in place of {QUERIES:,}")
    number = QUICK_QUERIES if parser.parse_args().quick else QUERIES
    texts = Texts()
    with TemporaryDirectory() as name, open_workspace(Path(name)) as workspace:
        fill(workspace, texts)
        for technique in TECHNIQUES:
            workspace.search(texts.text(WORDS), technique)
        print(f"{number:,} queries of {WORDS} words; medians of {ROUNDS} runs of each side in turns; seconds\n")
        print("| technique | CPU, loop | CPU, one call | loop / call | wall, loop | wall, one call | loop / call |")
        print("|---|--:|--:|--:|--:|--:|--:|")
        for technique in TECHNIQUES:
            print(row(workspace, texts, technique, number), flush=True)
        pause = asyncio.run(longest_pause(workspace, [texts.text(WORDS) for _ in range(number)]))
        print(f"\nlongest pause of the event loop during {number:,} asearch: {pause * 1000:.0f} ms")


if __name__ == "__main__":
    main()
