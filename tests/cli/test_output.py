"""What becomes of the output: its reader may go away, its disk may be full, and it is UTF-8 whatever is in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry.cli.output import TextWriter
from tests.cli.conftest import Run, process
from tests.conftest import Corpus
from tests.messages import check_message

FULL = Path("/dev/full")


def written(stdout: int, line: str, cwd: Path, unbuffered: str = "", errors_too: bool = False) -> tuple[int, str]:
    """Exit code and standard error of a command that writes to this file."""
    done = subprocess.run(
        [sys.executable, "-m", "ragistry", *line.split()], stdout=stdout,
        stderr=stdout if errors_too else subprocess.PIPE, text=True, cwd=cwd,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered}, check=False, timeout=100,
    )  # fmt: skip
    return done.returncode, done.stderr or ""


@pytest.fixture
def unread() -> Iterator[int]:
    """A pipe that has no reader."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(
    ("line", "unbuffered"), [("sources list", ""), ("sources list --json", "1"), ("--help", ""), ("--help", "1")]
)
def test_success_stays_a_success_without_a_reader(tmp_path: Path, unread: int, line: str, unbuffered: str) -> None:
    assert written(unread, line, tmp_path, unbuffered) == (0, "")


def test_failure_stays_a_failure_without_a_reader(corpus: Corpus, tmp_path: Path, unread: int) -> None:
    corpus({"documents.yaml": "collections: ["}, folder="config")
    assert written(unread, "doctor", tmp_path) == (1, "")
    assert written(unread, "search tea", tmp_path, errors_too=True) == (1, "")


@pytest.mark.usefixtures("configured")
@pytest.mark.skipif(not FULL.exists(), reason="a disk that is always full is there on Linux")
@pytest.mark.parametrize(("line", "unbuffered"), [("sources list", "1"), ("sources list --json", "")])
def test_full_disk_is_one_line(tmp_path: Path, line: str, unbuffered: str) -> None:
    with FULL.open("w") as full:
        code, printed = written(full.fileno(), line, tmp_path, unbuffered)
    assert code == 1
    check_message(printed, "No space left on device")


@pytest.fixture
def misnamed(corpus: Corpus, tmp_path: Path) -> Path:
    """A folder with a name in it that is Latin-1."""
    try:
        Path(os.fsdecode(os.fsencode(corpus({"a.md": "Otters."}, folder="n")) + b"/caf\xe9.md")).write_text("Coffee.")
    except OSError:
        pytest.skip("the system takes no such name")
    return tmp_path / "n"


def test_name_that_is_not_utf8_is_reported_and_the_rest_ingested(ragistry: Run, misnamed: Path) -> None:
    done = ragistry("ingest", "n", "-c", "c")
    assert (done.code, "1 added" in done.out) == (1, True)
    check_message(done.err, "'n/caf\\xe9.md'")
    [path] = [path for path in misnamed.iterdir() if path.name != "a.md"]
    alone = ragistry("ingest", path, "-c", "c", "--json")
    assert alone.json["failed"][0]["source"].endswith("n/caf\\xe9.md")


def test_json_is_utf8_and_text_is_escaped_on_a_terminal_of_ascii(corpus: Corpus, misnamed: Path) -> None:
    corpus({"öl.md": "Öl."}, folder="n")
    ascii_only = {"PYTHONIOENCODING": "ascii:strict"}
    done = subprocess.run(
        [sys.executable, "-m", "ragistry", "ingest", "n", "-c", "c", "--json"],
        capture_output=True, cwd=misnamed.parent, env=os.environ | ascii_only, check=False, timeout=100,
    )  # fmt: skip
    report = json.loads(done.stdout.decode("utf-8"))
    assert report["added"] == ["a.md", "öl.md"]
    assert report["failed"][0]["source"] == "n/caf\\xe9.md"
    shown = process("search", "Öl", cwd=misnamed.parent, **ascii_only)
    assert (shown.code, "\\xd6l." in shown.out) == (0, True)


def test_pieces_of_a_text_keep_blanks_and_lines(capsys: pytest.CaptureFixture[str]) -> None:
    writer = TextWriter()
    for piece in ["word ", " two  \r", "\n\tlist\u2028", "", "\x1b[31m红 \u200b", "\n\n", " end"]:
        writer.write(piece)
    writer.end()
    writer.end()
    assert capsys.readouterr().out == "word  two  \n\tlist\n[31m红 \n\n end\n"
