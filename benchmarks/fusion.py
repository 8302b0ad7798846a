"""Fusion of vectors and words on every test set, against its two parts: ``python -m benchmarks.fusion [--quick]``.

Rules were compared on one random half of each set's queries (fixed seed); the other half reports. Words are analysed as
English everywhere, as by default, and the embedder is English: German, Spanish, Chinese and Yoruba show what a weak
part does. The two sets at the end are libraries of two collections that are searched together.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import paired_p
from benchmarks.scifact import judgements, records
from ragistry.evaluation.measures import parse_measures
from ragistry.evaluation.statistics import holm
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.protocols import Embedder
from ragistry.stores.local import LocalStore
from ragistry.techniques.hybrid import HybridTechnique
from ragistry.types import Document, EmbeddedChunk, Role

DATA = Path(os.environ.get("RAGISTRY_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
CACHE = Path(os.environ.get("RAGISTRY_BENCH_CACHE", Path.home() / ".cache" / "ragistry")) / "fusion"
SETS = (
    "scifact", "cranfield", "cisi", "cacm", "npl", "hotpotqa-pooled500", "xquad-en", "xquad-de", "xquad-es", "xquad-zh",
    "limit-small", "miracl-yo", "claude-docs", "hugo-known-item", "xquad-en+xquad-de", "hugo-known-item+xquad-zh",
)  # fmt: skip
QUICK = ("claude-docs", "limit-small", "xquad-en", "xquad-de", "xquad-en+xquad-de")
RULES: dict[str, dict[str, Any]] = {
    "rrf, k 60": {"fusion": "rrf", "gate": False},
    "rrf, k 5": {"fusion": "rrf", "k": 5, "gate": False},
    "min_max": {"fusion": "min_max", "gate": False},
    "dbsf": {"fusion": "dbsf", "gate": False},
    "rrf, k 5, gate": {"fusion": "rrf", "k": 5},
    "min_max, gate": {"fusion": "min_max"},
    "dbsf, gate": {},
}
DEFAULT = "dbsf, gate"
PARTS = ("naive", "bm25")
FETCH = 100
SEED = 7
[NDCG] = parse_measures(["nDCG@10"])

Values = dict[str, np.ndarray]
"""Rule → nDCG@10 of each query."""


@dataclass
class Ready:
    """A base whose answer is there already."""

    documents: list[Document]

    def retrieve(self, _query: str, *, top_k: int | None = None, where: Any = None) -> list[Document]:  # noqa: ARG002
        return self.documents[:top_k]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where vectors are kept [{CACHE}]")
    options = parser.parse_args()
    found: dict[str, Values] = {}
    for name in QUICK if options.quick else SETS:
        if all((DATA / part).is_dir() for part in name.split("+")):
            found[name] = measured(name.split("+"), options.cache)
            print(f"{name}: done", file=sys.stderr)
        else:
            print(f"skipped: {name} is not in {DATA}", file=sys.stderr)
    print_rules(found)
    print_default(found)


def measured(parts: Sequence[str], cache: Path) -> Values:
    """Every rule on every query of one set, or of several sets in one store."""
    values: dict[str, list[float]] = {rule: [] for rule in (*PARTS, *RULES)}
    embedder = MiniLMEmbedder()
    with tempfile.TemporaryDirectory() as folder, closing(LocalStore(Path(folder))) as store:
        for part in parts:
            corpus = {
                f"{part}/{item['_id']}": text
                for item in records(DATA / part, "corpus.jsonl")
                if (text := f"{item['title']} {item['text']}".strip())  # cranfield has two documents without text
            }
            vectors = embedded(embedder, list(corpus.values()), cache / f"{part}.documents.npy", "document")
            chunks = zip(corpus.values(), vectors, strict=True)
            store.add_documents([EmbeddedChunk(text, {"set": part}, row) for text, row in chunks], ids=list(corpus))
        for part in parts:
            qrels = {query: judged for query, judged in judgements(DATA / part).items() if max(judged.values()) > 0}
            queries = {
                item["_id"]: item["text"] for item in records(DATA / part, "queries.jsonl") if item["_id"] in qrels
            }
            vectors = embedded(embedder, list(queries.values()), cache / f"{part}.queries.npy", "query")
            for (query, text), vector in zip(queries.items(), vectors, strict=True):
                judged = {f"{part}/{document}": grade for document, grade in qrels[query].items()}
                for rule, ranking in ranked_by_rules(store, text, vector).items():
                    values[rule].append(NDCG.value(judged, ranking))
    return {rule: np.array(of_queries) for rule, of_queries in values.items()}


def embedded(embedder: Embedder, texts: Sequence[str], path: Path, role: Role) -> np.ndarray:
    """``(n, d)``, kept in a file: a large set takes many minutes."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, embedder.embed(texts, role=role))
    return np.asarray(np.load(path))


def ranked_by_rules(store: LocalStore, query: str, vector: np.ndarray) -> Mapping[str, list[str]]:
    """The ids of the ten best documents, by both parts and by every rule."""
    parts = [store.search(vector.tolist(), FETCH), store.search_text(query, FETCH)]
    bases = [Ready(part) for part in parts]
    rankings = dict(zip(PARTS, parts, strict=True)) | {
        rule: HybridTechnique(config, bases=bases).retrieve(query, top_k=10) for rule, config in RULES.items()
    }
    return {rule: [document.id for document in ranking[:10]] for rule, ranking in rankings.items()}


def choosing(queries: int) -> np.ndarray:
    """``(queries,)`` bool: the half on which rules were chosen."""
    half = np.zeros(queries, dtype=bool)
    half[np.random.default_rng(SEED).permutation(queries)[: queries // 2]] = True
    return half


def gain(values: Values, rule: str, half: np.ndarray) -> float:
    """Points of nDCG@10 above the better part."""
    return 100 * float(values[rule][half].mean() - max(values[part][half].mean() for part in PARTS))


def print_rules(found: Mapping[str, Values]) -> None:
    """Each rule on the half that chooses: points above the better part."""
    print("Points of nDCG@10 above the better part, on the half of the queries that chooses\n")
    print(f"| set | {' | '.join(RULES)} |\n|---|{'--:|' * len(RULES)}")
    gains = {
        name: [gain(values, rule, choosing(len(values[rule]))) for rule in RULES] for name, values in found.items()
    }
    for name, of_rules in gains.items():
        print(f"| {name} | {' | '.join(f'{one:+.1f}' for one in of_rules)} |")
    columns = list(zip(*gains.values(), strict=True))
    print(f"| worst | {' | '.join(f'{min(column):+.1f}' for column in columns)} |")
    print(f"| mean | {' | '.join(f'{np.mean(column):+.1f}' for column in columns)} |")


def print_default(found: Mapping[str, Values]) -> None:
    """The default on the other half, tested against both parts."""
    print(f"\nnDCG@10 on the other half; {DEFAULT} is the default; p: paired randomisation, Holm over the two parts\n")
    print(
        f"| set | queries | {' | '.join(PARTS)} | rrf, k 60 | default | above the better | p over naive | p over bm25 |"
    )
    print(f"|---|{'--:|' * 8}")
    above = 0
    for name, values in found.items():
        half = ~choosing(len(values[DEFAULT]))
        ps = holm([paired_p(values[DEFAULT][half].tolist(), values[part][half].tolist()) for part in PARTS])
        points = gain(values, DEFAULT, half)
        above += points > 0 and max(ps) < 0.05
        means = " | ".join(f"{values[rule][half].mean():.3f}" for rule in (*PARTS, "rrf, k 60", DEFAULT))
        print(f"| {name} | {half.sum()} | {means} | {points:+.1f} | {ps[0]:.4f} | {ps[1]:.4f} |")
    print(f"\nSignificantly above both parts: {above} of {len(found)} sets")
    if "scifact" in found:
        print(f"SciFact, all queries: {found['scifact'][DEFAULT].mean():.4f}")


if __name__ == "__main__":
    main()
