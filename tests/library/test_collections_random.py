"""Whatever is done to the collections, in whatever order, the library says what a plain dictionary says."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.config.collections import CollectionsFile
from ragistry.config.settings import DEFAULTS
from ragistry.errors import RagistryError
from ragistry.library.service import DocumentService
from ragistry.library.source import Reading
from ragistry.protocols import LibraryStore
from ragistry.stores.chroma import ChromaStore
from ragistry.stores.local import LocalStore
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.testing.hashed import hashed_embedding
from ragistry.types import EmbedderFingerprint
from ragistry.utils.ids import chunk_id

Model = dict[str, dict[str, str]]
NAMES, FILES = st.sampled_from(["a", "b", "c"]), st.sampled_from(["one.txt", "two.txt"])
STEPS = st.one_of(
    st.tuples(st.just("create"), NAMES),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("drop"), NAMES),
    st.tuples(st.just("ingest"), NAMES, FILES, st.sampled_from(["tea", "rain", "snow"])),
    st.tuples(st.just("delete"), NAMES, FILES),
    st.tuples(st.just("move"), FILES, NAMES, NAMES, st.booleans()),
)


class Hashing:
    """Vectors without a model."""

    fingerprint = EmbedderFingerprint("test", "hashed", "", 16)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: str = "document") -> np.ndarray:
        return np.array([hashed_embedding(text, 16) for text in texts], dtype=np.float32)


def service(root: Path, store: LibraryStore) -> DocumentService:
    registry = TechniqueRegistry.load(DEFAULTS / "techniques.yaml")
    return DocumentService(CollectionsFile(root), store, Hashing(), registry, Reading(200, 0))


def expected(model: Model, step: tuple) -> bool:
    """Do it to the dictionary; False where it is to be refused."""
    match step:
        case "create", name if name not in model:
            model[name] = {}
        case "rename", name, new if name in model and new not in model:
            renamed = {new if key == name else key: value for key, value in model.items()}
            model.clear()
            model.update(renamed)
        case "drop", name if name in model:
            del model[name]
        case "ingest", name, file, text if name in model:
            model[name][file] = text
        case "delete", name, file if file in model.get(name, {}):
            del model[name][file]
        case "move", file, name, to, overwrite if (
            file in model.get(name, {}) and to in model and name != to and (overwrite or file not in model[to])
        ):
            model[to][file] = model[name].pop(file)
        case _:
            return False
    return True


def do(library: DocumentService, step: tuple) -> None:
    match step:
        case "create", name:
            library.create_collection(name)
        case "rename", name, new:
            library.rename_collection(name, new)
        case "drop", name:
            library.delete_collection(name)
        case "ingest", name, file, text:
            library.ingest_text(text, file, name)
        case "delete", name, file:
            library.delete_source(file, name)
        case "move", file, name, to, overwrite:
            library.move_source(file, name, to, overwrite=overwrite)


def play(library: DocumentService, steps: list[tuple]) -> None:
    model: Model = {}
    for step in steps:
        if expected(model, step):
            do(library, step)
        else:
            with pytest.raises(RagistryError):
                do(library, step)
    listed = {row["name"]: row["source_count"] for row in library.list_collections()}
    assert list(listed) == list(model)
    assert listed == {name: len(sources) for name, sources in model.items()}
    stored = {document.id: document.content for document in library.store.scan()}
    assert stored == {
        chunk_id(name, file, 0): text for name, sources in model.items() for file, text in sources.items()
    }
    assert library.orphans() == []


@settings(max_examples=12, deadline=None)
@given(st.lists(STEPS, min_size=5, max_size=16))
def test_any_order_of_changes(steps: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder, "store"))
        try:
            play(service(Path(folder), store), [("create", "a"), ("create", "b"), *steps])
        finally:
            store.close()


def test_the_same_over_chroma_alone(tmp_path: Path) -> None:
    store = ChromaStore(tmp_path / "chroma")
    steps = [
        ("create", "a"),
        ("create", "b"),
        ("ingest", "a", "one.txt", "tea"),
        ("ingest", "a", "two.txt", "rain"),
        ("ingest", "b", "one.txt", "snow"),
        ("move", "one.txt", "a", "b", False),
        ("move", "one.txt", "a", "b", True),
        ("rename", "a", "c"),
        ("ingest", "c", "one.txt", "snow"),
        ("delete", "b", "one.txt"),
        ("drop", "b"),
        ("rename", "c", "b"),
    ]
    try:
        library = service(tmp_path, store)
        play(library, steps)
        library.collections.path.write_text("collections: [{name: x}]\n", encoding="utf-8")
        assert library.scope.of_all() == {"collection": {"$nin": ["b"]}}
        assert library.count() == 0
    finally:
        store.close()
