"""Text Embeddings Inference: its description, its tokenizer, and its cross-encoders."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Annotated, Any

from pydantic import Field

from ragistry.config.archives import Seconds, ServerURL
from ragistry.config.models import ApiKey
from ragistry.config.numbers import Whole
from ragistry.errors import ModelError
from ragistry.models.http import LIMIT, LOAD_SECONDS, RERANK_SECONDS, JsonClient, Patience, RefusedError
from ragistry.trace import model_call


@dataclass(frozen=True, slots=True)
class Served:
    """The model, the hexadecimal digest of its weights, and its maximum tokens (empty and 0: unknown).

    ``batch_size``: maximum number of texts per request, 0 without a limit. ``truncates``: it silently cuts longer
    texts. ``tokenizes``: it has TEI's ``/tokenize``.
    """

    model: str
    digest: str = ""
    max_tokens: int = 0
    batch_size: int = 0
    truncates: bool = False
    tokenizes: bool = False


def served_by_tei(info: Mapping[str, Any]) -> Served:
    """Parse the answer of ``/info``."""
    digest = str(info.get("model_sha") or "")
    return Served(
        model=str(info["model_id"]),
        digest=digest if re.fullmatch("[0-9a-f]+", digest) else "",
        max_tokens=int(info.get("max_input_length") or 0),
        batch_size=int(info.get("max_client_batch_size") or 0),
        truncates=bool(info.get("auto_truncate")),
        tokenizes=True,
    )


def tokenized(server: JsonClient, texts: Sequence[str], batch_size: int) -> list[int]:
    """Count the tokens of each text with ``/tokenize``, including special tokens. Raises `ModelError`."""
    counts: list[int] = []
    for start in range(0, len(texts), batch_size):
        batch = texts[start : start + batch_size]
        limit = LIMIT + 200 * sum(len(text.encode()) for text in batch)  # a token is an object of about 80 bytes
        counts += server.post(
            "/tokenize", {"inputs": list(batch)}, lambda rows: [len(row) for row in rows], limit=limit
        )
    if len(counts) != len(texts):
        raise ModelError(
            f"asked {server.server} for the tokens of {len(texts)} texts, got {len(counts)} numbers; check its log"
        )
    return counts


class TEIReranker:
    """Ranks over ``/rerank``. A score is a probability, 0 to 1; a text longer than the model's limit is truncated.

    Args:
        url: Address of the server.
        api_key: See `JsonClient`.
        batch_size: Maximum number of texts per request; halved if the server refuses it.
        timeout: Seconds for one request; None for 300 for the first, which may load the model, and then 30.
    """

    def __init__(
        self,
        *,
        url: ServerURL,
        api_key: ApiKey = None,
        batch_size: Annotated[Whole, Field(ge=1)] = 32,
        timeout: Seconds | None = None,
    ) -> None:
        patience = Patience(timeout or RERANK_SECONDS, timeout or LOAD_SECONDS)
        self._server = JsonClient(url.rstrip("/"), patience, api_key=api_key)
        self._batch_size = batch_size

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """See `ragistry.protocols.Reranker`."""

        def send(batch: Sequence[str]) -> dict[int, float]:
            body = {"query": query, "texts": list(batch), "truncate": True}
            return self._server.post("/rerank", body, partial(scores_of, key="score"), loads="")

        return scores_in_batches(send, texts, self._batch_size, self._server.server)

    def close(self) -> None:
        """Close the connections."""
        self._server.close()


def scores_in_batches(
    send: Callable[[Sequence[str]], dict[int, float]], texts: Sequence[str], size: int, server: str
) -> list[float]:
    """Request one score per text. A batch that is too large is halved.

    Args:
        send: Returns the scores of one batch, by position.
        texts: The texts.
        size: Maximum number of texts in a batch.
        server: Name of the server in messages.

    Raises:
        ModelError: Scores are missing or invalid, or a single text is too long.
    """
    scores: list[float] = []
    while len(scores) < len(texts):
        batch = texts[len(scores) : len(scores) + size]
        try:
            answered = send(batch)
        except RefusedError as error:
            if not error.may_be_too_long(batch):
                raise
            if len(batch) == 1:
                raise ModelError(f"{error}, for one text of {len(batch[0]):,} characters; shorten it") from error
            size = len(batch) // 2
            continue
        model_call()
        if answered.keys() != set(range(len(batch))) or not all(map(isfinite, answered.values())):
            raise ModelError(f"asked {server} for {len(batch)} scores, got {answered!r:.200}; check its log")
        scores += [answered[index] for index in range(len(batch))]
    return scores


def scores_of(rows: Sequence[Mapping[str, Any]], key: str) -> dict[int, float]:
    """Read the score of each row, by its index."""
    return {index: float(row[key]) for index, row in zip(indexes_of(rows), rows, strict=True)}


def indexes_of(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Read the ``index`` of each row, from 0.

    Programs in Go leave out a 0, and some servers count from 1. A wrong result is not a permutation of the positions.
    """
    indexes = [row.get("index") for row in rows]
    numbers = [0 if index is None and indexes.count(None) == 1 else int(str(index)) for index in indexes]
    return [number - 1 for number in numbers] if sorted(numbers) == list(range(1, len(rows) + 1)) else numbers
