"""How often the server of embeddings is asked for the first query."""

from __future__ import annotations

import time

import pytest

from ragistry.models.openai import OpenAICompatibleEmbedder
from ragistry.testing.openai_server import OpenAIServer
from ragistry.tools.archive_search import ArchiveSearch
from ragistry.tools.archives import ChromaRagConfig, embed_query
from tests.tools.archive_servers import HEATING, MODEL

pytest_plugins = ["tests.tools.archive_fixture"]


class SlowServer(OpenAIServer):
    """Takes its time for each embedding."""

    def answer(self, request, flaw):
        if request.path == "/v1/embeddings":
            time.sleep(0.6)
        return super().answer(request, flaw)


@pytest.fixture
def slow():
    with SlowServer(MODEL) as server:
        yield server


def test_the_first_query_is_one_request_for_embeddings():
    with OpenAIServer(MODEL) as server:
        embed_query("the boiler", MODEL, server.url, 5.0)
        assert [body["input"] for body in server.asked("/v1/embeddings")] == [["the boiler"]]


def test_the_dimension_comes_with_the_first_embeddings():
    with OpenAIServer(MODEL) as server:
        embedder = OpenAICompatibleEmbedder(MODEL, url=server.url, probe=False)
        embedder.embed(["one", "two"])
        assert embedder.fingerprint.dimension == server.dimension
        assert embedder.embed([]).shape == (0, server.dimension)
        assert len(server.asked("/v1/embeddings")) == 1
        embedder.close()


def test_the_first_search_has_the_whole_time_for_its_embedding(servers, slow):
    archive = servers.archive("Maintenance", HEATING, tei_url=slow.url)
    search = ArchiveSearch(ChromaRagConfig(archives=[archive]), servers.settings(embed_timeout=1.0))
    answer = search.search("expansion vessel")
    search.close()
    assert answer.failed == ()
    assert len(answer.documents) == 3
