"""all-MiniLM-L6-v2 inside this process: the default embedder, which needs no server and no network.

The model is sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0): 6 layers, 384 dimensions, 256 tokens, English.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from ragistry import trace
from ragistry.errors import ConfigError
from ragistry.models.encoder import Session, batches, encode, load_session
from ragistry.models.texts import check_texts
from ragistry.models.weights import WEIGHTS_SHA256, read_weights
from ragistry.models.wordpiece import Tokens, count_tokens, load_tokenizer, tokenize
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import BertWordPieceTokenizer

_log = logging.getLogger(__name__)

FINGERPRINT = EmbedderFingerprint(
    provider="embedded", model="all-MiniLM-L6-v2", digest=WEIGHTS_SHA256, dimension=384, max_tokens=256
)
# Batches of one long passage or a dozen queries fit the caches of a core; from 1,024 tokens on they are slower.
_TOKENS_PER_BATCH = 256


class MiniLMEmbedder:
    """Meets `Embedder` and `TokenCounter`. Weights and tokenizer are loaded on first use; threads may share it.

    ``threads``: how many batches are computed side by side, by default one a core. ``weights_path``: a copy of the
    weights to use in place of the installed ones. Raises `ConfigError` for fewer than one thread; the first use
    raises `ModelNotFoundError` where the weights are missing, and `ModelError` where they are damaged.
    """

    fingerprint = FINGERPRINT

    def __init__(self, *, threads: int | None = None, weights_path: str | Path | None = None) -> None:
        if threads is not None and threads < 1:
            raise ConfigError(f"threads must be 1 or more, got {threads!r}; leave it out for one a core")
        self._threads = threads or _cores()
        self._weights_path = None if weights_path is None else Path(weights_path)
        self._lock = Lock()
        self._tokenizer: BertWordPieceTokenizer | None = None
        self._session: Session | None = None

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> NDArray[np.float32]:
        """As `Embedder.embed`. The model takes queries and documents alike, so ``role`` changes no vector.

        Text past 256 tokens is cut, with one warning a call, and a query's trace says so. An empty text has the row
        of the model's two special tokens. Raises `EmbeddingGenerationError` for what is not text.
        """
        texts = check_texts(texts)
        if not texts:
            return np.empty((0, FINGERPRINT.dimension), dtype=np.float32)
        tokens = tokenize(self._loaded_tokenizer(), texts, FINGERPRINT.max_tokens)
        _report_cuts(tokens, role)
        trace.model_call(tokens=sum(len(ids) for ids, _ in tokens))
        return self._vectors([ids for ids, _ in tokens])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `TokenCounter.count_tokens`. Raises `EmbeddingGenerationError` for what is not text."""
        return count_tokens(self._loaded_tokenizer(), check_texts(texts))

    def _vectors(self, rows: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        session = self._loaded_session()
        vectors = np.empty((len(rows), FINGERPRINT.dimension), dtype=np.float32)

        def fill(batch: list[int]) -> None:
            vectors[batch] = encode(session, [rows[position] for position in batch])

        lengths = [len(row) for row in rows]
        a_thread = -(-sum(lengths) // self._threads)  # a few short texts are dealt out too
        planned = list(batches(lengths, min(_TOKENS_PER_BATCH, a_thread)))
        if len(planned) == 1:
            fill(planned[0])
        else:
            with ThreadPoolExecutor(min(self._threads, len(planned))) as workers:
                list(workers.map(fill, planned))
        return vectors

    def _loaded_tokenizer(self) -> BertWordPieceTokenizer:
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = load_tokenizer()
            return self._tokenizer

    def _loaded_session(self) -> Session:
        with self._lock:
            if self._session is None:
                self._session = load_session(read_weights(self._weights_path))
            return self._session


def _report_cuts(tokens: Sequence[Tokens], role: Role) -> None:
    limit = FINGERPRINT.max_tokens
    cut = [position for position, (_, length) in enumerate(tokens) if length > limit]
    if not cut:
        return
    longest = max(cut, key=lambda position: tokens[position].length)
    _log.warning(
        "%d of %d texts are longer than %d tokens and were cut; longest: texts[%d] with %d tokens; use smaller chunks",
        len(cut), len(tokens), limit, longest, tokens[longest].length,
    )  # fmt: skip
    if role == "query":
        trace.degraded(f"the query has {tokens[longest].length} tokens and was cut to {limit}")


def _cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1
