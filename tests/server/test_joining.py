"""Searches that wait for a thread are joined, and answered as if each were alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar
from functools import partial
from threading import Event
from typing import Any

import pytest

pytest.importorskip("fastapi")

from starlette.testclient import TestClient

from ragistry import Workspace
from ragistry.errors import QueryError, RagistryError
from ragistry.models.queries import embedded_together
from ragistry.server import joining
from ragistry.server.joining import SearchJoiner
from ragistry.types import RetrievalResult, Role, SearchRequest
from tests.server.conftest import serving

CALLER: ContextVar[str] = ContextVar("caller")
QUERIES = ("green tea", "rain", "green tea", "clear skies " * 30, "cold front", "")


def compared(result: Any) -> Any:
    """What a search returned, without times."""
    if not isinstance(result, RetrievalResult):
        return type(result), str(result)
    stages = [(one.name, one.depth, one.model_calls, one.tokens, one.degraded) for one in result.trace]
    return result.query, [(one.id, one.metadata, round(one.score, 5)) for one in result.documents], stages


async def run_behind_a_busy_thread(joiner: SearchJoiner, work: dict[str, Callable[[], Any]]) -> list[Any]:
    """Start a search that takes until all others wait; return what they return or raise."""
    free = Event()
    busy = asyncio.create_task(joiner.run("busy", free.wait))
    await asyncio.sleep(0)

    async def run(caller: str, one: Callable[[], Any]) -> Any:
        CALLER.set(caller)
        return await joiner.run(caller.partition("/")[2], one)

    waiting = [asyncio.create_task(run(caller, one)) for caller, one in work.items()]
    await asyncio.sleep(0)
    free.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    await busy
    return found


def count_calls(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of texts of each call of the model."""
    model, calls = workspace.embedder.embedder, []  # type: ignore[attr-defined]

    def embed(texts: list[str], *, role: Role) -> Any:
        calls.append(len(texts))
        return type(model).embed(model, texts, role=role)

    monkeypatch.setattr(model, "embed", embed)
    return calls


@pytest.mark.parametrize("technique", ["naive", "bm25", "hybrid"])
def test_joined_searches_are_single_searches(technique: str, workspace: Workspace, monkeypatch: Any) -> None:
    monkeypatch.setattr(joining, "THREADS", 1)
    library, callers, calls = workspace.library, list[str](), count_calls(workspace, monkeypatch)

    def search(query: str) -> RetrievalResult:
        callers.append(CALLER.get())
        return library.run_search(SearchRequest(query, technique, top_k=3))

    work = {f"{number}/{query}": partial(search, query) for number, query in enumerate(QUERIES)}
    joined = asyncio.run(run_behind_a_busy_thread(SearchJoiner(partial(embedded_together, library.embedder)), work))
    assert callers == list(work), "each has the context of its request"
    assert isinstance(joined[-1], QueryError)
    assert (max(calls, default=0) > 1) is (technique != "bm25"), "short queries are embedded together"
    monkeypatch.setattr(workspace.embedder, "_cached", {})
    CALLER.set("alone")
    for query, found in zip(QUERIES, joined, strict=True):
        try:
            alone: Any = search(query)
        except RagistryError as error:
            alone = error
        assert compared(found) == compared(alone)


def test_search_does_not_wait_for_a_slower_one(monkeypatch: Any) -> None:
    monkeypatch.setattr(joining, "THREADS", 2)
    joiner, free, answered = SearchJoiner(lambda _: nullcontext()), Event(), Event()

    async def search() -> list[Any]:
        busy = [joiner.run("busy", free.wait) for _ in range(2)]
        waiting = [joiner.run("slow", partial(answered.wait, 30)), joiner.run("quick", answered.set)]
        tasks = [asyncio.create_task(one) for one in (*busy, *waiting)]
        await asyncio.sleep(0)
        free.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(search()) == [True, True, True, None], "the quick one is answered while the slow one runs"


def test_cached_queries_of_a_batch_are_not_embedded_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder: Any = workspace.embedder
    for query in ("one", "two"):
        embedder.embed([query], role="query")
    calls = count_calls(workspace, monkeypatch)
    with embedder.together(["one", "two", "three", "four"]):
        for query in ("one", "three", "four", "two"):
            embedder.embed([query], role="query")
    assert calls == [2]


def test_only_techniques_that_ask_no_other_model_are_joined(workspace: Workspace) -> None:
    with serving(workspace) as client:
        joiner: SearchJoiner = client.app.state.served.joiner  # type: ignore[attr-defined]
        for technique in (None, "bm25", "rerank", "missing"):
            first, second = (_answer(client, technique) for _ in range(2))
            assert first == second
        assert joiner.quick == {None, "bm25"}


def _answer(client: TestClient, technique: str | None) -> Any:
    answer = client.post("/v1/search", json={"query": "green tea", "technique": technique}).json()
    return answer.get("documents", answer)
