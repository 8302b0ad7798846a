"""The command line, run in this process as the installed script runs it, or in a process of its own."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import pty
import shlex
import subprocess
import sys
import termios
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from numpy.typing import NDArray

from ragistry.cli import main
from ragistry.models import minilm
from ragistry.types import Role
from tests.conftest import Corpus
from tests.messages import check_message

TEA = "Steep green tea in water of eighty degrees."


@dataclass(frozen=True, slots=True)
class Done:
    """What a command did: its exit code, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output as JSON; a failure shows both outputs."""
        assert self.out, self
        return json.loads(self.out)

    @property
    def findings(self) -> dict[str, tuple[str, str]]:
        """State and detail of what `doctor --json` found, by name."""
        return {finding["name"]: (finding["state"], finding["detail"]) for finding in self.json["findings"]}

    def refused(self, code: int, *values: object) -> None:
        """Expect nothing but one line of error, which names the values and equals its snapshot."""
        __tracebackhide__ = True
        assert (self.code, self.out) == (code, ""), self
        assert self.err.startswith("error: "), self
        assert self.err.endswith("\n"), self
        assert len(self.err.splitlines()) == 1, self
        check_message(self.err, *values)


Run = Callable[..., Done]
_get_command = cache(typer.main.get_command)
_embed = minilm.MiniLMEmbedder.embed
_known: dict[str, NDArray[np.float32]] = {}


def embed_once(self: minilm.MiniLMEmbedder, texts: Sequence[str], *, role: Role = "document") -> NDArray[np.float32]:
    """The vectors of the real model, which computes each text of a document once per process."""
    if role == "query" or not texts:
        return _embed(self, texts, role=role)
    new = [text for text in dict.fromkeys(texts) if text not in _known]
    _known.update(zip(new, _embed(self, new), strict=True))
    return np.stack([_known[text] for text in texts])


@pytest.fixture
def ragistry(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command in the folder ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(typer.main, "get_command", _get_command)  # each process makes it once
    monkeypatch.setattr(minilm.MiniLMEmbedder, "embed", embed_once)

    def run(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["ragistry", *map(str, words)])
        capsys.readouterr()
        code = 0
        handlers, logging.root.handlers = logging.root.handlers, []  # else the command leaves warnings to pytest
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        finally:
            logging.root.handlers = handlers
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


def session(run: Run, steps: Iterable[tuple[str, int, object]]) -> None:
    """Run commands one after another, and compare the exit code and what is printed.

    What is printed is JSON; or the whole text; or, as a tuple, what a message names that is in its snapshot.
    """
    for line, code, printed in steps:
        done = run(*shlex.split(line))
        assert done.code == code, (line, done)
        if isinstance(printed, tuple):
            check_message(done.err or done.out, *printed)
        else:
            assert (done.out if isinstance(printed, str) else done.json) == printed, line


@pytest.fixture
def filled(ragistry: Run, corpus: Corpus) -> Run:
    """The command in a workspace with the file ``tea.txt`` in the collection ``notes``."""
    corpus({"tea.txt": TEA}, folder=".")
    assert ragistry("ingest", "tea.txt", "--collection", "notes", "--create", "Notes about tea").code == 0
    return ragistry


@pytest.fixture
def configured(corpus: Corpus) -> None:
    """Makes ``tmp_path`` a workspace, in which nothing is stored yet."""
    corpus({"documents.yaml": "n_results: 5\n"}, folder="config")


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let a person on a terminal type this."""

    def type_(text: str) -> None:
        terminal = io.StringIO(text)
        terminal.isatty = lambda: True  # type: ignore[method-assign]
        monkeypatch.setattr(sys, "stdin", terminal)

    return type_


def process(*words: object, cwd: Path, **environment: str) -> Done:
    """Run a command in a process of its own, as a shell would."""
    command = [sys.executable, "-m", "ragistry", *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=os.environ | environment, check=False, timeout=100
    )
    return Done(done.returncode, done.stdout, done.stderr)


def on_terminal(
    *words: object, cwd: Path, typed: str = "", stdout: int | None = None, columns: int = 80
) -> tuple[int, str]:
    """Exit code of a command on a terminal where the text is typed, and all that the terminal shows."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, columns))
    command = [sys.executable, "-m", "ragistry", *map(str, words)]
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"} | {"TERM": "xterm"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs if stdout is None else stdout, stderr=theirs, cwd=cwd, env=environment
    ) as child:
        os.close(theirs)
        os.write(ours, typed.encode())
        seen = bytearray()
        with contextlib.suppress(OSError):  # Linux says so when the other end is closed
            while part := os.read(ours, 1 << 16):
                seen += part
        os.close(ours)
    return child.returncode, seen.decode(errors="replace").replace("\r\n", "\n")
