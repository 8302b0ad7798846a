"""Several searches in one call, and calls of programs with an event loop."""

from __future__ import annotations

import asyncio
from threading import Event, get_ident
from typing import Any

import pytest

from ragistry import RemoteWorkspace, RetrievalResult, Workspace
from ragistry.errors import CollectionNotFoundError, EmptyQueryError, QueryError, UnknownTechniqueError
from ragistry.library.ingest.methods import IngestObserver
from ragistry.models.queries import QueryEmbedder
from ragistry.types import Role
from ragistry.utils.limits import QUERIES, QUERIES_BYTES
from tests.conftest import Corpus, everywhere
from tests.messages import refused

TOPICS = ("roses", "tomatoes", "backups", "valves", "sails")
WORDS = [*TOPICS, "when do I prune roses?", '"check the sails"', "roses -tomatoes", "roses " * 60, "roses"]


def fill(workspace: Workspace | RemoteWorkspace) -> None:
    for topic in TOPICS:
        text = f"# {topic}\n\nIn March, check the {topic} and write it down."
        workspace.library.ingest_text(text, f"{topic}.md", "notes")


def shape(result: RetrievalResult) -> Any:
    stages = [(one.name, one.depth, one.documents_in, one.documents_out, one.degraded) for one in result.trace]
    scores = [pytest.approx(one.score, abs=1e-5) for one in result.documents]
    return result.query, [one.id for one in result.documents], scores, stages, result.degraded


@everywhere
@pytest.mark.parametrize("technique", [None, "naive", "newest"])
def test_many_searches_equal_single_ones(workspace: Workspace | RemoteWorkspace, technique: str | None) -> None:
    fill(workspace)
    where = {"source_file": {"$ne": "valves.md"}}
    for options in ({}, {"collection": "notes", "top_k": 2, "where": where}):
        single = [workspace.search(query, technique, **options) for query in WORDS]
        many = workspace.search_many(WORDS, technique, **options)
        assert [shape(one) for one in many] == [shape(one) for one in single]
    assert workspace.library.search_many([], technique=technique) == []


def test_queries_of_a_call_are_embedded_together_and_only_if_vectors_are_needed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(workspace)
    calls: list[int] = []
    assert isinstance(workspace.embedder, QueryEmbedder)
    model = workspace.embedder.embedder

    def embed(texts: list[str], *, role: Role) -> Any:
        calls.append(len(texts))
        return type(model).embed(model, texts, role=role)

    monkeypatch.setattr(model, "embed", embed)
    words = workspace.search_many(TOPICS, "bm25")
    assert [shape(one) for one in words] == [shape(workspace.search(topic, "bm25")) for topic in TOPICS]
    assert calls == []
    results = workspace.search_many([*TOPICS, *TOPICS], "naive")
    assert calls == [len(TOPICS)]
    assert [sum(stage.model_calls for stage in one.trace) for one in results] == [1] * 5 + [0] * 5, "as in single ones"


INVALID: list[tuple[Any, type[Exception]]] = [
    ("roses", QueryError),
    (None, QueryError),
    ({"roses": 1}, QueryError),
    (["roses", " "], EmptyQueryError),
    (["roses", 7], EmptyQueryError),
    (["roses", "\ud800"], QueryError),
    (["roses"] * 100_000, QueryError),
    (["r" * (QUERIES_BYTES // 100)] * 101, QueryError),
    (["r" * 10_000_000], QueryError),
]


@pytest.mark.parametrize("workspace", ["local", "client"], indirect=True)
def test_invalid_calls_are_refused(workspace: Workspace) -> None:
    for queries, error in INVALID:
        with refused(error):
            workspace.search_many(queries)
    with refused(UnknownTechniqueError, "nave"):
        workspace.search_many(["roses"] * QUERIES, "nave")
    with refused(CollectionNotFoundError, "garden"):
        workspace.search_many(["roses"], collection="garden")


class Waiting:
    """A technique that waits in its thread until the event loop has gone on."""

    def __init__(self, config: Any, *, base: Any) -> None:
        self.base, self.begun, self.free, self.thread = base, Event(), Event(), 0

    def retrieve(self, query: str, **options: Any) -> Any:
        self.thread = get_ident()
        self.begun.set()
        assert self.free.wait(30)
        return self.base.retrieve(query, **options)


def test_the_event_loop_goes_on_during_a_search(workspace: Workspace) -> None:
    fill(workspace)
    waiting = workspace.build({"use": Waiting, "base": "bm25"})
    technique: Any = waiting.technique

    async def main() -> tuple[RetrievalResult, list[RetrievalResult]]:
        search = asyncio.create_task(workspace.asearch("roses", waiting))
        while not technique.begun.is_set():
            await asyncio.sleep(0)
        gone = asyncio.create_task(workspace.library.asearch("roses", technique=waiting))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        technique.free.set()
        return await search, await workspace.library.asearch_many(["sails"], technique="bm25")

    found, [other] = asyncio.run(main())
    assert [one.documents[0].metadata["source_file"] for one in (found, other)] == ["roses.md", "sails.md"]
    assert technique.thread != get_ident()


class Watched(IngestObserver):
    """Tells when the ingest has begun its third source, and lets it go on after that."""

    def __init__(self) -> None:
        self.begun, self.free = Event(), Event()

    def progress(self, source_file: str, done: int, total: int) -> None:
        if done == 2:
            self.begun.set()
            assert self.free.wait(30)


@pytest.mark.parametrize("kind", ["files", "folder"])
def test_a_cancelled_ingest_keeps_whole_sources(workspace: Workspace, corpus: Corpus, kind: str) -> None:
    folder = corpus({f"{number}.md": f"# Note {number}\n\nPrune it.\n" for number in range(6)})
    paths: Any = folder if kind == "folder" else sorted(folder.iterdir())
    watched = Watched()

    async def main() -> None:
        ingest = asyncio.create_task(workspace.library.aingest_paths(paths, "notes", observer=watched))
        while not watched.begun.is_set():
            await asyncio.sleep(0.001)
        ingest.cancel()
        await asyncio.sleep(0.01)
        assert not ingest.done(), "the ingest still uses the library"
        watched.free.set()
        with pytest.raises(asyncio.CancelledError):
            await ingest

    asyncio.run(main())
    names = workspace.library.list_sources("notes")
    assert len(names) < 6
    assert workspace.store.count({"collection": "notes"}) == len(names)
    report = asyncio.run(workspace.library.aingest_paths(paths, "notes"))
    assert (len(report.skipped), len(report.added), report.failed) == (len(names), 6 - len(names), [])


def test_a_workspace_answers_and_routes_as_its_library_does(workspace: Workspace) -> None:
    fill(workspace)

    class Says:
        def generate(self, prompt: str, *, schema: Any = None) -> str:
            return "Check the roses in March [1]."

        def stream(self, prompt: str) -> Any:
            yield from ("Check the roses ", "in March [1].")

    workspace.library.generator = lambda: Says()
    pieces: list[str] = []
    answer = workspace.answer("when do I check the roses?", "bm25", top_k=1, on_piece=pieces.append)
    assert (pieces, answer.status) == (["Check the roses ", "in March [1]."], "complete")
    stream = workspace.library.answer_stream("when do I check the roses?", technique="bm25", n=1)
    assert next(stream) == "Check the roses "
    assert stream.answer == answer
    assert asyncio.run(workspace.aanswer("when do I check the roses?", "bm25", top_k=1)) == answer
    assert workspace.route("roses").chosen == ("notes",)
