"""The same chunks and vectors through Ragistry, LangChain, LlamaIndex and Haystack: ``python -m benchmarks.peers``.

The peers stand on ChromaDB, as their documentation says, each with its own way to take in what has not changed. Each
side has an environment of its own, made on the first run (several hundred MB each, from the package registry) and kept.
Vectors are handed over in a file, so nobody loads a model. All sides are open at once and take turns.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.peers.conversation import Conversation, SilentError
from benchmarks.peers.environment import FRAMEWORKS, Environment, UnavailableError
from benchmarks.peers.prepare import Right, prepare
from benchmarks.peers.table import Measured, print_tables

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ragistry" / "peers"
CHUNKS, ROUNDS = 20_000, 51
QUICK_CHUNKS, QUICK_ROUNDS = 4_000, 21
FILTERS = ("half", "p5")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_CHUNKS:,} chunks and {QUICK_ROUNDS} rounds")
    names = [framework.name.lower() for framework in FRAMEWORKS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--keep", type=Path, default=CACHE, help=f"folder of the environments [{CACHE}]")
    parser.add_argument("--install-timeout", type=float, default=1_800, help="seconds for each environment [1800]")
    parser.add_argument("--timeout", type=float, default=1_800, help="seconds for each answer [1800]")
    options = parser.parse_args()
    chunks, rounds = (QUICK_CHUNKS, QUICK_ROUNDS) if options.quick else (CHUNKS, ROUNDS)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        corpus = Path(name) / "corpus"
        prepare(corpus, chunks, rounds)
        sides = []
        for framework in FRAMEWORKS:
            if framework.name.lower() in options.only:
                try:
                    environment = Environment(framework, options.keep, options.install_timeout)
                except UnavailableError as error:
                    print(f"left out: {error}\n")
                    continue
                conversation = Conversation(environment, corpus, Path(name) / framework.module, options.timeout)
                sides.append(Measured(environment, stack.enter_context(conversation)))
        if not sides:
            sys.exit("no side can be measured here; see above")
        measure(sides, rounds, Right(corpus, chunks))
        print_tables(sides, chunks, rounds)


def measure(sides: list[Measured], rounds: int, right: Right) -> None:
    """Everything, step by step, all sides in turn; one that fails takes part no more."""
    for do in ("ingest", "ingest again", "open", "count"):
        each(sides, do)
    for number in range(-1, rounds):  # the first in vain
        each(sides, "query", number, right)
    for collection in FILTERS:
        for number in range(-1, rounds):
            each(sides, "filtered", number, right, collection)
    each(sides, "open_words")
    for number in range(-1, rounds):
        each(sides, "hybrid", number)


def each(sides: list[Measured], do: str, number: int = 0, right: Right | None = None, collection: str = "") -> None:
    """Ask every side the same, and write down what it took and how much of what is right it found."""
    for side in sides:
        if side.failure:
            continue
        name = f"{do} {collection}".strip()
        try:
            answer = side.conversation.ask(do.split()[0], number=max(number, 0), collection=collection)
        except SilentError as error:
            side.failure = str(error)
            continue
        if number >= 0:
            side.answers.setdefault(name, []).append(answer)
            if right is not None:
                found = right.recall(number, answer["found"], collection or None)
                side.recall.setdefault(name, []).append(found)


if __name__ == "__main__":
    main()
