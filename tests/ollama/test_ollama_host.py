"""OLLAMA_HOST in all its spellings, as the official client reads them, and those that it reads wrongly; and the key."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ollama._client import _parse_host as official_parse_host

from ragistry.errors import ConfigError
from ragistry.ollama.client import OllamaClient, parse_host, resolve_host
from ragistry.ollama.generator import OllamaGenerator
from ragistry.testing.ollama_server import OllamaServer
from tests.messages import refused
from tests.ollama.conftest import TALKER

SPELLINGS = {
    None: "http://127.0.0.1:11434",
    "": "http://127.0.0.1:11434",
    "gpu.example": "http://gpu.example:11434",
    "gpu.example:8000": "http://gpu.example:8000",
    ":8000": "http://127.0.0.1:8000",
    "10.0.0.7": "http://10.0.0.7:11434",
    "http://gpu.example": "http://gpu.example:80",
    "https://gpu.example": "https://gpu.example:443",
    "https://gpu.example:8443/": "https://gpu.example:8443",
    "gpu.example/ollama/": "http://gpu.example:11434/ollama",
    "[::1]:8000": "http://[::1]:8000",
    "[fe80::1]": "http://[fe80::1]:11434",
}
BETTER_THAN_THE_OFFICIAL_CLIENT = {
    "gpu.example/api/chat": "http://gpu.example:11434",
    "http://gpu.example:11434/api/embed/": "http://gpu.example:11434",
    "http://gpu.example:11434/v1": "http://gpu.example:11434",
    "http://gpu.example:11434/v1/chat/completions": "http://gpu.example:11434",
    "https://gpu.example/ollama/api": "https://gpu.example:443/ollama",
    "0.0.0.0": "http://127.0.0.1:11434",
    "0.0.0.0:8000": "http://127.0.0.1:8000",
    "http://[::]:8000": "http://[::1]:8000",
    "::1": "http://[::1]:11434",
    ' "gpu.example:8000" ': "http://gpu.example:8000",
    "me:p%2Fw@gpu.example": "http://me:p%2Fw@gpu.example:11434",
}
ADDRESSES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "http://", "https://"]),
    st.sampled_from(["localhost", "10.0.0.7", "gpu.example", "GPU.Example", "[::1]", "[0001:002::4]"]),
    st.one_of(st.just(""), st.integers(1, 65_535).map(":{}".format)),
    st.sampled_from(["", "/", "/path", "/path/", "/a/b"]),
)


@pytest.mark.parametrize(("written", "read"), [*SPELLINGS.items(), *BETTER_THAN_THE_OFFICIAL_CLIENT.items()])
def test_every_spelling_gives_one_address(written: str | None, read: str) -> None:
    assert parse_host(written) == read
    assert written in BETTER_THAN_THE_OFFICIAL_CLIENT or official_parse_host(written) == read


@settings(max_examples=100, deadline=None)
@given(ADDRESSES)
def test_any_address_is_read_as_the_official_client_reads_it_and_once_read_as_itself(written: str) -> None:
    read = parse_host(written)
    assert read == official_parse_host(written) == parse_host(read)


@pytest.mark.parametrize("written", ["ftp://gpu.example", "gpu.example:port", "gpu.example:70000", "http://[::1"])
def test_an_address_that_nothing_can_be_called_at_is_refused(written: str) -> None:
    with refused(ConfigError) as raised:
        parse_host(written)
    assert repr(written) in str(raised.value)


def test_the_argument_comes_before_the_variable_and_the_variable_before_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert resolve_host() == "http://127.0.0.1:11434"
    monkeypatch.setenv("OLLAMA_HOST", "gpu.example:8000")
    assert resolve_host() == "http://gpu.example:8000"
    assert resolve_host("other.example") == "http://other.example:11434"


def test_a_client_uses_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "https://gpu.example")
    with OllamaClient() as client:
        assert client.host == "https://gpu.example:443"


def test_a_generator_uses_the_host_of_the_workspace_and_then_the_variable(
    server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address, variable in (({"ollama_host": server.url}, "127.0.0.1:9"), ({}, server.url)):
        monkeypatch.setenv("OLLAMA_HOST", variable)
        with closing(OllamaGenerator(TALKER, **address)) as generator:
            assert generator.generate("hello") == "You said: hello"


def test_the_key_that_is_given_comes_before_that_of_the_environment(
    server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "from-the-environment")
    for key, expected in ((None, "Bearer from-the-environment"), ("mine", "Bearer mine")):
        with OllamaClient(server.url, api_key=key) as client:
            client.version()
        assert server.requests[-1].headers["Authorization"] == expected
