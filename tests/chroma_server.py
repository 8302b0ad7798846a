"""A real ChromaDB server on loopback, for tests."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from ragistry.testing.ports import reserved_port

START_SECONDS = 60.0
_RUN = "import sys; from chromadb.cli.cli import app; sys.argv[0] = 'chroma'; app()"


@dataclass(frozen=True, slots=True)
class ChromaServer:
    """A running server and its process."""

    host: str
    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


@contextmanager
def chroma_server(path: Path, port: int = 0) -> Iterator[ChromaServer]:
    """Run `chroma run` on a directory during the block; port 0: a free one."""
    port = port or reserved_port()
    arguments = ["run", "--path", str(path), "--host", "127.0.0.1", "--port", str(port)]
    path.mkdir(parents=True, exist_ok=True)
    log = path / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-c", _RUN, *arguments], stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait(port, process, log)
        yield ChromaServer("127.0.0.1", port, process)
    finally:
        process.kill()
        process.wait()


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            httpx.get(f"http://127.0.0.1:{port}/api/v2/heartbeat", timeout=2.0, trust_env=False).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"ChromaDB did not start on port {port}: {log.read_text(errors='replace')[-500:]}")
