"""Where a passage stands: the text of its source around it."""

from __future__ import annotations

from typing import NamedTuple

from ragistry.errors import CollectionNotFoundError
from ragistry.protocols import DocumentStore
from ragistry.types import Document
from ragistry.utils.ids import chunk_id
from ragistry.utils.joined import joined_text, spans
from ragistry.workspace import Workspace

REACH = 8
"""Chunks that are shown before and after."""


class Around(NamedTuple):
    """The text before the passage, the passage, and the text after it."""

    before: str
    passage: str
    after: str


def surroundings(workspace: Workspace, document: Document) -> Around:
    """From the library, or from the repository that a routed search found it in."""
    store, repository = workspace.store, document.metadata.get("repository")
    if store.get([document.id]) or not isinstance(repository, str):
        return around(store, document)
    alone = Around("", document.content, "")
    try:
        with workspace.repositories.collection(repository) as opened:
            return opened.read(lambda store: around(store, document), alone)
    except CollectionNotFoundError:  # an archive may tell of a repository that is not here
        return alone


def around(store: DocumentStore, document: Document) -> Around:
    """The passage between its neighbours; what they share is shown once."""
    get = next(iter(store.get([document.id])), document).metadata.get  # where its collection has the store's own name
    collection, source, index = get("collection"), get("source_file"), get("chunk_index")
    if not (isinstance(collection, str) and isinstance(source, str) and isinstance(index, int)):
        return Around("", document.content, "")
    wanted = [chunk_id(collection, source, place) for place in range(max(0, index - REACH), index + REACH + 1)]
    chunks = [chunk for chunk in store.get(wanted) if chunk.metadata.get("source_hash") == get("source_hash")]
    known = spans([*chunks, document])
    if known is None or not chunks:
        return Around("", document.content, "")
    start, end = known[-1]
    first = min(begin for begin, _ in known[:-1])
    whole = joined_text(chunks)
    return Around(whole[: max(0, start - first)], document.content, whole[end - first :])
