"""Ports for tests stay free for their owner."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ragistry.testing import ports
from ragistry.testing.ports import refused_port, reserved_port

MANY = 200
PRINT_PORTS = f"""
from ragistry.testing.ports import reserved_port
print(*(reserved_port() for _ in range({MANY})), flush=True)
input()
"""


def test_reserved_port_is_given_once_to_all_processes() -> None:
    command = [sys.executable, "-c", PRINT_PORTS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as one, subprocess.Popen(command, **pipes) as other:  # type: ignore[call-overload]
        found = [int(word) for process in (one, other) for word in process.stdout.readline().split()]
        found += [reserved_port() for _ in range(5)]
        one.communicate("\n")
        other.communicate("\n")
    assert len(set(found)) == len(found) == 2 * MANY + 5


def test_reserved_port_stays_reserved_when_its_server_stops() -> None:
    port = reserved_port()
    for _ in range(2):
        with socket.create_server(("127.0.0.1", port)), pytest.raises(OSError) as caught:
            socket.create_server(("127.0.0.1", port), reuse_port=False)
        assert caught.value.errno == errno.EADDRINUSE
    assert reserved_port() != port


def test_reserved_port_is_outside_of_the_range_of_outgoing_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "ip_local_port_range"
    monkeypatch.setattr(ports, "EPHEMERAL", kernel)
    for text, first, last in (("10000\t60999\n", 61_000, 65_535), ("20000\t65535\n", 10_000, 19_999)):
        kernel.write_text(text)
        assert first <= reserved_port() <= last
    kernel.write_text("1024\t65535\n")
    assert reserved_port() >= ports.FIRST_PORT
    kernel.unlink()
    assert reserved_port() < ports.EPHEMERAL_OF_OTHER_SYSTEMS[0]


def test_port_in_use_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(ports, "_ports_outside_of", lambda first, last: [server.getsockname()[1]])
        with pytest.raises(RuntimeError, match=r"no port of 127.0.0.1 is free"):
            reserved_port()


def test_refused_port_refuses_and_cannot_be_taken() -> None:
    port = refused_port()
    assert refused_port() == port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)
    with pytest.raises(OSError) as caught, socket.socket() as taker:
        taker.bind(("127.0.0.1", port))
    assert caught.value.errno == errno.EADDRINUSE
