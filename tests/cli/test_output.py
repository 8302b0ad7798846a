"""What becomes of the output: whoever reads it may go away, its disk may be full, and it is UTF-8 whatever is in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done, process

Run = Callable[..., Done]
FULL = Path("/dev/full")


def unread(*words: object, cwd: Path, unbuffered: str = "", errors_too: bool = False) -> tuple[int, str]:
    """Exit code and standard error of a command whose output nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "ragistry", *map(str, words)]
    stderr = writer if errors_too else subprocess.PIPE
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(
        command, stdout=writer, stderr=stderr, text=True, cwd=cwd, env=environment, check=False, timeout=100
    )
    os.close(writer)
    return done.returncode, done.stderr or ""


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["sources", "list"], ["sources", "list", "--json"], ["--help"]])
def test_a_reader_that_goes_away_leaves_a_success_a_success(tmp_path: Path, words: list[str], unbuffered: str) -> None:
    assert unread(*words, cwd=tmp_path, unbuffered=unbuffered) == (0, "")


@pytest.mark.parametrize("words", [["doctor"], ["doctor", "--json"]])
def test_a_reader_that_goes_away_leaves_a_failure_a_failure(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "documents.yaml").write_text("collections: [", encoding="utf-8")
    assert unread(*words, cwd=tmp_path) == (1, "")


@pytest.mark.usefixtures("configured")
def test_the_reader_of_the_errors_may_go_away_too(tmp_path: Path) -> None:
    assert unread("search", "tea", "--technique", "nope", cwd=tmp_path, errors_too=True) == (1, "")


@pytest.mark.usefixtures("configured")
@pytest.mark.skipif(not FULL.exists(), reason="a disk that is always full is there on Linux")
@pytest.mark.parametrize(("option", "unbuffered"), [([], "1"), (["--json"], ""), (["--json"], "1")])
def test_a_full_disk_is_one_line(tmp_path: Path, option: list[str], unbuffered: str) -> None:
    command = [sys.executable, "-m", "ragistry", "sources", "list", *option]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with FULL.open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "error: cannot write the output: No space left on device; make room, or write it elsewhere\n"


@pytest.fixture
def misnamed(tmp_path: Path) -> Path:
    """A folder with a name in it that is Latin-1."""
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "a.md").write_text("Otters.", encoding="utf-8")
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/n/caf\xe9.md")).write_text("Coffee.", encoding="utf-8")
    except OSError:
        pytest.skip("the system takes no such name")
    return tmp_path / "n"


def test_a_name_that_is_not_utf8_is_told_and_the_rest_taken_in(ragistry: Run, misnamed: Path) -> None:
    done = ragistry("ingest", "n", "-c", "c")
    assert done.code == 1
    assert done.err == "failed: 'n/caf\\xe9.md': the name 'caf\\xe9.md' is not UTF-8; rename it\n"
    assert "1 added" in done.out
    [path] = [path for path in misnamed.iterdir() if path.name != "a.md"]
    alone = ragistry("ingest", path, "-c", "c", "--json")
    assert alone.json["failed"][0]["source"].endswith("n/caf\\xe9.md")


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict"])
def test_json_is_utf8_whatever_the_names_and_the_terminal(misnamed: Path, encoding: str) -> None:
    (misnamed / "öl.md").write_text("Öl.", encoding="utf-8")
    command = [sys.executable, "-m", "ragistry", "ingest", "n", "-c", "c", "--json"]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(command, capture_output=True, cwd=misnamed.parent, env=environment, check=False, timeout=100)
    report = json.loads(done.stdout.decode("utf-8"))
    assert report["added"] == ["a.md", "öl.md"]
    assert report["failed"][0]["source"] == "n/caf\\xe9.md"
    assert b"caf\\xe9.md' is not UTF-8" in done.stdout.replace(b"\\\\", b"\\")


def test_text_for_a_terminal_without_its_characters_is_written_out(tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("Grüner Tee.", encoding="utf-8")
    assert process("ingest", "tea.md", "-c", "c", cwd=tmp_path).code == 0
    done = process("search", "Tee", cwd=tmp_path, PYTHONIOENCODING="ascii:strict")
    assert done.code == 0
    assert "Gr\\xfcner Tee." in done.out
