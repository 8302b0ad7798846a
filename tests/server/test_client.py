"""`connect`: a program moves from an embedded workspace to a served one by one line."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import uvicorn

from ragistry import RemoteWorkspace, Workspace, connect, open_workspace
from ragistry.cli.listening import listening_socket
from ragistry.client.workspace import RemoteLibrary
from ragistry.engines.local import LocalEngine
from ragistry.errors import (
    AccessDeniedError,
    CollectionAlreadyExistsError,
    CollectionNotFoundError,
    ConfigError,
    EmptyQueryError,
    ExtractionError,
    InvalidCollectionNameError,
    InvalidFilterError,
    InvalidLimitError,
    ServerBusyError,
    ServerConnectionError,
    ServerError,
    SourceError,
    SourceNotFoundError,
    UnknownTechniqueError,
    UnsupportedError,
    UnsupportedFormatError,
)
from ragistry.library.service import DocumentService
from ragistry.library.source import SourceBytes
from ragistry.server.access import Tokens
from ragistry.server.app import create_app
from ragistry.testing.loopback import Failure, LoopbackServer
from ragistry.testing.openai_server import OpenAIServer
from ragistry.testing.wire import Reply, Request

Either = Workspace | RemoteWorkspace


@contextmanager
def served(workspace: Workspace, **options: bool) -> Iterator[str]:
    """The address of a server in a thread of its own."""
    bound = listening_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(create_app(workspace, **options), log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        bound.close()
    assert not thread.is_alive()


@pytest.fixture(params=["embedded", "served"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Either]:
    """An empty workspace: this process's own, or that of a server."""
    home = tmp_path / "home"
    home.mkdir()
    with open_workspace(home) as own:
        if request.param == "embedded":
            yield own
        else:
            with served(own) as url, connect(url) as remote:
                yield remote


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Documents to take in."""
    for name, text in {
        "black.md": "# Black tea\n\nBoiling water, four minutes.",
        "leaves/green.txt": "Green tea in water of eighty degrees.",
        'leaves/a "quoted", größer.txt': "Oolong rests in a gaiwan.",
        "empty.md": "",
        "broken.pdf": "%PDF-1.4 nothing",
    }.items():
        path = tmp_path / "documents" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "documents"


def test_one_program_runs_over_both(either: Either, folder: Path) -> None:
    library, seen = either.library, list[tuple[str, int, int]]()
    library.create_collection("tea", "How tea is brewed", "Tea books")
    library.create_collection("other")
    report = library.ingest_folder(folder, "tea", progress=lambda *step: seen.append(step))
    names = ["black.md", 'leaves/a "quoted", größer.txt', "leaves/green.txt"]
    assert (sorted(report.added), report.skipped) == (names, ["empty.md"])
    assert [type(one.cause) for one in report.failed] == [ExtractionError]
    assert report.chunks == report.embedded == library.count("tea") == library.count() == 3
    assert seen[-1] == ("", 5, 5)
    assert sorted(library.ingest_folder(folder, "tea").skipped) == ["black.md", "empty.md", *names[1:]]
    assert library.ingest_file(folder / "black.md", "other") == 1
    assert library.ingest_file(folder / "black.md", "other") == 0
    assert library.ingest_text("A text about rain.\r\nAnd snow.", "notes/rain", "other") == 1
    assert library.ingest_text("A text about rain.\r\nAnd snow.", "notes/rain", "other") == 0
    assert library.ingest_paths([folder / "leaves", folder / "black.md"], "other").added == [
        'a "quoted", größer.txt', "green.txt"
    ]  # fmt: skip
    assert library.list_sources("tea") == names
    assert [(info.source_file, info.chunks) for info in library.sources("tea")] == [(name, 1) for name in names]
    assert library.source("black.md", "tea").collection == "tea"
    assert {row["name"]: row["source_count"] for row in library.list_collections()} == {"tea": 3, "other": 4}
    assert library.list_sources_detail("tea")[0]["chunk_count"] == 1

    found = either.search("boiling water for black tea", technique="hybrid", collection="tea", top_k=2)
    assert found.documents[0].metadata["source_file"] == "black.md"
    assert found.total_results == len(found.documents) == 2
    assert found.trace[0].name == "hybrid"
    assert found.documents[0].scores[-1].value == found.documents[0].score
    assert found == type(found)(found.query, found.documents, 2, found.search_time_ms, found.trace)
    [only] = either.search("tea", where={"source_file": {"$in": {"green.txt"}}}).documents
    assert only.metadata["collection"] == "other"
    assert library.search("rain", "other", 1).documents[0].metadata["source_file"] == "notes/rain"

    assert library.move_source("notes/rain", "other", "tea") == 1
    assert library.rename_collection("tea", "teas") == 4
    library.update_description("teas", "Everything about tea")
    assert library.list_collections()[0]["description"] == "Everything about tea"
    assert library.delete_source("notes/rain", "teas") == 1
    assert library.delete_sources(["green.txt", "black.md"], "other") == 2
    assert library.delete_collection("other") == 1
    assert library.orphans() == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda it, _: it.search(" "), EmptyQueryError),
        (lambda it, _: it.search("x", top_k=0), InvalidLimitError),
        (lambda it, _: it.search("x", where={}), InvalidFilterError),
        (lambda it, _: it.search("x", technique="nothing"), UnknownTechniqueError),
        (lambda it, _: it.search("x", collection="nothing"), CollectionNotFoundError),
        (lambda it, _: it.library.answer("who writes it"), ConfigError),
        (lambda it, _: it.library.count("a/b"), CollectionNotFoundError),
        (lambda it, _: it.library.list_sources("nothing"), CollectionNotFoundError),
        (lambda it, _: it.library.source("nothing", "tea"), SourceNotFoundError),
        (lambda it, _: it.library.create_collection("tea"), CollectionAlreadyExistsError),
        (lambda it, _: it.library.create_collection("a b"), InvalidCollectionNameError),
        (lambda it, _: it.library.update_description("tea"), ConfigError),
        (lambda it, _: it.library.rename_collection("nothing", "x"), CollectionNotFoundError),
        (lambda it, _: it.library.move_source("x", "tea", "tea"), SourceError),
        (lambda it, _: it.library.ingest_text("x", "x", "nothing"), CollectionNotFoundError),
        (lambda it, folder: it.library.ingest_file(folder / "nothing.md", "tea"), SourceNotFoundError),
        (lambda it, folder: it.library.ingest_file(folder / "broken.pdf", "tea"), ExtractionError),
        (lambda it, folder: it.library.ingest_file(folder, "tea"), SourceError),
        (lambda it, folder: it.library.ingest_folder(folder / "nothing", "tea"), SourceNotFoundError),
        (lambda it, folder: it.library.ingest_folder(folder, "nothing"), CollectionNotFoundError),
        (lambda it, folder: it.library.ingest_paths([folder / "nothing"], "tea"), SourceNotFoundError),
    ],
)
def test_both_raise_the_same_errors(either: Either, folder: Path, call: Callable[..., Any], expected: type) -> None:
    either.library.create_collection("tea")
    with pytest.raises(expected) as raised:
        call(either, folder)
    assert "\n" not in str(raised.value)


def test_the_remote_library_has_the_methods_of_the_library() -> None:
    """With the same parameters."""

    def public(cls: type) -> dict[str, list[inspect.Parameter]]:
        methods = {name: method for name, method in inspect.getmembers(cls, inspect.isfunction) if name[0] != "_"}
        return {name: list(inspect.signature(method).parameters.values()) for name, method in methods.items()}

    assert public(RemoteLibrary) == public(DocumentService)


def test_a_file_of_the_server_is_not_replaced_by_one_that_is_sent(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "home").mkdir()
    with open_workspace(tmp_path / "home") as own, served(own) as url, connect(url) as remote:
        own.library.create_collection("tea")
        own.library.ingest_file(folder / "black.md", "tea")
        (folder / "other").mkdir()
        (folder / "other" / "black.md").write_text("Another tea.", encoding="utf-8")
        with pytest.raises(SourceError, match="'black.md' in collection 'tea' is "):
            remote.library.ingest_file(folder / "other" / "black.md", "tea")
        assert remote.library.ingest_file(folder / "other" / "black.md", "tea", replace=True) == 1
        with pytest.raises(UnsupportedError, match="a server reads and embeds by itself"):
            remote.library.ingest_folder(folder, "tea", engine=LocalEngine())
        (folder / "x.png").write_bytes(b"\x89PNG")
        with pytest.raises(UnsupportedFormatError, match=r"^'x.png' has the suffix"):
            remote.library.ingest_file(folder / "x.png", "tea")
        assert remote.route("black tea").chosen == ("tea",)


def test_bytes_and_zip_files_are_taken_in_over_both(either: Either, tmp_path: Path) -> None:
    library = either.library
    library.create_collection("tea")
    with ZipFile(tmp_path / "leaves.zip", "w") as archive:
        archive.writestr("green.md", "# Green\n\nWater of eighty degrees.")
    note = SourceBytes(b"# Note\n\nOolong rests in a gaiwan.", "note.md")
    report = library.ingest_paths([tmp_path / "leaves.zip", note], "tea")
    assert (sorted(report.added), report.failed) == (["leaves.zip/green.md", "note.md"], [])
    assert library.ingest_paths([tmp_path / "leaves.zip", note], "tea").added == []
    assert either.search("gaiwan", top_k=1).documents[0].metadata["title"] == "Note"


def test_prune_removes_what_this_folder_sent_and_has_no_more(either: Either, folder: Path, tmp_path: Path) -> None:
    library = either.library
    library.create_collection("tea")
    library.ingest_text("A note about tea.", "note", "tea")
    library.ingest_file(folder / "black.md", "tea")
    other = tmp_path / "other"
    other.mkdir()
    (other / "white.txt").write_text("White tea is hardly oxidised.", encoding="utf-8")
    library.ingest_folder(other, "tea")
    library.ingest_folder(folder, "tea")
    (folder / "leaves" / "green.txt").unlink()
    report = library.ingest_folder(folder, "tea")
    assert (report.vanished, report.deleted) == (["leaves/green.txt"], [])
    (other / "white.txt").unlink()
    report = library.ingest_paths([folder], "tea", prune=True)
    assert report.vanished == report.deleted == ["leaves/green.txt"]
    assert library.list_sources("tea") == ["black.md", 'leaves/a "quoted", größer.txt', "note", "white.txt"]
    with pytest.raises(SourceError, match="nothing was deleted"):
        library.ingest_folder(other, "tea", prune=True)
    assert library.ingest_text("A note about tea.", "note", "tea") == 0


def test_an_answer_is_the_same_from_a_server_and_within_the_reach_of_the_token(filled_copy: Path) -> None:
    said = "Steep green tea in water of eighty degrees [1]. Mars is red [1]."
    question = "how hot is the water for green tea?"
    with OpenAIServer("small", accent="vllm") as writer:
        config = filled_copy / "config"
        config.mkdir(exist_ok=True)
        entry = f'generators: {{writer: {{use: openai, url: "{writer.url}", model: small}}}}\n'
        (config / "models.yaml").write_text(entry, encoding="utf-8")
        secret = Tokens(filled_copy).add("reader", ["read"], ["tea"])
        with open_workspace(filled_copy) as own, served(own) as url, connect(url, secret) as remote:
            writer.answers.extend([said] * 2)
            expected, pieces = own.library.answer(question, "tea", 2), list[str]()
            answer = remote.library.answer(question, "tea", 2, on_piece=pieces.append)
            assert replace(answer, documents=()) == replace(expected, documents=())
            assert [one.id for one in answer.documents] == [one.id for one in expected.documents]
            assert [one.supported for one in answer.sentences] == [True, False]
            assert pieces == [answer.text]
            with pytest.raises(CollectionNotFoundError):
                remote.library.answer("will it rain?", "weather")
            writer.answers.append("NOT FOUND")
            nothing = remote.library.answer("will rain come and then clear skies over green tea?")
            assert (nothing.sentences, nothing.reason) != ((), "")
            assert {one.metadata["collection"] for one in nothing.documents} == {"tea"}


def test_tokens_are_sent(workspace: Workspace) -> None:
    secret = Tokens(workspace.root).add("reader", ["read"], ["tea"])
    with served(workspace) as url:
        with connect(url) as nobody, pytest.raises(AccessDeniedError, match="a token is needed"):
            nobody.search("tea")
        with connect(url, secret) as reader:
            assert {one.metadata["collection"] for one in reader.search("tea or rain").documents} == {"tea"}
            with pytest.raises(AccessDeniedError, match="lacks the right 'write'"):
                reader.library.ingest_text("x", "x", "tea")
            with pytest.raises(CollectionNotFoundError):
                reader.search("rain", collection="weather")


def test_a_server_that_is_not_there_or_is_another_program_is_named() -> None:
    for url in ("", "localhost:8000", "ftp://host", "http://", "http://a:b", 7):
        with pytest.raises(ConfigError, match="http://HOST:PORT"):
            connect(url)
    with pytest.raises(ConfigError, match="ASCII"):
        connect("http://127.0.0.1:1", "a\nb")
    with connect("http://127.0.0.1:9", timeout=5) as nothing, pytest.raises(ServerConnectionError, match="cannot be"):
        nothing.search("tea")
    assert issubclass(ServerConnectionError, ConnectionError)
    assert issubclass(ServerBusyError, ServerError)


class OneAnswer(LoopbackServer):
    """A server whose every search finds nothing."""

    def answer(self, request: Request, flaw: Failure | None) -> Reply:
        return Reply(body={"query": "tea", "documents": [], "total_results": 0, "search_time_ms": 1.0, "trace": []})

    def refusal(self, status: int) -> Any:
        return {"error": {"type": "ServerBusyError", "message": "try again later"}}


def test_a_search_is_repeated_where_a_connection_breaks_and_while_the_server_is_busy() -> None:
    with OneAnswer() as server, connect(server.url, timeout=20) as remote:
        server.fail_next("drop")
        server.fail_next(503, retry_after=0)
        assert remote.search("tea").documents == []
        assert len(server.requests) == 3


def test_what_writes_is_not_sent_twice_where_a_connection_breaks() -> None:
    with OneAnswer() as server, connect(server.url, timeout=20) as remote:
        server.fail_next("drop")
        with pytest.raises(ServerConnectionError, match="broke off"):
            remote.library.create_collection("tea")
        assert len(server.requests) == 1


@pytest.mark.parametrize(("failure", "message"), [("garbage", "is another program there"), (500, "try again later")])
def test_a_strange_answer_is_a_server_error(failure: Failure, message: str) -> None:
    with OneAnswer() as server, connect(server.url, timeout=20) as remote:
        server.fail_next(failure, times=4, retry_after=0)
        with pytest.raises(ServerError, match=message):
            remote.search("tea")
