"""The storage contract, test by test as it names them, over the real model and real stores."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import (
    ChromaDBConnectionError,
    CollectionAlreadyExistsError,
    CollectionNotFoundError,
    ConfigError,
    DuplicateChunkIDError,
    EmptyQueryError,
    InvalidChunkError,
    InvalidCollectionNameError,
    InvalidFilterError,
    InvalidLimitError,
)
from ragistry.library.contract import (
    Collection,
    DocumentChunk,
    add_chunks,
    create_collection,
    delete_collection,
    get_collection,
    list_collections,
    search_chunks,
    update_collection_metadata,
)
from ragistry.library.contract_chunks import as_given, as_stored
from ragistry.types import Document
from ragistry.utils.metadata import stored_metadata

ISTIO = {
    "repository_url": "https://github.com/istio/istio.io",
    "last_updated": "2025-09-30T14:32:01Z",
    "commit_hash": "a" * 40,
    "total_documents": 2,
    "total_chunks": 3,
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def chunk(chunk_id: str = "id1", content: str = "text1", **others: Any) -> DocumentChunk:
    fields = {
        "file_path": "docs/setup.md",
        "repository_name": "istio-docs",
        "heading_context": "Installation > Prerequisites",
        "chunk_index": 0,
        "token_count": 3,
    }
    return DocumentChunk(chunk_id=chunk_id, content=content, **(fields | others))


def filled() -> Collection:
    collection = create_collection("istio-docs", ISTIO)
    add_chunks(
        collection,
        [
            chunk("install", "To install Kubernetes, first make a cluster.", metadata={"has_code": True}),
            chunk("route", "Traffic routing sends requests to services.", metadata={"section": "Routing"}),
            chunk("other", "Certificates are renewed every day.", repository_name="hugo-docs", file_path="tls.md"),
        ],
    )
    return collection


def test_create_collection_success(tmp_path: Path) -> None:
    collection = create_collection("istio-docs", ISTIO)
    assert collection.name == "istio-docs"
    assert collection.metadata == ISTIO
    assert collection.count() == 0
    assert (tmp_path / "chroma_data").is_dir()


@pytest.mark.parametrize("name", ["Invalid_Name!", "", "a" * 64, "a/b", "..", "a\n", "ä", None])
def test_create_collection_invalid_name(name: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidCollectionNameError, match="digits"):
        create_collection(name, {})
    assert list(tmp_path.iterdir()) == []


def test_create_collection_idempotent() -> None:
    create_collection("istio-docs", {"commit_hash": "abc123"})
    collection = create_collection("istio-docs", {"commit_hash": "def456"})
    assert collection.metadata["commit_hash"] == "def456"
    assert get_collection("istio-docs").metadata == {"commit_hash": "def456"}


def test_create_collection_refuses_where_it_is_told_not_to_recreate() -> None:
    filled()
    with pytest.raises(CollectionAlreadyExistsError, match="istio-docs"):
        create_collection("istio-docs", {}, recreate=False)
    assert get_collection("istio-docs").count() == 3


@pytest.mark.parametrize("metadata", [{"at": object()}, {1: "one"}, {"share": float("nan")}])
def test_create_collection_refuses_what_is_no_json(metadata: Any) -> None:
    with pytest.raises(ConfigError, match="metadata"):
        create_collection("istio-docs", metadata)
    assert list_collections() == []


def test_add_chunks_success() -> None:
    collection = create_collection("istio-docs", ISTIO)
    assert add_chunks(collection, [chunk("id1", "text1"), chunk("id2", "text2")]) == 2
    assert collection.count() == 2


def test_add_chunks_batching() -> None:
    collection = create_collection("istio-docs", ISTIO)
    chunks = [chunk(f"id{number}", f"text {number}", chunk_index=number) for number in range(250)]
    assert add_chunks(collection, chunks, batch_size=100) == 250
    assert collection.count() == 250


@pytest.mark.parametrize("batch_size", [0, 1_001, True, 1.5])
def test_add_chunks_batch_size_has_limits(batch_size: Any) -> None:
    collection = create_collection("istio-docs", ISTIO)
    with pytest.raises(ConfigError, match="batch_size"):
        add_chunks(collection, [chunk()], batch_size=batch_size)


def test_add_chunks_duplicate_id() -> None:
    collection = create_collection("istio-docs", ISTIO)
    add_chunks(collection, [chunk("duplicate")])
    with pytest.raises(DuplicateChunkIDError, match="duplicate"):
        add_chunks(collection, [chunk("duplicate"), chunk("id2")])
    assert collection.count() == 1, "all or nothing"
    with pytest.raises(DuplicateChunkIDError, match="twice"):
        add_chunks(collection, [chunk("id3"), chunk("id3")])


def test_add_chunks_duplicate_id_skipped_or_replaced(caplog: pytest.LogCaptureFixture) -> None:
    collection = create_collection("istio-docs", ISTIO)
    add_chunks(collection, [chunk("duplicate", "first")])
    with caplog.at_level(logging.WARNING):
        again = [chunk("duplicate", "second"), chunk("id2"), chunk("id2", "later")]
        assert add_chunks(collection, again, on_duplicate="skip") == 1
    assert caplog.text.count("was left out") == 2
    assert search_chunks(collection, "first").matches[0].content == "first"
    assert add_chunks(collection, again, on_duplicate="upsert") == 2
    assert {match.content for match in search_chunks(collection, "second").matches} == {"second", "later"}


def test_add_chunks_empty_content() -> None:
    collection = create_collection("istio-docs", ISTIO)
    for content in ("", " \n"):
        with pytest.raises(ValueError, match="id1"):
            add_chunks(collection, [chunk("id1", content)])
    assert collection.count() == 0


def test_add_chunks_empty_content_skipped(caplog: pytest.LogCaptureFixture) -> None:
    collection = create_collection("istio-docs", ISTIO)
    assert add_chunks(collection, [chunk("id1", ""), chunk("id2")], on_empty="skip") == 1
    assert "'id1'" in caplog.text
    assert add_chunks(collection, []) == 0


def test_add_chunks_keeps_every_kind_of_metadata() -> None:
    collection = create_collection("istio-docs", ISTIO)
    given = {"tags": ["installation", "setup"], "has_code": True, "weight": 2.5, "nested": {"a": [1, "b"]}}
    add_chunks(collection, [chunk(metadata=given)])
    [match] = search_chunks(collection, "text", where={"tags": {"$contains": "setup"}}).matches
    assert given.items() <= match.metadata.items()
    assert match.metadata["processed_at"].endswith("Z")
    assert match.metadata["token_count"] == 3
    assert (match.repository, match.file_path) == ("istio-docs", "docs/setup.md")
    assert match.heading_context == "Installation > Prerequisites"


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(st.characters(categories=["L"]), min_size=1), values, max_size=4))
def test_metadata_come_back_as_they_were_given(metadata: dict[str, Any]) -> None:
    text, stored = as_stored(chunk(metadata=metadata), "istio-docs", "2025-09-30T14:32:01Z")
    kept, problems = stored_metadata(stored)
    assert problems == []
    assert metadata.items() <= as_given(Document(text, kept, 0.0)).metadata.items()


def test_add_chunks_tells_every_fault_before_the_model_is_asked() -> None:
    collection = create_collection("istio-docs", ISTIO)
    with pytest.raises(InvalidChunkError) as caught:
        add_chunks(collection, [chunk("", metadata={"at": object()}), chunk("id2", metadata={"x": float("inf")})])
    assert "chunk '' has the id ''" in str(caught.value)
    assert "chunk '' metadata 'at'" in str(caught.value)
    assert "chunk 'id2' metadata 'x'" in str(caught.value)
    with pytest.raises(InvalidChunkError, match="JSON"):
        add_chunks(collection, [chunk(metadata={"nested": {"at": object()}})])
    assert collection.count() == 0


def test_search_finds_results() -> None:
    result = search_chunks(filled(), "install kubernetes")
    assert result.total_results == 3
    assert result.matches[0].chunk_id == "install"
    assert result.matches[0].score >= result.matches[-1].score
    assert all(0 <= match.score <= 1 for match in result.matches)
    assert [document.id for document in result.documents] == [match.chunk_id for match in result.matches]
    assert result.query == "install kubernetes"
    assert result.search_time_ms > 0


def test_search_with_limit() -> None:
    collection = filled()
    assert len(search_chunks(collection, "setup", limit=2).matches) == 2
    for limit in (0, 101, True, 2.0):
        with pytest.raises(InvalidLimitError, match="1 to 100"):
            search_chunks(collection, "setup", limit=limit)  # type: ignore[arg-type]


def test_search_with_where_filter() -> None:
    collection = filled()
    result = search_chunks(collection, "routing", where={"repository": "istio-docs"})
    assert len(result.matches) == 2
    assert all(match.repository == "istio-docs" for match in result.matches)
    [coded] = search_chunks(collection, "routing", where={"has_code": True}).matches
    assert coded.chunk_id == "install"
    both = {"$and": [{"repository": "istio-docs"}, {"section": "Routing"}]}
    assert [match.chunk_id for match in search_chunks(collection, "certificates", where=both).matches] == ["route"]
    without = search_chunks(collection, "routing", where={"tags": {"$not_contains": "setup"}})
    assert without.total_results == 3, "as ChromaDB, also those without the key"
    with pytest.raises(InvalidFilterError, match="like"):
        search_chunks(collection, "routing", where={"section": {"$like": "R"}})


def test_search_empty_query() -> None:
    collection = create_collection("istio-docs", ISTIO)
    for query in ("", "  \n"):
        with pytest.raises(EmptyQueryError):
            search_chunks(collection, query)


def test_search_no_results() -> None:
    result = search_chunks(filled(), "xyzabc nonexistent", min_score=0.6)
    assert result.total_results == 0
    assert len(result.matches) == 0
    assert search_chunks(create_collection("empty", {}), "anything").matches == []


def test_get_collection_exists() -> None:
    create_collection("istio-docs", ISTIO)
    collection = get_collection("istio-docs")
    assert collection.name == "istio-docs"
    assert collection.metadata == ISTIO


def test_get_collection_not_found() -> None:
    with pytest.raises(CollectionNotFoundError, match="none"):
        get_collection("nonexistent")
    create_collection("istio-docs", {})
    with pytest.raises(CollectionNotFoundError, match="did you mean 'istio-docs'"):
        get_collection("istio-doc")


def test_list_collections_multiple() -> None:
    filled()
    create_collection("hugo-docs", {"commit_hash": "abc"})
    collections = list_collections()
    assert [collection.name for collection in collections] == ["hugo-docs", "istio-docs"]
    assert [collection.chunk_count for collection in collections] == [0, 3]
    assert collections[1].metadata == ISTIO


def test_list_collections_empty(tmp_path: Path) -> None:
    assert list_collections() == []
    assert list(tmp_path.iterdir()) == [], "asking makes no folder"


def test_delete_collection_success(tmp_path: Path) -> None:
    collection = filled()
    create_collection("istio-docs-2", {})
    assert delete_collection("istio-docs") == 3
    with pytest.raises(CollectionNotFoundError):
        get_collection("istio-docs")
    with pytest.raises(CollectionNotFoundError):
        collection.count()
    assert list((tmp_path / "chroma_data").glob("istio-docs@*")) == [], "its text is gone from the disk"
    assert [info.name for info in list_collections()] == ["istio-docs-2"]


def test_delete_collection_not_found() -> None:
    with pytest.raises(CollectionNotFoundError):
        delete_collection("nonexistent")


def test_update_metadata() -> None:
    collection = create_collection("istio-docs", {"commit_hash": "abc123", "total_chunks": 7})
    update_collection_metadata(collection, {"commit_hash": "def456"})
    updated = get_collection("istio-docs").metadata
    assert updated["commit_hash"] == "def456"
    assert updated["total_chunks"] == 7
    assert updated["last_updated"].endswith("Z")
    update_collection_metadata(collection, {"last_updated": "2025-09-30T14:32:01Z"})
    assert collection.metadata["last_updated"] == "2025-09-30T14:32:01Z"


def test_collections_lie_where_the_caller_says(tmp_path: Path) -> None:
    with create_collection("istio-docs", {}, path=tmp_path / "elsewhere") as collection:
        add_chunks(collection, [chunk()])
    assert [info.chunk_count for info in list_collections(path=tmp_path / "elsewhere")] == [1]
    assert list_collections() == []


def test_a_folder_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "chroma_data").write_text("a file", encoding="utf-8")
    with pytest.raises(ChromaDBConnectionError, match="chroma_data"):
        create_collection("istio-docs", {})
    with pytest.raises(ChromaDBConnectionError, match="chroma_data"):
        get_collection("istio-docs")


def test_a_record_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    from ragistry.errors import StoreCorruptError

    filled()
    record = tmp_path / "chroma_data" / "istio-docs.json"
    record.write_text(json.dumps({"folder": "../../etc", "metadata": {}}), encoding="utf-8")
    with pytest.raises(StoreCorruptError, match="istio-docs.json"):
        get_collection("istio-docs")
