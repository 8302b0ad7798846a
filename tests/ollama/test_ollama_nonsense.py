"""Whatever JSON a server answers, a client gives what it promises or raises an error of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragistry.errors import RagistryError
from ragistry.models.openai import OpenAICompatibleEmbedder, OpenAIGenerator, OpenAIReranker
from ragistry.models.tei import TEIReranker
from ragistry.ollama.client import OllamaClient, OllamaModel
from ragistry.testing.loopback import Failure, LoopbackServer
from ragistry.testing.wire import Reply, Request

KEYS = st.sampled_from(
    [
        "models", "name", "model", "digest", "size", "embeddings", "prompt_eval_count", "response", "message",
        "content", "done", "done_reason", "error", "version", "model_info", "x.context_length", "parameters", "data",
        "index", "embedding", "usage", "prompt_tokens", "model_id", "model_sha", "max_input_length",
        "max_client_batch_size", "auto_truncate", "id", "max_model_len", "score", "choices", "results",
        "relevance_score",
    ]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.text(max_size=5) | st.just(10**400)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
)


class Nonsense(LoopbackServer):
    """Answers every request with the same body."""

    body: Any = None

    def answer(self, request: Request, flaw: Failure | None) -> Reply:
        return Reply(body=self.body)


@pytest.fixture(scope="module")
def server() -> Iterator[Nonsense]:
    with Nonsense() as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Nonsense) -> Iterator[OllamaClient]:
    with OllamaClient(server.url) as made:
        yield made


def is_vector(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is float for number in value) and bool(np.isfinite(value).all())


CALLS: dict[str, tuple[Callable[[OllamaClient], Any], Callable[[Any], bool]]] = {
    "embed": (lambda client: client.embed("text", "m"), is_vector),
    "embed a long text": (lambda client: client.embed("word " * 50, "m"), is_vector),
    "generate": (lambda client: client.generate("prompt", "m"), lambda answer: isinstance(answer, str)),
    "chat": (lambda client: client.chat([{"role": "user", "content": "x"}], "m"), lambda a: isinstance(a, str)),
    "list": (lambda client: client.list_models(), lambda rows: all(isinstance(row, OllamaModel) for row in rows)),
    "digest": (lambda client: client.digest("m"), lambda digest: isinstance(digest, str)),
    "version": (lambda client: client.version(), lambda version: isinstance(version, str)),
    "window": (lambda client: client.window("m"), lambda window: isinstance(window, int)),
}


@pytest.mark.parametrize("call", CALLS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=JSON)
def test_ollama_may_answer_anything(server: Nonsense, client: OllamaClient, call: str, body: Any) -> None:
    server.body = body
    client._limits.clear()
    ask, fits = CALLS[call]
    try:
        answer = ask(client)
    except RagistryError:
        return
    assert fits(answer)


@settings(max_examples=60, deadline=None)
@given(body=JSON)
def test_an_openai_server_may_answer_anything(server: Nonsense, body: Any) -> None:
    server.body = body
    embedder = OpenAICompatibleEmbedder("m", url=server.url)
    try:
        rows = embedder.embed(["text"])
    except RagistryError:
        return
    finally:
        embedder.close()
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1)


@pytest.mark.parametrize("kind", [TEIReranker, OpenAIReranker])
@settings(max_examples=60, deadline=None)
@given(body=JSON)
def test_a_reranker_may_answer_anything(server: Nonsense, kind: type, body: Any) -> None:
    server.body = body
    reranker = kind(url=server.url)
    try:
        scores = reranker.rerank("query", ["text"])
    except RagistryError:
        return
    finally:
        reranker.close()
    assert [type(score) for score in scores] == [float]


@settings(max_examples=60, deadline=None)
@given(body=JSON)
def test_an_openai_generator_may_answer_anything(server: Nonsense, body: Any) -> None:
    server.body = body
    generator = OpenAIGenerator("m", url=server.url)
    try:
        assert isinstance(generator.generate("prompt"), str)
    except RagistryError:
        return
    finally:
        generator.close()
