"""Servers that speak OpenAI's protocol as embedders, in the accents of TEI, vLLM and llama.cpp."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from ragistry import open_workspace
from ragistry.errors import (
    EmbeddingGenerationError,
    EmbeddingMismatchError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
)
from ragistry.models.http import Patience
from ragistry.models.openai import OpenAICompatibleEmbedder, OpenAIGenerator
from ragistry.testing.embedders import EmbedderConformance
from ragistry.testing.openai_server import Accent, OpenAIServer
from ragistry.trace import collect, stage
from ragistry.utils.fingerprints import check_same_embedder
from tests.messages import refused

ACCENTS: tuple[Accent, ...] = ("tei", "vllm", "llama.cpp")
MODEL = "BAAI/bge-small-en-v1.5"
LONG = "word " * 100
NONE = {"query": "", "document": ""}
ONCE = Patience(attempts=1)
Made = tuple[OpenAIServer, OpenAICompatibleEmbedder]


@pytest.fixture
def make() -> Iterator[Callable[..., Made]]:
    """A server, and an embedder at it."""
    with ExitStack() as stack:

        def made(
            accent: Accent = "tei", model: str | None = MODEL, server: dict | None = None, **embedder: object
        ) -> Made:
            running = stack.enter_context(OpenAIServer(MODEL, accent=accent, max_tokens=64, **(server or {})))
            client = OpenAICompatibleEmbedder(model, url=running.url, **embedder)
            stack.callback(client.close)
            return running, client

        yield made


@pytest.mark.parametrize("accent", ACCENTS)
class TestConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self, accent: Accent) -> Iterator[OpenAICompatibleEmbedder]:
        with OpenAIServer(MODEL, accent=accent) as server:
            client = OpenAICompatibleEmbedder(MODEL, url=server.url)
            yield client
            client.close()


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_the_address_may_end_in_v1(ending: str) -> None:
    with OpenAIServer() as server:
        embedder = OpenAICompatibleEmbedder(url=server.url + ending)
        assert embedder.embed(["text"]).shape == (1, server.dimension)
        embedder.close()
        assert {request.path for request in server.requests} == {"/info", "/v1/embeddings"}


@pytest.mark.parametrize(
    ("accent", "digest", "max_tokens"),
    [("tei", "fca14538aa9956a46526bd1d0d11d69e19b5a101", 64), ("vllm", "", 64), ("llama.cpp", "", 512)],
)
def test_the_fingerprint_has_what_the_server_tells(
    make: Callable[..., Made], accent: Accent, digest: str, max_tokens: int
) -> None:
    server, embedder = make(accent)
    fingerprint = embedder.fingerprint
    assert (fingerprint.model, fingerprint.digest, fingerprint.max_tokens) == (MODEL, digest, max_tokens)
    assert fingerprint.dimension == server.dimension
    assert fingerprint.query_prefix == "Represent this sentence for searching relevant passages: "


@pytest.mark.parametrize("accent", ACCENTS)
def test_without_a_model_it_takes_what_is_served(make: Callable[..., Made], accent: Accent) -> None:
    _, embedder = make(accent, model=None)
    assert embedder.fingerprint.model == MODEL
    assert embedder.fingerprint.query_prefix


def test_another_model_than_the_served_one_is_refused(make: Callable[..., Made]) -> None:
    _, tei = make("tei", model="intfloat/e5-base-v2")
    with pytest.raises(ModelNotFoundError, match=f"serves '{MODEL}', not 'intfloat/e5-base-v2'"):
        tei.embed(["text"])
    _, vllm = make("vllm", model="intfloat/e5-base-v2")
    with pytest.raises(ModelNotFoundError, match=f"no model 'intfloat/e5-base-v2'.*it has: {MODEL}"):
        vllm.embed(["text"])


def test_a_server_that_names_its_model_by_a_path_is_believed(make: Callable[..., Made]) -> None:
    server, embedder = make()
    server.model = "/data/model"
    assert embedder.fingerprint.model == MODEL


def test_rows_follow_the_index_and_not_the_list(make: Callable[..., Made]) -> None:
    server, embedder = make(prefixes=NONE)
    texts = ["alpha", "beta", "gamma"]
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    for server.index in ("number", "without 0", "from 1", "text"):
        np.testing.assert_allclose(embedder.embed(texts), alone, atol=1e-6)
        np.testing.assert_allclose(embedder.embed(texts[:1]), alone[:1], atol=1e-6)
    server.index = "number"
    for server.as_text in ("numbers", "vector"):
        np.testing.assert_allclose(embedder.embed(texts), alone, atol=1e-6)


@pytest.mark.parametrize(
    "path",
    ["/v1/embeddings", "/v1/embeddings/", "/v1/chat/completions", "/v1/models", "/embeddings", "/embed", "/info"],
)
def test_address_may_be_that_of_an_endpoint(path: str) -> None:
    with OpenAIServer(MODEL, accent="tei") as server:
        embedder = OpenAICompatibleEmbedder(MODEL, url=server.url + path)
        assert embedder.embed(["text"]).shape == (1, 64)
        assert embedder.fingerprint.max_tokens == server.max_tokens
        embedder.close()
        for url in (f"{server.url}{path}", f"{server.url}/v1/chat/completions"):
            generator = OpenAIGenerator(MODEL, url=url)
            assert generator.generate("hello") == "You said: hello"
            generator.close()


def test_batches_keep_to_the_limit_of_the_server(make: Callable[..., Made]) -> None:
    server, embedder = make(server={"max_batch": 4}, batch_size=100)
    assert embedder.embed([f"text {number}" for number in range(10)]).shape == (10, 64)
    assert max(len(body["input"]) for body in server.asked("/v1/embeddings")) == 4


@pytest.mark.parametrize("accent", ACCENTS)
def test_queries_and_documents_get_their_prefixes(make: Callable[..., Made], accent: Accent) -> None:
    server, embedder = make(accent, prefixes={"query": "q: ", "document": "passage: "})
    assert embedder.fingerprint
    server.requests.clear()
    embedder.embed(["sky"], role="query")
    embedder.embed(["sky"])
    assert [body["input"] for body in server.asked("/v1/embeddings")] == [
        ["q: sky"],
        ["passage: sky"],
    ]


@pytest.mark.parametrize("accent", ACCENTS)
def test_a_long_text_is_cut_and_reported(
    make: Callable[..., Made], accent: Accent, caplog: pytest.LogCaptureFixture
) -> None:
    _, embedder = make(accent)
    with collect() as trace, stage("dense"), caplog.at_level(logging.WARNING):
        rows = embedder.embed(["short", LONG, "short too"])
    np.testing.assert_allclose(rows[[0, 2]], embedder.embed(["short", "short too"]), atol=1e-6)
    assert rows[1] @ embedder.embed(["word " * 50])[0] > 0.999
    assert "1 of the texts, up to 500 characters" in caplog.text
    assert "only their beginnings" in trace.stages()[0].degraded


def test_a_text_that_is_refused_at_any_length_is_named(make: Callable[..., Made]) -> None:
    server, embedder = make()
    assert embedder.fingerprint
    server.fail_next(422, times=100, path="/v1/embeddings")
    with refused(EmbeddingGenerationError):
        embedder.embed(["first", "second"])


def test_a_server_that_cuts_in_silence_is_found_out(make: Callable[..., Made]) -> None:
    server, embedder = make(server={"auto_truncate": True})
    for text, note in (("word " * 60, ""), (LONG, "only their beginnings")):
        with collect() as trace, stage("dense"):
            assert embedder.embed(["short", text]).shape == (2, 64)
        assert note in trace.stages()[0].degraded
        assert bool(note) == bool(trace.stages()[0].degraded)
    assert all(text.startswith("word") for body in server.asked("/tokenize") for text in body["inputs"])


@pytest.mark.parametrize("status", [413, 422])
def test_a_batch_that_is_too_large_is_halved(make: Callable[..., Made], status: int) -> None:
    server, embedder = make()
    assert embedder.fingerprint
    server.requests.clear()
    server.fail_next(status, path="/v1/embeddings")
    assert embedder.embed(["one", "two", "three", "four"]).shape == (4, 64)
    assert [len(body["input"]) for body in server.asked("/v1/embeddings")] == [4, 2, 2]


def test_a_key_is_sent(make: Callable[..., Made]) -> None:
    _, embedder = make(server={"api_key": "secret"}, api_key="secret")
    assert embedder.embed(["text"]).shape == (1, 64)
    _, stranger = make(server={"api_key": "secret"})
    with refused(ModelError):
        stranger.embed(["text"])


def test_a_server_that_is_not_there_is_reported() -> None:
    embedder = OpenAICompatibleEmbedder(url="http://127.0.0.1:1/v1")
    with refused(ModelConnectionError):
        embedder.embed(["text"])
    embedder.close()


def test_without_a_model_a_server_must_tell_which_it_serves(make: Callable[..., Made]) -> None:
    server, nameless = make(model=None, patience=ONCE)
    server.fail_next(503, path="/info")
    with refused(ModelError):
        nameless.embed(["text"])
    server.fail_next(501, path="/info")
    with refused(ModelError):
        nameless.embed(["text"])


def test_a_named_model_is_used_where_the_server_does_not_tell(make: Callable[..., Made]) -> None:
    server, embedder = make("vllm", patience=ONCE)
    server.fail_next(500, path="/info")
    assert embedder.fingerprint.max_tokens == 64, "as /v1/models says"
    server, embedder = make("vllm", patience=ONCE)
    for path in ("/info", "/v1/models"):
        server.fail_next(502, path=path)
    assert (embedder.fingerprint.model, embedder.fingerprint.max_tokens) == (MODEL, 512), "as is known of the model"


def test_tokens_are_counted_by_tei_and_estimated_elsewhere(make: Callable[..., Made]) -> None:
    texts = ["two words", "three more words", LONG]
    server, tei = make(batch_size=2, server={"max_batch": 2}, prefixes=NONE)
    assert tei.count_tokens(texts) == [4, 5, 102]
    assert [len(body["inputs"]) for body in server.asked("/tokenize")] == [2, 1]
    _, vllm = make("vllm", prefixes=NONE)
    assert vllm.count_tokens(texts) == [5, 6, 127], "four bytes a token, and two"
    server.fail_next(404, path="/tokenize")
    assert tei.count_tokens(texts) == [5, 6, 127], "a proxy that only lets embeddings pass"


@pytest.mark.parametrize("accent", ACCENTS)
def test_another_model_behind_the_same_name_is_told_by_its_probe(make: Callable[..., Made], accent: Accent) -> None:
    server, first = make(accent)
    _, same = make(accent)
    server.noise = 0.005
    recorded = first.fingerprint
    check_same_embedder(recorded, same.fingerprint)
    assert recorded == same.fingerprint
    server.seed = "other"
    other = OpenAICompatibleEmbedder(MODEL, url=server.url)
    with refused(EmbeddingMismatchError):
        check_same_embedder(recorded, other.fingerprint)
    other.close()


def test_a_store_refuses_another_model_behind_the_same_name(tmp_path: Path) -> None:
    with OpenAIServer(MODEL) as server:
        settings = {"embed_model": f"openai:{MODEL}", "embed_url": server.url}
        with open_workspace(tmp_path, **settings) as workspace:
            workspace.library.create_collection("tea")
            workspace.library.ingest_text("Green tea is steeped.", "tea.txt", "tea")
        with open_workspace(tmp_path, **settings) as workspace:
            assert workspace.search("tea", "naive").total_results == 1
        server.seed = "other"
        with (
            open_workspace(tmp_path, **settings) as workspace,
            refused(EmbeddingMismatchError),
        ):
            workspace.search("tea", "naive")


@pytest.mark.parametrize("failure", ["deep", "booleans", "endless"])
def test_embed_refuses_answers_that_are_not_vectors(make: Callable[..., Made], failure: str) -> None:
    server, embedder = make(patience=ONCE)
    assert embedder.fingerprint
    server.fail_next(failure, path="/v1/embeddings")
    with pytest.raises(ModelError) as raised:
        embedder.embed(["text"])
    assert len(str(raised.value)) < 500
