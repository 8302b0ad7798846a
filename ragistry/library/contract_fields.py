"""Whether a chunk of the contract is one, by the types of its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PureWindowsPath
from typing import Any

from ragistry.errors import InvalidChunkError
from ragistry.library.contract_types import DocumentChunk
from ragistry.utils.shown import shown


def check_chunk(chunk: Any, position: int) -> None:
    """Raise `InvalidChunkError` for what is none by its types; values are checked later, all at once."""
    if not isinstance(chunk, DocumentChunk):
        raise InvalidChunkError(f"nothing was written: chunks[{position}] is {shown(chunk)}; give a DocumentChunk")
    if not isinstance(chunk.chunk_id, str):
        raise InvalidChunkError(
            f"nothing was written: chunks[{position}] has the chunk_id {shown(chunk.chunk_id)}; an id is text"
        )
    if not isinstance(chunk.metadata, Mapping):
        raise InvalidChunkError(
            f"nothing was written: the metadata of chunk {chunk.chunk_id!r} are {shown(chunk.metadata)}; "
            "give a mapping, {} where there are none"
        )
    for name, remedy in _field_faults(chunk):
        raise InvalidChunkError(
            f"nothing was written: chunk {chunk.chunk_id!r} has the {name} {shown(getattr(chunk, name))}; {remedy}"
        )


def _field_faults(chunk: DocumentChunk) -> Iterator[tuple[str, str]]:
    """The fields that are not of their types, or cannot be what they say, and what to give."""
    for name in ("chunk_index", "token_count"):
        number = getattr(chunk, name)
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            yield name, "give a whole number, 0 or more"
    for name in ("file_path", "repository_name", "heading_context"):
        if not isinstance(getattr(chunk, name), str):
            yield name, "give text, '' where there is none"
        elif "\0" in getattr(chunk, name):
            yield name, "take out the NUL"
        elif name == "file_path" and _is_absolute(chunk.file_path):
            yield name, "give the path relative to the repository's root"


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or PureWindowsPath(path).is_absolute()
