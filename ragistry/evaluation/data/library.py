"""The library of a workspace as a test set: sources are the documents; a file has queries with their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragistry.errors import DatasetError
from ragistry.evaluation.data.dataset import Dataset, Text, raise_together
from ragistry.evaluation.data.queries import read_queries
from ragistry.types import Document
from ragistry.utils.joined import joined_text
from ragistry.utils.wording import did_you_mean

if TYPE_CHECKING:
    from ragistry.workspace import Workspace


def read_library(workspace: Workspace, queries_file: str | Path) -> Dataset:
    """The library's sources, and queries from JSON lines ``{"text": …, "sources": [SOURCE, …], "_id": …}``.

    A source has its name in the library, preceded by its collection (``notes/tea.md``) if two collections have one of
    that name; a mapping gives each source a grade. ``collection`` and ``source_file`` may
    name one instead. ``spans`` name passages of sources, by offsets into the extracted text or by their text; ``group``
    and ``kind`` as in `Dataset`. ``_id`` is the line's number where it is missing, and a query without a source is
    not measured. Raises `DatasetError` with every problem.
    """
    sources = dict(sources_of(workspace))
    if not sources:
        raise DatasetError(
            f"the library of {str(workspace.root)!r} is empty; ingest first: ragistry ingest FOLDER --collection NAME"
        )
    corpus = [Text(name, "", joined_text(chunks)) for name, chunks in sources.items()]
    starts = {name: min(int(one.metadata.get("start", 0)) for one in chunks) for name, chunks in sources.items()}
    by_name: dict[str, list[str]] = {}
    for name in sources:
        by_name.setdefault(name.partition("/")[2], []).append(name)

    def known(source: str) -> str:
        ids = [source] if source in sources else by_name.get(source, [])
        if not ids:
            near = did_you_mean(source, [*sources, *by_name]) or "; `ragistry sources list` names all that there are"
            raise ValueError(f"no source {source!r} in the library{near}")
        if len(ids) > 1:
            several = ", ".join(map(repr, ids))
            raise ValueError(f"{len(ids)} collections have a source {source!r}; write one of {several}")
        return ids[0]

    problems: list[str] = []
    texts, shifts = {one.id: one.whole for one in corpus}, {name: -start for name, start in starts.items()}
    found = read_queries(Path(queries_file), texts, shifts, problems, known)
    if not problems and not any(found["qrels"].values()) and not found["spans"]:
        problems = ['no query names what answers it; write {"text": "…", "sources": ["…"]}']
    raise_together(str(queries_file), problems)
    home = workspace.root.resolve()
    return Dataset(home.name, corpus, library=str(home), starts=starts, **found)


def sources_of(workspace: Workspace) -> Iterator[tuple[str, list[Document]]]:
    """Every source's id and its chunks in their order, ordered by id."""
    found: dict[str, list[Document]] = {}
    for chunk in workspace.store.scan():
        found.setdefault(source_id(chunk.metadata), []).append(chunk)
    for name in sorted(found):
        yield name, sorted(found[name], key=lambda chunk: int(chunk.metadata.get("chunk_index", 0)))


def source_id(metadata: Mapping[str, Any]) -> str:
    """The id of a chunk's source in a test set: ``COLLECTION/SOURCE_FILE``."""
    return f"{metadata.get('collection', '')}/{metadata.get('source_file', '')}"
