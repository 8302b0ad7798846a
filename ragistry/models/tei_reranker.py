"""Scores of a cross-encoder that Text Embeddings Inference serves."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from ragistry.errors import ModelError
from ragistry.models.openai_compatible import open_server
from ragistry.ollama.failures import TooLongError
from ragistry.trace import model_call


class TEIReranker:
    """Ranks over ``/rerank``. A score is a probability, 0 to 1; a text past the model's window is judged by what fits.

    ``batch_size``: texts in one request, 32 being what the server takes by default; fewer where it takes no more, which
    it tells by a refusal. ``timeout``, ``attempts``,
    ``backoff``: see `JsonClient`.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str | None = None,
        batch_size: int = 32,
        timeout: float = 60.0,
        attempts: int = 4,
        backoff: float = 0.5,
    ) -> None:
        self._server = open_server(base_url, api_key, timeout, attempts, backoff)
        self._batch_size = batch_size

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """See `ragistry.protocols.Reranker`."""
        scores: list[float] = []
        size = self._batch_size
        while len(scores) < len(texts):
            batch = texts[len(scores) : len(scores) + size]
            try:
                scores += self._rerank(query, batch)
            except TooLongError as error:
                if len(batch) == 1:
                    raise ModelError(f"{error}, for one text of {len(batch[0]):,} characters; shorten it") from error
                size = len(batch) // 2
        return scores

    def _rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        body = {"query": query, "texts": list(texts), "truncate": True}
        scores = self._server.post("/rerank", body, _by_index)
        model_call()
        if scores.keys() != set(range(len(texts))) or not all(map(isfinite, scores.values())):
            raise ModelError(f"asked {self._server.server} for {len(texts)} scores, got {scores!r}; look into its log")
        return [scores[index] for index in range(len(texts))]

    def close(self) -> None:
        """Close the connections."""
        self._server.close()


def _by_index(answer: list[dict[str, Any]]) -> dict[int, float]:
    return {int(row["index"]): float(row["score"]) for row in answer}
