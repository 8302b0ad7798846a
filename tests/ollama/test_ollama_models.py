"""What a server tells of its models."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry.models.http import RefusedError
from ragistry.ollama.client import OllamaClient, OllamaModel, full_name
from ragistry.testing.ollama_server import OllamaServer
from tests.messages import refused
from tests.models.servers import Fixed
from tests.ollama.conftest import EMBEDDER


def test_models_are_listed_with_their_digests(server: OllamaServer, client: OllamaClient) -> None:
    models = client.list_models()
    assert [model.name for model in models] == server.models
    assert models[0].digest == server.digest(server.models[0])
    assert models[0].size > 0


@pytest.mark.parametrize("name", ["nomic-embed-text", "nomic-embed-text:latest", "Nomic-Embed-Text"])
def test_a_digest_is_found_by_any_spelling_of_the_name(server: OllamaServer, client: OllamaClient, name: str) -> None:
    assert client.digest(name) == server.digest("nomic-embed-text:latest")


def test_a_model_that_is_not_there_has_no_digest(client: OllamaClient) -> None:
    assert client.digest("absent") == ""


def test_the_window_is_asked_once_and_options_change_it(server: OllamaServer, client: OllamaClient) -> None:
    assert client.window(EMBEDDER) == 64
    assert client.window(EMBEDDER, {"num_ctx": 16}) == 16
    assert len(server.asked("/api/show")) == 1


@pytest.mark.parametrize(
    ("shown", "options", "window"),
    [
        ({}, {}, 0),
        ({"model_info": None, "parameters": None}, {}, 0),
        ({"model_info": {"bert.context_length": 512}}, {}, 512),
        ({"model_info": {"bert.context_length": 512}, "parameters": "num_ctx   256\nstop   x"}, {}, 256),
        ({"model_info": {"bert.context_length": 2048}, "parameters": "num_ctx   8192"}, {}, 2048),
        ({"model_info": {"bert.context_length": 512}, "parameters": "num_ctx   256"}, {"num_ctx": 400}, 400),
        ({"model_info": {"bert.context_length": 512}}, {"num_ctx": 4096}, 512),
    ],
)
def test_the_window_is_the_smallest_limit(shown: dict[str, Any], options: dict[str, Any], window: int) -> None:
    with Fixed(shown) as server, OllamaClient(server.url) as client:
        assert client.window("model", options) == window


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("all-minilm", "all-minilm:latest"),
        ("all-minilm:33m", "all-minilm:33m"),
        ("Owner/Model", "owner/model:latest"),
        ("host:5000/owner/model", "host:5000/owner/model:latest"),
    ],
)
def test_a_name_without_a_tag_is_the_latest(name: str, full: str) -> None:
    assert full_name(name) == full


def test_older_servers_give_a_name_and_no_model() -> None:
    with (
        Fixed({"models": [{"name": "old:latest", "digest": "sha256:abc"}]}) as server,
        OllamaClient(server.url) as client,
    ):
        assert client.list_models() == [OllamaModel("old:latest", "abc", 0)]


def test_an_unknown_path_is_no_missing_model(server: OllamaServer) -> None:
    with OllamaClient(f"{server.url}/proxied") as client, refused(RefusedError):
        client.embed("text", EMBEDDER)
