"""Every file of a folder that is not searchable is known with its reason, until it is read or gone."""

from __future__ import annotations

import json
import random
import re
import time
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from zipfile import ZipFile

import pytest

from ragistry import RemoteWorkspace, Workspace, connect, open_workspace
from ragistry.errors import CollectionNotFoundError, SourceError, SourceNotFoundError, UnsupportedError
from ragistry.library.copying import copy_library
from ragistry.library.ingest.methods import IngestObserver
from ragistry.library.unsearchable import unsearchable_line
from ragistry.stores.local import LocalStore
from ragistry.tools.reach import Reach
from ragistry.tools.sources import SOURCES, SourcesRequest
from ragistry.types import Unsearchable
from ragistry.web.app_state import load_collections
from tests.cli.conftest import Run, ragistry  # noqa: F401, the fixture
from tests.conftest import Corpus, full_run, write_config
from tests.messages import check_message, refused
from tests.page_server import site
from tests.serving import served
from tests.stores.scripts import started

CONTENT = {"good": "The pump %d leaks.", "broken": "\0", "empty": ""}


class Ended(BaseException):
    """Ends an ingest as a killed process does."""


class Ending(IngestObserver):
    """Ends an ingest before a source."""

    def __init__(self, source: int) -> None:
        self.source = source

    def progress(self, source_file: str, done: int, total: int) -> None:
        if done >= self.source:
            raise Ended


class Folder:
    """A folder that changes at random."""

    NAMES = (*"abcdef", "sub/g", "sub/h", "x\ny", "\U0001f600" * 60, "u\u0308", "n" * 252)

    def __init__(self, root: Path, seed: int) -> None:
        self.random, self.root, self.pictures = random.Random(seed), root / "docs 0", 0
        (self.root / "sub").mkdir(parents=True, exist_ok=True)

    def change(self, *, renames: bool = True) -> None:
        """Write, break, empty or remove a file, add a picture, or rename the folder."""
        number, what = self.random.randrange(10**9), self.random.choice(["good", "broken", "empty", "gone", "other"])
        path = self.root / f"{self.random.choice(self.NAMES)}.md"
        if what == "gone":
            path.unlink(missing_ok=True)
        elif what == "other" and renames and self.random.random() < 0.5:
            self.root = self.root.rename(self.root.with_name(f"docs {number}"))
        elif what == "other":
            self.pictures += 1
            (self.root / f"{number}.png").write_bytes(b"x")
        else:
            path.write_text(CONTENT[what].replace("%d", str(number)))

    def files(self) -> dict[str, str]:
        """The texts of the files, by name."""
        return {str(path.relative_to(self.root)): path.read_text() for path in sorted(self.root.rglob("*.md"))}


def is_good(text: str) -> bool:
    return text not in (CONTENT["broken"], CONTENT["empty"])


def check(workspace: Workspace, folder: Folder) -> None:
    """After an ingest, each file is searchable with its text or has an entry, and what is left out is counted."""
    library, texts = workspace.library, folder.files()
    stored = {info.source_file: info.source_path for info in library.sources("notes")}
    found = {one.metadata["source_file"]: one.content for one in workspace.store.scan()}
    missing = list(library.unsearchable("notes"))
    places = {name: str(folder.root / name) for name, text in texts.items() if not is_good(text)}
    assert {one.source_file: one.source_path for one in missing} == places
    assert {name: found.get(name) for name, text in texts.items() if is_good(text)} == {
        name: text for name, text in texts.items() if is_good(text)
    }
    for one in missing:
        assert (one.kind == "outdated") is (stored.get(one.source_file) == one.source_path), one
    pictures = {".png": folder.pictures} if folder.pictures else {}
    assert [dict(one.counts) for one in library.ingested_folders() if one.counts] == [pictures] * bool(pictures)


@pytest.mark.usefixtures("embedder")
@pytest.mark.parametrize("seed", range(100 if full_run() else 6))
@pytest.mark.parametrize("workspace", ["local", "postgres"], indirect=True)
def test_each_file_is_searchable_or_known_or_counted(workspace: Workspace, tmp_path: Path, seed: int) -> None:
    library, folder = workspace.library, Folder(tmp_path, seed)
    choose = folder.random
    for _ in range(8):
        for _ in range(choose.randrange(1, 8)):
            folder.change()
        if (sources := library.list_sources("notes")) and choose.random() < 0.2:
            library.delete_source(choose.choice(sources), "notes")
        if not (texts := folder.files()):
            continue
        if choose.random() < 0.3:
            with suppress(Ended):
                library.ingest_folder(folder.root, "notes", replace=True, observer=Ending(choose.randrange(4)))
        if choose.random() < 0.2:
            library.ingest_paths([folder.root / choose.choice([*texts])], "notes", replace=True)
        library.ingest_folder(folder.root, "notes", prune=True, replace=True)
        check(workspace, folder)


KILLED = """
import json, sys
from pathlib import Path
from ragistry import open_workspace
from tests.library.test_unsearchable import Folder

folder = Folder(Path(sys.argv[1]), int(sys.argv[2]))
with open_workspace(sys.argv[1]) as workspace:
    print("ready", flush=True)
    while True:
        for _ in range(6):
            folder.change(renames=False)
        workspace.library.ingest_folder(folder.root, "notes", prune=True, replace=True)
        print(json.dumps(folder.files()), flush=True)
"""


@pytest.mark.timeout(900)
def test_killed_ingests_lose_no_file_and_leave_no_wrong_entry(tmp_path: Path) -> None:
    write_config(tmp_path, documents="embed_model: ragistry.testing.hashed:HashingEmbedder\n")
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes")
    choose = random.Random(7)
    for seed in range(200 if full_run() else 3):
        with started(KILLED, tmp_path, seed) as process:
            time.sleep(choose.uniform(0.02, 0.5))
            process.kill()
            assert process.stdout is not None
            done = [json.loads(line) for line in process.stdout if line.endswith("}\n")]
        folder = Folder(tmp_path, 0)
        texts, folder.pictures = folder.files(), len(list(folder.root.glob("*.png")))
        with open_workspace(tmp_path) as workspace:
            known = {one.source_file for one in workspace.library.unsearchable()}
            found = {one.metadata["source_file"]: one.content for one in workspace.store.scan()}
            assert not [name for name in known & found.keys() if found[name] == texts.get(name)], seed
            for name, text in done[-1].items() if done else ():
                if texts.get(name) == text:
                    assert found.get(name) == text if is_good(text) else name in known, (seed, name)
            workspace.library.ingest_folder(folder.root, "notes", prune=True, replace=True)
            check(workspace, folder)


REFUSING = """
from dataclasses import replace
from ragistry.errors import EmbeddingGenerationError
from ragistry.testing.hashed import HashingEmbedder

class Refusing(HashingEmbedder):
    def __init__(self):
        super().__init__()
        self.fingerprint = replace(self.fingerprint, max_tokens=300)

    def embed(self, texts, *, role="document"):
        if any("mercury" in text for text in texts):
            raise EmbeddingGenerationError("mercury is refused")
        return super().embed(texts, role=role)
"""
KINDS = {
    "contract.pdf": "failed",
    "empty.md": "no text",
    "lease.md": "outdated",
    "safety.md": "waiting",
    "long.md": "cut",
}


@pytest.fixture
def five(tmp_path: Path, corpus: Corpus) -> Path:
    """A workspace with a file that is not searchable for each reason."""
    write_config(tmp_path, documents="embed_model: refusing:Refusing\nchunk_size: 6000\n")
    (tmp_path / "refusing.py").write_text(REFUSING)
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes", "Notes")
        workspace.library.ingest_folder(corpus({"lease.md": "The lease runs for two years."}), "notes")
        long = "The boiler was descaled and its valves were changed. " * 60
        broken: dict[str, str | bytes] = {"contract.pdf": b"%PDF-1.4 nothing", "lease.md": "\0", "photo.png": b"x"}
        folder = corpus({**broken, "empty.md": "", "safety.md": "Handle mercury with care.", "long.md": long})
        workspace.library.ingest_folder(folder, "notes")
    return tmp_path


def test_every_door_names_what_is_not_searchable(five: Path, ragistry: Run) -> None:  # noqa: F811
    rows = ragistry("-w", five, "sources", "list", "--unsearchable", "--json").json
    assert {one["source_file"]: one["kind"] for one in rows["unsearchable"]} == KINDS
    assert [one["counts"] for one in rows["folders"]] == [{".png": 1}]
    assert ragistry("-w", five, "sources", "list", "--json").json["unsearchable"] == rows["unsearchable"]
    shown = ragistry("-w", five, "sources", "list", "--unsearchable").out
    assert all(name in shown for name in KINDS)
    assert max(map(len, shown.partition("left out of")[0].splitlines())) <= 80
    for command in ("sources list", "collections list", "verify", "ingest documents -c notes"):
        done = ragistry("-w", five, *command.replace("documents", str(five / "documents")).split())
        line = next(line for line in done.err.splitlines() if line.startswith("note: 5"))
        check_message(line, "contract.pdf")
    assert ragistry("-w", five, "verify", "--json").json["unsearchable"] == 5
    [row] = ragistry("-w", five, "collections", "list", "--json").json["collections"]
    assert row["unsearchable_count"] == 5
    assert "contract.pdf" in ragistry("-w", five, "doctor").out
    assert "is damaged" in ragistry("-w", five, "why", "lease", "--expect", "contract.pdf").out
    with open_workspace(five) as workspace:
        answer = SOURCES.run(Reach(workspace.library), SourcesRequest())
        assert {one.source: one.unsearchable.partition(":")[0] for one in answer.sources} == KINDS
        assert (answer.total, answer.unsearchable) == (3, 5)
        limited = SOURCES.call(Reach(workspace.library, ["notes"]), {}).text
        assert "contract.pdf [notes] (not searchable: failed)" in limited
        assert answer.left_out == [f"left out of {five / 'documents'}: 1 .png"]
        assert limited.endswith("\n  left out of a folder: 1 .png")
        assert str(five) not in limited
        [state] = load_collections(workspace.library)
        assert list(state.left_out) == answer.left_out == shown.splitlines()[-1:]
        workspace.library.create_collection("other")
        for request in (SourcesRequest("lease.md"), SourcesRequest(where={"year": 1}), SourcesRequest(max_tokens=100)):
            assert bool(SOURCES.run(Reach(workspace.library), request).left_out) is (request.max_tokens == 100)
        assert SOURCES.run(Reach(workspace.library, ["other"]), SourcesRequest()).left_out == []


def test_a_list_of_nothing_says_that_every_file_is_searchable(tmp_path: Path, ragistry: Run) -> None:  # noqa: F811
    write_config(tmp_path, documents="embed_model: ragistry.testing.hashed:HashingEmbedder\n")
    listing = ("-w", tmp_path, "sources", "list", "--unsearchable")
    assert ragistry(*listing).out == "every ingested file is searchable\n"
    assert ragistry(*listing, "--json").json["unsearchable"] == []


def test_entries_go_with_their_source_and_collection(five: Path) -> None:
    def is_written(name: str) -> bool:
        return any(name.encode() in path.read_bytes() for path in (five / ".ragistry").glob("store.db*"))

    with open_workspace(five) as workspace:
        library = workspace.library
        library.create_collection("other")
        library.ingest_text("Another lease.", "lease.md", "other")
        library.move_source("lease.md", "notes", "other", overwrite=True)
        assert [one.kind for one in library.unsearchable("other")] == ["outdated"]
        assert library.delete_source("contract.pdf", "notes") == 0
        with refused(SourceNotFoundError, "contract.pdf"):
            library.delete_source("contract.pdf", "notes")
        library.rename_collection("notes", "papers")
        assert {one.source_file for one in library.unsearchable("papers")} == {"empty.md", "safety.md", "long.md"}
        with refused(CollectionNotFoundError, "notes"):
            library.unsearchable("notes")
        with closing(LocalStore(five / "copy")) as copy:
            assert copy_library(workspace.store, copy).differences == []
            assert copy.folders() == workspace.store.folders()
            assert [one for _, one in copy.unsearchable()] == [one for _, one in workspace.store.unsearchable()]
        assert is_written("empty.md")
        library.delete_collection("papers")
        assert not is_written("empty.md")
        assert [one.source_file for one in library.unsearchable()] == ["lease.md"]


@pytest.mark.usefixtures("embedder")
def test_what_cannot_be_listed_is_known_until_it_can(workspace: Workspace, corpus: Corpus) -> None:
    library, folder = workspace.library, corpus({"a.md": "A pump.", "n.zip": "nothing"})

    def names() -> list[tuple[str, str]]:
        return [(one.kind, one.source_file) for one in library.unsearchable()]

    library.ingest_paths([folder, "http://127.0.0.1:1/page"], "notes")
    assert names() == [("failed", "n.zip"), ("failed", "http://127.0.0.1:1/page")]
    with ZipFile(folder / "n.zip", "w") as packed:
        packed.writestr("b.md", "A valve.")
        packed.writestr("c.pdf", "nothing")
    library.ingest_folder(folder, "notes")
    assert names() == [("failed", "http://127.0.0.1:1/page"), ("failed", "n.zip/c.pdf")]
    library.delete_source("http://127.0.0.1:1/page", "notes")
    (folder / "n.zip").unlink()
    (folder / "a.md").unlink()
    (folder / "d.pdf").write_text("nothing")
    library.ingest_folder(folder, "notes", prune=True)
    assert names() == [("failed", "d.pdf")]
    (folder / "d.pdf").unlink()
    with pytest.raises(SourceError):
        library.ingest_folder(folder, "notes")
    assert names() == []


def test_every_reason_is_listed_and_no_name_of_a_key(five: Path, ragistry: Run) -> None:  # noqa: F811
    kinds = [f".kind{number}" for number in range(20)]
    for name in (*(f"a{kind}" for kind in kinds), "id_rsa", "server.key", "prod.env", "backup.txt"):
        key = "-----BEGIN PRIVATE KEY-----" if name == "backup.txt" else "" if "kind" in name else "word"
        (five / "documents" / name).write_text(key)
    assert "4 credentials" in (said := ragistry("-w", five, "ingest", five / "documents", "-c", "notes").err)
    assert " others" in said
    shown = " ".join(ragistry("-w", five, "sources", "list", "--unsearchable").out.split())
    assert all(f"1 {kind}" in shown for kind in (*kinds, ".png"))
    assert "4 credentials" in shown
    assert "others" not in shown
    assert not any(name in shown for name in ("id_rsa", "server", "prod", "backup"))


@pytest.mark.usefixtures("embedder")
def test_files_with_patterns_are_known_until_they_can_be_read(workspace: Workspace, corpus: Corpus) -> None:
    names = (".git/info/exclude", ".gitignore", "docs/.ignore", "docs/sub/.gitignore")
    folder = corpus(dict.fromkeys(names, "x*y\n" * 400_000) | {"docs/sub/tea.md": "Tea"}) / "docs"

    def ingested(path: Path) -> set[str]:
        workspace.library.ingest_paths([path], "notes")
        return {one.source_path.removeprefix(f"{folder.parent}/") for one in workspace.library.unsearchable()}

    assert ingested(folder) == {*names}
    (folder.parent / names[0]).write_text("")
    (folder / ".ignore").write_text("*.log")
    assert ingested(folder / "sub") == {".gitignore", "docs/sub/.gitignore"}
    (folder / "sub" / ".gitignore").write_text("*.log")
    assert ingested(folder / "sub" / "tea.md") == {".gitignore", "docs/sub/.gitignore"}
    (folder.parent / ".gitignore").write_text("*.log")
    assert ingested(folder) == set()


@pytest.mark.usefixtures("embedder")
@pytest.mark.parametrize("workspace", ["local", "postgres", "client"], indirect=True)
def test_stored_members_of_a_zip_file_that_fails_are_old_text(workspace: Workspace, corpus: Corpus) -> None:
    library, folder = workspace.library, corpus({"p.zip-old.md": "A valve.", 'q"%.zip': "nothing"})
    with ZipFile(folder / "p.zip", "w") as packed:
        packed.writestr("sub/good.md", "A pump.")
    library.ingest_folder(folder, "notes")
    data = (folder / "p.zip").read_bytes()
    (folder / "p.zip").write_bytes(data[:-9])
    library.ingest_folder(folder, "notes")
    reasons = {one.source_file: (one.kind, one.reason) for one in library.unsearchable()}
    assert {name: kind for name, (kind, _) in reasons.items()} == {"p.zip": "outdated", 'q"%.zip': "failed"}
    assert re.fullmatch("'p.zip' .*; its old text is searched", reasons["p.zip"][1])
    library.delete_source("p.zip/sub/good.md", "notes")
    assert {one.kind for one in library.unsearchable()} == {"failed"}


@pytest.mark.usefixtures("embedder")
def test_an_entry_is_outdated_only_by_what_is_stored_from_its_own_path(workspace: Workspace, tmp_path: Path) -> None:
    for root in ("a", "b"):
        (tmp_path / root).mkdir()
        with ZipFile(tmp_path / root / "p.zip", "w") as packed:
            packed.writestr(f"{root}.md", f"The pump {root}.")
    library = workspace.library
    library.ingest_folder(tmp_path / "b", "notes")
    (tmp_path / "a" / "p.zip").write_text("nothing")
    library.ingest_paths([tmp_path / "a", tmp_path / "b"], "notes")
    assert [(one.kind, one.source_path) for one in library.unsearchable()] == [("failed", str(tmp_path / "a/p.zip"))]
    (tmp_path / "b" / "p.zip").write_text("nothing")
    library.ingest_paths([tmp_path / "a", tmp_path / "b"], "notes")
    assert [one.kind for one in library.unsearchable()] == ["failed", "outdated"]


@pytest.mark.usefixtures("embedder")
def test_a_stored_page_that_cannot_be_fetched_is_old_text(workspace: Workspace) -> None:
    library = workspace.library
    with site() as pages:
        url, other = pages.put("/guide", "<h1>Pumps</h1><p>The pump leaks.</p>"), f"{pages.url}/other"
        library.ingest_paths([url], "notes", allow_private=True)
        pages.put("/guide", "", status=404)
        library.ingest_paths([url, other], "notes", allow_private=True)
    [name] = library.list_sources("notes")
    assert {(one.kind, one.source_file) for one in library.unsearchable()} == {("outdated", name), ("failed", other)}
    library.delete_source(name, "notes")
    assert [one.kind for one in library.unsearchable()] == ["failed"]


@pytest.mark.usefixtures("embedder")
def test_a_file_is_listed_by_its_own_name_and_not_by_that_of_a_link(workspace: Workspace, corpus: Corpus) -> None:
    folder = corpus({"b.pdf": "nothing", "bb.pdf": "nothing", "sub/d.md": ""})
    for link, target in {"a.pdf": "b.pdf", "c.pdf": "b.pdf", "pdf": "bb.pdf", "e.md": "sub/d.md"}.items():
        (folder / link).symlink_to(target)
    for _ in range(2):
        workspace.library.ingest_folder(folder, "notes")
        assert {one.source_file for one in workspace.library.unsearchable()} == {"b.pdf", "bb.pdf", "sub/d.md"}


@pytest.mark.parametrize("workspace", ["client"], indirect=True)
@pytest.mark.usefixtures("embedder")
def test_files_of_a_client_are_known_until_they_are_read_or_gone(workspace: RemoteWorkspace, corpus: Corpus) -> None:
    library, folder = workspace.library, corpus({"a.pdf": "nothing", "b.md": "", "c.md": "A pump.", "x.png": "x"})
    (folder / "n.zip").write_text("nothing")
    for _ in range(2):
        library.ingest_folder(folder, "notes")
        missing = {one.source_file: one.kind for one in library.unsearchable("notes")}
        assert missing == {"a.pdf": "failed", "b.md": "no text", "n.zip": "failed"}
    [known] = library.ingested_folders("notes")
    assert dict(known.counts) == {".png": 1}
    (folder / "a.pdf").unlink()
    (folder / "b.md").write_text("A valve.")
    (folder / "c.md").write_text("\0")
    (folder / "n.zip").unlink()
    library.ingest_folder(folder, "notes")
    assert [(one.kind, one.source_file) for one in library.unsearchable()] == [("outdated", "c.md")]
    assert str(folder) not in str([*library.unsearchable(), *library.ingested_folders()])


@pytest.mark.parametrize("workspace", ["chroma"], indirect=True)
def test_other_stores_keep_none_and_say_so_if_asked(workspace: Workspace, corpus: Corpus) -> None:
    library = workspace.library
    library.ingest_folder(corpus({"a.pdf": "nothing", "b.md": "A pump."}), "notes")
    assert unsearchable_line(library.scope) == ""
    assert [row["unsearchable_count"] for row in library.list_collections()] == [None]
    with refused(UnsupportedError, "ChromaStore"):
        library.unsearchable()


@pytest.mark.usefixtures("embedder")
def test_many_entries_are_read_in_pages(workspace: Workspace) -> None:
    count = 100_000 if full_run() else 3_000
    names = [f"{number:06d}\n\U0001f600{Folder.NAMES[-1]}.pdf" for number in range(count)]
    made = [Unsearchable("notes", name, f"/f/{name}", "/f", "failed", "damaged", 1.0) for name in names]
    for first in range(0, count, 1_000):
        workspace.store.record_unsearchable(made[first : first + 1_000])  # type: ignore[attr-defined]
    library, reach = workspace.library, Reach(workspace.library)
    assert [one.source_file for one in library.unsearchable()] == names
    assert unsearchable_line(library.scope).startswith(f"{count:,} files are not searchable (000000")
    seen, request = list[str](), SourcesRequest()
    while len(seen) < 300:
        answer = SOURCES.run(reach, request)
        seen += [one.source for one in answer.sources]
        request = SourcesRequest(cursor=answer.cursor)
    assert seen == names[: len(seen)]
    with served(workspace) as url, connect(url) as remote:
        assert [one.source_file for one in islice(remote.library.unsearchable("notes"), 2_500)] == names[:2_500]
