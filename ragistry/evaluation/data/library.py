"""Read the sources of a workspace's library or of a folder, as a test set or for making one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragistry.chunking.chunker import chunk_extracted
from ragistry.chunking.joined import joined_text
from ragistry.errors import DatasetError
from ragistry.evaluation.data.dataset import Dataset, Text, raise_together
from ragistry.evaluation.data.files import read_queries
from ragistry.library.ingest.folder import files_of
from ragistry.protocols import LibraryStore
from ragistry.readers.extract import extract
from ragistry.types import Document
from ragistry.utils.ids import composed
from ragistry.utils.wording import did_you_mean

if TYPE_CHECKING:
    from ragistry.workspace import Workspace

CHUNK = 1_000
"""Chunk size in characters for files that are not in a library."""


class LibrarySource(NamedTuple):
    """A source, its author's description of it, and the chunks for questions."""

    id: str
    description: str
    text: str
    chunks: list[str]


def read_library(workspace: Workspace, queries_file: str | Path) -> Dataset:
    """Read the library of a workspace as a test set. Its sources are the documents.

    A line of the queries is ``{"text": …, "sources": [SOURCE, …], "_id": …}``. A SOURCE is a name in the library; put
    the collection before it (``notes/tea.md``) if two collections have a source of that name. A mapping of sources
    gives each a grade. ``collection`` and ``source_file`` may name one source instead. ``spans`` name passages, by
    offsets into the extracted text or by their text; ``group`` and ``kind`` are as in `Dataset`. The default of ``_id``
    is the line's number. A query without a source is not measured.

    Args:
        workspace: The workspace.
        queries_file: The queries, as JSON lines.

    Raises:
        DatasetError: The library is empty, or the file has errors; all of them.
    """
    sources = dict(sources_in(workspace.store))
    if not sources:
        raise DatasetError(
            f"the library of {str(workspace.root)!r} is empty; ingest first: ragistry ingest FOLDER --collection NAME"
        )
    corpus = [Text(name, "", joined_text(chunks)) for name, chunks in sources.items()]
    starts = {name: min(int(one.metadata.get("start", 0)) for one in chunks) for name, chunks in sources.items()}
    by_name: dict[str, list[str]] = {}
    for name in sources:
        for key in (name, name.partition("/")[2]):
            by_name.setdefault(composed(key), []).append(name)

    def known(source: str) -> str:
        ids = [source] if source in sources else by_name.get(composed(source), [])
        if not ids:
            near = did_you_mean(source, [*sources, *by_name]) or "; `ragistry sources list` lists them"
            raise ValueError(f"no source {source!r} in the library{near}")
        if len(ids) > 1:
            raise ValueError(f"{len(ids)} collections have a source {source!r}; use one of {', '.join(map(repr, ids))}")
        return ids[0]

    problems: list[str] = []
    texts, shifts = {one.id: one.whole for one in corpus}, {name: -start for name, start in starts.items()}
    found = read_queries(Path(queries_file), texts, shifts, problems, known)
    if not problems and not any(found["qrels"].values()) and not found["spans"]:
        problems = ['no query names a source that answers it; write {"text": "…", "sources": ["…"]}']
    raise_together(str(queries_file), problems)
    home = workspace.root.resolve()
    return Dataset(home.name, corpus, library=str(home), starts=starts, **found)


def library_sources(workspace: Workspace, collection: str | None = None) -> list[LibrarySource]:
    """List the sources of a library, or of one of its collections, ordered by id."""
    found = []
    for name, chunks in sources_in(workspace.store):
        known = chunks[0].metadata
        if collection in (None, known.get("collection")):
            description, texts = str(known.get("description", "")), [chunk.content for chunk in chunks]
            found.append(LibrarySource(name, description, joined_text(chunks), texts))
    return found


def folder_sources(folder: str | Path) -> list[LibrarySource]:
    """List the readable files below a folder that have text, ordered by name. Raises `SourceError`."""
    found = []
    for file in files_of(folder):
        extracted = extract(file.path)
        description = str(extracted.metadata.get("description", ""))
        chunks = [chunk.text for chunk in chunk_extracted(extracted, CHUNK)]
        if chunks:
            found.append(LibrarySource(file.source_file, description, extracted.text, chunks))
    return found


def sources_in(store: LibraryStore) -> Iterator[tuple[str, list[Document]]]:
    """Yield the id and the ordered chunks of each source, ordered by id."""
    found: dict[str, list[Document]] = {}
    for chunk in store.scan():
        found.setdefault(source_id(chunk.metadata), []).append(chunk)
    for name in sorted(found):
        yield name, sorted(found[name], key=lambda chunk: int(chunk.metadata.get("chunk_index", 0)))


def source_id(metadata: Mapping[str, Any]) -> str:
    """Return the id of a chunk's source in a test set: ``COLLECTION/SOURCE_FILE``."""
    return f"{metadata.get('collection', '')}/{metadata.get('source_file', '')}"
