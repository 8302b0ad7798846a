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
)  # fmt: skip
from ragistry.stores.chroma.errors import translated
from tests.messages import check_message, refused


def made(kind: type[BaseException], text: str = "what happened") -> BaseException:
    """An error of a class that cannot be made by calling it, because it leaves a method open."""
    error = kind.__new__(kind)
    error.args = (text,)
    return error


def of_chroma(name: str, text: str = "what happened") -> BaseException:
    return made(getattr(chromadb.errors, name), text)


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__context__ = cause
    return error


def status(code: int) -> BaseException:
    response = httpx.Response(code, request=httpx.Request("GET", "http://x"))
    return caused(Exception("said"), httpx.HTTPStatusError("", request=response.request, response=response))


def raised(error: BaseException) -> BaseException:
    with pytest.raises(BaseException) as caught, translated("here"):
        raise error
    return caught.value


def test_every_public_error_of_chromadb_becomes_a_store_error_of_one_short_line():
    for _, kind in inspect.getmembers(chromadb.errors, inspect.isclass):
        if kind.__module__ == "chromadb.errors":
            ours = raised(made(kind, "many\nlines\n" + "x" * 1000))
            assert isinstance(ours, StoreError)
            assert str(ours).startswith("here: 'many lines xx")
            assert ("\n" in str(ours), len(str(ours)) < 500) == (False, True)


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (httpx.ConnectError("refused"), ChromaDBConnectionError), (httpx.ReadTimeout("late"), ChromaDBConnectionError),
        (httpx.RemoteProtocolError("gone"), ChromaDBConnectionError), (httpx.InvalidURL("no"), ChromaDBConnectionError),
        (caused(ValueError("Could not connect"), httpx.ConnectError("refused")), ChromaDBConnectionError),
        (json.JSONDecodeError("no", "<html>", 0), ChromaDBConnectionError), (status(503), ChromaDBConnectionError),
        (status(429), ChromaDBConnectionError), (status(401), ChromaDBConnectionError), (status(413), StoreError),
        (status(404), StoreError), (ValueError("Expected where to be a dict"), StoreError),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), StoreError),
        (PermissionError(13, "Permission denied"), ChromaDBConnectionError),
        (of_chroma("InternalError", "Collection [x] already exists"), CollectionAlreadyExistsError),
        (of_chroma("ChromaError", "Collection [x] already exists"), CollectionAlreadyExistsError),
        (of_chroma("NotFoundError"), CollectionNotFoundError), (of_chroma("DuplicateIDError"), DuplicateChunkIDError),
        (of_chroma("InvalidArgumentError", "expecting embedding with dimension of 3"), EmbeddingMismatchError),
        (of_chroma("InvalidArgumentError", "Expected a name containing 3-512"), InvalidCollectionNameError),
        (of_chroma("InternalError", "Failed to apply logs to the hnsw segment writer"), StoreCorruptError),
        (of_chroma("InternalError", "database disk image is malformed"), StoreCorruptError),
    ],
    ids=range(22),
)  # fmt: skip
def test_each_kind_of_failure_has_its_own_error_and_remedy(error, ours):
    found = raised(error)
    assert type(found) is ours
    assert found.__cause__ is error
    check_message(str(found), "here: ")


def test_error_that_is_not_chromadbs_passes_unchanged():
    for error in (QueryError("ours"), KeyboardInterrupt(), SystemExit(2), MemoryError(), KeyError("a bug")):
        assert raised(error) is error


def test_panic_inside_chromadb_is_a_store_error(tmp_path):
    with chromadb.PersistentClient(str(tmp_path)) as client:
        collection = client.create_collection("panic", embedding_function=None)
        with refused(StoreError), translated("here"):
            collection.modify(metadata={"list": [1]})


def test_error_that_the_caller_was_handling_does_not_count_as_chromadbs():
    try:
        raise httpx.ReadTimeout("of another server")
    except httpx.ReadTimeout:
        assert type(raised(ValueError("a bad argument"))) is StoreError
