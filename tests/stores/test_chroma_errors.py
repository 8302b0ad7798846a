"""Every error of ChromaDB, typed or not, leaves as one of ours."""

from __future__ import annotations

import inspect
import json

import chromadb
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
from ragistry.stores.chroma.errors import translated

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


def status(code: int) -> BaseException:
    request = httpx.Request("GET", "http://x")
    return caused(Exception("said"), httpx.HTTPStatusError("", request=request, response=httpx.Response(code)))


def raised(error: BaseException) -> BaseException:
    with pytest.raises(BaseException) as caught, translated("here"):
        raise error
    return caught.value


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_every_public_error_of_chromadb_becomes_a_store_error(kind):
    ours = raised(made(kind))
    assert isinstance(ours, StoreError)
    assert str(ours).startswith("here: 'what happened'; ")


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (httpx.ConnectError("refused"), ChromaDBConnectionError),
        (httpx.ReadTimeout("timed out"), ChromaDBConnectionError),
        (httpx.RemoteProtocolError("disconnected"), ChromaDBConnectionError),
        (httpx.InvalidURL("no"), ChromaDBConnectionError),
        (caused(ValueError("Could not connect"), httpx.ConnectError("refused")), ChromaDBConnectionError),
        (json.JSONDecodeError("no", "<html>", 0), ChromaDBConnectionError),
        (status(503), ChromaDBConnectionError),
        (status(429), ChromaDBConnectionError),
        (status(413), StoreError),
        (ValueError("Expected where to be a dict"), StoreError),
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
def test_each_kind_of_failure_has_its_own_error(error, ours):
    found = raised(error)
    assert type(found) is ours
    assert found.__cause__ is error


@pytest.mark.parametrize(
    "error", [QueryError("ours"), KeyboardInterrupt(), SystemExit(2), MemoryError(), KeyError("a bug")]
)
def test_an_error_that_is_not_chromadbs_passes_unchanged(error):
    assert raised(error) is error


def test_a_panic_inside_chromadb_is_a_store_error(tmp_path):
    with chromadb.PersistentClient(str(tmp_path)) as client:
        made = client.create_collection("panic", embedding_function=None)
        with pytest.raises(StoreError, match="unreachable"), translated("here"):
            made.modify(metadata={"list": [1]})


def test_an_error_that_the_caller_was_handling_does_not_count_as_chromadbs():
    try:
        raise httpx.ReadTimeout("of another server")
    except httpx.ReadTimeout:
        assert type(raised(ValueError("a bad argument"))) is StoreError


def test_a_message_is_one_short_line():
    ours = raised(made(chromadb.errors.InternalError, "many\nlines\n" + "x" * 1000))
    assert "\n" not in str(ours)
    assert len(str(ours)) < 400
