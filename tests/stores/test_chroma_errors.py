"""Every error of ChromaDB, typed or not, leaves as one of ours."""

from __future__ import annotations

import inspect
import json

import chromadb.errors
import httpx
import pytest

from ragistry.errors import (
    ChromaDBConnectionError,
    CollectionAlreadyExistsError,
    CollectionNotFoundError,
    DuplicateChunkIDError,
    EmbeddingMismatchError,
    InvalidCollectionNameError,
    QueryError,
    StoreCorruptError,
    StoreError,
)
from ragistry.stores.chroma_errors import BY_TYPE, translated, translation

PUBLIC = [
    kind for _, kind in inspect.getmembers(chromadb.errors, inspect.isclass) if kind.__module__ == "chromadb.errors"
]


def made(kind: type[Exception], text: str = "what happened") -> Exception:
    """An error of a class that cannot be made by calling it, because it leaves a method open."""
    error = kind.__new__(kind)
    error.args = (text,)
    return error


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__context__ = cause
    return error


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_every_public_error_of_chromadb_has_a_class_of_ours(kind):
    ours = translation(made(kind), "ChromaDB at 'x'")
    assert kind.__name__ in BY_TYPE
    assert isinstance(ours, BY_TYPE[kind.__name__][0])
    assert str(ours).startswith("ChromaDB at 'x': 'what happened'; ")


def status(code: int) -> BaseException:
    request = httpx.Request("GET", "http://x")
    return caused(Exception("said"), httpx.HTTPStatusError("", request=request, response=httpx.Response(code)))


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (httpx.ConnectError("refused"), ChromaDBConnectionError),
        (httpx.ReadTimeout("timed out"), ChromaDBConnectionError),
        (httpx.PoolTimeout("timed out"), ChromaDBConnectionError),
        (httpx.RemoteProtocolError("disconnected"), ChromaDBConnectionError),
        (httpx.InvalidURL("no"), ChromaDBConnectionError),
        (caused(ValueError("Could not connect"), httpx.ConnectError("refused")), ChromaDBConnectionError),
        (caused(ValueError("timed out"), httpx.ReadTimeout("timed out")), ChromaDBConnectionError),
        (json.JSONDecodeError("no", "<html>", 0), ChromaDBConnectionError),
        (status(503), ChromaDBConnectionError),
        (status(429), ChromaDBConnectionError),
        (status(413), StoreError),
        (ValueError("Expected where to be a dict"), StoreError),
        (TypeError("Cannot convert"), StoreError),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), StoreError),
        (PermissionError(13, "Permission denied"), ChromaDBConnectionError),
        (made(chromadb.errors.InternalError, "Collection [x] already exists"), CollectionAlreadyExistsError),
        (made(chromadb.errors.ChromaError, "Collection [x] already exists"), CollectionAlreadyExistsError),
        (made(chromadb.errors.NotFoundError), CollectionNotFoundError),
        (made(chromadb.errors.DuplicateIDError), DuplicateChunkIDError),
        (made(chromadb.errors.InvalidArgumentError, "expecting embedding with dimension of 3"), EmbeddingMismatchError),
        (made(chromadb.errors.InvalidArgumentError, "Expected a name containing 3-512"), InvalidCollectionNameError),
        (made(chromadb.errors.InternalError, "Failed to apply logs to the hnsw segment writer"), StoreCorruptError),
        (made(chromadb.errors.InternalError, "database disk image is malformed"), StoreCorruptError),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else f"{value!r:.60}",
)  # fmt: skip
def test_untyped_errors_are_told_apart(error, ours):
    assert type(translation(error, "here")) is ours


def test_the_first_error_stays_visible():
    first = httpx.ConnectError("refused")
    with pytest.raises(ChromaDBConnectionError, match="^here: 'refused'; check that") as caught, translated("here"):
        raise first
    assert caught.value.__cause__ is first


@pytest.mark.parametrize(
    "error", [QueryError("ours"), KeyboardInterrupt(), SystemExit(2), MemoryError(), KeyError("a bug")]
)
def test_what_is_not_chromadbs_passes(error):
    with pytest.raises(type(error)) as caught, translated("here"):
        raise error
    assert caught.value is error


def test_a_failure_that_the_caller_was_handling_is_not_taken_for_chromadbs():
    def call() -> None:
        with translated("here"):
            int("a bad argument")

    try:
        raise httpx.ReadTimeout("of another server")
    except httpx.ReadTimeout:
        with pytest.raises(StoreError) as caught:
            call()
    assert type(caught.value) is StoreError


def test_a_message_is_one_line():
    ours = translation(made(chromadb.errors.InternalError, "many\nlines\n" + "x" * 1000), "here")
    assert "\n" not in str(ours)
    assert len(str(ours)) < 400
