"""Conversion of the contract's chunks to chunks of a store, and back.

Metadata are returned unchanged. Values that a store supports keep their key, so that conditions find them. All other
values (nested values, empty lists, null, integers above 64 bits, reserved keys) are stored in one JSON text under
`IN_JSON`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PureWindowsPath
from typing import Any, Literal

from ragistry.errors import ConfigError, DuplicateChunkIDError, InvalidChunkError
from ragistry.library.contract.types import DocumentChunk
from ragistry.protocols import DocumentStore
from ragistry.types import Chunk, Document
from ragistry.utils.chunk_checks import MAX_TEXT_BYTES, id_problem, listed, refuse
from ragistry.utils.metadata import MAX_VALUE_BYTES, key_problem, stored_metadata, text_problem, value_problem
from ragistry.utils.wording import shown

log = logging.getLogger(__name__)

OnDuplicate = Literal["raise", "skip", "upsert"]
OnEmpty = Literal["raise", "skip"]
OnError = Literal["raise", "skip"]
IN_JSON = "in_json"
"""Metadata key of the values that a store does not support, as JSON; a caller's value of this key goes there too."""
FIELDS = {
    "file_path": "file_path",
    "repository": "repository_name",
    "heading_context": "heading_context",
    "chunk_index": "chunk_index",
    "token_count": "token_count",
}
"""Metadata keys of the contract, and the corresponding fields of a chunk."""


def now() -> str:
    """Return the current time as ISO 8601 in UTC: ``2025-09-30T14:32:01Z``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise `ConfigError` unless the value of an argument is one of its choices."""
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}; choose one of {', '.join(map(repr, choices))}")


def check_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Check the metadata of a collection: keys are text, and values are JSON.

    Raises:
        ConfigError: The metadata are invalid.
    """
    if not isinstance(metadata, Mapping):
        raise ConfigError(f"the metadata of a collection must be a mapping, got {shown(metadata)}")
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


def check_chunk(chunk: Any, position: int) -> None:
    """Raise `InvalidChunkError` if a chunk has fields of wrong types.

    Values are checked later, for all chunks at once.
    """
    if not isinstance(chunk, DocumentChunk):
        raise InvalidChunkError(f"nothing was written: chunks[{position}] is {shown(chunk)}; give a DocumentChunk")
    if not isinstance(chunk.chunk_id, str):
        raise InvalidChunkError(
            f"nothing was written: chunks[{position}] has the chunk_id {shown(chunk.chunk_id)}; an id must be text"
        )
    if not isinstance(chunk.metadata, Mapping):
        raise InvalidChunkError(
            f"nothing was written: the metadata of chunk {chunk.chunk_id!r} must be a mapping, "
            f"got {shown(chunk.metadata)}"
        )
    for name, remedy in _field_faults(chunk):
        raise InvalidChunkError(
            f"nothing was written: chunk {chunk.chunk_id!r} has the {name} {shown(getattr(chunk, name))}; {remedy}"
        )


def _field_faults(chunk: DocumentChunk) -> Iterator[tuple[str, str]]:
    """Yield invalid fields, and how to correct them."""
    for name in ("chunk_index", "token_count"):
        number = getattr(chunk, name)
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            yield name, "give a whole number, 0 or more"
    for name in ("file_path", "repository_name", "heading_context"):
        if not isinstance(getattr(chunk, name), str):
            yield name, "give text, or '' if there is none"
        elif "\0" in getattr(chunk, name):
            yield name, "remove the NUL character"
        elif name == "file_path" and _is_absolute(chunk.file_path):
            yield name, "give the path relative to the repository's root"


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or PureWindowsPath(path).is_absolute()


def with_content(chunks: Iterable[DocumentChunk], on_empty: OnEmpty) -> list[DocumentChunk]:
    """Return the chunks that have text.

    Raises:
        InvalidChunkError: A chunk has no text, and ``on_empty`` is not ``skip``.
    """
    kept = []
    for position, chunk in enumerate(listed("chunks", chunks)):
        check_chunk(chunk, position)
        if isinstance(chunk.content, str) and chunk.content.strip():
            kept.append(chunk)
        elif on_empty == "raise":
            raise InvalidChunkError(
                f"nothing was written: chunk {chunk.chunk_id!r} of {chunk.file_path!r} has no text: "
                f"{chunk.content!r:.80}; leave it out, or set on_empty='skip'"
            )
        else:
            log.error("chunk %r of %r has no text and was left out", chunk.chunk_id, chunk.file_path)
    return kept


def once(chunks: Iterable[DocumentChunk], on_duplicate: OnDuplicate) -> list[DocumentChunk]:
    """Remove duplicate ids: keep the first chunk, or the last one with ``upsert``."""
    kept: dict[str, DocumentChunk] = {}
    for chunk in chunks:
        if chunk.chunk_id not in kept or on_duplicate == "upsert":
            kept[chunk.chunk_id] = chunk
        else:
            _duplicate(chunk.chunk_id, "occurs twice", on_duplicate)
    return list(kept.values())


def not_stored(store: DocumentStore, chunks: Sequence[DocumentChunk], on_duplicate: OnDuplicate) -> list[DocumentChunk]:
    """Return the chunks to write: all with ``upsert``, else those not stored yet."""
    if on_duplicate == "upsert":
        return list(chunks)
    stored = {document.id for document in store.get([chunk.chunk_id for chunk in chunks])}
    for identity in stored:
        _duplicate(identity, "is already stored", on_duplicate)
    return [chunk for chunk in chunks if chunk.chunk_id not in stored]


def _duplicate(identity: str, what: str, on_duplicate: OnDuplicate) -> None:
    if on_duplicate == "raise":
        raise DuplicateChunkIDError(
            f"nothing was written: chunk id {identity!r} {what}; give each chunk its own id, or set "
            "on_duplicate='skip' or 'upsert'"
        )
    log.warning("chunk id %r %s; the chunk was left out", identity, what)


def as_stored(chunk: DocumentChunk, collection: str, processed_at: str) -> Chunk:
    """Convert a chunk to a text with metadata.

    The metadata consist of the contract's `FIELDS` and the caller's values. ``collection``, ``source_file``, ``type``
    and ``processed_at`` are added if missing.

    Raises:
        InvalidChunkError: ``metadata`` contradict a field of the chunk.
    """
    own = {key: getattr(chunk, field) for key, field in FIELDS.items()}
    for key in FIELDS:
        if key in chunk.metadata and not _same(chunk.metadata[key], own[key]):
            raise InvalidChunkError(
                f"nothing was written: chunk {chunk.chunk_id!r} has metadata {key!r} of {shown(chunk.metadata[key])}, "
                f"but its {FIELDS[key]} is {shown(own[key])}; leave it out, or use another key"
            )
    known = {"collection": collection, "source_file": chunk.file_path, "type": "document", "processed_at": processed_at}
    in_json = {key: value for key, value in chunk.metadata.items() if key not in FIELDS and _needs_json(key, value)}
    flat = {key: value for key, value in chunk.metadata.items() if key not in in_json}
    return Chunk(chunk.content, known | flat | own | ({IN_JSON: _json(in_json)} if in_json else {}))


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def check_storable(chunks: Sequence[Chunk], ids: Sequence[str]) -> None:
    """Raise `InvalidChunkError` with all errors of all chunks, by id."""
    problems: list[str] = []
    for chunk, identity in zip(chunks, ids, strict=True):
        _, faults = stored_metadata(chunk.metadata)
        text = text_problem(chunk.text, MAX_TEXT_BYTES)
        faults += filter(None, [text and f"text {text}", id_problem(identity)])
        problems += [f"chunk {shown(identity, 80)} {fault}" for fault in faults]
    if problems:
        refuse(problems)


def _needs_json(key: Any, value: Any) -> bool:
    """Return whether JSON supports this value, and a store does not or drops it."""
    if not isinstance(key, str):
        return False
    if isinstance(value, dict | list | tuple) or value is None:
        return not value or bool(value_problem(value)) or _reserved(key)
    number = isinstance(value, int) and bool(value_problem(value))
    return number or (_reserved(key) and isinstance(value, str | int | float))


def _reserved(key: str) -> bool:
    return key == IN_JSON or bool(key_problem(key))


def _json(values: Mapping[str, Any]) -> str:
    """Write values as one JSON text.

    Raises:
        InvalidChunkError: A value would not be restored unchanged.
    """
    for key, value in values.items():
        if problem := _json_problem({key: value}):
            raise InvalidChunkError(
                f"nothing was written: metadata {shown(key, 80)} {problem}; "
                "give text, numbers, truth values, lists and mappings"
            )
    text = json.dumps(values, ensure_ascii=False)
    if problem := text_problem(text, MAX_VALUE_BYTES):
        raise InvalidChunkError(
            f"nothing was written: the metadata {shown([*values], 80)} together {problem} as JSON; leave some out"
        )
    return text


def _json_problem(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        json.loads(text)
        return text_problem(text, MAX_VALUE_BYTES) or _key_problem(value)
    except (TypeError, ValueError, RecursionError) as error:
        return f"cannot be written as JSON ({error})"


def _key_problem(value: Any) -> str:
    """Describe an invalid key of a nested value, which JSON would convert to text."""
    if isinstance(value, dict):
        wrong = [key for key in value if not isinstance(key, str)]
        return f"has the key {shown(wrong[0])}, which is not text" if wrong else _key_problem([*value.values()])
    return next(filter(None, map(_key_problem, value)), "") if isinstance(value, list | tuple) else ""


def as_given(document: Document) -> Document:
    """Return a document with the metadata that the caller stored."""
    if IN_JSON not in document.metadata:
        return document
    plain = without_json(document)
    return replace(plain, metadata=plain.metadata | json.loads(document.metadata[IN_JSON]))


def without_json(document: Document) -> Document:
    """Return a document without the metadata that stores do not support."""
    if IN_JSON not in document.metadata:
        return document
    return replace(document, metadata={key: value for key, value in document.metadata.items() if key != IN_JSON})
