"""``ragistry demo``: what it shows, where it goes on, and what it refuses to overwrite."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Run, ragistry  # noqa: F401, the fixture
from tests.conftest import ROOT, Corpus

FOUND = {
    "restore yesterday's backup": ("1. Back up and restore", "   handbook · operations/backups.md · "),
    "descaling": ("1. Corvo EM-62 espresso machine", "   manuals · espresso-machine.pdf · p. "),
    "LNT-1042": ("1. Troubleshooting and error codes", "   handbook · operations/troubleshooting.md · "),
}


@pytest.mark.timeout(300)
def test_demo_shows_searches_and_a_comparison_and_continues_in_its_folder(
    ragistry: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The tutorial does the same with the real model.
    monkeypatch.setenv("RAGISTRY_EMBED_MODEL", "ragistry.testing.hashed:HashingEmbedder")
    done = ragistry("demo", "shown")
    assert done.code == 0, done.err
    _, *printed = done.out.split("\n$ ragistry ")
    commands = dict(command.split("\n", 1) for command in printed)
    ingested = [answer for command, answer in commands.items() if command.startswith("ingest")]
    assert (len(ingested), all(" 0 failed" in answer for answer in ingested)) == (3, True)
    for words, (title, place) in FOUND.items():
        [answer] = [answer for command, answer in commands.items() if words in command]
        first, second, *text = answer.splitlines()
        assert (first, second[: len(place)]) == (title, place)
        assert len(" ".join(text).split()) > 10, "the lines that answer are below their place"
    [comparison] = [answer for command, answer in commands.items() if command.startswith("compare")]
    assert "22 queries" in comparison
    assert re.search(r"^ *hybrid +0\.\d", comparison, flags=re.MULTILINE)
    assert "next:\n  cd shown\n" in comparison

    with (tmp_path / "shown" / "garden" / "watering.txt").open("a", encoding="utf-8") as file:
        file.write("\nWater tomatoes in the morning.\n")
    assert "garden: 0 added, 1 updated, 12 skipped" in ragistry("demo", "shown").out


def test_demo_keeps_a_folder_that_it_did_not_make(
    ragistry: Run,  # noqa: F811
    corpus: Corpus,
) -> None:
    mine = corpus({"letter.txt": "keep me"}, folder="mine")
    ragistry("demo", "mine").refused(1, "'mine'")
    assert [path.name for path in mine.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize(
    ("target", "level"), [("install", "installed"), ("demo", "installed"), ("test", "dev"), ("check", "dev")]
)
def test_using_needs_no_tools_of_development(target: str, level: str) -> None:
    command = ["make", "--dry-run", "--always-make", target]
    planned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"scripts/install\.py \.venv (\w+)\n", planned) == [level]
