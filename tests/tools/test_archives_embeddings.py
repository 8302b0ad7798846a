"""A query as a vector, over a real server on loopback."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from time import monotonic

import numpy as np
import pytest

from ragistry.errors import EmbeddingGenerationError, ModelConnectionError, ModelError, ModelNotFoundError
from ragistry.testing.chroma_server import free_port
from ragistry.testing.hashed import hashed_embedding
from ragistry.testing.openai_server import OpenAIServer
from ragistry.tools.archives import embed_query
from tests.tools.archive_servers import MODEL


@pytest.fixture
def tei():
    with OpenAIServer(MODEL) as server:
        yield server


def test_embed_query_success(tei):
    vector = embed_query("the boiler", MODEL, tei.url, 5.0)
    assert tei.asked("/v1/embeddings")[0] == {"model": MODEL, "input": ["the boiler"]}
    assert all(isinstance(value, float) for value in vector)
    np.testing.assert_allclose(vector, hashed_embedding("the boiler", tei.dimension), atol=1e-6)


def test_embed_query_tei_unreachable():
    with pytest.raises(ModelConnectionError, match="cannot be reached"):
        embed_query("the boiler", MODEL, f"http://127.0.0.1:{free_port()}", 5.0)


def test_embed_query_env_fallback(tei, monkeypatch):
    monkeypatch.setenv("DOCPROC_TEI_EMBEDDINGS_URL", tei.url)
    assert len(embed_query("the boiler", MODEL)) == tei.dimension
    with OpenAIServer(MODEL, dimension=8) as other:
        assert len(embed_query("the boiler", MODEL, other.url)) == 8


def test_a_server_that_never_answers_is_given_up_in_time(monkeypatch):
    monkeypatch.setenv("RAG_EMBED_TIMEOUT_SECONDS", "0.3")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        start = monotonic()
        with pytest.raises(ModelConnectionError, match="no answer in time"):
            embed_query("the boiler", MODEL, f"http://127.0.0.1:{listener.getsockname()[1]}")
        assert monotonic() - start < 3


def test_embed_query_adds_no_prefix():
    with OpenAIServer("intfloat/e5-small-v2") as tei:
        embed_query("the boiler", "intfloat/e5-small-v2", tei.url)
        assert tei.asked("/v1/embeddings")[0]["input"] == ["the boiler"]


def test_another_model_than_the_archives_is_refused(tei):
    with pytest.raises(ModelNotFoundError, match=r"serves 'sentence-transformers.*not 'intfloat"):
        embed_query("the boiler", "intfloat/e5-small-v2", tei.url)


class PostAlone(BaseHTTPRequestHandler):
    """A server that has nothing but ``POST /v1/embeddings``, and refuses GET as its framework does: with 501."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"data": [{"index": 0, "embedding": [3, 4]}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


def test_a_server_that_knows_post_alone_is_asked():
    with HTTPServer(("127.0.0.1", 0), PostAlone) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            vector = embed_query("the boiler", MODEL, f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            thread.join()
    np.testing.assert_allclose(vector, [0.6, 0.8], atol=1e-6)


@pytest.mark.parametrize("status", [500, 501, 502, 503])
def test_a_server_that_fails_to_tell_what_it_serves_is_asked_all_the_same(tei, status):
    for path in ("/info", "/v1/models"):
        tei.fail_next(status, path=path)
    assert len(embed_query("the boiler", MODEL, tei.url)) == tei.dimension
    assert len(tei.asked("/v1/embeddings")) == 1


@pytest.mark.parametrize(
    ("failure", "error"),
    [(503, ModelError), (429, ModelError), ("garbage", ModelError), ("cut", ModelError), ("drop", ModelError),
     ("nan", EmbeddingGenerationError), ("zeros", EmbeddingGenerationError), ("short", EmbeddingGenerationError)],
)  # fmt: skip
def test_a_server_that_fails_is_an_error_of_ours(tei, failure, error):
    tei.fail_next(failure, path="/v1/embeddings")
    with pytest.raises(error):
        embed_query("the boiler", MODEL, tei.url)
    assert len(embed_query("the boiler", MODEL, tei.url)) == tei.dimension
