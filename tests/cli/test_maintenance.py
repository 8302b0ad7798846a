"""The files of the store, looked after from the shell."""

from __future__ import annotations

from pathlib import Path

import pytest
from fpdf import FPDF

from ragistry.testing.ollama_server import OllamaServer
from tests.cli.conftest import Run
from tests.conftest import Corpus
from tests.messages import check_message


def test_sound_store_verifies_and_a_source_that_is_not_whole_is_listed(
    ragistry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert (done.code, done.out) == (0, "no problems found\n")
    check_message(done.err, "'tea.pdf'", "'notes'", "page 2")
    found = ragistry("verify", "--json").json
    assert (found["problems"], found["waiting"], len(found["incomplete"])) == ([], 0, 1)
    check_message(found["incomplete"][0]["lost"], "page 2")
    assert ragistry("repair").out == "nothing was broken\n"


def test_damaged_index_is_found_and_rebuilt(filled: Run, tmp_path: Path) -> None:
    segment = next(path for path in (tmp_path / ".ragistry" / "words").iterdir() if path.suffix == ".idx")
    segment.write_bytes(bytes(byte ^ 0x5A for byte in segment.read_bytes()))
    found = filled("verify")
    assert (found.code, "words" in found.out) == (1, True)
    check_message(found.err, "`ragistry repair`")
    repaired = filled("repair", "--json")
    assert (repaired.code, len(repaired.json["rebuilt"]), repaired.json["lost"]) == (0, 1, [])
    assert filled("verify").code == 0
    assert filled("search", "tea", "--technique", "bm25", "--json").json["total_results"] == 1


def test_damaged_database_is_salvaged_and_lost_sources_are_named(filled: Run, corpus: Corpus, tmp_path: Path) -> None:
    texts = {f"{name}.txt": f"Oolong number {name} is steeped. " * 12 for name in range(40)}
    assert filled("ingest", corpus(texts)).code == 0
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
    assert filled("ingest", "documents").code == 0
    assert filled("verify").code == 0
    assert filled("repair", "--discard").out == f"removed: {kept.name}\n"
    assert not kept.exists()
    assert filled("repair", "--discard").out == "no damaged files to remove\n"


def test_a_search_uses_the_recorded_model_until_reembed(filled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with OllamaServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        monkeypatch.setenv("RAGISTRY_EMBED_MODEL", "nomic-embed-text")
        found = filled("search", "tea", "-t", "naive", "--json").json
        [said] = [one["degraded"] for one in found["trace"] if one["degraded"]]
        check_message(said, "all-MiniLM-L6-v2", "nomic-embed-text", "`ragistry reembed`")
        assert found["total_results"] == 1
        done = filled("reembed", "--json")
        assert done.json == {"chunks": 1, "model": "nomic-embed-text"}
        check_message(done.err, "1 chunk")
        assert "note" not in filled("reembed").err, "nothing is left to embed"
        assert filled("search", "tea", "--technique", "naive", "--json").json["total_results"] == 1
    monkeypatch.delenv("RAGISTRY_EMBED_MODEL")
    filled("search", "tea", "--technique", "naive").refused(1, "nomic-embed-text")
