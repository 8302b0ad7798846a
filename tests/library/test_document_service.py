"""The document service as a caller of it sees it: chunks, sources, and several collections beside each other."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ragistry import Workspace
from ragistry.errors import (
    CollectionAlreadyExistsError,
    CollectionNotFoundError,
    EmbeddingGenerationError,
    InvalidCollectionNameError,
    SourceError,
    SourceNotFoundError,
)
from ragistry.library.service import DocumentService
from ragistry.types import Document, SourceInfo
from ragistry.utils.ids import chunk_id

TEXT = "\n\n".join(
    f"Paragraph {number} is about {topic}. " + f"It says what there is to say about {topic}, and no more. " * 12
    for number, topic in enumerate(["tea", "rain", "snow", "wind"])
)


@pytest.fixture
def library(workspace: Workspace) -> DocumentService:
    workspace.library.create_collection("econ", "Macro and micro theory", "Economics Research")
    return workspace.library


@pytest.fixture
def nobody_embeds(library: DocumentService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever calls the model fails."""

    def embed(*_: object, **__: object) -> None:
        raise AssertionError("the model was called")

    monkeypatch.setattr(type(library.embedder), "embed", embed)


def stored(library: DocumentService, collection: str, source: str | None = None) -> list[Document]:
    documents = [
        document
        for document in library.store.scan({"collection": collection})
        if source in (None, document.metadata["source_file"])
    ]
    return sorted(documents, key=lambda document: document.metadata["chunk_index"])


def test_chunk_splits_text(library: DocumentService) -> None:
    assert library.ingest_text(TEXT, "weather.txt", "notes") > 1
    size = library.reading.chunk_size
    assert all(0 < len(document.content) <= size for document in stored(library, "notes"))


def test_chunk_overlap(library: DocumentService) -> None:
    from dataclasses import replace

    library.reading = replace(library.reading, chunk_size=300, chunk_overlap=50, fit=False)
    library.ingest_text("x" * 1000, "unbroken.txt", "notes")
    documents = stored(library, "notes")
    assert len(documents) == 4
    for one, other in pairwise(documents):
        assert one.metadata["end"] - other.metadata["start"] == 50
        assert one.content[-50:] == other.content[:50]


def test_chunk_short_text(library: DocumentService) -> None:
    assert library.ingest_text("Tea is hot.", "tea.txt", "notes") == 1
    assert [document.content for document in stored(library, "notes")] == ["Tea is hot."]


def test_ingest_text_returns_chunk_count(library: DocumentService) -> None:
    written = library.ingest_text(TEXT, "weather.txt", "notes")
    assert written == library.count("notes") == len(stored(library, "notes")) > 1


def test_search_returns_results(library: DocumentService) -> None:
    library.ingest_text(TEXT, "weather.txt", "notes")
    library.ingest_text("Inflation is a rise of prices.", "prices.txt", "econ")
    result = library.search("how do prices rise?", n=1)
    assert [document.metadata["source_file"] for document in result.documents] == ["prices.txt"]
    assert {document.metadata["collection"] for document in library.search("prices", "notes").documents} == {"notes"}


def test_deterministic_ids_no_duplicates(library: DocumentService) -> None:
    written = library.ingest_text(TEXT, "weather.txt", "notes")
    ids = [document.id for document in stored(library, "notes")]
    assert library.ingest_text(TEXT, "weather.txt", "notes") == 0
    assert library.ingest_text(f"{TEXT} And hail.", "weather.txt", "notes") == written
    assert [document.id for document in stored(library, "notes")] == ids
    assert ids == [chunk_id("notes", "weather.txt", index) for index in range(written)]


def test_list_sources(library: DocumentService) -> None:
    for name, collection in (("tea.txt", "notes"), ("rain.txt", "notes"), ("tea.txt", "econ")):
        library.ingest_text(f"About {name}.", name, collection)
    assert library.list_sources() == ["rain.txt", "tea.txt"]
    assert library.list_sources("econ") == ["tea.txt"]
    assert [(row["collection"], row["source_file"], row["chunk_count"]) for row in library.list_sources_detail()] == [
        ("econ", "tea.txt", 1),
        ("notes", "rain.txt", 1),
        ("notes", "tea.txt", 1),
    ]


def test_delete_source(library: DocumentService) -> None:
    written = library.ingest_text(TEXT, "weather.txt", "notes")
    library.ingest_text("Another.", "other.txt", "notes")
    assert library.delete_source("weather.txt", "notes") == written
    assert (library.list_sources("notes"), library.count("notes")) == (["other.txt"], 1)
    with pytest.raises(SourceNotFoundError, match="no source 'weather.txt' in collection 'notes'"):
        library.delete_source("weather.txt", "notes")


def test_metadata_stored(library: DocumentService) -> None:
    library.ingest_text(TEXT, "weather.txt", "notes")
    for document in library.search("wind").documents:
        metadata = document.metadata
        assert (metadata["source_file"], metadata["collection"], metadata["type"]) == (
            "weather.txt",
            "notes",
            "document",
        )
        assert document.id == chunk_id("notes", "weather.txt", metadata["chunk_index"])


def test_the_same_file_name_in_two_collections_never_collides(library: DocumentService) -> None:
    library.ingest_text("Finance of firms.", "Finance.pdf", "notes")
    library.ingest_text("Finance of states, and of their banks.", "Finance.pdf", "econ")
    assert library.count("notes") == library.count("econ") == 1
    assert stored(library, "notes")[0].id != stored(library, "econ")[0].id
    library.delete_source("Finance.pdf", "notes")
    assert [document.content for document in stored(library, "econ")] == ["Finance of states, and of their banks."]


def test_count_per_collection(library: DocumentService) -> None:
    written = library.ingest_text(TEXT, "weather.txt", "notes")
    library.ingest_text("Prices rise.", "prices.txt", "econ")
    assert (library.count(), library.count("notes"), library.count("econ")) == (written + 1, written, 1)
    with pytest.raises(CollectionNotFoundError, match="no collection 'eco'; did you mean 'econ'"):
        library.count("eco")


def test_collections_are_made_described_renamed_and_deleted(library: DocumentService) -> None:
    written = library.ingest_text(TEXT, "weather.txt", "econ")
    library.update_description("econ", "Everything about money")
    assert library.rename_collection("econ", "money") == written
    listed = library.list_collections()[1]
    assert listed == {
        "name": "money",
        "display_name": "Economics Research",
        "description": "Everything about money",
        "source_count": 1,
        "chunk_count": written,
    }, "the display name is edited apart"
    library.update_description("money", display_name="Money")
    assert library.list_collections()[1]["display_name"] == "Money"
    assert library.list_collections()[1]["description"] == "Everything about money"
    assert library.delete_collection("money") == written
    assert [row["name"] for row in library.list_collections()] == ["notes"]
    assert library.store.count() == 0
    for change in (
        lambda: library.delete_collection("money"),
        lambda: library.rename_collection("money", "cash"),
        lambda: library.update_description("money", "Gone"),
    ):
        with pytest.raises(CollectionNotFoundError, match="no collection 'money'"):
            change()


def test_a_name_that_is_taken_or_malformed_is_refused(library: DocumentService) -> None:
    with pytest.raises(CollectionAlreadyExistsError, match="'notes' exists"):
        library.rename_collection("econ", "notes")
    with pytest.raises(InvalidCollectionNameError, match=r"'\.\./x' cannot name a collection"):
        library.rename_collection("econ", "../x")
    with pytest.raises(CollectionAlreadyExistsError):
        library.create_collection("econ")
    assert [row["name"] for row in library.list_collections()] == ["notes", "econ"]


@pytest.mark.usefixtures("nobody_embeds")
def test_deleting_and_describing_an_empty_collection_needs_no_model(library: DocumentService) -> None:
    library.update_description("econ", "Money")
    assert library.rename_collection("econ", "money") == 0
    assert library.delete_collection("money") == 0


def test_move_source(library: DocumentService, request: pytest.FixtureRequest) -> None:
    written = library.ingest_text(TEXT, "weather.txt", "notes")
    before = stored(library, "notes")
    vectors = library.store.vectors([document.id for document in before])
    request.getfixturevalue("nobody_embeds")
    assert library.move_source("weather.txt", "notes", "econ") == written
    after = stored(library, "econ")
    assert [document.id for document in after] == [chunk_id("econ", "weather.txt", n) for n in range(written)]
    assert [document.content for document in after] == [document.content for document in before]
    assert [document.metadata for document in after] == [
        document.metadata | {"collection": "econ"} for document in before
    ]
    assert np.array_equal(library.store.vectors([document.id for document in after]), vectors)
    assert (library.count("notes"), library.list_sources("notes")) == (0, [])
    assert library.ingest_text(TEXT, "weather.txt", "econ") == 0, "it is the same source there"


def test_what_was_moved_is_searched_where_it_is(library: DocumentService) -> None:
    library.ingest_text("Prices rise.", "prices.txt", "notes")
    library.move_source("prices.txt", "notes", "econ")
    assert library.search("prices", "notes").documents == []
    assert [document.metadata["collection"] for document in library.search("prices", "econ").documents] == ["econ"]


def test_move_onto_an_existing_source_needs_overwrite(library: DocumentService, request: pytest.FixtureRequest) -> None:
    written = library.ingest_text(TEXT, "weather.txt", "notes")
    library.ingest_text("An older text.", "weather.txt", "econ")
    with pytest.raises(SourceError, match=r"'econ' has a source 'weather.txt'; overwrite it \(`--overwrite`\)"):
        library.move_source("weather.txt", "notes", "econ")
    assert (library.count("notes"), library.count("econ")) == (written, 1)
    vectors = library.store.vectors([document.id for document in stored(library, "notes")])
    request.getfixturevalue("nobody_embeds")
    assert library.move_source("weather.txt", "notes", "econ", overwrite=True) == written
    after = stored(library, "econ")
    assert [document.id for document in after] == [chunk_id("econ", "weather.txt", n) for n in range(written)]
    assert np.array_equal(library.store.vectors([document.id for document in after]), vectors)
    assert (library.count("notes"), library.count("econ")) == (0, written)


def test_an_overwrite_that_fails_leaves_both(library: DocumentService, monkeypatch: pytest.MonkeyPatch) -> None:
    written = library.ingest_text(TEXT, "weather.txt", "notes")
    library.ingest_text("An older text.", "weather.txt", "econ")
    monkeypatch.setattr(library.store, "replace_source", _full_disk)
    with pytest.raises(OSError, match="no space"):
        library.move_source("weather.txt", "notes", "econ", overwrite=True)
    assert (library.count("notes"), library.count("econ")) == (written, 1)


def _full_disk(*_: object) -> None:
    raise OSError("no space left")


def test_moves_that_go_nowhere(library: DocumentService) -> None:
    library.ingest_text("Prices rise.", "prices.txt", "notes")
    with pytest.raises(SourceNotFoundError, match="no source 'price.txt' in collection 'notes'; did you mean 'prices"):
        library.move_source("price.txt", "notes", "econ")
    with pytest.raises(CollectionNotFoundError, match="no collection 'eco'"):
        library.move_source("prices.txt", "notes", "eco")
    for overwrite in (False, True):
        with pytest.raises(SourceError, match="'prices.txt' is in collection 'notes' already"):
            library.move_source("prices.txt", "notes", "notes", overwrite=overwrite)
    assert library.count("notes") == 1


def test_a_text_and_a_file_of_one_name_are_two_sources(library: DocumentService, tmp_path: Path) -> None:
    path = tmp_path / "tea.txt"
    path.write_text("Tea from a file.", encoding="utf-8")
    library.ingest_text("Tea from a text.", "tea.txt", "notes")
    with pytest.raises(SourceError, match=r"'tea.txt' in collection 'notes' is a text, not '.*tea.txt'; .*sources del"):
        library.ingest_file(path, "notes")
    library.delete_source("tea.txt", "notes")
    library.ingest_file(path, "notes")
    with pytest.raises(SourceError, match=r"is '.*tea.txt', not a text; rename one of the two"):
        library.ingest_text("Tea from a text.", "tea.txt", "notes")
    assert [document.content for document in stored(library, "notes")] == ["Tea from a file."]


def test_half_a_character_is_refused_with_its_source(library: DocumentService) -> None:
    with pytest.raises(EmbeddingGenerationError, match="half a surrogate pair"):
        library.ingest_text("half a character: \ud83d", "odd.txt", "notes")
    assert library.count() == 0


def test_a_collection_that_is_made_while_the_others_are_counted_is_left_for_the_next_look(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = workspace.library
    library.ingest_text("A note.", "note", "notes")
    sources = library.scope.sources

    def meanwhile(name: str | None = None) -> list[SourceInfo]:
        monkeypatch.undo()
        library.create_collection("later")
        library.ingest_text("A later note.", "later", "later")
        return sources(name)

    monkeypatch.setattr(library.scope, "sources", meanwhile)
    assert [(item["name"], item["chunk_count"]) for item in library.list_collections()] == [("notes", 1)]
    assert [item["name"] for item in library.list_collections()] == ["notes", "later"]
