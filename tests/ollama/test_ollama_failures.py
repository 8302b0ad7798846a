"""Each way in which a server can fail: what is tried again, how often, after how long, and what is said in the end."""

from __future__ import annotations

import socket
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from ragistry.errors import (
    EmbeddingGenerationError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
    RagistryError,
)
from ragistry.models.http import JsonClient, RefusedError, retry_after, translated
from ragistry.ollama.client import OllamaClient
from ragistry.testing.ollama_server import OllamaServer
from tests.ollama.conftest import EMBEDDER

HTTPX_ERRORS = [
    error for name in httpx.__all__ if isinstance(error := getattr(httpx, name), type) and issubclass(error, Exception)
]


def made(error: type[Exception]) -> Exception:
    if issubclass(error, httpx.HTTPStatusError):
        return error("refused", request=httpx.Request("GET", "http://x"), response=httpx.Response(400))
    if issubclass(error, httpx.StreamError) and error is not httpx.StreamError:
        return error()
    return error("it failed")


@pytest.mark.parametrize("error", HTTPX_ERRORS, ids=lambda error: error.__name__)
def test_every_public_error_of_httpx_is_translated(error: type[Exception]) -> None:
    with pytest.raises(ModelError, match="The server") as raised, translated("The server", "start it"):
        raise made(error)
    assert isinstance(raised.value.__cause__, error)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_a_server_that_is_not_running_is_reported_at_once_with_the_remedy() -> None:
    port = free_port()
    with OllamaClient(f"127.0.0.1:{port}", backoff=5) as client:
        start = time.perf_counter()
        with pytest.raises(ModelConnectionError, match="ollama serve") as raised:
            client.embed("text", EMBEDDER)
    assert time.perf_counter() - start < 2
    assert f"http://127.0.0.1:{port}" in str(raised.value)
    assert isinstance(raised.value, ConnectionError)


@pytest.mark.parametrize("failure", [429, 500, 502, 503, 504, "drop", "cut"])
def test_a_passing_failure_is_tried_again(server: OllamaServer, client: OllamaClient, failure: str | int) -> None:
    server.fail_next(failure, times=3)
    assert len(client.embed("text", EMBEDDER)) == server.dimension
    assert len(server.asked("/api/embed")) == 4


@pytest.mark.parametrize(
    ("failure", "said"), [(429, "429"), (503, "server busy"), (500, "runner process"), ("drop", "broke off")]
)
def test_nothing_is_tried_more_than_four_times(
    server: OllamaServer, client: OllamaClient, failure: str | int, said: str
) -> None:
    server.fail_next(failure, times=10)
    with pytest.raises(ModelError, match=said):
        client.embed("text", EMBEDDER)
    assert len(server.asked("/api/embed")) == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 418])
def test_other_refusals_are_final(server: OllamaServer, client: OllamaClient, status: int) -> None:
    server.fail_next(status, path="/api/embed")
    with pytest.raises(ModelError):
        client.embed("text", EMBEDDER)
    assert len(server.asked("/api/embed")) == 1


def test_a_server_that_hangs_is_given_up_after_four_time_outs(server: OllamaServer) -> None:
    server.fail_next("hang", times=10)
    start = time.perf_counter()
    with (
        OllamaClient(server.url, timeout=0.1, backoff=0.001) as client,
        pytest.raises(ModelConnectionError, match=r"no answer in time.*ReadTimeout"),
    ):
        client.embed("text", EMBEDDER)
    assert 0.3 <= time.perf_counter() - start < 5
    assert len(server.asked("/api/embed")) == 4


def test_garbage_is_shown_and_not_asked_for_again(server: OllamaServer, client: OllamaClient) -> None:
    server.fail_next("garbage")
    with pytest.raises(ModelError, match=r"It works!.*is another program there\?"):
        client.embed("text", EMBEDDER)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("flaw", "said"),
    [("short", "asked the server for 2 embeddings"), ("nan", "NaN"), ("zeros", "zeros"), ("booleans", "not numbers")],
)
def test_embed_refuses_answers_that_are_not_vectors(
    server: OllamaServer, client: OllamaClient, flaw: str, said: str
) -> None:
    server.fail_next(flaw, path="/api/embed")
    with pytest.raises(EmbeddingGenerationError, match=said):
        client.embed_batch(["one", "two"], EMBEDDER)


def test_a_missing_model_is_reported_with_those_that_are_there(server: OllamaServer, client: OllamaClient) -> None:
    with pytest.raises(ModelNotFoundError, match="ollama pull mxbai-embed-large") as raised:
        client.embed("text", "mxbai-embed-large")
    assert all(name in str(raised.value) for name in server.models)
    assert len(server.asked("/api/embed")) == 1


@pytest.mark.parametrize("call", ["embed", "generate", "chat", "show"])
def test_every_call_knows_a_missing_model(client: OllamaClient, call: str) -> None:
    calls = {
        "embed": lambda: client.embed("text", "absent"),
        "generate": lambda: client.generate("prompt", "absent"),
        "chat": lambda: client.chat([{"role": "user", "content": "hello"}], "absent"),
        "show": lambda: client.show("absent"),
    }
    with pytest.raises(ModelNotFoundError, match="'absent'"):
        calls[call]()


def test_an_unknown_path_is_no_missing_model(server: OllamaServer) -> None:
    with OllamaClient(f"{server.url}/proxied", backoff=0.001) as client, pytest.raises(RefusedError, match="404"):
        client.embed("text", EMBEDDER)


def test_the_time_of_retry_after_is_waited(server: OllamaServer, client: OllamaClient) -> None:
    server.fail_next(429, retry_after=1)
    start = time.perf_counter()
    client.embed("text", EMBEDDER)
    assert time.perf_counter() - start >= 1


def test_no_wait_passes_the_longest_that_is_allowed(server: OllamaServer) -> None:
    server.fail_next(503, retry_after=3600)
    with closing(JsonClient(server.url, longest_wait=0.05)) as client:
        start = time.perf_counter()
        assert client.get("/api/version", dict) == {"version": server.version}
    assert 0.05 <= time.perf_counter() - start < 5


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7.0), ("0", 0.0), ("", None), ("soon", None), ("-3", None), ("1.5", None)]
)
def test_retry_after_in_seconds(value: str, seconds: float | None) -> None:
    assert retry_after({"Retry-After": value}) == seconds


def test_retry_after_as_a_date() -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert retry_after({"Retry-After": in_a_minute}) == pytest.approx(60, abs=2)
    assert retry_after({"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}) == 0.0


def test_an_answer_without_an_end_is_refused_while_it_arrives(server: OllamaServer, client: OllamaClient) -> None:
    server.fail_next("endless")
    with pytest.raises(ModelError, match=r"sent more than 4,\d{3},\d{3} bytes, more than an answer"):
        client.embed("text", EMBEDDER)
    assert len(server.requests) == 1


def test_an_answer_of_a_byte_at_a_time_ends_with_the_timeout(server: OllamaServer) -> None:
    server.fail_next("drip", times=2)
    start = time.perf_counter()
    with (
        OllamaClient(server.url, timeout=0.3, attempts=2, backoff=0.001) as client,
        pytest.raises(ModelConnectionError, match="no answer in time"),
    ):
        client.version()
    assert 0.6 <= time.perf_counter() - start < 3


def test_an_answer_nested_two_million_deep_is_one_error(server: OllamaServer, client: OllamaClient) -> None:
    server.fail_next("deep")
    with pytest.raises(ModelError, match="not in its protocol") as raised:
        client.embed("text", EMBEDDER)
    assert len(str(raised.value)) < 500


def test_a_reason_is_cut_to_a_line_and_does_not_show_the_key() -> None:
    class Talkative(OllamaServer):
        def refusal(self, status: int) -> object:
            return {"error": "bad key sk-secret\n" + "x" * 100_000}

    with Talkative() as server, OllamaClient(server.url, api_key="sk-secret") as client:
        server.fail_next(401)
        with pytest.raises(ModelError, match="bad key … x+") as raised:
            client.version()
    assert "sk-secret" not in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    "failure", ["drop", "cut", "garbage", "deep", "short", "nan", "zeros", 400, 404, 422, 429, 500, 503]
)
def test_every_failure_is_an_error_of_ours(server: OllamaServer, client: OllamaClient, failure: str | int) -> None:
    server.fail_next(failure, times=4, path="/api/embed")
    with pytest.raises(RagistryError):
        client.embed("text", EMBEDDER)


def test_a_proxy_of_the_environment_does_not_stand_before_this_machine(
    server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("NO_PROXY", "")
    with OllamaClient(server.url) as client:
        assert client.version() == server.version


def test_a_key_is_sent_where_there_is_one(server: OllamaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "from-the-environment")
    for key, expected in ((None, "Bearer from-the-environment"), ("mine", "Bearer mine")):
        with OllamaClient(server.url, api_key=key) as client:
            client.version()
        assert server.requests[-1].headers["Authorization"] == expected


def test_a_login_in_the_address_is_sent_and_not_shown(server: OllamaServer) -> None:
    with OllamaClient(server.url.replace("//", "//me:p%2Fw@")) as client:
        client.version()
        assert client.host == server.url
    assert server.requests[-1].headers["Authorization"] == "Basic bWU6cC93"
