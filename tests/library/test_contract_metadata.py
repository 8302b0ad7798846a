"""Metadata of chunks come back as they were given, or are refused by name; so is what is no chunk at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import ChromaDBConnectionError, ConfigError, InvalidChunkError, QueryError
from ragistry.library.contract import (
    Collection,
    DocumentChunk,
    RetrievalMatch,
    add_chunks,
    create_collection,
    delete_collection,
    get_collection,
    list_collections,
    search_chunks,
    update_collection_metadata,
)
from ragistry.library.repository_search import RepositoryTechnique
from ragistry.techniques.bm25 import BM25Technique
from ragistry.testing.hashed import hashed_embedding
from ragistry.types import EmbedderFingerprint


class Hashed:
    """An embedder without a model."""

    fingerprint = EmbedderFingerprint("test", "hashed", "", 16)

    def count_tokens(self, texts: list[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: list[str], *, role: Any = "document") -> Any:
        return np.array([hashed_embedding(text, 16) for text in texts], dtype=np.float32)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    with create_collection("docs", {}, path=tmp_path_factory.mktemp("store"), embedder=Hashed()) as made:
        yield made


def chunk(metadata: Any, chunk_id: str = "id") -> DocumentChunk:
    return DocumentChunk(chunk_id, "text", "docs/a.md", "docs", "Install", 0, 1, metadata)


def stored(collection: Collection, metadata: Any) -> RetrievalMatch:
    """The one chunk of the collection, as a search shows it."""
    add_chunks(collection, [chunk(metadata)], on_duplicate="upsert")
    [match] = search_chunks(collection, "text").matches
    return match


@pytest.mark.parametrize(
    "metadata",
    [
        {"json_keys": ["title"]},
        {"in_json": ["title"]},
        {"in_json": "[", "nested": {"a": [1, "b", None]}},
        {"type": "guide", "source_file": "s.md", "collection": "c"},
        {"type": None, "source_file": [], "collection": {"a": 1}, "processed_at": None},
        {"processed_at": "yesterday"},
        {"tags": [], "title": None, "nothing": {}},
        {"mixed": [1, "a"], "rows": [[1], [2]], "many": list(range(2_000))},
        {"large": 2**70, "small": -(2**64), "edge": 2**63 - 1, "both": [2**70]},
        {"#hash": 1, "$dollar": "x", "ragistry:own": True, "chroma:document": None, "": 2.5, "k" * 300: 1},
        {"repository": "docs", "file_path": "docs/a.md", "chunk_index": 0, "token_count": 1},
    ],
)
def test_whatever_json_holds_comes_back(collection: Collection, metadata: dict[str, Any]) -> None:
    match = stored(collection, metadata)
    assert {key: match.metadata[key] for key in metadata} == metadata
    assert (match.file_path, match.repository, match.heading_context) == ("docs/a.md", "docs", "Install")
    assert "in_json" not in match.metadata or "in_json" in metadata


KEYS = st.text(max_size=5) | st.sampled_from(
    ["type", "collection", "source_file", "processed_at", "in_json", "json_keys", "page", "section", "has_code"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(KEYS.filter(lambda key: key not in ("repository",)), VALUES, max_size=4))
def test_metadata_come_back_from_a_store_as_they_were_given(collection: Collection, metadata: dict[str, Any]) -> None:
    assert repr({key: stored(collection, metadata).metadata[key] for key in metadata}) == repr(metadata)


def test_a_technique_shows_only_what_a_store_can_hold(collection: Collection) -> None:
    add_chunks(collection, [chunk({"nested": {"a": 1}, "page": 3})], on_duplicate="upsert")
    [found] = RepositoryTechnique(collection, lambda store: BM25Technique({}, store=store)).retrieve("text")
    assert found.metadata["page"] == 3
    assert found.metadata.keys().isdisjoint({"nested", "in_json"})


def test_a_condition_finds_what_was_given(collection: Collection) -> None:
    given = {"type": "guide", "source_file": "s.md", "collection": "c", "tags": [], "title": None}
    assert stored(collection, given).metadata["type"] == "guide"
    for key in ("type", "source_file", "collection"):
        assert search_chunks(collection, "text", where={key: given[key]}).total_results == 1
        assert search_chunks(collection, "text", where={key: "other"}).total_results == 0
    assert search_chunks(collection, "text", where={"title": "null"}).total_results == 0
    assert search_chunks(collection, "text", where={"tags": {"$ne": "[]"}}).total_results == 1


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"repository": "other"}, "metadata 'repository' of 'other', but its repository_name is 'docs'; leave it out"),
        ({"file_path": "b.md"}, "metadata 'file_path' of 'b.md', but its file_path is 'docs/a.md'"),
        ({"heading_context": None}, "metadata 'heading_context' of None, but"),
        ({"chunk_index": False}, "metadata 'chunk_index' of False, but its chunk_index is 0"),
        ({"token_count": 1.0}, "metadata 'token_count' of 1.0, but"),
        ({"share": float("nan")}, "'share' is nan; leave out"),
        ({"shares": [[float("inf")]]}, "'shares' cannot be written as JSON .*; give text, numbers"),
        ({"by_number": {1: "one"}}, "'by_number' has the key 1, which is not text"),
        ({"deep": [{"by_number": {2: "two"}}]}, "'deep' has the key 2, which is not text"),
        ({"at": object()}, "'at' is of type object; give"),
        ({"half": {"a": "\ud800"}}, "'half' has half a character"),
        ({"\ud800": 1}, "has half a character"),
        ({1: "one"}, "metadata 1 is not a key; a key is text"),
        ({"long": "x" * 1_000_001}, "'long' has 1,000,001 bytes"),
        ({"one": ["x" * 600_000, 1], "two": ["y" * 600_000, 1]}, r"\['one', 'two'\] together has"),
        (None, "the metadata of chunk 'other' are None; give a mapping"),
        (["a"], r"the metadata of chunk 'other' are \['a'\]; give a mapping"),
    ],
)
def test_what_would_not_come_back_is_refused_by_name(collection: Collection, metadata: Any, said: str) -> None:
    with pytest.raises(InvalidChunkError, match=said):
        add_chunks(collection, [chunk(metadata, "other")])
    assert search_chunks(collection, "text").total_results <= 1


@pytest.mark.parametrize(
    ("chunks", "said"),
    [
        (["x"], r"chunks\[0\] is 'x'; give a DocumentChunk"),
        ("x", r"chunks\[0\] is 'x'; give a DocumentChunk"),
        (None, "chunks are None; give a list"),
        ([chunk({}, ["id"])], r"chunks\[0\] has the chunk_id \['id'\]; an id is text"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_chunk_is_refused(collection: Collection, chunks: Any, said: str) -> None:
    with pytest.raises(InvalidChunkError, match=said):
        add_chunks(collection, chunks)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("chunk_index", 1.5, "give a whole number, 0 or more"),
        ("chunk_index", True, "give a whole number"),
        ("chunk_index", -1, "give a whole number"),
        ("chunk_index", None, "give a whole number"),
        ("token_count", True, "give a whole number"),
        ("token_count", "3", "give a whole number"),
        ("heading_context", ["a"], "give text, '' where there is none"),
        ("heading_context", 5, "give text"),
        ("heading_context", "a\0b", "take out the NUL"),
        ("repository_name", None, "give text"),
        ("file_path", None, "give text"),
        ("file_path", 5, "give text"),
        ("file_path", "docs\0.md", "take out the NUL"),
        ("file_path", "/etc/a.md", "give the path relative to the repository's root"),
        ("file_path", "C:\\docs\\a.md", "give the path relative"),
    ],
)
def test_a_field_of_another_type_is_refused_by_name(collection: Collection, field: str, value: Any, said: str) -> None:
    wrong = replace(chunk({}, "other"), **{field: value})
    with pytest.raises(InvalidChunkError) as caught:
        add_chunks(collection, [chunk({}, "first"), wrong])
    assert f"chunk 'other' has the {field} {value!r}; {said}" in str(caught.value)
    assert search_chunks(collection, "text", where={"heading_context": {"$ne": "Install"}}).total_results == 0


def test_fields_may_be_empty_and_a_path_may_hold_whatever_a_name_can(tmp_path: Path) -> None:
    made = create_collection("docs", {}, path=tmp_path, embedder=Hashed())
    paths = ["", "a\\b.md", "docs/C: drive.md", "ä/ö ü.md"]
    given = [DocumentChunk(str(number), "text", path, "", "", 0, 0) for number, path in enumerate(paths)]
    assert add_chunks(made, given) == len(paths)
    assert {match.file_path for match in search_chunks(made, "text").matches} == set(paths)


def test_a_fault_is_told_by_the_id_also_where_chunks_were_left_out(collection: Collection) -> None:
    empty = replace(chunk({}, "empty"), content=" ")
    with pytest.raises(InvalidChunkError, match="nothing was written: chunk 'third' metadata 'a' is nan; leave out"):
        add_chunks(collection, [empty, chunk({"a": float("nan")}, "third")], on_empty="skip")


@pytest.mark.parametrize("wrong", ["docs", None])
def test_what_is_no_collection_is_said_to_be_none(wrong: Any) -> None:
    for use in (
        lambda: add_chunks(wrong, [chunk({})]),
        lambda: search_chunks(wrong, "text"),
        lambda: update_collection_metadata(wrong, {}),
    ):
        with pytest.raises(ConfigError, match=f"the collection is {wrong!r}; give what create_collection or get_coll"):
            use()


@pytest.mark.parametrize("metadata", [None, "x", [1]])
def test_metadata_of_a_collection_are_a_mapping(collection: Collection, tmp_path: Path, metadata: Any) -> None:
    with pytest.raises(ConfigError, match="the metadata of a collection are .*; give a mapping"):
        create_collection("docs", metadata, path=tmp_path)
    with pytest.raises(ConfigError, match="the metadata of a collection are .*; give a mapping"):
        update_collection_metadata(collection, metadata)


@pytest.mark.parametrize("min_score", ["a", None, True, -0.1, 1.1, float("nan")])
def test_a_score_is_a_number_from_0_to_1(collection: Collection, min_score: Any) -> None:
    with pytest.raises(QueryError, match="min_score must be a number from 0 to 1, got"):
        search_chunks(collection, "text", min_score=min_score)


@pytest.mark.parametrize("path", ["a\0b", "\ud800", 5, None])
def test_what_cannot_name_a_folder_is_said_to_be_none(path: Any) -> None:
    for use in (
        lambda: create_collection("docs", {}, path=path),
        lambda: get_collection("docs", path=path),
        lambda: list_collections(path=path),
        lambda: delete_collection("docs", path=path),
    ):
        with pytest.raises(ChromaDBConnectionError, match="cannot name the folder of the collections; give another"):
            use()
