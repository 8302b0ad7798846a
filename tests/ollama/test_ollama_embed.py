"""Embeddings: batches, and texts that are longer than the model takes in."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import EmbeddingGenerationError
from ragistry.models.texts import TooLongError, check_vectors, embed_texts
from ragistry.ollama.client import OllamaClient
from ragistry.ollama.embedder import OllamaEmbedder
from ragistry.testing.hashed import hashed_embedding
from ragistry.testing.ollama_server import OllamaServer
from ragistry.trace import collect, stage
from tests.messages import refused
from tests.ollama.conftest import EMBEDDER

LONG = "word " * 200  # the server's window is 64 tokens
FITS = "a few words"


def test_one_text_gives_one_vector_of_floats(server: OllamaServer, client: OllamaClient) -> None:
    vector = client.embed("Why is the sky blue?", EMBEDDER)
    assert len(vector) == server.dimension
    assert all(type(value) is float for value in vector)
    assert server.asked("/api/embed") == [{"model": EMBEDDER, "input": ["Why is the sky blue?"], "truncate": False}]


def test_options_are_passed_on(server: OllamaServer, client: OllamaClient) -> None:
    client.embed("text", EMBEDDER, options={"num_ctx": 32})
    [body] = server.asked("/api/embed")
    assert body["options"] == {"num_ctx": 32}


def test_a_long_text_is_refused_by_its_position_and_length(client: OllamaClient) -> None:
    with refused(EmbeddingGenerationError):
        client.vectors([FITS, FITS, LONG, FITS], EMBEDDER)


def test_a_text_that_is_too_long_is_shortened_until_it_fits(server: OllamaServer, client: OllamaClient) -> None:
    vector = client.embed(LONG, EMBEDDER, on_long="truncate")
    sent = [body["input"][0] for body in server.asked("/api/embed")]
    assert vector == client.embed(sent[-1], EMBEDDER)
    assert LONG.startswith(sent[-1])
    assert 40 <= len(sent[-1].split()) <= 62


@pytest.mark.parametrize("texts", [[LONG], [FITS, LONG], [FITS, LONG, LONG, FITS]])
def test_a_server_that_cuts_in_silence_is_found_out(
    server: OllamaServer, client: OllamaClient, texts: list[str]
) -> None:
    server.cuts_silently = True
    with pytest.raises(EmbeddingGenerationError, match=rf"texts\[{texts.index(LONG)}\]"):
        client.vectors(texts, EMBEDDER)


@pytest.mark.parametrize("words", [60, 61, 62])
def test_a_text_that_just_fits_is_no_silent_cut(client: OllamaClient, words: int) -> None:
    assert client.embed(" ".join(["abcdef"] * words), EMBEDDER)


def test_a_server_that_does_not_tell_its_window_is_believed(server: OllamaServer, client: OllamaClient) -> None:
    server.fail_next(405, path="/api/show")
    assert client.embed("word " * 50, EMBEDDER)
    assert client.window(EMBEDDER) == 0


def test_two_spellings_of_a_model_have_one_fingerprint(client: OllamaClient) -> None:
    names = (EMBEDDER, f"{EMBEDDER}:latest", "Nomic-Embed-Text")
    assert len({OllamaEmbedder(name, client=client).fingerprint for name in names}) == 1


def test_a_smaller_window_is_part_of_the_fingerprint(client: OllamaClient) -> None:
    embedder = OllamaEmbedder(client=client, options={"num_ctx": 16})
    assert embedder.fingerprint.max_tokens == 16
    with collect() as trace, stage("dense"):
        embedder.embed(["word " * 20])
    assert "only their beginnings" in trace.stages()[0].degraded


def test_calls_and_tokens_are_traced(client: OllamaClient) -> None:
    with collect() as trace, stage("embed"):
        client.vectors(["one two", "three"], EMBEDDER)
    [done] = trace.stages()
    assert (done.model_calls, done.tokens) == (1, 2 + 2 + 1 + 2)


@settings(max_examples=100, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 30), max_size=20),
    batch_size=st.integers(1, 7),
    most=st.integers(1, 7),
    window=st.integers(1, 30),
)
def test_whatever_the_limits_every_text_gets_its_own_vector(
    lengths: list[int], batch_size: int, most: int, window: int
) -> None:
    def send(batch: Any) -> list[list[float]]:
        if len(batch) > most or any(len(text) > window for text in batch):
            raise TooLongError("too much")
        return [hashed_embedding(text, 4) for text in batch]

    texts = [chr(97 + position) * length for position, length in enumerate(lengths)]
    vectors = embed_texts(texts, send, model="m", window=lambda: window, batch_size=batch_size, on_long="truncate")
    for text, vector in zip(texts, vectors, strict=True):
        kept = {tuple(hashed_embedding(text[:size], 4)) for size in range(math.ceil(window * 0.7), window + 1)}
        assert tuple(vector) == tuple(hashed_embedding(text, 4)) if len(text) <= window else tuple(vector) in kept


@pytest.mark.parametrize(
    "vectors",
    [
        *(None, {}, "text", [], [[]], [[1.0], [2.0]], [[1.0, 2.0], [3.0]], [1.0], [["a"]], [["0,5"]], [["nan"]]),
        *([["0.5", True]], [[None]], [[math.inf]], [[0.0]], [[True, 0.5]], [[10**400]]),
    ],
)
def test_only_vectors_are_vectors(vectors: Any) -> None:
    with pytest.raises(EmbeddingGenerationError):
        check_vectors(vectors, 1)


def test_numbers_may_be_text() -> None:
    assert check_vectors([["0.5", "-1e-3"], [0.25, "1"]], 2).tolist() == [[0.5, -0.001], [0.25, 1.0]]
