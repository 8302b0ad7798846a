"""Blocks of code in Markdown, and a folder in which those of a page are run, one after another."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
SNIPPET = re.compile(r"^--8<--\n(.+)\n--8<--\n", flags=re.MULTILINE)
PRINTS = "prints"
"""The title of what the block above is said to print."""


@dataclass(frozen=True, slots=True)
class Block:
    """``title``: the file that it stands for, `PRINTS`, or nothing."""

    language: str
    title: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Every block of a page, with the files that it shows put in."""
    text = page.read_text(encoding="utf-8")
    return [Block(language, title, SNIPPET.sub(_shown, body)) for language, title, body in BLOCK.findall(text)]


def _shown(match: re.Match[str]) -> str:
    return (ROOT / match[1]).read_text(encoding="utf-8")


class Reader:
    """Somebody who does what a page says. ``ragistry``: runs a command of that name in this process."""

    def __init__(self, folder: Path, ragistry: Callable[..., Any]) -> None:
        self.folder = folder
        self.ragistry = ragistry
        self.names: dict[str, Any] = {"__name__": "page"}
        self.printed = ""

    def follow(self, block: Block) -> None:
        """Write the file, run the lines, or compare what was printed."""
        if block.title == PRINTS:
            check_printed(block.text, self.printed)
        elif block.title:
            path = self.folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            self.printed = "".join(self.line(line) for line in block.text.splitlines())
        elif block.language == "python":
            # A process that the block starts gets the real standard error, not the one that pytest puts there.
            with contextlib.redirect_stderr(sys.__stderr__), contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block.text, "page", "exec"), self.names)
            self.printed = out.getvalue()

    def line(self, line: str) -> str:
        """Run one line of a shell and return what it prints."""
        first, *words = shlex.split(line)
        if first == "ragistry":
            done = self.ragistry(*words)
            assert done.code == 0, f"{line}: {done.out}{done.err}"
            return done.out
        if first == "cd":
            self.folder = self.folder / words[0]
            os.chdir(self.folder)
            return ""
        command = f"{shlex.quote(sys.executable)} {line.partition(' ')[2]}" if first == "python" else line
        done = subprocess.run(
            command, shell=True, cwd=self.folder, capture_output=True, text=True, check=False, timeout=100
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout


def check_printed(promised: str, printed: str) -> None:
    """Every line that a page promises begins a line that was printed; numbers with a point may differ."""
    seen = [_comparable(line) for line in printed.splitlines()]
    for line in filter(None, map(_comparable, promised.splitlines())):
        assert any(one.startswith(line) for one in seen), f"{line!r} is not in\n{printed}"


def _comparable(line: str) -> str:
    return re.sub(r"\d+\.\d+", "0.0", " ".join(line.split()))
