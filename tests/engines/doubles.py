"""Embedders without a model for tests of engines; workers import this file too."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ragistry.testing.hashed import count_tokens, hashed_embedding
from ragistry.types import Document, EmbedderFingerprint

DIMENSION = 16


@dataclass(frozen=True)
class Hashing:
    """Meets `Embedder`. ``seconds``: how long a call of `embed` takes."""

    seconds: float = 0.0
    fingerprint = EmbedderFingerprint(provider="test", model="hashing", digest="", dimension=DIMENSION)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [count_tokens(text) for text in texts]

    def embed(self, texts: Sequence[str], *, role: str = "document"):
        time.sleep(self.seconds)
        return np.array([hashed_embedding(text, DIMENSION) for text in texts], dtype=np.float32)


@dataclass(frozen=True)
class Deadly(Hashing):
    """Kills the process that counts (``where``: embeds) a text with ``word``, as often as ``times``.

    ``folder`` keeps a file for every death, and so how many there were.
    """

    folder: Path = Path()
    word: str = "poison"
    times: int = 1_000
    where: str = "counts"

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        self._die("counts", texts)
        return super().count_tokens(texts)

    def embed(self, texts: Sequence[str], *, role: str = "document"):
        self._die("embeds", texts)
        return super().embed(texts)

    def _die(self, where: str, texts: Sequence[str]) -> None:
        if where == self.where and any(self.word in text for text in texts) and self.deaths() < self.times:
            (self.folder / str(time.monotonic_ns())).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def deaths(self) -> int:
        """How many processes it has killed."""
        return len(list(self.folder.iterdir()))


@dataclass(frozen=True)
class Late(Hashing):
    """Sets the clock of its process to 1970."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        time.time = lambda: 0.0
        return super().count_tokens(texts)


@dataclass(frozen=True)
class Unpicklable(Hashing):
    """Cannot leave its process."""

    def __reduce__(self):
        raise TypeError("it holds a connection")


class Capitals:
    """A technique of a program: searches with the query in capitals."""

    def __init__(self, config, *, store, embedder) -> None:
        self.store = store
        self.embedder = embedder

    def retrieve(self, query: str, *, top_k: int | None = None, where=None):
        return self.store.search(self.embedder.embed([query.upper()], role="query")[0], top_k or 10, where=where)


class Fatal:
    """A technique that takes its process along."""

    def retrieve(self, query: str, *, top_k: int | None = None, where=None):
        os._exit(1)


class Always:
    """A technique that finds one document, whatever is asked."""

    def retrieve(self, query: str, *, top_k: int | None = None, where=None):
        return [Document("", {}, 1.0, "d-tea")]
