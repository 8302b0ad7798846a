"""Fold passages under one result that lists their places, and retrieve others in place of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from ragistry.types import TOP_K_LIMIT, Document

COPIES, COPY_PLACES = "copies", "copy_places"
"""Metadata keys of a result: the number of passages that are folded under it, and their places."""
FIRST_WORDS, LAST_CHARACTERS = 3, 12
"""What is compared before whole texts are: the first words, and the last characters of the last word."""


def retrieve_filled(
    retrieve: Callable[[int | None], list[Document]],
    reduce: Callable[[list[Document]], list[Document]],
    top_k: int | None,
    first: int | None = None,
) -> list[Document]:
    """Retrieve documents, reduce them, and retrieve more until ``top_k`` are left.

    Args:
        retrieve: Returns this number of documents; for None, its default number.
        reduce: Removes some of the documents.
        top_k: Number of documents to return; None for the number that ``retrieve`` returns by default.
        first: Number of documents to retrieve at first; by default ``top_k``.
    """
    asked = top_k if first is None else first
    while True:
        found = retrieve(asked)
        left = reduce(found)
        top_k = len(found) if top_k is None else top_k
        if len(left) >= top_k or asked == TOP_K_LIMIT or (asked is not None and len(found) < asked):
            return left[:top_k]
        asked = min(TOP_K_LIMIT, 4 * max(top_k, asked or 0))


def fold_identical(documents: list[Document]) -> list[Document]:
    """Fold documents whose texts are identical after white space under the best of them."""
    ends = [_ends(document.content) for document in documents]
    counts = Counter(ends)
    if len(counts) == len(documents):
        return documents
    groups: dict[Hashable, list[Document]] = {}
    for document, own in zip(documents, ends, strict=True):
        groups.setdefault(own if counts[own] == 1 else plain_text(document), []).append(document)
    return [folded(best, others) for best, *others in groups.values()]


def _ends(text: str) -> tuple[str, ...]:
    """Return what texts share if they are identical after white space. Chunks of a source often begin alike."""
    return (*text.split(None, FIRST_WORDS)[:FIRST_WORDS], *text.rstrip()[-LAST_CHARACTERS:].split()[-1:])


def plain_text(document: Document) -> str:
    """Return the text of a document with single blanks as white space."""
    return " ".join(document.content.split())


def folded(document: Document, others: Sequence[Document]) -> Document:
    """Add the number and the places of other documents, and of those folded under them, to a document's metadata."""
    if not others:
        return document
    number, places = _folded_before(document)
    for other in others:
        number_below, places_below = _folded_before(other)
        number += 1 + number_below
        places += [place_name(other), *places_below]
    return replace(document, metadata={**document.metadata, COPIES: number, COPY_PLACES: list(dict.fromkeys(places))})


def _folded_before(document: Document) -> tuple[int, list[str]]:
    number, places = document.metadata.get(COPIES), document.metadata.get(COPY_PLACES)
    return (number, [*places]) if isinstance(number, int) and isinstance(places, list) else (0, [])


def place_name(document: Document) -> str:
    """Name the place of a document: ``handbook: manual.pdf, page 3``; without a source, its id."""
    get = document.metadata.get
    source = get("source_file") or get("file_path") or get("source") or get("source_url") or document.id
    collection = get("collection") or get("repository")
    parts = [f"{key} {get(key)}" for key in ("part", "chapter", "sheet", "page", "line") if get(key) is not None]
    return ", ".join([f"{collection}: {source}" if collection else str(source), *parts])
