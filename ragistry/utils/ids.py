"""Deterministic ids: the same source, cut the same way, always has the same ids."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

PLACE = ("collection", "source_file", "chunk_index")
"""The metadata that together determine the id of a chunk."""


def chunk_id(collection: str, source_file: str, chunk_index: int) -> str:
    """Compute the id of a chunk of a source: 64 hexadecimal characters."""
    return sha256(f"{collection}::{source_file}::{chunk_index}".encode()).hexdigest()


def composed(text: str) -> str:
    """Return the composed form of a name or text: systems write the same one composed or decomposed."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def content_id(text: str) -> str:
    """Compute the id of a chunk without a source."""
    return sha256(text.encode()).hexdigest()


def text_hash(text: str) -> str:
    """Return the first 16 hexadecimal characters of the SHA-256 of a text."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def id_of(text: str, metadata: Mapping[str, Any]) -> str:
    """Compute the id of a chunk from its source and position, or from its content if these are unknown."""
    if all(key in metadata for key in PLACE):
        return chunk_id(metadata["collection"], metadata["source_file"], metadata["chunk_index"])
    return content_id(text)
