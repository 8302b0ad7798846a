"""The page and MCP in the same process, behind the same tokens."""

from __future__ import annotations

from pathlib import Path

import anyio
import httpx
import pytest

pytest.importorskip("mcp")
pytest.importorskip("nicegui")

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from ragistry import Workspace
from ragistry.errors import ConfigError
from ragistry.server.access import Tokens
from ragistry.server.app import check_exposure
from tests.mcp.conftest import json_of, text_of
from tests.messages import refused
from tests.server.conftest import bearer
from tests.server.test_jobs import command
from tests.serving import served


def test_mcp_serves_only_the_collections_of_the_token(workspace: Workspace) -> None:
    tokens = Tokens(workspace.root)
    limited, everything = tokens.add("tea", ["read"], ["tea"]), tokens.add("all", ["admin"])
    writer = tokens.add("writer", ["write"])
    [secret] = workspace.search("rain", collection="weather", top_k=1).documents

    async def ask(url: str, token: str) -> tuple[str, str, int]:
        async with (
            create_mcp_http_client(bearer(token)) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            found = await text_of(client, "search_library", query="a cold front brings rain")
            [content] = (await client.call_tool("fetch", {"id": secret.id})).content
            results = (await json_of(client, "search", query="rain"))["results"]
            return found, content.text, len(results)

    with served(workspace, mcp=True) as address:
        url = f"{address}/mcp"
        found, fetched, results = anyio.run(ask, url, limited)
        assert "fronts.txt" not in found + fetched
        assert "green.txt" in found
        assert results == 1
        found, fetched, results = anyio.run(ask, url, everything)
        assert "fronts.txt" in found
        assert "cold front" in fetched
        assert results == 2
        newer = tokens.add("newer", ["read"], ["weather"])
        for token, status in ((None, 401), ("wrong", 401), (writer, 403), (newer, 403)):
            headers = {} if token is None else bearer(token)
            assert httpx.post(url, json={}, headers=headers, timeout=20).status_code == status


def test_page_is_served_to_this_machine_only(filled_copy: Path) -> None:
    with command(filled_copy, "--ui", "--mcp") as (_, url):
        page = httpx.get(url, timeout=60)
        assert page.status_code == 200
        assert "Ragistry" in page.text
        assert httpx.get(f"{url}/v1/collections", timeout=60).json()["collections"][0]["name"] == "tea"
        assert httpx.get(f"{url}/healthz", timeout=60).json() == {"status": "ok"}
        assert httpx.get(url, headers={"Host": "evil.example"}, timeout=60).status_code == 403


def test_page_cannot_be_served_with_tokens(workspace: Workspace) -> None:
    tokens = Tokens(workspace.root)
    check_exposure("127.0.0.1", tokens, ui=True)
    for host in ("127.0.0.1", "0.0.0.0"):
        tokens.add(f"t{len(host)}", ["admin"])
        with refused(ConfigError):
            check_exposure(host, tokens, ui=True)
