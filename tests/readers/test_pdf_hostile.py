"""What a hostile or damaged PDF leaves behind. The files themselves are cases of hostile_files.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import ExtractionError
from ragistry.readers.extract import extract
from ragistry.readers.extracted import ExtractLimits
from tests.messages import refused
from tests.readers.raw_pdf import CATALOG, bomb, one_page, raw_pdf

ENGINES = ["pypdfium2", "pypdf"]
LIMITS = ExtractLimits(seconds=10, memory=300_000_000)


def read_or_reason(path: Path, engine: str) -> str:
    try:
        return extract(path, pdf_engine=engine, limits=LIMITS).text
    except ExtractionError as refusal:
        return str(refusal)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not keep limits of memory")
def test_a_failure_leaves_no_files_and_the_next_pdf_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.pdf").write_bytes(one_page("Good"))
    noise, cycle = b"%PDF-1.7\n" + bytes(range(256)) * 500, raw_pdf(CATALOG, b"<< /Type /Pages /Kids [2 0 R] >>")
    for data in (bomb(), noise, cycle):
        Path("bad.pdf").write_bytes(data)
        with refused(ExtractionError, "bad.pdf"):
            extract("bad.pdf", limits=LIMITS)
        assert extract("good.pdf").text == "Good"
        assert sorted(os.listdir()) == ["bad.pdf", "good.pdf"]  # noqa: PTH208 - names are enough


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=20, deadline=None)
@given(edits=st.lists(st.tuples(st.integers(0, 700), st.integers(0, 255)), max_size=8), end=st.integers(0, 800))
def test_a_damaged_pdf_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, engine: str, edits: list[tuple[int, int]], end: int
) -> None:
    data = bytearray(one_page("Hello"))
    for position, byte in edits:
        data[position % len(data)] = byte
    path = tmp_path_factory.mktemp("damaged") / "a.pdf"
    path.write_bytes(data[:end])
    text = read_or_reason(path, engine)
    assert len(text) <= len("Hello") + 10 or text.startswith(repr(str(path)))
