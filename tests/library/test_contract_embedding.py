"""The contract over a server of embeddings that refuses, hangs, drops its connections, cuts its answers."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragistry.errors import EmbeddingGenerationError, ModelConnectionError, ModelNotFoundError
from ragistry.library.contract import Collection, DocumentChunk, add_chunks, create_collection, search_chunks
from ragistry.models.openai import OpenAICompatibleEmbedder
from ragistry.testing.loopback import Failure, Planned
from ragistry.testing.openai_server import OpenAIServer
from ragistry.testing.wire import Request

FAILURES: list[Failure] = [400, 404, 413, 422, 429, 500, 503, "hang", "drop", "cut", "garbage", "short", "nan", "zeros"]


class ServerWithAGrudge(OpenAIServer):
    """Fails in one way whenever a text has "odd" in it."""

    grudge: Failure = 400

    def _note(self, request: Request) -> Planned | None:
        plan = super()._note(request)
        is_odd = request.path == "/v1/embeddings" and any("odd" in text for text in request.body["input"])
        return Planned(self.grudge, None, {}) if is_odd else plan


@pytest.fixture
def server() -> Iterator[ServerWithAGrudge]:
    with ServerWithAGrudge("m") as server:
        yield server


def chunks(*texts: str) -> list[DocumentChunk]:
    return [DocumentChunk(text, text, "a.md", "docs", "", number, 2) for number, text in enumerate(texts)]


Make = Callable[..., OpenAICompatibleEmbedder]
MakeCollection = Callable[..., Collection]


@pytest.fixture
def embedder_of() -> Iterator[Make]:
    """Makes embedders over a server, and closes them."""
    made: list[OpenAICompatibleEmbedder] = []

    def make(url: str, model: str = "m", attempts: int = 1) -> OpenAICompatibleEmbedder:
        made.append(
            OpenAICompatibleEmbedder(model, url=url, timeout=0.15, attempts=attempts, backoff=0.01, on_long="raise")
        )
        return made[-1]

    yield make
    for embedder in made:
        embedder.close()


@pytest.fixture
def make(server: ServerWithAGrudge, tmp_path: Path, embedder_of: Make) -> MakeCollection:
    return lambda attempts=1: create_collection(
        "docs", {}, path=tmp_path, embedder=embedder_of(server.url, attempts=attempts)
    )


@pytest.mark.parametrize("failure", FAILURES)
def test_what_cannot_be_embedded_is_named_or_left_out(
    server: ServerWithAGrudge, make: MakeCollection, caplog: pytest.LogCaptureFixture, failure: Failure
) -> None:
    server.grudge = failure
    collection = make()
    wanted = chunks("even", "odd", "round")
    with pytest.raises(EmbeddingGenerationError):
        add_chunks(collection, wanted)
    assert collection.count() == 0, "nothing of the call is written"
    with caplog.at_level(logging.ERROR):
        assert add_chunks(collection, wanted, on_error="skip") == 2
    assert "chunk 'odd' cannot be embedded" in caplog.text
    assert {match.content for match in search_chunks(collection, "anything").matches} == {"even", "round"}
    assert add_chunks(collection, chunks("odd too"), on_error="skip") == 0


@pytest.mark.parametrize("failure", [400, 413, "garbage", "nan", "zeros"])
def test_what_cannot_pass_is_asked_once(server: ServerWithAGrudge, make: MakeCollection, failure: Failure) -> None:
    server.grudge = failure
    collection = make(attempts=4)
    add_chunks(collection, chunks("even"))
    server.requests.clear()
    with pytest.raises(EmbeddingGenerationError):
        add_chunks(collection, [DocumentChunk("odd", "odd", "a.md", "docs", "", 0, 1)])
    asked = [body["input"] for body in server.asked("/v1/embeddings")]
    assert asked.count(["odd"]) == 1


@pytest.mark.parametrize("failure", [429, 503, "hang", "drop", "cut"])
def test_what_may_pass_is_tried_again(server: ServerWithAGrudge, make: MakeCollection, failure: Failure) -> None:
    server.fail_next(failure, 2, path="/v1/embeddings")
    assert add_chunks(make(attempts=3), chunks("even")) == 1
    assert [body["input"] for body in server.asked("/v1/embeddings")].count(["even"]) == 3


def test_what_may_pass_is_tried_as_often_as_the_embedder_was_told(
    server: ServerWithAGrudge, make: MakeCollection
) -> None:
    server.grudge = 503
    with pytest.raises(EmbeddingGenerationError, match="503"):
        add_chunks(make(attempts=3), chunks("odd"))
    assert len(server.asked("/v1/embeddings")) == 3


def test_a_server_that_hangs_for_one_text_after_the_other_is_not_waited_for(
    server: ServerWithAGrudge, make: MakeCollection, caplog: pytest.LogCaptureFixture
) -> None:
    server.grudge = "hang"
    collection = make()
    with pytest.raises(EmbeddingGenerationError, match="no answer in time"):
        add_chunks(collection, chunks(*(f"odd {n}" for n in range(50))), on_error="skip")
    assert caplog.text.count("was left out") == 2
    assert len(server.asked("/v1/embeddings")) < 10


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_server_that_is_not_there_is_told_at_once(tmp_path: Path, embedder_of: Make, on_error: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound and not listened to: connections are refused
        embedder = embedder_of(f"http://127.0.0.1:{free.getsockname()[1]}")
        collection = create_collection("docs", {}, path=tmp_path, embedder=embedder)
        with pytest.raises(EmbeddingGenerationError, match="cannot be reached") as caught:
            add_chunks(collection, chunks("even", "round"), on_error=on_error)  # type: ignore[arg-type]
        assert isinstance(caught.value.__cause__, ModelConnectionError)


def test_a_model_that_is_not_there_is_no_fault_of_a_text(
    server: ServerWithAGrudge, tmp_path: Path, embedder_of: Make
) -> None:
    collection = create_collection("docs", {}, path=tmp_path, embedder=embedder_of(server.url, "other"))
    with pytest.raises(EmbeddingGenerationError, match="serves 'm', not 'other'") as caught:
        add_chunks(collection, chunks("even", "round"), on_error="skip")
    assert isinstance(caught.value.__cause__, ModelNotFoundError)


def test_a_collection_is_not_made_again_of_nothing_that_could_be_embedded(make: MakeCollection) -> None:
    first = make()
    add_chunks(first, chunks("even"))
    assert add_chunks(make(), chunks("odd"), on_error="skip") == 0
    assert [match.content for match in search_chunks(first, "anything").matches] == ["even"]
