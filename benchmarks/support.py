"""Does ``ragistry ask`` see whether a passage supports a sentence? ``python -m benchmarks.support [--quick]``.

Scientific claims and abstracts (SciFact): a claim and an abstract with evidence for or against it belong together; a
claim and another abstract do not, be it the one that has most of the claim's words, or any. The thresholds are chosen
on claims of the training split, as those with the best mean, and tested on the test split. An abstract that contradicts
a claim counts as one that supports it: neither words nor vectors tell the two apart.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from math import log
from typing import NamedTuple

from benchmarks.quality import DATA
from ragistry.answers.answer import ALIKE, MOST, SOME, Evidence, evidence, sentences_of
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.data.files import read_beir
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.text.analysis import query_terms

CLAIMS, QUICK = 300, 60
"""Of each split."""
MOST_GRID = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
SOME_GRID = [0.1, 0.2, 0.3, 0.4, 0.5]
ALIKE_GRID = [0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8]


class Pairs(NamedTuple):
    """Evidence for claims in the abstract of each, in the other one with most of its words, and in any other."""

    right: list[Evidence]
    like: list[Evidence]
    other: list[Evidence]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} claims of each split")
    count = QUICK if parser.parse_args().quick else CLAIMS
    if not (DATA / "scifact").is_dir():
        sys.exit(f"skipped: scifact is not in {DATA}")
    embedder = MiniLMEmbedder()
    train, test = (read_beir(DATA / "scifact", split) for split in ("train", "test"))
    chosen_on, tested_on = (pairs(split, count, embedder) for split in (train, test))
    best = max(product(MOST_GRID, SOME_GRID, ALIKE_GRID), key=lambda limits: mean(chosen_on, limits))
    print("| thresholds | split | right abstract supports | one of like words does not | any other does not | mean |")
    print("|---|---|--:|--:|--:|--:|")
    for label, limits in (("of ragistry", (MOST, SOME, ALIKE)), ("best on train", best)):
        for split, found in (("train", chosen_on), ("test", tested_on)):
            said = ", ".join(f"{limit:g}" for limit in limits)
            cells = " | ".join(f"{share:.1%}" for share in (*shares(found, limits), mean(found, limits)))
            print(f"| {label}: {said} | {split} | {cells} |")


def pairs(dataset: Dataset, count: int, embedder: MiniLMEmbedder) -> Pairs:
    """Of the first claims in an order by chance, always the same."""
    texts = {document.id: document.text for document in dataset.corpus}
    terms = {name: set(query_terms(text, "english")) for name, text in texts.items() if text.strip()}
    having = defaultdict(list)
    for name, words in terms.items():
        for term in words:
            having[term].append(name)
    claims, chance = sorted(dataset.qrels), random.Random(0)
    chance.shuffle(claims)
    found = Pairs([], [], [])
    for claim in claims[:count]:
        relevant = {name for name, grade in dataset.qrels[claim].items() if grade > 0}
        score: defaultdict[str, float] = defaultdict(float)
        for term in set(query_terms(dataset.queries[claim], "english")):
            for name in having[term]:
                score[name] += log(len(terms) / len(having[term]))
        like = max((name for name in score if name not in relevant), key=lambda name: (score[name], name))
        other = chance.choice([name for name in terms if name not in relevant])
        [vector] = embedder.embed([dataset.queries[claim]])
        for into, name in zip(found, (min(relevant), like, other), strict=True):
            near = float((embedder.embed(sentences_of(texts[name])) @ vector).max())
            into.append(evidence(dataset.queries[claim], texts[name], near, "english"))
    return found


def shares(found: Pairs, limits: Sequence[float]) -> tuple[float, float, float]:
    """The shares that are told right, of each kind of pair."""
    right, like, other = (sum(one.supports(*limits) for one in kind) / len(kind) for kind in found)
    return right, 1 - like, 1 - other


def mean(found: Pairs, limits: Sequence[float]) -> float:
    """Of the right pairs and of the wrong ones, which count as much together."""
    right, like, other = shares(found, limits)
    return (right + (like + other) / 2) / 2


if __name__ == "__main__":
    main()
