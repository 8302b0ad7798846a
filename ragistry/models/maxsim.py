"""MaxSim: a reranker in this process that compares the tokens of a query with the tokens of a text."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ragistry.config.numbers import Whole
from ragistry.errors import StoreError
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.models.runtimes import Runtime
from ragistry.models.texts import check_texts
from ragistry.models.token_file import TokenEmbedder, TokenFile, TokenVectors, in_8_bits, text_key
from ragistry.trace import degraded
from ragistry.types import ScoreKind

LONG_QUERY = 32
"""Number of query tokens above which MaxSim may rank worse than its base; ColBERT's queries have at most as many."""

_log = logging.getLogger(__name__)


class MaxSimReranker:
    """Late interaction over the token vectors of MiniLM, or of a model from a folder. Meets `Reranker`; thread-safe.

    The score of a text is the sum, over the tokens of the query, of the largest cosine with a token of the text:
    Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over
    BERT", 2020. Their model is trained for this, projects to 128 dimensions, marks and pads queries, and skips
    punctuation. Here the vectors are the unchanged last hidden states of all-MiniLM-L6-v2, which are available anyway,
    or those of ``path``, with the layers and prompts of that folder; queries are not padded, punctuation counts.
    ``[CLS]``, ``[SEP]`` and padding do not count. A text without tokens scores 0.

    Vectors are read from ``token_file``, which a library fills with ``keep_token_vectors: true``. Missing ones are
    computed, about nine texts of 256 tokens per second on one core. Both are kept in memory in 8 bits, 388 bytes per
    token; the default ``memory`` of 64 MB holds about 800 texts of 200 tokens. The least recently used are dropped
    first. The weights are shared with the embedder `minilm`. Tokens after the first 256 of a text or query are ignored.
    """

    score_kind: ScoreKind = "maxsim"

    def __init__(
        self,
        *,
        memory: Annotated[Whole, Field(ge=0, le=100_000, description="megabytes of token vectors")] = 64,
        path: Annotated[str, Field(description="folder of another model, relative to the workspace")] = "",
        token_file: TokenFile | None = None,
        model_runtime: Runtime = "auto",
        workspace_folder: Path | None = None,
    ) -> None:
        self.embedder: TokenEmbedder = MiniLMEmbedder(runtime=model_runtime)
        if path:
            from ragistry.models.folder import FolderEmbedder

            self.embedder = FolderEmbedder(path, folder=workspace_folder)
        self._file = token_file
        self._limit = memory * 1_000_000
        self._kept: OrderedDict[bytes, TokenVectors] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """See `ragistry.protocols.Reranker`. A query of more than 32 tokens is logged and traced."""
        texts = check_texts(texts)
        if not texts:
            return []
        [query_vectors] = self.embedder.token_vectors([query], role="query")
        if len(query_vectors) > LONG_QUERY:
            message = (
                f"the query has more than {LONG_QUERY} tokens; for long queries, maxsim may rank worse than its base"
            )
            _log.warning("%s", message)
            degraded(message)
        vectors = self._vectors_of(dict.fromkeys(texts))
        scores = {text: max_similarity(query_vectors, rows) for text, rows in vectors.items()}
        return [scores[text] for text in texts]

    def close(self) -> None:
        """Forget the token vectors, and close their file."""
        if self._file is not None:
            self._file.close()
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def _vectors_of(self, texts: dict[str, None]) -> dict[str, TokenVectors]:
        model = self.embedder.token_key
        keys = {text: text_key(text, model) for text in texts}
        found: dict[str, TokenVectors] = {}
        with self._lock:
            for text, key in keys.items():
                if key in self._kept:
                    self._kept.move_to_end(key)
                    found[text] = self._kept[key]
        read = self._read([key for text, key in keys.items() if text not in found])
        found |= {text: read[key] for text, key in keys.items() if key in read}
        missing = [text for text in texts if text not in found]
        for text, rows in zip(missing, self.embedder.token_vectors(missing), strict=True):
            found[text] = read[keys[text]] = in_8_bits(rows)
        with self._lock:
            for key, vectors in read.items():
                before = self._kept.pop(key, None)  # another thread may have been first
                self._kept[key] = vectors
                self._bytes += vectors.size - (0 if before is None else before.size)
            while self._bytes > self._limit:
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= oldest.size
        return found

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, TokenVectors]:
        if self._file is None:
            return {}
        try:
            return self._file.get(keys)
        except StoreError as error:
            _log.warning("token vectors are computed: %s", error)
            return {}


def max_similarity(query: NDArray[np.float32], text: TokenVectors) -> float:
    """Sum, over the rows of ``query`` ``(m, d)``, the largest cosine with a token of ``text``."""
    if not len(query) or not len(text.values):
        return 0.0
    cosines = (text.values.astype(np.float32) @ query.T) * text.scale
    return float(cosines.max(axis=0).sum())
