"""Each way in which a server can fail: what is tried again, how often, after how long, and what is said in the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from unittest.mock import patch

import httpx
import pytest
import stamina

from ragistry.errors import (
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
)
from ragistry.models.http import JsonClient, RefusedError, retry_after, translated
from ragistry.ollama.client import OllamaClient
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.ports import refused_port
from tests.messages import refused
from tests.ollama.conftest import EMBEDDER

HTTPX_ERRORS = [
    error for name in httpx.__all__ if isinstance(error := getattr(httpx, name), type) and issubclass(error, Exception)
]


@pytest.fixture
def waits() -> Iterator[list[float]]:
    """The seconds before each further attempt, which nothing waits for."""
    seconds: list[float] = []
    stamina.instrumentation.set_on_retry_hooks([lambda details: seconds.append(details.wait_for)])
    with patch("time.sleep"):
        yield seconds
    stamina.instrumentation.set_on_retry_hooks(None)


def made(error: type[Exception]) -> Exception:
    if issubclass(error, httpx.HTTPStatusError):
        return error("refused", request=httpx.Request("GET", "http://x"), response=httpx.Response(400))
    if issubclass(error, httpx.StreamError) and error is not httpx.StreamError:
        return error()
    return error("it failed")


@pytest.mark.parametrize("error", HTTPX_ERRORS, ids=lambda error: error.__name__)
def test_every_public_error_of_httpx_is_translated(error: type[Exception]) -> None:
    with refused(ModelError) as raised, translated("The server", "start it"):
        raise made(error)
    assert isinstance(raised.value.__cause__, error)


def test_a_server_that_is_not_running_is_reported_at_once_with_the_remedy(waits: list[float]) -> None:
    port = refused_port()
    with (
        OllamaClient(f"127.0.0.1:{port}") as client,
        refused(ModelConnectionError, f"http://127.0.0.1:{port}") as raised,
    ):
        client.embed("text", EMBEDDER)
    assert isinstance(raised.value, ConnectionError)
    assert waits == []


@pytest.mark.parametrize("failure", [429, 500, 502, 503, 504, "drop", "cut"])
def test_passing_failures_are_retried_at_most_three_times(
    server: OllamaServer, client: OllamaClient, failure: str | int
) -> None:
    server.fail_next(failure, times=3)
    assert len(client.embed("text", EMBEDDER)) == server.dimension
    assert len(server.asked("/api/embed")) == 4
    server.fail_next(failure, times=4)
    with refused(ModelError):
        client.embed("text", EMBEDDER)
    assert len(server.asked("/api/embed")) == 8


@pytest.mark.parametrize(
    "failure",
    [401, 403, 404, 405, 409, 418, "garbage", "deep", "endless", "short", "nan", "zeros", "booleans"],
)
def test_other_failures_are_final_and_shown(server: OllamaServer, client: OllamaClient, failure: str | int) -> None:
    server.fail_next(failure, path="/api/embed")
    with refused(ModelError) as raised:
        client.vectors(["one", "two"], EMBEDDER)
    assert len(str(raised.value)) < 500
    assert len(server.asked("/api/embed")) == 1


@pytest.mark.parametrize("failure", ["hang", "drip"])
def test_a_server_that_hangs_or_drips_is_given_up_after_all_attempts(server: OllamaServer, failure: str) -> None:
    server.fail_next(failure, times=10)
    with (
        OllamaClient(server.url, timeout=0.1, attempts=2) as client,
        refused(ModelConnectionError),
    ):
        client.embed("text", EMBEDDER)
    assert len(server.asked("/api/embed")) == 2


def test_a_missing_model_is_reported_with_those_that_are_there(server: OllamaServer, client: OllamaClient) -> None:
    with refused(ModelNotFoundError) as raised:
        client.embed("text", "mxbai-embed-large")
    assert all(name in str(raised.value) for name in server.models)
    assert len(server.asked("/api/embed")) == 1


@pytest.mark.parametrize("call", ["embed", "generate", "chat"])
def test_every_call_knows_a_missing_model(client: OllamaClient, call: str) -> None:
    calls = {
        "embed": lambda: client.embed("text", "absent"),
        "generate": lambda: client.generate("prompt", "absent"),
        "chat": lambda: client.chat([{"role": "user", "content": "hello"}], "absent"),
    }
    with refused(ModelNotFoundError):
        calls[call]()


def test_an_unknown_path_is_no_missing_model(server: OllamaServer) -> None:
    with OllamaClient(f"{server.url}/proxied") as client, refused(RefusedError):
        client.embed("text", EMBEDDER)


@pytest.mark.parametrize(("asked", "waited"), [(7, 7.0), (3600, 30.0)])
def test_retry_after_is_waited_up_to_the_longest_wait(
    server: OllamaServer, waits: list[float], asked: int, waited: float
) -> None:
    server.fail_next(503, retry_after=asked)
    with closing(JsonClient(server.url)) as client:
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


def test_a_reason_is_cut_to_a_line_and_does_not_show_the_key() -> None:
    class Talkative(OllamaServer):
        def refusal(self, status: int) -> object:
            return {"error": "bad key sk-secret\n" + "x" * 100_000}

    with Talkative() as server, OllamaClient(server.url, api_key="sk-secret") as client:
        server.fail_next(401)
        with refused(ModelError) as raised:
            client.version()
    assert "sk-secret" not in str(raised.value)
    assert len(str(raised.value)) < 500


def test_a_proxy_of_the_environment_does_not_stand_before_this_machine(
    server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{refused_port()}")
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
