"""What a Git repository can hold that is hostile or strange: nothing of it leads out of the repository."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ragistry.errors import ExtractionError, SourceError
from ragistry.library import repository_git, repository_page
from ragistry.library.repository import Repositories
from ragistry.library.repository_git import content, head, markdown_files
from ragistry.library.repository_page import cleaned, read_page
from ragistry.library.source import Reading
from ragistry.models.minilm import MiniLMEmbedder
from tests.library.git_trees import commit, git

READING = Reading(1000, 150, True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    return folder


def test_links_and_submodules_are_left_out(clone: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("The password is swordfish.", encoding="utf-8")
    other = tmp_path / "other"
    other.mkdir()
    commit(other, {"inner.md": "Inside the submodule."})
    (clone / "link.md").symlink_to(tmp_path / "secret.md")
    (clone / "folder").symlink_to(tmp_path)
    commit(clone, {"page.md": "A page.", ".github/hidden.md": "Hidden."})
    git(clone, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub.md")
    commit(clone)
    assert [blob.path for blob in markdown_files(head(clone))] == ["page.md"]


def test_a_page_that_becomes_a_link_is_dropped(clone: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("The password is swordfish.", encoding="utf-8")
    commit(clone, {"page.md": "A page.", "other.md": "Another page."})
    repositories = Repositories(tmp_path / "repositories", MiniLMEmbedder(), READING)
    repositories.add(clone)
    (clone / "page.md").unlink()
    (clone / "page.md").symlink_to(tmp_path / "secret.md")
    commit(clone)
    assert repositories.update("clone").files.deleted == ["page.md"]
    texts = repositories.collection("clone").read(lambda store: [document.content for document in store.scan()], [])
    assert texts == ["Another page."]


def test_strange_names_stay_names(clone: Path, tmp_path: Path) -> None:
    names = ["line\nbreak.md", "tab\t.md", "-rf.md", "--help.md", "quote'\".md", "ä ö.MD", "sub/dir/…/x.markdown"]
    commit(clone, {name: f"Page number {number}." for number, name in enumerate(names)})
    (clone / os.fsdecode(b"latin-\xe9.md")).write_text("Not UTF-8.", encoding="utf-8")
    commit(clone)
    report = Repositories(tmp_path / "repositories", MiniLMEmbedder(), READING).add(clone)
    assert report.files.failed == []
    assert sorted(report.files.added) == sorted([*names, "latin-\\xe9.md"])


def test_objects_are_read_whatever_the_surroundings(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(clone, {"page.md": "A page.\n"})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    found = head(clone)
    [blob] = markdown_files(found)
    assert content(found, blob) == b"A page.\n"
    assert found.url == str(clone.resolve()), "a clone without a remote"


def test_nothing_of_the_repository_is_executed(clone: Path, tmp_path: Path) -> None:
    commit(clone, {"page.md": "A page.", ".gitattributes": "*.md filter=evil diff=evil\n"})
    trap = f"touch {tmp_path / 'executed'}"
    for setting in ("core.fsmonitor", "filter.evil.smudge", "filter.evil.clean", "diff.evil.textconv", "core.pager"):
        git(clone, "config", setting, trap)
    found = head(clone)
    assert content(found, markdown_files(found)[0]) == b"A page."
    assert not (tmp_path / "executed").exists()


def test_a_bare_clone_will_do(clone: Path, tmp_path: Path) -> None:
    commit(clone, {"page.md": "A page."})
    git(tmp_path, "clone", "--quiet", "--bare", str(clone), str(tmp_path / "bare.git"))
    found = head(tmp_path / "bare.git")
    assert [blob.path for blob in markdown_files(found)] == ["page.md"]
    assert found.url == str(clone)


def test_a_git_that_hangs_or_is_not_there(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(clone, {"page.md": "A page."})
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(SourceError, match="not installed"):
        head(clone)
    (programs / "git").write_text("#!/bin/sh\nexec /bin/sleep 60\n", encoding="utf-8")
    (programs / "git").chmod(0o755)
    monkeypatch.setattr(repository_git, "GIT_SECONDS", 0.2)
    with pytest.raises(SourceError, match="took over"):
        head(clone)


def test_a_file_over_the_limit_is_reported_unread(clone: Path, tmp_path: Path) -> None:
    from ragistry.utils.extracted import ExtractLimits

    commit(clone, {"large.md": "x" * 2_000, "small.md": "A page."})
    reading = Reading(1000, 150, True, limits=ExtractLimits(bytes=1_000))
    report = Repositories(tmp_path / "repositories", MiniLMEmbedder(), reading).add(clone)
    assert report.files.added == ["small.md"]
    assert "2,000 bytes" in report.files.failed[0].error


KILLED = """
import os, signal, sys
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.library.repository import Repositories
from ragistry.library.source import Reading

class Killed:
    def __init__(self):
        self.model, self.calls = MiniLMEmbedder(), 0
        self.fingerprint = self.model.fingerprint
    def count_tokens(self, texts):
        return [len(text.split()) for text in texts]

    def embed(self, texts, *, role="document"):
        self.calls += 1
        if self.calls == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.model.embed(texts, role=role)

from ragistry.library import ingest
ingest.CHUNKS_AT_ONCE = 2
Repositories(sys.argv[1], Killed(), Reading(1000, 150, True)).update("clone")
"""


def test_an_update_that_is_killed_leaves_the_old_version(clone: Path, tmp_path: Path) -> None:
    commit(clone, {f"{number}.md": f"Old page number {number}." for number in range(6)})
    repositories = Repositories(tmp_path / "repositories", MiniLMEmbedder(), READING)
    before = repositories.add(clone).info
    commit(clone, {f"{number}.md": f"New page number {number}." for number in range(6)})
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(repositories.root)], check=False, timeout=60, capture_output=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert repositories.infos() == [before]
    collection = repositories.collection("clone")
    assert all(d.content.startswith("Old") for d in collection.read(lambda store: list(store.scan()), []))
    assert len(list(repositories.root.glob("clone@*"))) == 2
    assert len(repositories.update("clone").files.updated) == 6
    assert all(d.content.startswith("New") for d in collection.read(lambda store: list(store.scan()), []))
    assert len(list(repositories.root.glob("clone@*"))) == 1, "what the killed process made is removed"


def test_marks_of_the_generator_are_taken_out_of_the_text() -> None:
    text = (
        'Use {{< ref "x.md" >}}this.\n<!-- not\nshown -->\n{{% note %}}Mind the gap.{{% /note %}}\n'
        "Write `{{</* ref */>}}`.\n\n```html\n<!-- kept -->\n{{%/* note */%}}\n```\n"
    )
    assert cleaned(text) == (
        "Use this.\n\nMind the gap.\nWrite `{{< ref >}}`.\n\n```html\n<!-- kept -->\n{{% note %}}\n```\n"
    )


def test_marks_that_are_never_closed_cost_little() -> None:
    for mark in ("<!-- ", "{{< ", "{{</* "):
        assert cleaned(mark * 20_000).startswith(mark.strip()[:3])


def test_a_page_without_front_matter_has_the_title_of_its_heading() -> None:
    page = read_page(b"Before.\r\n\r\n# The title\r\n\r\nText.\r\n", "a.md")
    assert page.metadata == {"title": "The title", "heading_context": "The title", "section": "The title"}
    assert "\r" not in page.text
    given = read_page(b"---\ntitle: Given\nsection: Guides\n---\n# Other\n", "a.md").metadata
    assert (given["title"], given["section"], given["heading_context"]) == ("Given", "Guides", "Given")
    with pytest.raises(ExtractionError, match=r"a\.md"):
        read_page(b"\0\1\2", "a.md")


@pytest.mark.parametrize("what", ["blob:none", "tree:0"])
def test_a_clone_without_its_files_is_told_how_to_get_them(clone: Path, tmp_path: Path, what: str) -> None:
    commit(clone, {"docs/page.md": "A page.\n"})
    git(clone, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", "--no-checkout", f"--filter={what}", clone.as_uri(), "partial")
    clone.rename(tmp_path / "gone")  # versions of Git before 2.45 would fetch what they lack from there
    repositories = Repositories(tmp_path / "repositories", MiniLMEmbedder(), READING)
    with pytest.raises(
        SourceError, match=r"made without all of its files: get them with `git fetch --refetch --no-fil"
    ):
        repositories.add(tmp_path / "partial")
    (tmp_path / "gone").rename(clone)
    git(tmp_path / "partial", "fetch", "--quiet", "--refetch", "--no-filter")
    assert repositories.add(tmp_path / "partial").files.added == ["docs/page.md"]


def test_pages_are_read_again_when_they_are_read_otherwise(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(clone, {"page.md": "A page.\n"})
    repositories = Repositories(tmp_path / "repositories", MiniLMEmbedder(), READING)
    repositories.add(clone)
    monkeypatch.setattr(repository_page, "VERSION", repository_page.VERSION + 1)
    report = repositories.update("clone").files
    assert (report.updated, report.embedded) == (["page.md"], 0)
