"""The sources that a test set is made from: a workspace's library, or a folder of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragistry.evaluation.from_library import sources_of
from ragistry.library.listing import files_of
from ragistry.utils.chunker import chunk_extracted
from ragistry.utils.extract import extract
from ragistry.utils.joined import joined_text

if TYPE_CHECKING:
    from ragistry.workspace import Workspace

CHUNK = 1_000
"""Characters of the chunks of a file, where no library has cut it."""


class Source(NamedTuple):
    """A source, what its author says it is about, and the chunks that questions are asked about."""

    id: str
    title: str
    description: str
    text: str
    chunks: list[str]


def library_sources(workspace: Workspace, collection: str | None = None) -> list[Source]:
    """The sources of a library, or of one of its collections, ordered by id."""
    found = []
    for name, chunks in sources_of(workspace):
        known = chunks[0].metadata
        if collection in (None, known.get("collection")):
            title, description = str(known.get("title", "")), str(known.get("description", ""))
            found.append(Source(name, title, description, joined_text(chunks), [chunk.content for chunk in chunks]))
    return found


def folder_sources(folder: str | Path) -> list[Source]:
    """The readable files below a folder that have text, ordered by name. Raises `SourceError`."""
    found = []
    for file in files_of(folder):
        extracted = extract(file.path)
        title, description = (str(extracted.metadata.get(key, "")) for key in ("title", "description"))
        chunks = [chunk.text for chunk in chunk_extracted(extracted, CHUNK)]
        if chunks:
            found.append(Source(file.source_file, title, description, extracted.text, chunks))
    return found
