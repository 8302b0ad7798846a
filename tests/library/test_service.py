"""What a library does beside what `test_everywhere` shows: other embedders, collections that come meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ragistry import Workspace
from ragistry.errors import EmbeddingMismatchError, RagistryError
from ragistry.library.service import DocumentService
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import SourceInfo
from tests.conftest import Corpus
from tests.messages import refused

pytestmark = pytest.mark.usefixtures("embedder")


def test_another_embedder_is_refused_on_ingest_and_query(workspace: Workspace, embedder: HashingEmbedder) -> None:
    workspace.library.ingest_text("Steep green tea.", "tea", "notes")
    embedder.fingerprint = replace(embedder.fingerprint, model="another-model")
    with refused(EmbeddingMismatchError, "hashing", "another-model"):
        workspace.library.ingest_text("New text.", "new", "notes")
    with refused(EmbeddingMismatchError, "hashing", "another-model"):
        workspace.search("tea", "naive")


def test_new_collection_does_not_break_a_count_of_the_others(
    library: DocumentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.ingest_text("A note.", "note", "notes")
    sources = library.scope.sources

    def meanwhile(name: str | None = None) -> list[SourceInfo]:
        monkeypatch.undo()
        library.create_collection("later")
        library.ingest_text("A later note.", "later", "later")
        return sources(name)

    with monkeypatch.context() as patch:
        patch.setattr(library.scope, "sources", meanwhile)
        assert [(item["name"], item["chunk_count"]) for item in library.list_collections()] == [("notes", 1)]
    assert [item["name"] for item in library.list_collections()] == ["notes", "later"]


INVALID: list[tuple[str, dict[str, Any]]] = [
    ("ingest_text", {"text": "a", "source": "", "collection": "notes"}),
    ("ingest_file", {"path": "a\0b", "collection": "notes"}),
    ("ingest_folder", {"path": "\ud800", "collection": "notes"}),
    *(
        (method, {"path": path, "collection": "notes"})
        for path in ("", " ", "x" * 300)
        for method in ("ingest_file", "ingest_folder")
    ),
    *(("ingest_paths", {"paths": [path], "collection": "notes"}) for path in ("", " ", "x" * 300)),
    ("search", {"query": "tea", "where": [5]}),
]


@pytest.mark.parametrize(("method", "arguments"), INVALID)
def test_invalid_value_is_refused_in_one_line(library: DocumentService, method: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(RagistryError) as caught:
        getattr(library, method)(**arguments)
    assert len(str(caught.value).splitlines()) == 1


def test_a_path_may_be_anything_that_names_a_file(library: DocumentService, corpus: Corpus) -> None:
    class Named:
        path = str(corpus({"milk.txt": "Milk."}) / "milk.txt")

        def __fspath__(self) -> str:
            return self.path

    assert library.ingest_file(Named(), "notes") == 1  # type: ignore[arg-type]
