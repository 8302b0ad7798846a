"""A library to serve, and the official client to ask for it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from ragistry import Workspace, open_workspace

pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from ragistry.mcp.server import build_server
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.tools.toolbox import TOOLS

Talk = Callable[[Client], Awaitable[Any]]
SECONDS = 60
MODES = ("auto", "legacy")
"""How the official client speaks: the protocol of 2026, and the ones before with their handshake."""


def fill(workspace: Workspace) -> None:
    library = workspace.library
    library.create_collection("tea", "How tea is brewed", "Tea books")
    library.create_collection("weather", "Forecasts")
    library.ingest_text("Steep green tea in water of eighty degrees.", "green leaf.txt", "tea")
    library.ingest_text("A cold front brings rain and then clear skies.", "fronts.txt", "weather")


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    with open_workspace(folder) as opened:
        fill(opened)
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    """The folder of a workspace that is filled and closed."""
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace that is filled and open."""
    with open_workspace(tmp_path_factory.mktemp("served")) as opened:
        fill(opened)
        yield opened


def over_stdio(folder: Path, talk: Talk, *options: str, mode: str = "auto", **client: Any) -> Any:
    """What ``talk`` returns for a client of ``ragistry mcp`` in the folder; its standard error is in ``stderr.txt``."""

    async def run() -> Any:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "ragistry", "mcp", *options], cwd=folder, env=dict(os.environ)
        )
        with (folder / "stderr.txt").open("w", encoding="utf-8") as stderr, anyio.fail_after(SECONDS):
            async with Client(stdio_client(command, errlog=stderr), mode=mode, **client) as talking:
                return await talk(talking)

    return anyio.run(run)


def in_memory(tool: SearchLibraryTool, talk: Talk, mode: str = "auto", **client: Any) -> Any:
    """What ``talk`` returns for a client of the tool's server in this process."""

    async def run() -> Any:
        with anyio.fail_after(SECONDS):
            async with Client(build_server(tool, interval=0.05), mode=mode, **client) as talking:
                return await talk(talking)

    return anyio.run(run)


async def text_of(client: Client, tool: str, **arguments: Any) -> str:
    """The one text that a tool answers with."""
    [content] = (await client.call_tool(tool, arguments)).content
    return content.text


async def json_of(client: Client, tool: str, **arguments: Any) -> Any:
    return json.loads(await text_of(client, tool, **arguments))


async def conversation(client: Client) -> None:
    """Search, fetch and look through the collections, as a client does."""
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(listed) == [*TOOLS]
    assert all(tool.annotations.read_only_hint for tool in listed.values())
    assert listed["search_library"].input_schema["properties"]["collection"]["enum"] == ["tea", "weather"]

    answer = await text_of(client, "search_library", query="how hot is green tea?", collection="tea")
    assert answer.startswith(
        '[Knowledge base results for "how hot is green tea?" in collection "tea"]\n\n'
        '[Note: no passage contains "hot"]\n\n'
        "1. green leaf.txt (line 1, chunk 0)\n   Steep green tea in water of eighty degrees.\n"
    )
    results = (await json_of(client, "search", query="how hot is green tea?"))["results"]
    assert [sorted(result) for result in results] == [["id", "place", "text", "title", "url"]] * 2
    assert results[0]["title"] == "green leaf.txt (line 1, chunk 0)"
    assert results[0]["text"] == "Steep green tea in water of eighty degrees."
    fetched = await json_of(client, "fetch", id=results[0]["id"])
    assert sorted(fetched) == ["id", "metadata", "text", "title", "url"]
    assert fetched["text"] == "Steep green tea in water of eighty degrees."
    assert fetched["metadata"]["collection"] == "tea"

    assert "  1: Steep green tea" in await text_of(client, "grep", pattern="green tea")

    resources = (await client.list_resources()).resources
    assert [(resource.uri, resource.title) for resource in resources] == [
        ("ragistry://collections/tea", "Tea books"),
        ("ragistry://collections/weather", "weather"),
    ]
    [content] = (await client.read_resource("ragistry://collections/tea")).contents
    assert json.loads(content.text)["sources"] == ["green leaf.txt"]
    assert results[0]["url"] == "ragistry://collections/tea/green%20leaf.txt#chunk=0"
    [passage] = (await client.read_resource(results[0]["url"])).contents
    assert json.loads(passage.text) == fetched
