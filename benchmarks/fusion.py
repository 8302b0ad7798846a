"""Choose the fusion of vectors and words with one test set left out: ``python -m benchmarks.fusion [--quick]``.

Sets of at least 1,000 passages with people's questions, and stand-ins for what the embedder does not know: German,
Spanish, Chinese and Yoruba under English settings, vectors of noise, queries of two words, and code by its docstrings.
For each set, the rule is chosen on the others: never significantly below the better part (p < .05), then the smallest
mean loss to it where it is above .005, then the highest mean. Each part gives 100 candidates.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from benchmarks.fusion_data import LARGEST, NOISE, PEOPLE, SAMPLE, SEED, STAND_INS, read_set
from benchmarks.quality import paired_p
from ragistry.evaluation.measures import parse_measures
from ragistry.evaluation.systems.recorded_answers import cached_embedder
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.stores.local import LocalStore
from ragistry.techniques.fusion import Fusion, Spread, fused, prominences, spreads_of
from ragistry.techniques.hybrid import gated
from ragistry.types import EmbeddedChunk

CACHE = Path(os.environ.get("RAGISTRY_BENCH_CACHE", Path.home() / ".cache" / "ragistry")) / "made"
QUICK = ("cranfield", "cranfield, two words", "xquad-de")
PARTS = ("naive", "bm25")
FETCH = 100
ASKED = 200
"""Maximum number of queries of a set."""
LOSS = 0.005
"""Mean loss to the better part that does not count."""
[NDCG] = parse_measures(["nDCG@10"])

Scores = Mapping[str, float]
Rule = Callable[[Sequence[Scores]], Scores]
Values = dict[str, np.ndarray]
"""Part or rule → nDCG@10 of each query."""


def by_prominence(scores: Sequence[Scores], spreads: Sequence[Spread]) -> list[float]:
    return prominences(scores, spreads)


def by_squared_prominence(scores: Sequence[Scores], spreads: Sequence[Spread]) -> list[float]:
    return [one**2 for one in prominences(scores, spreads)]


def by_height(scores: Sequence[Scores], spreads: Sequence[Spread]) -> list[float]:
    """Weigh by how far the best score is above the mean, in means: cosines of noise are nearly equal."""
    return [
        (spread.highest / spread.mean - 1) ** 0.5 if of and spread.highest > spread.mean > 0 else 0.0
        for of, spread in zip(scores, spreads, strict=True)
    ]


def rule(
    fusion: Fusion, gate: Callable[[Sequence[Scores], Sequence[Spread]], list[float]] | None = None, k: int = 60
) -> Rule:
    def fuse(scores: Sequence[Scores]) -> Scores:
        spreads = spreads_of(scores)
        weights = [1.0] * len(scores)
        if gate is not None:
            weights = gated(weights, gate(scores, spreads))
        return fused(scores, fusion, weights=weights, k=k, spreads=spreads)

    return fuse


DEFAULT = "dbsf, gate"
RULES: dict[str, Rule] = {
    "rrf, k 60": rule("rrf"),
    "rrf, k 5": rule("rrf", k=5),
    "rrf, k 5, gate": rule("rrf", by_prominence, k=5),
    "min_max": rule("min_max"),
    "min_max, gate": rule("min_max", by_prominence),
    "dbsf": rule("dbsf"),
    DEFAULT: rule("dbsf", by_prominence),
    "dbsf, gate squared": rule("dbsf", by_squared_prominence),
    "dbsf, gate by height": rule("dbsf", by_height),
}


class Outcome(NamedTuple):
    """A rule against the better part of a set: the difference, and whether it is significantly below."""

    difference: float
    below: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where vectors are kept [{CACHE}]")
    parser.add_argument("sets", nargs="*", help=f"of {', '.join([*PEOPLE, *STAND_INS])}; all by default")
    options = parser.parse_args()
    found: dict[str, Values] = {}
    for name in options.sets or (QUICK if options.quick else (*PEOPLE, *STAND_INS)):
        try:
            found[name] = measured(name, options.cache)
            print(f"{name}: done", file=sys.stderr)
        except FileNotFoundError as error:
            print(f"skipped: no {error}", file=sys.stderr)
    outcomes = {name: {one: outcome(values, one) for one in RULES} for name, values in found.items()}
    print(f"nDCG@10, at most {ASKED} queries a set; a set of more than {LARGEST:,} passages: {SAMPLE:,}\n")
    print_rules(found, outcomes)
    print_left_out(found, outcomes)


def measured(name: str, cache: Path) -> Values:
    """Return the parts and every rule on the queries of a set."""
    dataset, embedder = read_set(name), cached_embedder(MiniLMEmbedder(), cache / "vectors.db")
    texts = {one.id: one.whole for one in dataset.corpus if one.whole}
    asked = random.Random(SEED).sample(list(dataset.judged), min(ASKED, len(dataset.judged)))
    documents = embedder.embed(list(texts.values()))
    queries = embedder.embed([dataset.queries[query] for query in asked], role="query")
    if name.endswith(NOISE):
        draw = np.random.default_rng(SEED)
        documents, queries = noise(documents, draw), noise(queries, draw)
    values: dict[str, list[float]] = {one: [] for one in (*PARTS, *RULES)}
    with TemporaryDirectory() as folder, closing(LocalStore(Path(folder))) as store:
        chunks = zip(texts.values(), documents, strict=True)
        store.add_documents([EmbeddedChunk(text, {}, row.tolist()) for text, row in chunks], ids=list(texts))
        for query, vector in zip(asked, queries, strict=True):
            rankings = store.search(vector.tolist(), FETCH), store.search_text(dataset.queries[query], FETCH)
            scores = [{one.id: one.score for one in ranking} for ranking in rankings]
            found = dict(zip(PARTS, scores, strict=True)) | {one: fuse(scores) for one, fuse in RULES.items()}
            for one, of in found.items():
                best = sorted(of, key=lambda document: (-of[document], document))[:10]
                values[one].append(NDCG.value(dataset.qrels[query], best))
    return {one: np.array(of_queries) for one, of_queries in values.items()}


def noise(vectors: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    drawn = draw.normal(size=vectors.shape)
    unit: np.ndarray = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def better_part(values: Values) -> str:
    return max(PARTS, key=lambda part: float(values[part].mean()))


def outcome(values: Values, one: str) -> Outcome:
    part = values[better_part(values)]
    difference = float(values[one].mean() - part.mean())
    return Outcome(difference, difference < 0 and paired_p(values[one].tolist(), part.tolist()) < 0.05)


def standing(outcomes: Sequence[Outcome]) -> tuple[int, float, float]:
    """Return what a rule is chosen by, the lowest first."""
    loss = mean_loss(outcomes)
    return sum(one.below for one in outcomes), max(loss, LOSS), -float(np.mean([one.difference for one in outcomes]))


def mean_loss(outcomes: Sequence[Outcome]) -> float:
    return float(np.mean([max(0.0, -one.difference) for one in outcomes]))


def print_rules(found: Mapping[str, Values], outcomes: Mapping[str, Mapping[str, Outcome]]) -> None:
    """Print each rule against the better part of each set."""
    print(f"| set | {' | '.join((*PARTS, *RULES))} |\n|---|{'--:|' * (len(PARTS) + len(RULES))}")
    for name, values in found.items():
        means = [f"{values[part].mean():.3f}" for part in PARTS]
        cells = [f"{one.difference:+.3f}{'*' * one.below}" for one in outcomes[name].values()]
        print(f"| {name} | {' | '.join((*means, *cells))} |")
    columns = [[of[one] for of in outcomes.values()] for one in RULES]
    for label, cells in {
        "mean": [f"{np.mean([one.difference for one in column]):+.3f}" for column in columns],
        "mean loss": [f"{mean_loss(column):.4f}" for column in columns],
        "significantly below": [str(sum(one.below for one in column)) for column in columns],
    }.items():
        print(f"| {label} | | | {' | '.join(cells)} |")


def print_left_out(found: Mapping[str, Values], outcomes: Mapping[str, Mapping[str, Outcome]]) -> None:
    """Print for each set the rule that the other sets choose, and how it does here."""
    print("\n| set left out | better part | chosen on the others | chosen | default |\n|---|---|---|--:|--:|")
    chosen, default = [], []
    for name, values in found.items():
        others = [of for other, of in outcomes.items() if other != name]
        best = min(RULES, key=lambda one: standing([of[one] for of in others])) if others else DEFAULT
        chosen.append(outcomes[name][best])
        default.append(outcomes[name][DEFAULT])
        part = better_part(values)
        cells = [f"{one.difference:+.3f}{'*' * one.below}" for one in (chosen[-1], default[-1])]
        print(f"| {name} | {part} {values[part].mean():.3f} | {best} | {' | '.join(cells)} |")
    print(f"| mean loss | | | {mean_loss(chosen):.4f} | {mean_loss(default):.4f} |")


if __name__ == "__main__":
    main()
