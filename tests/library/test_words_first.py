"""New sources are found by their words before they have vectors."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from threading import Event

import httpx
import pytest

from ragistry import Workspace, connect, open_workspace
from ragistry.errors import EmbeddingGenerationError, ModelConnectionError
from ragistry.library.copying import copy_library
from ragistry.library.embedding import reembed
from ragistry.library.ingest.methods import IngestObserver
from ragistry.library.ingest.run import AT_ONCE
from ragistry.stores.local import LocalStore
from ragistry.stores.records import waiting_line
from ragistry.testing.hashed import HashingEmbedder
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.types import EmbeddedChunk
from tests.cli.conftest import Run, ragistry  # noqa: F401, the fixture
from tests.conftest import Corpus
from tests.messages import check_message, refused
from tests.serving import served
from tests.stores.local_stores import AS_FORMAT_13

pytestmark = pytest.mark.usefixtures("embedder")

FILES = AT_ONCE * 3


def many(count: int = FILES) -> dict[str, str]:
    return {f"{number}.txt": f"pump{number} is the only word of this file that no other has" for number in range(count)}


def after(calls: int, error: BaseException) -> Callable[[Sequence[str]], None]:
    """A check for `HashingEmbedder`: raise the error from the next call but ``calls`` on."""
    left = [calls]

    def check(_: Sequence[str]) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise error

    return check


def poisoned(word: str) -> Callable[[Sequence[str]], None]:
    def check(texts: Sequence[str]) -> None:
        if any(word in text for text in texts):
            raise EmbeddingGenerationError(f"{word} is refused")

    return check


def first(workspace: Workspace, query: str, technique: str) -> tuple[str, Sequence[str]]:
    """The source of the first result, and the degraded lines."""
    result = workspace.search(query, technique=technique, top_k=1)
    return result.documents[0].metadata["source_file"], result.degraded


@pytest.fixture
def interrupted(workspace: Workspace, embedder: HashingEmbedder, corpus: Corpus) -> Path:
    """A folder of which only the words are in the library: Ctrl-C ended its ingest."""
    folder = corpus(many())
    embedder.check = after(1, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        workspace.library.ingest_folder(folder, "notes")
    embedder.check = None
    return folder


def waiting(workspace: Workspace) -> int:
    return sum(info.waiting for info in workspace.library.sources())


def degraded_at(door: str, workspace: Workspace, technique: str, run: Run) -> Sequence[str]:
    """The degraded lines of a search at a door."""
    if door == "CLI":
        lines = run("search", "pump17", "-t", technique, "-w", workspace.root).err.splitlines()
        return [line.removeprefix("degraded: ") for line in lines]
    if door == "MCP":
        found = SearchLibraryTool(workspace.library, technique=technique).answer({"query": "pump17"}).text
        return [line[len("[Note: ") : -1] for line in found.splitlines() if line.startswith("[Note: ")]
    with served(workspace) as url:
        if door == "HTTP":
            asked = {"query": "pump17", "technique": technique}
            trace = httpx.post(f"{url}/v1/search", json=asked).raise_for_status().json()["trace"]
            return [stage["degraded"] for stage in trace if stage["degraded"]]
        with connect(url) as remote:
            return remote.search("pump17", technique).degraded


@pytest.mark.parametrize("door", ["CLI", "HTTP", "client", "MCP"])
def test_every_door_says_once_what_waits(
    workspace: Workspace,
    interrupted: Path,
    door: str,
    ragistry: Run,  # noqa: F811
) -> None:
    workspace.library.create_collection("other", "other texts")
    workspace.store.replace_source("other", "a.txt", [])
    for technique in ("naive", "hybrid", "routed", "rerank", "newest"):
        lines = workspace.search("pump17", technique).degraded
        [line] = [one for one in lines if str(FILES) in one]
        assert [one for one in degraded_at(door, workspace, technique, ragistry) if str(FILES) in one] == [line]
    assert workspace.search("pump17", "naive", collection="other").degraded == ()


def test_nothing_is_written_if_the_model_cannot_be_reached(
    workspace: Workspace, embedder: HashingEmbedder, corpus: Corpus
) -> None:
    embedder.check = after(0, ModelConnectionError("it is off"))
    with pytest.raises(ModelConnectionError):
        workspace.library.ingest_folder(corpus(many()), "notes")
    assert (workspace.library.count(), embedder.calls) == (0, 1)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), ModelConnectionError("it is off")])
def test_words_are_found_while_vectors_are_missing(
    workspace: Workspace, embedder: HashingEmbedder, corpus: Corpus, interruption: BaseException
) -> None:
    folder = corpus(many())
    embedder.check = after(1, interruption)
    with pytest.raises(type(interruption)):
        workspace.library.ingest_folder(folder, "notes")
    embedder.check = None
    assert waiting(workspace) == FILES
    assert first(workspace, "pump17", "bm25") == ("17.txt", ())
    name, degraded = first(workspace, "pump17", "hybrid")
    assert name == "17.txt"
    [line] = degraded
    check_message(line, str(FILES))
    found = workspace.search("pump17", technique="naive")
    assert (len(found.documents), len(found.degraded)) == (0, 1)
    assert workspace.store.verify() == []
    report = workspace.library.ingest_folder(folder, "notes")
    assert (len(report.skipped), report.embedded, waiting(workspace)) == (FILES, FILES, 0)
    for technique in ("naive", "hybrid", "bm25"):
        assert first(workspace, many()["17.txt"], technique) == ("17.txt", ())


def test_another_ingest_or_reembed_continues(
    workspace: Workspace, embedder: HashingEmbedder, interrupted: Path, corpus: Corpus
) -> None:
    embedder.check = after(1, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        workspace.library.ingest_text("another", "another.txt", "notes")
    embedder.check = None
    assert waiting(workspace) == FILES  # what is small is written with its vectors
    assert first(workspace, "another", "naive")[0] == "another.txt"
    assert reembed(workspace.store, embedder) == FILES
    assert (waiting(workspace), workspace.store.verify()) == (0, [])
    assert first(workspace, many()["40.txt"], "naive") == ("40.txt", ())


def test_refused_source_is_found_by_its_words_and_asked_for_again(
    workspace: Workspace, embedder: HashingEmbedder, corpus: Corpus
) -> None:
    folder = corpus(many())
    embedder.check = poisoned("pump7 ")
    for times in range(2):
        report = workspace.library.ingest_folder(folder, "notes")
        [failure] = report.failed
        assert failure.source == "7.txt"
        check_message(failure.error, "7.txt", "pump7")
        assert len(report.added if times == 0 else report.skipped) == FILES - 1
        assert waiting(workspace) == 1
        assert first(workspace, "pump7", "bm25") == ("7.txt", ())
        assert first(workspace, many()["8.txt"], "naive")[0] == "8.txt"
    assert reembed(workspace.store, embedder) == 0
    assert waiting(workspace) == 1
    embedder.check = None
    report = workspace.library.ingest_folder(folder, "notes")
    assert (report.failed, report.embedded, waiting(workspace)) == ([], 1, 0)
    assert first(workspace, many()["7.txt"], "naive") == ("7.txt", ())


def test_small_ingest_of_a_refused_text_keeps_its_words(workspace: Workspace, embedder: HashingEmbedder) -> None:
    embedder.check = poisoned("Poison")
    with refused(EmbeddingGenerationError, "bad.txt"):
        workspace.library.ingest_text("Poison and pumps", "bad.txt", "notes")
    assert first(workspace, "pumps", "bm25") == ("bad.txt", ())
    with pytest.raises(EmbeddingGenerationError):
        workspace.library.ingest_text("Poison and valves", "bad.txt", "notes")
    assert first(workspace, "pumps", "bm25") == ("bad.txt", ())


def test_what_waits_is_moved_copied_and_described(
    workspace: Workspace, embedder: HashingEmbedder, interrupted: Path, tmp_path: Path
) -> None:
    library = workspace.library
    library.create_collection("other")
    library.set_metadata("1.txt", "notes", {"year": 2024})
    library.move_source("2.txt", "notes", "other")
    library.ingest_text("of the same name", "3.txt", "other")  # which also continues
    assert waiting(workspace) == 0
    assert library.source("1.txt", "notes").metadata["year"] == 2024
    assert first(workspace, many()["2.txt"], "naive")[0] == "2.txt"


def test_a_copy_has_what_waits(workspace: Workspace, interrupted: Path, tmp_path: Path) -> None:
    library = workspace.library
    library.set_metadata("1.txt", "notes", {"year": 2024})
    target = LocalStore(tmp_path / "copy")
    assert copy_library(workspace.store, target).differences == []
    assert sum(info.waiting for info in target.sources()) == FILES
    target.close()


def test_vectors_are_never_those_of_a_text_replaced_meanwhile(
    workspace: Workspace, embedder: HashingEmbedder, interrupted: Path
) -> None:
    store = workspace.store
    numbers = [number for number, _ in store.waiting(limit=FILES)]
    vectors = embedder.embed(["wrong"] * FILES)
    store.delete(where={"source_file": "1.txt"})
    (interrupted / "2.txt").write_text("valve2 replaces the text", encoding="utf-8")
    workspace.library.ingest_file(interrupted / "2.txt", "notes")
    assert store.waiting() == []
    store.add_vectors(numbers, vectors)  # of a process that read the texts before
    assert first(workspace, "valve2 replaces the text", "naive")[0] == "2.txt"
    assert first(workspace, many()["3.txt"], "naive")[0] == "3.txt"


def test_backup_and_comparison_take_what_waits_as_it_is(
    workspace: Workspace,
    embedder: HashingEmbedder,
    interrupted: Path,
    ragistry: Run,  # noqa: F811
    tmp_path: Path,
) -> None:
    at, new = ("-w", workspace.root), ("-w", tmp_path / "new")
    done = ragistry("backup", tmp_path / "all.zip", *at)
    assert done.code == 0
    check_message(done.err, str(FILES))
    assert ragistry("restore", tmp_path / "all.zip", tmp_path / "new").code == 0
    assert ragistry("verify", *new, "--json").json["waiting"] == FILES
    questions = tmp_path / "questions.jsonl"
    lines = [{"text": f"where is pump{number}?", "sources": [f"{number}.txt"]} for number in range(FILES)]
    questions.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    techniques = ("-t", "naive", "-t", "bm25")
    done = ragistry("compare", *new, "--queries", questions, *techniques, "--json", tmp_path / "report.json")
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    [[line, count]] = found["techniques"]["naive"]["degraded"].items()
    assert (count, found["techniques"]["bm25"]["degraded"]) == (FILES, {})
    assert any(line in warning for warning in found["warnings"])
    done = ragistry("ingest", interrupted, "--collection", "notes", *new, "--json")
    assert (done.code, len(done.json["skipped"])) == (0, FILES)
    assert ragistry("verify", *new, "--json").json == {
        "problems": [],
        "incomplete": [],
        "waiting": 0,
        "unsearchable": 0,
    }


def test_interrupted_command_says_what_waits(
    embedder: HashingEmbedder,
    corpus: Corpus,
    ragistry: Run,  # noqa: F811
) -> None:
    folder = corpus(many(), folder="in")
    embedder.check = after(1, KeyboardInterrupt())
    done = ragistry("ingest", folder, "--collection", "notes")
    assert (done.code, done.out) == (130, "")
    [line] = done.err.splitlines()
    check_message(line, str(FILES))
    embedder.check = None
    assert (
        ragistry("search", "pump17", "-t", "bm25", "--json").json["documents"][0]["metadata"]["source_file"] == "17.txt"
    )
    again = ragistry("ingest", folder, "--collection", "notes")
    assert f"{FILES} skipped, 0 deleted, 0 failed (0 chunks written, {FILES} embedded)" in again.out
    assert ragistry("search", "pump17", "-t", "naive").err == ""


class Halting(IngestObserver):
    """Stops a thread at the source or the embedding of this number until `free` is set."""

    def __init__(self, phase: str, number: int) -> None:
        self.phase, self.number, self.begun, self.free = phase, number, Event(), Event()

    def progress(self, source_file: str, done: int, total: int) -> None:
        self.reach("words", done)

    def waiting(self, name: str, done: int, total: int) -> None:
        self.reach("vectors", done)

    def reach(self, phase: str, number: int) -> None:
        if phase == self.phase and number >= self.number:
            self.begun.set()
            assert self.free.wait(30)


@pytest.mark.parametrize("stops", [False, True])
def test_searches_of_a_server_do_not_wait_for_an_ingest(tmp_path: Path, corpus: Corpus, *, stops: bool) -> None:
    with open_workspace(tmp_path, exclusive=True) as workspace:
        vector = workspace.embedder.embed(["zebra"])[0]

        def search(_: str, done: int, total: int) -> None:
            if (done, total) != (AT_ONCE * 2, FILES):
                return
            with ThreadPoolExecutor() as pool, workspace.store.writing():
                for query in ("earlier", "pump17, no other"):
                    searching = pool.submit(first, workspace, query, "bm25")
                    found.append(searching.result(60))
            workspace.store.add_documents([EmbeddedChunk("zebra", {"source_file": "zebra"}, vector)])
            found.append(first(workspace, "zebra", "bm25"))
            if stops:
                raise KeyboardInterrupt

        found: list[tuple[str, Sequence[str]]] = []
        workspace.library.create_collection("notes", "notes")
        workspace.library.ingest_text("earlier, and in no other file", "earlier.txt", "notes")
        with suppress(KeyboardInterrupt):
            workspace.library.ingest_folder(corpus(many()), "notes", progress=search)
        assert [name for name, _ in found] == ["earlier.txt", "earlier.txt", "zebra"]
        for _, [line] in found[:2]:
            check_message(line, "an ingest")
        assert first(workspace, "pump17", "bm25") == ("17.txt", ())


@pytest.mark.parametrize(("phase", "number"), [("words", 40), ("words", FILES - 1), ("vectors", 1), ("vectors", 300)])
def test_cancelled_task_leaves_whole_sources(workspace: Workspace, corpus: Corpus, phase: str, number: int) -> None:
    count = FILES if phase == "words" else 600
    folder, halting = corpus(many(count)), Halting(phase, number)

    async def cancel() -> None:
        ingest = asyncio.create_task(workspace.library.aingest_paths(folder, "notes", observer=halting))
        while not halting.begun.is_set():
            await asyncio.sleep(0.001)
        ingest.cancel()
        await asyncio.sleep(0.01)
        halting.free.set()
        with pytest.raises(asyncio.CancelledError):
            await ingest

    asyncio.run(cancel())
    written = len(workspace.library.list_sources("notes"))
    assert 0 < waiting(workspace) <= written == workspace.library.count()
    assert (written < count) is (phase == "words" and number < FILES - 1)
    assert workspace.store.verify() == []
    for name in workspace.library.list_sources("notes")[::50]:
        assert first(workspace, many(count)[name], "bm25")[0] == name
    report = asyncio.run(workspace.library.aingest_paths(folder, "notes"))
    assert (len(report.skipped), len(report.added), waiting(workspace)) == (written, count - written, 0)
    for name in list(many(count))[::50]:
        assert first(workspace, many(count)[name], "naive") == (name, ())


WITHOUT = "key IN (SELECT key FROM vectors WHERE key % 3 = 1)"
LOST = {  # ways in which three of nine chunks lose their vectors
    "damaged": f"UPDATE vectors SET crc = crc + 1 WHERE {WITHOUT}",
    "shortened": f"UPDATE vectors SET vector = x'00' WHERE {WITHOUT}",
    "removed": f"DELETE FROM vectors WHERE {WITHOUT}",
    "removed in a re-embedding that was ended": (
        f"DELETE FROM vectors WHERE {WITHOUT}; INSERT INTO next_vectors SELECT * FROM vectors LIMIT 2"
    ),
    "format 10": f"DELETE FROM vectors WHERE {WITHOUT}; DROP TABLE waiting; {AS_FORMAT_13}; PRAGMA user_version = 10",
    "format 11": f"DELETE FROM vectors WHERE {WITHOUT}; {AS_FORMAT_13}; PRAGMA user_version = 11",
    "format 12": f"DELETE FROM vectors WHERE {WITHOUT}; {AS_FORMAT_13}; PRAGMA user_version = 12",
}


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("loss", LOST)
def test_lost_vectors_are_counted_and_computed_by_the_next_ingest(
    workspace: Workspace, embedder: HashingEmbedder, loss: str, has_index: bool
) -> None:
    texts = {f"{number}.txt": text for number, text in enumerate(many(9).values())}
    for name, text in texts.items():
        workspace.library.ingest_text(text, name, "notes")
    workspace.search("pump", "naive")
    path = workspace.store.folder / "store.db"
    workspace.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(LOST[loss])
    if not has_index:
        shutil.rmtree(path.parent / "vectors")
    with open_workspace(workspace.root) as opened:
        if "format" not in loss:
            assert opened.store.verify()
            assert opened.store.repair().lost
        found = opened.search("pump", "naive", top_k=9)
        assert found.degraded == (waiting_line(3),)
        assert (len(found.documents), waiting(opened), opened.store.verify()) == (6, 3, [])
        opened.library.ingest_text("another text", "another.txt", "notes")
        assert waiting(opened) == 0
        for name, text in texts.items():
            assert first(opened, text, "naive") == (name, ())
        assert opened.store.verify() == []
