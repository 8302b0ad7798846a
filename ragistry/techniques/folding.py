"""Fold passages under one result that lists their places, and retrieve others in place of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from dataclasses import replace

from ragistry.types import TOP_K_LIMIT, Document
from ragistry.utils.metadata import SET_KEYS, custom_metadata

COPIES, COPY_PLACES = "copies", "copy_places"
"""Metadata keys of a result: the number of passages that are folded under it, and their places."""
FIRST_WORDS, LAST_CHARACTERS = 3, 12
"""What is compared before whole texts are: the first words, and the last characters of the last word."""
folds: ContextVar[bool | None] = ContextVar("ragistry_folds", default=None)
"""Whether the results of the next technique are folded, because a model or the caller of a library reads them.

None outside of a search of a library.
"""

Retrieve = Callable[[int | None], list[Document]]
"""Number of documents, or None → documents."""


def retrieve_filled(
    retrieve: Retrieve,
    reduce: Callable[[list[Document]], list[Document]],
    top_k: int | None,
    first: int | None = None,
    *,
    once: bool = False,
) -> list[Document]:
    """Retrieve documents, reduce them, and retrieve more until ``top_k`` are left.

    Args:
        retrieve: Returns this number of documents; for None, its default number.
        reduce: Removes some of the documents.
        top_k: Number of documents to return; None for the number that ``retrieve`` returns by default.
        first: Number of documents to retrieve at first; by default ``top_k``.
        once: Retrieve no more, because each retrieval asks a model.
    """
    asked, left = top_k if first is None else first, list[Document]()
    while True:
        found = retrieve(asked)
        left = max(reduce(found), left, key=len)  # a technique from elsewhere may return fewer when asked for more
        top_k = len(found) if top_k is None else top_k
        if once or len(left) >= top_k or asked == TOP_K_LIMIT or (asked is not None and len(found) < asked):
            return left[:top_k]
        asked = min(TOP_K_LIMIT, 4 * max(top_k, asked or 0))


def fold_identical(documents: list[Document]) -> list[Document]:
    """Fold documents that are identical (see `identity`) under the best of them."""
    ends = [  # what texts share that are identical after white space; chunks of a source often begin alike
        (*one.content.split(None, FIRST_WORDS)[:FIRST_WORDS], *one.content.rstrip()[-LAST_CHARACTERS:].split()[-1:])
        for one in documents
    ]
    if len(set(ends)) == len(documents):
        return documents
    counts = Counter(ends)
    groups: dict[Hashable, list[Document]] = {}
    for document, own in zip(documents, ends, strict=True):
        groups.setdefault(own if counts[own] == 1 else identity(document), []).append(document)
    return [folded(best, others) for best, *others in groups.values()]


def identity(document: Document) -> tuple[str, str]:
    """Return what identical documents share: their text after white space, and their own metadata with the title.

    The time of a file is not compared: a copy has another one. One that an argument or `set_metadata` has set is.
    """
    own = custom_metadata(document.metadata)
    if "modified" not in (document.metadata.get(SET_KEYS) or ()):
        own.pop("modified", None)
    return " ".join(document.content.split()), repr(sorted(own.items()))


def folded(document: Document, others: Sequence[Document]) -> Document:
    """Add the number and the places of other documents, and of those folded under them, to a document's metadata.

    Documents that were folded before, in the rankings of several queries, may have the same ones below them.
    """
    if not others:
        return document
    number, places = _folded_before(document)
    known = {place_name(document), *places} if any(COPIES in one.metadata for one in (document, *others)) else set()
    for other in others:
        number_below, places_below = _folded_before(other)
        names = [place_name(other), *places_below]
        shared = known.intersection(names)
        number += 1 + number_below - len(shared)
        places += [name for name in names if name not in shared]
        known.update(names if known else ())
    return replace(document, metadata={**document.metadata, COPIES: number, COPY_PLACES: list(dict.fromkeys(places))})


def _folded_before(document: Document) -> tuple[int, list[str]]:
    number, places = document.metadata.get(COPIES), document.metadata.get(COPY_PLACES)
    return (number, [*places]) if isinstance(number, int) and isinstance(places, list) else (0, [])


def source_key(document: Document) -> tuple[str, str] | None:
    """Return the collection and the name of the source of a document; None without a source."""
    get = document.metadata.get
    source = get("source_file") or get("file_path") or get("source")
    return (str(get("collection") or get("repository") or ""), str(source)) if source else None


def place_name(document: Document) -> str:
    """Name the place of a document: ``handbook: manual.pdf, page 3``; without a source, its id."""
    get = document.metadata.get
    collection, source = source_key(document) or ("", get("source_url") or document.id)
    parts = [f"{key} {get(key)}" for key in ("part", "chapter", "sheet", "page", "line") if get(key) is not None]
    return ", ".join([f"{collection}: {source}" if collection else str(source), *parts])
