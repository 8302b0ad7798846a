"""What the server's tools and resources answer: never too much, and never from a collection that is not served."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from mcp.shared.uri_template import UriTemplate

from ragistry import Workspace, open_workspace
from ragistry.errors import QueryError
from ragistry.mcp import server
from ragistry.mcp.server import read_address
from ragistry.testing.hashed import HashingEmbedder
from ragistry.tools.failures import BrokenCollectionsError
from ragistry.tools.fetch import Address, url_of, write_address
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.tools.tokens import estimated_tokens
from ragistry.types import Document
from ragistry.utils.ids import chunk_id
from tests.conftest import full_run, write_settled
from tests.library.conftest import embedder  # noqa: F401, the fixture
from tests.mcp.conftest import MODES, conversation, in_memory, json_of, text_of
from tests.messages import check_message, refused

MARK = "Xylophage"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with open_workspace(tmp_path_factory.mktemp("guarded")) as opened:
        library = opened.library
        library.create_collection("open", "Boats")
        library.create_collection("vault7", f"Plans of {MARK}")
        library.ingest_text("A boat may dive. " * 200, "boats.txt", "open")
        library.ingest_text(f"{MARK} submarine plans: it dives at noon. " * 200, "boats.txt", "vault7")
        yield opened


@pytest.fixture(scope="module")
def tool(guarded: Workspace) -> SearchLibraryTool:
    return SearchLibraryTool(guarded.library, allowed=["open"], technique="bm25")


def asked(tool: SearchLibraryTool, name: str, arguments: Any) -> str:
    [content] = server.call_tool(tool, name, arguments).content
    return content.text


def read(tool: SearchLibraryTool, uri: str) -> str:
    try:
        [content] = server.read_resource(tool.reach, uri).contents
    except QueryError as error:
        return str(error)
    return content.text


CLOSED = [chunk_id("vault7", "boats.txt", index) for index in range(10)]
OPEN = [chunk_id("open", "boats.txt", index) for index in range(5)]
IDS = (
    st.sampled_from([*CLOSED, *OPEN]) | st.text(max_size=20) | st.none() | st.lists(st.sampled_from(CLOSED), max_size=2)
)
SEGMENTS = ["open", "vault%37", quote("vault7"), "..", ".", "", "boats.txt", "%2e%2e", "%2F", "vault7%2Fboats.txt"]
URIS = st.builds(
    lambda root, path, tail: root + "/".join(path) + tail,
    st.sampled_from(["ragistry://collections/", "ragistry://collections", "file:///", "RAGISTRY://collections/"]),
    st.lists(st.sampled_from(SEGMENTS), max_size=4),
    st.sampled_from(["", "#chunk=0", "#chunk=1", "#chunk=-1", "?collection=vault7", "#chunk=99"]),
)


@settings(max_examples=300 if full_run() else 50, deadline=None)
@given(st.data())
def test_no_argument_gives_access_to_other_collections(tool: SearchLibraryTool, data: st.DataObject) -> None:
    queries = st.sampled_from(["submarine", "dives at noon", "plans"]) | st.text(max_size=10)
    names = st.sampled_from(["open", "all", "*"]) | st.none()
    call = data.draw(
        st.one_of(
            st.tuples(st.just("fetch"), st.fixed_dictionaries({"id": IDS}, optional={"collection": names})),
            st.tuples(st.just("search"), st.fixed_dictionaries({"query": queries}, optional={"where": names})),
            st.tuples(st.just("search_library"), st.fixed_dictionaries({"query": queries, "collection": names})),
        )
    )
    assert MARK.lower() not in asked(tool, *call).lower()
    assert MARK.lower() not in read(tool, data.draw(URIS)).lower()


def test_inaccessible_ids_and_uris_look_like_missing_ones(tool: SearchLibraryTool) -> None:
    missing = chunk_id("vault8", "boats.txt", 0)
    for chunk in (CLOSED[0], missing):
        check_message(asked(tool, "fetch", {"id": chunk}), repr(chunk))
    check_message(read(tool, "ragistry://collections/open/boats.txt#chunk=999"), "boats.txt#chunk=999'")
    for uri in ("ragistry://collections/vault7", "ragistry://collections/vault7/boats.txt#chunk=0"):
        check_message(read(tool, uri), repr(uri))
        assert read(tool, uri.replace("vault7", "vault8")) == read(tool, uri).replace("vault7", "vault8")
    everything = SearchLibraryTool(tool.library)
    assert MARK in asked(everything, "fetch", {"id": CLOSED[0]}), "the collection holds it"
    assert MARK in read(everything, "ragistry://collections/vault%37/boats.txt#chunk=0")


def test_fetch_refuses_a_collection_removed_from_documents_yaml(workspace: Workspace) -> None:
    workspace.library.ingest_text("Steep green tea.", "green.txt", "notes")
    tool, arguments = SearchLibraryTool(workspace.library), {"id": chunk_id("notes", "green.txt", 0)}
    assert "Steep" in asked(tool, "fetch", arguments)
    workspace.library.collections.path.write_text("collections: []\n", encoding="utf-8")
    check_message(asked(tool, "fetch", arguments), arguments["id"])


def test_invalid_documents_yaml_is_reported_by_every_tool(
    workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    workspace.library.ingest_text("Steep green tea in water of eighty degrees.", "leaf.txt", "notes")
    tool = SearchLibraryTool(workspace.library)
    path = workspace.library.collections.path
    whole = path.read_text(encoding="utf-8")
    calls = {"search_library": {"query": "tea"}, "search": {"query": "tea"}}
    calls["fetch"] = {"id": chunk_id("notes", "leaf.txt", 0)}
    for broken in (whole + "\n  bad: [", whole.replace("\ncollections:", "\ncolections:")):
        write_settled(path, broken)
        for name, arguments in calls.items():
            answer = server.call_tool(tool, name, arguments)
            assert answer.is_error
            check_message(answer.content[0].text, "documents.yaml is broken at line ")
            assert "degrees" not in answer.content[0].text
        with refused(BrokenCollectionsError):
            server.read_resource(tool.reach, write_address(Address("notes")))
        assert [resource.name for resource in server.list_resources(tool.reach).resources] == ["notes"], (
            "listed as it was"
        )
        path.write_text(whole, encoding="utf-8")
        assert "degrees" in asked(tool, "search_library", {"query": "tea"})
    assert "unknown setting 'colections'" in caplog.text


def test_structured_answers_keep_to_their_output_schema(tool: SearchLibraryTool) -> None:
    schemas = {one.name: one.output_schema for one in server.list_tools(tool).tools}
    assert server.call_tool(tool, "search_library", {"query": ""}).structured_content is None
    found = server.call_tool(tool, "search", {"query": "boat"})
    assert found.structured_content is not None
    calls = {"search": {"query": "boat"}, "fetch": {"id": found.structured_content["results"][0]["id"]}}
    for name, arguments in calls.items():
        answer = server.call_tool(tool, name, arguments)
        jsonschema.validate(answer.structured_content, schemas[name])
        assert json.loads(answer.content[0].text) == answer.structured_content
    source = {"source": "boats.txt"}
    reads = {"grep": {"pattern": "boat"}, "read": source, "outline": source, "sources": {}}
    for name, arguments in (reads | {tool.name: {"query": "boat"}, "check_quotes": {"answer": '"a boat"'}}).items():
        answer = server.call_tool(tool, name, arguments)
        jsonschema.validate(answer.structured_content, schemas[name])
    assert answer.structured_content["summary"] == "1 of 1 quotation found"
    refused_ = server.call_tool(tool, "fetch", {"id": "nothing"})
    assert (refused_.is_error, refused_.structured_content) == (True, None)


def test_fetch_returns_a_passage_with_its_context(guarded: Workspace, tool: SearchLibraryTool) -> None:
    chunks = guarded.store.count({"collection": "open"})
    assert chunks > 2
    fetched = json.loads(asked(tool, "fetch", {"id": OPEN[1]}))
    uri = UriTemplate.parse(server.TEMPLATE.uri_template).expand(
        {"collection": "open", "source_file": "boats.txt", "chunk": "1"}
    )
    assert json.loads(read(tool, uri)) == fetched
    assert fetched["text"] == ("A boat may dive. " * 200).strip()
    assert fetched["title"] == "boats.txt (line 1, chunk 1)"
    assert fetched["url"] == "ragistry://collections/open/boats.txt#chunk=1"
    assert "source" not in fetched["metadata"], "paths of the machine stay here"


def test_phrases_and_metadata_reach_agents(workspace: Workspace) -> None:
    library = workspace.library
    library.ingest_text("The red valve must be closed.", "a.txt", "notes", metadata={"year": 2026, "tags": ["x", "y"]})
    library.ingest_text("The valve is red and closed.", "b.txt", "notes")

    async def talk(client: Client) -> None:
        for tool in (await client.list_tools()).tools[:2]:
            assert "double quotes" in tool.input_schema["properties"]["query"]["description"]
        for query, names in (('"Red valves must be"', ["a.txt"]), ('valve -"must be"', ["b.txt"])):
            results = (await json_of(client, "search", query=query))["results"]
            assert [result["title"].split()[0] for result in results] == names
        check_message(await text_of(client, "search_library", query='"blue valve"'), '"blue valve"')
        read = await json_of(client, "fetch", id=chunk_id("notes", "a.txt", 0))
        assert (read["metadata"]["year"], read["metadata"]["tags"]) == (2026, ["x", "y"])

    in_memory(SearchLibraryTool(library, technique="bm25"), talk)


@pytest.mark.parametrize("size", [700, 200_000])
@pytest.mark.parametrize("words", ["Plain words about tea. ", "茶の淹れ方。", '"\\\n{tea}\t'])
def test_answers_are_below_ten_thousand_tokens(
    embedder: HashingEmbedder,  # noqa: F811
    tmp_path: Path,
    size: int,
    words: str,
) -> None:
    with open_workspace(tmp_path, chunk_size=size, n_results=30) as workspace:
        workspace.library.create_collection("tea", "Tea " * 5_000)
        workspace.library.create_collection("more", "Tea " * 5_000)
        text = "".join(f"tea {number} {words}" for number in range(60_000 // len(words)))
        workspace.library.ingest_text(text, "tea.txt", "tea")
        chunks = [document.id for document in workspace.store.scan() if document.metadata["chunk_index"] in (0, 1, 30)]
        tool = SearchLibraryTool(workspace.library, technique="bm25")
        answer = asked(tool, "search_library", {"query": "tea"})
        assert 4_000 < estimated_tokens(answer) < 10_000
        assert estimated_tokens(asked(tool, "search", {"query": "tea"})) < 10_000
        for chunk in chunks:
            assert 3_000 < estimated_tokens(asked(tool, "fetch", {"id": chunk})) < 10_000
        assert estimated_tokens(read(tool, "ragistry://collections/tea")) < 10_000
        assert estimated_tokens(str(tool.schema())) < 10_000


def test_long_lists_of_sources_are_truncated(embedder: HashingEmbedder, workspace: Workspace) -> None:  # noqa: F811
    for number in range(40):
        workspace.library.ingest_text("Tea.", f"{number:03}{'-a' * 95}.txt", "notes")
    content = json.loads(read(SearchLibraryTool(workspace.library), "ragistry://collections/notes"))
    assert content["source_count"] == 40
    assert 0 < len(content["sources"]) < 40
    assert len(content["sources"]) + content["sources_left_out"] == 40


@settings(max_examples=40, deadline=None)
@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=30), st.integers(0, 999))
def test_uri_round_trip(collection: str, source: str, index: int) -> None:
    address = Address(collection.encode(errors="replace").decode(), source.encode(errors="replace").decode(), index)
    assert read_address(write_address(address)) == address


@settings(max_examples=40, deadline=None)
@given(
    st.text("ab %#?&/,.é", min_size=1, max_size=12), st.text("ab %#?&/,.é", min_size=1, max_size=20), st.integers(0, 99)
)
def test_passage_template_expands_to_a_valid_uri(collection: str, source: str, index: int) -> None:
    template = UriTemplate.parse(server.TEMPLATE.uri_template)
    said = {"collection": collection, "source_file": source, "chunk": str(index)}
    uri = template.expand(said)
    assert read_address(uri) == Address(collection, source, index)
    assert write_address(Address(collection, source, index)) == uri
    assert template.match(uri) == said


def test_web_passage_is_cited_by_its_url() -> None:
    assert url_of(Document("x", {"url": "https://example.org/a"}, 1.0)) == "https://example.org/a"
    assert url_of(Document("x", {"url": "javascript:alert(1)", "collection": "c"}, 1.0)) == "ragistry://collections/c"


@pytest.mark.parametrize("mode", MODES)
def test_client_searches_fetches_and_reads_resources(served: Workspace, mode: str) -> None:
    async def talk(client: Client) -> None:
        await conversation(client)
        wrong = await client.call_tool("search_library", {"query": ""})
        assert wrong.is_error
        check_message(wrong.content[0].text)
        with refused(MCPError, "'serach'", "search_library, search, fetch"):
            await client.call_tool("serach", {})
        with refused(MCPError, "'ragistry://collections/nothing'"):
            await client.read_resource("ragistry://collections/nothing")

    in_memory(SearchLibraryTool(served.library), talk, mode)


def test_serve_only_selected_collections(served: Workspace) -> None:
    async def talk(client: Client) -> None:
        [tool, *_] = (await client.list_tools()).tools
        assert tool.description == "Search Tea books: How tea is brewed"
        assert "collection" not in tool.input_schema["properties"]
        assert [resource.name for resource in (await client.list_resources()).resources] == ["tea"]
        assert "rain" not in await text_of(client, "search_library", query="cold front")
        check_message(await text_of(client, "search_library", query="x", collection="weather"), "'weather'")

    in_memory(SearchLibraryTool(served.library, allowed=["tea"]), talk)


def test_question_of_a_model_is_kept_once(tmp_path: Path) -> None:
    with open_workspace(tmp_path, log_questions=True) as workspace:
        workspace.library.create_collection("open", "Boats")
        workspace.library.ingest_text("A boat may dive.", "boats.txt", "open")
        for allowed in (None, ["open"]):
            logged = SearchLibraryTool(workspace.library, allowed=allowed, technique="bm25")
            asked(logged, logged.name, {"query": "dive"})
            asked(logged, "search", {"query": "boat"})
            asked(logged, "search", {"query": 5})
        log = workspace.library.questions
        assert log is not None
        found = [(one.text, one.door, one.limited) for one in log.read()]
    assert found == [(text, "mcp", limited) for limited in (False, True) for text in ("dive", "boat")]
