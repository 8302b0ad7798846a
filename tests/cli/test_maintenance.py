"""The files of the store, looked after from the shell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fpdf import FPDF

from ragistry.testing.ollama_server import OllamaServer
from tests.cli.conftest import Done

Run = Callable[..., Done]


@pytest.fixture
def filled(ragistry: Run, tmp_path: Path) -> Run:
    (tmp_path / "tea.txt").write_text("Steep green tea in water of eighty degrees.", encoding="utf-8")
    assert ragistry("ingest", "tea.txt", "--collection", "notes").code == 0
    return ragistry


def test_a_sound_store_is_said_to_be_so(filled: Run) -> None:
    done = filled("verify")
    assert (done.code, done.out) == (0, "all is well\n")
    assert filled("verify", "--json").json == {"problems": [], "incomplete": []}
    assert filled("repair").out == "nothing was broken\n"


def test_a_source_that_is_not_whole_is_listed(ragistry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGISTRY_OCR", "never")
    pdf = FPDF()
    pdf.set_font("Helvetica")
    pdf.add_page()
    pdf.cell(text="Steep green tea.")
    pdf.add_page()
    pdf.rect(10, 10, 50, 50)
    pdf.output(str(tmp_path / "tea.pdf"))
    assert ragistry("ingest", "tea.pdf", "--collection", "notes").code == 0
    done = ragistry("verify")
    assert (done.code, done.out) == (0, "all is well\n")
    assert done.err.startswith("incomplete: 'tea.pdf' of collection 'notes': ")
    [row] = ragistry("verify", "--json").json["incomplete"]
    assert row["lost"].startswith("page 2 has an image or a drawing and no text; ")


def test_a_damaged_index_is_found_and_made_again(filled: Run, tmp_path: Path) -> None:
    segment = next(path for path in (tmp_path / ".ragistry" / "words").iterdir() if path.suffix == ".idx")
    segment.write_bytes(bytes(byte ^ 0x5A for byte in segment.read_bytes()))
    found = filled("verify")
    assert found.code == 1
    assert "words" in found.out
    assert "`ragistry repair`" in found.err
    repaired = filled("repair", "--json")
    assert (repaired.code, len(repaired.json["rebuilt"]), repaired.json["lost"]) == (0, 1, [])
    assert filled("verify").code == 0
    assert filled("search", "tea", "--technique", "bm25", "--json").json["total_results"] == 1


def test_a_damaged_database_is_salvaged_and_what_was_lost_is_named(filled: Run, tmp_path: Path) -> None:
    for name in range(40):
        (tmp_path / f"{name}.txt").write_text(f"Oolong number {name} is steeped. " * 40, encoding="utf-8")
    assert filled("ingest", *(f"{name}.txt" for name in range(40)), "--collection", "notes").code == 0
    database = tmp_path / ".ragistry" / "store.db"
    content = bytearray(database.read_bytes())
    page = content.index(b"Oolong number 20 is") // 8192 * 8192
    content[page : page + 8192] = b"\xa5" * 8192
    database.write_bytes(content)
    assert filled("verify").code == 1
    repaired = filled("repair")
    assert repaired.code == 1
    assert "lost: " in repaired.out
    assert "20.txt --collection notes`" in repaired.out
    [kept] = tmp_path.glob(".ragistry/store.db.damaged-*")
    assert f"kept: {kept}" in repaired.out
    assert filled("ingest", "20.txt", "--collection", "notes").code == 0
    assert filled("verify").code == 0
    assert filled("repair", "--discard").out == f"removed: {kept.name}\n"
    assert not kept.exists()
    assert filled("repair", "--discard").out == "no damaged files to remove\n"


def test_a_damaged_truth_is_said_plainly(filled: Run, tmp_path: Path) -> None:
    (tmp_path / ".ragistry" / "store.db").write_bytes(b"not a database at all" * 1000)
    done = filled("search", "tea")
    assert done.code == 1
    assert "store.db" in done.err
    assert "backup" in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_another_model_is_refused_until_reembed(filled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with OllamaServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        monkeypatch.setenv("RAGISTRY_EMBED_MODEL", "nomic-embed-text")
        refused = filled("search", "tea", "--technique", "naive")
        assert refused.code == 1
        assert "all-MiniLM-L6-v2" in refused.err
        assert "`ragistry reembed`" in refused.err
        assert filled("reembed", "--json").json == {"chunks": 1, "model": "nomic-embed-text"}
        assert filled("search", "tea", "--technique", "naive", "--json").json["total_results"] == 1
    monkeypatch.delenv("RAGISTRY_EMBED_MODEL")
    assert "nomic-embed-text" in filled("search", "tea", "--technique", "naive").err


def test_a_second_writer_is_told_who_is_writing(filled: Run, tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys, time\nfrom ragistry.stores.local import LocalStore\n"
        "store = LocalStore('.ragistry', exclusive=True)\nprint('ready', flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        (tmp_path / "rain.txt").write_text("Rain in the afternoon.", encoding="utf-8")
        done = filled("ingest", "rain.txt")
        assert done.code == 1
        assert f"process {other.pid}" in done.err
        assert filled("search", "tea", "--json").json["total_results"] == 1, "reading goes on"
        other.kill()
    assert filled("ingest", "rain.txt").code == 0
