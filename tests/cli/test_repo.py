"""``ragistry repo``, as a person and as a program use it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.conftest import Corpus
from tests.library.git_trees import commit
from tests.messages import check_message

PAGES = {
    "_index.md": "---\ntitle: Tea\ndescription: All about tea.\n---\nTea is made of leaves.\n",
    "green.md": "# Green tea\n\nSteep green tea in water of eighty degrees.\n",
}


@pytest.fixture
def clone(corpus: Corpus) -> Path:
    folder = corpus({".gitignore": ""}, folder="tea-docs")
    commit(folder, PAGES)
    return folder


@pytest.fixture
def added(ragistry: Run, clone: Path) -> Run:
    done = ragistry("repo", "add", "tea-docs")
    assert done.code == 0, done.err
    check_message(done.out, "tea-docs", "2 pages", "2 added")
    return ragistry


def test_clone_is_listed_and_searched_apart_from_the_library(added: Run) -> None:
    [listed] = added("repo", "list", "--json").json["repositories"]
    assert listed["name"] == "tea-docs"
    assert listed["chunk_count"] == listed["metadata"]["total_chunks"] == 2
    assert len(listed["metadata"]["commit_hash"]) == 40
    assert listed["metadata"]["commit_hash"][:12] in added("repo", "list").out
    for words, technique in (([], "hybrid"), (["--technique", "routed"], "hybrid"), (["-t", "bm25"], "bm25")):
        found = added("repo", "search", "tea-docs", "how hot is the water", *words, "--json").json
        assert (found["documents"][0]["metadata"]["file_path"], found["trace"][0]["name"]) == ("green.md", technique)
    by_words = added("repo", "search", "tea-docs", "eighty", "--technique", "bm25")
    assert by_words.out.startswith("1. Green tea\n   tea-docs · green.md · line 3\n")
    assert "eighty degrees" in by_words.out
    check_message(added("repo", "search", "tea-docs", "zebra", "--technique", "bm25").err)
    assert added("search", "green tea", "--json").json["total_results"] == 0
    added("search", "green tea", "--collection", "tea-docs").refused(1, "'tea-docs'", "technique 'routed'")
    added("search", "green tea", "--collection", "tea-dogs").refused(1, "'tea-dogs'")


def test_update_reports_the_changes(added: Run, clone: Path) -> None:
    new = commit(clone, {"green.md": None, "sencha.md": PAGES["green.md"], "black.md": "# Black tea\n\nBoil it.\n"})
    [report] = added("repo", "update", "--json").json["repositories"]
    assert (report["added"], report["deleted"]) == (["black.md", "sencha.md"], ["green.md"])
    assert (report["renamed"], report["embedded"]) == ({"green.md": "sencha.md"}, 1)
    assert report["metadata"]["commit_hash"] == new
    again = added("repo", "update", "tea-docs")
    assert "0 added, 0 updated, 3 skipped, 0 deleted, 0 failed, 0 renamed (0 embedded)" in again.out


def test_page_or_repository_that_fails_does_not_stop_the_others(added: Run, clone: Path, tmp_path: Path) -> None:
    clone.rename(tmp_path / "elsewhere")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "bad.md").write_bytes(b"\0" * 100)
    commit(tmp_path / "other", {"page.md": "A page."})
    done = added("repo", "add", "other")
    assert (done.code, "1 added" in done.out) == (1, True)
    check_message(done.err, "bad.md")
    done = added("repo", "update", "--json")
    assert (done.code, [report["name"] for report in done.json["repositories"]]) == (1, ["other"])
    check_message(done.json["failed"]["tea-docs"], "tea-docs")
    added("repo", "update", "tea-docs").refused(1, "'tea-docs'")
    assert added("repo", "search", "tea-docs", "water", "--json").json["total_results"] == 2, "what was there stays"


def test_removal_is_asked_for(added: Run, clone: Path) -> None:
    added("repo", "remove", "tea-docs").refused(1, "'tea-docs'", "--yes")
    assert added("repo", "list", "--json").json["repositories"] != []
    assert added("repo", "remove", "tea-docs", "--yes", "--json").json == {"removed": "tea-docs", "chunks": 2}
    check_message(added("repo", "list").err, "ragistry repo add")
    assert (clone / "green.md").exists()
    added("repo", "remove", "tea-docs", "--yes").refused(1, "'tea-docs'")


def test_damaged_repository_is_named_by_doctor_and_can_be_removed(added: Run, tmp_path: Path) -> None:
    folder = tmp_path / ".ragistry" / "repositories"
    assert "repositories: tea-docs" in added("doctor").out
    [store] = folder.glob("tea-docs@*")
    shutil.rmtree(store)
    (folder / "other.json").write_text("{", encoding="utf-8")
    done = added("doctor", "--json")
    broken = {name: detail for name, (_, detail) in done.findings.items() if name.startswith("repo")}
    assert (done.code, list(broken)) == (1, ["repository other", "repository tea-docs"])
    for detail in broken.values():
        check_message(detail)
    assert added("repo", "remove", "tea-docs", "--yes").code == 0
    assert not (folder / "tea-docs.json").exists()


def test_name_is_given_to_one_collection_archive_or_repository_only(added: Run, clone: Path, corpus: Corpus) -> None:
    archive = "archives:\n  - {name: papers, collection_name: papers, embedding_model: nomic-embed-text}\n"
    corpus({"vector_stores.yaml": archive}, folder="config")
    assert added("collections", "add", "notes", "-d", "Notes").code == 0
    for words, name in (
        (["collections", "add", "tea-docs"], "'tea-docs'"),
        (["collections", "rename", "notes", "tea-docs"], "'tea-docs'"),
        (["collections", "add", "papers"], "'papers'"),
        (["repo", "add", clone, "--name", "notes"], "'notes'"),
        (["repo", "add", clone, "--name", "papers"], "'papers'"),
    ):
        added(*words).refused(1, name)
    assert "names" not in added("doctor", "--json").findings
    corpus({"documents.yaml": "collections: [{name: tea-docs}]\n"}, folder="config")
    done = added("doctor", "--json")
    state, detail = done.findings["names"]
    assert (done.code, state) == (1, "failed")
    check_message(detail, "'tea-docs'")
