"""What could not be read from a file is reported at ingest and kept with its source."""

from __future__ import annotations

from pathlib import Path

import pytest
from fpdf import FPDF
from PIL import Image

from ragistry import Workspace
from ragistry.library.ingest import source
from tests.messages import check_message
from tests.readers.raw_pdf import CATALOG, ONE_PAGE, page, raw_pdf, stream

pytestmark = pytest.mark.usefixtures("embedder")


def lost(workspace: Workspace) -> dict[str, str]:
    return {info.source_file: info.lost for info in workspace.library.sources("notes")}


def test_pages_without_text_are_told_and_kept_until_the_file_is_whole(workspace: Workspace, tmp_path: Path) -> None:
    workspace.library.reading = source.ReadOptions(1000, 150)
    for name, is_whole in (("whole.pdf", True), ("otters.pdf", False)):
        pdf = FPDF()
        pdf.set_font("Helvetica")
        pdf.add_page()
        pdf.cell(text="Otters swim.")
        if not is_whole:
            pdf.add_page()
            pdf.image(Image.new("RGB", (40, 40), "grey"), w=100)
        pdf.output(str(tmp_path / name))
    report = workspace.library.ingest_paths([tmp_path / "otters.pdf", tmp_path / "whole.pdf"], "notes")
    said = lost(workspace)
    assert report.warnings == [f"otters.pdf: {said['otters.pdf']}"]
    check_message(said["otters.pdf"], "page 2")
    assert said["whole.pdf"] == ""
    (tmp_path / "whole.pdf").replace(tmp_path / "otters.pdf")
    workspace.library.ingest_paths([tmp_path / "otters.pdf"], "notes")
    assert lost(workspace)["otters.pdf"] == ""


def test_letters_that_fonts_do_not_tell_are_counted(workspace: Workspace, tmp_path: Path) -> None:
    codes = b"/Differences [65 /g1 /g2 /g3]"
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Odd /ToUnicode 6 0 R /Encoding << %s >> >>" % codes
    mapped = stream(b"1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <41> <43> <e001> endbfrange")
    shown = stream(b"BT /F1 12 Tf 72 720 Td (AB AC CA some words) Tj ET")
    (tmp_path / "odd.pdf").write_bytes(raw_pdf(CATALOG, ONE_PAGE, page(), shown, font, mapped))
    workspace.library.ingest_paths([tmp_path / "odd.pdf"], "notes")
    check_message(lost(workspace)["odd.pdf"])


def test_text_in_no_chunk_is_counted(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = source.chunks_of
    monkeypatch.setattr(source, "chunks_of", lambda *arguments: whole(*arguments)[:-1])
    (tmp_path / "tea.txt").write_text("\n\n".join(f"Steep tea number {number}. " * 60 for number in range(3)))
    report = workspace.library.ingest_paths([tmp_path / "tea.txt"], "notes")
    assert report.added == ["tea.txt"], report
    check_message(report.warnings[0], lost(workspace)["tea.txt"])
