"""Which files of a folder are ingested, which are left out and named, and which sources vanished with their files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import SourceError
from ragistry.library.ingest.folder import list_folder
from ragistry.library.service import DocumentService
from ragistry.readers import formats
from ragistry.readers.formats import SUPPORTED_FORMATS, UNREAD_FORMATS
from tests.conftest import Corpus
from tests.library.conftest import deny, stored
from tests.messages import check_message, refused

pytestmark = pytest.mark.usefixtures("embedder")


@pytest.fixture
def folder(corpus: Corpus) -> Path:
    """A folder with two files, beside another folder with a file that is to stay private."""
    corpus({"secret.txt": "The password is xyzzy."}, "outside")
    return corpus({"tea.txt": "Tea from the hills.", "sub/milk.txt": "The price of milk."}, "in")


def names(folder: Path, *, follow_links: bool = False) -> list[str]:
    return [file.source_file for file in list_folder(folder, follow_links=follow_links).files]


# Links


def test_files_behind_links_out_of_the_folder_are_left_out_and_named(workspace: Workspace, folder: Path) -> None:
    secret = folder.parent / "outside" / "secret.txt"
    (folder / "note.txt").symlink_to(secret)
    (folder / "sub" / "more").symlink_to(secret.parent)
    (folder / "relative.txt").symlink_to("../outside/secret.txt")
    report = workspace.library.ingest_folder(folder, "notes")
    assert (report.added, report.failed) == (["sub/milk.txt", "tea.txt"], [])
    [warning] = report.warnings
    check_message(warning, f"{str(folder / 'note.txt')!r} to {str(secret)!r}")
    assert "xyzzy" not in "".join(stored(workspace))
    (folder / "fourth.txt").symlink_to(secret)
    [warning] = workspace.library.ingest_folder(folder, "notes").warnings
    check_message(warning)


def test_with_follow_links_they_are_ingested_and_pruned(library: DocumentService, folder: Path) -> None:
    secret = folder.parent / "outside" / "secret.txt"
    (folder / "note.txt").symlink_to(secret)
    (folder / "sub" / "more").symlink_to(secret.parent)
    report = library.ingest_folder(folder, "notes", follow_links=True)
    assert (report.added, report.warnings) == (["note.txt", "sub/milk.txt", "sub/more/secret.txt", "tea.txt"], [])
    assert library.ingest_folder(folder, "notes", prune=True).deleted == [], "the option may have been forgotten"
    secret.unlink()
    (folder / "note.txt").unlink()
    gone = library.ingest_folder(folder, "notes", prune=True, follow_links=True)
    assert gone.deleted == ["sub/more/secret.txt"]


def test_links_that_stay_inside_add_files_but_no_folders(folder: Path) -> None:
    (folder / "again.txt").symlink_to(folder / "tea.txt")
    (folder / "a").symlink_to(folder / "sub")
    expected = ["again.txt", "sub/milk.txt", "tea.txt"]
    assert (names(folder), names(folder, follow_links=True)) == (expected, expected)
    assert list_folder(folder).links == []
    (folder.parent / "door").symlink_to(folder)
    assert names(folder.parent / "door") == expected, "a folder is listed through a link to it"


@pytest.mark.parametrize("follow_links", [False, True])
def test_loops_of_links_end(folder: Path, follow_links: bool) -> None:
    for link, target in {"self.txt": "self.txt", "here": ".", "sub/up": "..", "a": "b", "b": "a"}.items():
        (folder / link).symlink_to(target)
    assert names(folder, follow_links=follow_links) == ["sub/milk.txt", "tea.txt"]
    broken = ["a", "b", "self.txt"]
    assert [link.name for link in list_folder(folder, follow_links=follow_links).links] == broken


def test_a_loop_through_another_folder_ends_and_keeps_the_names(folder: Path) -> None:
    outside = folder.parent / "outside"
    (folder / "above").symlink_to(folder.parent)
    (outside / "back").symlink_to(folder / "sub")
    (outside / "round").symlink_to(outside)
    assert names(folder, follow_links=True) == ["above/outside/secret.txt", "sub/milk.txt", "tea.txt"]


def test_a_folder_of_links_and_special_files_are_reported(library: DocumentService, folder: Path) -> None:
    (links := folder.parent / "links").mkdir()
    (links / "one.txt").symlink_to(folder / "tea.txt")
    report = library.ingest_folder(links, "notes")
    assert (report.added, len(report.warnings)) == ([], 1)
    os.mkfifo(folder / "pipe.txt")
    failed = {Path(one.source).name: type(one.cause) for one in library.ingest_folder(folder, "notes").failed}
    assert failed == {"pipe.txt": SourceError}


@pytest.mark.parametrize(
    "target", ["nothing.txt", "../outside/nothing.txt", "/nothing/at/all", "tea.txt/inside", "g.md"]
)
def test_links_that_lead_nowhere_are_named_in_warnings(library: DocumentService, folder: Path, target: str) -> None:
    broken = [folder / name for name in ("g.bin", "g.doc", "g.md", "g.pdf", "g.zip", "gone", "sub/g.md")]
    for link in broken:
        link.symlink_to(target)
    for follow_links in (False, True, False):
        report = library.ingest_folder(folder, "notes", follow_links=follow_links)
        assert (report.failed, report.unread, report.left_out) == ([], {}, {})
        assert [repr(str(link)) in line for link, line in zip(broken, report.warnings, strict=True)] == [True] * 7
    check_message(report.warnings[0], broken[0])


def test_a_source_behind_a_link_stays_when_the_link_leads_nowhere(library: DocumentService, folder: Path) -> None:
    note = folder.parent / "outside" / "note.txt"
    note.write_text("A note on tea.")
    (folder / "note.txt").symlink_to(note)
    assert library.ingest_folder(folder, "notes", follow_links=True).added == ["note.txt", "sub/milk.txt", "tea.txt"]
    note.unlink()
    report = library.ingest_folder(folder, "notes", follow_links=True, prune=True)
    assert (report.deleted, report.vanished, len(report.warnings)) == ([], [], 1)


def test_name_that_is_not_utf8_is_reported_and_does_not_stop_pruning(library: DocumentService, folder: Path) -> None:
    library.ingest_folder(folder, "notes")
    try:
        latin = Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9"))
        latin.mkdir()
    except OSError:
        pytest.skip("the system takes no such name")
    (latin / "a.txt").write_text("Coffee.", encoding="utf-8")
    (folder / "tea.txt").unlink()
    report = library.ingest_folder(folder, "notes", prune=True)
    [failure] = report.failed
    check_message(failure.error, f"{folder}/caf\\xe9/a.txt", "caf\\xe9")
    assert (report.added, report.deleted) == ([], ["tea.txt"])
    with refused(SourceError, "caf\\xe9"):
        library.ingest_file(latin / "a.txt", "notes")


# Files of Ragistry, and formats that are not read


def test_the_files_of_a_store_in_the_folder_are_left_out(folder: Path) -> None:
    data = folder / "data"
    with open_workspace(folder, data_dir="data") as opened:
        opened.library.create_collection("notes")
        assert opened.library.ingest_folder(folder, "notes").added == ["sub/milk.txt", "tea.txt"]
        opened.library.search("price of milk", technique="bm25")
        assert (data / "words" / "meta.json").exists()
        done = opened.library.ingest_paths([data, folder / "config", folder / "tea.txt"], "notes")
        assert (done.skipped, done.failed) == (["tea.txt"], []), "as a shell names them for *"
        (data / "own.txt").write_text("The owner may keep documents beside it.", encoding="utf-8")
        assert opened.library.ingest_folder(folder, "notes").added == ["data/own.txt"]
        assert opened.library.ingest_paths([data], "notes").added == ["own.txt"]
        (data / "own.txt").unlink()
        done = opened.library.ingest_paths([data, folder / "tea.txt"], "notes")
        assert (done.skipped, done.failed) == (["tea.txt"], [])


def test_a_file_with_the_name_of_our_database_hides_nothing(corpus: Corpus) -> None:
    folder = corpus({"a.txt": "Tea", "evaluation/report.txt": "Rain", "store.db": "of another program"})
    assert names(folder) == ["a.txt", "evaluation/report.txt", "store.db"]


def test_files_of_unread_formats_are_counted_in_one_warning(
    library: DocumentService, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "libreoffice", lambda: "")  # LibreOffice is not installed
    folder = corpus(dict.fromkeys(("tea.md", "a.ppt", "sub/b.PPT", "a.doc", "sub/b.doc", "c/c.doc", "s.pps"), "Tea"))
    report = library.ingest_folder(folder, "notes")
    assert (report.added, report.failed, report.unread) == (["tea.md"], [], {".doc": 3, ".ppt": 2, ".pps": 1})
    [warning] = report.warnings
    check_message(warning, folder, "3 .doc, 2 .ppt, 1 .pps")
    [warning] = library.ingest_paths([corpus({"a.pages": "Tea", "rain.md": "Rain"}, "one")], "notes").warnings
    check_message(warning, "1 .pages")
    with refused(SourceError):
        library.ingest_folder(corpus({"a.doc": "Tea"}, "none"), "notes")
    assert UNREAD_FORMATS.isdisjoint(SUPPORTED_FORMATS)


def test_hidden_files_and_a_store_cause_no_warning(library: DocumentService, corpus: Corpus) -> None:
    quiet = (".hidden.docx", ".netrc", ".drafts/a.docx", "~$tea.docx", "~$tea.doc")
    kept = ("store.db", "lock", "repositories/page.html")
    report = library.ingest_folder(corpus(dict.fromkeys(("tea.md", *quiet, *kept), "Tea")), "notes")
    assert (report.added, report.warnings, report.left_out) == (["tea.md"], [], {})


# Which sources vanished with their files


@pytest.fixture
def above(library: DocumentService, corpus: Corpus) -> Path:
    """A folder with a file, and one below it with another; the latter was ingested by itself, as ``rain.txt``."""
    folder = corpus({"tea.txt": "Tea", "sub/rain.txt": "Rain"}, "in")
    library.ingest_folder(folder / "sub", "notes")
    return folder


def test_what_was_ingested_with_a_folder_below_vanishes_with_it(library: DocumentService, above: Path) -> None:
    shutil.rmtree(above / "sub")
    report = library.ingest_folder(above, "notes")
    assert (report.added, report.vanished, report.deleted) == (["tea.txt"], ["rain.txt"], [])
    assert library.ingest_folder(above, "notes", prune=True).deleted == ["rain.txt"]
    assert library.list_sources("notes") == ["tea.txt"]


def test_existing_file_outside_the_listing_does_not_vanish(
    library: DocumentService, above: Path, corpus: Corpus
) -> None:
    corpus({".drafts/hidden.txt": "Draft", "config/notes.yaml": "{}"}, "in")
    library.ingest_paths([above / ".drafts" / "hidden.txt", above / "config" / "notes.yaml"], "notes")
    (above / "config").rename(above.parent / "config-before")
    (above / "config").symlink_to(above.parent / "config-before")  # now it leads out
    report = library.ingest_folder(above, "notes", prune=True)
    assert (report.vanished, report.deleted) == ([], ["rain.txt"]), "that one has a longer name now"
    assert library.list_sources("notes") == ["hidden.txt", "notes.yaml", "sub/rain.txt", "tea.txt"]


@pytest.mark.parametrize("door", ["folder above", "new folder"])
def test_a_file_that_a_folder_of_its_name_replaced_vanishes(library: DocumentService, above: Path, door: str) -> None:
    library.ingest_folder(above, "notes")
    (above / "tea.txt").unlink()
    (above / "tea.txt").mkdir()
    (above / "tea.txt" / "green.txt").write_text("Green tea")
    path = above if door == "folder above" else above / "tea.txt"
    added = "tea.txt/green.txt" if door == "folder above" else "green.txt"
    report = library.ingest_folder(path, "notes")
    assert (report.added, report.vanished, report.failed) == ([added], ["tea.txt"], [])
    assert library.ingest_folder(path, "notes", prune=True).deleted == ["tea.txt"]
    assert library.list_sources("notes") == sorted([added, "sub/rain.txt"])


def test_a_link_to_a_file_vanishes_with_both(library: DocumentService, above: Path) -> None:
    (above / "also.txt").symlink_to(above / "tea.txt")
    library.ingest_folder(above, "notes")
    (above / "also.txt").unlink()
    assert library.ingest_folder(above, "notes", prune=True).vanished == [], "what it led to is there"
    (above / "tea.txt").unlink()
    assert library.ingest_folder(above, "notes", prune=True).deleted == ["also.txt", "tea.txt"]


def test_a_file_that_cannot_be_looked_at_has_not_vanished(
    library: DocumentService, above: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus({"drafts/hidden.txt": "Hidden", "drafts/other.txt": "Other"}, "in")
    hidden = above / "drafts" / "hidden.txt"
    library.ingest_file(hidden, "notes")
    hidden.unlink()
    with monkeypatch.context() as patch:
        deny(patch, "lstat", hidden)
        assert library.ingest_folder(above, "notes", prune=True).vanished == []
    assert library.ingest_folder(above, "notes", prune=True).vanished == ["hidden.txt"]


def test_a_name_that_another_file_has_now_does_not_vanish(library: DocumentService, above: Path) -> None:
    shutil.move(above / "sub" / "rain.txt", above / "rain.txt")
    (above / "rain.txt").write_text("Another text.", encoding="utf-8")
    report = library.ingest_folder(above, "notes", prune=True)
    assert ([failure.source for failure in report.failed], report.vanished) == ([str(above / "rain.txt")], [])
    assert "rain.txt" in library.list_sources("notes")


def test_other_folders_lose_nothing(library: DocumentService, above: Path, corpus: Corpus) -> None:
    between = corpus({"snow.txt": "Snow", "hail.txt": "Hail"}, "in-between")  # its name begins like that of the folder
    library.ingest_folder(between, "notes")
    (between / "snow.txt").unlink()
    kept = corpus({"paper.txt": "Paper"}, "in/.kept/one")
    library.ingest_file(kept / "paper.txt", "notes")
    shutil.rmtree(kept)  # a hidden folder is not listed
    (above / "sub" / "rain.txt").unlink()  # an empty folder may be a disk that is not mounted
    report = library.ingest_folder(above, "notes", prune=True)
    assert (report.vanished, report.deleted) == ([], [])
    assert library.list_sources("notes") == ["hail.txt", "paper.txt", "rain.txt", "snow.txt", "tea.txt"]


def test_vanished_file_of_two_folders_is_reported_once(library: DocumentService, above: Path, corpus: Corpus) -> None:
    drafts = corpus({"one.txt": "One", "two.txt": "Two"}, "in/.drafts")
    library.ingest_folder(drafts, "notes")
    (drafts / "one.txt").unlink()
    assert library.ingest_paths([above, drafts], "notes").vanished == ["one.txt"]
