"""A collection that is renamed, or a source that is moved, between the searches of two bases."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ragistry import Workspace, open_workspace
from ragistry.techniques.hybrid import HybridTechnique
from ragistry.trace import collect
from ragistry.types import Document

QUERY = "words about apples"


@pytest.fixture
def orchard(tmp_path) -> Iterator[Workspace]:
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("trees")
        workspace.library.create_collection("fruit")
        for number in range(4):
            workspace.library.ingest_text(f"File {number} has words about apples.", f"{number}.txt", "trees")
        yield workspace


class Interrupted:
    """A base, and what happens to the library before it searches."""

    def __init__(self, base, happens: Callable[[], object]) -> None:
        self.base, self.happens = base, happens

    def retrieve(self, query, **options):
        self.happens()
        return self.base.retrieve(query, **options)


class Fixed:
    """A base that always gives the same."""

    def __init__(self, documents: list[Document]) -> None:
        self.documents = documents

    def retrieve(self, query, **options):
        return self.documents


def found(workspace: Workspace, happens: Callable[[], object], fusion: str = "rrf") -> list[tuple[str, str]]:
    bases = [workspace.technique("naive"), Interrupted(workspace.technique("bm25"), happens)]
    with collect():
        documents = HybridTechnique({"fusion": fusion}, bases=bases).retrieve(QUERY, top_k=100)
    assert all(len(document.scores) == 3 for document in documents)  # by vectors, by words, and fused
    assert [document.content for document in workspace.store.get([d.id for d in documents])] == [
        document.content for document in documents
    ]
    return sorted((document.metadata["collection"], document.metadata["source_file"]) for document in documents)


@pytest.mark.parametrize("fusion", ["dbsf", "rrf", "min_max"])
def test_a_chunk_of_a_renamed_collection_is_found_once_under_its_new_name(orchard, fusion):
    names = found(orchard, lambda: orchard.library.rename_collection("trees", "orchard"), fusion)
    assert names == [("orchard", f"{number}.txt") for number in range(4)]


def test_a_moved_source_is_found_once_where_it_is_now(orchard):
    names = found(orchard, lambda: orchard.library.move_source("0.txt", "trees", "fruit"))
    assert names == [("fruit", "0.txt"), *(("trees", f"{number}.txt") for number in range(1, 4))]


def test_copies_in_two_collections_are_both_found(orchard):
    orchard.library.ingest_text("File 0 has words about apples.", "0.txt", "fruit")
    names = found(orchard, lambda: None)
    assert names == [("fruit", "0.txt"), *(("trees", f"{number}.txt") for number in range(4))]


def test_chunks_may_have_lists_where_a_library_has_the_name_of_a_source():
    documents = [
        Document("one", {"source_file": ["a.md", "b.md"]}, 0.5, "1"),
        Document("two", {"source_file": "a.md", "chunk_index": [0]}, 0.4, "2"),
        Document("three", {"source_file": "a.md", "chunk_index": 0, "source_hash": ["x"]}, 0.3, "3"),
        Document("four", {"source_file": "a.md", "chunk_index": 0, "source_hash": ["x"]}, 0.2, "4"),
    ]
    fused = HybridTechnique({}, bases=[Fixed(documents), Fixed(documents)]).retrieve(QUERY)
    assert sorted(document.id for document in fused) == ["1", "2", "3", "4"]
