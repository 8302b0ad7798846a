"""Whether two embedders give vectors that may be compared, and a fingerprint as text."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from ragistry.errors import EmbeddingMismatchError, StoreCorruptError
from ragistry.types import EmbedderFingerprint

if TYPE_CHECKING:
    from ragistry.protocols import LibraryStore

UNKNOWN = ("", 0)


def differences(one: EmbedderFingerprint, other: EmbedderFingerprint) -> list[str]:
    """The names of the fields in which the two differ; a digest or limit that one does not know is no difference."""
    return [
        field.name
        for field in fields(EmbedderFingerprint)
        if (a := getattr(one, field.name)) != (b := getattr(other, field.name))
        and not (field.name in ("digest", "max_tokens") and (a in UNKNOWN or b in UNKNOWN))
    ]


def check_same_embedder(
    recorded: EmbedderFingerprint, given: EmbedderFingerprint, *, instead: str = "run `ragistry reembed`"
) -> None:
    """Raise `EmbeddingMismatchError` unless vectors of the two may be compared.

    ``instead``: what the message says to do for the new embedder.
    """
    names = differences(recorded, given)
    if names:
        was = ", ".join(f"{name} {getattr(recorded, name)!r}" for name in names)
        now = ", ".join(f"{name} {getattr(given, name)!r}" for name in names)
        raise EmbeddingMismatchError(
            f"the vectors in the store come from {recorded.provider} {recorded.model!r} ({was}), the embedder is "
            f"{given.provider} {given.model!r} ({now}); set embed_model in documents.yaml to the one that the store "
            f"was filled with, or {instead}"
        )


def check_embedder(store: LibraryStore, fingerprint: EmbedderFingerprint) -> None:
    """Raise `EmbeddingMismatchError` if the vectors of the store come from another embedder."""
    recorded = store.embedder()
    if recorded is not None:
        anew = "ingest again into another collection of the store (`collection` in documents.yaml)"
        check_same_embedder(
            recorded, fingerprint, instead="run `ragistry reembed`" if "reembed" in store.abilities else anew
        )


def to_json(fingerprint: EmbedderFingerprint) -> str:
    """The fingerprint as text that `from_json` reads."""
    return json.dumps(asdict(fingerprint), sort_keys=True)


def from_json(text: str) -> EmbedderFingerprint:
    """The fingerprint that `to_json` wrote; raises `StoreCorruptError` for anything else."""
    try:
        return EmbedderFingerprint(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise StoreCorruptError(
            f"the store's record of its embedder cannot be read: {text!r:.200}; clear the store and ingest again"
        ) from error
