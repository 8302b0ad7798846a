"""Whether a source is found by its name: ``python -m benchmarks.names [--quick] [--data FOLDER]``.

Queries are one or two words of a file's name that at most three names have. The first half of them chose the weight of
names (`stores.local.words`), the second half judges it. Then the rank of the only passage with a word that is also in
many names, and nDCG@10 of the questions of sets whose documents are named like their titles, with and without names.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from statistics import mean

from benchmarks.quality import DATA
from ragistry import open_workspace
from ragistry.evaluation.data.files import read_beir
from ragistry.evaluation.measures import parse_measures, per_query
from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk
from ragistry.workspace import Workspace

FOLDERS = ("docs-etcd", "docs-hugo", "office")
SETS = ("cranfield", "cacm", "scifact", "claude-docs", "hugo-known-item", "xquad-en")
QUERIES, SEED, AT_MOST = 200, 54, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two sets, and words alone")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the shared corpora")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root, open_workspace(root) as workspace:
        for name in FOLDERS:
            workspace.library.create_collection(name, name)
            workspace.library.ingest_folder(options.data / name, name)
        print("| technique | in the first three, first half | second half |\n|---|--:|--:|")
        for technique in ("bm25",) if options.quick else ("bm25", "hybrid", "naive"):
            found = [is_found(workspace, technique, *one) for one in name_queries(workspace)]
            print(f"| {technique} | {mean(found[::2]):.3f} | {mean(found[1::2]):.3f} |")
    print("\n| names with the word | rank of the only passage with it, of 3,000 |\n|--:|--:|")
    for names in (1, 3, 5, 10, 50, 200):
        print(f"| {names} | {rank_of_unique(names)} |")
    print("\n| set | nDCG@10 without names | with |\n|---|--:|--:|")
    for name in SETS[:2] if options.quick else SETS:
        print(f"| {name} | {' | '.join(f'{value:.4f}' for value in ndcg(options.data / name))} |")


def name_queries(workspace: Workspace) -> list[tuple[str, str]]:
    """Return queries, each with the name of its source."""
    names = [info.source_file for info in workspace.store.sources()]
    counts = Counter(word for name in names for word in words_of(name))
    drawn = random.Random(SEED)
    drawn.shuffle(names)
    rare = [(name, sorted(word for word in words_of(name) if counts[word] <= AT_MOST)) for name in names]
    return [(" ".join(drawn.sample(own, min(2, len(own)))), name) for name, own in rare if own][:QUERIES]


def words_of(name: str) -> set[str]:
    stem = name.rpartition("/")[2].rpartition(".")[0].lower()
    return {word for word in re.split("[^a-z0-9]+", stem) if word and not word.isdigit()}


def is_found(workspace: Workspace, technique: str, query: str, name: str) -> bool:
    documents = workspace.search(query, technique, top_k=10).documents
    return name in list(dict.fromkeys(one.metadata["source_file"] for one in documents))[:3]


def rank_of_unique(names: int, total: int = 1_000) -> int:
    """Return the rank of the only passage with a word that also ``names`` names have."""
    drawn = random.Random(SEED)
    vocabulary = ["".join(drawn.choices("bdfgklmnprst", k=3)) + drawn.choice("aeiou") for _ in range(800)]
    chunks = []
    for number in range(total):
        name = f"{'quittance-' if number < names else ''}{drawn.choice(vocabulary)}-{number}.md"
        for index in range(3):
            text = " ".join(drawn.choices(vocabulary, k=80)) + " quittance" * ((number, index) == (total - 1, 1))
            chunks.append(chunk(text, name, index))
    with tempfile.TemporaryDirectory() as home, closing(LocalStore(home)) as store:
        store.add_documents(chunks)
        found = [document.content for document in store.search_text("quittance", names + 1)]
    return 1 + next(rank for rank, content in enumerate(found) if "quittance" in content)


def ndcg(folder: Path) -> list[float]:
    """Return nDCG@10 of a set without names, and with names made of titles, which are in the texts too."""
    dataset, values = read_beir(folder), []
    titles = {one.id: re.sub(r"\W+", "-", one.title.lower())[:150] for one in dataset.corpus}
    for names in (dict.fromkeys(titles, ""), titles):
        chunks = []
        for number, one in enumerate(dataset.corpus):
            name = f"{names[one.id]} {number}" if names[one.id] else f"{number:032x}"  # a hash is no name
            chunks.append(chunk(one.whole or "-", name, 0, id=one.id))
        with tempfile.TemporaryDirectory() as home, closing(LocalStore(home)) as store:
            store.add_documents(chunks)
            run = {
                query: [(one.metadata["id"], one.score) for one in store.search_text(text)]
                for query, text in dataset.queries.items()
            }
        [found] = per_query(parse_measures(["nDCG@10"]), dataset.qrels, run).values()
        values.append(mean(found.values()))
    return values


def chunk(text: str, name: str, index: int, **metadata: str) -> EmbeddedChunk:
    known = {"collection": "c", "source_file": name, "chunk_index": index, "source_hash": ""}
    return EmbeddedChunk(text, known | metadata, [1.0])


if __name__ == "__main__":
    main()
