"""A library to serve, and the official client to ask for it."""

from __future__ import annotations

import json
import os
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a workspace that is filled and closed."""
    with open_workspace(tmp_path) as opened:
        fill(opened)
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


async def text_of(client: Client, tool: str, **arguments: Any) -> str:
    """The one text that a tool answers with."""
    [content] = (await client.call_tool(tool, arguments)).content
    return content.text


async def json_of(client: Client, tool: str, **arguments: Any) -> Any:
    return json.loads(await text_of(client, tool, **arguments))
