"""The part of a source that a hit lies in: section, page, whole source, or as much of it as fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import InvalidConfigError, InvalidFilterError
from ragistry.stores.chroma import ChromaStore
from ragistry.techniques.parent_document import ParentDocumentTechnique
from ragistry.techniques.registry import RegisteredTechnique
from ragistry.testing.techniques import TechniqueConformance
from ragistry.types import Document, EmbeddedChunk
from ragistry.utils.extract import extract
from ragistry.utils.ids import chunk_id
from ragistry.utils.spans import cut
from tests.techniques.passages import GUIDE, Finds, guide, ingest, words

TECHNIQUES = """
techniques:
  naive: {use: naive}
  parents: {use: "ragistry.techniques.parent_document:ParentDocumentTechnique", base: naive, max_characters: 600}
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaStore]:
    folder = tmp_path_factory.mktemp("parents")
    opened = ChromaStore(folder / "vectors")
    ingest(opened, guide(folder), 60)
    yield opened
    opened.close()


def parents(
    store: ChromaStore, *indexes: int, where: dict[str, Any] | None = None, top_k: int = 10, **config: int
) -> list[Document]:
    base = Finds(store, "guide.md", *indexes)
    return ParentDocumentTechnique(config, base=base, store=store).retrieve("q", top_k=top_k, where=where)


def section(first: str, last: str) -> list[str]:
    return words(GUIDE[GUIDE.index(first) : GUIDE.index(last)])


def test_the_section_around_a_hit_where_it_fits(store: ChromaStore) -> None:
    [parent] = parents(store, 4, max_characters=200)
    assert words(parent.content) == section("### Linux", "### Windows")
    assert parent.metadata["chunk_indexes"] == [3, 4, 5]
    assert (parent.metadata["start"], parent.metadata["end"]) == (101, 217)
    assert len(parent.content) == 217 - 101


def test_the_largest_section_that_fits(store: ChromaStore) -> None:
    [parent] = parents(store, 4, max_characters=300)
    assert words(parent.content) == section("## Install", "## Use")
    [parent] = parents(store, 4, max_characters=4000)
    assert words(parent.content) == words(GUIDE)


def test_of_a_section_that_is_too_long_as_much_as_fits_around_the_hit(store: ChromaStore) -> None:
    [parent] = parents(store, 10, max_characters=170)
    assert parent.metadata["chunk_indexes"] == [9, 10, 11]
    [parent] = parents(store, 8, max_characters=100)
    assert parent.metadata["chunk_indexes"] == [8, 9], "no further back than its section"
    [parent] = parents(store, 12, max_characters=100)
    assert parent.metadata["chunk_indexes"] == [11, 12], "nothing comes after it"
    [parent] = parents(store, 10, max_characters=1)
    assert parent.content == "Press the button at the right. Wait until the lamp is green."


def test_hits_in_one_part_are_one_document_with_the_best_score(store: ChromaStore) -> None:
    one, two = parents(store, 7, 4, 6, 3, 5, max_characters=150)
    assert [one.metadata["chunk_indexes"], two.metadata["chunk_indexes"]] == [[6, 7], [3, 4, 5]]
    assert (one.score, two.score) == (1.0, 0.99)
    assert [one.id, two.id] == [chunk_id("notes", "guide.md", 7), chunk_id("notes", "guide.md", 4)]
    assert one.scores[0].stage == "fixed"
    assert one.metadata["heading_context"] == "Guide > Install > Windows"


@pytest.mark.parametrize("limit", [40, 100, 170, 300])
def test_no_chunk_is_given_twice_and_no_document_is_too_long(store: ChromaStore, limit: int) -> None:
    for first in range(13):
        hits = [(first + 5 * step) % 13 for step in range(13)]
        documents = parents(store, *hits, max_characters=limit, top_k=13)
        given = [index for document in documents for index in document.metadata["chunk_indexes"]]
        assert sorted(given) == list(range(13))
        assert all(
            len(document.content) <= limit or len(document.metadata["chunk_indexes"]) == 1 for document in documents
        )
        assert all(one.score > two.score for one, two in pairwise(documents))
        assert parents(store, *hits, max_characters=limit, top_k=2) == documents[:2]


def test_reach_bounds_what_is_looked_at(store: ChromaStore) -> None:
    [parent] = parents(store, 6, reach=2)
    assert parent.metadata["chunk_indexes"] == [4, 5, 6, 7, 8]


def test_a_neighbour_has_to_meet_the_condition_by_itself(store: ChromaStore) -> None:
    [parent] = parents(store, 6, where={"chunk_index": {"$gte": 5}})
    assert parent.metadata["chunk_indexes"] == [5, 6, 7, 8, 9, 10, 11, 12]
    [parent] = parents(store, 6, where={"section": "Windows"})
    assert parent.metadata["chunk_indexes"] == [6, 7]


def test_a_document_meets_the_condition_itself(store: ChromaStore) -> None:
    """A condition on the places of two chunks is met by each, but not by the document that they make."""
    where = {"$or": [{"$and": [{"start": first}, {"end": last}]} for first, last in ((219, 251), (252, 302))]}
    one, two = parents(store, 6, 7, where=where)
    assert (one.metadata["start"], one.metadata["end"]) == (219, 251)
    assert (two.metadata["start"], two.metadata["end"]) == (252, 302)


def test_another_version_of_the_source_is_not_mixed_in(tmp_path: Path) -> None:
    store = ChromaStore(tmp_path / "vectors")
    chunks = ingest(store, guide(tmp_path), 60)
    newer = replace_hash(chunks[5])
    store.add_documents([newer])
    [parent] = parents(store, 3)
    assert parent.metadata["chunk_indexes"] == [0, 1, 2, 3, 4]
    store.close()


def replace_hash(chunk: EmbeddedChunk) -> EmbeddedChunk:
    return chunk._replace(metadata={**chunk.metadata, "source_hash": "2"})


def test_pages_are_the_parts_of_a_pdf(tmp_path: Path, fixtures: Path) -> None:
    store = ChromaStore(tmp_path / "vectors")
    path = fixtures / "manuals" / "dishwasher.pdf"
    chunks = ingest(store, path, 200, 50)
    on_page = [index for index, chunk in enumerate(chunks) if chunk.metadata["page"] == 2]
    start, end = chunks[on_page[0]].metadata["start"], chunks[on_page[-1]].metadata["end"]
    technique = ParentDocumentTechnique(
        {"max_characters": end - start, "reach": 100}, base=Finds(store, path.name, on_page[1]), store=store
    )
    [parent] = technique.retrieve("q")
    assert parent.metadata["chunk_indexes"] == on_page
    assert len(on_page) < len(chunks)
    assert words(parent.content) == words(extract(path).text[start:end])
    store.close()


def test_a_hit_of_no_source_and_one_without_offsets(tmp_path: Path) -> None:
    store = ChromaStore(tmp_path / "vectors")
    store.add_documents([EmbeddedChunk("alone", {"kind": "note"}, [1.0, 0.0])])
    keys = {"collection": "notes", "source_file": "a"}
    store.add_documents([EmbeddedChunk(text, {**keys, "chunk_index": i}, [1.0, 1.0]) for i, text in enumerate("xyz")])
    found = [replace(document, score=0.5) for document in store.scan({"kind": "note"})]

    class Both(Finds):
        def retrieve(self, query, **options):
            return [*found, *super().retrieve(query, **options)]

    alone, joined = ParentDocumentTechnique({}, base=Both(store, "a", 1), store=store).retrieve("q")
    assert alone == found[0]
    assert joined.content == "x\n\ny\n\nz"
    assert "start" not in joined.metadata
    store.close()


def test_the_base_is_asked_for_more_and_the_store_for_what_is_needed(store: ChromaStore) -> None:
    reads = []

    class Counted:
        def get(self, ids):
            reads.append(len(ids))
            return store.get(ids)

    base = Finds(store, "guide.md", 1, 4, 6, 8)
    technique = ParentDocumentTechnique({"max_characters": 150, "reach": 2}, base=base, store=Counted())
    assert len(technique.retrieve("q", top_k=3)) == 3
    assert base.asked == 9
    assert reads == [len({0, 2, 3, 4, 5, 6, 7, 8}), len({6, 7, 9, 10})], "of three hits, then of one more"
    technique.retrieve("q", top_k=1000)
    assert base.asked == 1000


def test_bad_input_is_refused_without_a_registry(store: ChromaStore) -> None:
    with pytest.raises(InvalidFilterError):
        parents(store, 1, where={})
    with pytest.raises(InvalidConfigError, match="ParentDocumentTechnique: max_characters: .*got 0"):
        parents(store, 1, max_characters=0)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("parents-workspace")
    (root / "config").mkdir()
    (root / "config" / "techniques.yaml").write_text(TECHNIQUES, encoding="utf-8")
    with open_workspace(root, chunk_size=150, chunk_overlap=30) as opened:
        for collection in ("handbook", "garden"):
            opened.library.create_collection(collection)
            for number in range(3):
                text = " ".join(
                    f"To restore a backup of the {collection} of kind {number}, wait {day} days and look at it again."
                    for day in range(2, 12)
                )
                opened.library.ingest_text(text, f"{number}.txt", collection)
        yield opened


class TestOverRealSearches(TechniqueConformance):
    @pytest.fixture
    def technique(self, workspace: Workspace) -> RegisteredTechnique:
        return workspace.technique("parents")


def test_a_search_returns_more_of_the_text_than_its_base(workspace: Workspace) -> None:
    [small], [wide] = (workspace.search("backup of kind 2", name, top_k=1).documents for name in ("naive", "parents"))
    assert wide.id == small.id
    assert small.content in wide.content
    assert 450 < len(wide.content) <= 600
    result = workspace.search("backup of kind 2", "parents", top_k=2)
    assert [stage.name for stage in result.trace] == ["parents", "naive", "embed", "search", "widen"]
    assert result.trace[-1].documents_out == 2


def test_a_text_without_parts_is_its_source(tmp_path: Path) -> None:
    text = "One sentence here. Another one there.\n\nA third one. And the last."
    (tmp_path / "plain.txt").write_text(text, encoding="utf-8")
    store = ChromaStore(tmp_path / "vectors")
    ingest(store, tmp_path / "plain.txt", 20)
    assert len(cut(text, 20)) == 4
    [parent] = ParentDocumentTechnique({}, base=Finds(store, "plain.txt", 2), store=store).retrieve("q")
    assert words(parent.content) == words(text)
    store.close()
