"""One side as a running process that is asked and answers, within a time."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from benchmarks.peers.environment import REPOSITORY, Environment


class SilentError(Exception):
    """A side that failed, or did not answer in time, and why, on one line."""


class Conversation:
    """Asks a side; use it in a ``with`` block. After `SilentError` it is ended and answers no more."""

    def __init__(self, environment: Environment, corpus: Path, folder: Path, timeout: float) -> None:
        self.timeout = timeout
        folder.mkdir(parents=True)
        self.store = folder / "store"
        self._log = folder / "log.txt"
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                environment.command(str(corpus), str(self.store)),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=REPOSITORY,
            )  # fmt: skip
        self._answers: Queue[str] = Queue()
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:  # which closes what it was asked through
            self._process.kill()
            self._listener.join()

    def ask(self, do: str, **options: Any) -> dict[str, Any]:
        """The answer to one question. Raises `SilentError`."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **options}) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=self.timeout)
        except Empty as error:
            self._process.kill()
            raise SilentError(f"{do}: no answer within {self.timeout:.0f} s") from error
        except OSError as error:
            raise SilentError(self._last_words(do)) from error
        if not line:
            raise SilentError(self._last_words(do))
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def _last_words(self, do: str) -> str:
        lines = self._log.read_text(encoding="utf-8").strip().splitlines()
        return f"{do}: {lines[-1] if lines else 'ended without a word'}"
