"""A workspace's own library as a test set: its sources are the documents, a file of queries says what they answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragistry.errors import DatasetError
from ragistry.evaluation.data.beir import lines_of
from ragistry.evaluation.data.dataset import Dataset, Qrels, Spans, Text, raise_together, read_spans
from ragistry.types import Document
from ragistry.utils.joined import joined_text
from ragistry.utils.suggest import did_you_mean

if TYPE_CHECKING:
    from ragistry.workspace import Workspace


SHAPE = '{"text": "…", "sources": ["…"]}'
"""A line of a file of queries."""


def read_library(workspace: Workspace, queries_file: str | Path) -> Dataset:
    """The library's sources, and queries from JSON lines ``{"text": …, "sources": [SOURCE, …], "_id": …}``.

    A source is named as in the library, with its collection before it (``notes/tea.md``) where two collections have
    one of that name; a mapping from source to grade says how well each answers. ``collection`` and ``source_file`` may
    name one instead. ``spans`` name passages of sources, by offsets into the extracted text or by their text; ``group``
    and ``kind`` as in `Dataset`. ``_id`` is the line's number where it is missing, and a query without a source is
    not measured. Raises `DatasetError` with every problem.
    """
    starts: dict[str, int] = {}
    corpus = []
    for name, chunks in sources_of(workspace):
        corpus.append(Text(name, "", joined_text(chunks)))
        starts[name] = min(int(chunk.metadata.get("start", 0)) for chunk in chunks)
    if not corpus:
        raise DatasetError(
            f"the library of {str(workspace.root)!r} is empty; ingest first: ragistry ingest FOLDER --collection NAME"
        )
    by_name: dict[str, list[str]] = {document.id: [document.id] for document in corpus}
    for document in corpus:
        by_name.setdefault(document.id.partition("/")[2], []).append(document.id)
    texts = {document.id: document.whole for document in corpus}
    shifts = {name: -start for name, start in starts.items()}
    queries: dict[str, str] = {}
    qrels: Qrels = {}
    spans: Spans = {}
    said: dict[str, dict[str, str]] = {"group": {}, "kind": {}}
    remarks: list[str] = []
    problems = []
    for number, (place, line) in enumerate(lines_of(Path(queries_file)), 1):
        try:
            row = _row(line)
            query, text, sources = _fields(row, number)
            if query in queries:
                raise ValueError(f"the id {query!r} comes twice; give each query its own")
            queries[query] = text
            qrels[query] = {_known(source, by_name): grade for source, grade in sources.items()}
            for key, kept in said.items():
                if row.get(key) not in (None, ""):
                    kept[query] = str(row[key])
            given = [_with_known_document(one, by_name) for one in row.get("spans") or []]
            if found := read_spans(query, given, texts, shifts, remarks):
                spans[query] = found
        except ValueError as error:
            problems.append(f"{place}: {error}")
    if not problems and not any(qrels.values()) and not spans:
        problems = [f"no query names what answers it; write {SHAPE}"]
    raise_together(str(queries_file), problems)
    home = workspace.root.resolve()
    return Dataset(
        home.name, corpus, queries, qrels, remarks, library=str(home),
        groups=said["group"], kinds=said["kind"], spans=spans, starts=starts,
    )  # fmt: skip


def sources_of(workspace: Workspace) -> Iterator[tuple[str, list[Document]]]:
    """Every source's id and its chunks in their order, ordered by id."""
    found: dict[str, list[Document]] = {}
    for chunk in workspace.store.scan():
        found.setdefault(source_id(chunk.metadata), []).append(chunk)
    for name in sorted(found):
        yield name, sorted(found[name], key=lambda chunk: int(chunk.metadata.get("chunk_index", 0)))


def source_id(metadata: Mapping[str, Any]) -> str:
    """The id, in a test set, of the source that a chunk comes from: ``COLLECTION/SOURCE_FILE``."""
    return f"{metadata.get('collection', '')}/{metadata.get('source_file', '')}"


def _row(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:  # the latter of a line that is nested too deep
        raise ValueError(f"no JSON object: {line!r:.80}; write {SHAPE}") from error


def _fields(row: Any, number: int) -> tuple[str, str, Mapping[str, int]]:
    if not isinstance(row, dict) or not isinstance(row.get("text"), str) or not row["text"].strip():
        raise ValueError(f"no query: {row!r:.80}; write {SHAPE}")
    sources = row.get("sources") or _one_source(row)
    listed = isinstance(sources, list) and all(isinstance(name, str) for name in sources)
    graded = sources if isinstance(sources, dict) else dict.fromkeys(sources, 1) if listed else None
    if graded is None or any(type(grade) is not int for grade in graded.values()):
        raise ValueError(f"'sources' must be a list of names, or names with whole grades, got {sources!r:.80}")
    return str(row.get("_id", number)), row["text"], graded


def _with_known_document(span: Any, by_name: Mapping[str, list[str]]) -> Any:
    """A span whose document has the full name of its source."""
    named = isinstance(span, dict) and isinstance(span.get("document"), str)
    return {**span, "document": _known(span["document"], by_name)} if named else span


def _one_source(row: Mapping[str, Any]) -> list[str]:
    """What ``collection`` and ``source_file`` name, as chunks and search results do; null: nothing answers."""
    names = [row[key] for key in ("collection", "source_file") if row.get(key) is not None]
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"'collection' and 'source_file' must be text, got {names!r:.80}")
    if row.get("source_file") is None and names:
        raise ValueError(f"the collection {names[0]!r} without a 'source_file'; name the source that answers")
    return ["/".join(names)] if names else []


def _known(source: Any, by_name: Mapping[str, list[str]]) -> str:
    ids = by_name.get(str(source), [])
    if source in ids:
        return str(source)
    if not ids:
        near = did_you_mean(source, by_name) or "; `ragistry sources list` names all that there are"
        raise ValueError(f"no source {source!r} in the library{near}")
    if len(ids) > 1:
        raise ValueError(f"{len(ids)} collections have a source {source!r}; write one of {', '.join(map(repr, ids))}")
    return ids[0]
