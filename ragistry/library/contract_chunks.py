"""Chunks of the contract as a store keeps them, and back."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from ragistry.errors import ConfigError, DuplicateChunkIDError, InvalidChunkError
from ragistry.library.contract_types import DocumentChunk
from ragistry.protocols import DocumentStore
from ragistry.types import Chunk, Document, EmbeddedChunk
from ragistry.utils.chunk_checks import check_chunks
from ragistry.utils.metadata import value_problem

log = logging.getLogger(__name__)

OnDuplicate = Literal["raise", "skip", "upsert"]
OnEmpty = Literal["raise", "skip"]
OnError = Literal["raise", "skip"]
NESTED = "json_keys"
"""Metadata key: which of the other keys hold JSON text in the place of a value that a store cannot hold."""


def now() -> str:
    """The time as ISO 8601 in UTC, to the second: ``2025-09-30T14:32:01Z``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise `ConfigError` unless the value of an argument is one of its choices."""
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}; choose one of {', '.join(map(repr, choices))}")


def check_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata of a collection; raises `ConfigError` unless the keys are text and the values what JSON can hold."""
    wrong = [key for key in metadata if not isinstance(key, str)]
    if wrong:
        raise ConfigError(f"a key of a collection's metadata must be text, got {wrong[0]!r}")
    try:
        json.dumps(dict(metadata), allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"the metadata of a collection cannot be written as JSON ({error}): {dict(metadata)!r:.200}; "
            "give text, numbers, truth values, lists and mappings"
        ) from error
    return dict(metadata)


def with_content(chunks: Iterable[DocumentChunk], on_empty: OnEmpty) -> list[DocumentChunk]:
    """The chunks that have text. Raises `InvalidChunkError` for one that has none, unless it is to be skipped."""
    kept = []
    for chunk in chunks:
        if isinstance(chunk.content, str) and chunk.content.strip():
            kept.append(chunk)
        elif on_empty == "raise":
            raise InvalidChunkError(
                f"nothing was written: chunk {chunk.chunk_id!r} of {chunk.file_path!r} has no text: "
                f"{chunk.content!r:.80}; leave it out, or give on_empty='skip'"
            )
        else:
            log.error("chunk %r of %r has no text and was left out", chunk.chunk_id, chunk.file_path)
    return kept


def once(chunks: Iterable[DocumentChunk], on_duplicate: OnDuplicate) -> list[DocumentChunk]:
    """Each id once: the first of them, or the last where a later one takes the place of an earlier."""
    kept: dict[str, DocumentChunk] = {}
    for chunk in chunks:
        if chunk.chunk_id not in kept or on_duplicate == "upsert":
            kept[chunk.chunk_id] = chunk
        else:
            _duplicate(chunk.chunk_id, "comes twice", on_duplicate)
    return list(kept.values())


def not_stored(store: DocumentStore, chunks: Sequence[DocumentChunk], on_duplicate: OnDuplicate) -> list[DocumentChunk]:
    """The chunks that are to be written, by what is stored already."""
    if on_duplicate == "upsert":
        return list(chunks)
    stored = {document.id for document in store.get([chunk.chunk_id for chunk in chunks])}
    for identity in stored:
        _duplicate(identity, "is stored already", on_duplicate)
    return [chunk for chunk in chunks if chunk.chunk_id not in stored]


def _duplicate(identity: str, what: str, on_duplicate: OnDuplicate) -> None:
    if on_duplicate == "raise":
        raise DuplicateChunkIDError(
            f"nothing was written: chunk id {identity!r} {what}; give each chunk its own, or on_duplicate='skip' "
            "or 'upsert'"
        )
    log.warning("chunk id %r %s; the chunk was left out", identity, what)


def as_stored(chunk: DocumentChunk, collection: str, processed_at: str) -> Chunk:
    """The text, and one level of metadata: what the chunk itself says goes before its ``metadata``."""
    metadata = {"processed_at": processed_at, **_flat(chunk.metadata)}
    own = {
        "file_path": chunk.file_path,
        "repository": chunk.repository_name,
        "heading_context": chunk.heading_context,
        "chunk_index": chunk.chunk_index,
        "token_count": chunk.token_count,
        "collection": collection,
        "source_file": chunk.file_path,
        "type": "document",
    }
    return Chunk(chunk.content, metadata | own)


def check_storable(chunks: Sequence[Chunk], ids: Sequence[str]) -> None:
    """Raise `InvalidChunkError` with every fault of every chunk, before a model is asked for vectors."""
    check_chunks([EmbeddedChunk(chunk.text, chunk.metadata, (1.0,)) for chunk in chunks], ids)


def _flat(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What a store cannot hold as a value, but JSON can, becomes text, and its key is noted."""
    flat = dict(metadata)
    nested = [key for key, value in flat.items() if isinstance(value, dict | list | tuple) and value_problem(value)]
    for key in nested:
        try:
            flat[key] = json.dumps(flat[key], ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidChunkError(
                f"nothing was written: metadata {key!r} cannot be written as JSON ({error}); "
                "give text, numbers, truth values, lists and mappings"
            ) from error
    return {**flat, NESTED: nested} if nested else flat


def as_given(document: Document) -> Document:
    """A document with its metadata as they were given."""
    nested = document.metadata.get(NESTED)
    if not isinstance(nested, list):
        return document
    metadata = {key: value for key, value in document.metadata.items() if key != NESTED}
    for key in nested:
        metadata[key] = json.loads(metadata[key])
    return replace(document, metadata=metadata)
