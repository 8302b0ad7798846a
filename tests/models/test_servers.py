"""What every client of a model server does, whatever the server: its failures, its address, its key, its model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from threading import Thread
from threading import enumerate as enumerate_threads
from typing import Any
from unittest.mock import patch

import httpx
import numpy as np
import pytest
import stamina
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry import open_workspace
from ragistry.errors import ModelConnectionError, ModelError, ModelNotFoundError, RagistryError, ServerBusyError
from ragistry.models import http, openai, tei
from ragistry.models.http import JsonClient, Patience, retry_after, translated
from ragistry.ollama import embedder as ollama_embedder
from ragistry.ollama import generator as ollama_generator
from ragistry.ollama.client import OllamaClient, OllamaModel
from ragistry.server.gate import Gate, ServerLimits
from ragistry.testing.loopback import Failure, LoopbackServer
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.ports import refused_port
from ragistry.testing.wire import Reply, Request
from tests.conftest import Corpus
from tests.messages import check_message, refused
from tests.models.servers import (
    EMBEDDERS,
    GENERATORS,
    KINDS,
    MODEL,
    RERANKERS,
    STREAMS,
    Fixed,
    Kind,
    Serve,
    check_wording,
    every,
)

LOADING = {name: kind for name, kind in KINDS.items() if name not in ("vllm embeds", "llama.cpp embeds")}
TEXT = ["text"]
FINAL = {
    401: "set a valid API key", 403: "set a valid API key", 404: "answered 404|ollama pull", 405: "answered 405",
    409: "answered 409", 418: "answered 418", "garbage": "not in its protocol", "deep": "not in its protocol",
    "endless": "sent more than",
}  # fmt: skip
"""What the message of a failure says that no other attempt would change."""
FLAWS = {"short": "for 2 embeddings", "nan": "NaN", "zeros": "zeros", "booleans": "not numbers"}
CELLS = [
    *((name, failure, said) for name in EMBEDDERS | GENERATORS | RERANKERS for failure, said in FINAL.items()),
    *((name, failure, said) for name in EMBEDDERS for failure, said in FLAWS.items()),
    *((name, "short", "for 2 scores") for name in RERANKERS),
]


@pytest.fixture
def waits() -> Iterator[list[float]]:
    """The seconds before each further attempt, which nothing waits for."""
    seconds: list[float] = []
    stamina.instrumentation.set_on_retry_hooks([lambda details: seconds.append(details.wait_for)])
    with patch("time.sleep"):
        yield seconds
    stamina.instrumentation.set_on_retry_hooks(None)


@every(KINDS)
def test_a_server_that_is_not_running_is_reported_at_once_with_the_remedy(
    serve: Serve, kind: Kind, waits: list[float]
) -> None:
    server, _ = serve(kind)
    url = f"http://127.0.0.1:{refused_port()}"
    with pytest.raises(ConnectionError, match=f"at {url} cannot be reached.*; start it") as raised:
        kind.ask(serve.model(kind, server, url=url), TEXT)
    assert isinstance(raised.value, ModelConnectionError)
    check_wording(kind, raised.value)
    assert ("`ollama serve`, or set OLLAMA_HOST" in str(raised.value)) == isinstance(server, OllamaServer)
    assert waits == []


@pytest.mark.parametrize("failure", [429, 500, 502, 503, 504, "drop", "cut"])
@every(EMBEDDERS | GENERATORS | RERANKERS)
def test_passing_failures_are_retried_at_most_three_times(serve: Serve, kind: Kind, failure: Failure) -> None:
    server, model = serve(kind)
    server.fail_next(failure, times=3, path=kind.path)
    assert len(kind.ask(model, TEXT)) > 0
    assert kind.sent(server) == [TEXT] * 4
    server.fail_next(failure, times=4, path=kind.path)
    said = "overloaded or broken" if isinstance(failure, int) else "aborted its answer"
    with pytest.raises(ModelError, match=said) as raised:
        kind.ask(model, TEXT)
    check_wording(kind, raised.value)
    assert kind.sent(server) == [TEXT] * 8


@pytest.mark.parametrize("failure", [*FINAL, 503, "drop", "cut"])
@every(STREAMS)
def test_a_stream_is_asked_for_once_and_reports_its_failure(serve: Serve, kind: Kind, failure: Failure) -> None:
    server, model = serve(kind)
    assert kind.ask(model, TEXT) == "You said: text"
    server.fail_next(failure)
    said = FINAL.get(failure, "overloaded" if failure == 503 else "aborted its answer")
    with pytest.raises(ModelError, match=f"{said}|aborted its answer"):
        kind.ask(model, TEXT)
    assert kind.sent(server) == [TEXT] * 2


@pytest.mark.parametrize(("name", "failure", "said"), CELLS)
def test_other_failures_are_final_and_shown(serve: Serve, name: str, failure: Failure, said: str) -> None:
    kind = KINDS[name]
    server, model = serve(kind)
    kind.ask(model, TEXT)
    server.fail_next(failure, path=kind.path)
    with pytest.raises(ModelError, match=said) as raised:
        kind.ask(model, ["one", "two"])
    check_wording(kind, raised.value)
    assert len(str(raised.value)) < 500
    assert len(kind.sent(server)) == 2


@pytest.mark.parametrize("failure", ["hang", "drip"])
@every(KINDS)
def test_first_request_is_not_sent_again_after_a_timeout(serve: Serve, kind: Kind, failure: Failure) -> None:
    limit = {"load_timeout" if kind in EMBEDDERS.values() else "timeout": 0.1}
    server, model = serve(kind, **limit)
    server.fail_next(failure, times=9, path=kind.path)
    with pytest.raises(ModelConnectionError, match="did not answer in time.*set a longer timeout"):
        kind.ask(model, TEXT)
    assert kind.sent(server) == [TEXT]


@pytest.mark.parametrize("failure", ["hang", "drip"])
def test_a_later_request_is_sent_again_after_a_timeout(failure: Failure) -> None:
    with OllamaServer() as server, closing(JsonClient(server.url, Patience(timeout=0.1, attempts=2))) as client:
        server.fail_next(failure, times=9)
        with refused(ModelConnectionError):
            client.get("/api/version", dict)
        assert len(server.requests) == 2


@pytest.mark.parametrize("target", ["{other}/v1/x", "//localhost:{port}/here", "https://127.0.0.1:1/", "file:///etc/x"])
@every(KINDS)
def test_texts_do_not_follow_a_redirect_to_another_server(kind: Kind, target: str) -> None:
    class Redirecting(LoopbackServer):
        def answer(self, request: Request, flaw: Failure | None) -> Reply:
            return Reply(307, headers={"Location": self.target})

    with Redirecting() as server, kind.serve() as other, kind.at(server) as model:
        server.target = target.format(other=other.url, port=server.url.rpartition(":")[2])
        with pytest.raises(ModelError, match=f"at {server.url} redirects to another server") as raised:
            kind.ask(model, ["private"])
        check_wording(kind, raised.value)
        assert other.requests == []


def test_a_redirect_to_another_path_of_the_server_is_followed() -> None:
    class Moved(OllamaServer):
        def answer(self, request: Request, flaw: Failure | None) -> Reply:
            if request.path.startswith("/moved"):
                return super().answer(replace(request, path=request.path.removeprefix("/moved")), flaw)
            return Reply(307, headers={"Location": f"/moved{request.path}"})

    kind = KINDS["ollama streams"]
    with Moved([f"{MODEL}:latest"]) as server, kind.at(server) as model:
        assert kind.ask(model, TEXT) == "You said: text"


@every(KINDS)
def test_a_key_is_sent_and_never_shown(serve: Serve, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    server, model = serve(kind, api_key="sk-secret")
    kind.ask(model, TEXT)
    assert {request.headers["Authorization"] for request in server.requests} == {"Bearer sk-secret"}
    monkeypatch.setattr(server, "refusal", lambda *_: {"error": "bad key sk-secret\n" + "x" * 100_000})
    server.fail_next(401)
    with pytest.raises(ModelError, match="bad key … x.*; set a valid API key") as raised:
        kind.ask(model, TEXT)
    assert len(str(raised.value)) < 500


@every(KINDS)
def test_a_login_in_the_address_is_sent_and_not_shown(serve: Serve, kind: Kind) -> None:
    server, _ = serve(kind)
    model = serve.model(kind, server, url=server.url.replace("//", "//me:p%2Fw@"))
    kind.ask(model, TEXT)
    assert {request.headers["Authorization"] for request in server.requests} == {"Basic bWU6cC93"}
    server.fail_next("garbage", path=kind.path)
    with pytest.raises(ModelError, match=f" at {server.url} "):
        kind.ask(model, TEXT)


@every(KINDS)
def test_a_proxy_of_the_environment_does_not_stand_before_this_machine(
    serve: Serve, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{refused_port()}")
    monkeypatch.setenv("NO_PROXY", "")
    assert len(kind.ask(serve(kind)[1], TEXT)) > 0


@every({name: kind for name, kind in KINDS.items() if name != "tei ranks"})  # its requests name no model
def test_a_model_that_the_server_lacks_is_an_error_with_what_it_has(serve: Serve, kind: Kind) -> None:
    server, model = serve(kind, model="absent")
    if kind is KINDS["openai ranks"] or kind is KINDS["llama.cpp embeds"]:  # these servers answer for any name
        server.fail_next(404, times=2, path=kind.path)
        server.refusal = lambda *_: {"error": "no such model"}
    said = f"no model 'absent'.*it has: {MODEL}|serves '{MODEL}', not 'absent'"
    with pytest.raises(ModelNotFoundError, match=said) as raised:
        kind.ask(model, TEXT)
    check_wording(kind, raised.value)
    assert len(kind.sent(server)) <= 1
    if kind in EMBEDDERS.values():
        with pytest.raises(ModelNotFoundError, match=said):
            _ = model.fingerprint


@pytest.mark.parametrize(("asked", "waited"), [(7, 7.0), (3600, 30.0)])
def test_retry_after_is_waited_up_to_the_longest_wait(waits: list[float], asked: int, waited: float) -> None:
    with OllamaServer() as server, closing(JsonClient(server.url)) as client:
        server.fail_next(503, retry_after=asked)
        assert client.get("/api/version", dict) == {"version": server.version}
    assert waits == [waited]


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7.0), ("0", 0.0), ("", None), ("soon", None), ("-3", None), ("1.5", None)]
)
def test_retry_after_in_seconds(value: str, seconds: float | None) -> None:
    assert retry_after({"Retry-After": value}) == seconds


def test_retry_after_as_a_date() -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert retry_after({"Retry-After": in_a_minute}) == pytest.approx(60, abs=2)
    assert retry_after({"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}) == 0.0


def test_every_public_error_of_httpx_is_translated() -> None:
    answer = {"request": httpx.Request("GET", "http://x"), "response": httpx.Response(400)}
    for name in httpx.__all__:
        kind = getattr(httpx, name)
        if not isinstance(kind, type) or not issubclass(kind, Exception):
            continue
        own = issubclass(kind, httpx.StreamError) and kind is not httpx.StreamError
        error = kind() if own else kind("it failed", **(answer if kind is httpx.HTTPStatusError else {}))
        with (
            pytest.raises(ModelError, match="^The server .*(; start it|set a longer timeout|check its log)$") as raised,
            translated("The server", "start it"),
        ):
            raise error
        assert raised.value.__cause__ is error


# a model that takes time to load: the first request is sent once and waits; later ones have short limits


class Release(logging.Handler):
    """Lets a server finish loading its model when the client reports that it waits."""

    def __init__(self, server: LoopbackServer) -> None:
        super().__init__()
        self.server = server
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self.server.loaded.set()


@pytest.fixture
def loading(serve: Serve, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any, Release]]:
    """A server that loads its model, the model, and what the client reports at once; later requests end soon."""
    monkeypatch.setattr(http, "SLOW", 0.0)
    for name in ("QUERY_SECONDS", "ANSWER_SECONDS", "RERANK_SECONDS"):
        for module in (openai, ollama_embedder, ollama_generator, tei):
            monkeypatch.setattr(module, name, 1.0, raising=False)
    server, model = serve(kind)
    server.fail_next("load", path=kind.path)
    handler = Release(server)
    logging.getLogger(http.__name__).addHandler(handler)
    yield server, model, handler
    logging.getLogger(http.__name__).removeHandler(handler)


@every(LOADING)
def test_first_request_is_sent_once_and_waits_and_later_ones_have_short_limits(
    kind: Kind, loading: tuple[Any, Any, Release]
) -> None:
    server, model, handler = loading
    assert len(kind.ask(model, TEXT)) > 0
    assert kind.sent(server) == [TEXT]
    [line] = handler.lines
    assert "up to 300 seconds" in line
    if kind is KINDS["openai answers"]:
        check_message(line, MODEL)
    server.fail_next("hang", times=9, path=kind.path)
    with pytest.raises(ModelError):
        kind.ask(model, TEXT)


@every(LOADING)
def test_a_request_that_waits_ends_with_its_client(kind: Kind, loading: tuple[Any, Any, Release]) -> None:
    server, model, handler = loading
    handler.emit = lambda record: model.close()  # type: ignore[method-assign]
    with pytest.raises(ModelConnectionError, match="the client was closed; open it again"):
        kind.ask(model, TEXT)
    server.loaded.set()
    for thread in [one for one in enumerate_threads() if one.name == "load"]:
        thread.join()


@every(LOADING)
def test_requests_at_the_same_time_wait_for_the_one_that_loads(kind: Kind, loading: tuple[Any, Any, Release]) -> None:
    _, model, handler = loading
    answers: list[Any] = []
    threads = [Thread(target=lambda: answers.append(kind.ask(model, TEXT))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 3
    assert len(handler.lines) == 1, "one request loads the model"


@every(LOADING)
def test_request_stays_open_when_a_search_of_the_server_ends(serve: Serve, kind: Kind) -> None:
    server, model = serve(kind)
    server.fail_next("load", path=kind.path)

    async def search(seconds: float) -> Any:
        return await Gate(ServerLimits(timeout=seconds)).run(asyncio.to_thread(kind.ask, model, TEXT))

    async def searches() -> None:
        with pytest.raises(ServerBusyError):
            await search(0.1)
        server.loaded.set()
        assert len(await search(60)) > 0

    asyncio.run(searches())
    assert kind.sent(server) == [TEXT] * 2, "one for each search"


def test_a_server_that_refuses_while_it_loads_is_asked_until_it_has(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LOADING_PAUSE", 0.001)
    kind = KINDS["llama.cpp embeds"]
    server, model = serve(kind)
    monkeypatch.setattr(server, "refusal", lambda *_: {"error": {"code": 503, "message": "Loading model"}})
    server.fail_next(503, times=12, path=kind.path)
    assert len(kind.ask(model, TEXT)) == 1


def test_timeout_of_documents_yaml_limits_the_first_request(corpus: Corpus) -> None:
    with OllamaServer(["small:latest"]) as server:
        text = 'embed_model: "ollama:small"\ntimeout: 0.2\ncollections: []\n'
        root = corpus({"documents.yaml": text}, folder="config").parent
        server.fail_next("hang", times=9, path="/api/embed")
        with open_workspace(root, ollama_host=server.url) as workspace, refused(ModelConnectionError):
            workspace.embedder.embed(["text"])
        assert len(server.asked("/api/embed")) == 1


# whatever JSON a server answers, a client gives what it promises or raises an error of ours

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
Check = Callable[[Any], bool]
FITS: dict[str, Check] = {name: lambda rows: np.allclose(np.linalg.norm(rows, axis=1), 1) for name in EMBEDDERS}
FITS |= {name: lambda text: isinstance(text, str) for name in GENERATORS | STREAMS}
FITS |= {name: lambda scores: [type(score) for score in scores] == [float] for name in RERANKERS}
OLLAMA: dict[str, tuple[Callable[[OllamaClient], Any], Check]] = {
    "embed": (lambda c: c.embed("text", "m"), lambda row: np.isfinite(row).all() and {*map(type, row)} == {float}),
    "list": (lambda c: c.list_models(), lambda rows: all(isinstance(row, OllamaModel) for row in rows)),
    "digest": (lambda c: c.digest("m"), lambda digest: isinstance(digest, str)),
    "version": (lambda c: c.version(), lambda version: isinstance(version, str)),
    "window": (lambda c: c.window("m"), lambda window: isinstance(window, int)),
}


@pytest.fixture(scope="module")
def fixed() -> Iterator[Fixed]:
    with Fixed() as running:
        yield running


def answers_or_refuses(ask: Callable[[], Any], fits: Check) -> None:
    try:
        answer = ask()
    except RagistryError:
        return
    assert fits(answer)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=60, deadline=None)
@given(body=JSON)
def test_a_server_may_answer_anything(fixed: Fixed, name: str, body: Any) -> None:
    fixed.body = body
    with KINDS[name].at(fixed) as model:
        answers_or_refuses(lambda: KINDS[name].ask(model, ["word " * 50]), FITS[name])


@pytest.mark.parametrize("call", OLLAMA)
@settings(max_examples=60, deadline=None)
@given(body=JSON)
def test_ollama_may_tell_anything(fixed: Fixed, call: str, body: Any) -> None:
    fixed.body = body
    ask, fits = OLLAMA[call]
    with OllamaClient(fixed.url) as client:
        answers_or_refuses(lambda: ask(client), fits)
