"""Tests of the store of a library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ragistry.errors import (
    DuplicateChunkIDError,
    EmbeddingMismatchError,
    InvalidChunkError,
    ModelConnectionError,
    StoreError,
    UnsupportedError,
)
from ragistry.library.embedding import reembed
from ragistry.protocols import FitStore, LibraryStore, UnsearchableStore
from ragistry.testing.stores.chunks import EAST, NORTH, UP, chunk, source
from ragistry.types import (
    Chunk,
    EmbeddedChunk,
    EmbedderFingerprint,
    Fit,
    IngestedFolder,
    Repair,
    Role,
    SourceInfo,
    Unsearchable,
)

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

MINILM = EmbedderFingerprint("embedded", "minilm", "abc", 3)


class Flat:
    """An embedder of two dimensions; ``fail_after``: number of texts after which its server fails."""

    fingerprint = EmbedderFingerprint("embedded", "flat", "def", 2)

    def __init__(self, fail_after: int = 1_000) -> None:
        self.left = fail_after

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:  # noqa: ARG002
        self.left -= len(texts)
        if self.left < 0:
            raise ModelConnectionError("the server is gone; start it again")
        return np.array([[1.0, 0.0] if "e" in text else [0.0, 1.0] for text in texts], dtype=np.float32)


CALLS: dict[str, tuple[tuple[str, tuple[Any, ...]], ...]] = {
    "text": (("search_text", ("apple",)), ("unknown_words", ("apple",))),
    "repair": (("verify", ()), ("repair", ())),
}
"""The methods that need an ability."""


class LibraryStoreConformance:
    """`LibraryStore`, without optional abilities."""

    def test_has_the_shape_of_a_library_store(self, store: LibraryStore) -> None:
        assert isinstance(store, LibraryStore)

    def test_what_is_not_an_ability_raises_unsupported_error(self, store: LibraryStore) -> None:
        assert store.abilities <= {*CALLS, "reembed", "words_first", "fit", "unsearchable"}
        for name, arguments in (call for ability in CALLS.keys() - store.abilities for call in CALLS[ability]):
            with pytest.raises(UnsupportedError):
                getattr(store, name)(*arguments)

    def test_sources_are_listed_by_collection_and_name(self, store: LibraryStore) -> None:
        store.replace_source("b", "z.md", source("b", "z.md", ["one", "two"]))
        store.replace_source("b", "a.md", source("b", "a.md", ["one"], "other"))
        store.replace_source("a", "z.md", source("a", "z.md", ["one"]))
        z = SourceInfo("b", "z.md", 2, "/in/z.md", "h", 12.5)
        assert [(info.collection, info.source_file) for info in store.sources()] == [
            ("a", "z.md"), ("b", "a.md"), ("b", "z.md"),
        ]  # fmt: skip
        assert store.sources("b") == [SourceInfo("b", "a.md", 1, "/in/a.md", "other", 12.5), z]
        assert store.sources("c") == []

    def test_sources_have_the_metadata_that_their_chunks_share(self, store: LibraryStore) -> None:
        chunks = source("c", "a.md", ["one", "two"])
        for number, (_, metadata, _) in enumerate(chunks):
            metadata.update(
                year=2026, tags=["a"], own=number, kind=(1, True)[number], set_keys=["gone", "year"], lost="page 2"
            )
        store.replace_source("c", "a.md", chunks)
        [info] = store.sources("c")
        assert (info.metadata, info.set_keys, info.lost) == ({"year": 2026, "tags": ["a"]}, ("gone", "year"), "page 2")

    @pytest.mark.parametrize(("before", "after"), [(3, 3), (3, 1), (1, 3), (0, 2), (2, 0), (0, 0)])
    def test_replacing_leaves_nothing_of_the_old(self, store: LibraryStore, before: int, after: int) -> None:
        store.replace_source("c", "other.md", source("c", "other.md", ["kept"]))
        store.replace_source("c", "f.md", source("c", "f.md", [f"old {i}" for i in range(before)], "old"))
        store.replace_source("c", "f.md", source("c", "f.md", [f"new {i}" for i in range(after)], "new"))
        found = [document.content for document in store.scan({"source_file": "f.md"})]
        assert sorted(found) == [f"new {i}" for i in range(after)]
        listed = [(info.source_file, info.chunks, info.source_hash) for info in store.sources()]
        assert listed == [("f.md", after, "new")] * bool(after) + [("other.md", 1, "h")]

    def test_a_bad_chunk_leaves_the_old_version(self, store: LibraryStore) -> None:
        store.replace_source("c", "f.md", source("c", "f.md", ["old"], "old"))
        with pytest.raises(InvalidChunkError):
            store.replace_source("c", "f.md", source("c", "f.md", ["new", " "], "new"))
        assert [document.content for document in store.scan()] == ["old"]
        assert store.sources()[0].source_hash == "old"

    @pytest.mark.parametrize("wrong", [
        {"collection": "d"}, {"source_file": "g.md"}, {"chunk_index": 1}, {"chunk_index": 0.0}, {"chunk_index": False},
        {"source_hash": None}, {"source_hash": 3},
    ], ids=repr)  # fmt: skip
    def test_chunks_of_another_source_are_refused(self, store: LibraryStore, wrong: dict[str, Any]) -> None:
        [good] = source("c", "f.md", ["text"])
        with pytest.raises(InvalidChunkError, match=next(iter(wrong))):
            store.replace_source("c", "f.md", [good._replace(metadata={**good.metadata, **wrong})])
        assert store.count() == 0

    def test_results_show_the_metadata_as_given_and_no_more(self, store: LibraryStore) -> None:
        chunks = source("c", "f.md", ["one", "two"])
        store.replace_source("c", "f.md", chunks)
        found = {document.content: document.metadata for document in store.search(EAST)}
        assert found == {chunk.text: chunk.metadata for chunk in chunks}

    @pytest.mark.parametrize("name", [
        "a\x00b", "ünï 日本 🙂", "../../etc/passwd", "'; DROP TABLE chunks; --", " ", "x" * 2_000,
    ], ids=range(6))  # fmt: skip
    def test_a_source_may_have_any_name(self, store: LibraryStore, name: str) -> None:
        store.replace_source(name, name, source(name, name, ["one", "two"]))
        assert store.move_source(name, name, name + "2") == 2
        [info] = store.sources(name + "2")
        assert (info.source_file, info.chunks) == (name, 2)
        assert len(store.search(EAST, where={"source_file": name})) == 2
        store.replace_source(name + "2", name, [])
        assert store.count() == 0

    def test_move_keeps_vectors_and_gives_new_ids(self, store: LibraryStore) -> None:
        chunks = source("a", "f.md", ["one", "two"])
        store.replace_source("a", "f.md", [chunks[0], chunks[1]._replace(embedding=NORTH)])
        store.replace_source("a", "g.md", source("a", "g.md", ["other"]))
        old = {document.id for document in store.scan({"source_file": "f.md"})}
        assert store.move_source("f.md", "a", "b") == 2
        assert store.get(sorted(old)) == []
        moved = store.search(NORTH, 10, where={"collection": "b"})
        assert [(document.content, document.metadata["collection"]) for document in moved] == [
            ("two", "b"),
            ("one", "b"),
        ]
        assert moved[0].score == pytest.approx(1.0, abs=1e-4)
        assert [(info.collection, info.source_file, info.chunks, info.source_hash) for info in store.sources()] == [
            ("a", "g.md", 1, "h"), ("b", "f.md", 2, "h"),
        ]  # fmt: skip
        store.replace_source("b", "f.md", source("b", "f.md", ["only"]))
        assert store.count({"collection": "b"}) == 1

    def test_move_does_not_replace_what_is_there(self, store: LibraryStore) -> None:
        store.replace_source("a", "f.md", source("a", "f.md", ["from a"]))
        store.replace_source("b", "f.md", source("b", "f.md", ["from b"]))
        with pytest.raises(DuplicateChunkIDError, match="source"):
            store.move_source("f.md", "a", "b")
        assert sorted(document.content for document in store.scan()) == ["from a", "from b"]

    def test_moving_what_is_not_there_moves_nothing(self, store: LibraryStore) -> None:
        store.replace_source("a", "f.md", source("a", "f.md", ["text"]))
        assert store.move_source("g.md", "a", "b") == 0
        assert store.move_source("f.md", "a", "a") == 1
        assert [info.collection for info in store.sources()] == ["a"]

    def test_a_source_that_lost_a_chunk_is_listed_without_its_hash(self, store: LibraryStore) -> None:
        store.replace_source("c", "f.md", source("c", "f.md", ["one", "two", "three"]))
        store.delete(where={"chunk_index": 1})
        [info] = store.sources()
        assert (info.chunks, info.source_hash, info.source) == (2, "", "/in/f.md")
        store.move_source("f.md", "c", "d")
        assert store.sources("d")[0].source_hash == ""
        store.delete(where={"chunk_index": 0})
        assert store.sources()[0].source_hash == ""
        store.replace_source("d", "f.md", source("d", "f.md", ["one", "two", "three"]))
        assert store.sources()[0].source_hash == "h"

    def test_move_collection_moves_every_source_and_may_be_repeated(self, store: LibraryStore) -> None:
        store.replace_source("a", "f.md", source("a", "f.md", ["one", "two"]))
        store.replace_source("a", "g.md", source("a", "g.md", ["three"]))
        store.replace_source("b", "h.md", source("b", "h.md", ["four"]))
        assert store.move_collection("a", "b") == 3
        assert store.move_collection("a", "b") == 0
        assert [(info.collection, info.source_file, info.chunks, info.source_hash) for info in store.sources()] == [
            ("b", "f.md", 2, "h"), ("b", "g.md", 1, "h"), ("b", "h.md", 1, "h"),
        ]  # fmt: skip
        assert {document.metadata["collection"] for document in store.search(EAST)} == {"b"}

    def test_move_collection_does_not_replace_a_source(self, store: LibraryStore) -> None:
        for name in ("a", "b"):
            store.replace_source(name, "f.md", source(name, "f.md", [f"from {name}"]))
        with pytest.raises(DuplicateChunkIDError, match="source"):
            store.move_collection("a", "b")
        assert sorted(document.content for document in store.scan()) == ["from a", "from b"]

    def test_vectors_come_back_by_id(self, store: LibraryStore) -> None:
        store.add_documents([chunk("a", EAST), chunk("b", NORTH), chunk("c", UP)], ids=["a", "b", "c"])
        found = store.vectors(["c", "a", "c"])
        assert (found.shape, str(found.dtype)) == ((3, 3), "float32")
        assert found.tolist() == [UP, EAST, UP]
        with pytest.raises(StoreError, match="'x'"):
            store.vectors(["a", "x"])

    def test_the_vectors_of_stored_texts_are_known(self, store: LibraryStore) -> None:
        one, two = source("c", "f.md", ["one", "two"])
        store.replace_source("c", "f.md", [one, two._replace(embedding=NORTH)])
        known = store.known_vectors("c", "f.md", [Chunk(text, {}) for text in ("two", "three", "one")])
        assert {text: vector.tolist() for text, vector in known.items()} == {"one": EAST, "two": NORTH}
        assert store.known_vectors("c", "f.md", []) == {}
        assert set(store.known_vectors("c", "g.md", [Chunk("one", {}), Chunk("three", {})])) <= {"one"}

    def test_vectors_are_known_for_the_same_breadcrumb_only(self, store: LibraryStore) -> None:
        one, two = source("c", "f.md", ["one", "two"])
        for chunk_ in (one, two):
            chunk_.metadata["breadcrumb"] = "Guide"
        two.metadata["breadcrumb"] = "Guide > Install"
        store.replace_source("c", "f.md", [one, two._replace(embedding=NORTH)])
        asked = [Chunk("one", {"breadcrumb": "Other"}), Chunk("one", {}), Chunk("two", dict(two.metadata))]
        known = store.known_vectors("c", "f.md", asked)
        assert {text: vector.tolist() for text, vector in known.items()} == {"Guide > Install\ntwo": NORTH}

    def test_several_writes_share_the_right_to_write(self, store: LibraryStore) -> None:
        with store.writing():
            store.replace_source("a", "f.md", source("a", "f.md", ["one"]))
            with store.writing():
                store.move_source("f.md", "a", "b")
        store.flush()
        assert [info.collection for info in store.sources()] == ["b"]

    def test_the_embedder_is_recorded_once(self, store: LibraryStore) -> None:
        assert store.embedder() is None
        store.use_embedder(MINILM)
        store.use_embedder(MINILM)
        assert store.embedder() == MINILM

    @pytest.mark.parametrize("other", [
        EmbedderFingerprint("embedded", "another", "abc", 3), EmbedderFingerprint("embedded", "minilm", "def", 3),
        EmbedderFingerprint("ollama", "minilm", "abc", 3), EmbedderFingerprint("embedded", "minilm", "abc", 4),
        EmbedderFingerprint("embedded", "minilm", "abc", 3, query_prefix="query: "),
    ], ids=lambda other: f"{other.provider}-{other.model}-{other.dimension}")  # fmt: skip
    def test_another_embedder_is_refused_even_of_the_same_dimension(
        self, store: LibraryStore, other: EmbedderFingerprint
    ) -> None:
        store.use_embedder(MINILM)
        with pytest.raises(EmbeddingMismatchError, match=f"'minilm'.*{other.model!r}.*embed_model"):
            store.use_embedder(other)
        assert store.embedder() == MINILM

    def test_a_digest_that_one_side_does_not_know_is_no_difference(self, store: LibraryStore) -> None:
        store.use_embedder(MINILM)
        store.use_embedder(EmbedderFingerprint("embedded", "minilm", "", 3, max_tokens=256))

    def test_vectors_of_another_dimension_than_the_embedders_are_refused(self, store: LibraryStore) -> None:
        store.use_embedder(MINILM)
        with pytest.raises(EmbeddingMismatchError):
            store.add_documents([chunk("text", [1.0, 0.0])])
        with pytest.raises(EmbeddingMismatchError):
            store.search([1.0, 0.0])
        assert store.count() == 0

    def test_an_embedder_of_another_dimension_than_what_is_stored_is_refused(self, store: LibraryStore) -> None:
        store.add_documents([chunk("text")])
        with pytest.raises(EmbeddingMismatchError):
            store.use_embedder(EmbedderFingerprint("embedded", "minilm", "abc", 4))
        store.use_embedder(MINILM)

    def test_clear_forgets_the_embedder(self, store: LibraryStore) -> None:
        store.use_embedder(MINILM)
        store.add_documents([chunk("text")])
        store.clear_collection()
        assert store.embedder() is None
        store.use_embedder(EmbedderFingerprint("ollama", "nomic-embed-text", "", 2))
        assert store.add_documents([chunk("text", [1.0, 0.0])]) == 1


class RepairConformance:
    """The ability ``"repair"``, on an intact store."""

    def test_a_sound_store_has_nothing_to_repair(self, store: LibraryStore) -> None:
        store.replace_source("c", "f.md", source("c", "f.md", ["one", "two"]))
        assert store.verify() == []
        assert store.repair() == Repair()
        assert [info.chunks for info in store.sources()] == [2]


class ReembedConformance:
    """The ability ``"reembed"``."""

    def test_reembed_replaces_every_vector(self, store: LibraryStore) -> None:
        store.use_embedder(MINILM)
        store.replace_source("c", "f.md", source("c", "f.md", ["one", "two"]))
        store.add_documents([chunk("three")], ids=["a"])
        assert reembed(store, Flat()) == 3
        assert store.embedder() == Flat.fingerprint
        assert [document.content for document in store.search([0.0, 1.0], 1)] == ["two"]
        assert store.vectors(["a"]).tolist() == [[1.0, 0.0]]
        assert reembed(store, Flat()) == 0

    def test_the_old_vectors_serve_until_all_are_made(self, store: LibraryStore) -> None:
        store.use_embedder(MINILM)
        for name in ("f.md", "g.md", "h.md"):
            store.replace_source("c", name, source("c", name, [f"one of {name}", f"two of {name}"]))
        with pytest.raises(ModelConnectionError):
            reembed(store, Flat(fail_after=3))
        assert store.embedder() == MINILM
        assert len(store.search(EAST)) == 6
        reembed(store, Flat())
        assert len(store.search([1.0, 0.0])) == 6


class FitConformance:
    """The ability ``"fit"``, of a store with the ability ``"reembed"``."""

    def test_a_measurement_is_of_the_embedder_in_use(self, store: FitStore) -> None:
        fit = Fit(0.25, 120, "ours")
        assert store.fit() is None
        store.use_embedder(MINILM)
        store.add_documents([chunk("one")])
        store.record_fit(fit, Flat.fingerprint)
        assert store.fit() is None
        store.record_fit(fit, MINILM)
        assert store.fit() == fit
        reembed(store, Flat())
        assert store.fit() is None
        store.record_fit(fit, Flat.fingerprint)
        store.clear_collection()
        assert store.fit() is None


def failed(name: str, place: str = "", collection: str = "notes") -> Unsearchable:
    """An entry of a file that failed."""
    return Unsearchable(collection, name, place, "/f", "failed", "it is\0 damaged", 2.5)


class UnsearchableConformance:
    """The ability ``"unsearchable"``."""

    def test_an_entry_goes_when_its_path_is_written_or_removed(self, store: UnsearchableStore) -> None:
        one, other, text = failed("a.md", "/f/a.md"), failed("a.md", "/g/a.md"), failed("a.md")
        store.record_unsearchable([one, other])
        store.record_unsearchable([text, one])
        assert entries(store) == [other, text, one]
        [(first, _)] = store.unsearchable(limit=1)
        assert [entry for _, entry in store.unsearchable(first)] == [text, one]
        store.replace_source("notes", "a.md", kept("/f/a.md"))
        assert entries(store) == [other, text]
        store.record_unsearchable([one], gone=[first])
        assert [(entry.source_path, entry.kind) for entry in entries(store)][-1] == ("/f/a.md", "outdated")
        assert store.sources(in_part=True) == []
        store.replace_source("notes", "a.md", [])
        assert entries(store) == [text]
        store.replace_source("notes", "a.md", source("notes", "a.md", ["East."]))
        assert entries(store) == []

    def test_entries_are_recorded_with_a_source_or_not_at_all(self, store: UnsearchableStore) -> None:
        store.replace_source(
            "notes", "b.md", source("notes", "b.md", ["East."]), unsearchable=[failed("a.md", "/f/a.md")]
        )
        with pytest.raises(InvalidChunkError):
            store.replace_source("notes", "c.md", [chunk("", EAST)], unsearchable=[failed("d.md")])
        store.replace_source("notes", "b.md", [], unsearchable=[failed("b.md")])
        assert entries(store) == [failed("a.md", "/f/a.md"), failed("b.md")]

    def test_entries_and_folders_move_with_what_they_are_of(self, store: UnsearchableStore) -> None:
        store.replace_source("notes", "a.md", kept("/f/a.md"))
        store.record_unsearchable([failed("a.md", "/f/a.md"), failed("b.md", "/f/b.md")])
        folders = [IngestedFolder("old", "/f", {".png": 1}), IngestedFolder("notes", "/f", {".png": 2}, ("*.log",))]
        store.record_unsearchable(folders=[*folders, IngestedFolder("notes", "/g")])
        assert (store.folders(), store.folders("old")) == ([folders[1], folders[0]], folders[:1])
        store.move_source("a.md", "notes", "other")
        assert {(one.source_file, one.collection) for one in entries(store)} == {("a.md", "other"), ("b.md", "notes")}
        store.move_collection("notes", "old")
        assert store.folders() == [IngestedFolder("old", "/f", {".png": 2}, ("*.log",))]
        assert {(one.source_file, one.collection) for one in entries(store)} == {("a.md", "other"), ("b.md", "old")}
        store.record_unsearchable(folders=[IngestedFolder("old", "/f")])
        assert store.folders() == []
        store.record_unsearchable(folders=folders)
        store.clear_collection()
        assert (entries(store), store.folders()) == ([], [])


def kept(path: str) -> list[EmbeddedChunk]:
    """The chunks of a file a.md."""
    [one] = source("notes", "a.md", ["East."])
    return [one._replace(metadata=one.metadata | {"source_path": path})]


def entries(store: UnsearchableStore) -> list[Unsearchable]:
    """All entries."""
    return [entry for _, entry in store.unsearchable()]
