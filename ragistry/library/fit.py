"""Measure how well an embedder knows the texts of a library, from the texts alone.

A sentence is a question whose answers are unknown. An embedder that knows the texts still gives a few chunks much
higher cosines than the others; one that does not gives every sentence cosines like those of noise.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, chain, islice, zip_longest
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ragistry.errors import ModelError, StoreError
from ragistry.text.boundaries import sentence_spans
from ragistry.text.detection import detect_language
from ragistry.types import KNOWN, Document, Fit
from ragistry.utils.ids import chunk_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragistry.protocols import Embedder, FitStore, LibraryStore, Vectors

    Floats = NDArray[np.float64]

CHUNKS, SENTENCES = 2_000, 200
"""Maximum numbers of chunks and of sentences that are compared."""
LEAST_CHUNKS, LEAST_SENTENCES = 100, 20
COPY = 0.95
"""Cosine of centred vectors above which a chunk is a near copy of another one, which is left out."""
BEST_OF = 50
NOISE = 2.24
"""What the best of 50 draws of a normal distribution gives: Φ⁻¹(0.5264^(1/50))."""
_WORD = re.compile(r"\S*[^\W\d_]\S*")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def measure_if_due(store: LibraryStore, embedder: Embedder) -> Fit | None:
    """Measure and record how well the embedder knows the texts, if that is unknown or the chunks have doubled.

    Returns:
        The new measurement, `KNOWN` if there is too little to measure; None if it was not due, or failed.
    """
    if "fit" not in store.abilities:
        return None
    target, count = cast("FitStore", store), store.count()
    known = target.fit()
    if count < LEAST_CHUNKS or (known and count < 2 * known.chunks):
        return None
    chunks = _sample(store)
    try:
        found = [knowledge(group, store.vectors([one.id for one in group]), embedder) for group in _by_language(chunks)]
    except (ModelError, StoreError):  # the next ingest measures it
        return None
    scores = [score for score in found if score is not None]
    detected = detect_language([one.content for one in chunks])
    model, language = embedder.fingerprint.model, detected.language if detected else ""
    fit = Fit(max(scores, default=KNOWN), count, model, language)
    target.record_fit(fit, embedder.fingerprint)
    return fit


def fit_of(store: object) -> Fit | None:
    """Return what a store has recorded; None if it does not keep that."""
    return cast("FitStore", store).fit() if "fit" in getattr(store, "abilities", ()) else None


def _sample(store: LibraryStore) -> list[Document]:
    """Read up to `CHUNKS` chunks, chosen at random and in random order, the same ones for the same sources."""
    infos = store.sources()
    ends = list(accumulate(info.chunks for info in infos))
    total = ends[-1] if ends else 0
    ids = []
    for number in random.Random(0).sample(range(total), min(CHUNKS, total)):
        at = bisect_right(ends, number)
        info = infos[at]
        ids.append(chunk_id(info.collection, info.source_file, number - ends[at] + info.chunks))
    return store.get(ids)


def _by_language(chunks: Sequence[Document]) -> list[list[Document]]:
    """Divide chunks by the language of their source; groups that are too small to be measured are left out."""
    of_source: dict[tuple[Any, Any], list[Document]] = {}
    for one in chunks:
        of_source.setdefault(_source_of(one), []).append(one)
    languages = {source: _language_of(some) for source, some in of_source.items()}
    groups: dict[str, list[Document]] = {}
    for one in chunks:
        groups.setdefault(languages[_source_of(one)], []).append(one)
    large = [group for group in groups.values() if len(group) >= max(LEAST_CHUNKS, len(chunks) / 10)]
    return large or [list(chunks)]


def _source_of(chunk: Document) -> tuple[Any, Any]:
    return chunk.metadata.get("collection"), chunk.metadata.get("source_file")


def _language_of(chunks: Sequence[Document]) -> str:
    """Return the language of a source: the recorded one with `language: auto`, else that of its text."""
    if recorded := chunks[0].metadata.get("language"):
        return str(recorded)
    detected = detect_language([one.content for one in chunks])
    return detected.language if detected else ""


def knowledge(chunks: Sequence[Document], vectors: Vectors, embedder: Embedder) -> float | None:
    """Return how far the best chunks stand out for a sentence, in standard deviations above noise; about 0 to 1.

    For the cosines of a sentence with the N chunks that do not contain it and do not overlap its own: the expected
    best of 50, minus the mean, in standard deviations, minus what noise gives. It does not depend on N.

    Args:
        chunks: The chunks, in random order.
        vectors: Their vectors, ``(n, d)``; rows of zeros are left out.
        embedder: Embeds the sentences.

    Returns:
        The mean over the sentences; None with too few chunks or sentences, or if all vectors are equal.
    """
    present = np.flatnonzero(np.any(vectors, axis=1))
    rows = present[_without_copies(_centred(vectors[present]))]
    kept = [chunks[row] for row in rows]
    asked = list(_sentences(kept))
    if len(kept) < LEAST_CHUNKS or len(asked) < LEAST_SENTENCES:
        return None
    questions = embedder.embed([sentence for sentence, _ in asked], role="query")
    cosines = _centred(questions) @ _centred(vectors[rows]).T
    values = []
    for (sentence, own), row in zip(asked, cosines, strict=True):
        others = np.array([not (_overlap(one, own) or sentence in one.content) for one in kept])
        found = np.sort(row[others])[::-1]
        if len(found) > BEST_OF and (deviation := found.std()) > 1e-6:
            values.append((_expected_best(len(found)) @ found - found.mean()) / deviation - NOISE)
    return float(np.mean(values)) if len(values) >= LEAST_SENTENCES else None


def _centred(vectors: Vectors) -> Floats:
    """Subtract the mean, and scale to unit length; rows that are equal to the mean stay zeros."""
    moved = np.asarray(vectors, dtype=np.float64) - np.mean(vectors, axis=0, dtype=np.float64)
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    units: Floats = np.divide(moved, lengths, out=np.zeros_like(moved), where=lengths > 1e-6)
    return units


def _without_copies(units: Floats) -> list[int]:
    """Return the rows that are neither zeros nor near copies of earlier ones."""
    cosines = units @ units.T
    kept: list[int] = []
    for row in range(len(units)):
        if cosines[row, row] > COPY and not np.any(cosines[row, kept] > COPY):
            kept.append(row)
    return kept


def _sentences(chunks: Sequence[Document]) -> Iterator[tuple[str, Document]]:
    """Return up to `SENTENCES` sentences with their chunks: one of each chunk, then a second one of each."""
    rng = random.Random(0)

    def of(chunk: Document) -> list[tuple[str, Document]]:
        texts = (chunk.content[start:end].strip() for start, end in sentence_spans(chunk.content))
        found = list(dict.fromkeys(filter(_is_asked, texts)))
        return [(text, chunk) for text in rng.sample(found, len(found))]

    turns = chain.from_iterable(zip_longest(*map(of, chunks)))
    return islice(filter(None, turns), SENTENCES)


def _is_asked(text: str) -> bool:
    return 10 <= len(text) <= 80 if _UNSPACED.search(text) else 4 <= len(_WORD.findall(text)) <= 25


def _overlap(one: Document, other: Document) -> bool:
    """Return whether two chunks have a part of a source in common."""
    if one.id == other.id:
        return True
    if _source_of(one) != _source_of(other):
        return False
    spans: list[Any] = [chunk.metadata.get(key) for chunk in (one, other) for key in ("start", "end")]
    return all(isinstance(at, int) for at in spans) and bool(spans[0] < spans[3] and spans[2] < spans[1])


@cache
def _expected_best(count: int) -> Floats:
    """Return the probability of each rank, best first, to be the best of `BEST_OF` chunks drawn from ``count``."""
    ranks = np.arange(1, count)
    ratios = np.maximum(0, count - ranks - BEST_OF + 1) / (count - ranks)
    return BEST_OF / count * np.cumprod(np.concatenate([[1.0], ratios]))
