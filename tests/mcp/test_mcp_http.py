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
from tests.mcp.conftest import MODES, json_of, text_of

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
        thread.join(timeout=20)
        bound.close()
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def url(served: Workspace) -> Iterator[str]:
    with serving(served) as address:
        yield address


async def conversation(client: Client) -> None:
    assert [tool.name for tool in (await client.list_tools()).tools] == ["search_library", "search", "fetch"]
    assert "1. green leaf.txt (chunk 0)\n" in await text_of(client, "search_library", query="tea", collection="tea")
    [first, *_] = (await json_of(client, "search", query="green tea"))["results"]
    assert (await json_of(client, "fetch", id=first["id"]))["text"].startswith("Steep green tea")
    assert len((await client.list_resources()).resources) == 2


@pytest.mark.parametrize("mode", MODES)
def test_the_official_client_is_served(url: str, mode: str) -> None:
    async def run() -> None:
        with anyio.fail_after(60):
            async with Client(url, mode=mode) as client:
                await conversation(client)

    anyio.run(run)


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


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_a_page_of_a_stranger_gets_nothing(url: str, headers: dict[str, str], status: int) -> None:
    assert httpx.post(url, json=PING, headers=ACCEPT | headers, timeout=20).status_code == status


def test_an_origin_of_this_machine_is_let_in(url: str) -> None:
    origin = url.removesuffix("/mcp")
    assert httpx.post(url, json=PING, headers=ACCEPT | {"Origin": origin}, timeout=20).status_code not in (
        401,
        403,
        421,
    )


def test_without_its_token_the_server_answers_nothing(served: Workspace) -> None:
    with serving(served, TOKEN) as url:
        for given in (
            {},
            {"Authorization": f"Bearer {TOKEN}0"},
            {"Authorization": TOKEN},
            {"Authorization": "Bearer x"},
            {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": f"Bearer{TOKEN}"},
        ):
            refused = httpx.post(url, json=PING, headers=ACCEPT | given, timeout=20)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"

        for scheme in ("bearer", "BEARER", "Bearer "):
            given = {"Authorization": f"{scheme} {TOKEN}"}
            assert httpx.post(url, json=PING, headers=ACCEPT | given, timeout=20).status_code != 401

        async def run() -> None:
            with anyio.fail_after(60):
                async with (
                    create_mcp_http_client({"Authorization": f"Bearer {TOKEN}"}) as http,
                    Client(streamable_http_client(url, http_client=http)) as client,
                ):
                    await conversation(client)

        anyio.run(run)


@pytest.mark.parametrize(
    ("host", "token", "names", "message"),
    [
        ("192.0.2.1", None, [], "lets other machines in; set RAGISTRY_MCP_TOKEN"),
        ("0.0.0.0", None, ["library.example"], "lets other machines in"),
        ("127.0.0.1", None, ["library.example"], "--name 'library.example' lets other machines in"),
        ("0.0.0.0", TOKEN, [], "says no name; give those that clients use with --name"),
        ("127.0.0.1", "short", [], "RAGISTRY_MCP_TOKEN has 5 characters; use 16 or more"),
    ],
)
def test_a_server_that_is_open_to_others_is_not_started(
    host: str, token: str | None, names: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        check_exposure(host, token, names)
    check_exposure("0.0.0.0", TOKEN, ["library.example"])


def test_a_port_that_is_taken_is_said(url: str) -> None:
    port = int(url.split(":")[2].split("/")[0])
    with pytest.raises(ConfigError, match=f"cannot listen on '127.0.0.1', port {port}"):
        listening_socket("127.0.0.1", port)


def test_clients_of_the_older_protocol_hear_of_changes(tmp_path: Path) -> None:
    from ragistry import open_workspace

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

    with open_workspace(tmp_path) as workspace, serving(workspace) as url:
        anyio.run(run, url, workspace)
    assert sorted(set(heard)) == ["notifications/resources/list_changed", "notifications/tools/list_changed"]


def test_the_command_serves_on_a_free_port_and_stops_when_told(folder: Path) -> None:
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
    assert "1. green leaf.txt (chunk 0)\n" in answer
    assert "rain" not in answer
    assert out == ""
    assert process.returncode == 0
