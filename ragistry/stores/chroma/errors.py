"""Translate ChromaDB's errors.

Embedded, over HTTP and in its constructor, ChromaDB reports the same failure differently: as its own error, as an error
of httpx, as a bare `Exception` or `ValueError` caused by one of them, or as a Rust panic.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ragistry.errors import (
    ChromaDBConnectionError,
    CollectionAlreadyExistsError,
    CollectionNotFoundError,
    DuplicateChunkIDError,
    EmbeddingMismatchError,
    InvalidCollectionNameError,
    RagistryError,
    StoreCorruptError,
    StoreError,
)

Ours = type[StoreError]

OTHER_COLLECTION = "ingest again into another Chroma collection (`collection` in documents.yaml)"
REFILL = f"use the embedder that the store was filled with, or {OTHER_COLLECTION}"
RESTORE = "restore the folder from a backup, or delete it and ingest again"
REOPEN = "another program removed it; open the store again"
RUNNING = "check that the server runs (`chroma run`), its host and its port"
ACCESS = "check the headers, tenant and database"
OVERLOADED = "try again later; a write may have been applied, and repeating it is safe"
UNEXPECTED = "see the log of ChromaDB"

BY_TEXT: tuple[tuple[str, Ours, str], ...] = (
    ("database or disk is full|No space left on device|os error 28", StoreError, "free some space on the disk"),
    ("expecting embedding with dimension", EmbeddingMismatchError, REFILL),
    ("Expected a name containing", InvalidCollectionNameError, "choose another name"),
    ("already exists", CollectionAlreadyExistsError, "choose another name, or delete it first"),
    ("(hnsw|metadata) segment|Error finding id|Error getting embedding", StoreCorruptError, RESTORE),
    ("disk image is malformed|file is not a database", StoreCorruptError, RESTORE),
    ("readonly database|Permission denied", ChromaDBConnectionError, "make the folder writable"),
    ("Not a directory", ChromaDBConnectionError, "choose a path whose parent is a folder"),
)
"""Errors that ChromaDB reports only as text, as regular expressions."""

_KINDS: tuple[tuple[str, Ours, str], ...] = (
    ("InvalidDimensionException", EmbeddingMismatchError, REFILL),
    ("IDAlreadyExistsError DuplicateIDError", DuplicateChunkIDError, "give each chunk its own id"),
    ("ChromaAuthError AuthorizationError", ChromaDBConnectionError, ACCESS),
    ("NotFoundError", CollectionNotFoundError, REOPEN),
    ("UniqueConstraintError", CollectionAlreadyExistsError, "choose another name, or delete it first"),
    ("VersionMismatchError", StoreError, "use one version of ChromaDB on both sides"),
    ("RateLimitError", ChromaDBConnectionError, OVERLOADED),
    ("TimeoutException", ChromaDBConnectionError, f"no answer within the time-out; {OVERLOADED}"),
    ("HTTPError InvalidURL InvalidHTTPVersion", ChromaDBConnectionError, RUNNING),
    ("JSONDecodeError", ChromaDBConnectionError, f"the answer is not from ChromaDB; {RUNNING}"),
    ("OSError", ChromaDBConnectionError, "check the path and its permissions"),
    ("ChromaError PanicException ValueError TypeError", StoreError, UNEXPECTED),
)
BY_TYPE: dict[str, tuple[Ours, str]] = {
    name: (ours, remedy) for names, ours, remedy in _KINDS for name in names.split()
}
"""By class name, so that neither ChromaDB nor httpx has to be imported."""

_UNTYPED = ("ValueError", "TypeError", "OSError")


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Translate errors of ChromaDB in the block to `StoreError`; ``place``: database and collection."""
    handled = sys.exception()
    try:
        yield
    except BaseException as error:
        ours = translation(error, place, handled)
        if ours is None:
            raise
        raise ours from error


def translation(error: BaseException, place: str, handled: BaseException | None = None) -> StoreError | None:
    """Return the `StoreError` for an error of ChromaDB; None for other errors.

    ``handled``: the exception that the caller was already handling; its causes are not ChromaDB's.
    """
    if isinstance(error, RagistryError):
        return None
    links = list(_chain(error, handled))
    status = next((code for link in links if (code := _status(link))), 0)
    ours, remedy = _by_status(status) if status else _by_kind(links)
    if ours is None:
        return None
    text = " ".join(str(error).split())[:300] or type(error).__name__
    return ours(f"{place}: {f'answered {status}: ' if status else ''}{text!r}; {remedy}")


def _chain(error: BaseException, handled: BaseException | None) -> Iterator[BaseException]:
    link: BaseException | None = error
    while link is not None and link is not handled:
        yield link
        link = link.__cause__ or link.__context__


def _status(link: BaseException) -> int:
    return int(getattr(link, "response").status_code) if type(link).__name__ == "HTTPStatusError" else 0  # noqa: B009


def _by_status(status: int) -> tuple[Ours | None, str]:
    if status in (401, 403, 407):
        return ChromaDBConnectionError, ACCESS
    if status == 413:
        return StoreError, "the request is too large for the server; use a smaller batch_size"
    if status == 429 or status >= 500:
        return ChromaDBConnectionError, OVERLOADED
    return StoreError, f"{RUNNING}, its tenant and its database"


def _by_kind(links: list[BaseException]) -> tuple[Ours | None, str]:
    names = [[kind.__name__ for kind in type(link).__mro__] for link in links]
    known = [name for mro in names for name in mro[:-1] if name in BY_TYPE]
    if not known:
        return None, ""
    text = str(links[0])
    for words, ours, remedy in BY_TEXT:
        if re.search(words, text):
            return ours, remedy
    return BY_TYPE[next((name for name in known if name not in _UNTYPED), known[0])]
