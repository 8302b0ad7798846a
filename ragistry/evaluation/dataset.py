"""A test set: texts, queries, and which texts answer which query."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

from ragistry.errors import DatasetError

Qrels = dict[str, dict[str, int]]
"""Query id → document id → grade: 0 is not relevant, more is better."""

Run = dict[str, list[tuple[str, float]]]
"""Query id → ranking, best first: document id and score."""


class Text(NamedTuple):
    """A document of a test set."""

    id: str
    title: str
    text: str

    @property
    def whole(self) -> str:
        """What is searched: the title, a blank and the text, as in BEIR."""
        return f"{self.title} {self.text}".strip()


@dataclass(frozen=True)
class Dataset:
    """A corpus, queries, and judgements.

    Raises `DatasetError` with all that makes it useless: an empty corpus, ids that come twice, judgements of documents
    or queries that do not exist, no query with judgements. ``problems``: what has to be known but stops nothing, one
    line each. ``synthetic``: query id → how a program made it (kind, seed, model), of those that no person asked.
    ``library``: the folder of the workspace whose sources the corpus is; None: it is of no workspace.
    """

    name: str
    corpus: Sequence[Text]
    queries: dict[str, str]
    qrels: Qrels
    problems: list[str] = field(default_factory=list, compare=False)
    synthetic: dict[str, dict[str, Any]] = field(default_factory=dict)
    library: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        from ragistry.evaluation.dataset_checks import cautions, faults

        raise_together(self.name, faults(self.corpus, self.queries, self.qrels))
        said = [*self.problems, *cautions(self.corpus, self.queries, self.qrels)]
        object.__setattr__(self, "problems", list(dict.fromkeys(said)))

    @cached_property
    def judged(self) -> dict[str, str]:
        """The queries with judgements, in their order: those that are measured."""
        return {query: text for query, text in self.queries.items() if self.qrels.get(query)}

    @cached_property
    def texts(self) -> dict[str, str]:
        """Document id → what is searched of it."""
        return {document.id: document.whole for document in self.corpus}

    def content_hash(self) -> str:
        """SHA-256 of corpus, queries and judgements, hexadecimal; their order and the name do not change it."""
        digest = sha256()
        judgements = ((query, *judged) for query, grades in self.qrels.items() for judged in grades.items())
        for rows in (self.corpus, self.queries.items(), judgements):
            lines = sorted(json.dumps(row) for row in rows)
            digest.update(f"{len(lines)}\n".encode())
            digest.update("\n".join(lines).encode())
        return digest.hexdigest()


def raise_together(name: str, problems: Sequence[str]) -> None:
    """Raise `DatasetError` with every problem, where there is one."""
    if len(problems) == 1:
        raise DatasetError(f"test set {name!r}: {problems[0]}")
    if problems:
        raise DatasetError("\n".join([f"test set {name!r}: {len(problems)} problems:", *(f"  {p}" for p in problems)]))
