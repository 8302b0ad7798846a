"""Each kind of content of each format is read, and each phrase is at the place that is named for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragistry.chunking.chunker import chunk_document
from ragistry.chunking.places import place_at
from ragistry.errors import ExtractionError
from ragistry.readers.extract import extract
from ragistry.types import Document
from tests.readers.planted_files import OFFICE, PLANTED, Planted

SOME_OFFICE = [one for one in OFFICE if one.kind in ("paragraphs", "comments", "comments on cells", "notes of slides")]


@pytest.mark.parametrize("planted", [*PLANTED, *SOME_OFFICE], ids=lambda one: f"{one.suffix} {one.kind}")
def test_planted_phrases_are_read_at_their_places(tmp_path: Path, planted: Planted) -> None:
    path = tmp_path / f"planted{planted.suffix}"
    path.write_bytes(planted.make())
    chunks = chunk_document(path, 400, 0)
    for number, phrase in enumerate(planted.phrases):
        words = re.compile(phrase.replace(" ", r"\s+") + r"(?!\d)")
        found = [(chunk, at) for chunk in chunks if (at := words.search(chunk.text))]
        assert found, phrase
        if planted.place is not None:
            named = [place_at(Document(chunk.text, chunk.metadata, 1.0), at.start()) for chunk, at in found]
            assert any(one | planted.place(number) == one for one in named), (phrase, named)


@pytest.mark.parametrize("planted", PLANTED[::3], ids=lambda one: f"{one.suffix} {one.kind}")
def test_message_about_a_damaged_file_names_no_error_of_python(tmp_path: Path, planted: Planted) -> None:
    whole = planted.make()
    path = tmp_path / f"planted{planted.suffix}"
    for part in range(8):
        at = len(whole) * part // 8
        path.write_bytes(whole[:at] + whole[at + 30 :])
        try:
            said = " ".join(extract(path).warnings)
        except ExtractionError as error:
            said = str(error)
        assert not re.search(r"[A-Z]\w*Error", said), said
