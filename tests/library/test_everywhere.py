"""What a library promises on every store and through a client: ingest, search, list, move, rename, delete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from ragistry import RemoteWorkspace, Workspace, open_workspace
from ragistry.errors import (
    CollectionAlreadyExistsError,
    CollectionNotFoundError,
    ConfigError,
    EmptyQueryError,
    ExtractionError,
    InvalidCollectionNameError,
    InvalidFilterError,
    InvalidLimitError,
    SourceError,
    SourceNotFoundError,
    UnknownTechniqueError,
    UnsupportedFormatError,
)
from ragistry.library.ingest.source import SourceBytes
from ragistry.types import RetrievalResult
from ragistry.utils.ids import chunk_id
from tests.conftest import Corpus, everywhere

Either = Workspace | RemoteWorkspace
with_words = pytest.mark.parametrize("workspace", ["local", "client", "postgres"], indirect=True)
"""Chroma does not search words."""
on_stores = pytest.mark.parametrize("workspace", ["local", "postgres", "chroma"], indirect=True)
"""A client has no store, only the library."""

OOLONG = 'leaves/a "quoted", größer.txt'
DOCUMENTS = {
    "black.md": "# Black tea\n\nBoiling water, four minutes.",
    "leaves/green.txt": "Steep green tea in water of eighty degrees.",
    OOLONG: "Oolong rests in a gaiwan.",
    "empty.md": "",
    "broken.pdf": "%PDF-1.4 nothing",
}
NAMES = ["black.md", OOLONG, "leaves/green.txt"]


@pytest.fixture
def folder(corpus: Corpus) -> Path:
    return corpus(DOCUMENTS)


@pytest.fixture
def filled(workspace: Either) -> Either:
    """Two texts in ``notes``, one in ``garden``."""
    workspace.library.create_collection("garden", "Soil, plants and weeds", "The garden")
    workspace.library.ingest_text("Steep green tea in water of eighty degrees.", "tea", "notes")
    workspace.library.ingest_text("A cold front brings rain.\r\nAnd snow.", "weather/rain", "notes")
    workspace.library.ingest_text("Compost makes the soil of a garden loose.", "soil", "garden")
    return workspace


def sources_of(result: RetrievalResult) -> list[str]:
    return [document.metadata["source_file"] for document in result.documents]


@everywhere
def test_ingest_folder_adds_new_files_and_reports_the_others(workspace: Either, folder: Path) -> None:
    library, seen = workspace.library, list[tuple[str, int, int]]()
    report = library.ingest_folder(folder, "notes", progress=lambda *step: seen.append(step))
    assert (sorted(report.added), report.updated, report.skipped) == (NAMES, [], ["empty.md"])
    assert [(type(one.cause), Path(one.source).name) for one in report.failed] == [(ExtractionError, "broken.pdf")]
    assert [warning.split(":")[0] for warning in report.warnings] == ["empty.md"]
    assert report.chunks == report.embedded == library.count("notes") == library.count() == 3
    assert seen[-1] == ("", 5, 5)
    assert library.list_sources("notes") == NAMES


@everywhere
def test_ingest_folder_updates_changed_files_and_prunes_missing_ones(
    workspace: Either, folder: Path, corpus: Corpus
) -> None:
    library = workspace.library
    library.ingest_text("A note about tea.", "note", "notes")
    library.ingest_folder(other := corpus({"white.txt": "White tea."}, "other"), "notes")
    library.ingest_folder(folder, "notes")
    again = library.ingest_folder(folder, "notes")
    assert (sorted(again.skipped), again.chunks, again.updated) == (["black.md", "empty.md", *NAMES[1:]], 0, [])
    corpus({"black.md": "# Black tea\n\nMatcha is whisked with a bamboo brush."})
    (folder / "leaves" / "green.txt").unlink()
    report = library.ingest_folder(folder, "notes")
    assert (report.updated, report.vanished, report.deleted) == (["black.md"], ["leaves/green.txt"], [])
    assert sources_of(workspace.search("bamboo brush", "naive", top_k=1)) == ["black.md"]
    (other / "white.txt").unlink()
    report = library.ingest_paths([folder], "notes", prune=True)
    assert report.vanished == report.deleted == ["leaves/green.txt"]
    with pytest.raises(SourceError):
        library.ingest_folder(other, "notes", prune=True)
    assert library.list_sources("notes") == ["black.md", OOLONG, "note", "white.txt"]


@everywhere
def test_ingest_returns_the_number_of_chunks_written(workspace: Either, folder: Path) -> None:
    library = workspace.library
    library.create_collection("other")
    for collection in ("notes", "other"):
        assert [library.ingest_file(folder / "black.md", collection) for _ in range(2)] == [1, 0]
        assert [library.ingest_text("Rain.\r\nAnd snow.", "a/rain", collection) for _ in range(2)] == [1, 0]
    added = library.ingest_paths([folder / "leaves", folder / "black.md"], "other").added
    assert sorted(added) == ['a "quoted", größer.txt', "green.txt"]
    with ZipFile(folder / "tea.zip", "w") as archive:
        archive.writestr("green.md", "# Green\n\nWater of eighty degrees.")
    paths = [folder / "tea.zip", SourceBytes(b"# Note\n\nA gaiwan.", "note.md")]
    assert sorted(library.ingest_paths(paths, "notes").added) == ["note.md", "tea.zip/green.md"]
    assert library.ingest_paths(paths, "notes").added == []
    assert {row["name"]: row["source_count"] for row in library.list_collections()} == {"notes": 4, "other": 4}


@everywhere
def test_search_finds_by_meaning_in_one_collection_or_all(filled: Either) -> None:
    result = filled.search("how hot should the water be?", "naive", top_k=1)
    [document] = result.documents
    assert document.id == chunk_id("notes", "tea", 0)
    assert document.content == "Steep green tea in water of eighty degrees."
    assert {key: document.metadata[key] for key in ("source", "source_file", "collection", "type", "chunk_index")} == {
        "source": "tea", "source_file": "tea", "collection": "notes", "type": "document", "chunk_index": 0,
    }  # fmt: skip
    assert len(document.metadata["source_hash"]) == 64
    assert (result.query, result.total_results, result.degraded) == ("how hot should the water be?", 1, ())
    assert result.trace[0].name == "naive"
    assert document.scores[-1].value == document.score
    assert len(filled.search("water", "naive").documents) == 3
    assert sources_of(filled.search("water", "naive", "garden")) == ["soil"]
    assert sources_of(filled.search("water", "naive", where={"source_file": {"$in": {"soil"}}})) == ["soil"]
    assert sources_of(filled.library.search("rain", "notes", 1, technique="naive")) == ["weather/rain"]


@with_words
def test_search_finds_by_words_and_by_default_with_both(filled: Either) -> None:
    assert sources_of(filled.search("compost rain", "bm25")) == ["weather/rain", "soil"]
    assert sources_of(filled.search("compost rain", "bm25", "garden")) == ["soil"]
    result = filled.search("how hot should the water be?", top_k=1)
    assert sources_of(result) == ["tea"]
    names = ["hybrid", "naive", "embed", "search", "bm25", "search", "fuse"]
    assert [stage.name for stage in result.trace] == names
    assert sum(stage.model_calls for stage in result.trace) == 1


@everywhere
def test_a_query_is_routed_to_the_collection_that_fits(filled: Either) -> None:
    assert sources_of(filled.search("compost for soil", "routed"))[0] == "soil"
    assert filled.route("compost for soil").chosen == ("garden",) if isinstance(filled, RemoteWorkspace) else True


@on_stores
def test_every_technique_that_the_store_supports_searches_it(filled: Workspace) -> None:
    has_words = "text" in filled.store.abilities
    assert filled.registry.entry("distinct").base == ("hybrid" if has_words else "naive")
    for technique in filled.registry.names():
        needs_words = technique in ("bm25", "hybrid", "graph")
        if not filled.registry.missing_model(technique) and (has_words or not needs_words):
            assert sources_of(filled.search("compost for the soil", technique))[0] == "soil", technique
    if not has_words:
        for technique in ("bm25", "hybrid"):
            with pytest.raises(ConfigError) as caught:
                filled.search("tea", technique)
            assert "\n" not in str(caught.value)


@everywhere
def test_lists_name_every_source_and_collection_with_counts(filled: Either) -> None:
    library = filled.library
    library.create_collection("empty")
    assert library.list_collections() == [
        {"name": "notes", "display_name": "notes", "description": "Notes about everything",
         "source_count": 2, "chunk_count": 2},
        {"name": "garden", "display_name": "The garden", "description": "Soil, plants and weeds",
         "source_count": 1, "chunk_count": 1},
        {"name": "empty", "display_name": "empty", "description": "", "source_count": 0, "chunk_count": 0},
    ]  # fmt: skip
    library.ingest_text("Weeds.", "tea", "garden")
    assert library.list_sources() == ["soil", "tea", "weather/rain"]
    assert library.list_sources("garden") == ["soil", "tea"]
    rows = [(row["collection"], row["source_file"], row["chunk_count"]) for row in library.list_sources_detail()]
    assert rows == [("garden", "soil", 1), ("garden", "tea", 1), ("notes", "tea", 1), ("notes", "weather/rain", 1)]
    assert [(info.collection, info.source_file) for info in library.sources()] == [row[:2] for row in rows]
    assert library.source("weather/rain", "notes").chunks == 1
    assert [library.count(name) for name in (None, "notes", "garden", "empty")] == [4, 2, 2, 0]


@everywhere
def test_collections_and_sources_are_described_moved_renamed_and_deleted(filled: Either) -> None:
    library = filled.library
    library.update_description("garden", "Everything green")
    assert library.move_source("tea", "notes", "garden") == 1
    assert sources_of(filled.search("hot water", "naive", "notes")) == ["weather/rain"]
    assert library.rename_collection("garden", "plot") == 2
    assert library.list_collections()[1] == {
        "name": "plot", "display_name": "The garden", "description": "Everything green",
        "source_count": 2, "chunk_count": 2,
    }  # fmt: skip
    library.update_description("plot", display_name="Plot")
    assert [row["display_name"] for row in library.list_collections()] == ["notes", "Plot"]
    assert filled.search("hot water", "naive", "plot").documents[0].metadata["collection"] == "plot"
    assert library.ingest_text("Another tea.", "tea", "notes") == 1
    with pytest.raises(SourceError):
        library.move_source("tea", "notes", "plot")
    assert library.move_source("tea", "notes", "plot", overwrite=True) == 1
    assert library.list_sources("plot") == ["soil", "tea"]
    assert library.delete_source("tea", "plot") == 1
    with pytest.raises(SourceNotFoundError):
        library.delete_sources(["soil", "tea"], "plot")
    assert library.delete_sources(["soil"], "plot") == 1
    assert library.delete_collection("plot") == 0
    assert library.delete_collection("notes") == 1
    assert (library.list_collections(), library.count(), library.orphans()) == ([], 0, [])


@on_stores
def test_two_workspaces_write_and_read_at_once(filled: Workspace) -> None:
    with open_workspace(filled.root) as other:
        other.library.ingest_text("Oolong is half oxidised.", "oolong", "notes")
        assert sources_of(filled.search("oolong", top_k=1)) == ["oolong"]
        filled.library.ingest_text("Mulch keeps the weeds away.", "mulch", "garden")
        assert sources_of(other.search("weeds and mulch", top_k=1)) == ["mulch"]
    filled.close()
    with open_workspace(filled.root) as again:
        assert again.library.count() == 5


REFUSED: list[tuple[Callable[[Any, Path], object], type[Exception]]] = [
    (lambda it, _: it.search(" "), EmptyQueryError),
    (lambda it, _: it.search("x", top_k=0), InvalidLimitError),
    (lambda it, _: it.search("x", top_k=10_000), InvalidLimitError),
    (lambda it, _: it.search("x", where={}), InvalidFilterError),
    (lambda it, _: it.search("x", technique="nothing"), UnknownTechniqueError),
    (lambda it, _: it.search("x", collection="nothing"), CollectionNotFoundError),
    (lambda it, _: it.library.answer("who writes it"), ConfigError),
    (lambda it, _: it.library.count("a/b"), CollectionNotFoundError),
    (lambda it, _: it.library.list_sources("nothing"), CollectionNotFoundError),
    (lambda it, _: it.library.source("nothing", "notes"), SourceNotFoundError),
    (lambda it, _: it.library.create_collection("notes"), CollectionAlreadyExistsError),
    (lambda it, _: it.library.create_collection("a b"), InvalidCollectionNameError),
    (lambda it, _: it.library.update_description("notes"), ConfigError),
    (lambda it, _: it.library.update_description("nothing", "x"), CollectionNotFoundError),
    (lambda it, _: it.library.rename_collection("nothing", "x"), CollectionNotFoundError),
    (lambda it, _: it.library.rename_collection("garden", "notes"), CollectionAlreadyExistsError),
    (lambda it, _: it.library.rename_collection("garden", "../x"), InvalidCollectionNameError),
    (lambda it, _: it.library.delete_collection("nothing"), CollectionNotFoundError),
    (lambda it, _: it.library.delete_source("te", "notes"), SourceNotFoundError),
    (lambda it, _: it.library.move_source("te", "notes", "garden"), SourceNotFoundError),
    (lambda it, _: it.library.move_source("tea", "notes", "nothing"), CollectionNotFoundError),
    (lambda it, _: it.library.move_source("tea", "notes", "notes"), SourceError),
    (lambda it, _: it.library.move_source("tea", "notes", "notes", overwrite=True), SourceError),
    (lambda it, _: it.library.ingest_text("x", "x", "nothing"), CollectionNotFoundError),
    (lambda it, folder: it.library.ingest_file(folder / "nothing.md", "notes"), SourceNotFoundError),
    (lambda it, folder: it.library.ingest_file(folder / "broken.pdf", "notes"), ExtractionError),
    (lambda it, folder: it.library.ingest_file(folder / "sound.mp3", "notes"), UnsupportedFormatError),
    (lambda it, folder: it.library.ingest_file(folder, "notes"), SourceError),
    (lambda it, folder: it.library.ingest_folder(folder / "nothing", "notes"), SourceNotFoundError),
    (lambda it, folder: it.library.ingest_folder(folder, "nothing"), CollectionNotFoundError),
    (lambda it, folder: it.library.ingest_paths([folder / "nothing"], "notes"), SourceNotFoundError),
]


@everywhere
def test_a_wrong_call_raises_the_same_error_and_changes_nothing(filled: Either, folder: Path, corpus: Corpus) -> None:
    corpus({"sound.mp3": b"ID3\x04\0\0\0\0\0\x23TSSE\0\0"})
    before = filled.library.list_collections()
    for number, (call, expected) in enumerate(REFUSED):
        with pytest.raises(expected) as raised:
            call(filled, folder)
        assert "\n" not in str(raised.value), number
        assert type(raised.value) is expected, number
    assert filled.library.list_collections() == before
    assert filled.library.list_sources() == ["soil", "tea", "weather/rain"]
