"""Documentation repositories: real Git clones as collections, updated by commit."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

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
from ragistry.library.ingest.source import ReadOptions
from ragistry.library.repositories import git as repository_git
from ragistry.library.repositories import page as repository_page
from ragistry.library.repositories.git import content, head, markdown_files
from ragistry.library.repositories.repository import Repositories, RepositoryTechnique
from ragistry.readers.extracted import ExtractLimits
from ragistry.techniques.bm25 import BM25Technique
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import Document
from tests.conftest import full_run
from tests.library.git_trees import commit, git, write
from tests.messages import check_message, refused
from tests.stores.scripts import HOLD, run, started

READING = ReadOptions(1000, 150, True)
PAGES = {
    "_index.md": "---\ntitle: Widget\ndescription: How to run Widget.\n---\nWidget turns wheels.\n",
    "install/linux.md": (
        "---\ntitle: Linux\ntags: [setup, linux]\n---\n" + "Read this first, please. " * 12 + "\n\n"
        "# Install\n\n## Requirements\n\nYou need a kernel that is younger than you are.\n\n```sh\nmake widget\n```\n"
    ),
    "operate/backup.md": "# Backups\n\nA backup is copied to another house every night.\n",
    "notes.txt": "This is no page.",
}
NAMES = ["_index.md", "install/linux.md", "operate/backup.md"]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with three pages."""
    return cloned(tmp_path / "Widget.Docs", PAGES)


def cloned(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir()
    commit(folder, files)
    return folder


@pytest.fixture
def repositories(tmp_path: Path) -> Repositories:
    return over(tmp_path / "repositories")


def over(root: Path, reading: ReadOptions = READING, **options: Any) -> Repositories:
    return Repositories(root, HashingEmbedder(**options), reading)


def chunks(repositories: Repositories, name: str = "widget-docs") -> dict[str, list[dict[str, Any]]]:
    """The metadata of every chunk, by file."""
    found: dict[str, list[dict[str, Any]]] = {}
    documents: list[Document] = repositories.collection(name).read(lambda store: list(store.scan()), [])
    for document in documents:
        found.setdefault(document.metadata["file_path"], []).append({**document.metadata, "text": document.content})
    return found


def test_clone_becomes_a_collection_of_the_contract(repositories: Repositories, clone: Path) -> None:
    git(clone, "remote", "add", "origin", "https://someone:secret@example.org/widget/docs.git?token=hush#hush")
    report = repositories.add(clone)
    assert (report.files.added, report.files.failed) == (NAMES, [])
    info = report.info
    assert info.name == "widget-docs"
    assert info.metadata["repository_url"] == "https://example.org/widget/docs.git", "without the password"
    assert info.metadata["commit_hash"] == git(clone, "rev-parse", "HEAD")
    assert info.metadata["last_updated"].endswith("Z")
    assert info.metadata["total_documents"] == 3
    assert info.metadata["total_chunks"] == info.chunk_count == repositories.collection("widget-docs").count()
    assert info.metadata["description"] == "Widget: How to run Widget."
    assert repositories.infos() == list_collections(path=repositories.root) == [info]
    collection = get_collection("widget-docs", path=repositories.root, embedder=HashingEmbedder())
    best = search_chunks(collection, "a backup is copied to another house", limit=1).matches[0]
    assert (best.file_path, best.repository, best.heading_context) == ("operate/backup.md", "widget-docs", "Backups")
    git(clone, "remote", "set-url", "origin", "https://example.org/moved.git?token=hush")
    assert repositories.update("widget-docs").info.metadata["repository_url"] == "https://example.org/moved.git"
    assert "hush" not in (repositories.root / "widget-docs.json").read_text(encoding="utf-8")


def test_chunks_have_their_place_in_the_page(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    [intro, install] = sorted(chunks(repositories)["install/linux.md"], key=lambda chunk: chunk["chunk_index"])
    assert (intro["title"], intro["section"], intro["heading_context"]) == ("Linux", "Linux", "Linux")
    assert (install["section"], install["heading_context"]) == ("Requirements", "Install > Requirements")
    assert (intro["has_code"], install["has_code"]) == (False, True)
    for chunk in (intro, install):
        assert (chunk["tags"], chunk["repository"]) == (["setup", "linux"], "widget-docs")
        assert (chunk["collection"], chunk["processed_at"][-1]) == ("widget-docs", "Z")
        assert chunk["token_count"] > 3


# Updates


def test_update_embeds_only_new_text(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    before = chunks(repositories)
    changes = {
        "operate/backup.md": "# Backups\n\nA backup is written to tape on Sundays.\n",
        "operate/restore.md": "# Restoring\n\nTake the tape out of the box.\n",
        "install/linux.md": None,
        "install/unix.md": PAGES["install/linux.md"],
    }
    new = commit(clone, changes)
    report = repositories.update("widget-docs")
    assert report.files.added == ["install/unix.md", "operate/restore.md"]
    assert report.files.updated == ["operate/backup.md"]
    assert report.files.skipped == ["_index.md"]
    assert report.files.deleted == ["install/linux.md"]
    assert report.renamed == {"install/linux.md": "install/unix.md"}
    assert report.files.embedded == 2, "the text of the renamed file has its vectors already"
    assert (report.info.metadata["commit_hash"], report.info.metadata["total_documents"]) == (new, 4)
    after = chunks(repositories)
    assert sorted(after) == ["_index.md", "install/unix.md", "operate/backup.md", "operate/restore.md"]
    assert after["_index.md"] == before["_index.md"], "untouched, with the time at which it was made"
    [found] = search_chunks(repositories.collection("widget-docs"), "Take the tape out of the box", limit=1).matches
    assert found.file_path == "operate/restore.md"


def test_update_without_a_changed_page_changes_only_the_recorded_commit(
    repositories: Repositories, clone: Path
) -> None:
    repositories.add(clone)
    [record] = repositories.root.glob("*.json")
    before, versions = record.read_bytes(), sorted(repositories.root.iterdir())
    report = repositories.update("widget-docs")
    assert (report.files.skipped, report.files.embedded) == (NAMES, 0)
    assert (record.read_bytes(), sorted(repositories.root.iterdir())) == (before, versions)
    new = commit(clone, {"notes.txt": "Still no page."})
    assert repositories.update("widget-docs").info.metadata["commit_hash"] == new
    assert sorted(repositories.root.iterdir()) == versions
    assert repositories.infos()[0].chunk_count == repositories.collection("widget-docs").count() > 0


def test_update_warns_only_of_changed_pages(repositories: Repositories, clone: Path) -> None:
    def warned(report: Any) -> set[str]:
        return {warning.partition(": ")[0] for warning in report.files.warnings}

    commit(clone, {"empty.md": "---\ndate: 2026-01-01\n---\n", "other.md": "<!-- later -->\n"})
    added = repositories.add(clone)
    check_message("\n".join(added.files.warnings), "empty.md", "other.md")
    again = repositories.update("widget-docs")
    assert (again.files.warnings, len(again.files.skipped)) == ([], 5)
    commit(clone, {"other.md": "<!-- much later -->\n", "new.md": "\n", "operate/backup.md": "# Backups\n\nNone.\n"})
    assert warned(repositories.update("widget-docs")) == {"new.md", "other.md"}
    commit(clone, {"empty.md": "---\ndate: 2026-01-02\n---\n\n", "operate/backup.md": "# Backups\n\nSome.\n"})
    shutil.rmtree(clone / ".git")
    commit(clone)
    rewritten = repositories.update("widget-docs")
    assert len(warned(rewritten)) == 3, "the recorded commit is gone from the clone"
    assert (rewritten.files.updated, rewritten.files.embedded) == (["operate/backup.md"], 1)


def test_only_committed_files_of_the_folder_are_indexed(repositories: Repositories, clone: Path) -> None:
    write(clone, {"operate/backup.md": "half edited", "operate/draft.md": "not yet added"})
    report = repositories.add(clone / "operate", name="operating", description="How it runs")
    assert report.files.added == ["operate/backup.md"], "paths are those of the whole repository"
    assert report.info.metadata["description"] == "How it runs"
    assert "every night" in chunks(repositories, "operating")["operate/backup.md"][0]["text"]


def test_new_reader_or_embedder_reads_all_pages_again(
    repositories: Repositories, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repositories.add(clone)
    monkeypatch.setattr(repository_page, "VERSION", repository_page.VERSION + 1)
    report = repositories.update("widget-docs").files
    assert (report.updated, report.embedded) == (NAMES, 0)
    other = over(repositories.root, model="other")
    with pytest.raises(EmbeddingMismatchError):
        search_chunks(other.collection("widget-docs"), "backup")
    assert other.update("widget-docs").files.added == NAMES
    assert search_chunks(other.collection("widget-docs"), "backups").matches[0].file_path == "operate/backup.md"


def test_technique_over_a_repository_follows_an_update(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    technique = RepositoryTechnique(
        repositories.collection("widget-docs"),
        lambda store: BM25Technique({}, store=store),  # type: ignore[arg-type]
    )
    assert [found.metadata["file_path"] for found in technique.retrieve("backup house")] == ["operate/backup.md"]
    assert technique.retrieve("backup", where={"tags": {"$contains": "linux"}}) == []
    commit(clone, {"operate/vault.md": "# Vault\n\nThe house has a vault.\n"})
    repositories.update("widget-docs")
    found = technique.retrieve("vault house", top_k=1)
    assert [document.metadata["file_path"] for document in found] == ["operate/vault.md"]


# Failures


def unreachable(texts: Sequence[str]) -> None:
    raise ModelConnectionError("no server at 'http://127.0.0.1:9'; start it")


def test_failed_update_leaves_the_old_version(repositories: Repositories, clone: Path) -> None:
    with pytest.raises(ModelConnectionError):
        over(repositories.root, check=unreachable).add(clone)
    assert (repositories.infos(), list(repositories.root.glob("widget-docs@*"))) == ([], [])
    repositories.add(clone)
    before, record = chunks(repositories), repositories.infos()
    commit(clone, {"operate/backup.md": None, "_index.md": "Something else altogether.\n"})
    with pytest.raises(ModelConnectionError):
        over(repositories.root, check=unreachable).update("widget-docs")
    assert (chunks(repositories), repositories.infos()) == (before, record)
    assert len(list(repositories.root.glob("widget-docs@*"))) == 1, "what was begun is gone"
    assert repositories.update("widget-docs").files.deleted == ["operate/backup.md"]
    commit(clone, dict.fromkeys(("_index.md", "install/linux.md")))
    with refused(SourceError):
        repositories.update("widget-docs")
    assert sorted(chunks(repositories)) == ["_index.md", "install/linux.md"]


@pytest.mark.parametrize("change", [None, {"operate/vault.md": "# Vault\n"}, {"notes.txt": "Only the commit is new."}])
def test_interrupt_after_the_record_was_replaced_loses_nothing(
    repositories: Repositories, clone: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, str] | None
) -> None:
    if change is not None:
        repositories.add(clone)
        commit(clone, change)
    index = partial(repositories.add, clone) if change is None else partial(repositories.update, "widget-docs")
    with monkeypatch.context() as patch:
        patch.setattr("ragistry.config.replacing.flush_folder", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            index()
    assert chunks(repositories).keys() >= set(NAMES)
    assert len(list(repositories.root.glob("widget-docs@*"))) == 1
    assert repositories.update("widget-docs").files.added == []


@pytest.mark.parametrize("gone", ["", ".git"])
def test_clone_that_vanishes_while_it_is_read_changes_nothing(
    repositories: Repositories, clone: Path, gone: str
) -> None:
    def vanish(page: str, *_: int) -> None:
        if page == NAMES[1]:
            (clone / gone).rename(clone.with_name("moved"))

    with refused(SourceError, str(clone)):
        repositories.add(clone, progress=vanish)
    assert (repositories.infos(), list(repositories.root.glob("widget-docs@*"))) == ([], [])
    clone.with_name("moved").rename(clone / gone)
    repositories.add(clone)
    before, record = chunks(repositories), repositories.infos()
    commit(clone, dict.fromkeys(NAMES, "# New\n\nEvery page is new.\n"))
    with refused(SourceError, str(clone)):
        repositories.update("widget-docs", vanish)
    assert (chunks(repositories), repositories.infos()) == (before, record)
    clone.with_name("moved").rename(clone / gone)
    assert repositories.update("widget-docs").files.updated == NAMES


KILLED = """
import os, signal, sys
from ragistry.library.ingest import run as ingest
from ragistry.library.repositories.repository import Repositories
from ragistry.library.ingest.source import ReadOptions
from ragistry.testing.hashed import HashingEmbedder
ingest.CHUNKS_AT_ONCE = 2
embedder = HashingEmbedder(check=lambda texts: embedder.calls == 2 and os.kill(os.getpid(), signal.SIGKILL))
Repositories(sys.argv[1], embedder, ReadOptions(1000, 150, True)).update("clone")
"""


def test_killed_update_leaves_the_old_version(repositories: Repositories, tmp_path: Path) -> None:
    clone = cloned(tmp_path / "clone", {f"{number}.md": f"Old page number {number}." for number in range(6)})
    before = repositories.add(clone).info
    commit(clone, {f"{number}.md": f"New page number {number}." for number in range(6)})
    run(KILLED, repositories.root, ends=-signal.SIGKILL)
    assert repositories.infos() == [before]
    assert {page["text"][:3] for [page] in chunks(repositories, "clone").values()} == {"Old"}
    assert len(list(repositories.root.glob("clone@*"))) == 2
    assert len(repositories.update("clone").files.updated) == 6
    assert {page["text"][:3] for [page] in chunks(repositories, "clone").values()} == {"New"}
    assert len(list(repositories.root.glob("clone@*"))) == 1, "what the killed process made is removed"


def test_second_update_at_the_same_time_is_refused(repositories: Repositories, clone: Path) -> None:
    repositories.add(clone)
    with started(HOLD, repositories.root / "widget-docs.lock") as other:
        with pytest.raises(StoreLockedError, match=f"process {other.pid}"):
            repositories.update("widget-docs")
        assert repositories.infos()[0].chunk_count > 0, "reading goes on"
    assert repositories.update("widget-docs").files.embedded == 0


def test_unreadable_file_is_reported_and_tried_again(tmp_path: Path) -> None:
    clone = cloned(tmp_path / "clone", {"large.md": "x" * 2_000, "small.md": "A page."})
    (clone / "broken.md").write_bytes(b"\x00\x01\x02" * 50)
    commit(clone)
    repositories = over(tmp_path / "repositories", ReadOptions(1000, 150, True, limits=ExtractLimits(bytes=1_000)))
    for report in (repositories.add(clone), repositories.update("clone")):
        assert [failure.source for failure in report.files.failed] == ["broken.md", "large.md"]
        for failure in report.files.failed:
            check_message(failure.error, failure.source)
    assert report.info.metadata["total_documents"] == 1


def test_names_are_unique_and_follow_the_rule(repositories: Repositories, clone: Path, tmp_path: Path) -> None:
    repositories.add(clone)
    with refused(CollectionAlreadyExistsError, "'widget-docs'"):
        repositories.add(clone)
    with pytest.raises(InvalidCollectionNameError):
        repositories.add(clone, name="../elsewhere")
    with refused(InvalidCollectionNameError, "'+++'"):
        repositories.add(shutil.copytree(clone, tmp_path / "+++"))
    long = shutil.copytree(clone, tmp_path / ("X" * 70 + ".git"))
    assert repositories.add(long).info.name == "x" * 63


def test_folder_that_is_not_a_clone_is_refused(repositories: Repositories, clone: Path, tmp_path: Path) -> None:
    with refused(SourceNotFoundError):
        repositories.add(tmp_path / "nowhere")
    plain = tmp_path / "plain"
    plain.mkdir()
    with refused(SourceError, "plain"):
        repositories.add(plain)
    git(plain, "init", "--quiet")
    with refused(SourceError, "plain"):
        repositories.add(plain)
    assert repositories.infos() == []
    repositories.add(clone)
    clone.rename(clone.with_name("elsewhere"))
    with refused(SourceNotFoundError, "'widget-docs'"):
        repositories.update("widget-docs")


def test_removed_repository_is_gone(repositories: Repositories, clone: Path) -> None:
    assert repositories.add(clone).info.chunk_count == repositories.remove("widget-docs") > 0
    assert ((clone / "_index.md").exists(), repositories.infos()) == (True, [])
    for call in (repositories.remove, repositories.update, repositories.collection):
        with refused(CollectionNotFoundError, "'widget-docs'"):
            call("widget-docs")
    repositories.add(clone)
    with refused(CollectionNotFoundError, "'widget'", "'widget-docs'"):
        repositories.remove("widget")


# Git


def test_links_and_submodules_are_left_out(repositories: Repositories, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("The password is swordfish.", encoding="utf-8")
    other = cloned(tmp_path / "other", {"inner.md": "Inside the submodule."})
    clone = cloned(tmp_path / "clone", {"page.md": "A page.", "other.md": "Another page.", ".github/hidden.md": "No."})
    (clone / "link.md").symlink_to(secret)
    (clone / "folder").symlink_to(tmp_path)
    git(clone, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub.md")
    commit(clone)
    assert repositories.add(clone).files.added == ["other.md", "page.md"]
    (clone / "page.md").unlink()
    (clone / "page.md").symlink_to(secret)
    commit(clone)
    assert repositories.update("clone").files.deleted == ["page.md"]
    assert sorted(chunks(repositories, "clone")) == ["other.md"]


def test_strange_file_names_are_kept(repositories: Repositories, tmp_path: Path) -> None:
    names = ["line\nbreak.md", "tab\t.md", "-rf.md", "--help.md", "quote'\".md", "ä ö.MD", "sub/dir/…/x.markdown"]
    clone = cloned(tmp_path / "clone", {name: f"Page number {number}." for number, name in enumerate(names)})
    (clone / os.fsdecode(b"latin-\xe9.md")).write_text("Not UTF-8.", encoding="utf-8")
    commit(clone)
    report = repositories.add(clone)
    assert (sorted(report.files.added), report.files.failed) == (sorted([*names, "latin-\\xe9.md"]), [])


def test_git_ignores_its_surroundings_and_executes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = cloned(tmp_path / "clone", {"page.md": "A page.\n", ".gitattributes": "*.md filter=evil diff=evil\n"})
    git(tmp_path, "clone", "--quiet", "--bare", str(clone), str(tmp_path / "bare.git"))
    for setting in ("core.fsmonitor", "filter.evil.smudge", "filter.evil.clean", "diff.evil.textconv", "core.pager"):
        git(clone, "config", setting, f"touch {tmp_path / 'executed'}")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    for folder in (clone, tmp_path / "bare.git"):
        found = head(folder)
        [blob] = markdown_files(found)
        assert (blob.path, content(found, blob)) == ("page.md", b"A page.\n")
        assert found.url == str(clone.resolve()), "without a remote, the clone itself"
    assert not (tmp_path / "executed").exists()


def test_git_that_hangs_or_is_not_installed_is_refused(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    with refused(SourceError, "`git`"):
        head(clone)
    (programs / "git").write_text("#!/bin/sh\nexec /bin/sleep 60\n", encoding="utf-8")
    (programs / "git").chmod(0o755)
    monkeypatch.setattr(repository_git, "GIT_SECONDS", 0.2)
    with refused(SourceError, "`git rev-parse`"):
        head(clone)


@pytest.mark.parametrize("what", ["blob:none", "tree:0"])
def test_partial_clone_is_refused_until_it_has_its_files(repositories: Repositories, tmp_path: Path, what: str) -> None:
    clone = cloned(tmp_path / "clone", {"docs/page.md": "A page.\n"})
    git(clone, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", "--no-checkout", f"--filter={what}", clone.as_uri(), "partial")
    clone.rename(tmp_path / "gone")  # versions of Git before 2.45 would fetch what they lack from there
    with refused(SourceError):
        repositories.add(tmp_path / "partial")
    (tmp_path / "gone").rename(clone)
    git(tmp_path / "partial", "fetch", "--quiet", "--refetch", "--no-filter")
    assert repositories.add(tmp_path / "partial").files.added == ["docs/page.md"]


@pytest.mark.parametrize("name", ["docs-hugo", "docs-etcd"] if full_run() else ["docs-etcd"])
def test_real_documentation_is_added_and_updated(name: str, data: Path, tmp_path: Path) -> None:
    clone = shutil.copytree(data / name, tmp_path / name)
    commit(clone)
    repositories = over(tmp_path / "repositories")
    report = repositories.add(clone)
    first, second, third, *_ = report.files.added
    assert (len(report.files.added) >= 80, report.files.failed) == (True, [])
    git(clone, "mv", second, "moved.md")
    commit(clone, {first: "# Changed\n\nNothing is as it was.\n", third: None})
    updated = repositories.update(name)
    assert (updated.files.updated, updated.files.embedded) == ([first], 1)
    assert (sorted(updated.files.deleted), updated.renamed) == (sorted([second, third]), {second: "moved.md"})
    every = [chunk for file in chunks(repositories, name).values() for chunk in file]
    assert len(every) == updated.info.chunk_count == updated.info.metadata["total_chunks"]
    assert all(chunk["title"] and chunk["section"] and chunk["heading_context"] for chunk in every)
    assert any(chunk["has_code"] for chunk in every)
