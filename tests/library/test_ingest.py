"""Ingest: what is new is added, what is unchanged costs nothing, what fails leaves the old version."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from ragistry import Workspace
from ragistry.errors import (
    CollectionNotFoundError,
    EmbeddingGenerationError,
    ExtractionError,
    ModelConnectionError,
    ModelError,
    SourceError,
    SourceNotFoundError,
    UnsupportedFormatError,
)
from ragistry.library.source import SourceText
from ragistry.types import EmbeddedChunk
from ragistry.utils.ids import chunk_id
from tests.utils.raw_pdf import one_page


class Counting:
    """The real embedder, with a list of what it saw; texts that contain ``poison`` cannot be embedded."""

    def __init__(self, embedder, poison: str = "\0") -> None:
        self.embedder = embedder
        self.poison = poison
        self.seen: list[str] = []

    @property
    def fingerprint(self):
        return self.embedder.fingerprint

    def count_tokens(self, texts: Sequence[str]):
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: str = "document"):
        if any(self.poison in text for text in texts):
            raise EmbeddingGenerationError(f"cannot embed {self.poison!r}")
        self.seen.extend(texts)
        return self.embedder.embed(texts, role=role)


@pytest.fixture
def embedder(workspace: Workspace) -> Counting:
    workspace.library.embedder = Counting(workspace.embedder)
    return workspace.library.embedder


def paragraphs(*topics: str) -> str:
    """A text whose every paragraph is a chunk of its own."""
    return "\n\n".join(f"{topic} " + f"is what this paragraph is about, and {topic} only. " * 14 for topic in topics)


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


def stored(workspace: Workspace) -> dict[str, str]:
    return {document.id: document.content for document in workspace.store.scan()}


def test_a_folder_is_added_then_skipped(workspace: Workspace, embedder: Counting, tmp_path: Path) -> None:
    folder = write(tmp_path / "in", one=paragraphs("Tea"), two=paragraphs("Rain", "Snow"))
    first = workspace.library.ingest_folder(folder, "notes")
    assert (first.added, first.skipped, first.failed) == (["one.txt", "two.txt"], [], [])
    assert first.chunks == first.embedded == workspace.library.count("notes") > 2
    embedder.seen.clear()
    again = workspace.library.ingest_folder(folder, "notes")
    assert (again.added, again.updated, again.skipped) == ([], [], ["one.txt", "two.txt"])
    assert (embedder.seen, again.chunks) == ([], 0)


def test_metadata_and_ids_of_a_chunk(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "in", one=paragraphs("Tea", "Milk")) / "one.txt"
    assert workspace.library.ingest_file(path, "notes") >= 2
    text = path.read_text(encoding="utf-8")
    documents = sorted(workspace.store.scan(), key=lambda document: document.metadata["chunk_index"])
    for index, document in enumerate(documents):
        metadata = document.metadata
        assert document.id == chunk_id("notes", "one.txt", index)
        assert text[metadata["start"] : metadata["end"]] == document.content
        assert 10 < metadata["token_count"] <= 256
        assert isinstance(metadata["ingested_at"], float)
        assert len(metadata["source_hash"]) == 64
        assert {key: metadata[key] for key in ("source", "source_file", "collection", "type", "chunk_index")} == {
            "source": str(path),
            "source_file": "one.txt",
            "collection": "notes",
            "type": "document",
            "chunk_index": index,
        }


def test_only_changed_chunks_are_embedded_and_stale_ones_go(
    workspace: Workspace, embedder: Counting, tmp_path: Path
) -> None:
    folder = write(tmp_path / "in", one=paragraphs("Tea", "Rain", "Snow", "Wind"))
    workspace.library.ingest_folder(folder, "notes")
    before = stored(workspace)
    embedder.seen.clear()
    write(folder, one=paragraphs("Tea", "Hail", "Snow"))
    report = workspace.library.ingest_folder(folder, "notes")
    assert report.updated == ["one.txt"]
    assert embedder.seen
    assert all("Hail" in text for text in embedder.seen)
    after = stored(workspace)
    assert not any("Wind" in text or "Rain" in text for text in after.values())
    assert len(after) < len(before)


def test_one_bad_file_does_not_stop_the_others(workspace: Workspace, tmp_path: Path) -> None:
    folder = write(tmp_path / "in", one=paragraphs("Tea"), two=paragraphs("Rain"))
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (folder / "empty.txt").write_text("", encoding="utf-8")
    (folder / "picture.png").write_bytes(b"not read at all")
    report = workspace.library.ingest_folder(folder, "notes")
    assert (report.added, report.skipped) == (["one.txt", "two.txt"], ["empty.txt"])
    assert [failure.source for failure in report.failed] == [str(folder / "broken.pdf")]
    assert "broken.pdf" in report.failed[0].error
    assert any("empty.txt" in warning for warning in report.warnings)


def test_a_source_that_cannot_be_embedded_keeps_its_old_version(
    workspace: Workspace, embedder: Counting, tmp_path: Path
) -> None:
    folder = write(tmp_path / "in", one=paragraphs("Tea"), two=paragraphs("Rain"))
    workspace.library.ingest_folder(folder, "notes")
    before = {text for text in stored(workspace).values() if "Tea" in text}
    embedder.poison = "Poison"
    write(folder, one=paragraphs("Milk", "Poison"), two=paragraphs("Snow"))
    report = workspace.library.ingest_folder(folder, "notes")
    assert report.updated == ["two.txt"]
    [failure] = report.failed
    assert failure.source == "one.txt"
    assert re.search(r"'one.txt' .* chunk 2 of 2 .* refused: cannot embed 'Poison'", failure.error)
    assert before <= set(stored(workspace).values())
    assert not any("Milk" in text for text in stored(workspace).values())


def test_a_server_that_is_down_stops_the_ingest_and_loses_nothing(workspace: Workspace, tmp_path: Path) -> None:
    class Down(Counting):
        def embed(self, texts, *, role="document"):
            raise ModelConnectionError("nobody answers; start it")

    folder = write(tmp_path / "in", one=paragraphs("Tea"))
    workspace.library.ingest_folder(folder, "notes")
    before = stored(workspace)
    workspace.library.embedder = Down(workspace.embedder)
    write(folder, one=paragraphs("Milk"))
    with pytest.raises(ModelConnectionError):
        workspace.library.ingest_folder(folder, "notes")
    assert stored(workspace) == before


def test_vanished_files_are_reported_and_pruned_when_asked(workspace: Workspace, tmp_path: Path) -> None:
    folder = write(tmp_path / "in", one=paragraphs("Tea"), two=paragraphs("Rain"))
    workspace.library.ingest_folder(folder, "notes")
    workspace.library.ingest_text(paragraphs("Wind"), "three.txt", "notes")
    (folder / "one.txt").unlink()
    report = workspace.library.ingest_folder(folder, "notes")
    assert (report.vanished, report.deleted) == (["one.txt"], [])
    assert "one.txt" in workspace.library.list_sources("notes")
    report = workspace.library.ingest_folder(folder, "notes", prune=True)
    assert report.deleted == ["one.txt"]
    assert workspace.library.list_sources("notes") == ["three.txt", "two.txt"]


def test_a_name_that_another_file_has_is_not_replaced(workspace: Workspace, tmp_path: Path) -> None:
    one = write(tmp_path / "a", same=paragraphs("Tea")) / "same.txt"
    other = write(tmp_path / "b", same=paragraphs("Rain")) / "same.txt"
    workspace.library.ingest_file(one, "notes")
    with pytest.raises(SourceError, match="is '.*/a/same.txt', not '.*/b/same.txt'"):
        workspace.library.ingest_file(other, "notes")
    assert all("Tea" in text for text in stored(workspace).values())
    assert workspace.library.ingest_file(other, "notes", replace=True) > 0
    assert all("Rain" in text for text in stored(workspace).values())


def test_a_name_is_kept_while_its_file_is_out_of_reach(workspace: Workspace, tmp_path: Path) -> None:
    write(tmp_path / "a", same=paragraphs("Tea"))
    other = write(tmp_path / "b", same=paragraphs("Rain")) / "same.txt"
    workspace.library.ingest_file(tmp_path / "a" / "same.txt", "notes")
    (tmp_path / "a").rename(tmp_path / "away")
    for take_in in (
        lambda: workspace.library.ingest_file(other, "notes"),
        lambda: workspace.library.ingest_text(paragraphs("Rain"), "same.txt", "notes"),
    ):
        with pytest.raises(SourceError, match="a/same.txt', which is not there now, .*`--replace`"):
            take_in()
    assert all("Tea" in text for text in stored(workspace).values())
    report = workspace.library.ingest_folder(tmp_path / "b", "notes", replace=True)
    assert report.updated == ["same.txt"]
    assert all("Rain" in text for text in stored(workspace).values())


def test_a_file_that_was_moved_is_followed_without_the_model(
    workspace: Workspace, embedder: Counting, tmp_path: Path
) -> None:
    folder = write(tmp_path / "a", same=paragraphs("Tea"))
    workspace.library.ingest_folder(folder, "notes")
    embedder.seen.clear()
    folder.rename(tmp_path / "b")
    report = workspace.library.ingest_folder(tmp_path / "b", "notes")
    assert (report.updated, report.failed, embedder.seen) == (["same.txt"], [], [])
    assert workspace.library.source("same.txt", "notes").source_path == str(tmp_path / "b" / "same.txt")
    write(tmp_path / "b", same=paragraphs("Milk"))
    assert workspace.library.ingest_folder(tmp_path / "b", "notes").updated == ["same.txt"]


class Refusing(Counting):
    """A server that answers a text with ``poison`` by an HTTP error, or every text where that is empty."""

    calls = 0

    def embed(self, texts: Sequence[str], *, role: str = "document"):
        self.calls += 1
        if any(self.poison in text for text in texts):
            raise ModelError("the server answered 500: 'unsupported value: NaN'")
        return self.embedder.embed(texts, role=role)


def test_one_text_that_the_server_refuses_fails_its_own_source_only(workspace: Workspace, tmp_path: Path) -> None:
    library = workspace.library
    library.embedder = Refusing(workspace.embedder, poison="Poison")
    texts = {f"n{number}": paragraphs(f"Tea {number}") for number in range(4)}
    folder = write(tmp_path / "in", **texts, bad=paragraphs("Milk", "Snow", "Poison", "Rain"))
    report = library.ingest_folder(folder, "notes")
    assert report.added == ["n0.txt", "n1.txt", "n2.txt", "n3.txt"]
    [failure] = report.failed
    assert failure.source == "bad.txt"
    assert re.search(r"^'bad.txt' .* chunk 3 of 4 .*answered 500", failure.error)
    for take_in in (
        lambda: library.ingest_text("Poison", "bad", "notes"),
        lambda: library.ingest_file(folder / "bad.txt", "notes"),
    ):
        with pytest.raises(EmbeddingGenerationError, match="'bad.* chunk . of .*answered 500"):
            take_in()


def test_a_server_that_refuses_everything_stops_the_ingest_at_once(workspace: Workspace, tmp_path: Path) -> None:
    workspace.library.embedder = refusing = Refusing(workspace.embedder, poison="")
    write(tmp_path / "in", **{f"n{number}": paragraphs(f"Tea {number}") for number in range(20)})
    with pytest.raises(ModelError, match="answered 500"):
        workspace.library.ingest_folder(tmp_path / "in", "notes")
    assert refusing.calls == 3
    assert stored(workspace) == {}


def test_two_files_of_one_name_in_one_ingest(workspace: Workspace, tmp_path: Path) -> None:
    one = write(tmp_path / "a", same=paragraphs("Tea")) / "same.txt"
    other = write(tmp_path / "b", same=paragraphs("Rain")) / "same.txt"
    report = workspace.library.ingest_paths([one, other, one], "notes")
    assert report.added == ["same.txt"]
    assert [failure.source for failure in report.failed] == [str(other)]
    assert all("Tea" in text for text in stored(workspace).values())


def test_a_relative_path_is_that_of_its_own_folder(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a", same=paragraphs("Tea"))
    write(tmp_path / "b", same=paragraphs("Rain"))
    monkeypatch.chdir(tmp_path / "a")
    workspace.library.ingest_file("same.txt", "notes")
    monkeypatch.chdir(tmp_path / "b")
    with pytest.raises(SourceError, match="same.txt' in collection 'notes' is '.*/a/same.txt'"):
        workspace.library.ingest_file("same.txt", "notes")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a" / "same.txt").unlink()
    write(tmp_path / "a", other=paragraphs("Snow"))
    assert workspace.library.ingest_folder("a", "notes", prune=True).deleted == ["same.txt"]


def test_an_empty_folder_beside_others_is_reported(workspace: Workspace, tmp_path: Path) -> None:
    folder = write(tmp_path / "in", one=paragraphs("Tea"))
    (tmp_path / "none").mkdir()
    report = workspace.library.ingest_paths([tmp_path / "none", folder], "notes")
    assert report.added == ["one.txt"]
    assert [failure.source for failure in report.failed] == [str(tmp_path / "none")]


def test_an_empty_file_is_skipped_with_a_warning(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    for _ in range(2):
        report = workspace.library.ingest_paths([tmp_path / "empty.txt"], "notes")
        assert (report.added, report.skipped) == ([], ["empty.txt"])
        assert len(report.warnings) == 1


def test_the_same_name_in_two_collections_is_two_sources(workspace: Workspace, tmp_path: Path) -> None:
    workspace.library.create_collection("more")
    path = write(tmp_path / "in", one=paragraphs("Tea")) / "one.txt"
    chunks = workspace.library.ingest_file(path, "notes")
    assert workspace.library.ingest_file(path, "more") == chunks
    assert workspace.library.delete_source("one.txt", "notes") == chunks
    assert (workspace.library.count("notes"), workspace.library.count("more")) == (0, chunks)


def test_a_file_in_a_subfolder_keeps_its_path(workspace: Workspace, tmp_path: Path) -> None:
    write(tmp_path / "in", one=paragraphs("Tea"))
    write(tmp_path / "in" / "sub", one=paragraphs("Rain"))
    write(tmp_path / "in" / ".hidden", one=paragraphs("Snow"))
    workspace.library.ingest_folder(tmp_path / "in", "notes")
    assert workspace.library.list_sources("notes") == ["one.txt", "sub/one.txt"]


def test_another_chunk_size_reads_unchanged_files_again(workspace: Workspace, tmp_path: Path) -> None:
    from dataclasses import replace

    folder = write(tmp_path / "in", one=paragraphs("Tea", "Rain"))
    workspace.library.ingest_folder(folder, "notes")
    workspace.library.reading = replace(workspace.library.reading, chunk_size=300, chunk_overlap=0)
    assert workspace.library.ingest_folder(folder, "notes").updated == ["one.txt"]
    assert max(len(text) for text in stored(workspace).values()) <= 300


def test_text_of_many_tokens_is_cut_smaller_where_nobody_chose_the_size(workspace: Workspace) -> None:
    from dataclasses import replace

    chinese = "检索增强生成把检索与生成结合在一起。" * 120
    report = workspace.library._ingest([SourceText(chinese, "zh.txt")], "notes")
    assert all("the text looks Chinese" in warning for warning in report.warnings)
    assert max(document.metadata["token_count"] for document in workspace.store.scan()) <= 256
    workspace.library.reading = replace(workspace.library.reading, fit=False)
    report = workspace.library._ingest([SourceText(chinese, "zh.txt")], "notes")
    assert " longer than the 256 tokens" in report.warnings[0]


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("missing.txt", None, SourceNotFoundError),
        ("sound.mp3", b"ID3", UnsupportedFormatError),
        ("broken.pdf", b"%PDF-1.4 nothing", ExtractionError),
    ],
)
def test_one_file_that_cannot_be_read_raises(workspace: Workspace, tmp_path: Path, name, content, error) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=name):
        workspace.library.ingest_file(tmp_path / name, "notes")


def test_folders_without_readable_files(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "sound.mp3").write_bytes(b"ID3")
    with pytest.raises(SourceError, match=r"no readable files in '.*none'; formats are .*\.pdf"):
        workspace.library.ingest_folder(tmp_path / "none", "notes")
    with pytest.raises(SourceNotFoundError, match="no such folder"):
        workspace.library.ingest_folder(tmp_path / "nowhere", "notes")


def test_an_unknown_collection_is_refused_before_anything_is_read(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(CollectionNotFoundError, match="no collection 'note'; did you mean 'notes'"):
        workspace.library.ingest_file(tmp_path / "missing.txt", "note")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_reported(workspace: Workspace, tmp_path: Path) -> None:
    folder = write(tmp_path / "in", one=paragraphs("Tea"), two=paragraphs("Rain"))
    (folder / "one.txt").chmod(0)
    assert [failure.source for failure in workspace.library.ingest_folder(folder, "notes").failed] == ["one.txt"]


def test_an_unchanged_file_is_recognised_before_it_is_parsed(workspace: Workspace, fixtures: Path) -> None:
    from dataclasses import replace

    [path, *_] = sorted(fixtures.rglob("*.pdf"))
    assert workspace.library.ingest_file(path, "notes") > 0
    reading = workspace.library.reading
    workspace.library.reading = replace(reading, limits=replace(reading.limits, seconds=0.001))
    assert workspace.library.ingest_file(path, "notes") == 0
    workspace.library.create_collection("other")
    with pytest.raises(ExtractionError):
        workspace.library.ingest_file(path, "other")


def test_a_file_that_can_be_read_no_more_is_served_in_its_old_version(workspace: Workspace, tmp_path: Path) -> None:
    folder = write(tmp_path / "in", one=paragraphs("Tea"), two=paragraphs("Rain"))
    workspace.library.ingest_folder(folder, "notes")
    before = stored(workspace)
    (folder / "one.txt").write_bytes(b"\0\1\2binary\0" * 50)
    report = workspace.library.ingest_folder(folder, "notes", prune=True)
    assert ([failure.source for failure in report.failed], report.vanished) == ([str(folder / "one.txt")], [])
    assert stored(workspace) == before
    assert workspace.library.search("Tea", "notes").documents[0].metadata["source_file"] == "one.txt"


def test_an_embedder_that_fails_in_the_middle_leaves_every_source_whole(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tiring(Counting):
        """The server goes down after some texts."""

        def embed(self, texts, *, role="document"):
            if len(self.seen) + len(texts) > 12:
                raise ModelConnectionError("it is gone; start it")
            return super().embed(texts, role=role)

    monkeypatch.setattr("ragistry.library.ingest.CHUNKS_AT_ONCE", 4)
    folder = write(tmp_path / "in", **{f"f{n}": paragraphs(f"Tea{n}") for n in range(6)})
    workspace.library.ingest_folder(folder, "notes")
    old = {name: texts_of(workspace, name) for name in workspace.library.list_sources("notes")}
    write(folder, **{f"f{n}": paragraphs(*(f"Snow{n}-{i}" for i in range(4))) for n in range(6)})
    workspace.library.embedder = Tiring(workspace.embedder)
    with pytest.raises(ModelConnectionError):
        workspace.library.ingest_folder(folder, "notes")
    now = {name: texts_of(workspace, name) for name in workspace.library.list_sources("notes")}
    written = [name for name in now if now[name] != old[name]]
    assert 0 < len(written) < 6
    assert all(len(now[name]) >= 4 and "Tea" not in "".join(now[name]) for name in written)
    workspace.library.embedder = workspace.embedder
    report = workspace.library.ingest_folder(folder, "notes")
    assert (report.skipped, len(report.updated)) == (written, 6 - len(written))


def texts_of(workspace: Workspace, name: str) -> list[str]:
    return [document.content for document in workspace.store.scan({"source_file": name})]


def test_a_file_that_became_empty_is_deleted(workspace: Workspace, tmp_path: Path) -> None:
    folder = write(tmp_path / "in", one=paragraphs("Tea"), two=paragraphs("Rain"))
    workspace.library.ingest_folder(folder, "notes")
    write(folder, one="")
    report = workspace.library.ingest_folder(folder, "notes")
    assert (report.deleted, report.updated, report.skipped) == (["one.txt"], [], ["two.txt"])
    assert workspace.library.list_sources("notes") == ["two.txt"]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that opens and cannot be read")
def test_a_file_that_fails_while_it_is_read_is_reported(workspace: Workspace, tmp_path: Path) -> None:
    folder = write(tmp_path / "in", one=paragraphs("Tea"))
    (folder / "bad.txt").symlink_to("/proc/self/mem")
    report = workspace.library.ingest_folder(folder, "notes", follow_links=True)
    assert report.added == ["one.txt"]
    assert [failure.source for failure in report.failed] == [str(folder / "bad.txt")]


def test_a_folder_that_cannot_be_listed_is_reported_and_nothing_of_it_is_pruned(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "in", one=paragraphs("Tea"))
    write(tmp_path / "in" / "sub", two=paragraphs("Rain"))
    workspace.library.ingest_folder(tmp_path / "in", "notes")
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    report = workspace.library.ingest_folder(tmp_path / "in", "notes", prune=True)
    assert [failure.error for failure in report.failed] == [
        f"cannot list {str(tmp_path / 'in' / 'sub')!r}: Permission denied; make the folder readable"
    ]
    assert (report.vanished, report.deleted) == ([], [])
    assert workspace.library.list_sources("notes") == ["one.txt", "sub/two.txt"]


def test_a_source_whose_file_is_out_of_reach_does_not_stop_the_others(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = write(tmp_path / "old", one=paragraphs("Tea")) / "one.txt"
    workspace.library.ingest_file(old, "notes")
    folder = write(tmp_path / "in", one=paragraphs("Rain"), two=paragraphs("Snow"))
    _lose_rights(monkeypatch, tmp_path / "old")
    report = workspace.library.ingest_folder(folder, "notes")
    assert report.added == ["two.txt"]
    [failure] = report.failed
    assert f"is {str(old)!r}, which cannot be reached now (Permission denied), and " in failure.error
    assert "".join(texts_of(workspace, "one.txt")).startswith("Tea")


def test_a_link_into_a_folder_without_rights_does_not_stop_the_others(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "in", two=paragraphs("Snow"))
    write(folder / "sub", one=paragraphs("Tea"))
    (folder / "a-link.txt").symlink_to(folder / "sub" / "one.txt")
    workspace.library.ingest_folder(folder, "notes")
    write(folder, two=paragraphs("Hail"))
    _lose_rights(monkeypatch, folder / "sub", folder / "a-link.txt")
    report = workspace.library.ingest_folder(folder, "notes", prune=True)
    assert (report.updated, report.deleted) == (["two.txt"], [])
    assert {failure.source for failure in report.failed} >= {str(folder / "a-link.txt")}
    assert all("Permission denied" in failure.error for failure in report.failed)


def _lose_rights(monkeypatch: pytest.MonkeyPatch, *places: Path) -> None:
    """Nothing below the places can be looked at, by root neither."""
    stat = os.stat

    def refuse(path, **options):
        if isinstance(path, str | Path) and any(Path(path).is_relative_to(place) for place in places):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", refuse)


@pytest.mark.parametrize("take_in", ["ingest_file", "ingest_folder", "ingest_paths"])
def test_a_path_that_the_system_refuses_is_told(workspace: Workspace, tmp_path: Path, take_in: str) -> None:
    path = tmp_path / ("x" * 300)
    with pytest.raises(SourceError, match="cannot be read: .*File name too long"):
        getattr(workspace.library, take_in)([path] if take_in == "ingest_paths" else path, "notes")


@pytest.mark.parametrize("take_in", ["ingest_file", "ingest_folder", "ingest_paths"])
@pytest.mark.parametrize("path", ["", " "])
def test_an_empty_path_is_not_the_current_folder(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take_in: str, path: str
) -> None:
    monkeypatch.chdir(write(tmp_path / "in", one=paragraphs("Tea")))
    with pytest.raises(SourceError, match=f"the path '{path}' is empty; name a file or folder, '.' for the current"):
        getattr(workspace.library, take_in)([path] if take_in == "ingest_paths" else path, "notes")
    assert workspace.library.ingest_folder(".", "notes").added == ["one.txt"]


@pytest.mark.parametrize("name", ["one.txt", "one.pdf"])
def test_a_file_that_changes_while_it_is_read_is_taken_in_as_it_is_then(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    versions = [_bytes_of(name, word) for word in ("Tea", "Rain", "Snow")]
    path = tmp_path / name
    path.write_bytes(versions[0])
    reads = _changing(monkeypatch, path, versions[1:])
    assert workspace.library.ingest_file(path, "notes") > 0
    assert not reads
    [text] = texts_of(workspace, name)
    path.write_bytes(
        next(version for version, word in zip(versions, ("Tea", "Rain", "Snow"), strict=True) if word in text)
    )
    assert workspace.library.ingest_file(path, "notes") == 0, "it stands there with the hash of its own text"
    for version, word in zip(versions, ("Tea", "Rain", "Snow"), strict=True):
        path.write_bytes(version)
        workspace.library.ingest_file(path, "notes")
        assert [word in text for text in texts_of(workspace, name)] == [True]


def test_a_pdf_that_changes_all_the_time_is_reported(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.pdf"
    path.write_bytes(_bytes_of("one.pdf", "Tea"))
    versions = [_bytes_of("one.pdf", word) for word in ("Rain", "Tea")] * 4
    _changing(monkeypatch, path, versions)
    with pytest.raises(SourceError, match="one.pdf' changed while it was read; ingest it again"):
        workspace.library.ingest_file(path, "notes")
    assert workspace.library.list_sources("notes") == []


def _bytes_of(name: str, word: str) -> bytes:
    text = f"{word} in the garden"
    return one_page(text) if name.endswith(".pdf") else text.encode()


def _changing(monkeypatch: pytest.MonkeyPatch, path: Path, versions: list[bytes]) -> list[bytes]:
    """Put the next version in the place of the file before it is read for its text, and one more after."""
    from ragistry.library import source

    extract = source.extract

    def change_and_read(*args, **options):
        if versions:
            path.write_bytes(versions.pop(0))
        read = extract(*args, **options)
        if versions:
            path.write_bytes(versions.pop(0))
        return read

    monkeypatch.setattr(source, "extract", change_and_read)
    return versions


def test_an_emptied_folder_is_not_pruned_unless_that_is_said(workspace: Workspace, tmp_path: Path) -> None:
    library = workspace.library
    folder = write(tmp_path / "share", one=paragraphs("Tea"), two=paragraphs("Rain"))
    library.ingest_folder(folder, "notes")
    shutil.rmtree(folder)
    with pytest.raises(
        SourceNotFoundError, match=r"no such .*2 sources \('one.txt', 'two.txt'\) came from it: .*empty"
    ):
        library.ingest_paths([folder], "notes", prune=True)
    folder.mkdir()
    with pytest.raises(SourceError, match="has no file to ingest, and .*is its disk mounted.*--prune --yes"):
        library.ingest_folder(folder, "notes", prune=True)
    assert library.list_sources("notes") == ["one.txt", "two.txt"]
    chunks = library.count("notes")
    with pytest.raises(SourceNotFoundError):
        library.delete_sources(["one.txt", "none.txt"], "notes")
    assert library.delete_sources(library.ingest_folder(folder, "notes").vanished, "notes") == chunks
    assert library.list_sources("notes") == []


def test_a_file_under_another_name_is_one_source(workspace: Workspace, embedder: Counting, tmp_path: Path) -> None:
    write(tmp_path / "in", left=paragraphs("Snow"))
    path = write(tmp_path / "in" / "x", same=paragraphs("Tea")) / "same.txt"
    other = write(tmp_path / "in" / "y", same=paragraphs("Rain")) / "same.txt"
    library = workspace.library
    library.ingest_file(path, "notes")
    with pytest.raises(SourceError, match="ingest the folder that holds both"):
        library.ingest_file(other, "notes")
    embedder.seen.clear()
    report = library.ingest_folder(tmp_path / "in", "notes")
    assert (report.added, report.deleted) == (["left.txt", "x/same.txt", "y/same.txt"], ["same.txt"])
    assert report.warnings == ["x/same.txt: was 'same.txt'; one file has one name in a collection"]
    assert not any("Tea" in text for text in embedder.seen), "its vectors are known"
    assert library.list_sources("notes") == ["left.txt", "x/same.txt", "y/same.txt"]
    again = library.ingest_folder(tmp_path / "in", "notes")
    assert (len(again.skipped), again.deleted, again.warnings) == (3, [], [])


def test_a_file_named_beside_its_folder_is_taken_in_once(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = write(tmp_path / "in" / "x", same=paragraphs("Tea")) / "same.txt"
    hidden = write(tmp_path / "in" / ".notes", other=paragraphs("Rain")) / "other.txt"
    paths = [path, tmp_path / "in", tmp_path / "in" / "x", hidden]
    first = workspace.library.ingest_paths(paths, "notes")
    assert (sorted(first.added), first.deleted, first.warnings) == (["other.txt", "x/same.txt"], [], [])
    again = workspace.library.ingest_paths(paths, "notes")
    assert (sorted(again.skipped), again.added, again.warnings) == (["other.txt", "x/same.txt"], [], [])


def test_two_names_of_a_file_that_a_write_was_killed_between_become_one(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    folder = write(tmp_path / "docs" / "in", same=paragraphs("Tea"))
    library = workspace.library
    library.ingest_folder(folder, "notes")
    documents = sorted(workspace.store.scan(), key=lambda document: document.metadata["chunk_index"])
    vectors = workspace.store.vectors([document.id for document in documents])
    library.ingest_folder(tmp_path / "docs", "notes")
    assert library.list_sources("notes") == ["in/same.txt"]
    chunks = [EmbeddedChunk(d.content, d.metadata, vector) for d, vector in zip(documents, vectors, strict=True)]
    workspace.store.replace_source("notes", "same.txt", chunks)
    report = library.ingest_folder(folder.parent, "notes")
    assert (report.skipped, report.deleted) == (["in/same.txt"], ["same.txt"])


def test_a_link_and_its_file_are_two_sources(workspace: Workspace, tmp_path: Path) -> None:
    folder = write(tmp_path / "in", tea=paragraphs("Tea"))
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "also.txt").symlink_to(folder / "tea.txt")
    library = workspace.library
    library.ingest_folder(tmp_path / "links", "notes", follow_links=True)
    library.ingest_folder(folder, "notes")
    assert library.ingest_folder(tmp_path / "links", "notes", follow_links=True).skipped == ["also.txt"]
    assert library.list_sources("notes") == ["also.txt", "tea.txt"]


@pytest.fixture
def three(workspace: Workspace, tmp_path: Path) -> list[Path]:
    """Three files of one bare name, taken in with their folder."""
    (tmp_path / "docs").mkdir()
    topics = {"a": "Tea", "b": "Rain", "c": "Snow"}
    files = [write(tmp_path / "docs" / name, same=paragraphs(topic)) / "same.txt" for name, topic in topics.items()]
    assert workspace.library.ingest_folder(tmp_path / "docs", "notes").added == [
        "a/same.txt",
        "b/same.txt",
        "c/same.txt",
    ]
    return files


@pytest.mark.parametrize("replace", [False, True])
def test_a_file_whose_bare_name_another_gets_stays_under_its_own(
    workspace: Workspace, three: list[Path], replace: bool
) -> None:
    before = {name: texts_of(workspace, f"{name}/same.txt") for name in "abc"}
    first = workspace.library.ingest_paths(three, "notes", replace=replace)
    assert (first.added, first.deleted) == (["same.txt"], ["a/same.txt"])
    assert first.warnings == ["same.txt: was 'a/same.txt'; one file has one name in a collection"]
    again = workspace.library.ingest_paths(three, "notes", replace=replace)
    assert (again.skipped, again.deleted, again.warnings) == (["same.txt"], [], [])
    for report in (first, again):
        assert [failure.source for failure in report.failed] == [str(path) for path in three[1:]]
    now = {name: texts_of(workspace, name) for name in workspace.library.list_sources("notes")}
    assert now == {"same.txt": before["a"], "b/same.txt": before["b"], "c/same.txt": before["c"]}


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_a_file_keeps_its_name_in_whatever_order_files_are_given(
    workspace: Workspace, tmp_path: Path, order: int, replace: bool
) -> None:
    path = write(tmp_path / "in", same=paragraphs("Tea")) / "same.txt"
    other = write(tmp_path / "in" / "sub", same=paragraphs("Rain")) / "same.txt"
    workspace.library.ingest_folder(tmp_path / "in", "notes")
    write(tmp_path / "in", same=paragraphs("Milk"))
    report = workspace.library.ingest_paths([path, other][::order], "notes", replace=replace)
    assert (report.updated, report.deleted) == (["same.txt"], [])
    [failure] = report.failed
    assert failure.error.startswith(f"'same.txt' in collection 'notes' is {str(path)!r}, not {str(other)!r}; ")
    assert "".join(texts_of(workspace, "same.txt")).startswith("Milk")
    assert "".join(texts_of(workspace, "sub/same.txt")).startswith("Rain")


def test_a_name_that_one_file_is_refused_goes_to_the_next(workspace: Workspace, tmp_path: Path) -> None:
    workspace.library.ingest_file(write(tmp_path / "old", same=paragraphs("Tea")) / "same.txt", "notes")
    other = write(tmp_path / "a", same=paragraphs("Rain")) / "same.txt"
    (tmp_path / "old").rename(tmp_path / "b")
    report = workspace.library.ingest_paths([other, tmp_path / "b" / "same.txt"], "notes")
    assert ([failure.source for failure in report.failed], report.updated) == ([str(other)], ["same.txt"])
    assert workspace.library.source("same.txt", "notes").source_path == str(tmp_path / "b" / "same.txt")


def test_a_file_that_is_named_twice_fails_once(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    report = workspace.library.ingest_paths([tmp_path / "bad.pdf", str(tmp_path / "bad.pdf")], "notes")
    assert [failure.source for failure in report.failed] == [str(tmp_path / "bad.pdf")]


def test_of_two_folders_with_a_file_of_one_name_the_second_loses_nothing(workspace: Workspace, tmp_path: Path) -> None:
    folders = [write(tmp_path / name, same=paragraphs(name.capitalize())) for name in ("tea", "rain")]
    for _ in range(2):
        report = workspace.library.ingest_paths(folders, "notes", replace=True)
        assert [failure.source for failure in report.failed] == [str(folders[1] / "same.txt")]
        assert "".join(texts_of(workspace, "same.txt")).startswith("Tea")
    assert (report.skipped, report.updated) == (["same.txt"], [])


def test_a_file_that_others_call_as_our_database_hides_nothing(workspace: Workspace, tmp_path: Path) -> None:
    folder = write(tmp_path / "in", a=paragraphs("Tea"))
    write(folder / "evaluation", report=paragraphs("Rain"))
    (folder / "store.db").write_bytes(b"somebody's")
    assert workspace.library.ingest_folder(folder, "notes").added == ["a.txt", "evaluation/report.txt"]
