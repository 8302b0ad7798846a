"""Chunks for `local_store`: made up, the same in every run, and shaped as those of a library are.

Vectors lie around 2,000 centres, so that neighbours mean something; words follow Zipf's law; sources have 40 chunks,
and those of a collection come in runs, scattered over the order in which they are taken in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragistry.types import EmbeddedChunk
from ragistry.utils.ids import chunk_id

DIMENSION, CENTRES, NOISE = 384, 2_000, 0.8
CHUNKS, CHARACTERS = 40, 830
SHARES = {"half": 0.5, "quarter": 0.25, "tenth": 0.1, "p5": 0.05, "p1": 0.01, "p05": 0.005, "p01": 0.001}
"""Part of the sources that is in each collection; the rest is in `REST`."""
REST = "rest"
RUN = 5
VOCABULARY = 30_000
COMMON_WORDS = 50
SYLLABLES = [first + vowel for first in "bdfghklmnprstvwz" for vowel in ("a", "e", "i", "o", "u", "ea", "or", "in")]


class Source(NamedTuple):
    """A source and its chunks; vectors are ``(CHUNKS, DIMENSION)``."""

    collection: str
    source_file: str
    chunks: list[EmbeddedChunk]


def sources(chunks: int, layout: Sequence[str] | None = None, centres: int = CENTRES) -> Iterator[Source]:
    """The sources of a library of ``chunks`` chunks, made one by one. ``layout``: the collection of each source."""
    for number, collection in enumerate(_collections(chunks // CHUNKS) if layout is None else layout):
        yield _source(number, collection, centres)


class Truth:
    """What is right: every vector of a library, and which of them are nearest to a query."""

    def __init__(self, chunks: int, layout: Sequence[str] | None = None, centres: int = CENTRES) -> None:
        self.collections = np.repeat(_collections(chunks // CHUNKS) if layout is None else list(layout), CHUNKS)
        self.vectors = np.concatenate(
            [_vectors(_random(number), CHUNKS, centres) for number in range(chunks // CHUNKS)]
        )
        self._rows = {
            chunk_id(collection, _name(row // CHUNKS), row % CHUNKS): row
            for row, collection in enumerate(self.collections.tolist())
        }

    def recall(self, query: NDArray[np.float32], found: Sequence[str], collection: str | None = None) -> float:
        """The part of ``found``, ids, that belongs to as many nearest chunks; what ties with the last does."""
        scores = self.vectors @ query
        if collection is not None:
            scores[self.collections != collection] = -1
        last = np.partition(scores, -len(found))[-len(found)]
        return sum(bool(scores[self._rows[id]] >= last - 1e-5) for id in found) / len(found)


def query_vectors(count: int, centres: int = CENTRES) -> NDArray[np.float32]:
    """``(count, DIMENSION)``, unit length, from around the same centres."""
    return _vectors(np.random.default_rng([1, 0]), count, centres)


def query_texts(count: int) -> list[str]:
    """Three to twelve words each, none of the commonest: as many as questions of test collections have."""
    random = np.random.default_rng([2, 0])
    texts = []
    while len(texts) < count:
        picked = [word for word in _word_numbers(random, 60) if word >= COMMON_WORDS]
        texts.append(" ".join(_words()[word] for word in picked[: random.integers(3, 13)]))
    return texts


def _collections(count: int) -> list[str]:
    """The collection of each of ``count`` sources."""
    runs = []
    for name, share in SHARES.items():
        left = max(1, round(share * count))
        while left > 0:
            runs.append([name] * min(RUN, left))
            left -= RUN
    np.random.default_rng(3).shuffle(spread := [*runs, *[[REST]] * (count - sum(map(len, runs)))])
    return [name for run in spread for name in run][:count]


def _source(number: int, collection: str, centres: int) -> Source:
    random, name = _random(number), _name(number)
    digest = sha256(name.encode()).hexdigest()
    vectors = _vectors(random, CHUNKS, centres)
    chunks = []
    for row in range(CHUNKS):
        metadata = {
            "collection": collection, "source_file": name, "page": row // 3 + 1, "chunk_index": row,
            "start": row * CHARACTERS, "has_code": bool(random.random() < 0.1), "source_hash": digest,
        }  # fmt: skip
        chunks.append(EmbeddedChunk(_text(random), metadata, vectors[row]))
    return Source(collection, name, chunks)


def _random(number: int) -> np.random.Generator:
    return np.random.default_rng([0, number])


def _name(number: int) -> str:
    return f"folder-{number // 50}/file-{number}.md"


def _vectors(random: np.random.Generator, count: int, centres: int) -> NDArray[np.float32]:
    rows = _centres()[random.integers(centres, size=count)]
    rows = rows + random.standard_normal(rows.shape, dtype=np.float32) * np.float32(NOISE / DIMENSION**0.5)
    unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _text(random: np.random.Generator) -> str:
    words = _words()
    return " ".join([words[number] for number in _word_numbers(random, CHARACTERS // 4)])[:CHARACTERS].rstrip()


def _word_numbers(random: np.random.Generator, count: int) -> list[int]:
    return np.searchsorted(_zipf(), random.random(count)).tolist()


@cache
def _centres() -> NDArray[np.float32]:
    rows = np.random.default_rng(4).standard_normal((CENTRES, DIMENSION), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@cache
def _words() -> list[str]:
    """The vocabulary, commonest first; common words are short."""
    random = np.random.default_rng(5)
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        syllables = 1 + min(4, int(np.log10(len(words) + 1)))
        words["".join(random.choice(SYLLABLES, size=random.integers(1, syllables + 1)))] = None
    return list(words)


@cache
def _zipf() -> NDArray[np.float64]:
    weights = 1 / (np.arange(VOCABULARY) + 2.7) ** 1.05
    return np.cumsum(weights) / weights.sum()
