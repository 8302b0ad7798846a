"""`connect`: what the client adds to the library of a server.

What a library does through a client is tested in ``tests/test_doors.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from ragistry import RemoteWorkspace, Workspace, connect, open_workspace
from ragistry.client.workspace import RemoteLibrary
from ragistry.errors import (
    AccessDeniedError,
    CollectionNotFoundError,
    ConfigError,
    ExtractionError,
    ServerBusyError,
    ServerConnectionError,
    ServerError,
    SourceError,
    UnsupportedError,
    UnsupportedFormatError,
)
from ragistry.library.service import DocumentService
from ragistry.server.access import Tokens
from ragistry.testing.loopback import Failure, LoopbackServer
from ragistry.testing.openai_server import OpenAIServer
from ragistry.testing.wire import Reply, Request
from ragistry.types import Document, SourceInfo, Stage
from tests.conftest import Corpus
from tests.messages import refused
from tests.serving import served


@pytest.fixture
def remote(workspace: Workspace) -> Iterator[RemoteWorkspace]:
    """The workspace through a client."""
    with served(workspace) as url, connect(url) as opened:
        yield opened


def test_the_remote_library_has_the_methods_of_the_library() -> None:
    """With the same parameters."""

    def public(cls: type) -> dict[str, list[inspect.Parameter]]:
        methods = {name: method for name, method in inspect.getmembers(cls, inspect.isfunction) if name[0] != "_"}
        return {name: list(inspect.signature(method).parameters.values()) for name, method in methods.items()}

    assert public(RemoteLibrary) == public(DocumentService)


def test_sent_files_replace_files_of_the_server_only_with_replace(
    workspace: Workspace, remote: RemoteWorkspace, corpus: Corpus
) -> None:
    folder = corpus({"black.md": "# Black tea\n\nBoiling water.", "broken.pdf": "%PDF-1.4 nothing"})
    other = corpus({"black.md": "Another tea.", "x.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"}, "other")
    workspace.library.ingest_file(folder / "black.md", "tea")
    with refused(SourceError, "black.md"):
        remote.library.ingest_file(other / "black.md", "tea")
    assert remote.library.ingest_file(other / "black.md", "tea", replace=True) == 1
    with refused(UnsupportedError):
        remote.library.ingest_folder(folder, "tea", engine=map)
    with refused(UnsupportedFormatError, "x.png"):
        remote.library.ingest_file(other / "x.png", "tea")
    [failure] = remote.library.ingest_folder(folder, "tea").failed
    assert (failure.source, type(failure.cause)) == ("broken.pdf", ExtractionError)
    with refused(ConfigError, "bm25"):
        remote.search("black tea", {"use": "bm25"})
    assert remote.route("black tea").chosen == ("tea",)


def test_remote_answer_equals_the_local_one_within_the_token(filled_copy: Path) -> None:
    said = "Steep green tea in water of eighty degrees [1]. Mars is red [1]."
    question = "how hot is the water for green tea?"
    with OpenAIServer("small", accent="vllm") as writer:
        config = filled_copy / "config"
        config.mkdir(exist_ok=True)
        entry = f'generators: {{writer: {{use: openai, url: "{writer.url}", model: small}}}}\n'
        (config / "models.yaml").write_text(entry, encoding="utf-8")
        secret = Tokens(filled_copy).add("reader", ["read"], ["tea"])
        with open_workspace(filled_copy) as own, served(own) as url, connect(url, secret) as remote:
            writer.answers.extend([{"message": {"content": said}, "finish_reason": "length"}] * 2)
            expected, pieces = own.library.answer(question, "tea", 2), list[str]()
            answer = remote.library.answer(question, "tea", 2, on_piece=pieces.append)
            assert replace(answer, documents=()) == replace(expected, documents=())
            assert answer.status == "cut"
            assert [one.id for one in answer.documents] == [one.id for one in expected.documents]
            assert [one.supported for one in answer.sentences] == [True, False]
            assert "".join(pieces) == answer.text
            assert len(pieces) > 1
            with pytest.raises(CollectionNotFoundError):
                remote.library.answer("will it rain?", "weather")
            writer.answers.append("NOT FOUND")
            nothing = remote.library.answer("will rain come and then clear skies over green tea?")
            assert (nothing.sentences, nothing.reason) != ((), "")
            assert {one.metadata["collection"] for one in nothing.documents} == {"tea"}


def test_every_field_of_a_source_reaches_the_client(
    workspace: Workspace, remote: RemoteWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that is added to `SourceInfo` later."""
    values = {"str": "{}", "int": 7, "float": 0.5, "tuple[str, ...]": ("a", "b"), "Mapping[str, Any]": {"a": [1]}}
    filled = {one.name: values[str(one.type)] for one in fields(SourceInfo)}
    info = SourceInfo(**{name: name if value == "{}" else value for name, value in filled.items()})
    monkeypatch.setattr(workspace.library, "sources", lambda _=None: [info])
    monkeypatch.setattr(workspace.library, "orphans", lambda: [info])
    monkeypatch.setattr(workspace.library, "set_metadata", lambda *_: info)
    assert remote.library.sources("tea") == remote.library.orphans() == [info]
    assert remote.library.set_metadata(info.source_file, "tea", {"a": 1}) == info


def test_client_sends_its_token(workspace: Workspace) -> None:
    secret = Tokens(workspace.root).add("reader", ["read"], ["tea"])
    with served(workspace) as url:
        with connect(url) as nobody, refused(AccessDeniedError):
            nobody.search("tea")
        with connect(url, secret) as reader:
            assert {one.metadata["collection"] for one in reader.search("tea or rain").documents} == {"tea"}
            with refused(AccessDeniedError):
                reader.library.ingest_text("x", "x", "tea")
            with pytest.raises(CollectionNotFoundError):
                reader.search("rain", collection="weather")


def test_unreachable_server_and_invalid_address_are_reported() -> None:
    for url in ("", "localhost:8000", "ftp://host", "http://", "http://a:b", 7):
        with refused(ConfigError, repr(url)):
            connect(url)
    with refused(ConfigError):
        connect("http://127.0.0.1:1", "a\nb")
    with connect("http://127.0.0.1:9", timeout=5) as nothing, refused(ServerConnectionError):
        nothing.search("tea")
    assert issubclass(ServerConnectionError, ConnectionError)
    assert issubclass(ServerBusyError, ServerError)


NOTHING = {"query": "tea", "documents": [], "total_results": 0, "search_time_ms": 1.0, "trace": []}


class OneAnswer(LoopbackServer):
    """A server whose every search finds nothing."""

    body: Any = NOTHING

    def answer(self, request: Request, flaw: Failure | None) -> Reply:
        return Reply(body=self.body)

    def refusal(self, status: int) -> Any:
        return {"error": {"type": "ServerBusyError", "message": "try again later"}}


def test_search_is_retried_after_connection_errors_and_while_busy() -> None:
    with OneAnswer() as server, connect(server.url, timeout=20) as remote:
        server.fail_next("drop")
        server.fail_next(503, retry_after=0)
        assert remote.search("tea").documents == []
        assert len(server.requests) == 3


def test_write_is_not_retried_after_a_connection_error() -> None:
    with OneAnswer() as server, connect(server.url, timeout=20) as remote:
        server.fail_next("drop")
        with refused(ServerConnectionError):
            remote.library.create_collection("tea")
        assert len(server.requests) == 1


@pytest.mark.parametrize("failure", ["garbage", 500])
def test_unexpected_response_is_a_server_error(failure: Failure) -> None:
    with OneAnswer() as server, connect(server.url, timeout=20) as remote:
        server.fail_next(failure, times=4, retry_after=0)
        with refused(ServerError):
            remote.search("tea")


STAGE: dict[str, Any] = {"name": "bm25", "ms": 1.0, "later": True}
DOCUMENT: dict[str, Any] = {"content": "a", "metadata": {}, "score": 1, "id": "1", "place": {}, "later": 5}


def test_response_of_a_later_server_may_have_more_fields() -> None:
    with OneAnswer() as server, connect(server.url, timeout=20) as remote:
        server.body = NOTHING | {"documents": [DOCUMENT], "trace": [STAGE], "later": []}
        found = remote.search("tea")
        assert (found.documents, found.trace) == ([Document("a", {}, 1.0, "1")], (Stage("bm25", 1.0),))


@pytest.mark.parametrize(
    "values",
    [{"documents": [{"content": "a"}]}, {"documents": None}, {"total_results": "many"}, {"trace": [{"name": "bm25"}]}],
)
def test_response_with_other_types_is_a_server_error(values: Any) -> None:
    with OneAnswer() as server, connect(server.url, timeout=20) as remote:
        server.body = NOTHING | values
        with refused(ServerError):
            remote.search("tea")
