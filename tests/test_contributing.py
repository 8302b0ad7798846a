"""The recipes of CONTRIBUTING.md run on a copy of the package, and its reading order leads along the calls."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest

from ragistry import Workspace
from tests.conftest import ROOT, Corpus

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
COLUMN, STORE = re.findall(r"^```diff\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
USE_COLUMN = """
from pathlib import Path

from ragistry import connect, open_workspace
from tests.serving import served

Path("config").mkdir()
Path("config/documents.yaml").write_text("language: auto\\n")
with open_workspace(".") as workspace:
    workspace.library.create_collection("notes", "Notes")
    text = "Der Garten braucht im Sommer jeden Abend Wasser, und die Pumpe steht hinter dem Haus. " * 9
    workspace.library.ingest_text(text, "garden.txt", "notes", metadata={"author": "Ann"})
    [local] = workspace.library.sources("notes")
    assert local.language, local
    with served(workspace) as address, connect(address) as client:
        [sent] = client.library.sources("notes")
    for name in ("source", "source_hash", "ingested_at", "source_path", "lost", "metadata", "set_keys"):
        assert getattr(sent, name) == getattr(local, name), name
"""
USE_STORE = """
from ragistry.plugins import find_class

store = find_class("redis", "ragistry.stores", "store")
assert store.Config(url="redis://localhost").url == "redis://localhost"
store(url="redis://localhost", collection="notes")
"""


def applied(diff: str, folder: Path) -> Path:
    """Return a copy of the package to which the diff was applied; each hunk stands below the line that it names."""
    shutil.copytree(ROOT / "ragistry", folder / "ragistry", ignore=shutil.ignore_patterns("__pycache__"))
    for part in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
        name, *lines = part.splitlines()
        if name == "/dev/null":
            path = folder / lines[0].removeprefix("+++ ")
            path.parent.mkdir()
            path.write_text("\n".join(line[1:] for line in lines[1:]) + "\n", encoding="utf-8")
            continue
        path = folder / name
        before, place, after = path.read_text(encoding="utf-8").partition(lines[0].removeprefix("@@ "))
        assert place, lines[0]
        old = "\n".join(line[1:] for line in lines[1:] if line[0] == " ")
        assert old in after, old
        new = "\n".join(line[1:] for line in lines[1:])
        path.write_text(before + place + (after.replace(old, new, 1) if old else f"\n{new}{after}"), encoding="utf-8")
    return folder


@pytest.mark.parametrize(("diff", "program"), [(COLUMN, USE_COLUMN), (STORE, USE_STORE)], ids=["column", "store"])
def test_recipe_runs(diff: str, program: str, tmp_path: Path) -> None:
    folder = applied(diff, tmp_path)
    search = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(ROOT)!r}]\n"
    command = [sys.executable, "-P", "-c", search + program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr


def test_reading_order_leads_along_the_calls(workspace: Workspace, corpus: Corpus) -> None:
    entered: list[str] = []
    folder = corpus({"pump.md": "Drain the pump.", "valve.md": "Close the valve."})
    workspace.library.ingest_file(folder / "pump.md", "notes")
    workspace.search("pump", technique="naive")  # builds the technique and opens the index

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT / "ragistry")):
            entered.append(Path(frame.f_code.co_filename).relative_to(ROOT / "ragistry").as_posix())

    for words, run in (
        ("a search", lambda: workspace.search("pump", technique="naive", collection="notes")),
        ("an ingest", lambda: workspace.library.ingest_file(folder / "valve.md", "notes")),
    ):
        entered.clear()
        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            run()
        finally:
            sys.setprofile(before)
        [listed] = re.findall(rf"^- {words}: (.*?)\n(?=-|\n)", TEXT, flags=re.MULTILINE | re.DOTALL)
        files = re.findall(r"`(\S+\.py)`", listed)
        assert (len(files), [file for file in files if file not in entered]) == (7, []), words
