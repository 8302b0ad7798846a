"""Requests whose bodies are late, cut, or hold text that cannot be stored."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from ragistry import Workspace
from ragistry.http import guard
from tests.serving import served

HALF = (
    b"POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    b'{"query":'
)


def test_incomplete_bodies_occupy_no_slot(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 60.0)
    with served(workspace) as url, ExitStack() as stack:
        address = httpx.URL(url)
        for _ in range(90):  # more than run and wait at the same time
            connection = stack.enter_context(socket.create_connection((address.host, address.port)))
            connection.sendall(HALF)
        answer = httpx.post(f"{url}/v1/search", json={"query": "tea"}, timeout=60)
    assert answer.status_code == 200


def test_slow_body_is_refused(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.2)
    with served(workspace) as url:
        address = httpx.URL(url)
        with socket.create_connection((address.host, address.port), timeout=60) as connection:
            connection.sendall(HALF)
            assert connection.recv(1_000).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/search", {"query": "tea \ud800"}),
        ("/v1/ingest/texts", {"collection": "tea", "sources": [{"source": "a.txt", "text": "tea \udfff"}]}),
        ("/v1/collections", {"name": "new", "description": "\ud800"}),
    ],
)
def test_unpaired_surrogate_is_refused(workspace: Workspace, path: str, body: dict[str, object]) -> None:
    with served(workspace) as url:
        content = json.dumps(body).encode()
        answer = httpx.post(url + path, content=content, headers={"Content-Type": "application/json"}, timeout=60)
    assert answer.status_code == 422
    jobs = Path(workspace.path_of(workspace.settings.data_dir)) / "jobs"
    assert not [folder for folder in jobs.iterdir() if folder.is_dir()]


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON", "application/search+json", "text/plain", None]
)
@pytest.mark.parametrize(
    "body",
    [
        b'{"query": "tea", "where": {"\\ud800": 1}}',
        b'{"query": "tea", "where": {"\xed\xa0\x80": 1}}',
        '{"query": "tea", "where": {"\\ud800": 1}}'.encode("utf-16"),
        '{"query": "tea", "where": {"\\ud800": 1}}'.encode("utf-32"),
    ],
)
def test_unpaired_surrogate_is_refused_in_all_encodings(client: TestClient, body: bytes, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    assert client.post("/v1/search", content=body, headers=headers).status_code == 422


@pytest.mark.parametrize("header", ["Host", "Origin"])
@pytest.mark.parametrize("value", ["[", "http://[", "[a]b"])
def test_malformed_host_and_origin_are_refused(client: TestClient, header: str, value: str) -> None:
    assert client.post("/v1/search", json={"query": "tea"}, headers={header: value}).status_code == 403
