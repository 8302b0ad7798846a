"""The command as a shell runs it: its own process, its own terminal, and only the rights of its user."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ragistry import open_workspace
from ragistry.errors import ConfigError
from tests.cli.conftest import TEA, Done, Run, on_terminal
from tests.conftest import Corpus
from tests.messages import check_message, refused

SHOUT = '''\
class Shout:
    """Search with the query in capitals."""

    def __init__(self, config, *, base):
        self.base = base

    def retrieve(self, query, **options):
        return self.base.retrieve(query.upper(), **options)
'''
TECHNIQUES = 'techniques:\n  naive: {use: naive}\n  shout: {use: "shout:Shout", base: naive}\n'
LONG = "a" * 300


def test_progress_bar_is_drawn_on_a_terminal_and_nowhere_else(corpus: Corpus, tmp_path: Path) -> None:
    corpus({"tea.txt": TEA}, folder=".")
    code, seen = on_terminal("ingest", "tea.txt", "--collection", "notes", cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert code == 0
    assert [part for part in ("━", "0/1", "tea.txt") if part not in seen] == []
    assert seen.endswith("\x1b[2K"), "the bar is removed at the end"
    silent = on_terminal("ingest", "tea.txt", "--json", cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert silent == (0, ""), "nor for a program"


def test_progress_is_written_line_by_line_in_a_pipe(
    ragistry: Run, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus({"tea.txt": TEA}, folder=".")
    assert ragistry("ingest", "tea.txt", "--collection", "notes").err == "", "a short ingest says nothing"
    monkeypatch.setattr("ragistry.evaluation.progress.EVERY", 0)
    corpus({"rain.txt": TEA}, folder=".")
    assert "rain.txt: 0 of 1" in ragistry("ingest", "rain.txt", "--collection", "notes").err.splitlines()
    assert ragistry("ingest", "rain.txt", "--collection", "notes", "--json").err == ""


def test_technique_in_a_file_of_the_workspace_is_found(corpus: Corpus, tmp_path: Path) -> None:
    elsewhere = corpus({"unrelated.txt": ""}, folder="elsewhere")
    root = corpus({"shout.py": SHOUT, "config/techniques.yaml": TECHNIQUES}, folder="workspace")
    with open_workspace(root) as workspace:
        workspace.library.create_collection("notes")
        workspace.library.ingest_text(TEA, "tea.txt", "notes")
    script = Path(sys.executable).with_name("ragistry")  # unlike `python -m`, it has no current folder on its path
    for words, cwd in (([], root), (["--workspace", "../workspace"], elsewhere)):
        command = [script, "search", "how hot", "-t", "shout", "--json", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, timeout=100)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert (answer["total_results"], answer["trace"][0]["name"]) == (1, "shout")


def test_name_that_is_too_long_is_refused(ragistry: Run, tmp_path: Path) -> None:
    ragistry("-w", LONG, "sources", "list").refused(1, LONG, "File name too long")
    ragistry("ingest", f"{LONG}.md", "-c", "c").refused(1, LONG, "File name too long")
    with refused(ConfigError, "File name too long"):
        open_workspace(tmp_path / LONG)


CAPABILITIES = "-dac_override,-dac_read_search"
UNPRIVILEGED = ["setpriv", f"--bounding-set={CAPABILITIES}", f"--inh-caps={CAPABILITIES}"] if os.geteuid() == 0 else []
COMMANDS = """
import contextlib, io, json, sys
from ragistry.cli import main
results = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["ragistry", *words]
    code, out, err = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    results.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(results))
"""


def without_privilege(*commands: list[str], cwd: Path) -> list[Done]:
    """Commands in one process that has not root's right to read everything."""
    script = [*UNPRIVILEGED, sys.executable, "-c", COMMANDS, json.dumps(commands)]
    done = subprocess.run(script, capture_output=True, text=True, cwd=cwd, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    return [Done(*result) for result in json.loads(done.stdout)]


@pytest.mark.skipif(bool(UNPRIVILEGED) and not shutil.which("setpriv"), reason="root may read everything")
def test_folders_that_cannot_be_read_are_named(filled: Run, tmp_path: Path) -> None:
    locked = ("documents", ".ragistry", "config")
    (tmp_path / "documents").mkdir()
    for folder in locked:
        root = tmp_path / f"without {folder}"
        for name in locked:
            shutil.copytree(tmp_path / name, root / name)
        (root / folder).chmod(0)
    reading = {"documents": ["ingest", "without documents/documents/tea.txt", "-c", "notes"]}
    try:
        for folder in locked:
            root = ["-w", f"without {folder}"]
            words = reading.get(folder, ["search", "x"])
            done, doctor = without_privilege([*root, *words], [*root, "doctor"], cwd=tmp_path)
            assert (done.code, done.out) == (1, "")
            check_message(done.err, folder, os.strerror(errno.EACCES))
            named = os.strerror(errno.EACCES) in doctor.out
            assert (named, doctor.code, doctor.err) == ((folder != "documents"), int(folder != "documents"), "")
            assert doctor.out.startswith("ok      versions: ")
    finally:
        for folder in locked:
            (tmp_path / f"without {folder}" / folder).chmod(0o755)
