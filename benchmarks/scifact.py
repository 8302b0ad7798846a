"""nDCG@10 of `naive` on SciFact, one chunk a document, against the published figure of its model (0.6451)."""

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

from ragistry import open_workspace
from ragistry.types import EmbeddedChunk

DATA = Path(os.environ.get("RAGISTRY_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
PUBLISHED = 0.6451


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
    texts = [f"{item['title']} {item['text']}" for item in corpus]
    with tempfile.TemporaryDirectory() as root, open_workspace(root) as workspace:
        start = time.perf_counter()
        vectors = workspace.embedder.embed(texts)
        workspace.store.add_documents(
            [
                EmbeddedChunk(text, {"doc": item["_id"]}, row)
                for text, item, row in zip(texts, corpus, vectors, strict=True)
            ],
            ids=[item["_id"] for item in corpus],
        )
        indexed = time.perf_counter() - start
        naive = workspace.technique("naive")
        queries = {item["_id"]: item["text"] for item in records(folder, "queries.jsonl") if item["_id"] in qrels}
        start = time.perf_counter()
        values = [ndcg([d.id for d in naive.retrieve(text, top_k=10)], qrels[name]) for name, text in queries.items()]
        searched = (time.perf_counter() - start) * 1000 / len(queries)
    score = sum(values) / len(values)
    print("| documents | queries | nDCG@10 | published | difference | index s | ms a query |\n" + "|--:" * 7 + "|")
    print(
        f"| {len(texts):,} | {len(values)} | {score:.4f} | {PUBLISHED} | {score - PUBLISHED:+.4f} "
        f"| {indexed:.0f} | {searched:.1f} |"
    )


if __name__ == "__main__":
    main()
