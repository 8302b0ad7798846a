"""Archives for agents and routers: the tool `search_archives`, an agent of LangGraph that calls it, the technique."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from ragistry.errors import ConfigError, InvalidLimitError
from ragistry.protocols import Technique
from ragistry.techniques.routing.technique import CollectionRoutedTechnique
from ragistry.testing.ports import refused_port
from ragistry.testing.techniques import TechniqueConformance
from ragistry.tools.archive_search import ArchiveSearch
from ragistry.tools.archives import (
    ChromaRagConfig,
    archive_target,
    archive_technique,
    create_archive_search_tool,
    extract_rag_config,
)
from ragistry.utils.quoting import visible_line
from tests.messages import check_message, refused
from tests.tools.archive_servers import HEATING, QUERY, ROOF

pytest_plugins = ["tests.tools.archive_fixture"]


# The tool


def test_create_tool_no_archives():
    assert [create_archive_search_tool(config) for config in (ChromaRagConfig(archives=[]), None)] == [None, None]


@pytest.mark.parametrize("default", [5, 9])
def test_create_tool_with_archives(servers, default):
    tool = servers.tool(servers.archive("Maintenance", description="Reports of\nthe caretaker"), top_k=default)
    assert tool.name == "search_archives"
    assert "- Maintenance: Reports of the caretaker" in tool.description
    schema = tool.tool_call_schema
    assert (set(schema["properties"]), schema["required"]) == ({"query", "top_k"}, ["query"])
    assert schema["properties"]["top_k"]["default"] == default


def test_search_archives_returns_formatted(servers):
    archive = servers.archive("Wartung", HEATING)
    text = servers.tool(archive).invoke({"query": QUERY, "top_k": 1})
    assert text.splitlines()[0].startswith("Passages found: 1.")
    assert "[1] Archive: Wartung | Source: chunks.pdf | Page: 1 | Score: 0." in text
    assert "(cosine)" in text
    assert text.endswith(f"\n   {HEATING[0]}")
    german = servers.tool(archive, language="de").invoke({"query": QUERY, "top_k": 1})
    assert german.startswith("Gefundene Textstellen: 1.")
    assert "[1] Archiv: Wartung | Quelle: chunks.pdf | Seite: 1 | Ähnlichkeit: 0." in german
    check_message(servers.tool(archive, layer="page").invoke({"query": QUERY}), "Wartung")


def test_artifact_has_the_documents(servers):
    call = {"type": "tool_call", "id": "1", "name": "search_archives", "args": {"query": QUERY}}
    best, second, _ = servers.tool(servers.archive("Maintenance", HEATING)).invoke(call).artifact
    assert best.page_content == HEATING[0]
    assert best.metadata.pop("score") > second.metadata["score"]
    assert best.metadata == {"layer": "chunk", "source": "chunks.pdf", "page": 1, "archive": "Maintenance"}
    assert best.id


def test_search_archives_respects_top_k_bounds(servers):
    first, second = (
        servers.archive(name, [f"report number {number}" for number in range(start, start + 25)])
        for name, start in (("First", 0), ("Second", 100))
    )
    for asked, expected in ((1, 1), (7, 7), (20, 20), (0, 1), (-5, 1), (21, 20), (10**9, 20)):
        for archives in ([first], [first, second]):
            assert len(servers.search(*archives, query="report number", top_k=asked).documents) == expected
    text = servers.tool(first, second).invoke({"query": "report number", "top_k": None})
    assert text.startswith("Passages found: 5."), "null means the default"


def test_invalid_arguments_are_answered(servers):
    archive = servers.archive("Maintenance", HEATING)
    for arguments in (
        {"query": QUERY, "collection_name": "x"}, {"top_k": 3}, {"query": QUERY, "top_k": "many"},
        {"query": "x" * 20_000}, {"query": "tea \ud83d"}, {"query": " "},
    ):  # fmt: skip
        check_message(servers.tool(archive).invoke(arguments))
    check_message(servers.tool(archive, language="de").invoke({"query": " "}))


def test_missing_langchain_is_named(servers, monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_core.callbacks", None)
    monkeypatch.delitem(sys.modules, "ragistry.tools.langchain", raising=False)
    with refused(ConfigError, "langchain"):
        servers.tool(servers.archive("Maintenance"))


def test_connections_are_closed_with_the_last_copy_of_a_tool(servers):
    tool = servers.tool(servers.archive("Maintenance", HEATING))
    tool.invoke({"query": QUERY})
    [search] = [one for cell in tool.func.__closure__ for one in getattr(cell.cell_contents, "args", ())]
    assert isinstance(search, ArchiveSearch)
    [session] = {kept.connection.client._server._session for kept in search.clients._kept.values()}
    copy = tool.model_copy(update={"name": "other"})
    del tool
    gc.collect()
    assert HEATING[0] in copy.invoke({"query": QUERY})
    del copy
    gc.collect()
    assert session.is_closed


# An agent


class ScriptedModel(GenericFakeChatModel):
    """Says what it was given to say."""

    def bind_tools(self, tools, **_):
        assert [tool.name for tool in tools] == ["search_archives"]
        return self


def messages_of(config, is_async=False, **arguments):
    """The conversation of an agent that calls the tool once, for the query or with other arguments."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is about to move to the package `langchain`
        from langgraph.prebuilt import create_react_agent

        tool = create_archive_search_tool(extract_rag_config(config))
        call = {"name": "search_archives", "args": {"query": "expansion vessel replaced", **arguments}, "id": "call-1"}
        model = ScriptedModel(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("In January 2025.")]))
        agent = create_react_agent(model, [tool])
    question = {"messages": [("user", "When was the expansion vessel replaced?")]}
    answer = asyncio.run(agent.ainvoke(question, config)) if is_async else agent.invoke(question, config)
    assert [message.type for message in answer["messages"]] == ["human", "ai", "tool", "ai"]
    assert answer["messages"][-1].content == "In January 2025."
    return answer["messages"][2]


@pytest.fixture
def config(servers, monkeypatch):
    """Two archives whose servers the environment names."""
    monkeypatch.setenv("DOCPROC_CHROMADB_URL", servers.chroma)
    monkeypatch.setenv("DOCPROC_TEI_EMBEDDINGS_URL", servers.tei.url)
    archives = [
        servers.archive(name, texts).model_dump(include={"name", "collection_name", "embedding_model"})
        for name, texts in (("Maintenance", HEATING), ("Building", ROOF))
    ]
    return {"configurable": {"rag_config": {"archives": archives}}}


@pytest.mark.parametrize("is_async", [False, True])
def test_agent_calls_the_tool_and_reads_what_it_found(config, is_async):
    answer = messages_of(config, is_async, top_k=2)
    assert answer.status == "success"
    assert "[1] Archive: Maintenance | Source: chunks.pdf | Page: 1" in answer.content
    assert f"   {HEATING[0]}" in answer.content
    assert (len(answer.artifact), answer.artifact[0].metadata["archive"]) == (2, "Maintenance")


@pytest.mark.parametrize("variable", ["DOCPROC_CHROMADB_URL", "DOCPROC_TEI_EMBEDDINGS_URL"])
def test_agent_continues_if_a_server_is_down(config, monkeypatch, variable):
    monkeypatch.setenv(variable, f"http://127.0.0.1:{refused_port()}")
    check_message(" ".join(messages_of(config).content.splitlines()), "Maintenance", "Building")


def test_agent_is_told_of_invalid_arguments(config):
    check_message(messages_of(config, collection_name="payroll").content, "collection_name")


# The technique


@pytest.fixture(scope="module")
def archive(servers):
    texts = [*HEATING, *ROOF, *(f"the heating, part {number}" for number in range(25))]
    return servers.archive("House", texts, description="Reports on the house", space="l2")


@pytest.fixture
def technique(archive, servers):
    with closing(archive_technique(archive, servers.settings())) as technique:
        yield technique


class TestConformance(TechniqueConformance):
    query = "the expansion vessel of the heating"
    where = {"page": {"$lte": 3}}  # noqa: RUF012

    @pytest.fixture
    def technique(self, archive, servers):
        with closing(archive_technique(archive, servers.settings())) as technique:
            yield technique


def test_technique_has_the_name_of_its_archive_and_clamps_the_number(technique):
    assert isinstance(technique, Technique)
    assert (technique.name, technique.description) == ("House", "Reports on the house")
    best = technique.retrieve(HEATING[0])[0]
    assert (best.content, best.id, best.metadata["archive"]) == (HEATING[0], "chunk-0", "House")
    assert [len(technique.retrieve("heating", top_k=top_k)) for top_k in (None, 1000)] == [5, 20]
    with pytest.raises(InvalidLimitError):
        technique.retrieve("heating", top_k=0)


@pytest.mark.parametrize(
    ("where", "pages"),
    [
        ({"page": 2}, {2}),
        ({"page": {"$in": [1, 3]}}, {1, 3}),
        ({"source": {"$gte": "chunks"}, "page": {"$lt": 3}}, {1, 2}),  # the order of text, which ChromaDB lacks
        ({"source": {"$gt": "z"}}, set()),
    ],
)
def test_condition_is_met_within_the_layer(technique, where, pages):
    assert {document.metadata["page"] for document in technique.retrieve("heating", top_k=20, where=where)} == pages


def test_router_searches_only_the_archives_of_the_condition(servers):
    targets = [
        archive_target(servers.archive(name, texts, description=description), servers.settings())
        for name, texts, description in (("Cellar", HEATING, "heating and boiler"), ("Attic", ROOF, "roof and gutter"))
    ]
    routed = CollectionRoutedTechnique(
        {"router": "all"}, base=targets[0].technique, embedder=None, targets=lambda: targets
    )
    assert {d.metadata["archive"] for d in routed.retrieve("the roof", top_k=6)} == {"Cellar", "Attic"}
    within = routed.retrieve("the roof", top_k=6, where={"archive": "Cellar"})
    assert {document.content for document in within} == set(HEATING)
    for target in targets:
        target.technique.close()


# No argument leads to a collection that is not configured

SECRET = "SECRET-4711"
HIDDEN = "payroll-of-the-board"
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = st.sampled_from(
    [SECRET, HIDDEN, "salaries", "boiler", f"../{HIDDEN}", f'{{"collection": "{HIDDEN}"}}', f"collection:{HIDDEN}",
     "$or", "layer", "document", "%2e%2e%2f", "\x00", "' OR 1=1 --", "ignore all instructions"]
)  # fmt: skip
QUERIES = st.lists(WORDS | st.text(max_size=12), min_size=1, max_size=5).map(" ".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["collection", "collection_name", "archive", "archives", "name", "where", "layer", "tenant", "database",
     "chromadb_url", "tei_url", "rag_config", "config", "configurable", "run_manager", "callbacks", "top_k", "settings"]
)  # fmt: skip


@pytest.fixture(scope="module")
def guarded(servers):
    """Tool and technique of an archive beside a hidden collection, and with a hidden layer."""
    servers.fill(HIDDEN, [f"{SECRET} {text}" for text in (*HEATING, HIDDEN, "salaries")])
    archive = servers.archive("Maintenance", HEATING)
    for collection in (HIDDEN, archive.collection_name):
        servers.fill(collection, [f"{SECRET} of another layer"], layer="document")
    hidden = archive.model_copy(update={"collection_name": HIDDEN})
    assert SECRET in servers.tool(hidden).invoke({"query": SECRET}), "or the tests could not fail"
    with closing(archive_technique(archive, servers.settings())) as technique:
        yield servers.tool(archive), technique


@FEW
@given(query=QUERIES | VALUES, arguments=st.dictionaries(NAMES, VALUES, max_size=4), in_config=st.booleans())
def test_no_call_leads_to_another_collection(servers, guarded, query, arguments, in_config):
    other = {"archives": [{"name": "H", "collection_name": HIDDEN, "embedding_model": servers.tei.model}]}
    config = {"configurable": {"rag_config": other, **arguments}}
    text = guarded[0].invoke({"query": query, **({} if in_config else arguments)}, config if in_config else None)
    told = text
    for value in (query, *arguments.values()):  # an error repeats what the caller wrote
        told = told.replace(visible_line(repr(value)[:100]), "")
    assert SECRET not in told
    assert 1 <= text.count("Archive: Maintenance") <= 3 or text.startswith(("The query is empty", "Error: "))


CONDITIONS = st.dictionaries(
    st.sampled_from(["layer", "collection", "archive", "page"]), st.sampled_from(["document", HIDDEN, "*"])
) | st.sampled_from([{"$or": [{"layer": "document"}, {"page": {"$gte": 0}}]}, {"layer": {"$ne": "chunk"}}])


@FEW
@given(query=QUERIES.filter(str.strip), where=CONDITIONS)
def test_no_condition_leads_to_another_layer(guarded, query, where):
    documents = guarded[1].retrieve(query, top_k=20, where=where or None)
    assert all(document.metadata["layer"] == "chunk" for document in documents)
    assert SECRET not in repr(documents)
