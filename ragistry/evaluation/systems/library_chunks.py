"""Take the chunks of a synthetic test set from the library that it was made from.

A comparison on the workspace's own documents then searches the chunks that a search finds, with their headings and
vectors. Only the words of queries are removed, from the text as `testset make` removed them, and from titles and
headings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ragistry.chunking.breadcrumb import KEY as BREADCRUMB
from ragistry.chunking.breadcrumb import SENTENCE_AFTER, SENTENCE_BEFORE, TABLE_HEADER, breadcrumb
from ragistry.chunking.joined import Span, joined_text, spans
from ragistry.chunking.places import KEYS
from ragistry.evaluation.data.checks import contains_words
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.data.library import sources_in
from ragistry.evaluation.data.testsets import without
from ragistry.protocols import LibraryStore
from ragistry.types import Chunk, Document

HEADINGS = ("title", "section", "chapter", "sheet", "part")
"""Metadata with names that may be queries, besides ``heading_context``."""
CHUNK_KEYS = frozenset(
    {
        *(*HEADINGS, *KEYS, BREADCRUMB, TABLE_HEADER, SENTENCE_BEFORE, SENTENCE_AFTER),
        *("start", "end", "has_code", "language", "token_count"),
    }
)
"""Metadata of a chunk that a test set keeps; names, tags and descriptions may give an answer away."""


def library_chunks(dataset: Dataset, store: LibraryStore) -> dict[str, list[Chunk]]:
    """Return the chunks of each document that the library has in the version of the test set.

    Documents that were changed after the test set was made, and those of no library, are missing.

    Args:
        dataset: A test set. The result is empty if a program did not make its queries, and it is not a library.
        store: The store of the library.
    """
    if not dataset.synthetic and dataset.library is None:
        return {}
    texts = {one.id: one.text for one in dataset.corpus if not one.title}
    queries, cut_out = _queries_of(dataset)
    found = {}
    for name, chunks in sources_in(store):
        if name not in texts:
            continue
        whole, own, cuts = joined_text(chunks), queries[name], sorted(cut_out[name])
        known = spans(chunks)
        if without(whole, cuts) == texts[name] and (known or not cuts):
            found[name] = _chunks(chunks, known or [], cuts, own)
    return found


def _queries_of(dataset: Dataset) -> tuple[defaultdict[str, list[str]], defaultdict[str, set[Span]]]:
    """Return the queries that were made from each document, and the parts that were cut out for them."""
    queries: defaultdict[str, list[str]] = defaultdict(list)
    cuts: defaultdict[str, set[Span]] = defaultdict(set)
    for query in dataset.synthetic.keys() & dataset.judged.keys():
        for document, grade in dataset.qrels[query].items():
            if grade > 0:
                queries[document].append(dataset.queries[query])
                cuts[document].update((start, end) for start, end in dataset.synthetic[query].get("cuts", ()))
    return queries, cuts


def _chunks(chunks: Sequence[Document], known: Sequence[Span], cuts: Sequence[Span], queries: list[str]) -> list[Chunk]:
    """Return the chunks without the queries; chunks that have no other text are dropped."""
    first, found = min(known)[0] if known else 0, list[Chunk]()
    for chunk, span in zip(chunks, known or [(0, 0)] * len(chunks), strict=True):
        text, metadata = chunk.content, _without_queries(chunk.metadata, queries)
        if cuts:
            text, start = _without_cuts(text, span[0] - first, cuts)
            metadata |= {"start": first + start, "end": first + start + len(text)}
        if text:
            found.append(Chunk(text, metadata | {"chunk_index": len(found)}))
    return found


def _without_cuts(text: str, start: int, cuts: Sequence[Span]) -> tuple[str, int]:
    """Return the rest of a chunk that begins at ``start``, and where it begins in the rest of the text."""
    inside = [(max(0, low - start), min(len(text), high - start)) for low, high in cuts]
    rest = without(text, [cut for cut in inside if cut[0] < cut[1]])
    before = sum(min(high, start) - low for low, high in cuts if low < start)
    if rest == text:
        return text, start - before
    return rest.strip(), start - before + len(rest) - len(rest.lstrip())


def _without_queries(metadata: Mapping[str, Any], queries: Sequence[str]) -> dict[str, Any]:
    """Return the metadata that a test set keeps, without titles and headings that contain the words of a query."""
    found = {key: value for key, value in metadata.items() if key in CHUNK_KEYS}
    lines = [*map(found.get, (*HEADINGS, "heading_context")), breadcrumb(found)]
    if not any(_gives_away(line, queries) for line in lines):
        return found
    headings = str(found.pop("heading_context", "")).split(" > ")
    kept = " > ".join(heading for heading in headings if not _gives_away(heading, queries))
    found = {key: value for key, value in found.items() if key not in HEADINGS or not _gives_away(value, queries)}
    if kept and not _gives_away(kept, queries):
        found["heading_context"] = kept
    line = breadcrumb(found) if found.pop(BREADCRUMB, None) else ""
    return found | ({BREADCRUMB: line} if line and not _gives_away(line, queries) else {})


def _gives_away(heading: Any, queries: Sequence[str]) -> bool:
    return isinstance(heading, str) and any(contains_words(query, heading) for query in queries)
