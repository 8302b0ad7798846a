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
from ragistry.utils.shown import shown
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


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("ingest_text", {"text": 5, "source": "a", "collection": "notes"}, "text"),
    ("ingest_text", {"text": "a", "source": None, "collection": "notes"}, "source"),
    ("ingest_text", {"text": "a", "source": "a", "collection": b"notes"}, "collection"),
    ("ingest_file", {"path": b"a", "collection": "notes"}, "path"),
    ("ingest_file", {"path": "a\0b", "collection": "notes"}, "path"),
    ("ingest_folder", {"path": "\ud800", "collection": "notes"}, "path"),
    ("ingest_folder", {"path": ".", "collection": "notes", "prune": 1}, "prune"),
    ("ingest_folder", {"path": ".", "collection": "notes", "progress": 1}, "progress"),
    ("ingest_folder", {"path": ".", "collection": "notes", "engine": "ray"}, "engine"),
    ("ingest_paths", {"paths": "tea.txt", "collection": "notes"}, "paths"),
    ("ingest_paths", {"paths": ["."], "collection": "notes", "changed": "x"}, "changed"),
    ("search", {"query": 5}, "query"),
    ("search", {"query": "tea", "collection": 5}, "collection"),
    ("search", {"query": "tea", "n": "x"}, "top_k"),
    ("search", {"query": "tea", "technique": 5}, "technique"),
    ("search", {"query": "tea", "where": [5]}, "where"),
    ("answer", {"query": "tea", "on_piece": 5}, "on_piece"),
    ("create_collection", {"name": 5}, "name"),
    ("create_collection", {"name": "a", "description": 5}, "description"),
    ("rename_collection", {"name": "notes", "new_name": None}, "new_name"),
    ("update_description", {"name": "notes", "display_name": 5}, "display_name"),
    ("delete_sources", {"sources": "tea", "collection": "notes"}, "sources"),
    ("move_source", {"source": "a", "from_col": "notes", "to_col": 5}, "to_col"),
]


def test_an_argument_of_a_wrong_type_is_named_with_its_value(library: DocumentService) -> None:
    for method, arguments, name in WRONG:
        with pytest.raises(RagistryError) as caught:
            getattr(library, method)(**arguments)
        message, value = str(caught.value), arguments["n" if name == "top_k" else name]
        assert message.startswith(f"{name} must be "), (method, message)
        assert (shown(value) in message, len(message.splitlines())) == (True, 1), message


def test_a_path_may_be_anything_that_names_a_file(library: DocumentService, corpus: Corpus) -> None:
    class Named:
        path = str(corpus({"milk.txt": "Milk."}) / "milk.txt")

        def __fspath__(self) -> str:
            return self.path

    assert library.ingest_file(Named(), "notes") == 1  # type: ignore[arg-type]
