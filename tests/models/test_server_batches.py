"""Texts at embedders and rerankers of every server: batches, order, prefixes, limits, and what a fingerprint has."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from ragistry.errors import EmbeddingGenerationError, ModelError
from ragistry.protocols import Embedder, Reranker
from ragistry.testing.embedders import EmbedderConformance
from ragistry.trace import collect, stage
from tests.messages import refused
from tests.models.servers import EMBEDDERS, MODEL, RERANKERS, TEXTS, Kind, Serve, check_wording, every

BATCHED = EMBEDDERS | RERANKERS
FITS, LONG = "word " * 50, "word " * 100
NOMIC, SEARCH, NONE = "nomic-embed-text", ("search_query: ", "search_document: "), ("", "")


@every(EMBEDDERS)
class TestConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self, serve: Serve, kind: Kind) -> Embedder:
        return serve(kind, {"max_tokens": 512})[1]


@every(BATCHED)
def test_texts_are_sent_a_batch_at_a_time_and_answered_in_their_order(serve: Serve, kind: Kind) -> None:
    server, model = serve(kind, batch_size=4)
    alone = [kind.ask(model, [text])[0] for text in TEXTS]
    server.requests.clear()
    np.testing.assert_allclose(kind.ask(model, TEXTS), alone, atol=1e-6)
    assert kind.sent(server) == [TEXTS[:4], TEXTS[4:8], TEXTS[8:]]


@every({name: kind for name, kind in BATCHED.items() if name.startswith("tei")})
def test_batches_keep_to_the_limit_of_the_server(serve: Serve, kind: Kind) -> None:
    server, model = serve(kind, {"max_batch": 4}, batch_size=100)
    alone = [kind.ask(model, [text])[0] for text in TEXTS]
    server.requests.clear()
    np.testing.assert_allclose(kind.ask(model, TEXTS), alone, atol=1e-6)
    sizes = [len(batch) for batch in kind.sent(server)]
    assert sizes == ([4, 4, 2] if kind in EMBEDDERS.values() else [10, 5, 2, 2, 2, 2, 2]), "a reranker is not told it"


@pytest.mark.parametrize("status", [400, 413, 422])
@every(BATCHED)
def test_a_batch_that_is_too_large_is_halved(serve: Serve, kind: Kind, status: int) -> None:
    server, model = serve(kind)
    kind.ask(model, ["known"])
    server.fail_next(status, path=kind.path)
    assert len(kind.ask(model, TEXTS[:4])) == 4
    assert [len(batch) for batch in kind.sent(server)] == [1, 4, 2, 2]


@pytest.mark.parametrize("status", [413, 422])
@every(BATCHED)
def test_a_text_that_is_refused_at_any_length_is_named(serve: Serve, kind: Kind, status: int) -> None:
    server, model = serve(kind)
    kind.ask(model, ["known"])
    server.fail_next(status, times=100, path=kind.path)
    said = r"texts\[0\], 6 characters, is too long" if kind in EMBEDDERS.values() else "one text of 6 characters"
    with pytest.raises(ModelError, match=f"{said}.*; (make the chunks smaller|shorten it)") as raised:
        kind.ask(model, TEXTS[:3])
    check_wording(kind, raised.value)


@every(RERANKERS)
def test_no_texts_have_no_scores(serve: Serve, kind: Kind) -> None:
    server, model = serve(kind)
    assert isinstance(model, Reranker)
    assert model.rerank("capital", []) == []
    assert server.requests == []


@pytest.mark.parametrize(
    ("model", "given", "prefixes"),
    [(NOMIC, None, SEARCH), (NOMIC, NONE, NONE), (MODEL, None, NONE), (MODEL, ("q: ", "p: "), ("q: ", "p: "))],
)
@every(EMBEDDERS)
def test_queries_and_documents_get_the_prefixes_of_the_model_or_those_that_are_set(
    serve: Serve, kind: Kind, model: str, given: tuple[str, str] | None, prefixes: tuple[str, str]
) -> None:
    own = None if given is None else dict(zip(("query", "document"), given, strict=True))
    server, embedder = serve(kind, {"model": model}, model=model, prefixes=own)
    embedder.embed(["sky"], role="query")
    embedder.embed(["sky"])
    assert kind.sent(server) == [[f"{prefix}sky"] for prefix in prefixes]
    assert (embedder.fingerprint.query_prefix, embedder.fingerprint.document_prefix) == prefixes


@pytest.mark.parametrize("silent", [False, True])
@every(EMBEDDERS)
def test_a_long_text_is_cut_and_reported(
    serve: Serve, kind: Kind, silent: bool, caplog: pytest.LogCaptureFixture
) -> None:
    server, embedder = serve(kind)
    server.cuts_silently = silent  # as some versions of Ollama
    server.auto_truncate = silent and kind is EMBEDDERS["tei embeds"]
    assert embedder.fingerprint
    with collect() as trace, stage("dense"), caplog.at_level(logging.WARNING):
        rows = embedder.embed(["short", LONG, "short too"])
        np.testing.assert_allclose(rows[[0, 2]], embedder.embed(["short", "short too"]), atol=1e-6)
        assert rows[1] @ embedder.embed([FITS])[0] > 0.999
    assert "1 of the texts, up to 500 characters" in caplog.text
    assert trace.stages()[0].degraded.count("only their beginnings") == 1, "what just fits is not cut"


@every(EMBEDDERS)
def test_a_model_that_was_changed_for_one_of_another_dimension_is_noticed(serve: Serve, kind: Kind) -> None:
    server, embedder = serve(kind)
    assert embedder.embed(["text"]).shape == (1, 64)
    server.dimension = 32
    with refused(EmbeddingGenerationError):
        embedder.embed(["text"])


TOLD: dict[str, Any] = {
    "ollama embeds": ("ollama", 64),
    "tei embeds": ("openai-compatible", 64),
    "vllm embeds": ("openai-compatible", 64),
    "llama.cpp embeds": ("openai-compatible", 2048),
}


@every(EMBEDDERS)
def test_the_fingerprint_has_what_the_server_tells_or_is_known_of_the_model(serve: Serve, kind: Kind) -> None:
    server, embedder = serve(kind, {"model": NOMIC}, model=NOMIC)
    name = next(name for name, other in EMBEDDERS.items() if other is kind)
    fingerprint = embedder.fingerprint
    assert (fingerprint.provider, fingerprint.max_tokens) == TOLD[name]
    assert (fingerprint.model, fingerprint.dimension) == (NOMIC, server.dimension)
    digest = server.digest(f"{NOMIC}:latest") if name == "ollama embeds" else server._info()["model_sha"]
    assert fingerprint.digest == (digest if name in ("ollama embeds", "tei embeds") else "")
