"""Metadata that come with a source or are set later, and how they are merged; see `utils.metadata`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragistry.protocols import LibraryStore
from ragistry.stores.records import source_chunks
from ragistry.types import Chunk, SourceInfo
from ragistry.utils.metadata import SET_KEYS, check_number, checked_metadata, date_text

MetadataArgument = Mapping[str, Any] | Callable[[Path], Mapping[str, Any] | None] | None
"""Metadata for every source, or a function that returns those of a path; None keeps what was set before."""


@dataclass(frozen=True, slots=True)
class SourceMetadata:
    """Metadata that come with a source.

    Attributes:
        argument: Metadata to set, as `checked_metadata` returns them; they stay until they are set again.
        table: Metadata from a table next to the file (`metadata_tables`).
        modified: Modification time of the file, as it is stored; empty to ask the file system.
    """

    argument: Mapping[str, Any] = field(default_factory=dict)
    table: Mapping[str, Any] = field(default_factory=dict)
    modified: str = ""

    def changes(self, info: SourceInfo) -> bool:
        """Return whether the argument sets something that the stored source lacks."""
        return any(
            key not in info.set_keys or _differ(info.metadata.get(key), value) for key, value in self.argument.items()
        )

    def combined(self, content: str) -> str:
        """Return a hash of the content and of the table's metadata."""
        if not self.table:
            return content
        return sha256(f"{content}{json.dumps(self.table, sort_keys=True)}".encode()).hexdigest()

    def add_to(self, chunks: Sequence[Chunk], stored: SourceInfo | None, path: str) -> None:
        """Add these metadata to the chunks of a source, and those that were set on its stored version.

        Raises:
            InvalidMetadataError: There are too many keys.
        """
        kept = {} if stored is None else {key: stored.metadata.get(key) for key in stored.set_keys}
        modified = self.modified or modification_time(path)
        for chunk in chunks:
            if modified:
                chunk.metadata.setdefault("modified", modified)
            chunk.metadata.update(self.table)
            _set(chunk.metadata, kept | dict(self.argument))
        check_number(chunks[0].metadata if chunks else {})


def modification_time(path: str) -> str:
    """Return the modification time of a file as it is stored; empty if it is unknown."""
    try:
        return date_text(datetime.fromtimestamp(Path(path).stat().st_mtime, UTC)) if path else ""
    except (OSError, ValueError, OverflowError):
        return ""


NO_METADATA = SourceMetadata()


def argument_of(metadata: MetadataArgument, path: str) -> dict[str, Any]:
    """Return the checked metadata of an argument for a path. Raises `InvalidMetadataError`."""
    given = metadata(Path(path)) if callable(metadata) else metadata
    return {} if given is None else checked_metadata(given)


def set_metadata(store: LibraryStore, info: SourceInfo, metadata: Mapping[str, Any]) -> None:
    """Change metadata of a stored source, and keep its text and vectors; None removes a key.

    Raises:
        InvalidMetadataError: A key is reserved, or a key or value is not allowed.
    """
    changed = checked_metadata(metadata)
    with store.writing():
        chunks = source_chunks(store, info.collection, info.source_file)
        for chunk in chunks:
            _set(chunk.metadata, changed)
        check_number(chunks[0].metadata)
        store.replace_source(info.collection, info.source_file, chunks)


def _set(metadata: dict[str, Any], changed: Mapping[str, Any]) -> None:
    """Set keys of a chunk and record them as set."""
    if not changed:
        return
    for key, value in changed.items():
        metadata.pop(key, None)
        if value is not None:
            metadata[key] = value
    metadata[SET_KEYS] = sorted({*metadata.get(SET_KEYS, ()), *changed})


def _differ(one: Any, other: Any) -> bool:
    """Return whether values differ; 1, 1.0 and True do."""
    return repr(one) != repr(other)
