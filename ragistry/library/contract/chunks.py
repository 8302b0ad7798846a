"""The types of the storage contract, and conversion of its chunks to chunks of a store and back.

Metadata are returned unchanged. Values that a store supports keep their key, so that conditions find them. All other
values (nested values, empty lists, null, integers above 64 bits, reserved keys) are stored in one JSON text under
`IN_JSON`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PureWindowsPath
from typing import Any, Literal

from ragistry import types
from ragistry.errors import DuplicateChunkIDError, InvalidChunkError
from ragistry.stores.chunk_checks import check_chunks, refuse
from ragistry.types import Chunk, Document, EmbeddedChunk
from ragistry.utils.metadata import MAX_VALUE_BYTES, stored_metadata, text_problem
from ragistry.utils.wording import listed, shown

log = logging.getLogger(__name__)

OnDuplicate = Literal["raise", "skip", "upsert"]
OnEmpty = Literal["raise", "skip"]
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
REMEDY = "give text, numbers, truth values, lists and mappings"


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A piece of a file of a documentation repository, before it is stored.

    Attributes:
        chunk_id: Id that is unique in its collection.
        content: The text.
        file_path: Path relative to the repository's root, with ``/``.
        repository_name: Name of the repository.
        heading_context: Headings above the text, such as "Installation > Prerequisites".
        chunk_index: Position in the file, from 0.
        token_count: Number of tokens.
        metadata: Further JSON values (``title``, ``section``, ``tags``, ``has_code``, ``processed_at`` …), which are
            returned unchanged. ``repository``, ``file_path``, ``heading_context``, ``chunk_index`` and ``token_count``
            must not differ from the chunk's fields.
    """

    chunk_id: str
    content: str
    file_path: str
    repository_name: str
    heading_context: str
    chunk_index: int
    token_count: int
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RetrievalMatch:
    """A chunk that was found; its score is the cosine similarity, 0 to 1."""

    chunk_id: str
    content: str
    score: float
    repository: str
    file_path: str
    heading_context: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RetrievalResult(types.RetrievalResult):
    """The result of `search_chunks`; ``matches`` has the documents in another form."""

    @property
    def matches(self) -> list[RetrievalMatch]:
        """The documents in the contract's form, best first."""
        return [
            RetrievalMatch(
                document.id,
                document.content,
                document.score,
                str(document.metadata.get("repository", "")),
                str(document.metadata.get("file_path", "")),
                str(document.metadata.get("heading_context", "")),
                document.metadata,
            )
            for document in self.documents
        ]


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection in the result of `list_collections`."""

    name: str
    chunk_count: int
    metadata: dict[str, Any]


def now() -> str:
    """Return the current time as ISO 8601 in UTC: ``2025-09-30T14:32:01Z``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def chunks_to_write(
    chunks: Iterable[DocumentChunk], on_empty: OnEmpty, on_duplicate: OnDuplicate
) -> dict[str, DocumentChunk]:
    """Select the chunks with text, one for each id, by their ids.

    Raises:
        InvalidChunkError: A chunk has no text, and ``on_empty`` is not ``skip``.
        DuplicateChunkIDError: An id occurs twice, and ``on_duplicate`` is ``raise``.
    """
    kept: dict[str, DocumentChunk] = {}
    for chunk in chunks:
        if not chunk.content or not chunk.content.strip():
            problem = f"chunk {chunk.chunk_id!r} of {chunk.file_path!r} has no text"
            if on_empty == "raise":
                raise InvalidChunkError(f"nothing was written: {problem}; leave it out, or set on_empty='skip'")
            log.error("%s and was left out", problem)
        elif chunk.chunk_id not in kept or on_duplicate == "upsert":
            kept[chunk.chunk_id] = chunk
        else:
            handle_duplicates([chunk.chunk_id], "occurs twice", on_duplicate)
    return kept


def handle_duplicates(ids: Iterable[str], problem: str, on_duplicate: OnDuplicate) -> None:
    """Refuse duplicate ids, or log that their chunks are skipped."""
    for identity in ids:
        if on_duplicate == "raise":
            raise DuplicateChunkIDError(
                f"nothing was written: chunk id {identity!r} {problem}; give each chunk its own id, or set "
                "on_duplicate='skip' or 'upsert'"
            )
        log.warning("chunk id %r %s; the chunk was left out", identity, problem)


def to_stored(chunks: Mapping[str, DocumentChunk], collection: str) -> dict[str, Chunk]:
    """Convert chunks to chunks of a store, by their ids.

    The metadata consist of the contract's `FIELDS` and the caller's values. ``collection``, ``source_file``, ``type``
    and ``processed_at`` are added if missing.

    Raises:
        InvalidChunkError: With all problems of all chunks.
    """
    known = {"collection": collection, "type": "document", "processed_at": now()}
    problems: list[str] = []
    stored = {}
    for identity, chunk in chunks.items():
        fields = {key: getattr(chunk, field) for key, field in FIELDS.items()}
        own = {key: value for key, value in chunk.metadata.items() if key not in FIELDS}
        kept, _ = stored_metadata(own)
        flat = {key: value for key, value in own.items() if key in kept and key != IN_JSON}
        in_json, problem = as_json({key: value for key, value in own.items() if key not in flat})
        faults = [*_field_faults(chunk), *filter(None, [problem])]
        problems += [f"chunk {shown(identity, 80)} {fault}" for fault in faults]
        more = {IN_JSON: in_json} if in_json else {}
        stored[identity] = Chunk(chunk.content, {"source_file": chunk.file_path, **known, **flat, **fields, **more})
    if problems:
        refuse(problems)
    check_chunks([EmbeddedChunk(*chunk, (1.0,)) for chunk in stored.values()], list(stored))  # before any is embedded
    return stored


def _field_faults(chunk: DocumentChunk) -> Iterable[str]:
    """Yield what is wrong with the fields of a chunk."""
    for name in ("chunk_index", "token_count"):
        if getattr(chunk, name) < 0:
            yield f"has the {name} {getattr(chunk, name)}; give 0 or more"
    path = chunk.file_path
    if "\0" in path or path.startswith("/") or PureWindowsPath(path).is_absolute():
        yield f"has the file_path {shown(path)}; give the path relative to the repository's root"
    for key, attribute in FIELDS.items():
        value, given = getattr(chunk, attribute), chunk.metadata.get(key, getattr(chunk, attribute))
        if value != given or type(value) is not type(given):
            yield f"metadata {key!r} is {shown(given)}, but its {attribute} is {shown(value)}; leave it out"


def as_json(values: Mapping[str, Any]) -> tuple[str, str]:
    """Write values as one JSON text.

    Returns:
        The text, empty without values, and why it cannot be stored and returned unchanged, empty if it can.
    """
    problem = ""
    try:
        text = json.dumps(dict(values), ensure_ascii=False, allow_nan=False) if values else ""
        if text and json.loads(text) != values:
            problem = f"would not be returned unchanged; {REMEDY}"
    except (TypeError, ValueError, RecursionError) as error:
        text, problem = "", f"cannot be written as JSON ({error}); {REMEDY}"
    problem = problem or text_problem(text, MAX_VALUE_BYTES)
    return text, problem and f"metadata {listed(map(str, values))} {problem}"


def from_stored(document: Document) -> Document:
    """Return a document with the metadata that the caller stored."""
    plain = without_json(document)
    if plain is document:
        return document
    return replace(plain, metadata=plain.metadata | json.loads(document.metadata[IN_JSON]))


def without_json(document: Document) -> Document:
    """Return a document without the metadata that stores do not support."""
    if IN_JSON not in document.metadata:
        return document
    return replace(document, metadata={key: value for key, value in document.metadata.items() if key != IN_JSON})
