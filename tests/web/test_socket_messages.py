"""What is no message of the page ends its own connection, with a line in the log, and nothing else."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from nicegui import core

from ragistry.web.socket_messages import EVENTS, LENGTH, MalformedError, check_message
from tests import messages
from tests.web.conftest import served

PATH = "/_nicegui_ws/socket.io/?EIO=4&transport="
OPEN, CLOSE, TEXT, BINARY, PING = "40", 8, 1, 2, 9
NO_EVENTS = [
    "42", "42[]", "42{}", '42["event"', "42[1]", "42[[]]", "42" + "[" * 50_000, '42["connect"]', '42["disconnect"]',
    '42["event"]', '42["event",null]', '42["event",{}]', '42["event",{},{}]', '42["event",{"client_id":"\\ud800"}]',
    '42["event",{"client_id":"a","id":1,"listener_id":"b","args":["{"]}]', '42["handshake",{"client_id":"a"}]',
    '42["log",{"client_id":"a","level":"loud","message":""}]', '42["ack",{"client_id":"a","next_message_id":"x"}]',
    '42["javascript_response",{"client_id":"a","request_id":[]}]', f'42["event",{"9" * 5000}]',
]  # fmt: skip
NO_MESSAGES = [
    "", "x", "0", "6", "9", "²", "b!", "2", "4", "4x", "4٢", "43", "44", "46", "49", "40/x,", "40{", "40[]", "41[]",
    '451-["event",{"_placeholder":true,"num":9}]', "459999999999999-[]", "42" + "1" * 150 + "[]", "4" * (LENGTH + 1),
]  # fmt: skip


def frame(data: bytes, kind: int = TEXT, *, last: bool = True, masked: bool = True, length: int | None = None) -> bytes:
    """A WebSocket frame, well-formed or not."""
    size, bit = len(data) if length is None else length, 0x80 if masked else 0
    if size < 126:
        said = bytes([bit | size])
    elif size < 2**16:
        said = bytes([bit | 126]) + struct.pack("!H", size)
    else:
        said = bytes([bit | 127]) + struct.pack("!Q", size)
    return bytes([(0x80 if last else 0) | kind]) + said + bytes(4 if masked else 0) + data


NO_FRAMES = {
    "an opcode that is none": frame(b"", 3),
    "a reserved bit": frame(b"2", TEXT | 0x40),
    "no mask": frame(b"3", masked=False),
    "a length past all limits": frame(b"", length=2**62),
    "a length with its first bit set": frame(b"", length=2**63),
    "no UTF-8": frame(b"\xff\xfe"),
    "no UTF-8, twice": 2 * frame(b"\xff"),
    "no UTF-8 over two frames": frame(b"4\xc3", last=False) + frame(b"x", 0),
    "a continuation of nothing": frame(b"x", 0),
    "a fragment of a ping": frame(b"", PING, last=False),
    "a close without a code": frame(b"x", CLOSE),
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "noise": bytes(range(256)),
    "bytes": frame(b"4", BINARY),
}


@contextmanager
def opened(address: str, query: str = "websocket", path: str = PATH) -> Iterator[socket.socket]:
    """A connection after its handshake, accepted or refused."""
    url = httpx.URL(address)
    with socket.create_connection((url.host, url.port or 80), timeout=30) as line:
        key = b64encode(os.urandom(16)).decode()
        line.sendall(
            f"GET {path}{query} HTTP/1.1\r\nHost: {url.host}:{url.port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head and (more := line.recv(1)):
            head += more
        if b" 101 " in head:
            yield line
        else:
            assert re.match(rb"HTTP/1.1 40[03] ", head), head
            line.shutdown(socket.SHUT_WR)
            yield line


def received(line: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Frames that the server sends, until the connection ends; it sends short ones."""
    with line.makefile("rb") as file:
        while len(head := file.read(2)) == 2:
            size = head[1] if head[1] < 126 else int.from_bytes(file.read(2), "big")
            yield head[0] & 15, file.read(size)


def is_ended(line: socket.socket) -> bool:
    """Whether the server closes the connection: by a frame that says so, or at once."""
    try:
        return any(kind == CLOSE for kind, _ in received(line)) or True
    except ConnectionError:
        return True


def window(line: socket.socket, address: str) -> None:
    """Connect as the script of a page does."""
    answer = httpx.get(address, timeout=60)
    found = re.search(r"'client_id': '([^']+)'", answer.text)
    assert found, answer.text[:2000]
    handshake = {"client_id": found[1], "tab_id": "tab", "document_id": "document", "next_message_id": 0}
    line.sendall(frame(OPEN.encode()) + frame(f"421{json.dumps(['handshake', handshake])}".encode()))
    await_message(line, b"431[true]")


def await_message(line: socket.socket, message: bytes) -> None:
    assert any(data == message for _, data in received(line))


@pytest.mark.slow
def test_malformed_frames_close_only_their_connection(tmp_path: Path) -> None:
    with served(tmp_path) as address:
        address = address.rstrip("/")
        with opened(address) as visitor:
            window(visitor, address)
            for name, sent in NO_FRAMES.items():
                with opened(address) as line:
                    line.sendall(sent)
                    assert is_ended(line), name
            for text in (*NO_MESSAGES, *NO_EVENTS):
                with opened(address) as line:
                    line.sendall(frame(OPEN.encode()) + frame(text.encode()))
                    assert is_ended(line), text[:80]
                    if text and len(text) <= LENGTH:
                        assert posted(address, text.encode()) == 400, text[:80]
            for data in (b"\xff", b"d=40", b"\x1e".join([b"3"] * 30)):
                assert posted(address, data) == 400
            for half in (b"\x81", frame(b"40", length=90)):
                with opened(address) as line:
                    line.sendall(half)
            for query in ("&tab_id=a", "&client_id=a&tab_id=b&document_id=c&next_message_id=x"):
                with opened(address, f"websocket&implicit_handshake=true{query}") as line:
                    assert is_ended(line)
            with opened(address, path="/_nicegui_ws/?") as line:
                assert is_ended(line)
            visitor.sendall(frame(b'422["ack",{"client_id":"","next_message_id":0}]'))
            await_message(visitor, b"432[]")
    lines = sorted((tmp_path / "ui.log").read_text().splitlines())
    assert len(lines) < 10
    for line in lines:
        messages.check_message(line)


def posted(address: str, body: bytes) -> int:
    """The status of the answer to a message over long polling, in a new session."""
    with httpx.Client(base_url=address, timeout=60) as client:
        session = json.loads(client.get(f"{PATH}polling").text[1:])["sid"]
        assert client.post(f"{PATH}polling&sid={session}", content=b"40").status_code == 200
        return client.post(f"{PATH}polling&sid={session}", content=body).status_code


@pytest.mark.parametrize("text", ["1", "3", "5", "2probe", "40", '40{"token":1}', "41"])
def test_messages_of_the_protocol_are_accepted(text: str) -> None:
    check_message(text)


@pytest.mark.parametrize("text", [*NO_MESSAGES, *NO_EVENTS], ids=lambda text: text[:40])
def test_other_messages_are_refused(text: str) -> None:
    with pytest.raises(MalformedError):
        check_message(text)


def test_every_event_that_nicegui_reads_is_checked() -> None:
    """A new version that listens to another one needs it in the list."""
    assert {*EVENTS, "connect", "disconnect"} == set(core.sio.handlers["/"])
