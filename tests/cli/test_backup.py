"""`ragistry backup` and `ragistry restore`: a workspace in one file, and on another machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.messages import check_message


@pytest.fixture
def backed_up(filled: Run) -> Run:
    done = filled("backup", "all.zip")
    assert done.code == 0
    check_message(done.out, "all.zip", "1 source with 1 chunk, 0 repositories")
    return filled


def test_restored_workspace_verifies_and_is_searched(backed_up: Run, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / ".ragistry")
    done = backed_up("restore", "all.zip", "new")
    assert (done.code, done.err) == (0, "")
    check_message(done.out, "new")
    assert backed_up("verify", "-w", "new").code == 0
    for technique in ("naive", "bm25"):
        found = backed_up("search", "green tea", "-t", technique, "-w", "new", "--json").json
        assert found["documents"][0]["metadata"]["source_file"] == "tea.txt"
    assert backed_up("ingest", "tea.txt", "--collection", "notes", "-w", "new", "--json").json["skipped"]


def test_backup_replaces_a_file_with_force_only(backed_up: Run, tmp_path: Path) -> None:
    backed_up("backup", "all.zip").refused(1, "'all.zip'", "--force")
    size = backed_up("backup", "all.zip", "--force", "--json").json["size"]
    assert size == (tmp_path / "all.zip").stat().st_size


def test_restore_warns_of_data_elsewhere(backed_up: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGISTRY_DATA_DIR", "elsewhere")
    check_message(backed_up("restore", "all.zip", "other").err, "RAGISTRY_DATA_DIR")
