"""Ingest: what is new is added, what is unchanged costs nothing, what fails leaves the old version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import (
    EmbeddingGenerationError,
    ModelConnectionError,
    ModelError,
    SourceError,
    SourceNotFoundError,
    StoreError,
)
from ragistry.library.ingest.plan import IngestPlan
from ragistry.library.ingest.source import SourceText
from ragistry.readers.extract import extract
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import EmbeddedChunk
from tests.conftest import Corpus
from tests.library.conftest import refusing, stored, texts, topics
from tests.library.shelf import Content, Shelf, Step, step
from tests.messages import check_message, refused
from tests.readers.raw_pdf import one_page

pytestmark = pytest.mark.usefixtures("embedder")

SAME: dict[str, Content] = {"a/same.txt": "Tea", "b/same.txt": "Rain"}
CASES: dict[str, tuple[Step, ...]] = {
    "only changed chunks are embedded": (
        step(texts(one="Tea Rain Snow Wind", two="Tea"), added="one.txt two.txt", chunks=5, embedded=4),
        step(skipped="one.txt two.txt", embedded=0),
        step(texts(one="Tea Hail Snow"), updated="one.txt", skipped="two.txt", chunks=3, embedded=1),
    ),
    "files without text and files that cannot be read stop no other": (
        step({"one.txt": "Tea", "no.txt": ""}, added="one.txt", skipped="no.txt", warnings=1),
        step({"bad.pdf": "%PDF-1.4", "a.png": "x"}, skipped="no.txt one.txt", failed="bad.pdf", warnings=1, left_out=1),
        step({}, "bad.pdf", "bad.pdf", failed="bad.pdf"),
    ),
    "a folder without readable files": (
        step({"none/sound.mp3": "ID3", "in/one.txt": "Tea"}, "none", refused=SourceError),
        step({}, "none", "in", added="one.txt", failed="none"),
        step({}, "nowhere", refused=SourceNotFoundError),
    ),
    "what cannot be read keeps its old version, and an empty file is deleted": (
        step({"one.txt": "Tea", "two.txt": "Rain"}, added="one.txt two.txt"),
        step({"one.txt": b"\0\1\2binary\0" * 50}, prune=True, skipped="two.txt", failed="one.txt"),
        step({"one.txt": ""}, deleted="one.txt", skipped="two.txt", warnings=1),
    ),
    "a file that cannot be read to its end fails alone": (
        step({"a.txt": "Tea", "b.txt": Path("/proc/self/mem")}, follow_links=True, added="a.txt", failed="b.txt"),
    ),
    "a folder that cannot be listed is not pruned": (
        step({"one.txt": "Tea", "sub/two.txt": "Rain"}, added="one.txt sub/two.txt"),
        step(prune=True, denied={"scandir": "sub"}, skipped="one.txt", failed="sub"),
    ),
    "a file out of reach keeps its name": (
        step({"old/one.txt": "Tea"}, "old/one.txt", added="one.txt"),
        step({"in/one.txt": "Rain"}, "in", denied={"stat": "old"}, failed="in/one.txt"),
    ),
    "a link out of reach stops no other": (
        step({"a.txt": Path("sub/b.txt"), "c.txt": "Snow", "sub/b.txt": "Tea"}, added="a.txt c.txt sub/b.txt"),
        step({"c.txt": "Hail"}, prune=True, denied={"stat": "sub a.txt"}, updated="c.txt", failed="a.txt sub/b.txt"),
    ),
    "what the model refuses keeps its old version": (
        step(texts(one="Tea", two="Rain", six="Hail"), added="one.txt six.txt two.txt"),
        step(texts(one="Milk Snow Poison Hail", two="Snow", six="Venom"), updated="two.txt", failed="one.txt six.txt"),
        step({}, SourceText("Poison and pumps", "new"), failed="new", waiting=1),
        step({}, SourceText("Poison and valves", "new"), failed="new", waiting=1),
    ),
    "a name that another file has is taken only with replace": (
        step(SAME, "a/same.txt", added="same.txt"),
        step({}, "b/same.txt", failed="b/same.txt"),
        step({"a/same.txt": None}, "b/same.txt", failed="b/same.txt"),
        step({}, SourceText("Rain", "same.txt"), failed="same.txt"),
        step({}, "b", replace=True, updated="same.txt"),
        step({"a/same.txt": "Tea"}, "a/same.txt", replace=True, updated="same.txt"),
    ),
    "a text and a file are two sources": (
        step({"tea.txt": "File."}, SourceText("Text.", "tea.txt"), added="tea.txt"),
        step({}, "tea.txt", failed="tea.txt"),
    ),
    "a moved file is not embedded again": (
        step({"a/same.txt": "Tea"}, "a", added="same.txt", embedded=1),
        step({"a": None, "b/same.txt": "Tea"}, "b", updated="same.txt", embedded=0),
        step({"b/same.txt": "Milk"}, "b", updated="same.txt", embedded=1),
    ),
    "of two files with one name the second fails": (
        step(SAME, "a/same.txt", "b/same.txt", "a/same.txt", added="same.txt", failed="b/same.txt"),
        step({}, "a", "b", replace=True, skipped="same.txt", failed="b/same.txt"),
        step({}, "a", "b", replace=True, skipped="same.txt", failed="b/same.txt"),
    ),
    "a relative path means one file": (
        step(SAME, "same.txt", cwd="a", added="same.txt"),
        step({}, "same.txt", cwd="b", failed="same.txt"),
        step({"a/same.txt": None, "a/c.txt": "Snow"}, "a", cwd="", prune=True, added="c.txt", deleted="same.txt"),
        step({}, ".", cwd="a", skipped="c.txt"),
    ),
    "a file under another name is one source": (
        step(SAME, "a/same.txt", added="same.txt"),
        step(added="a/same.txt b/same.txt", deleted="same.txt", warnings=1, embedded=1),
        step(skipped="a/same.txt b/same.txt"),
    ),
    "a file that is named beside its folder is ingested once": (
        step(SAME | {".c/c.txt": "Snow"}, "a/same.txt", "", "a", ".c/c.txt", added="a/same.txt b/same.txt c.txt"),
        step({}, "a/same.txt", "", "a", ".c/c.txt", skipped="a/same.txt b/same.txt c.txt"),
    ),
    "a link and its file are two sources": (
        step({"in/tea.txt": "Tea", "to/also.txt": Path("../in/tea.txt")}, "to", follow_links=True, added="also.txt"),
        step({}, "in", added="tea.txt"),
        step({}, "to", follow_links=True, skipped="also.txt"),
    ),
    "a name that one file is refused goes to the next": (
        step({"c/same.txt": "Rain"}, "c/same.txt", added="same.txt"),
        step({"c": None} | SAME, "a/same.txt", "b/same.txt", updated="same.txt", failed="a/same.txt"),
    ),
    "an emptied folder is not pruned": (
        step({"in/one.txt": "Tea", "in/sub/two.txt": "Rain"}, "in", added="one.txt sub/two.txt"),
        step({"in": None}, "in", prune=True, refused=SourceNotFoundError),
        step({"in/": ""}, "in", prune=True, refused=SourceError),
        step({}, "in", vanished="one.txt sub/two.txt"),
    ),
}
for _replace in (False, True):
    CASES |= {
        f"a file whose bare name another gets keeps its own, replace={_replace}": (
            step(SAME, added="a/same.txt b/same.txt"),
            step({}, *SAME, replace=_replace, added="same.txt", deleted="a/same.txt", failed="b/same.txt", warnings=1),
            step({}, *SAME, replace=_replace, skipped="same.txt", failed="b/same.txt"),
        ),
        f"a file keeps its bare name in any order, replace={_replace}": (
            step({"same.txt": "Tea", "b/same.txt": "Rain"}, added="same.txt b/same.txt"),
            step(
                {"same.txt": "A"}, "same.txt", "b/same.txt", replace=_replace, updated="same.txt", failed="b/same.txt"
            ),
            step(
                {"same.txt": "B"}, "b/same.txt", "same.txt", replace=_replace, updated="same.txt", failed="b/same.txt"
            ),
        ),
    }


@pytest.mark.parametrize("case", CASES)
def test_an_ingest_stores_and_reports(shelf: Shelf, case: str) -> None:
    shelf.play(*CASES[case])


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


@pytest.mark.parametrize(("files", "error", "calls"), [(20, ModelError, 2), (100, ModelConnectionError, 1)])
def test_server_that_refuses_everything_stops(
    workspace: Workspace, embedder: HashingEmbedder, corpus: Corpus, files: int, error: type[ModelError], calls: int
) -> None:
    assert workspace.search("tea").documents == []
    embedder.check, embedder.calls = refusing("", error), 0
    with refused(error):
        workspace.library.ingest_folder(corpus({f"{number}.txt": f"Tea {number}" for number in range(files)}), "notes")
    assert embedder.calls == calls, "of a few texts, they are tried first, then a word that every model accepts"
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
