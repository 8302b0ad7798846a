"""Vectors that are computed once and kept in a file, each with what it cost, so that a comparison can charge it.

Work that was done earlier is charged in the details of a trace's stage: milliseconds to add to those that were
measured, of wall time (`CHARGED`) and of CPU time (`CHARGED_CPU`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import RLock
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import numpy as np

from ragistry import trace
from ragistry.errors import EvaluationError
from ragistry.models.texts import check_texts
from ragistry.protocols import Embedder, TokenCounter
from ragistry.types import EmbedderFingerprint, Role, Stage
from ragistry.utils.fingerprints import to_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHARGED, CHARGED_CPU = "charged_ms", "charged_cpu_ms"
CACHED = "cached"
"""The detail of a stage that used vectors which an earlier comparison computed."""

TEXTS_AT_ONCE = 64
"""Texts that are embedded together; a killed process loses at most the work on these."""

_TABLE = """
CREATE TABLE IF NOT EXISTS embeddings (
    model TEXT, role TEXT, text BLOB, vector BLOB, ms REAL, cpu_ms REAL, tokens REAL, note TEXT,
    PRIMARY KEY (model, role, text)
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """A vector ``(d,)``, the time and tokens that it took, and what the embedder reported about the text."""

    vector: NDArray[np.float32]
    ms: float
    cpu_ms: float
    tokens: float
    note: str


class KeptVectors:
    """An embedder that asks another one only for what its file does not hold. Safe for threads.

    The trace is charged what embedding a text took, whenever that was: its tokens, and its milliseconds less those
    that the call took now. A second look within one retrieval is free, as it is in a workspace, which remembers its
    last queries; `begin` starts the next retrieval. ``path``: the file; any number of models share it.
    """

    def __init__(self, embedder: Embedder, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.embedder = embedder
        self._model = sha256(to_json(embedder.fingerprint).encode()).hexdigest()
        self._connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
        try:
            with self._translated():
                self._connection.execute(_TABLE)
        except EvaluationError:
            self._connection.close()
            raise
        self._lock = RLock()
        self._warm = False
        self._charged: set[tuple[Role, str]] = set()
        self._made: set[tuple[Role, str]] = set()

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self.embedder.fingerprint

    def begin(self) -> None:
        """From here on every text is charged again."""
        self._charged.clear()

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> NDArray[np.float32]:
        start, cpu = perf_counter(), process_time()
        texts = check_texts(texts)
        with trace.stage("kept vectors") as this, self._lock, self._translated():
            known = {text: kept for text in texts if (kept := self._find(text, role)) is not None}
            this.detail[CACHED] = any((role, text) not in self._made | self._charged for text in known)
            missing = [text for text in dict.fromkeys(texts) if text not in known]
            for first in range(0, len(missing), TEXTS_AT_ONCE):
                known |= self._make(missing[first : first + TEXTS_AT_ONCE], role)
            new = [known[text] for text in known if (role, text) not in self._charged]
            self._charged |= {(role, text) for text in texts}
            _report(new)
            rows = [known[text].vector for text in texts]
            this.detail[CHARGED] = sum(kept.ms for kept in new) - (perf_counter() - start) * 1000
            this.detail[CHARGED_CPU] = sum(kept.cpu_ms for kept in new) - (process_time() - cpu) * 1000
        return np.stack(rows) if rows else np.empty((0, self.fingerprint.dimension), dtype=np.float32)

    def cost(self, texts: Sequence[str], *, role: Role = "document") -> tuple[float, float]:
        """Seconds and tokens that the vectors of these texts took when they were made."""
        with self._translated():
            kept = [self._find(text, role) for text in dict.fromkeys(texts)]
        return sum(one.ms for one in kept if one) / 1000, sum(one.tokens for one in kept if one)

    def close(self) -> None:
        """Close the file; the embedder stays open."""
        self._connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise EvaluationError(f"cannot use {str(self.path)!r}: {error}; give another folder as cache") from error
        except sqlite3.DatabaseError as error:
            raise EvaluationError(
                f"the vectors in {str(self.path)!r} are damaged: {error}; delete that file, and they are made anew"
            ) from error

    def _find(self, text: str, role: Role) -> Kept | None:
        row = self._connection.execute(
            "SELECT vector, ms, cpu_ms, tokens, note FROM embeddings WHERE model = ? AND role = ? AND text = ?",
            (self._model, role, _hash(text)),
        ).fetchone()
        return None if row is None else Kept(np.frombuffer(row[0], dtype=np.float32), *row[1:])

    def _make(self, texts: list[str], role: Role) -> dict[str, Kept]:
        if not self._warm:  # the first text does not pay for loading the model
            with trace.collect():
                self.embedder.embed(["warm up"], role=role)
            self._warm = True
        with trace.collect() as inner, trace.stage("embed"):
            start, cpu = perf_counter(), process_time()
            vectors = self.embedder.embed(texts, role=role)
            ms, cpu_ms = (perf_counter() - start) * 1000, (process_time() - cpu) * 1000
        ms += charged(inner.stages())
        share, tokens = len(texts), sum(stage.tokens for stage in inner.stages())
        note = "; ".join(stage.degraded for stage in inner.stages() if stage.degraded)
        made = {
            text: Kept(np.ascontiguousarray(vector, dtype=np.float32), ms / share, cpu_ms / share, tokens / share, note)
            for text, vector in zip(texts, vectors, strict=True)
        }
        self._made |= {(role, text) for text in texts}
        with self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?, ?, ?, ?, ?, ?)", self._rows(made, role)
            )
        return made

    def _rows(self, made: dict[str, Kept], role: Role) -> Iterator[tuple[str | bytes | float, ...]]:
        for text, one in made.items():
            yield self._model, role, _hash(text), one.vector.tobytes(), one.ms, one.cpu_ms, one.tokens, one.note


class KeptVectorsAndTokens(KeptVectors):
    """The same over an embedder that counts tokens."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        assert isinstance(self.embedder, TokenCounter)
        return self.embedder.count_tokens(texts)


def kept(embedder: Embedder, path: Path) -> KeptVectors:
    """``embedder`` with its vectors kept in a file."""
    return KeptVectorsAndTokens(embedder, path) if isinstance(embedder, TokenCounter) else KeptVectors(embedder, path)


def charged(stages: Sequence[Stage], key: str = CHARGED) -> float:
    """Milliseconds to add to those that were measured, for work that was done earlier."""
    return sum(float(stage.detail.get(key, 0.0)) for stage in stages)


def _report(new: Sequence[Kept]) -> None:
    """Report to the trace what the embedder would have reported."""
    if new:
        trace.model_call(tokens=round(sum(kept.tokens for kept in new)))
    for note in dict.fromkeys(kept.note for kept in new if kept.note):
        trace.degraded(note)


def _hash(text: str) -> bytes:
    return sha256(text.encode()).digest()
