"""Servers that keep to OpenAI's protocol in their own ways, and the official client of the servers of our tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest

from ragistry import open_workspace
from ragistry.errors import EmbeddingMismatchError, ModelError
from ragistry.models.http import Patience
from ragistry.testing.loopback import LoopbackServer
from ragistry.testing.openai_server import OpenAIServer
from ragistry.testing.wire import Request
from ragistry.utils.fingerprints import check_same_embedder
from tests.messages import refused
from tests.models.servers import (
    EMBEDDERS,
    KINDS,
    MODEL,
    RERANKERS,
    STREAMS,
    TEXTS,
    Fixed,
    Kind,
    Serve,
    every,
)

OPENAI = {name: kind for name, kind in EMBEDDERS.items() if name != "ollama embeds"}
TEI, VLLM = OPENAI["tei embeds"], OPENAI["vllm embeds"]
LONG = "word " * 100
ONCE = Patience(attempts=1)
SAID = "Rain falls from clouds."
START = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
PIECES = [
    {"choices": [{"delta": {"content": piece}, "finish_reason": None}]} for piece in ("Rain falls", " from clouds.")
]
STOP = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
USAGE = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}}


def stream(server: LoopbackServer) -> str:
    with STREAMS["openai streams"].at(server) as generator:
        return "".join(generator.stream("What is rain?"))


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([START, *PIECES, STOP, USAGE], id="usage with empty choices at the end"),
        pytest.param([START, *PIECES, STOP, {"usage": USAGE["usage"]}], id="usage without choices"),
        pytest.param([START, *PIECES, STOP, STOP], id="two ends"),
        pytest.param([*PIECES, {**STOP, "usage": None}], id="null usage"),
        pytest.param([{"choices": []}, *PIECES, STOP], id="an event without a choice at the start"),
        pytest.param(
            [{"choices": [{"delta": {"content": None, "reasoning_content": "hm"}}]}, *PIECES, STOP],
            id="reasoning beside null",
        ),
        pytest.param(
            [{"choices": [{"delta": {"content": [{"type": "text", "text": SAID}]}}]}, STOP], id="content in parts"
        ),
        pytest.param([*PIECES], id="an end without a reason"),
    ],
)
def test_stream_ends_in_any_known_way(events: list[dict[str, Any]]) -> None:
    with Fixed(events=events) as server:
        assert stream(server) == SAID


@pytest.mark.parametrize(
    "lines",
    [
        ": keep-alive\n\nevent: message\nid: 7\ndata: {}\n\n: ping\n\ndata: [DONE]\n\n",
        "retry: 10\r\ndata:{}\r\n\r\ndata: [DONE]\r\n\r\ndata: [DONE]\r\n\r\n",
    ],
)
def test_comments_and_other_fields_of_events_are_skipped(lines: str) -> None:
    class Raw(LoopbackServer):
        def _respond(self, handler: Any, request: Request) -> None:
            text = lines.replace("{}", json.dumps({"choices": [{"delta": {"content": SAID}, "finish_reason": "stop"}]}))
            handler.send(200, text.encode(), {"Content-Type": "text/event-stream"})

    with Raw() as server:
        assert stream(server) == SAID


NUMBERED = [{"index": index} for index in ("number", "without 0", "from 1", "text")]
FORMS = [{"index": index, "base64": base64} for index in ("null", "missing") for base64 in (False, True)]
FORMS += [{"base64": True}, {"as_text": "numbers"}, {"as_text": "vector"}]


@pytest.mark.parametrize(
    ("name", "form"),
    [*((name, form) for name in OPENAI | RERANKERS for form in NUMBERED), *(("vllm embeds", form) for form in FORMS)],
    ids=str,
)
def test_rows_follow_the_index_in_every_form(serve: Serve, name: str, form: dict[str, Any]) -> None:
    kind = KINDS[name]
    server, model = serve(kind)
    alone = [kind.ask(model, [text])[0] for text in TEXTS[:4]]
    for attribute, value in form.items():
        setattr(server, attribute, value)
    np.testing.assert_allclose(kind.ask(model, TEXTS[:4]), alone, atol=1e-6)
    np.testing.assert_allclose(kind.ask(model, TEXTS[:1]), alone[:1], atol=1e-6)


@pytest.mark.parametrize("name", ["temperature", "max_tokens", "stream_options", "top_p"])
def test_refused_parameter_is_left_out_after_one_refusal(
    serve: Serve, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    kind = STREAMS["openai streams"]
    server, generator = serve(kind, max_tokens=50, options={"top_p": 0.5})
    server.refused = {name}
    assert [kind.ask(generator, ["hello"]) for _ in range(2)] == ["You said: hello"] * 2
    assert [name in body for body in server.asked(kind.path)] == [True, False, False]
    assert name in caplog.text


ENDPOINTS = ("/v1", "/v1/embeddings", "/v1/chat/completions", "/v1/models", "/embeddings", "/embed", "/info", "/rerank")
ROOTS = ("/api/v3", "/api/paas/v4", "/openai", "/v1beta/openai", "/llm/v1", "")


@pytest.mark.parametrize(
    ("root", "path"),
    [*(("/v1", path) for path in ("", *ENDPOINTS)), *((root, root) for root in ROOTS)],
)
@pytest.mark.parametrize("ending", ["", "/"])
def test_address_may_be_that_of_an_endpoint_or_of_any_root(serve: Serve, root: str, path: str, ending: str) -> None:
    names = ["openai answers", "openai streams", "vllm embeds", "openai ranks"]
    for name in names + ["tei embeds", "tei ranks"] * (root == "/v1"):
        kind = KINDS[name]
        if name == "tei ranks" and path not in ("", "/info", "/rerank", "/embed", "/embeddings"):
            continue  # it is no part of OpenAI's protocol
        server, _ = serve(kind)
        server.root = root
        model = serve.model(kind, server, url=f"{server.url}{path}{ending}")
        assert len(kind.ask(model, ["text"])) > 0
        if name == "tei embeds":
            assert model.fingerprint.max_tokens == server.max_tokens
        if name == "tei embeds" and path in ("", "/v1"):
            assert {request.path for request in server.requests} == {"/info", "/v1/embeddings"}


@every(OPENAI)
def test_without_a_model_it_takes_what_is_served(serve: Serve, kind: Kind) -> None:
    _, embedder = serve(kind, {"model": "nomic-embed-text"}, model=None)
    assert embedder.fingerprint.model == "nomic-embed-text"
    assert embedder.fingerprint.query_prefix


def test_a_server_that_names_its_model_by_a_path_is_believed(serve: Serve) -> None:
    server, embedder = serve(TEI)
    server.model = "/data/model"
    assert embedder.fingerprint.model == MODEL


@pytest.mark.parametrize("status", [501, 503])
def test_without_a_model_a_server_must_tell_which_it_serves(serve: Serve, status: int) -> None:
    server, nameless = serve(TEI, model=None, patience=ONCE)
    server.fail_next(status, path="/info")
    with refused(ModelError):
        nameless.embed(["text"])


def test_a_named_model_is_used_where_the_server_does_not_tell(serve: Serve) -> None:
    server, embedder = serve(VLLM, patience=ONCE)
    server.fail_next(500, path="/info")
    assert embedder.fingerprint.max_tokens == 64, "as /v1/models says"
    name = "nomic-embed-text"
    server, embedder = serve(VLLM, {"model": name}, model=name, patience=ONCE)
    for path in ("/info", "/v1/models"):
        server.fail_next(502, path=path)
    assert (embedder.fingerprint.model, embedder.fingerprint.max_tokens) == (name, 2048), "as is known of the model"


def test_tokens_are_counted_by_tei_and_estimated_elsewhere(serve: Serve) -> None:
    texts = ["two words", "three more words", LONG]
    server, tei = serve(TEI, {"max_batch": 2}, batch_size=2)
    assert tei.count_tokens(texts) == [4, 5, 102]
    assert [len(body["inputs"]) for body in server.asked("/tokenize")] == [2, 1]
    assert serve(VLLM)[1].count_tokens(texts) == [5, 6, 127], "four bytes a token, and two"
    server.fail_next(404, path="/tokenize")
    assert tei.count_tokens(texts) == [5, 6, 127], "a proxy that only lets embeddings pass"


def test_only_what_may_be_cut_is_counted(serve: Serve) -> None:
    server, tei = serve(TEI, {"auto_truncate": True})
    tei.embed(["short", "word " * 60, LONG])
    assert all(text.startswith("word") for body in server.asked("/tokenize") for text in body["inputs"])


@every(OPENAI)
def test_another_model_behind_the_same_name_is_told_by_its_probe(serve: Serve, kind: Kind) -> None:
    server, first = serve(kind)
    recorded = first.fingerprint
    server.noise = 0.005
    same = serve.model(kind, server).fingerprint
    check_same_embedder(recorded, same)
    assert recorded == same
    server.seed = "other"
    with refused(EmbeddingMismatchError):
        check_same_embedder(recorded, serve.model(kind, server).fingerprint)


def test_a_store_refuses_another_model_behind_the_same_name(tmp_path: Path) -> None:
    with OpenAIServer(MODEL) as server:
        settings = {"embed_model": f"openai:{MODEL}", "embed_url": server.url}
        with open_workspace(tmp_path, **settings) as workspace:
            workspace.library.create_collection("tea")
            workspace.library.ingest_text("Green tea is steeped.", "tea.txt", "tea")
        with open_workspace(tmp_path, **settings) as workspace:
            assert workspace.search("tea", "naive").total_results == 1
        server.seed = "other"
        with open_workspace(tmp_path, **settings) as workspace, refused(EmbeddingMismatchError):
            workspace.search("tea", "naive")


def test_a_reranker_names_its_model(serve: Serve) -> None:
    kind = RERANKERS["openai ranks"]
    server, reranker = serve(kind)
    kind.ask(reranker, TEXTS[:2])
    assert [body["model"] for body in server.asked(kind.path)] == [MODEL]


def test_official_client_reads_every_answer() -> None:
    with (
        OpenAIServer(MODEL, accent="vllm") as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client,
    ):
        whole = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hello"}])
        assert whole.choices[0].message.content == "You said: hello"
        assert whole.usage is not None
        assert whole.usage.total_tokens > 0
        chunks = list(
            client.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": "hello"}],
                stream=True,
                stream_options={"include_usage": True},
            )
        )
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "You said: hello"
        assert chunks[-1].usage is not None
        vectors = client.embeddings.create(model=MODEL, input=["tea", "rain"], dimensions=16)  # asks for base64
        assert [len(row.embedding) for row in vectors.data] == [16, 16]
        assert [model.id for model in client.models.list()] == [MODEL]
        with pytest.raises(openai.BadRequestError):
            client.embeddings.create(model=MODEL, input=[])
        with pytest.raises(openai.NotFoundError):
            client.embeddings.create(model="absent", input=["tea"])
