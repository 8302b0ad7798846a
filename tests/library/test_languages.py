"""Texts in several languages: each analysed by its own, and warnings where the settings do not suit them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry import open_workspace
from ragistry.library.ingest.methods import IngestObserver
from ragistry.library.ingest.report import IngestReport
from ragistry.library.service import DocumentService
from tests.conftest import Corpus
from tests.messages import check_message

GERMAN = (
    "Die Häuser am Fluss wurden im letzten Jahrhundert gebaut. Viele von ihnen stehen heute leer, weil das Wasser im "
    "Frühling über die Ufer tritt. Der Rat der Stadt hat beschlossen, dass die Bewohner umziehen sollen. "
)
ENGLISH = (
    "The houses at the river were built in the last century. Many of them are empty today, because the water floods "
    "the banks in spring. The council of the town has decided that the people who live there should move. "
)


def test_each_source_is_analysed_by_its_own_language(tmp_path: Path) -> None:
    with open_workspace(tmp_path, language="auto") as workspace:
        workspace.library.create_collection("mixed", "Notes in two languages")
        workspace.library.ingest_text(GERMAN, "fluss.txt", "mixed")
        workspace.library.ingest_text(ENGLISH, "river.txt", "mixed")
        for query, source in (("Haus", "fluss.txt"), ("house", "river.txt"), ("umziehende", "fluss.txt")):
            found = workspace.search(query, "bm25").documents
            assert [document.metadata["source_file"] for document in found] == [source]
        assert {d.metadata["source_file"]: d.metadata["language"] for d in workspace.store.scan()} == {
            "fluss.txt": "german",
            "river.txt": "english",
        }


def test_short_source_gets_the_language_of_its_collection(tmp_path: Path) -> None:
    with open_workspace(tmp_path, language="auto") as workspace:
        workspace.library.create_collection("german", "Notizen")
        workspace.library.ingest_text(GERMAN, "fluss.txt", "german")
    with open_workspace(tmp_path, language="auto") as workspace:
        workspace.library.ingest_text("Zwei Bäume.", "baum.txt", "german")
        [found] = workspace.search("Baum", "bm25").documents
        assert found.metadata["language"] == "german"


def test_ingest_warns_where_the_text_suits_neither_words_nor_model(library: DocumentService, corpus: Corpus) -> None:
    words, model = library.ingest_folder(folder := corpus({"fluss.txt": GERMAN}), "notes").warnings
    check_message(words, "german", "auto")
    check_message(model, "multilingual")
    assert library.ingest_folder(folder, "notes").warnings == []


@pytest.mark.parametrize("language", ["english", "auto"])
def test_english_text_is_no_reason_to_warn(tmp_path: Path, corpus: Corpus, language: str) -> None:
    with open_workspace(tmp_path, language=language) as workspace:
        workspace.library.create_collection("notes", "Notes")
        assert workspace.library.ingest_folder(corpus({"a.txt": ENGLISH}), "notes").warnings == []


@pytest.mark.parametrize("store", ["local", "chroma"])
def test_it_warns_before_more_than_a_batch_is_embedded(
    tmp_path: Path, corpus: Corpus, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New and changed files, of a store that takes words first and of one that does not."""
    monkeypatch.setattr("ragistry.library.ingest.run.CHUNKS_AT_ONCE", 4)
    events: list[str] = []

    class Watching(IngestObserver):
        def planned(self, report: IngestReport) -> None:
            events.extend(report.warnings)

        def embedded(self, texts: int) -> None:
            events.append("embedded")

    with open_workspace(tmp_path, store=store) as workspace:
        workspace.library.create_collection("notes", "Notes")
        for text in (GERMAN, GERMAN + "Nun ist es anders."):
            folder = corpus({f"{number}.txt": f"{number}. {text}" for number in range(12)})
            workspace.library.ingest_folder(folder, "notes", observer=Watching())
            warned = [number for number, event in enumerate(events) if "multilingual" in event]
            assert len(warned) == 1
            assert warned[0] <= 1 < events.count("embedded")
            events.clear()
