"""Between the texts and vectors of an embedder and those of its server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ragistry.errors import EmbeddingGenerationError
from ragistry.models.known import KnownModel, known_model
from ragistry.ollama.batches import check_texts
from ragistry.types import Role

if TYPE_CHECKING:
    from ragistry.protocols import Vectors


def prefixes_of(model: str, query_prefix: str | None, document_prefix: str | None) -> dict[Role, str]:
    """What goes before a text of each role: what was asked for, else what the model was trained with, else nothing."""
    known = known_model(model) or KnownModel()
    return {
        "query": known.query_prefix if query_prefix is None else query_prefix,
        "document": known.document_prefix if document_prefix is None else document_prefix,
    }


def prefixed(texts: Sequence[str], prefix: str) -> list[str]:
    """Each text with the prefix before it. Raises `EmbeddingGenerationError` for what is not text."""
    check_texts(texts)
    return [prefix + text for text in texts]


def unit_rows(vectors: Sequence[Sequence[float]], dimension: int) -> Vectors:
    """``(n, dimension)`` float32, rows of unit length, of finite vectors that are not zero.

    Raises `EmbeddingGenerationError` where the server has changed the dimension.
    """
    rows = np.asarray(vectors, dtype=np.float64).reshape(len(vectors), -1 if len(vectors) else dimension)
    if rows.shape[1] != dimension:
        raise EmbeddingGenerationError(
            f"the server now gives {rows.shape[1]} dimensions, where it gave {dimension} before; was its model changed?"
        )
    rows = rows / np.abs(rows).max(axis=1, keepdims=True, initial=0)  # squares of huge or tiny numbers would not fit
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit
