"""Compare fingerprints of embedders, and convert them to text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from functools import lru_cache
from math import dist, hypot
from typing import TYPE_CHECKING

from ragistry.errors import EmbeddingMismatchError, StoreCorruptError
from ragistry.types import EmbedderFingerprint

if TYPE_CHECKING:
    from ragistry.protocols import LibraryStore

NOT_ALWAYS_KNOWN = {"digest": "", "max_tokens": 0, "probe": ""}
"""Fields that some servers do not report, and their value then, which does not count as a difference."""

PROBE = "The quick brown fox jumps over the lazy dog."
"""The text whose vector distinguishes two models of the same name."""
PROBE_NUMBERS = 32
TOLERANCE = 0.2
"""Maximum relative distance of two probes of the same model.

Half precision and other batch sizes change a vector by up to 0.05 (a cosine of 0.999), weights of 8 bits by 0.1.
Vectors of two models are unrelated: about 1.4.
"""


def probe_of(vector: Sequence[float]) -> str:
    """Write the first numbers of the vector ``(d,)`` of `PROBE` as text."""
    return " ".join(f"{float(number):.5g}" for number in vector[:PROBE_NUMBERS])


def differences(one: EmbedderFingerprint, other: EmbedderFingerprint) -> list[str]:
    """Return the names of the fields that differ; unknown values do not count as differences."""
    found = []
    for field in fields(EmbedderFingerprint):
        a, b = getattr(one, field.name), getattr(other, field.name)
        unknown = field.name in NOT_ALWAYS_KNOWN and NOT_ALWAYS_KNOWN[field.name] in (a, b)
        if a != b and not unknown and (field.name != "probe" or not _is_near(a, b)):
            found.append(field.name)
    return found


def _is_near(one: str, other: str) -> bool:
    a, b = ([float(number) for number in probe.split()] for probe in (one, other))
    return len(a) == len(b) and dist(a, b) <= TOLERANCE * max(hypot(*a), hypot(*b))


REFILL = "ingest again into another collection of the store (`collection` in documents.yaml)"
"""What to do with a store whose vectors cannot be replaced."""


def check_same_embedder(
    recorded: EmbedderFingerprint, current: EmbedderFingerprint, *, instead: str = "run `ragistry reembed`"
) -> None:
    """Raise `EmbeddingMismatchError` unless vectors of the two embedders are comparable.

    ``instead``: the remedy in the message to use the new embedder.
    """
    if recorded == current and recorded.probe == current.probe:  # equality ignores the probe
        return
    names = differences(recorded, current)
    if names == ["probe"]:
        raise EmbeddingMismatchError(
            f"the server now returns another vector for the same text than when the store was filled: "
            f"{current.model!r} is another model there; serve the one that the store was filled with, or {instead}"
        )
    if names:
        known = [name for name in names if name != "probe"]
        was = ", ".join(f"{name} {getattr(recorded, name)!r}" for name in known)
        now = ", ".join(f"{name} {getattr(current, name)!r}" for name in known)
        raise EmbeddingMismatchError(
            f"the vectors in the store come from {recorded.provider} {recorded.model!r} ({was}), the embedder is "
            f"{current.provider} {current.model!r} ({now}); set embed_model in documents.yaml to the one that the "
            f"store was filled with, or {instead}"
        )


def check_embedder(store: LibraryStore, fingerprint: EmbedderFingerprint) -> None:
    """Raise `EmbeddingMismatchError` if the vectors of the store come from another embedder."""
    recorded = store.embedder()
    if recorded is not None:
        check_same_embedder(
            recorded, fingerprint, instead="run `ragistry reembed`" if "reembed" in store.abilities else REFILL
        )


def to_json(fingerprint: EmbedderFingerprint) -> str:
    """Write the fingerprint as text for `from_json`."""
    return json.dumps(asdict(fingerprint), sort_keys=True)


@lru_cache(maxsize=16)
def from_json(text: str) -> EmbedderFingerprint:
    """Read the fingerprint that `to_json` wrote. Raises `StoreCorruptError` for other text."""
    try:
        return EmbedderFingerprint(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise StoreCorruptError(
            f"the store's record of its embedder cannot be read: {text!r:.200}; clear the store and ingest again"
        ) from error
