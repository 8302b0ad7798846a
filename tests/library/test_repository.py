"""Documentation repositories: real Git clones, the real model, real stores."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.errors import (
    CollectionAlreadyExistsError,
    CollectionNotFoundError,
    EmbeddingMismatchError,
    InvalidCollectionNameError,
    ModelConnectionError,
    SourceError,
    SourceNotFoundError,
    StoreLockedError,
)
from ragistry.library.contract import get_collection, list_collections, search_chunks
from ragistry.library.repository import Repositories
from ragistry.library.repository_search import RepositoryTechnique
from ragistry.library.source import Reading
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.protocols import LibraryStore, Technique
from ragistry.techniques.bm25 import BM25Technique
from ragistry.testing.hashed import hashed_embedding
from ragistry.types import Document, EmbedderFingerprint
from tests.library.git_trees import commit, git, write

EMBEDDER = MiniLMEmbedder()
READING = Reading(1000, 150, True)
PAGES = {
    "_index.md": "---\ntitle: Widget\ndescription: How to run Widget.\n---\nWidget turns wheels.\n",
    "install/linux.md": (
        "---\ntitle: Linux\ntags: [setup, linux]\n---\n" + "Read this first, please. " * 12 + "\n\n"
        "# Install\n\n## Requirements\n\nYou need a kernel that is younger than you are.\n\n```sh\nmake widget\n```\n"
    ),
    "operate/backup.md": "# Backups\n\nA backup is copied to another house every night.\n",
    "notes.txt": "This is no page.",
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "Widget.Docs"
    folder.mkdir()
    commit(folder, PAGES)
    return folder


@pytest.fixture
def repositories(tmp_path: Path) -> Repositories:
    return Repositories(tmp_path / "repositories", EMBEDDER, READING)


def chunks(repositories: Repositories, name: str = "widget-docs") -> dict[str, list[dict[str, Any]]]:
    """The metadata of every chunk, by file."""
    found: dict[str, list[dict[str, Any]]] = {}
    documents: list[Document] = repositories.collection(name).read(lambda store: list(store.scan()), [])
    for document in documents:
        found.setdefault(document.metadata["file_path"], []).append({**document.metadata, "text": document.content})
    return found


def over_words(store: LibraryStore) -> Technique:
    return BM25Technique({}, store=store)  # type: ignore[arg-type]


def test_a_clone_becomes_a_collection_of_the_contract(repositories: Repositories, clone: Path) -> None:
    git(clone, "remote", "add", "origin", "https://someone:secret@example.org/widget/docs.git")
    report = repositories.add(clone)
    assert report.files.added == ["_index.md", "install/linux.md", "operate/backup.md"]
    assert report.files.failed == []
    info = report.info
    assert info.name == "widget-docs"
    assert info.metadata["repository_url"] == "https://example.org/widget/docs.git", "without the password"
    assert info.metadata["commit_hash"] == git(clone, "rev-parse", "HEAD")
    assert info.metadata["last_updated"].endswith("Z")
    assert info.metadata["total_documents"] == 3
    assert info.metadata["total_chunks"] == info.chunk_count == repositories.collection("widget-docs").count()
    assert info.metadata["description"] == "Widget: How to run Widget."
    assert repositories.infos() == list_collections(path=repositories.root) == [info]
    collection = get_collection("widget-docs", path=repositories.root)
    best = search_chunks(collection, "copy of the data in another place", limit=1).matches[0]
    assert (best.file_path, best.repository, best.heading_context) == ("operate/backup.md", "widget-docs", "Backups")


def test_an_address_is_recorded_without_its_token_and_follows_the_clone(
    repositories: Repositories, clone: Path
) -> None:
    git(clone, "remote", "add", "origin", "https://token:secret@example.org/docs.git?token=hush#hush")
    assert repositories.add(clone).info.metadata["repository_url"] == "https://example.org/docs.git"
    git(clone, "remote", "set-url", "origin", "https://example.org/moved.git?token=hush")
    assert repositories.update("widget-docs").info.metadata["repository_url"] == "https://example.org/moved.git"
    assert "hush" not in (repositories.root / "widget-docs.json").read_text(encoding="utf-8")


def test_chunks_say_where_they_stand(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    [intro, install] = sorted(chunks(repositories)["install/linux.md"], key=lambda chunk: chunk["chunk_index"])
    assert (intro["title"], intro["section"], intro["heading_context"]) == ("Linux", "Linux", "Linux")
    assert (install["section"], install["heading_context"]) == ("Requirements", "Install > Requirements")
    assert (intro["has_code"], install["has_code"]) == (False, True)
    for chunk in (intro, install):
        assert chunk["tags"] == ["setup", "linux"]
        assert (chunk["repository"], chunk["collection"]) == ("widget-docs", "widget-docs")
        assert chunk["processed_at"].endswith("Z")
        assert chunk["token_count"] > 3


def test_an_update_embeds_only_what_is_new(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    before = chunks(repositories)
    new = commit(
        clone,
        {
            "operate/backup.md": "# Backups\n\nA backup is written to tape on Sundays.\n",
            "operate/restore.md": "# Restoring\n\nTake the tape out of the box.\n",
            "install/linux.md": None,
            "install/unix.md": PAGES["install/linux.md"],
        },
    )
    report = repositories.update("widget-docs")
    assert report.files.added == ["install/unix.md", "operate/restore.md"]
    assert report.files.updated == ["operate/backup.md"]
    assert report.files.skipped == ["_index.md"]
    assert report.files.deleted == ["install/linux.md"]
    assert report.renamed == {"install/linux.md": "install/unix.md"}
    assert report.files.embedded == 2, "the text of the renamed file has its vectors already"
    assert report.info.metadata["commit_hash"] == new
    assert report.info.metadata["total_documents"] == 4
    after = chunks(repositories)
    assert sorted(after) == ["_index.md", "install/unix.md", "operate/backup.md", "operate/restore.md"]
    assert after["_index.md"] == before["_index.md"], "untouched, with the time at which it was made"
    found = search_chunks(repositories.collection("widget-docs"), "tape", limit=2).matches
    assert {match.file_path for match in found} == {"operate/backup.md", "operate/restore.md"}


def test_an_update_without_a_change_changes_nothing(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    [record] = repositories.root.glob("*.json")
    before, versions = record.read_bytes(), sorted(repositories.root.iterdir())
    report = repositories.update("widget-docs")
    assert len(report.files.skipped) == 3
    assert report.files.embedded == 0
    assert (record.read_bytes(), sorted(repositories.root.iterdir())) == (before, versions)


def test_an_update_warns_of_changed_pages_alone(repositories: Repositories, clone: Path) -> None:
    commit(clone, {"empty.md": "---\ndate: 2026-01-01\n---\n", "other.md": "<!-- later -->\n"})
    told = {"empty.md: no text; nothing to search in it", "other.md: no text; nothing to search in it"}
    assert set(repositories.add(clone).files.warnings) == told
    again = repositories.update("widget-docs").files
    assert (again.warnings, len(again.skipped)) == ([], 5)
    commit(clone, {"other.md": "<!-- much later -->\n", "new.md": "\n", "operate/backup.md": "# Backups\n\nNone.\n"})
    assert set(repositories.update("widget-docs").files.warnings) == {
        "new.md: no text; nothing to search in it",
        "other.md: no text; nothing to search in it",
    }
    commit(clone, {"empty.md": "---\ndate: 2026-01-02\n---\n\n", "operate/backup.md": "# Backups\n\nSome.\n"})
    shutil.rmtree(clone / ".git")
    git(clone, "init", "--quiet")
    commit(clone)
    assert len(repositories.update("widget-docs").files.warnings) == 3, "the commit on record is gone from the clone"


def test_a_commit_that_changes_no_page_is_recorded(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    new = commit(clone, {"notes.txt": "Still no page."})
    assert repositories.update("widget-docs").info.metadata["commit_hash"] == new
    assert repositories.infos()[0].chunk_count == repositories.collection("widget-docs").count() > 0


def test_only_what_is_committed_is_indexed(repositories: Repositories, clone: Path) -> None:
    write(clone, {"operate/backup.md": "half edited", "draft.md": "not yet added"})
    repositories.add(clone)
    assert sorted(chunks(repositories)) == ["_index.md", "install/linux.md", "operate/backup.md"]
    assert "every night" in chunks(repositories)["operate/backup.md"][0]["text"]


def test_an_update_does_not_need_the_old_commit(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    shutil.rmtree(clone / ".git")
    commit(clone, {"operate/backup.md": "# Backups\n\nThere are none any more.\n"}, "history was written anew")
    report = repositories.update("widget-docs")
    assert report.files.updated == ["operate/backup.md"]
    assert report.files.embedded == 1


def test_a_folder_in_a_clone_can_be_a_repository(repositories: Repositories, clone: Path) -> None:
    report = repositories.add(clone / "install", name="installing", description="How it gets there")
    assert report.files.added == ["install/linux.md"], "paths are those of the whole repository"
    assert report.info.metadata["description"] == "How it gets there"


class Unreachable:
    """The model of an embedder whose server stops answering after some texts."""

    fingerprint = EMBEDDER.fingerprint

    def __init__(self, texts: int) -> None:
        self.left = texts

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: Any = "document") -> Any:
        self.left -= len(texts)
        if self.left < 0:
            raise ModelConnectionError("no server at 'http://127.0.0.1:9'; start it")
        return EMBEDDER.embed(texts, role=role)


def test_an_update_that_fails_leaves_the_old_version(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    before, record = chunks(repositories), repositories.infos()
    commit(clone, {"operate/backup.md": None, "_index.md": "Something else altogether.\n"})
    broken = Repositories(repositories.root, Unreachable(0), READING)
    with pytest.raises(ModelConnectionError):
        broken.update("widget-docs")
    assert (chunks(repositories), repositories.infos()) == (before, record)
    assert len(list(repositories.root.glob("widget-docs@*"))) == 1, "what was begun is gone"
    assert repositories.update("widget-docs").files.deleted == ["operate/backup.md"]


def test_an_add_that_fails_leaves_nothing(repositories: Repositories, clone: Path) -> None:
    with pytest.raises(ModelConnectionError):
        Repositories(repositories.root, Unreachable(1), READING).add(clone)
    assert repositories.infos() == []
    assert list(repositories.root.glob("widget-docs@*")) == []
    assert repositories.add(clone).info.chunk_count > 0


def test_a_file_that_is_no_text_is_reported_and_tried_again(repositories: Repositories, clone: Path) -> None:
    (clone / "broken.md").write_bytes(b"\x00\x01\x02" * 50)
    commit(clone)
    for report in (repositories.add(clone), repositories.update("widget-docs")):
        assert [failure.source for failure in report.files.failed] == ["broken.md"]
        assert "broken.md" in report.files.failed[0].error
    assert report.info.metadata["total_documents"] == 3


def test_a_repository_that_lost_its_pages_keeps_the_old_ones(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    commit(clone, dict.fromkeys(("_index.md", "install/linux.md", "operate/backup.md")))
    with pytest.raises(SourceError, match="no Markdown"):
        repositories.update("widget-docs")
    assert len(chunks(repositories)) == 3


def test_names_are_unique_and_follow_the_rule(repositories: Repositories, clone: Path, tmp_path: Path) -> None:
    repositories.add(clone)
    with pytest.raises(CollectionAlreadyExistsError, match="repo update widget-docs"):
        repositories.add(clone)
    with pytest.raises(InvalidCollectionNameError):
        repositories.add(clone, name="../elsewhere")
    strange = tmp_path / "+++"
    shutil.copytree(clone, strange)
    with pytest.raises(InvalidCollectionNameError, match="--name"):
        repositories.add(strange)
    long = tmp_path / ("X" * 70 + ".git")
    shutil.copytree(clone, long)
    assert repositories.add(long).info.name == "x" * 63


def test_what_is_no_clone_is_said_to_be_none(repositories: Repositories, tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="nowhere"):
        repositories.add(tmp_path / "nowhere")
    (tmp_path / "plain").mkdir()
    with pytest.raises(SourceError, match="Git clone"):
        repositories.add(tmp_path / "plain")
    git(tmp_path / "plain", "init", "--quiet")
    with pytest.raises(SourceError, match="commit"):
        repositories.add(tmp_path / "plain")
    assert not repositories.root.exists() or repositories.infos() == []


def test_a_removed_repository_is_gone(repositories: Repositories, clone: Path) -> None:
    count = repositories.add(clone).info.chunk_count
    assert repositories.remove("widget-docs") == count
    assert repositories.infos() == []
    assert (clone / "_index.md").exists()
    for call in (repositories.remove, repositories.update, repositories.collection):
        with pytest.raises(
            CollectionNotFoundError, match="no repository 'widget-docs'; there are none; `ragistry repo"
        ):
            call("widget-docs")
    repositories.add(clone)
    for call in (repositories.remove, repositories.update, repositories.collection):
        with pytest.raises(CollectionNotFoundError, match=r"no repository 'widget'; did you mean 'widget-docs'"):
            call("widget")


def test_a_technique_over_a_repository_follows_an_update(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    technique = RepositoryTechnique(repositories.collection("widget-docs"), over_words)
    assert [found.metadata["file_path"] for found in technique.retrieve("backup house")] == ["operate/backup.md"]
    assert technique.retrieve("backup", where={"tags": {"$contains": "linux"}}) == []
    commit(clone, {"operate/vault.md": "# Vault\n\nThe house has a vault.\n"})
    repositories.update("widget-docs")
    found = technique.retrieve("vault house", top_k=1)
    assert [document.metadata["file_path"] for document in found] == ["operate/vault.md"]


def test_a_clone_that_is_gone_is_told_with_its_name(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    clone.rename(clone.with_name("elsewhere"))
    with pytest.raises(SourceNotFoundError, match="the clone of 'widget-docs' is gone from .*; put it back there, or"):
        repositories.update("widget-docs")


class Hashed:
    """An embedder without a model, for more text than a model gets through in a test."""

    fingerprint = EmbedderFingerprint("test", "hashed", "", 64)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: Any = "document") -> Any:
        return np.array([hashed_embedding(text, 64) for text in texts], dtype=np.float32)


def test_an_update_with_another_embedder_embeds_everything(repositories: Repositories, clone: Path) -> None:
    first = repositories.add(clone).info
    other = Repositories(repositories.root, Hashed(), READING)
    with pytest.raises(EmbeddingMismatchError):
        search_chunks(other.collection("widget-docs"), "backup")
    assert len(other.update("widget-docs").files.added) == first.metadata["total_documents"]
    assert search_chunks(other.collection("widget-docs"), "backup").matches[0].file_path == "operate/backup.md"


def test_a_second_update_at_the_same_time_is_refused(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom ragistry.library.contract_entries import locked\n"
        "with locked(Path(sys.argv[1]), 'widget-docs'):\n    print('ready', flush=True)\n    time.sleep(60)"
    )
    words = [sys.executable, "-c", code, str(repositories.root)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(StoreLockedError, match=f"process {other.pid}"):
            repositories.update("widget-docs")
        assert repositories.infos()[0].chunk_count > 0, "reading goes on"
        other.kill()
    assert repositories.update("widget-docs").files.embedded == 0


@pytest.mark.parametrize(("name", "pages"), [("docs-hugo", 80), ("docs-etcd", 80)])
def test_real_documentation_is_added_and_brought_up_to_date(name: str, pages: int, data: Path, tmp_path: Path) -> None:
    clone = tmp_path / name
    shutil.copytree(data / name, clone)
    commit(clone)
    repositories = Repositories(tmp_path / "repositories", Hashed(), READING)
    report = repositories.add(clone)
    assert report.files.failed == []
    assert len(report.files.added) >= pages
    first = report.files.added[0]
    git(clone, "mv", report.files.added[1], "moved.md")
    commit(clone, {first: "# Changed\n\nNothing is as it was.\n", report.files.added[2]: None})
    updated = repositories.update(name)
    assert updated.files.updated == [first]
    assert updated.files.embedded == 1
    assert sorted(updated.files.deleted) == sorted(report.files.added[1:3])
    assert updated.renamed == {report.files.added[1]: "moved.md"}
    every = [chunk for file in chunks(repositories, name).values() for chunk in file]
    assert len(every) == updated.info.chunk_count == updated.info.metadata["total_chunks"]
    assert all(chunk["title"] and chunk["section"] and chunk["heading_context"] for chunk in every)
    assert any(chunk["has_code"] for chunk in every)


def test_real_documentation_is_found_by_what_it_means(data: Path, repositories: Repositories, tmp_path: Path) -> None:
    clone = tmp_path / "etcd"
    shutil.copytree(data / "docs-etcd" / "tasks" / "operator", clone)
    commit(clone)
    repositories.add(clone)
    found = search_chunks(repositories.collection("etcd"), "take a copy of the database to disk", limit=3)
    assert "snapshot" in found.matches[0].content.lower()
