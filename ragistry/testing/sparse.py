"""A sparse encoder without a model: words weighted by frequency, and some synonyms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar

from ragistry.text.analysis import analyse
from ragistry.types import Role


class WordCounts:
    """Words and their counts; for documents also the ``expansions`` of words, with their weights."""

    expansions: ClassVar[Mapping[str, Mapping[str, float]]] = {}

    def __init__(self) -> None:
        self.calls: list[tuple[Role, list[str]]] = []

    @property
    def fingerprint(self) -> str:
        return f"{type(self).__name__} {sorted((word, dict(terms)) for word, terms in self.expansions.items())}"

    def encode(self, texts: Sequence[str], *, role: Role) -> list[dict[str, float]]:
        self.calls.append((role, list(texts)))
        return [self._terms(text, role) for text in texts]

    def _terms(self, text: str, role: Role) -> dict[str, float]:
        counts = Counter(analyse(text))
        terms: Counter[str] = Counter()
        for word, count in counts.items():
            terms[word] += count
            if role == "document":
                for other, weight in self.expansions.get(word, {}).items():
                    terms[other] += count * weight  # type: ignore[assignment]
        return {term: float(weight) for term, weight in terms.items()}
