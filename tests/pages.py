"""Blocks of code in Markdown, and a folder in which those of a page are run, one after another."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VARYING = {
    r"[\u2212+-]?\d+\.\d+": "0.0",
    r"\b[0-9a-f]{12}\b": "000000000000",  # a commit
    r"\b[\d,]+ bytes": "0 bytes",
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([+-]\d\d:\d\d)?": "0000-00-00",
}
"""What may differ from run to run."""
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
PRINTS = "prints"
"""The title of what the block above is said to print."""


@dataclass(frozen=True, slots=True)
class Block:
    """``title``: the file that it stands for, `PRINTS`, or nothing."""

    language: str
    title: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Every block of a page."""
    return [Block(*found) for found in BLOCK.findall(page.read_text(encoding="utf-8"))]


class Reader:
    """Somebody who does what a page says. ``ragistry``: runs a command of that name in this process."""

    def __init__(self, folder: Path, ragistry: Callable[..., Any]) -> None:
        self.home = self.folder = folder
        self.ragistry = ragistry
        self.names: dict[str, Any] = {"__name__": "page"}
        self.printed = ""
        self.outdated: list[tuple[str, str]] = []
        """With ``WRITE_PAGES=1``: blocks that are not what was printed, and what is."""

    def follow(self, block: Block) -> None:
        """Write the file, run the lines, or compare what was printed."""
        if block.title == PRINTS:
            try:
                check_printed(block.text, self.printed)
            except AssertionError:
                if not os.environ.get("WRITE_PAGES"):
                    raise
                self.outdated.append((block.text, wrapped(self.printed)))
        elif block.title:
            path = self.folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            printed = "".join(self.line(line) for line in block.text.splitlines())
            self.printed = re.sub(r"^- The machine was busy .*\n", "", printed, flags=re.MULTILINE)
            self.printed = self.printed.replace(str(self.home), "/home/you")
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
    """A page shows the whole output; a line that is only ``…`` stands for lines that are left out there.

    Long lines may be wrapped, and what is `VARYING` may differ.
    """
    first, *others = [_comparable(part) for part in re.split(r"^…$", promised, flags=re.MULTILINE)]
    seen = _comparable(printed)
    assert seen.startswith(first) if others else seen == first, f"{promised}\nis not what was printed:\n{printed}"
    for part in others:
        _, found, seen = seen.partition(part) if part else ("", "", seen)
        assert found or not part, f"{part}\nis not in what was printed:\n{printed}"
    assert not others or not others[-1] or not seen, f"{seen}\nwas printed too, and is not shown"


def _comparable(text: str) -> str:
    text = " ".join(text.split())
    for varying, same in VARYING.items():
        text = re.sub(varying, same, text)
    return text


def wrapped(printed: str) -> str:
    """Output as a page shows it: long lines of prose at the width of the page."""
    lines = []
    for line in printed.rstrip().splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        is_table = re.search(r"\S {3,}\S", line) is not None
        lines += (
            [line.rstrip()]
            if is_table or not line.strip()
            else textwrap.wrap(line, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        )
    return "\n".join(lines).strip("\n") + "\n"
