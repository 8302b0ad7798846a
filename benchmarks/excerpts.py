"""Does the visible part of a result answer? ``python -m benchmarks.excerpts [--quick]``.

Fifteen questions over the PDFs and the documentation of etcd. Of the first five results of each, the excerpt that a
terminal of 80 columns shows must hold a line that matches: a sentence with the most words of the question that any
sentence of the passage has.
"""

from __future__ import annotations

import argparse
import sys
import tempfile

from benchmarks.quality import DATA
from ragistry import open_workspace
from ragistry.presentation import body_of, excerpt, grouped
from ragistry.presentation.terminal import LINES
from ragistry.text.analysis import analyse, query_terms

QUESTIONS = {
    "pdfs": (
        "multi-head attention in the decoder",
        "how was the model trained",
        "which data sets are used in the experiments",
        "limitations of the method",
        "related work on neural networks",
    ),
    "docs-etcd": (
        "how do I restore a snapshot",
        "change the heartbeat interval",
        "add a member to a running cluster",
        "what hardware does etcd need",
        "enable authentication for users",
        "defragment the database",
        "compaction of the key space",
        "lease time to live",
        "watch a key for changes",
        "run etcd inside a container",
    ),
}
ROOM = LINES * 76


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the documentation only")
    sets = ["docs-etcd"] if parser.parse_args().quick else list(QUESTIONS)
    shown = held = first = 0
    with tempfile.TemporaryDirectory() as home, open_workspace(home) as opened:
        for name in sets:
            if not (DATA / name).is_dir():
                sys.exit(f"skipped: {name} is not in {DATA}")
            opened.library.create_collection(name)
            opened.library.ingest_folder(DATA / name, name)
        for name in sets:
            for query in QUESTIONS[name]:
                for hit in grouped(opened.search(query, collection=name).documents):
                    blocks = body_of(hit.document)
                    whole = [block.text for block in blocks]
                    part = [block.text for block in excerpt(blocks, query, "english", ROOM).blocks]
                    shown += 1
                    held += most(query, part) >= most(query, whole)
                    first += most(query, [" ".join(whole)[:400]]) >= most(query, whole)
    print(f"excerpts with a matching line: {held} of {shown}, {held / shown:.0%}")
    print(f"the first 400 characters in their place: {first} of {shown}, {first / shown:.0%}")


def most(query: str, texts: list[str]) -> int:
    """The words of the query that one sentence of the texts has at most."""
    terms = set(query_terms(query))
    sentences = [sentence for text in texts for sentence in text.replace("\n", ". ").split(". ")]
    return max((len(terms & set(analyse(sentence))) for sentence in sentences), default=0)


if __name__ == "__main__":
    main()
