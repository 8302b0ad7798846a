"""``ragistry mcp`` in a process of its own, asked by the official client over its standard input and output."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from ragistry.tools.toolbox import TOOLS
from tests.mcp.conftest import MODES, SECONDS, conversation, over_stdio

HELLO: dict[str, Any] = {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
}  # fmt: skip


def add_by_hand(folder: Path) -> None:
    path = folder / "config" / "documents.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "  - name: soil\n", encoding="utf-8")


@pytest.mark.parametrize("mode", MODES)
def test_clients_search_and_are_notified_of_changes(folder: Path, mode: str) -> None:
    heard: set[str] = set()

    async def note(message: Any) -> None:
        if mode == "legacy":
            heard.add(message.method)

    async def talk(client: Client) -> list[str]:
        await conversation(client)
        if mode == "legacy":
            add_by_hand(folder)
            while len(heard) < 2:
                await anyio.sleep(0.05)
        else:
            async with client.listen(tools_list_changed=True, resources_list_changed=True) as changes:
                add_by_hand(folder)
                while len(heard) < 2:
                    heard.add(type(await anext(changes)).__name__)
        [tool, *_] = (await client.list_tools()).tools
        assert [resource.name for resource in (await client.list_resources()).resources] == ["tea", "weather", "soil"]
        return tool.input_schema["properties"]["collection"]["enum"]

    assert over_stdio(folder, talk, mode=mode, message_handler=note) == ["tea", "weather", "soil"]
    assert (
        sorted(heard)
        == {
            "auto": ["ResourcesListChanged", "ToolsListChanged"],
            "legacy": ["notifications/resources/list_changed", "notifications/tools/list_changed"],
        }[mode]
    )
    assert (folder / "stderr.txt").read_text(encoding="utf-8") == ""


NOISY = '''\
print("noise when it is loaded")
class Noisy:
    """Says what it does, where it should not."""
    def __init__(self, config, *, base):
        self.base = base
    def retrieve(self, query, **options):
        print("noise when it searches")
        return self.base.retrieve(query, **options)
'''


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_contains_only_messages(folder: Path, unbuffered: str) -> None:
    (folder / "noisy.py").write_text(NOISY, encoding="utf-8")
    (folder / "config" / "techniques.yaml").write_text(
        'techniques:\n  naive: {use: naive}\n  noisy: {use: "noisy:Noisy", base: naive}\n', encoding="utf-8"
    )
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "search_library", "arguments": {"query": "tea"}}},
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "ragistry", "mcp", "--technique", "noisy"],
        cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        rest, noise = process.communicate(timeout=60)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert "Steep green tea" in answers[1]["result"]["content"][0]["text"]
    assert rest == ""
    assert "noise when it searches" in noise
    assert process.returncode == 0


NOT_MESSAGES = {
    b"not json": -32700, b'{"jsonrpc": "2.0", "id": 7': -32700, b"": -32700, b"\xff\xfe{": -32700, b"[" * 9_999: -32700,
    b"{'a': 1}": -32700, b"[]": -32600, b"3": -32600, b'{"id": 1, "method": "tools/list"}': -32600,
}  # fmt: skip


def test_line_that_is_not_a_message_is_answered(folder: Path) -> None:
    ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    after = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    lines = [*NOT_MESSAGES, json.dumps(ask).encode(), *NOT_MESSAGES, json.dumps(after).encode()]
    command = [sys.executable, "-m", "ragistry", "mcp"]
    answers: list[dict[str, Any]] = []
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n".join(lines) + b"\n")
        process.stdin.flush()
        while len(answers) < 2 * len(NOT_MESSAGES) + 2:  # the end of its input ends the server
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(SECONDS) == 0
    assert sorted(answer["error"]["code"] for answer in answers if answer["id"] is None) == sorted(
        2 * list(NOT_MESSAGES.values())
    )
    assert {answer["id"] for answer in answers if "result" in answer} == {1, 2}


AT_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "ragistry", "mcp"])
"""


def test_ctrl_c_in_a_terminal_ends_the_server(folder: Path) -> None:
    openpty = pytest.importorskip("pty", reason="there are terminals of this kind on POSIX alone").openpty
    ours, theirs = openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", AT_TERMINAL],
        cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        # What is asked is echoed, and answered when it is served.
        os.write(ours, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode())
        os.write(ours, b"\n")
        until(ours, b'"serverInfo"')
        os.write(ours, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        os.write(ours, b'{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}\n')
        until(ours, b'"search_library"')
        os.write(ours, b"\x03")
        assert process.wait(10) == 130
    finally:
        os.close(ours)
        process.kill()
        process.wait()


def until(terminal: int, said: bytes) -> None:
    """Read until this is said."""
    heard = b""
    while said not in heard:
        assert select.select([terminal], [], [], SECONDS)[0], f"nothing more after {heard!r}"
        heard += os.read(terminal, 65_536)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_ends_the_server_of_an_idle_client(folder: Path, number: signal.Signals, code: int) -> None:
    with serving(folder) as process:
        process.send_signal(number)
        assert process.wait(10) == code
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.slow
def test_ignored_interrupt_stays_ignored(folder: Path) -> None:
    with serving(folder, "sh", "-c", 'trap "" INT; exec "$@"', "sh") as process:
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.communicate(timeout=10)
        assert process.returncode == 0


@contextmanager
def serving(folder: Path, *by: str) -> Iterator[subprocess.Popen[str]]:
    """The server, of which a client has asked something."""
    process = subprocess.Popen(
        [*by, sys.executable, "-m", "ragistry", "mcp"],
        cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
            process.stdin.write(json.dumps(ask) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == 1
            yield process
        finally:
            process.kill()


def test_fastmcp_is_a_client_too(folder: Path) -> None:
    fastmcp = pytest.importorskip("fastmcp", reason="without fastmcp (pip install fastmcp)")

    async def talk() -> Any:
        transport = fastmcp.client.transports.StdioTransport(
            sys.executable, ["-m", "ragistry", "mcp"], cwd=str(folder), env=dict(os.environ)
        )
        async with fastmcp.Client(transport) as client:
            assert [one.name for one in await client.list_tools()] == [*TOOLS]
            return await client.call_tool("grep", {"pattern": "green tea"})

    assert anyio.run(talk).structured_content["sources"][0]["source"] == "green leaf.txt"
