"""What phrases change in queries that quote something: ``python -m benchmarks.phrases [--quick]``.

The shared sets have some hundred queries with a title in double quotes. Each is ranked with its phrases and as mere
text, by `bm25`, `naive` and `hybrid`; nDCG@10 may not fall.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks.quality import DATA
from ragistry.evaluation.data.files import read_beir
from ragistry.evaluation.measures import parse_measures
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.stores.local import LocalStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.hybrid import HybridTechnique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.techniques.phrases import PhraseSearch
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.text.phrases import parse_query
from ragistry.types import EmbeddedChunk

SETS = {
    "claude-docs": "english", "xquad-en": "english", "xquad-de": "german", "xquad-es": "spanish",
    "xquad-zh": "chinese", "hugo-known-item": "english", "cisi": "english", "cacm": "english",
    "hotpotqa-pooled500": "english",
}  # fmt: skip
"""Sets with such queries, and their language."""
QUICK = ("claude-docs", "xquad-en")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    names = [name for name in (QUICK if parser.parse_args().quick else SETS) if (DATA / name).is_dir()]
    if not names:
        sys.exit(f"skipped: none of the sets is in {DATA}")
    print("| set | technique | queries | as text | change | worse | better |\n|---|---|--:|--:|--:|--:|--:|")
    every: dict[str, list[tuple[float, float]]] = {}
    for name in names:
        for technique, pairs in compared(name).items():
            every.setdefault(technique, []).extend(pairs)
            print_row(name, technique, pairs)
    for technique, pairs in every.items():
        print_row("all", technique, pairs)


def compared(name: str) -> dict[str, list[tuple[float, float]]]:
    """Return nDCG@10 of each query as text and with its phrases, by technique."""
    dataset, language, embedder = read_beir(DATA / name), SETS[name], MiniLMEmbedder()
    [measure] = parse_measures(["nDCG@10"])
    queries = {key: text for key, text in dataset.queries.items() if key in dataset.qrels and parse_query(text)}
    texts = {document.id: document.whole.strip() or "-" for document in dataset.corpus}
    found: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder, closing(LocalStore(Path(folder), language=language)) as store:
        ids = list(texts)
        for start in range(0, len(ids), 1_000):
            some = ids[start : start + 1_000]
            vectors = embedder.embed([texts[one] for one in some])
            places = ({"collection": name, "source_file": one, "chunk_index": 0} for one in some)
            store.add_documents(
                [EmbeddedChunk(texts[one], place, row) for one, place, row in zip(some, places, vectors, strict=True)],
                ids=some,
            )
        words, dense = BM25Technique({}, store=store), NaiveRAGTechnique({}, store=store, embedder=embedder)
        for technique in (words, dense, HybridTechnique({}, bases=[dense, words])):
            label = {words: "bm25", dense: "naive"}.get(technique, "hybrid")
            phrases = RegisteredTechnique(label, technique, phrases=PhraseSearch({"store": store}, language))
            for key, text in queries.items():
                before, after = (
                    measure.value(dataset.qrels[key], [document.id for document in one.retrieve(text, top_k=10)])
                    for one in (technique, phrases)
                )
                found.setdefault(label, []).append((before, after))
    return found


def print_row(name: str, technique: str, pairs: list[tuple[float, float]]) -> None:
    before, after = np.array(pairs).T
    worse, better = int((after < before).sum()), int((after > before).sum())
    print(
        f"| {name} | {technique} | {len(pairs)} | {before.mean():.4f} | {(after - before).mean():+.4f} | {worse} "
        f"| {better} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
