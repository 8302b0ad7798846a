"""``ragistry repo``, as a person and as a program use it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done
from tests.library.git_trees import commit

Run = Callable[..., Done]
PAGES = {
    "_index.md": "---\ntitle: Tea\ndescription: All about tea.\n---\nTea is made of leaves.\n",
    "green.md": "# Green tea\n\nSteep green tea in water of eighty degrees.\n",
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "tea-docs"
    folder.mkdir()
    commit(folder, PAGES)
    return folder


@pytest.fixture
def added(ragistry: Run, clone: Path) -> Run:
    done = ragistry("repo", "add", clone, "--json")
    assert done.code == 0, done.err
    return ragistry


def test_a_clone_is_added_listed_and_searched(ragistry: Run, clone: Path) -> None:
    done = ragistry("repo", "add", "tea-docs")
    assert done.code == 0
    assert "tea-docs" in done.out
    assert "2 pages" in done.out
    assert "2 added" in done.out
    [listed] = ragistry("repo", "list", "--json").json["repositories"]
    assert listed["name"] == "tea-docs"
    assert listed["chunk_count"] == listed["metadata"]["total_chunks"] == 2
    assert len(listed["metadata"]["commit_hash"]) == 40
    assert listed["metadata"]["commit_hash"][:12] in ragistry("repo", "list").out
    found = ragistry("repo", "search", "tea-docs", "how hot is the water", "--json").json
    assert found["documents"][0]["metadata"]["file_path"] == "green.md"
    assert found["trace"][0]["name"] == "hybrid"
    by_words = ragistry("repo", "search", "tea-docs", "eighty", "--technique", "bm25")
    assert by_words.out.startswith("1. Green tea\n   tea-docs · green.md\n")
    assert "eighty degrees" in by_words.out
    assert "nothing found" in ragistry("repo", "search", "tea-docs", "zebra", "--technique", "bm25").err


def test_the_library_does_not_see_it(added: Run) -> None:
    assert added("search", "green tea", "--json").json["total_results"] == 0


def test_an_update_says_what_it_did(added: Run, clone: Path) -> None:
    new = commit(clone, {"green.md": None, "sencha.md": PAGES["green.md"], "black.md": "# Black tea\n\nBoil it.\n"})
    [report] = added("repo", "update", "--json").json["repositories"]
    assert report["added"] == ["black.md", "sencha.md"]
    assert report["deleted"] == ["green.md"]
    assert report["renamed"] == {"green.md": "sencha.md"}
    assert report["embedded"] == 1
    assert report["metadata"]["commit_hash"] == new
    again = added("repo", "update", "tea-docs")
    assert "0 added, 0 updated, 3 skipped, 0 deleted, 0 failed, 0 renamed (0 embedded)" in again.out


def test_one_repository_that_fails_does_not_stop_the_others(added: Run, clone: Path, tmp_path: Path) -> None:
    clone.rename(tmp_path / "elsewhere")
    other = tmp_path / "other"
    other.mkdir()
    commit(other, {"page.md": "A page."})
    assert added("repo", "add", other).code == 0
    done = added("repo", "update", "--json")
    assert done.code == 1
    assert [report["name"] for report in done.json["repositories"]] == ["other"]
    assert "tea-docs" in done.json["failed"]["tea-docs"]
    alone = added("repo", "update", "tea-docs")
    assert alone.code == 1
    assert "the clone of 'tea-docs' is gone" in alone.err
    assert added("repo", "search", "tea-docs", "water", "--json").json["total_results"] == 2, "what was there stays"


def test_a_bad_file_is_reported(ragistry: Run, clone: Path) -> None:
    (clone / "bad.md").write_bytes(b"\0" * 100)
    commit(clone)
    done = ragistry("repo", "add", clone)
    assert done.code == 1
    assert "bad.md" in done.err
    assert "2 added" in done.out


def test_removal_is_asked_for(added: Run, clone: Path) -> None:
    refused = added("repo", "remove", "tea-docs")
    assert refused.code == 1
    assert "--yes" in refused.err
    assert added("repo", "list", "--json").json["repositories"] != []
    assert added("repo", "remove", "tea-docs", "--yes", "--json").json == {"removed": "tea-docs", "chunks": 2}
    assert "ragistry repo add" in added("repo", "list").err
    assert (clone / "green.md").exists()
    missing = added("repo", "remove", "tea-docs", "--yes")
    assert missing.code == 1
    assert "no repository 'tea-docs'" in missing.err


def test_a_repository_that_is_damaged_is_named_by_doctor_and_can_be_removed(added: Run, tmp_path: Path) -> None:
    folder = tmp_path / ".ragistry" / "repositories"
    assert "repositories: tea-docs" in added("doctor").out
    [store] = folder.glob("tea-docs@*")
    shutil.rmtree(store)
    (folder / "other.json").write_text("{", encoding="utf-8")
    done = added("doctor", "--json")
    broken = {item["name"]: item["detail"] for item in done.json["findings"] if item["name"].startswith("repo")}
    assert (done.code, list(broken)) == (1, ["repository other", "repository tea-docs"])
    assert "other.json' is damaged" in broken["repository other"]
    assert "is gone; index again" in broken["repository tea-docs"]
    assert added("repo", "remove", "tea-docs", "--yes").code == 0
    assert not (folder / "tea-docs.json").exists()


def test_a_search_of_the_library_says_where_a_repository_is_searched(added: Run) -> None:
    done = added("search", "green tea", "--collection", "tea-docs")
    assert done.code == 1
    assert done.err.startswith("error: 'tea-docs' is a repository, no collection; search it with `ragistry repo search")
    assert "no collection 'tea-dogs'" in added("search", "green tea", "--collection", "tea-dogs").err


def test_a_repository_is_searched_by_what_a_routed_technique_stands_on(added: Run) -> None:
    found = added("repo", "search", "tea-docs", "how hot is the water", "--technique", "routed", "--json").json
    assert (found["trace"][0]["name"], found["documents"][0]["metadata"]["file_path"]) == ("hybrid", "green.md")


def test_what_is_used_wrongly_is_said_in_a_line(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for words, said in (
        (("add", "nowhere"), "no such folder"),
        (("add", "plain"), "Git clone"),
        (("update", "nothing"), "no repository 'nothing'"),
        (("remove", "nothing", "--yes"), "no repository 'nothing'"),
        (("search", "nothing", "tea"), "no repository 'nothing'"),
        (("add", "plain", "--name", "No Name"), "Git clone"),
    ):
        done = ragistry("repo", *words)
        assert done.code == 1
        assert said in done.err
        assert len(done.err.strip().splitlines()) == 1


def test_options_may_stand_before_the_command(ragistry: Run, clone: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "workspace"
    elsewhere.mkdir()
    assert ragistry("--workspace", elsewhere, "repo", "add", clone).code == 0
    assert (elsewhere / ".ragistry" / "repositories" / "tea-docs.json").exists()
    assert ragistry("repo", "list", "--workspace", elsewhere, "--json").json["repositories"] != []


def test_a_name_is_given_once(added: Run, clone: Path, tmp_path: Path) -> None:
    taken = added("collections", "add", "tea-docs", "-d", "Notes")
    assert (taken.code, "there is a repository 'tea-docs'" in taken.err) == (1, True)
    assert added("collections", "add", "notes", "-d", "Notes").code == 0
    assert "give the collection another name" in added("collections", "rename", "notes", "tea-docs").err
    taken = added("repo", "add", clone, "--name", "notes")
    assert (taken.code, "there is a collection 'notes'" in taken.err, "`--name`" in taken.err) == (1, True, True)
    archive = "archives:\n  - {name: papers, collection_name: papers, embedding_model: nomic-embed-text}\n"
    (tmp_path / "config" / "vector_stores.yaml").write_text(archive, encoding="utf-8")
    assert "there is an archive 'papers'" in added("collections", "add", "papers").err
    assert "there is an archive 'papers'" in added("repo", "add", clone, "--name", "papers").err


def test_doctor_finds_a_name_that_is_given_twice(added: Run, tmp_path: Path) -> None:
    assert "names" not in [finding["name"] for finding in added("doctor", "--json").json["findings"]]
    (tmp_path / "config").mkdir(exist_ok=True)
    (tmp_path / "config" / "documents.yaml").write_text("collections: [{name: tea-docs}]\n", encoding="utf-8")
    done = added("doctor", "--json")
    [found] = [finding for finding in done.json["findings"] if finding["name"] == "names"]
    assert (done.code, found["state"]) == (1, "failed")
    assert found["detail"] == "'tea-docs' is the name of a collection and a repository; rename one of them"
