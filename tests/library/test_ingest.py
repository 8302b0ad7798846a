"""Ingest: what is new is added, what is unchanged costs nothing, what fails leaves the old version."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import (
    CollectionNotFoundError,
    EmbeddingGenerationError,
    ExtractionError,
    ModelConnectionError,
    ModelError,
    SourceError,
    SourceNotFoundError,
    StoreError,
)
from ragistry.library.ingest.plan import IngestPlan
from ragistry.library.ingest.source import SourceText
from ragistry.library.service import DocumentService
from ragistry.readers.extract import extract
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import EmbeddedChunk
from ragistry.utils.ids import chunk_id
from tests.conftest import Corpus
from tests.library.conftest import deny, paragraphs, stored, texts, topics
from tests.messages import check_message, refused
from tests.readers.raw_pdf import one_page

pytestmark = pytest.mark.usefixtures("embedder")


def refuse(poison: str, error: type[ModelError] = ModelError) -> Callable[[Sequence[str]], None]:
    """A check for `HashingEmbedder`: texts that contain ``poison`` are refused."""

    def check(texts: Sequence[str]) -> None:
        if any(poison in text for text in texts):
            raise error(f"cannot embed {poison!r}")

    return check


# What a chunk is, and what is embedded


def test_metadata_and_ids_of_a_chunk(workspace: Workspace, corpus: Corpus) -> None:
    path = corpus(texts(one="Tea Milk")) / "one.txt"
    assert workspace.library.ingest_file(path, "notes") == 2
    text = path.read_text(encoding="utf-8")
    documents = sorted(workspace.store.scan(), key=lambda document: document.metadata["chunk_index"])
    for index, document in enumerate(documents):
        metadata = document.metadata
        assert document.id == chunk_id("notes", "one.txt", index)
        assert text[metadata["start"] : metadata["end"]] == document.content
        assert metadata["token_count"] > 100
        assert isinstance(metadata["ingested_at"], float)
        assert len(metadata["source_hash"]) == 64
        assert (metadata["source"], metadata["source_file"], metadata["source_path"]) == (
            str(path),
            "one.txt",
            str(path),
        )
        assert (metadata["collection"], metadata["type"], metadata["chunk_index"]) == ("notes", "document", index)


def test_only_changed_chunks_are_embedded(workspace: Workspace, embedder: HashingEmbedder, corpus: Corpus) -> None:
    folder = corpus(texts(one="Tea Rain Snow Wind", two="Tea"))
    first = workspace.library.ingest_folder(folder, "notes")
    assert (first.chunks, first.embedded) == (5, 4), "one text is embedded once"
    embedder.texts.clear()
    assert workspace.library.ingest_folder(folder, "notes").skipped == ["one.txt", "two.txt"]
    assert embedder.texts == []
    corpus(texts(one="Tea Hail Snow"))
    report = workspace.library.ingest_folder(folder, "notes")
    assert (report.updated, report.chunks, report.embedded) == (["one.txt"], 3, 1)
    assert [text.split()[0] for text in embedder.texts] == ["Hail"]
    assert topics(workspace) == ["Tea", "Hail", "Snow", "Tea"]


def test_another_chunk_size_and_overlap_read_unchanged_files_again(workspace: Workspace, corpus: Corpus) -> None:
    library, folder = workspace.library, corpus({"one.txt": "x" * 1000})
    library.ingest_folder(folder, "notes")
    assert len(stored(workspace)) == 1
    library.reading = replace(library.reading, chunk_size=300, chunk_overlap=50, fit=False)
    assert library.ingest_folder(folder, "notes").updated == ["one.txt"]
    documents = sorted(workspace.store.scan(), key=lambda document: document.metadata["chunk_index"])
    spans = [(document.metadata["start"], document.metadata["end"]) for document in documents]
    assert spans == [(0, 300), (250, 550), (500, 800), (750, 1000)]


def test_text_is_cut_to_the_tokens_of_the_model_unless_a_size_was_chosen(tmp_path: Path) -> None:
    from ragistry.models.minilm import MiniLMEmbedder

    chinese = "检索增强生成把检索与生成结合在一起。" * 120
    with open_workspace(tmp_path) as workspace:
        library = workspace.library
        library.embedder = MiniLMEmbedder()
        library.create_collection("notes")
        report = library.carry_out(IngestPlan("notes", [SourceText(chinese, "zh.txt")]))
        assert not any("tokens" in warning for warning in report.warnings)
        assert max(document.metadata["token_count"] for document in workspace.store.scan()) <= 256
        library.reading = replace(library.reading, fit=False)
        report = library.carry_out(IngestPlan("notes", [SourceText(chinese, "zh.txt")]))
        check_message(report.warnings[0], "zh.txt", 256)
        with refused(EmbeddingGenerationError):
            library.ingest_text("half a character: \ud83d", "odd.txt", "notes")


def test_unchanged_file_is_not_parsed(workspace: Workspace, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    path = corpus({"one.pdf": one_page("Tea")}) / "one.pdf"
    workspace.library.ingest_file(path, "notes")

    def refuse(*_: object, **__: object) -> None:
        raise ExtractionError("it was parsed")

    monkeypatch.setattr("ragistry.readers.extract.extract", refuse)
    assert workspace.library.ingest_file(path, "notes") == 0
    workspace.library.create_collection("other")
    with pytest.raises(ExtractionError):
        workspace.library.ingest_file(path, "other")


# What cannot be read


def test_one_bad_file_does_not_stop_the_others(workspace: Workspace, corpus: Corpus) -> None:
    folder = corpus(texts(one="Tea", two="Rain", empty="") | {"broken.pdf": "%PDF-1.4 nothing", "a.png": "not read"})
    for round in range(2):
        report = workspace.library.ingest_folder(folder, "notes")
        assert report.added == ([] if round else ["one.txt", "two.txt"])
        assert report.skipped == (["empty.txt", "one.txt", "two.txt"] if round else ["empty.txt"])
        assert [failure.source for failure in report.failed] == [str(folder / "broken.pdf")]
        assert "broken.pdf" in report.failed[0].error
        assert [warning.split(":")[0] for warning in report.warnings] == ["empty.txt"]
    report = workspace.library.ingest_paths([folder / "broken.pdf", str(folder / "broken.pdf")], "notes")
    assert len(report.failed) == 1, "a file that is named twice fails once"


def test_every_method_takes_the_options_of_an_ingest(workspace: Workspace, corpus: Corpus) -> None:
    library, folder, seen = workspace.library, corpus(texts(one="Tea")), list[str]()
    given = {"metadata": {"year": 2024}, "progress": lambda name, *_: seen.append(name), "replace": True}
    library.ingest_text("Rain", "rain", "notes", **given)  # type: ignore[arg-type]
    library.ingest_file(folder / "one.txt", "notes", **given)  # type: ignore[arg-type]
    assert seen == ["rain", "", "one.txt", ""]
    assert [info.metadata["year"] for info in library.sources("notes")] == [2024, 2024]
    for method in (library.ingest_file, library.ingest_folder, library.ingest_paths):
        with pytest.raises(TypeError, match="'prun'"):
            method(folder / "one.txt", "notes", prun=True)  # type: ignore[operator]


def test_folders_without_readable_files_are_refused(workspace: Workspace, tmp_path: Path, corpus: Corpus) -> None:
    library, none = workspace.library, corpus({"sound.mp3": "ID3"}, "none")
    with refused(SourceError, none):
        library.ingest_folder(none, "notes")
    report = library.ingest_paths([none, corpus(texts(one="Tea"))], "notes")
    assert (report.added, [failure.source for failure in report.failed]) == (["one.txt"], [str(none)])
    with refused(SourceNotFoundError, tmp_path / "nowhere"):
        library.ingest_folder(tmp_path / "nowhere", "notes")
    with refused(SourceNotFoundError, tmp_path / "missing.txt"):
        library.ingest_file(tmp_path / "missing.txt", "notes")
    with refused(CollectionNotFoundError, "note"):
        library.ingest_folder(none, "note")


def test_empty_path_is_refused(
    workspace: Workspace, tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = workspace.library
    monkeypatch.chdir(corpus(texts(one="Tea")))
    for path in ("", " ", "x" * 300):
        for ingest in (
            library.ingest_file,
            library.ingest_folder,
            lambda *given: library.ingest_paths([given[0]], "notes"),
        ):
            with refused(SourceError, path):
                ingest(path, "notes")
    assert library.ingest_folder(".", "notes").added == ["one.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_reported(workspace: Workspace, corpus: Corpus) -> None:
    folder = corpus(texts(one="Tea", two="Rain"))
    (folder / "one.txt").chmod(0)
    report = workspace.library.ingest_folder(folder, "notes")
    assert [failure.source for failure in report.failed] == [str(folder / "one.txt")]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that opens and cannot be read")
def test_a_file_that_fails_while_it_is_read_is_reported(workspace: Workspace, corpus: Corpus) -> None:
    folder = corpus(texts(one="Tea"))
    (folder / "bad.txt").symlink_to("/proc/self/mem")
    report = workspace.library.ingest_folder(folder, "notes", follow_links=True)
    assert report.added == ["one.txt"]
    assert [failure.source for failure in report.failed] == [str(folder / "bad.txt")]


def test_unreadable_file_keeps_its_old_version_and_an_empty_one_is_deleted(
    workspace: Workspace, corpus: Corpus
) -> None:
    folder = corpus(texts(one="Tea", two="Rain"))
    workspace.library.ingest_folder(folder, "notes")
    corpus({"one.txt": b"\0\1\2binary\0" * 50})
    report = workspace.library.ingest_folder(folder, "notes", prune=True)
    assert ([failure.source for failure in report.failed], report.vanished) == ([str(folder / "one.txt")], [])
    assert topics(workspace) == ["Tea", "Rain"]
    assert workspace.search("Tea").documents[0].metadata["source_file"] == "one.txt"
    corpus({"one.txt": ""})
    report = workspace.library.ingest_folder(folder, "notes")
    assert (report.deleted, report.updated, report.skipped) == (["one.txt"], [], ["two.txt"])
    assert workspace.library.list_sources("notes") == ["two.txt"]


def test_unlisted_folder_is_not_pruned(workspace: Workspace, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = corpus({"one.txt": "Tea", "sub/two.txt": "Rain"})
    workspace.library.ingest_folder(folder, "notes")
    deny(monkeypatch, "scandir", folder / "sub")
    report = workspace.library.ingest_folder(folder, "notes", prune=True)
    [failure] = report.failed
    check_message(failure.error, folder / "sub")
    assert (report.vanished, report.deleted) == ([], [])
    assert workspace.library.list_sources("notes") == ["one.txt", "sub/two.txt"]


def test_file_out_of_reach_does_not_stop(workspace: Workspace, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    old = corpus(texts(one="Tea"), "old") / "one.txt"
    workspace.library.ingest_file(old, "notes")
    folder = corpus(texts(one="Rain", two="Snow"))
    deny(monkeypatch, "stat", old.parent)
    report = workspace.library.ingest_folder(folder, "notes")
    assert report.added == ["two.txt"]
    [failure] = report.failed
    check_message(failure.error, "one.txt", old)
    assert topics(workspace, "one.txt") == ["Tea"]


def test_link_out_of_reach_does_not_stop(workspace: Workspace, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = corpus({"two.txt": "Snow", "sub/one.txt": "Tea"})
    (folder / "a-link.txt").symlink_to(folder / "sub" / "one.txt")
    workspace.library.ingest_folder(folder, "notes")
    corpus({"two.txt": "Hail"})
    deny(monkeypatch, "stat", folder / "sub", folder / "a-link.txt")
    report = workspace.library.ingest_folder(folder, "notes", prune=True)
    assert (report.updated, report.deleted) == (["two.txt"], [])
    assert {failure.source for failure in report.failed} >= {str(folder / "a-link.txt")}
    assert all("Permission denied" in failure.error for failure in report.failed)


# A file that changes while it is read


@pytest.mark.parametrize("name", ["one.txt", "one.pdf"])
def test_file_that_changes_while_it_is_read_gets_the_hash_of_its_text(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    versions = {word: _bytes_of(name, word) for word in ("Tea", "Rain", "Snow")}
    path = tmp_path / name
    path.write_bytes(versions["Tea"])
    reads = _changing(monkeypatch, path, [versions["Rain"], versions["Snow"]])
    assert workspace.library.ingest_file(path, "notes") > 0
    assert not reads
    [word] = topics(workspace, name)
    path.write_bytes(versions[word])
    assert workspace.library.ingest_file(path, "notes") == 0
    for word, version in versions.items():
        path.write_bytes(version)
        workspace.library.ingest_file(path, "notes")
        assert topics(workspace, name) == [word]


def _bytes_of(name: str, word: str) -> bytes:
    text = f"{word} in the garden"
    return one_page(text) if name.endswith(".pdf") else text.encode()


def _changing(monkeypatch: pytest.MonkeyPatch, path: Path, versions: list[bytes]) -> list[bytes]:
    """Write the next version before the file is read for its text, and one more afterwards."""

    def change_and_read(*args, **options):
        if versions:
            path.write_bytes(versions.pop(0))
        read = extract(*args, **options)
        if versions:
            path.write_bytes(versions.pop(0))
        return read

    monkeypatch.setattr("ragistry.readers.extract.extract", change_and_read)
    return versions


# What the model refuses


@pytest.mark.parametrize("error", [EmbeddingGenerationError, ModelError])
def test_source_that_cannot_be_embedded_keeps_its_old_version(
    workspace: Workspace, embedder: HashingEmbedder, corpus: Corpus, error: type[ModelError]
) -> None:
    library, folder = workspace.library, corpus(texts(one="Tea", two="Rain"))
    library.ingest_folder(folder, "notes")
    embedder.check = refuse("Poison", error)
    corpus(texts(one="Milk Snow Poison Hail", two="Snow"))
    report = library.ingest_folder(folder, "notes")
    assert report.updated == ["two.txt"]
    [failure] = report.failed
    assert failure.source == "one.txt"
    check_message(failure.error, "one.txt", "chunk 3 of 4", "Poison")
    assert topics(workspace) == ["Tea", "Snow"]
    for ingest in (
        lambda: library.ingest_text("Poison", "bad", "notes"),
        lambda: library.ingest_file(folder / "one.txt", "notes"),
    ):
        with refused(EmbeddingGenerationError):
            ingest()


def test_server_that_refuses_everything_stops(workspace: Workspace, embedder: HashingEmbedder, corpus: Corpus) -> None:
    assert workspace.search("tea").documents == []
    embedder.check, embedder.calls = refuse(""), 0
    with refused(ModelError):
        workspace.library.ingest_folder(corpus(texts(**{f"n{number}": "Tea" for number in range(20)})), "notes")
    assert embedder.calls == 2, "the texts, then a word that every model accepts"
    assert stored(workspace) == []
    embedder.check = None
    assert workspace.search("tea").documents == [], "the embedder is recorded, but no vector"


def test_a_server_that_goes_down_leaves_every_source_whole(
    workspace: Workspace, embedder: HashingEmbedder, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tire(texts: Sequence[str]) -> None:
        if len(embedder.texts) + len(texts) > 12:
            raise ModelConnectionError("it is gone; start it")

    monkeypatch.setattr("ragistry.library.ingest.run.CHUNKS_AT_ONCE", 4)
    folder = corpus(texts(**{f"f{n}": "Tea" for n in range(6)}))
    workspace.library.ingest_folder(folder, "notes")
    corpus(texts(**{f"f{n}": " ".join(f"Snow{n}-{i}" for i in range(4)) for n in range(6)}))
    embedder.texts.clear()
    embedder.check = tire
    with pytest.raises(ModelConnectionError):
        workspace.library.ingest_folder(folder, "notes")
    now = {name: topics(workspace, name) for name in workspace.library.list_sources("notes")}
    written = [name for name in now if now[name] != ["Tea"]]
    assert written == ["f0.txt", "f1.txt", "f2.txt"]
    assert all(now[name] == [f"Snow{name[1]}-{i}" for i in range(4)] for name in written)
    embedder.check = None
    report = workspace.library.ingest_folder(folder, "notes")
    assert (report.skipped, len(report.updated)) == (written, 6 - len(written))


# Names of files: which file a name means, and which names a file had


def test_a_store_that_fails_half_way_says_how_many_sources_went_in(
    workspace: Workspace, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = workspace.store.replace_source

    def until_full(collection: str, source_file: str, chunks: Any) -> None:
        if source_file == "c.md":
            raise StoreError("the disk is full")
        replace(collection, source_file, chunks)

    monkeypatch.setattr(workspace.store, "replace_source", until_full)
    with refused(StoreError, 2):
        workspace.library.ingest_folder(corpus({f"{name}.md": name for name in "abcd"}), "notes")
    assert workspace.library.list_sources("notes") == ["a.md", "b.md"]


def test_a_name_that_another_file_has_is_taken_only_with_replace(workspace: Workspace, corpus: Corpus) -> None:
    library, one, other = workspace.library, corpus(texts(same="Tea"), "a"), corpus(texts(same="Rain"), "b")
    library.ingest_file(one / "same.txt", "notes")
    with refused(SourceError, "same.txt", one, other):
        library.ingest_file(other / "same.txt", "notes")
    one.rename(one.with_name("away"))
    for ingest in (
        lambda: library.ingest_file(other / "same.txt", "notes"),
        lambda: library.ingest_text(paragraphs("Rain"), "same.txt", "notes"),
    ):
        with refused(SourceError, one / "same.txt"):
            ingest()
    assert topics(workspace) == ["Tea"]
    assert library.ingest_folder(other, "notes", replace=True).updated == ["same.txt"]
    assert topics(workspace) == ["Rain"]
    one.with_name("away").rename(one)
    assert library.ingest_file(one / "same.txt", "notes", replace=True) == 1
    assert topics(workspace) == ["Tea"]


def test_a_text_and_a_file_of_one_name_are_two_sources(workspace: Workspace, corpus: Corpus) -> None:
    library, path = workspace.library, corpus({"tea.txt": "File."}) / "tea.txt"
    library.ingest_text("Text.", "tea.txt", "notes")
    with refused(SourceError, path, "a text"):
        library.ingest_file(path, "notes")
    library.delete_source("tea.txt", "notes")
    library.ingest_file(path, "notes")
    with refused(SourceError, path, "a text"):
        library.ingest_text("Text.", "tea.txt", "notes")
    assert stored(workspace) == ["File."]


def test_moved_file_is_not_embedded_again(
    workspace: Workspace, embedder: HashingEmbedder, corpus: Corpus, tmp_path: Path
) -> None:
    workspace.library.ingest_folder(corpus(texts(same="Tea"), "a"), "notes")
    embedder.texts.clear()
    (tmp_path / "a").rename(tmp_path / "b")
    report = workspace.library.ingest_folder(tmp_path / "b", "notes")
    assert (report.updated, report.failed, embedder.texts) == (["same.txt"], [], [])
    assert workspace.library.source("same.txt", "notes").source_path == str(tmp_path / "b" / "same.txt")
    corpus(texts(same="Milk"), "b")
    assert workspace.library.ingest_folder(tmp_path / "b", "notes").updated == ["same.txt"]


def test_of_two_files_with_one_name_the_second_fails(workspace: Workspace, corpus: Corpus) -> None:
    library, one, other = workspace.library, corpus(texts(same="Tea"), "a"), corpus(texts(same="Rain"), "b")
    report = library.ingest_paths([one / "same.txt", other / "same.txt", one / "same.txt"], "notes")
    assert report.added == ["same.txt"]
    assert [failure.source for failure in report.failed] == [str(other / "same.txt")]
    for _ in range(2):
        report = library.ingest_paths([one, other], "notes", replace=True)
        assert [failure.source for failure in report.failed] == [str(other / "same.txt")]
        assert (report.skipped, report.updated, topics(workspace)) == (["same.txt"], [], ["Tea"])


def test_relative_path_means_one_file(workspace: Workspace, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = corpus(texts(same="Tea"), "a"), corpus(texts(same="Rain"), "b")
    monkeypatch.chdir(one)
    workspace.library.ingest_file("same.txt", "notes")
    monkeypatch.chdir(other)
    with refused(SourceError, one / "same.txt"):
        workspace.library.ingest_file("same.txt", "notes")
    monkeypatch.chdir(one.parent)
    (one / "same.txt").unlink()
    corpus(texts(other="Snow"), "a")
    assert workspace.library.ingest_folder("a", "notes", prune=True).deleted == ["same.txt"]


def test_file_under_another_name_is_one_source(workspace: Workspace, embedder: HashingEmbedder, corpus: Corpus) -> None:
    folder = corpus({f"{name}.txt": paragraphs(topic) for name, topic in
                     {"left": "Snow", "x/same": "Tea", "y/same": "Rain"}.items()})  # fmt: skip
    library = workspace.library
    library.ingest_file(folder / "x" / "same.txt", "notes")
    embedder.texts.clear()
    report = library.ingest_folder(folder, "notes")
    assert (report.added, report.deleted) == (["left.txt", "x/same.txt", "y/same.txt"], ["same.txt"])
    [warning] = report.warnings
    check_message(warning, "x/same.txt", "'same.txt'")
    assert not any("Tea" in text for text in embedder.texts), "its vectors are known"
    assert library.list_sources("notes") == ["left.txt", "x/same.txt", "y/same.txt"]
    again = library.ingest_folder(folder, "notes")
    assert (len(again.skipped), again.deleted, again.warnings) == (3, [], [])


def test_a_file_named_beside_its_folder_is_ingested_once(workspace: Workspace, corpus: Corpus) -> None:
    folder = corpus({"x/same.txt": "Tea", ".notes/other.txt": "Rain"})
    paths = [folder / "x" / "same.txt", folder, folder / "x", folder / ".notes" / "other.txt"]
    first = workspace.library.ingest_paths(paths, "notes")
    assert (sorted(first.added), first.deleted, first.warnings) == (["other.txt", "x/same.txt"], [], [])
    again = workspace.library.ingest_paths(paths, "notes")
    assert (sorted(again.skipped), again.added, again.warnings) == (["other.txt", "x/same.txt"], [], [])


def test_two_names_of_a_file_that_a_killed_write_left_become_one(workspace: Workspace, corpus: Corpus) -> None:
    folder, library = corpus({"in/same.txt": "Tea"}), workspace.library
    library.ingest_folder(folder / "in", "notes")
    [document] = workspace.store.scan()
    [vector] = workspace.store.vectors([document.id])
    library.ingest_folder(folder, "notes")
    assert library.list_sources("notes") == ["in/same.txt"]
    workspace.store.replace_source("notes", "same.txt", [EmbeddedChunk(document.content, document.metadata, vector)])
    report = library.ingest_folder(folder, "notes")
    assert (report.skipped, report.deleted) == (["in/same.txt"], ["same.txt"])


def test_a_link_and_its_file_are_two_sources(workspace: Workspace, corpus: Corpus) -> None:
    folder, links = corpus({"tea.txt": "Tea"}), corpus({}, "links")
    links.mkdir()
    (links / "also.txt").symlink_to(folder / "tea.txt")
    library = workspace.library
    library.ingest_folder(links, "notes", follow_links=True)
    library.ingest_folder(folder, "notes")
    assert library.ingest_folder(links, "notes", follow_links=True).skipped == ["also.txt"]
    assert library.list_sources("notes") == ["also.txt", "tea.txt"]


@pytest.mark.parametrize("replace", [False, True])
def test_a_file_whose_bare_name_another_gets_keeps_its_own(workspace: Workspace, corpus: Corpus, replace: bool) -> None:
    folder = corpus({"a/same.txt": "Tea", "b/same.txt": "Rain", "c/same.txt": "Snow"})
    files = [folder / name / "same.txt" for name in "abc"]
    workspace.library.ingest_folder(folder, "notes")
    first = workspace.library.ingest_paths(files, "notes", replace=replace)
    assert (first.added, first.deleted, len(first.warnings)) == (["same.txt"], ["a/same.txt"], 1)
    again = workspace.library.ingest_paths(files, "notes", replace=replace)
    assert (again.skipped, again.deleted, again.warnings) == (["same.txt"], [], [])
    for report in (first, again):
        assert [failure.source for failure in report.failed] == [str(path) for path in files[1:]]
    now = {name: topics(workspace, name) for name in workspace.library.list_sources("notes")}
    assert now == {"same.txt": ["Tea"], "b/same.txt": ["Rain"], "c/same.txt": ["Snow"]}


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_file_keeps_its_name_in_any_order(workspace: Workspace, corpus: Corpus, order: int, replace: bool) -> None:
    folder = corpus({"same.txt": "Tea", "sub/same.txt": "Rain"})
    path, other = folder / "same.txt", folder / "sub" / "same.txt"
    workspace.library.ingest_folder(folder, "notes")
    path.write_text("Milk", encoding="utf-8")
    report = workspace.library.ingest_paths([path, other][::order], "notes", replace=replace)
    assert (report.updated, report.deleted) == (["same.txt"], [])
    assert [failure.source for failure in report.failed] == [str(other)]
    assert (topics(workspace, "same.txt"), topics(workspace, "sub/same.txt")) == (["Milk"], ["Rain"])


def test_a_name_that_one_file_is_refused_goes_to_the_next(workspace: Workspace, corpus: Corpus) -> None:
    old, other = corpus({"same.txt": "Tea"}, "old"), corpus({"same.txt": "Rain"}, "a") / "same.txt"
    workspace.library.ingest_file(old / "same.txt", "notes")
    moved = old.rename(old.with_name("b")) / "same.txt"
    report = workspace.library.ingest_paths([other, moved], "notes")
    assert ([failure.source for failure in report.failed], report.updated) == ([str(other)], ["same.txt"])
    assert workspace.library.source("same.txt", "notes").source_path == str(moved)


def test_emptied_folder_is_not_pruned_but_its_sources_can_be_deleted(library: DocumentService, corpus: Corpus) -> None:
    folder = corpus({"one.txt": "Tea", "sub/two.txt": "Rain"})
    library.ingest_folder(folder, "notes")
    shutil.rmtree(folder)
    with refused(SourceNotFoundError, folder, "'one.txt', 'sub/two.txt'"):
        library.ingest_paths([folder], "notes", prune=True)
    folder.mkdir()
    with refused(SourceError, folder, "notes"):
        library.ingest_folder(folder, "notes", prune=True)
    assert library.list_sources("notes") == ["one.txt", "sub/two.txt"]
    assert library.delete_sources(library.ingest_folder(folder, "notes").vanished, "notes") == 2
    assert library.list_sources("notes") == []
