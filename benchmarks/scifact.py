"""nDCG@10 on SciFact, one chunk a document, against published figures."""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragistry import Workspace, open_workspace
from ragistry.types import EmbeddedChunk

DATA = Path(os.environ.get("RAGISTRY_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
TECHNIQUES = ("naive", "bm25", "hybrid")
PUBLISHED = {"naive": 0.6451, "bm25": 0.6789}
"""all-MiniLM-L6-v2 (MTEB), and BM25 over one field (Pyserini)."""


def records(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The lines of a BEIR file, plain or gzipped."""
    packed = folder / f"{name}.gz"
    with (
        gzip.open(packed, "rt", encoding="utf-8")
        if packed.exists()
        else (folder / name).open(encoding="utf-8") as lines
    ):
        yield from map(json.loads, lines)


def judgements(folder: Path) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        qrels.setdefault(query, {})[document] = int(grade)
    return qrels


def ndcg(ranking: list[str], judged: dict[str, int], depth: int = 10) -> float:
    """Järvelin and Kekäläinen 2002, with trec_eval's gain: the grade itself."""
    gain = sum(judged.get(name, 0) / math.log2(rank + 2) for rank, name in enumerate(ranking[:depth]))
    ideal = sorted(judged.values(), reverse=True)[:depth]
    return gain / sum(grade / math.log2(rank + 2) for rank, grade in enumerate(ideal))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="index only the judged documents: not comparable")
    quick = parser.parse_args().quick
    folder = DATA / "scifact"
    if not folder.is_dir():
        print(f"skipped: no {folder}")
        return
    qrels = judgements(folder)
    wanted = {document for judged in qrels.values() for document in judged}
    corpus = [item for item in records(folder, "corpus.jsonl") if not quick or item["_id"] in wanted]
    queries = {item["_id"]: item["text"] for item in records(folder, "queries.jsonl") if item["_id"] in qrels}
    with tempfile.TemporaryDirectory() as root, open_workspace(root) as workspace:
        indexed = index(workspace, corpus)
        print(f"{len(corpus):,} documents indexed in {indexed:.0f} s; {len(queries)} queries\n")
        print("| technique | nDCG@10 | published | difference | ms a query |\n|---|--:|--:|--:|--:|")
        for name in TECHNIQUES:
            score, milliseconds = evaluate(workspace, name, queries, qrels)
            published = PUBLISHED.get(name)
            difference = f"{published:.4f} | {score - published:+.4f}" if published else " | "
            print(f"| `{name}` | {score:.4f} | {difference} | {milliseconds:.1f} |")


def index(workspace: Workspace, corpus: list[dict[str, Any]]) -> float:
    """Put each document into the store as one chunk; returns seconds."""
    start = time.perf_counter()
    texts = [f"{item['title']} {item['text']}" for item in corpus]
    vectors = workspace.embedder.embed(texts)
    chunks = [
        EmbeddedChunk(text, {"doc": item["_id"]}, row) for text, item, row in zip(texts, corpus, vectors, strict=True)
    ]
    workspace.store.add_documents(chunks, ids=[item["_id"] for item in corpus])
    return time.perf_counter() - start


def evaluate(
    workspace: Workspace, name: str, queries: dict[str, str], qrels: dict[str, dict[str, int]]
) -> tuple[float, float]:
    """Mean nDCG@10 of a technique, and milliseconds a query."""
    technique = workspace.technique(name)
    technique.retrieve("warm up")
    start = time.perf_counter()
    rankings = {key: [document.id for document in technique.retrieve(text, top_k=10)] for key, text in queries.items()}
    milliseconds = (time.perf_counter() - start) * 1000 / len(queries)
    return sum(ndcg(ranking, qrels[key]) for key, ranking in rankings.items()) / len(rankings), milliseconds


if __name__ == "__main__":
    main()
