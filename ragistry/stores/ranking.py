"""Keys and scores of an index as ranked documents."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
from numpy.typing import NDArray

from ragistry.stores.catalog import Catalog, state_of
from ragistry.stores.reading import Keys, Outdated, contents
from ragistry.types import Document, ScoreKind, StageScore, ranked


def ranked_documents(
    connection: sqlite3.Connection,
    catalog: Catalog,
    keys: Keys,
    scores: NDArray[np.float32],
    top_k: int,
    stage: str,
    kind: ScoreKind,
) -> list[Document]:
    """The best ``top_k`` chunks by ``(-score, id)``; a key that is no longer stored is left out.

    Cosine similarities are clipped to [0, 1]. Raises `reading.Outdated` where the catalog is that of another state,
    which outside of a snapshot may be.
    """
    if len(keys) > top_k:
        keys, scores = _best(connection, catalog, keys, scores, top_k)
    given = keys.tolist()
    values = scores.tolist()
    if kind == "cosine":
        # Ranked by what is shown: what is clipped to 0 ties with all the rest that is.
        values = [1.0 if value > 1 else value if value > 0 else 0.0 for value in values]
    score_of = dict(zip(given, values, strict=True))
    found = []
    for key, id, text, metadata in contents(connection, catalog, given):
        score = score_of[key]
        found.append(Document(text, metadata, score, id, (StageScore(stage, kind, score),)))
    return ranked(found)


def _best(
    connection: sqlite3.Connection, catalog: Catalog, keys: Keys, scores: NDArray[np.float32], top_k: int
) -> tuple[Keys, NDArray[np.float32]]:
    """The same cut to ``top_k`` by ``(-score, id)`` without reading any text: many chunks may tie."""
    ids = dict(
        connection.execute(
            "SELECT key, id FROM chunks WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(keys.tolist()),)
        )
    )
    if len(ids) < len(keys) and state_of(connection) != catalog.state:
        raise Outdated
    stored = [
        (-score, ids[key], row)
        for row, (key, score) in enumerate(zip(keys.tolist(), scores.tolist(), strict=True))
        if key in ids
    ]
    order = [row for _, _, row in sorted(stored)[:top_k]]
    return keys[order], scores[order]
