"""What is not allowed cannot be reached: not by name, query or cursor, and not told of either."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry import Workspace, open_workspace
from ragistry.server.access import Tokens
from ragistry.server.app import create_app
from ragistry.tools.grep import GrepRequest, grep
from ragistry.tools.reach import Reach
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.tools.sources import SourcesRequest, sources
from ragistry.tools.toolbox import READING
from tests.conftest import full_run
from tests.mcp.conftest import in_memory
from tests.messages import check_message
from tests.tools.conftest import documents_yaml
from tests.tools.telltale import ERRORS

MARK = "Xylophage"
"""A word that only the closed collection holds; no query has it."""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A collection that is open, one that is open too, and one that is closed and fits every query best."""
    with open_workspace(tmp_path_factory.mktemp("guarded")) as opened:
        library = opened.library
        library.create_collection("open", "Submarines in general")
        library.create_collection("also", "More submarines")
        library.create_collection("vault7", f"Secret plans of {MARK}")
        library.ingest_text("A boat may dive.", "boats.txt", "open")
        library.ingest_text("Boats of iron sink, and rise again.", "iron.txt", "also")
        for number in range(8):
            plan = f"{MARK} submarine plans, page {number}: the submarine dives at noon with all hands."
            library.ingest_text(plan, f"{MARK}-{number}.txt", "vault7")
        yield opened


@pytest.fixture(scope="module")
def cursors(guarded: Workspace) -> list[str]:
    """Cursors of searches that reach everything."""
    tool = SearchLibraryTool(guarded.library, technique="bm25", n=50, max_tokens=1_500)
    tool.reach.max_tokens = 860  # far too little, so that every answer is cut
    calls = [{"query": "submarine"}, {"query": "submarine", "collection": "vault7"}, {"query": "boats"}]
    return [cursor for call in calls if (cursor := tool.answer(call).cursor)]


def closed(text: str) -> bool:
    """Whether nothing of the closed collection is in a text, apart from what the caller said itself."""
    return MARK.lower() not in text.lower() and "vault7" not in text


QUERIES = st.sampled_from(["submarine", "plans", "dives at noon", "boats", "collection:vault", "where 1=1"]) | st.text(
    min_size=1, max_size=30
)
NAMES = st.sampled_from(["open", "also", "vault", "*", "", "open,vault", "../vault", "{'$ne': 'open'}", "all"])
ANY = st.none() | st.text(max_size=8) | st.integers() | st.lists(NAMES, max_size=2)
CONDITIONS = ANY | st.dictionaries(st.sampled_from(["$ne", "$in", "$or"]), NAMES, max_size=2)


@settings(max_examples=300 if full_run() else 50, deadline=None)
@given(st.data())
def test_no_argument_reaches_a_collection_that_is_not_allowed(
    guarded: Workspace, cursors: list[str], data: st.DataObject
) -> None:
    assert cursors, "there is something to forge with"
    allowed = data.draw(st.sampled_from([["open"], ["open", "also"], []]))
    tool = SearchLibraryTool(guarded.library, allowed=allowed, technique=data.draw(st.sampled_from(["bm25", "hybrid"])))
    call = data.draw(
        st.fixed_dictionaries(
            {"query": QUERIES},
            optional={
                "collection": NAMES | CONDITIONS,
                "cursor": st.sampled_from(cursors) | st.from_regex(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9a-f]{16}") | ANY,
                "where": CONDITIONS,
                "allowed": CONDITIONS,
                "technique": ANY,
            },
        )
    )
    answer = tool.answer(json.dumps(call) if data.draw(st.booleans()) else call)
    assert closed(answer.text)
    assert {document.metadata["collection"] for document in answer.documents} <= set(allowed)


SAID = (
    "open",
    "vault",
    "also",
    "boats.txt",
    "iron.txt",
    "*",
    "?",
    "a",
    "dive",
    ".*",
    r"\w+",
    "submarine",
    "plans",
    "noon",
)
PARAMETERS = {name: tool.parameters() for name, tool in READING.items()}
SENTENCE = 'It says "the submarine dives at noon" [1] and "a boat may dive" (boats.txt).\n\n[1]: {}-1.txt, p. 3'


def random_call(draw: random.Random, cursors: list[str]) -> tuple[str, dict[str, Any]]:
    """Return a tool that reads texts, and arguments: mostly right ones, also with conditions and forged cursors."""
    name = draw.choice([*READING])
    arguments: dict[str, Any] = {}
    described = PARAMETERS[name]
    for key, one in described["properties"].items():
        if key in described["required"] or draw.random() < 0.3:
            known = {
                "where": [{"collection": draw.choice(SAID)}, {"collection": {"$ne": "open"}}, {"page": 1}, {}],
                "place": [{"line": 1}, {"collection": "also"}, {"page": {"$gte": 1}}],
                "cursor": cursors,
                "answer": [SENTENCE.format(draw.choice(SAID)), *SAID],
                "collection": ["open", "also", "vault", ""],
            }
            kinds = {"integer": [0, 1, 2, 300, 50_000], "boolean": [True, False], "string": SAID}
            arguments[key] = draw.choice(known.get(key) or kinds[one["type"]])
    return name, arguments


@pytest.mark.parametrize("door", ["http", "mcp"])
def test_no_argument_of_a_reading_tool_reaches_what_is_not_allowed(guarded: Workspace, door: str) -> None:
    draw, number = random.Random(door), 1_000 if full_run() else 100
    everything = Reach(guarded.library)
    cursors = [grep(everything, GrepRequest(word, max_tokens=200)).cursor for word in ("a", "e", "i", "o")]
    cursors = [one for one in cursors if one] + ["", "x", sources(everything, SourcesRequest(max_tokens=200)).cursor]
    calls = [random_call(draw, cursors) for _ in range(number)]
    if door == "http":
        secret = Tokens(guarded.root).add("reader", ["read"], ["open"])
        with TestClient(
            create_app(guarded), base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {secret}"}
        ) as client:
            told = [client.post(f"/v1/tools/{name}", json=arguments).text for name, arguments in calls]
    else:
        told = []

        async def talk(client: Any) -> None:
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                told.append(f"{result.content[0].text} {json.dumps(result.structured_content)}")

        in_memory(SearchLibraryTool(guarded.library, allowed=["open"]), talk)
    answered = 0
    for (name, arguments), text in zip(calls, told, strict=True):
        assert closed(text), (name, arguments, text)
        assert "iron" not in text.lower() or "iron" in json.dumps(arguments), (name, arguments, text)
        answered += "boats.txt" in text
    assert answered > number / 20, "the allowed collection is read"


ROUTERS = ("all", "evidence", "embedding", "explicit")
WAYS = (*ERRORS, "bug", "note")
SERVER = "127.0.0.1:9"


@pytest.fixture(scope="module")
def leaky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Collections, and out of reach of every tool broken repositories and an archive that nobody can reach.

    Techniques that route among all of them, and some that tell what they know.
    """
    root = tmp_path_factory.mktemp("Xylophages")
    archive = {"name": f"{MARK} archive", "collection_name": "vault7", "embedding_model": "m", "description": "boats"}
    archive |= {"chromadb_url": f"http://{SERVER}", "tei_url": f"http://{SERVER}"}
    routed = {
        f"to_{name}": {"use": "collection_routed", "base": "hybrid", "router": name, "margin": 1.0} for name in ROUTERS
    }
    telling = {f"by_{way}": {"use": "tests.tools.telltale:Telltale", "base": "hybrid", "way": way} for way in WAYS}
    plain = {
        "naive": {"use": "naive"},
        "bm25": {"use": "bm25"},
        "hybrid": {"use": "hybrid", "bases": ["naive", "bm25"]},
    }
    (root / "config").mkdir()
    for name, content in (
        ("vector_stores.yaml", {"archives": [archive]}), ("techniques.yaml", {"techniques": plain | routed | telling})
    ):  # fmt: skip
        (root / "config" / name).write_text(json.dumps(content), encoding="utf-8")
    repositories = root / ".ragistry" / "repositories"
    (repositories / "vault7-store@0").mkdir(parents=True)
    (repositories / "vault7-store@0" / "store.db").write_bytes(b"no database" * 1_000)
    record = {"name": "vault7-store", "folder": "vault7-store@0", "metadata": {"description": f"Boats of {MARK}"}}
    (repositories / "vault7-store.json").write_text(json.dumps(record), encoding="utf-8")
    (repositories / "vault7-record.json").write_text("{broken", encoding="utf-8")
    with open_workspace(root) as opened:
        for name in ("open", "also", "vault7"):
            opened.library.create_collection(name, f"Boats of {MARK}" if name == "vault7" else "Boats")
            opened.library.ingest_text(f"A boat, and {MARK if name == 'vault7' else 'iron'}.", "boats.txt", name)
        yield opened


def discreet(text: str) -> bool:
    """Whether a text names nothing of the closed collection, no place on the disk, which has `MARK`, and no server."""
    return closed(text) and SERVER not in text


@settings(max_examples=120 if full_run() else 25, deadline=None)
@given(st.data())
def test_nothing_that_a_limited_tool_says_names_what_is_out_of_its_reach(leaky: Workspace, data: st.DataObject) -> None:
    technique = data.draw(st.sampled_from([*(f"to_{name}" for name in ROUTERS), *(f"by_{way}" for way in WAYS)]))
    allowed = data.draw(st.sampled_from([["open"], ["open", "also"], []]))
    tool = SearchLibraryTool(leaky.library, allowed=allowed, technique=technique)
    query = data.draw(st.sampled_from(["boat", "iron boats", "plans", ""]) | st.text("boat \ud83d", max_size=9))
    call = data.draw(st.fixed_dictionaries({"query": st.just(query)}, optional={"collection": NAMES}))
    answer = tool.answer(call)
    assert discreet(answer.text), technique
    assert {document.metadata["collection"] for document in answer.documents} <= set(allowed)


@pytest.mark.parametrize("technique", [*(f"to_{name}" for name in ROUTERS), *(f"by_{way}" for way in WAYS)])
def test_a_limited_tool_still_says_what_a_model_can_use(
    leaky: Workspace, technique: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = SearchLibraryTool(leaky.library, allowed=["open", "also"], technique=technique).answer({"query": "boat"})
    assert answer.error is (technique.startswith("by_") and technique != "by_note")
    if technique.startswith("to_"):
        assert "[Note:" not in answer.text, "what is out of reach is not even tried"
        assert sum(1 + document.metadata.get("copies", 0) for document in answer.documents) == 2
    elif technique == "by_note":
        assert "[Note: the search was incomplete" in answer.text
    else:
        check_message(answer.text)
    assert (MARK in caplog.text) is technique.startswith("by_"), "the log says it all"


def test_a_tool_that_reaches_everything_names_what_fails_and_neither_paths_nor_servers(
    leaky: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    text = SearchLibraryTool(leaky.library, technique="to_all").handle({"query": "boat"})
    for name in ("vault7-store", "vault7-record"):
        assert f"[Note: {name} was not searched; see the owner's log]" in text
    assert f"{MARK}s" not in text
    assert SERVER not in text
    assert f"{MARK} archive was not searched: " in caplog.text
    assert SERVER in caplog.text


def test_a_model_that_has_to_name_a_collection_is_told_by_which_argument(leaky: Workspace) -> None:
    tool = SearchLibraryTool(leaky.library, technique="to_explicit")
    text = tool.handle({"query": "boat"})
    assert all(name in text.partition("set `collection` to one of ")[2] for name in ("open", "also", "vault7"))
    assert ", or pass where={'collection': NAME} with one of '" in text
    assert not tool.answer({"query": "boat", "collection": "open"}).error


def test_its_very_name_is_refused_like_one_that_nobody_knows(guarded: Workspace) -> None:
    tool = SearchLibraryTool(guarded.library, allowed=["open", "also"])
    for name in ("vault7", "vault9"):
        answer = tool.answer({"query": "submarine", "collection": name})
        check_message(answer.text, repr(name), "'also', 'open'")


def test_a_search_of_everything_is_limited_before_it_ranks(guarded: Workspace) -> None:
    """The closed collection's eight passages fit better; a filter after the search would leave nothing of five."""
    for technique in ("naive", "bm25", "hybrid"):
        tool = SearchLibraryTool(guarded.library, allowed=["open", "also"], technique=technique, n=5)
        found = tool.answer({"query": "submarine plans: it dives at noon"}).documents
        assert {document.metadata["collection"] for document in found} > set()
        assert {document.metadata["collection"] for document in found} <= {"open", "also"}


def test_a_technique_that_ignores_its_limits_gets_nothing_out(
    guarded: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    naive = guarded.technique("naive").technique
    retrieve = naive.retrieve
    monkeypatch.setattr(naive, "retrieve", lambda query, **_: retrieve(query))
    answer = SearchLibraryTool(guarded.library, allowed=["open"], technique="naive").answer({"query": "submarine"})
    assert answer.error
    check_message(answer.text, "TechniqueError")
    assert "ignored where" in caplog.text


def test_the_schema_tells_only_of_what_is_allowed(guarded: Workspace) -> None:
    for allowed in ([], ["open"], ["open", "also"]):
        assert closed(json.dumps(SearchLibraryTool(guarded.library, allowed=allowed).schema()))
    assert not closed(json.dumps(SearchLibraryTool(guarded.library).schema()))


def test_a_collection_is_reached_by_its_new_name_alone_and_not_once_it_is_taken_away(workspace: Workspace) -> None:
    workspace.library.create_collection("a", "a")
    workspace.library.ingest_text("A boat.", "boat.txt", "a")
    before = SearchLibraryTool(workspace.library, allowed=["a"], technique="bm25")
    documents_yaml(workspace).write_text("collections: [{name: b, formerly: a}, {name: c}]\n", encoding="utf-8")
    assert before.answer({"query": "boat"}).documents == ()
    after = SearchLibraryTool(workspace.library, allowed=["b"], technique="bm25")
    for call in ({"query": "boat"}, {"query": "boat", "collection": "b"}):
        assert len(after.answer(call).documents) == 1
    assert (
        SearchLibraryTool(workspace.library, allowed=["c"], technique="bm25").answer({"query": "boat"}).documents == ()
    )
    documents_yaml(workspace).write_text("collections: [{name: c}]\n", encoding="utf-8")
    answer = after.answer({"query": "boat"})
    assert answer.documents == ()
    check_message(answer.text)
