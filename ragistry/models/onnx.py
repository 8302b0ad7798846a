"""Run embedding models in this process, in batches on several threads."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.resources.abc import Traversable
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ragistry import trace
from ragistry.errors import ConfigError, ModelError, ModelNotFoundError
from ragistry.models.runtimes import Session, runtime_in_use
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Encoding

_log = logging.getLogger(__name__)

Row = TypeVar("Row", bound=Sized)
"""The token ids of a text, or more of it."""

# Batches of one long passage or a dozen queries fit the caches of a core. Batches of 1,024 tokens take 10 % longer per
# text, those of 4,096 take 50 % longer.
_TOKENS_PER_BATCH = 256
TEXTS_AT_ONCE = 256
"""Number of texts tokenized in one call: its result takes some hundred bytes per token."""


class OnnxEmbedder:
    """Common parts of the embedders in this process. Threads may share an embedder.

    Args:
        threads: Number of batches computed in parallel; None for one per core.
        weights_path: A copy of the weights to use instead of the installed ones.

    Raises:
        ConfigError: ``threads`` is less than 1.
    """

    fingerprint: EmbedderFingerprint

    def __init__(self, *, threads: int | None = None, weights_path: str | Path | None = None) -> None:
        if threads is not None and threads < 1:
            raise ConfigError(f"threads must be 1 or more, got {threads!r}; leave it out for one per core")
        if threads is None:  # limited by the variable that Ray sets for its workers
            affinity = getattr(os, "sched_getaffinity", None)  # Linux only
            threads = len(affinity(0)) if affinity else os.cpu_count() or 1
            limit = os.environ.get("OMP_NUM_THREADS", "")
            threads = min(threads, int(limit)) if limit.isdecimal() and int(limit) else threads
        self._threads = threads
        self._weights_path = None if weights_path is None else Path(weights_path)
        self._session: Session | None = None
        self._lock = Lock()

    @property
    def runtime(self) -> str:
        """The runtime that computes the vectors, its version and the kind of its numbers; empty before its start."""
        return "" if self._session is None else runtime_in_use(self._session)

    def _compute(self, rows: Sequence[Row], compute: Callable[[list[Row]], Iterable[Any]]) -> list[Any]:
        """Return what ``compute`` returns for each row. It is called with batches of rows, in several threads."""
        lengths = [len(row) for row in rows]
        found: list[Any] = [None] * len(rows)

        def fill(batch: list[int]) -> None:
            for position, result in zip(batch, compute([rows[position] for position in batch]), strict=True):
                found[position] = result

        per_thread = -(-sum(lengths) // self._threads)  # a few short texts use all threads too
        planned = list(batches(lengths, min(_TOKENS_PER_BATCH, per_thread)))
        if len(planned) == 1:
            fill(planned[0])
        else:
            with ThreadPoolExecutor(min(self._threads, len(planned))) as workers:
                list(workers.map(fill, planned))
        return found

    def _cut(self, every: Iterable[list[int]], role: Role | None = None) -> list[NDArray[np.int64]]:
        """Cut the token ids of texts to the model's limit, and trace the call; report cuts if a role is given."""
        rows, lengths = [], []
        for ids in every:
            rows.append(cut_ids(ids, self.fingerprint.max_tokens))
            lengths.append(len(ids))
        if role is not None:
            self._report_cuts(lengths, role)
        trace.model_call(tokens=sum(map(len, rows)))
        return rows

    def _report_cuts(self, lengths: Sequence[int], role: Role) -> None:
        """Log which texts are longer than the model's limit, and trace a query that is."""
        limit = self.fingerprint.max_tokens
        longest = max(range(len(lengths)), key=lengths.__getitem__)
        if lengths[longest] <= limit:
            return
        _log.warning(
            "%d of %d texts are longer than %d tokens and were cut; longest: texts[%d] with %d tokens; "
            "use smaller chunks",
            sum(length > limit for length in lengths), len(lengths), limit, longest, lengths[longest],
        )  # fmt: skip
        if role == "query":
            trace.degraded(f"the query has {lengths[longest]} tokens and was cut to {limit}")


def read_checked(file: Traversable, expected: str, remedy: str, *, if_missing: str = "") -> bytes:
    """Read a file and check it.

    Args:
        file: The file.
        expected: Its SHA-256 in hexadecimal.
        remedy: What to do if the file is damaged.
        if_missing: What to do if it cannot be read, if that differs.

    Raises:
        ModelNotFoundError: The file cannot be read.
        ModelError: The file is damaged.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelNotFoundError(f"cannot read {str(file)!r}: {error.strerror}; {if_missing or remedy}") from error
    found = sha256(content).hexdigest()
    if found != expected:
        raise ModelError(f"{str(file)!r} is damaged: its sha256 is {found!r} instead of {expected!r}; {remedy}")
    return content


def encoded(tokenizer: Any, texts: Iterable[Any]) -> Iterator[Encoding]:
    """Tokenize texts or pairs of texts, `TEXTS_AT_ONCE` in one call."""
    left = iter(texts)
    while batch := list(islice(left, TEXTS_AT_ONCE)):
        yield from tokenizer.encode_batch(batch)


def cut_ids(ids: list[int], limit: int) -> NDArray[np.int64]:
    """Cut token ids to ``limit``; the last one is kept."""
    return np.array(ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]], dtype=np.int64)


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Yield the positions of ``lengths``, longest first, in batches of at most ``budget`` tokens after padding.

    A row longer than the budget is its own batch.
    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    start = 0
    while start < len(order):
        size = max(1, budget // lengths[order[start]])
        yield order[start : start + size]
        start += size


def padded(rows: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Pad rows of token ids with 0 to the length of the longest: ``(n, tokens)``."""
    ids = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = row
    return ids


def pooled(states: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Compute the mean of each text's hidden states, scaled to unit length: ``(n, d)``.

    Mean pooling as in Reimers and Gurevych (2019), "Sentence-BERT".
    """
    # A sum has the direction of the mean, and the length becomes one anyway.
    return unit(np.stack([rows.sum(axis=0) for rows in states]))


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to unit length."""
    scaled: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled
