"""Learned sparse retrieval: a model assigns weighted terms to each text; an inverted index searches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ragistry.chunking.breadcrumb import searched_text
from ragistry.config.problems import Configuration, parse_config
from ragistry.errors import InvalidConfigError, ModelError
from ragistry.plugins import resolve_object
from ragistry.protocols import LibraryStore, SparseEncoder
from ragistry.techniques.built_in import TechniqueConfig, rescored
from ragistry.techniques.derived import DerivedRows, Rows, Table, documents_meeting, hashed
from ragistry.trace import model_call, stage
from ragistry.types import Document, Role, Where, ranked
from ragistry.utils.wording import did_you_mean

TERM = np.dtype([("key", "<u8"), ("weight", "<f4")])
"""A term of a text: its hash, and its weight."""
_hashed_term = lru_cache(1 << 16)(hashed)  # the vocabulary of a model has some ten thousand terms


class LearnedSparseTechnique:
    """Learned sparse retrieval: an inverted index of the weighted terms that a model assigns to each text.

    Formal, Piwowarski and Clinchant, "SPLADE: Sparse Lexical and Expansion Model for First Stage Ranking", 2021. The
    score of a chunk is the dot product of its weights and those of the query. The model may assign terms
    that are not in the text, which finds texts that use other words.

    ``encoder`` is a name under encoders in models.yaml, such as a model from a folder, or a class ``module:Class`` that
    follows `SparseEncoder`, built without arguments. Deviation: the paper trains its model; here any encoder works, and
    none is packaged. Each chunk is encoded once, with its title and
    headings, at the first search after it was written (`techniques.derived`).
    """

    class Config(TechniqueConfig):
        encoder: str = Field(description="a name under encoders in models.yaml, or module:Class")

    def __init__(
        self,
        config: Configuration,
        *,
        store: LibraryStore,
        folder: Path | None = None,
        encoders: Mapping[str, SparseEncoder] | None = None,
    ) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.store = store
        self.encoder = _encoder(self.config.encoder, encoders or {})
        name = f"learned_sparse-{hashed(self.config.encoder):016x}"
        self.rows = DerivedRows(
            store,
            self._of_documents,
            name=name,
            stamp=f"terms 1 of {self.encoder.fingerprint}",
            empty=np.zeros(0, dtype=TERM),
            folder=folder,
        )
        self._index: InvertedIndex | None = None

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        with stage("encode"):
            index = self._current()
            [terms] = self._encode([query], "query")
        with stage("search") as search:
            scores = index.scores(terms, wanted if where is None else None)
            found = islice(documents_meeting(self.store, list(scores), where), wanted)
            documents = ranked(rescored(document, "learned_sparse", "dot", scores[document.id]) for document in found)
            search.documents_out = len(documents)
        return documents

    def _current(self) -> InvertedIndex:
        table = self.rows.table()
        index = self._index
        if index is None or index.table is not table:
            index = self._index = InvertedIndex(table)
        return index

    def _of_documents(self, documents: Sequence[Document]) -> list[Rows]:
        return self._encode([searched_text(one.content, one.metadata) for one in documents], "document")

    def _encode(self, texts: Sequence[str], role: Role) -> list[Rows]:
        """Return the terms and weights of each text, without zero weights. Raises `ModelError`."""
        encoded = self.encoder.encode(texts, role=role)
        model_call()
        if len(encoded) != len(texts):
            raise ModelError(f"encoder {self.config.encoder!r} returned {len(encoded)} results for {len(texts)} texts")
        for terms in encoded:
            wrong = next((term for term, weight in terms.items() if not isfinite(weight) or weight < 0), None)
            if wrong is not None:
                raise ModelError(
                    f"encoder {self.config.encoder!r} gave {wrong!r} the weight {terms[wrong]!r}; "
                    "weights must be 0 or more"
                )
        return [
            np.array([(_hashed_term(term), weight) for term, weight in terms.items() if weight > 0], dtype=TERM)
            for terms in encoded
        ]


def _encoder(spec: str, encoders: Mapping[str, SparseEncoder]) -> SparseEncoder:
    if spec in encoders:
        return encoders[spec]
    if ":" not in spec:
        raise InvalidConfigError(
            f"encoder: there is no {spec!r} under encoders in models.yaml{did_you_mean(spec, encoders)}; add it, or "
            "write module:Class"
        )
    try:
        made = resolve_object(spec)()
    except TypeError as error:
        raise InvalidConfigError(f"encoder: {spec!r} cannot be called without arguments: {error}") from error
    if not isinstance(made, SparseEncoder):
        raise InvalidConfigError(
            f"encoder: {spec!r} must have encode(texts, *, role) and fingerprint; see SparseEncoder"
        )
    return made


class InvertedIndex:
    """The chunks of each term, and their weights."""

    def __init__(self, table: Table) -> None:
        self.table = table
        order = np.argsort(table.rows["key"], kind="stable")
        self.keys, first = np.unique(table.rows["key"][order], return_index=True)
        self.bounds = np.append(first, len(order))
        self.chunks: NDArray[np.int64] = np.repeat(np.arange(len(table.ids)), np.diff(table.starts))[order]
        self.weights = table.rows["weight"][order].astype(np.float64)

    def scores(self, terms: Rows, limit: int | None = None) -> dict[str, float]:
        """Compute the dot product with every chunk that shares a term, by id, best first; ``limit``: the best only."""
        total = np.zeros(len(self.table.ids))
        for key, weight in terms.tolist():
            place = int(np.searchsorted(self.keys, np.uint64(key)))
            if place < len(self.keys) and int(self.keys[place]) == key:
                postings = slice(self.bounds[place], self.bounds[place + 1])
                # a chunk has a term at most once, so it is at most once in the postings
                total[self.chunks[postings]] += weight * self.weights[postings]
        found = np.flatnonzero(total)
        if limit is not None and len(found) > limit:  # with all that are as good as the last
            found = np.flatnonzero(total >= np.partition(total[found], -limit)[-limit])
        scores = [
            (self.table.ids[row], score) for row, score in zip(found.tolist(), total[found].tolist(), strict=True)
        ]
        return dict(sorted(scores, key=lambda item: (-item[1], item[0])))
