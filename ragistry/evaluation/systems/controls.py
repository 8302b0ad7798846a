"""Make control rankings that a technique must beat: by words of file names, by words of titles, and at random.

They use the real names, which techniques do not see. A test set whose queries are answered by names alone
says nothing about retrieval from texts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from math import log
from random import Random

from ragistry.evaluation.data.dataset import Dataset, Run, Text
from ragistry.text.analysis import analyse, query_terms

K1, B = 1.2, 0.75
"""Parameters of BM25."""
_BREAKS = re.compile(r"[^\w]+|_+|(?<=[a-z])(?=[A-Z])|(?<=\D)(?=\d)")
"""Separators of the words in a path."""


def controls(dataset: Dataset, depth: int, seed: int = 0) -> dict[str, Run]:
    """Rank at most ``depth`` documents for every judged query, as ``filename``, ``title_only`` and ``random``."""
    names = {document.id: " ".join(_BREAKS.split(document.id)) for document in dataset.corpus}
    titles = {document.id: _title(document) for document in dataset.corpus}
    return {
        "filename": _by_words(dataset, names, depth, seed),
        "title_only": _by_words(dataset, titles, depth, seed),
        "random": {query: _shuffled(dataset, f"{seed}/{query}", depth) for query in dataset.judged},
    }


def _title(document: Text) -> str:
    """Return the title, else the first line if that is a heading."""
    first = document.text.lstrip().partition("\n")[0]
    return document.title or (first.lstrip("# ") if first.startswith("#") else "")


def _shuffled(dataset: Dataset, seed: str, depth: int) -> list[tuple[str, float]]:
    chosen = Random(seed).sample([document.id for document in dataset.corpus], min(depth, len(dataset.corpus)))
    return [(id, float(depth - at)) for at, id in enumerate(chosen)]


def _by_words(dataset: Dataset, texts: dict[str, str], depth: int, seed: int) -> Run:
    """Rank by BM25 over the texts; documents without a word of the query follow in random order."""
    counts = {id: Counter(analyse(text)) for id, text in texts.items()}
    lengths = {id: sum(count.values()) for id, count in counts.items()}
    mean = sum(lengths.values()) / max(1, len(lengths)) or 1.0
    holding: defaultdict[str, list[str]] = defaultdict(list)
    for id, count in counts.items():
        for term in count:
            holding[term].append(id)
    run: Run = {}
    for query, text in dataset.judged.items():
        scores: Counter[str] = Counter()
        for term in set(query_terms(text)):
            documents = holding.get(term, [])
            weight = log(1 + (len(texts) - len(documents) + 0.5) / (len(documents) + 0.5))
            for id in documents:
                found = counts[id][term]
                scores[id] += weight * found * (K1 + 1) / (found + K1 * (1 - B + B * lengths[id] / mean))  # type: ignore[assignment]
        best = sorted(scores.items(), key=lambda one: (-one[1], one[0]))[:depth]
        rest = [(id, 0.0) for id, _ in _shuffled(dataset, f"{seed}/{query}", depth) if id not in scores]
        run[query] = [*((id, float(score)) for id, score in best), *rest][:depth]
    return run
