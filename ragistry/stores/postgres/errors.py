"""Translate errors of Postgres and its connection."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from ragistry.errors import (
    EmbeddingMismatchError,
    InvalidChunkError,
    StoreConnectionError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
)
from ragistry.stores.records import half_character_error
from ragistry.utils.wording import one_line

Ours = type[StoreError]

RUNNING = "check that the server runs, and the host and port in the store's url"
AGAIN = "try again; acknowledged writes are stored"

BY_STATE: dict[str, tuple[Ours, str, str]] = {
    "08": (StoreConnectionError, "the connection failed", RUNNING),
    "28": (StoreConnectionError, "the server refused the login", "check the user in url, and PGPASSWORD or ~/.pgpass"),
    "3D000": (StoreConnectionError, "the database does not exist", "create it with `createdb`, or change url"),
    "3F": (StoreError, "the tables are missing", "another program dropped them; open the store again"),
    "42P01": (StoreError, "the tables are missing", "another program dropped them; open the store again"),
    "42501": (StoreError, "the user lacks a permission", "ask the administrator to grant it"),
    "53100": (StoreError, "no space left on the server", "the last write was undone; free some space and try again"),
    "53200": (StoreError, "the server is out of memory", AGAIN),
    "53300": (StoreConnectionError, "the server has no connection left", "lower `connections`, or raise its limit"),
    "57014": (StoreError, "the server took too long", "raise `timeout` of the store"),
    "57P03": (StoreConnectionError, "the server is starting or stopping", AGAIN),
    "57P": (StoreConnectionError, "the server ended the connection", AGAIN),
    "55P03": (StoreLockedError, "another writer changes the same source", "try again when it is done"),
    "40": (StoreLockedError, "another writer changes the same chunks", "try again when it is done"),
    "25006": (
        StoreError,
        "the server is a read-only standby",
        "set `url` to the primary, `read_url` to the standby",
    ),
    "58P01": (StoreError, "a file of the server is missing", "install pgvector on the server"),
    "0A000": (StoreError, "the server lacks an extension", "install pgvector on the server"),
    "54": (InvalidChunkError, "a name is too long for an index", "shorten the name of the collection or source"),
    "XX001": (StoreCorruptError, "the database is damaged", "restore a backup"),
    "XX002": (StoreCorruptError, "an index of the database is damaged", "run REINDEX"),
    "22000": (EmbeddingMismatchError, "the vector does not fit", "use the embedder that the store was filled with"),
}
"""What is wrong and the remedy, by the longest matching prefix of the SQLSTATE."""

WITHOUT_STATE = (
    ("authentication failed|no password|role .* does not exist|no pg_hba.conf entry", "28"),
    ("database .* does not exist", "3D000"),
    ("starting up|shutting down|recovery mode|not yet accepting", "57P03"),
    ("too many clients|remaining connection slots", "53300"),
)
"""Errors of refused connections that libpq reports only as text, as regular expressions, with their SQLSTATE."""


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Translate errors of psycopg in the block to `StoreError`; ``place``: the database."""
    try:
        yield
    except (psycopg.Error, UnicodeError) as error:
        raise translation(place, error) from error


def translation(place: str, error: Exception) -> StoreError:
    """Return the `StoreError` for an error of psycopg."""
    if isinstance(error, UnicodeEncodeError):
        return half_character_error(error)
    text = one_line(str(error)).rstrip(".")
    state = getattr(error, "sqlstate", None) or next((s for words, s in WITHOUT_STATE if re.search(words, text)), "")
    for length in (5, 3, 2):
        if found := BY_STATE.get(state[:length]):
            ours, what, remedy = found
            return ours(f"{place}: {what} ({text}); {remedy}")
    if is_lost(error):
        return StoreConnectionError(f"{place}: cannot be reached ({text}); {RUNNING}")
    return StoreError(f"{place}: {text}; see the log of the server (SQLSTATE {state or 'none'})")


def is_lost(error: Exception) -> bool:
    """Return whether the connection is lost, so that a new one may work."""
    state = getattr(error, "sqlstate", None) or ""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (
        not state or state.startswith(("08", "57P"))
    )


def is_conflict(error: Exception) -> bool:
    """Return whether the transaction was undone because of other writers."""
    return getattr(error, "sqlstate", None) in ("40001", "40P01")
