"""A model of Ollama as an embedder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ragistry.errors import EmbeddingGenerationError, ModelConnectionError, ModelNotFoundError
from ragistry.ollama.client import OllamaClient
from ragistry.ollama.embedder import OllamaEmbedder
from ragistry.testing.embedders import EmbedderConformance
from ragistry.testing.ollama_server import OllamaServer
from ragistry.trace import collect, stage
from tests.messages import refused


@pytest.fixture(scope="module")
def server() -> Iterator[OllamaServer]:
    with OllamaServer(["nomic-embed-text:latest", "bge-m3:latest", "own-model:latest"]) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: OllamaServer) -> Iterator[OllamaClient]:
    with OllamaClient(server.url) as made:
        yield made


def texts_sent(server: OllamaServer) -> list[str]:
    return [text for body in server.asked("/api/embed") for text in body["input"]]


class TestConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self, client: OllamaClient) -> OllamaEmbedder:
        return OllamaEmbedder(client=client)


def test_the_fingerprint_has_the_digest_the_prefixes_and_the_window(server: OllamaServer, client: OllamaClient) -> None:
    fingerprint = OllamaEmbedder("nomic-embed-text", client=client).fingerprint
    assert fingerprint.provider == "ollama"
    assert fingerprint.digest == server.digest("nomic-embed-text:latest")
    assert (fingerprint.dimension, fingerprint.max_tokens) == (server.dimension, server.context_length)
    assert (fingerprint.query_prefix, fingerprint.document_prefix) == ("search_query: ", "search_document: ")


def test_two_spellings_of_a_model_have_one_fingerprint(client: OllamaClient) -> None:
    names = ("nomic-embed-text", "nomic-embed-text:latest", "Nomic-Embed-Text")
    assert len({OllamaEmbedder(name, client=client).fingerprint for name in names}) == 1


def test_queries_and_documents_get_their_prefixes(server: OllamaServer, client: OllamaClient) -> None:
    embedder = OllamaEmbedder(client=client)
    assert embedder.fingerprint
    server.requests.clear()
    embedder.embed(["sky"], role="query")
    embedder.embed(["sky"])
    assert texts_sent(server) == ["search_query: sky", "search_document: sky"]


@pytest.mark.parametrize(
    ("model", "given", "text"),
    [
        ("bge-m3", None, "sky"),
        ("own-model", None, "sky"),
        ("nomic-embed-text", "", "sky"),
        ("own-model", "q: ", "q: sky"),
    ],
)
def test_prefixes_can_be_set(
    server: OllamaServer, client: OllamaClient, model: str, given: str | None, text: str
) -> None:
    embedder = OllamaEmbedder(
        model, client=client, prefixes=None if given is None else {"query": given, "document": ""}
    )
    assert embedder.fingerprint.query_prefix == text.removesuffix("sky")
    server.requests.clear()
    embedder.embed(["sky"], role="query")
    assert texts_sent(server) == [text]


def test_a_smaller_window_is_part_of_the_fingerprint(client: OllamaClient) -> None:
    embedder = OllamaEmbedder(client=client, options={"num_ctx": 16})
    assert embedder.fingerprint.max_tokens == 16
    with collect() as trace, stage("dense"):
        embedder.embed(["word " * 20])
    assert "only their beginnings" in trace.stages()[0].degraded


def test_a_missing_model_is_reported_when_it_is_needed(client: OllamaClient) -> None:
    embedder = OllamaEmbedder("absent", client=client)
    with refused(ModelNotFoundError):
        embedder.embed(["text"])
    with pytest.raises(ModelNotFoundError):
        _ = embedder.fingerprint


def test_making_one_calls_nobody_and_a_host_makes_a_client() -> None:
    embedder = OllamaEmbedder(host="127.0.0.1:1")
    with refused(ModelConnectionError):
        embedder.embed(["text"])
    embedder.close()


def test_a_model_that_was_changed_for_one_of_another_dimension_is_noticed() -> None:
    with OllamaServer() as server, OllamaClient(server.url) as client:
        embedder = OllamaEmbedder(client=client)
        assert embedder.fingerprint.dimension == 64
        server.dimension = 32
        with refused(EmbeddingGenerationError):
            embedder.embed(["text"])
