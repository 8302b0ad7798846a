"""The server over real HTTP, on a free port: who is let in, and that it serves as over standard input."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from ragistry import Workspace
from ragistry.cli.listening import listening_socket
from ragistry.errors import ConfigError
from ragistry.mcp.http import check_exposure, http_server
from ragistry.tools.search_library import SearchLibraryTool
from tests.mcp.conftest import MODES, conversation, text_of
from tests.messages import check_message, refused

TOKEN = "0123456789abcdef0123456789abcdef"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@contextmanager
def serving(workspace: Workspace, token: str | None = None) -> Iterator[str]:
    """The address of a server in a thread of its own."""
    bound = listening_socket("127.0.0.1", 0)
    port = bound.getsockname()[1]
    server = http_server(SearchLibraryTool(workspace.library), "127.0.0.1", port, token=token)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        thread.join(timeout=60)
        bound.close()
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def url(served: Workspace) -> Iterator[str]:
    with serving(served) as address:
        yield address


def test_several_clients_are_served_at_once(url: str) -> None:
    async def one(mode: str) -> None:
        async with Client(url, mode=mode) as client:
            await conversation(client)

    async def run() -> None:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for number in range(6):
                    group.start_soon(one, MODES[number % 2])

    anyio.run(run)


def status(url: str, **headers: str) -> int:
    return httpx.post(url, json=PING, headers=ACCEPT | headers, timeout=60).status_code


def test_foreign_host_and_origin_are_refused(url: str) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example"):
        assert status(url, Host=host) == 421
    for origin in ("https://evil.example", "null"):
        assert status(url, Origin=origin) == 403
    assert status(url, Origin=url.removesuffix("/mcp")) not in (401, 403, 421)


def test_large_body_is_refused(url: str) -> None:
    whole = httpx.post(url, content=bytes(16_000_001), headers=ACCEPT, timeout=60)
    assert whole.status_code == 413
    check_message(whole.text, "16 MB")
    assert status(url) != 413


def test_requests_without_the_token_are_refused(served: Workspace) -> None:
    with serving(served, TOKEN) as url:
        for given in (
            {},
            {"Authorization": f"Bearer {TOKEN}0"},
            {"Authorization": TOKEN},
            {"Authorization": "Bearer x"},
            {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": f"Bearer{TOKEN}"},
        ):
            answer = httpx.post(url, json=PING, headers=ACCEPT | given, timeout=60)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        for scheme in ("bearer", "BEARER", "Bearer "):
            assert status(url, Authorization=f"{scheme} {TOKEN}") != 401

        async def run() -> None:
            with anyio.fail_after(60):
                async with (
                    create_mcp_http_client({"Authorization": f"Bearer {TOKEN}"}) as http,
                    Client(streamable_http_client(url, http_client=http)) as client,
                ):
                    await conversation(client)

        anyio.run(run)


def test_exposed_server_needs_a_token_and_a_name() -> None:
    cases: list[tuple[str, str | None, list[str]]] = [
        ("192.0.2.1", None, []),
        ("0.0.0.0", None, ["library.example"]),
        ("127.0.0.1", None, ["library.example"]),
        ("0.0.0.0", TOKEN, []),
        ("127.0.0.1", "short", []),
    ]
    for host, token, names in cases:
        with refused(ConfigError):
            check_exposure(host, token, names)
    check_exposure("0.0.0.0", TOKEN, ["library.example"])


def test_used_port_is_reported(url: str) -> None:
    port = int(url.split(":")[2].split("/")[0])
    with pytest.raises(ConfigError, match=f"port {port}"):
        listening_socket("127.0.0.1", port)


def test_older_clients_are_notified_of_changes(workspace: Workspace) -> None:
    heard: list[str] = []

    async def note(message: Any) -> None:
        heard.append(message.method)

    async def run(url: str, workspace: Workspace) -> None:
        with anyio.fail_after(60):
            async with Client(url, mode="legacy", message_handler=note) as client:
                await client.list_tools()
                number = 0
                # The client opens the stream for notifications by itself, some time later; none is kept for it.
                while len(set(heard)) < 2:
                    workspace.library.create_collection(f"tea{number}", "Tea")
                    number += 1
                    await anyio.sleep(0.5)

    with serving(workspace) as url:
        anyio.run(run, url, workspace)
    assert sorted(set(heard)) == ["notifications/resources/list_changed", "notifications/tools/list_changed"]


def test_command_serves_on_a_free_port_until_terminated(folder: Path) -> None:
    command = [sys.executable, "-m", "ragistry", "mcp", "--http", "--port", "0", "--collection", "tea"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            label, _, url = process.stderr.readline().strip().partition(": ")
            assert label == "serving"

            async def run() -> str:
                with anyio.fail_after(60):
                    async with Client(url) as client:
                        return await text_of(client, "search_library", query="cold front")

            answer = anyio.run(run)
        finally:
            process.terminate()
            out, _ = process.communicate(timeout=30)
    assert "1. green leaf.txt (line 1, chunk 0)\n" in answer
    assert "rain" not in answer
    assert out == ""
    assert process.returncode == 0
