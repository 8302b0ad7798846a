"""Servers that speak OpenAI's protocol as embedders, in the accents of TEI, vLLM and llama.cpp."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from ragistry.errors import EmbeddingGenerationError, ModelConnectionError, ModelError, ModelNotFoundError
from ragistry.models.openai_compatible import OpenAICompatibleEmbedder
from ragistry.testing.embedders import EmbedderConformance
from ragistry.testing.openai_server import Accent, OpenAIServer
from ragistry.trace import collect, stage

ACCENTS: tuple[Accent, ...] = ("tei", "vllm", "llama.cpp")
MODEL = "BAAI/bge-small-en-v1.5"
LONG = "word " * 100
Made = tuple[OpenAIServer, OpenAICompatibleEmbedder]


@pytest.fixture
def make() -> Iterator[Callable[..., Made]]:
    """A server, and an embedder at it."""
    with ExitStack() as stack:

        def made(
            accent: Accent = "tei", model: str | None = MODEL, server: dict | None = None, **embedder: object
        ) -> Made:
            running = stack.enter_context(OpenAIServer(MODEL, accent=accent, max_tokens=64, **(server or {})))
            client = OpenAICompatibleEmbedder(model, base_url=running.url, backoff=0.001, **embedder)
            stack.callback(client.close)
            return running, client

        yield made


@pytest.mark.parametrize("accent", ACCENTS)
class TestConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self, accent: Accent) -> Iterator[OpenAICompatibleEmbedder]:
        with OpenAIServer(MODEL, accent=accent) as server:
            client = OpenAICompatibleEmbedder(MODEL, base_url=server.url)
            yield client
            client.close()


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_the_address_may_end_in_v1(ending: str) -> None:
    with OpenAIServer() as server:
        embedder = OpenAICompatibleEmbedder(base_url=server.url + ending)
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
    _, embedder = make(document_prefix="")
    texts = ["alpha", "beta", "gamma"]
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    np.testing.assert_allclose(embedder.embed(texts), alone, atol=1e-6)


def test_batches_keep_to_the_limit_of_the_server(make: Callable[..., Made]) -> None:
    server, embedder = make(server={"max_batch": 4}, batch_size=100)
    assert embedder.embed([f"text {number}" for number in range(10)]).shape == (10, 64)
    assert max(len(body["input"]) for body in server.asked("/v1/embeddings")) == 4


@pytest.mark.parametrize("accent", ACCENTS)
def test_queries_and_documents_get_their_prefixes(make: Callable[..., Made], accent: Accent) -> None:
    server, embedder = make(accent, document_prefix="passage: ")
    assert embedder.fingerprint
    server.requests.clear()
    embedder.embed(["sky"], role="query")
    embedder.embed(["sky"])
    assert [body["input"] for body in server.asked("/v1/embeddings")] == [
        ["Represent this sentence for searching relevant passages: sky"],
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


@pytest.mark.parametrize("accent", ACCENTS)
def test_a_long_text_is_refused_where_that_is_asked(make: Callable[..., Made], accent: Accent) -> None:
    _, embedder = make(accent, on_long="raise")
    with pytest.raises(EmbeddingGenerationError, match=r"texts\[2\], 500 characters"):
        embedder.embed(["short", "short", LONG, "short"])


def test_a_text_that_is_refused_at_any_length_is_named(make: Callable[..., Made]) -> None:
    server, embedder = make()
    assert embedder.fingerprint
    server.fail_next(422, times=100, path="/v1/embeddings")
    with pytest.raises(
        EmbeddingGenerationError, match=r"texts\[0\], \d+ characters.*answered 422: 'the server refuses'"
    ):
        embedder.embed(["first", "second"])


def test_a_refusal_with_status_500_is_not_tried_again(make: Callable[..., Made]) -> None:
    server, embedder = make("llama.cpp", on_long="raise")
    assert embedder.fingerprint
    server.requests.clear()
    with pytest.raises(EmbeddingGenerationError, match="input is too large to process"):
        embedder.embed([LONG])
    assert len(server.requests) == 1


def test_a_server_that_cuts_in_silence_is_found_out(make: Callable[..., Made]) -> None:
    server, embedder = make(server={"auto_truncate": True}, on_long="raise")
    assert embedder.embed(["short", "word " * 60]).shape == (2, 64)
    with pytest.raises(EmbeddingGenerationError, match=r"texts\[1\]"):
        embedder.embed(["short", LONG])
    assert all(text.startswith("word") for body in server.asked("/tokenize") for text in body["inputs"])


def test_a_short_query_asks_for_no_count_of_tokens(make: Callable[..., Made]) -> None:
    server, embedder = make(server={"auto_truncate": True})
    embedder.embed(["a short query"], role="query")
    assert server.asked("/tokenize") == []


@pytest.mark.parametrize("failure", [429, 500, 503, "drop", "cut"])
def test_a_passing_failure_is_tried_again(make: Callable[..., Made], failure: str | int) -> None:
    server, embedder = make()
    server.fail_next(failure, times=2, path="/v1/embeddings")
    assert embedder.embed(["text"]).shape == (1, 64)


def test_an_overloaded_server_is_asked_four_times(make: Callable[..., Made]) -> None:
    server, embedder = make()
    server.fail_next(429, times=10, path="/v1/embeddings")
    with pytest.raises(ModelError, match="429"):
        embedder.embed(["text"])
    assert len(server.asked("/v1/embeddings")) == 4


@pytest.mark.parametrize("status", [413, 422])
def test_a_batch_that_is_too_large_is_halved(make: Callable[..., Made], status: int) -> None:
    server, embedder = make()
    assert embedder.fingerprint
    server.requests.clear()
    server.fail_next(status, path="/v1/embeddings")
    assert embedder.embed(["one", "two", "three", "four"]).shape == (4, 64)
    assert [len(body["input"]) for body in server.asked("/v1/embeddings")] == [4, 2, 2]


@pytest.mark.parametrize("status", [400, 401, 404, 424])
def test_other_refusals_are_final(make: Callable[..., Made], status: int) -> None:
    server, embedder = make()
    server.fail_next(status, path="/v1/embeddings")
    with pytest.raises(ModelError, match=str(status)):
        embedder.embed(["text"])
    assert len(server.asked("/v1/embeddings")) == 1


@pytest.mark.parametrize("flaw", ["short", "nan", "zeros", "garbage"])
def test_answers_that_are_no_embeddings_are_refused(make: Callable[..., Made], flaw: str) -> None:
    server, embedder = make()
    assert embedder.fingerprint
    server.fail_next(flaw, path="/v1/embeddings")
    with pytest.raises(ModelError):
        embedder.embed(["one", "two"])


def test_a_key_is_sent(make: Callable[..., Made]) -> None:
    _, embedder = make(server={"api_key": "secret"}, api_key="secret")
    assert embedder.embed(["text"]).shape == (1, 64)
    _, stranger = make(server={"api_key": "secret"})
    with pytest.raises(ModelError, match="401.*Unauthorized"):
        stranger.embed(["text"])


def test_a_server_that_is_not_there_is_reported() -> None:
    embedder = OpenAICompatibleEmbedder(base_url="http://127.0.0.1:1/v1")
    with pytest.raises(ModelConnectionError, match=r"127\.0\.0\.1:1 cannot be reached.*correct its address"):
        embedder.embed(["text"])
    embedder.close()


def test_calls_and_tokens_are_traced(make: Callable[..., Made]) -> None:
    _, embedder = make(query_prefix="")
    assert embedder.fingerprint
    with collect() as trace, stage("dense"):
        embedder.embed(["two words"], role="query")
    assert (trace.stages()[0].model_calls, trace.stages()[0].tokens) == (1, 4)


def test_without_a_model_a_server_must_tell_which_it_serves(make: Callable[..., Made]) -> None:
    server, nameless = make(model=None, attempts=1)
    server.fail_next(503, path="/info")
    with pytest.raises(ModelError, match="503"):
        nameless.embed(["text"])
    server.fail_next(501, path="/info")
    with pytest.raises(ModelError, match="does not tell which model it serves; name it"):
        nameless.embed(["text"])


def test_a_named_model_is_used_where_the_server_does_not_tell(make: Callable[..., Made]) -> None:
    server, embedder = make("vllm", attempts=1)
    server.fail_next(500, path="/info")
    assert embedder.fingerprint.max_tokens == 64, "as /v1/models says"
    server, embedder = make("vllm", attempts=1)
    for path in ("/info", "/v1/models"):
        server.fail_next(502, path=path)
    assert (embedder.fingerprint.model, embedder.fingerprint.max_tokens) == (MODEL, 512), "as is known of the model"
