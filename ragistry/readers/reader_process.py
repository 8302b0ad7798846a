"""Run worker processes that read PDFs and office documents: started on first use, reused, killed after a time limit.

Threads that read at the same time have separate workers.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from signal import strsignal
from typing import Any

from ragistry.errors import ExtractionError
from ragistry.readers.extracted import ExtractLimits

_idle: deque[subprocess.Popen[bytes]] = deque()
_versions: dict[Hashable, str] = {}


class WorkerDiedError(Exception):
    """The worker ended while it read a file, or did not start; the message says how."""


def use_versions(versions: Mapping[Hashable, str]) -> None:
    """End the idle workers if they may have imported another version of one of these readers."""
    if any(_versions.get(reader, version) != version for reader, version in versions.items()):
        close_workers()
    _versions.update(versions)


def read_in_worker(path: str, engine: str, limits: ExtractLimits, repair: str, **more: Any) -> dict[str, Any]:
    """Read a file in a worker; see `reader_worker` for its answer.

    Args:
        path: Path of the file.
        engine: How to read it.
        limits: Limits of size and time.
        repair: What to do with a damaged file, for messages.
        more: Further fields of the request.

    Raises:
        ExtractionError: The file is damaged, encrypted or over a limit.
    """
    request = {
        "path": str(Path(path).absolute()),
        "engine": engine,
        "pages": limits.pages,
        "characters": limits.characters,
        "memory": int(limits.memory),
        "bytes": int(limits.bytes),
        "seconds": limits.seconds,
        **more,
    }
    try:
        answer = ask(request, limits.seconds)
    except TimeoutError as error:
        raise ExtractionError(
            f"{path!r} was not read within {limits.seconds:g} s; raise limits.seconds, unless it is damaged"
        ) from error
    except WorkerDiedError as error:
        raise ExtractionError(
            f"{path!r} crashed its reader ({error}); {repair}, or raise limits.memory, {limits.memory:,} bytes"
        ) from error
    if "error" in answer:
        raise ExtractionError(f"{path!r} {answer['error']}")
    return answer


def ask(request: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Send a request to a worker. Raises `TimeoutError` after ``seconds``, and `WorkerDiedError`."""
    worker = _idle_worker()
    if worker is not None:
        with suppress(WorkerDiedError):  # perhaps it died while idle: a new one shows whether the file is the cause
            return _answer(worker, request, seconds)
    return _answer(_start(), request, seconds)


def _answer(worker: subprocess.Popen[bytes], request: dict[str, Any], seconds: float) -> dict[str, Any]:
    try:
        line, expired = _exchange_within(seconds, worker, request)
    except BaseException:  # interrupted: the rest of its output would be read as the next answer
        _end(worker)
        raise
    answer: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
    if answer and "spoiled" not in answer and not expired:
        _idle.append(worker)
        return answer
    ending = "" if answer or expired else _ending(worker)
    _end(worker)
    if answer:
        return answer
    raise WorkerDiedError(ending) if ending else TimeoutError(f"no answer in {seconds:g} s")


def _exchange_within(seconds: float, worker: subprocess.Popen[bytes], request: dict[str, Any]) -> tuple[bytes, bool]:
    """Return one answer, and whether the worker was killed after the time limit."""
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        worker.kill()

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        line = _exchange(worker, request)
    finally:
        timer.cancel()
        timer.join()  # it kills nothing from here on
    return line, expired.is_set()


def _idle_worker() -> subprocess.Popen[bytes] | None:
    with suppress(IndexError):
        while True:
            worker = _idle.pop()
            if worker.poll() is None:
                return worker
            _end(worker)
    return None


def _start() -> subprocess.Popen[bytes]:
    # "" is the current folder, which may contain other modules, and may be deleted while the process is kept
    path = os.pathsep.join([*filter(None, sys.path), str(Path(__file__).resolve().parents[2])])
    command, pipe = [sys.executable, "-P", "-m", "ragistry.readers.reader_worker"], subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": path}
    try:
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment, cwd="/")
    except OSError as error:
        raise WorkerDiedError(f"its process cannot start: {error}") from error


def _exchange(worker: subprocess.Popen[bytes], request: dict[str, Any]) -> bytes:
    """Exchange a request for an answer, a line; incomplete or empty if the worker died."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    with suppress(BrokenPipeError):
        worker.stdin.write(json.dumps(request).encode() + b"\n")
        worker.stdin.flush()
    return worker.stdout.readline()


def _ending(worker: subprocess.Popen[bytes]) -> str:
    with suppress(subprocess.TimeoutExpired):
        worker.wait(timeout=1)  # its pipes close shortly before it ends
    code = worker.returncode
    if code is None:
        return "it closed its output"
    return f"exit code {code}" if code >= 0 else f"signal {-code}: {strsignal(-code)}"


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    worker.wait()
    _close_pipes(worker)


def _close_pipes(worker: subprocess.Popen[bytes]) -> None:
    for pipe in (worker.stdin, worker.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def close_workers() -> None:
    """End the idle workers; the next file starts one again."""
    while _idle:
        _end(_idle.pop())


def _forget_workers() -> None:
    """Forget the workers after a fork: they belong to the parent."""
    for worker in _idle:
        worker.returncode = 0
        _close_pipes(worker)
    _idle.clear()


atexit.register(close_workers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)
