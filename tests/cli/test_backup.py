"""`ragistry backup` and `ragistry restore`: a workspace in one file, and on another machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done

Run = Callable[..., Done]


@pytest.fixture
def filled(ragistry: Run, tmp_path: Path) -> Run:
    work = tmp_path / "work"
    assert ragistry("init", "work").code == 0
    (tmp_path / "tea.txt").write_text("Steep green tea in water of eighty degrees.", encoding="utf-8")
    assert ragistry("ingest", "tea.txt", "--collection", "notes", "-w", work).code == 0
    return ragistry


def test_a_restored_workspace_verifies_and_is_searched(filled: Run, tmp_path: Path) -> None:
    size = filled("backup", "all.zip", "-w", "work", "--json").json["size"]
    assert size == (tmp_path / "all.zip").stat().st_size
    shutil.rmtree(tmp_path / "work")
    done = filled("restore", "all.zip", "new")
    assert done.code == 0, done.err
    assert done.out.startswith("restored new: made by ragistry ")
    assert done.err == ""
    assert filled("verify", "-w", "new").out == "all is well\n"
    for technique in ("naive", "bm25", "hybrid"):
        found = filled("search", "green tea", "-t", technique, "-w", "new", "--json").json
        assert found["documents"][0]["metadata"]["source_file"] == "tea.txt"
    assert filled("ingest", "tea.txt", "--collection", "notes", "-w", "new", "--json").json["skipped"]


def test_backup_says_what_is_in_it(filled: Run) -> None:
    done = filled("backup", "all.zip", "-w", "work")
    assert done.out.startswith("wrote all.zip (")
    assert done.out.endswith(" bytes): 1 source with 1 chunk, 0 repositories\n")
    refused = filled("backup", "all.zip", "-w", "work")
    assert (refused.code, refused.err) == (
        1,
        "error: the file 'all.zip' already exists; give another name, or add --force to replace it\n",
    )
    assert filled("backup", "all.zip", "-w", "work", "--force").code == 0


def test_the_library_of_another_store_is_copied_back_to_it(filled: Run, tmp_path: Path) -> None:
    assert filled("store", "copy", "local", "chroma", "-w", "work").code == 0
    stores = tmp_path / "work" / "config" / "vector_stores.yaml"
    stores.write_text("store: {use: chroma}\n", encoding="utf-8")
    assert filled("backup", "all.zip", "-w", "work").code == 0
    done = filled("restore", "all.zip", "new")
    assert done.code == 0
    assert "`ragistry store copy local chroma -w new`" in done.err
    assert filled("store", "copy", "local", "chroma", "-w", "new").code == 0
    assert filled("search", "tea", "-t", "naive", "-w", "new", "--json").json["total_results"] == 1


def test_another_data_folder_is_told(filled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    filled("backup", "all.zip", "-w", "work")
    monkeypatch.setenv("RAGISTRY_DATA_DIR", "elsewhere")
    assert "environment RAGISTRY_DATA_DIR sets another data folder" in filled("restore", "all.zip", "new").err


def test_a_damaged_backup_gets_one_line(filled: Run, tmp_path: Path) -> None:
    filled("backup", "all.zip", "-w", "work")
    (tmp_path / "all.zip").write_bytes((tmp_path / "all.zip").read_bytes()[:-100])
    done = filled("restore", "all.zip", "new")
    assert done.code == 1
    assert done.err.startswith("error: 'all.zip' is not a whole backup of Ragistry")
    assert len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_no_workspace_is_not_backed_up(ragistry: Run, tmp_path: Path) -> None:
    assert ragistry("backup", "all.zip").code == 1
    assert list(tmp_path.iterdir()) == []
