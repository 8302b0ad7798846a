"""Which files of a folder are ingested, which are left out and named, and which sources vanished with their files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragistry import open_workspace
from ragistry.errors import SourceError
from ragistry.library.ingest.folder import list_folder
from ragistry.readers import formats
from ragistry.readers.formats import SUPPORTED_FORMATS, UNREAD_FORMATS
from tests.conftest import Corpus
from tests.library.conftest import stored
from tests.library.shelf import PIPE, Content, Shelf, Step, step

pytestmark = pytest.mark.usefixtures("embedder")

FOLDER: dict[str, Content] = {"in/tea.txt": "Tea", "in/sub/milk.txt": "Milk", "outside/secret.txt": "xyzzy"}
OUT: dict[str, Content] = {"in/note.txt": Path("../outside/secret.txt"), "in/sub/more": Path("../../outside")}
ABOVE: dict[str, Content] = {"in/tea.txt": "Tea", "in/sub/rain.txt": "Rain"}
"""The folder below is ingested by itself, so its file is first known as ``rain.txt``."""
CASES: dict[str, tuple[Step, ...]] = {
    "links out of the folder are left out and named": (
        step(FOLDER | OUT, "in", added="sub/milk.txt tea.txt", warnings=1),
        step({"in/c.txt": Path("../outside/secret.txt")}, "in", skipped="sub/milk.txt tea.txt", warnings=1),
        step({"in/d.txt": Path("../outside/secret.txt")}, "in", skipped="sub/milk.txt tea.txt", warnings=1),
        step({"links/one.txt": Path("../in/tea.txt")}, "links", warnings=1),
    ),
    "links out of the folder can be followed": (
        step(FOLDER | OUT, "in", follow_links=True, added="note.txt sub/milk.txt sub/more/secret.txt tea.txt"),
        step({}, "in", prune=True, skipped="sub/milk.txt tea.txt", warnings=1),
        step(
            dict.fromkeys(("outside/secret.txt", "in/note.txt")), "in", follow_links=True, prune=True,
            skipped="sub/milk.txt tea.txt", deleted="sub/more/secret.txt",
        ),
    ),
    "a source behind a link stays when the link leads nowhere": (
        step(FOLDER | {"in/note.txt": OUT["in/note.txt"]}, "in/note.txt", added="note.txt"),
        step({"outside/secret.txt": None}, "in", follow_links=True, added="sub/milk.txt tea.txt", warnings=1),
        step({}, "in", follow_links=True, prune=True, skipped="sub/milk.txt tea.txt", warnings=1),
    ),
    "pipes are never opened": (
        step({"tea.txt": "Tea", "a.zip": PIPE, "b.pdf": PIPE, "c.md": PIPE, "d.docx": PIPE, "e.txt": PIPE},
             added="tea.txt", failed="a.zip b.pdf c.md d.docx e.txt"),
    ),
    "hidden files and a store cause no warning": (
        step(dict.fromkeys((".a.docx", ".netrc", ".d/a.docx", "~$a.docx", "~$a.doc", "a.md"), "Tea"), added="a.md"),
        step(dict.fromkeys(("store.db", "lock", "repositories/page.html"), "Tea"), skipped="a.md"),
    ),
    "a folder below vanishes": (
        step(ABOVE, "in/sub", added="rain.txt"),
        step({"in/sub": None}, "in", added="tea.txt", vanished="rain.txt"),
        step({}, "in", prune=True, skipped="tea.txt", deleted="rain.txt"),
    ),
    "a file outside the listing does not vanish": (
        step({".d/a.txt": "A", "link/b.yaml": "b: 1"}, ".d/a.txt", "link/b.yaml", added="a.txt b.yaml"),
        step({"c.txt": "C", "link": None}, added="c.txt", vanished="b.yaml"),
        step({"../out/b.yaml": "b: 1", "../files/link": Path("../out")}, prune=True, skipped="c.txt", warnings=1),
    ),
    "a file that a folder of its name replaced vanishes": (
        step({"tea.txt": "Tea", "a.txt": "A"}, added="a.txt tea.txt"),
        step({"tea.txt": None, "tea.txt/b.txt": "B"}, added="tea.txt/b.txt", skipped="a.txt", vanished="tea.txt"),
        step({}, "tea.txt", prune=True, added="b.txt", deleted="tea.txt tea.txt/b.txt", vanished="tea.txt", warnings=1),
    ),
    "a link to a file vanishes with both": (
        step({"tea.txt": "Tea", "also.txt": Path("tea.txt"), "a.txt": "A"}, added="a.txt also.txt tea.txt"),
        step({"also.txt": None}, prune=True, skipped="a.txt tea.txt"),
        step({"tea.txt": None}, prune=True, skipped="a.txt", deleted="also.txt tea.txt"),
    ),
    "a file that cannot be looked at has not vanished": (
        step({"d/a.txt": "A", "d/b.txt": "B"}, "d/a.txt", added="a.txt"),
        step({"d/a.txt": None}, denied={"lstat": "d/a.txt"}, prune=True, added="d/b.txt"),
        step(prune=True, skipped="d/b.txt", deleted="a.txt"),
    ),
    "a name that another file has now does not vanish": (
        step(ABOVE, "in/sub", added="rain.txt"),
        step({"in/sub": None, "in/rain.txt": "Other"}, "in", prune=True, added="tea.txt", failed="in/rain.txt"),
    ),
    "other folders, hidden ones and empty ones lose nothing": (
        step({"in-2/snow.txt": "A", "in-2/hail.txt": "B"}, "in-2", added="hail.txt snow.txt"),
        step({"in/.kept/one/paper.txt": "C"}, "in/.kept/one/paper.txt", added="paper.txt"),
        step(ABOVE, "in/sub", added="rain.txt"),
        step(dict.fromkeys(("in-2/snow.txt", "in/.kept/one", "in/sub/rain.txt")), "in", prune=True, added="tea.txt"),
    ),
    "a vanished file of two folders is reported once": (
        step({"in/.d/one.txt": "A", "in/.d/two.txt": "B", "in/tea.txt": "Tea"}, "in/.d", added="one.txt two.txt"),
        step({"in/.d/one.txt": None}, "in", "in/.d", added="tea.txt", skipped="two.txt", vanished="one.txt"),
    ),
}  # fmt: skip
for _target in ("nothing.txt", "../outside/nothing.txt", "/nothing/at/all", "tea.txt/inside", "g.md"):
    _broken = dict.fromkeys(("in/g.bin", "in/g.doc", "in/g.md", "in/g.zip", "in/gone", "in/sub/g.md"), Path(_target))
    CASES[f"links to {_target} are named in warnings"] = (
        step(FOLDER | _broken, "in", added="sub/milk.txt tea.txt", warnings=6),
        step({}, "in", follow_links=True, skipped="sub/milk.txt tea.txt", warnings=6),
    )


@pytest.mark.parametrize("case", CASES)
def test_a_folder_is_listed_and_its_vanished_files_are_found(shelf: Shelf, case: str) -> None:
    shelf.play(*CASES[case])
    assert "xyzzy" not in "".join(stored(shelf.workspace)) or "followed" in case or "behind" in case


LINKS = {
    "links that stay inside": ({"again.txt": "tea.txt", "a": "sub"}, ["again.txt"], ["again.txt"], []),
    "loops": (
        {"self.txt": "self.txt", "here": ".", "sub/up": "..", "a": "b", "b": "a"},
        [],
        [],
        ["a", "b", "self.txt"],
    ),
    "a loop outside": ({"up": "..", "../out/a": "../in/sub", "../out/b": "."}, [], ["up/out/secret.txt"], ["up"]),
}


@pytest.mark.parametrize("root", ["in", "door"])
@pytest.mark.parametrize("case", LINKS)
def test_links_are_followed_once(shelf: Shelf, case: str, root: str) -> None:
    links, inside, followed, left_out = LINKS[case]
    shelf.write({"in/tea.txt": "Tea", "in/sub/milk.txt": "Milk", "out/secret.txt": "xyzzy", "door": Path("in")})
    shelf.write({f"in/{name}": Path(target) for name, target in links.items()})
    for follow_links, names in ((False, inside), (True, followed)):
        listing = list_folder(shelf.root / root, follow_links=follow_links)
        assert [file.source_file for file in listing.files] == sorted(["sub/milk.txt", "tea.txt", *names])
        assert [link.name for link in listing.links] == [name for name in left_out if name != "up" or not follow_links]


def test_name_that_is_not_utf8_is_reported_and_does_not_stop_pruning(shelf: Shelf) -> None:
    shelf.play(step({"tea.txt": "Tea", "milk.txt": "Milk"}, added="milk.txt tea.txt"))
    try:
        latin = Path(os.fsdecode(os.fsencode(shelf.root) + b"/caf\xe9"))
        latin.mkdir()
    except OSError:
        pytest.skip("the system takes no such name")
    (latin / "a.txt").write_text("Coffee.", encoding="utf-8")
    shelf.play(
        step(
            {"tea.txt": None}, prune=True, skipped="milk.txt", deleted="tea.txt", failed=[os.fsdecode(b"caf\xe9/a.txt")]
        ),
        step({}, str(latin / "a.txt"), failed=[os.fsdecode(b"caf\xe9/a.txt")]),
    )


def test_the_files_of_a_store_in_the_folder_are_left_out(corpus: Corpus) -> None:
    folder = corpus({"tea.txt": "Tea from the hills.", "sub/milk.txt": "The price of milk."}, "in")
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


def test_a_file_with_the_name_of_our_database_hides_nothing(corpus: Corpus) -> None:
    folder = corpus({"a.txt": "Tea", "evaluation/report.txt": "Rain", "store.db": "of another program"})
    files = [file.source_file for file in list_folder(folder).files]
    assert files == ["a.txt", "evaluation/report.txt", "store.db"]


def test_files_of_unread_formats_are_counted_in_one_warning(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "libreoffice", lambda: "")  # LibreOffice is not installed
    files = ("tea.md", "a.ppt", "sub/b.PPT", "a.doc", "sub/b.doc", "c/c.doc", "s.pps")
    shelf.play(
        step(dict.fromkeys(files, "Tea"), added="tea.md", unread={".doc": 3, ".ppt": 2, ".pps": 1}, warnings=1),
        step({"none/a.doc": "Tea"}, "none", refused=SourceError),
    )
    assert UNREAD_FORMATS.isdisjoint(SUPPORTED_FORMATS)
