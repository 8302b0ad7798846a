"""A prebuilt ReAct agent of LangGraph, whose model is scripted, searches archives on real servers."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from ragistry.testing.chroma_server import free_port
from ragistry.tools.archives import create_archive_search_tool, extract_rag_config
from tests.tools.archive_servers import HEATING, ROOF

pytest_plugins = ["tests.tools.archive_fixture"]

QUESTION = {"messages": [("user", "When was the expansion vessel replaced?")]}


class ScriptedModel(GenericFakeChatModel):
    """Says what it was given to say, and remembers which tools it was offered."""

    offered: list[Any] = []  # noqa: RUF012, a field of pydantic's

    def bind_tools(self, tools: Any, **_: Any) -> ScriptedModel:
        self.offered.extend(tools)
        return self


def agent_of(config, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is about to move to the package `langchain`
        from langgraph.prebuilt import create_react_agent

        tool = create_archive_search_tool(extract_rag_config(config))
        call = {"name": "search_archives", "args": {"query": "expansion vessel replaced", **arguments}, "id": "call-1"}
        model = ScriptedModel(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("In January 2025.")]))
        return create_react_agent(model, [tool]), model


@pytest.fixture
def config(servers, monkeypatch):
    monkeypatch.setenv("DOCPROC_CHROMADB_URL", servers.chroma)
    monkeypatch.setenv("DOCPROC_TEI_EMBEDDINGS_URL", servers.tei.url)
    archives = [
        servers.archive(name, texts).model_dump(include={"name", "collection_name", "embedding_model"})
        for name, texts in (("Maintenance", HEATING), ("Building", ROOF))
    ]
    return {"configurable": {"rag_config": {"archives": archives}}}


def test_an_agent_calls_the_tool_and_reads_what_it_found(config):
    agent, model = agent_of(config, top_k=2)
    messages = agent.invoke(QUESTION, config)["messages"]
    assert [tool.name for tool in model.offered] == ["search_archives"]
    assert [type(message).__name__ for message in messages] == [
        "HumanMessage", "AIMessage", "ToolMessage", "AIMessage"
    ]  # fmt: skip
    answer = messages[2]
    assert isinstance(answer, ToolMessage)
    assert answer.status == "success"
    assert "[1] Archive: Maintenance | Source: chunks.pdf | Page: 1" in answer.content
    assert f"   {HEATING[0]}" in answer.content
    assert [document.metadata["archive"] for document in answer.artifact][:1] == ["Maintenance"]
    assert len(answer.artifact) == 2
    assert messages[-1].content == "In January 2025."


def test_an_agent_that_does_not_block_its_loop(config):
    agent, _ = agent_of(config)
    messages = asyncio.run(agent.ainvoke(QUESTION, config))["messages"]
    assert f"   {HEATING[0]}" in messages[2].content


@pytest.mark.parametrize("variable", ["DOCPROC_CHROMADB_URL", "DOCPROC_TEI_EMBEDDINGS_URL"])
def test_an_agent_goes_on_where_a_server_is_down(config, monkeypatch, variable):
    monkeypatch.setenv(variable, f"http://127.0.0.1:{free_port()}")
    agent, _ = agent_of(config)
    messages = agent.invoke(QUESTION, config)["messages"]
    assert messages[2].content.splitlines()[0].startswith("Not searched: Maintenance")
    assert messages[2].content.count("cannot be reached") == 2
    assert messages[-1].content == "In January 2025."


def test_arguments_that_a_model_invents_are_told_to_it(config):
    agent, _ = agent_of(config, collection_name="payroll")
    messages = agent.invoke(QUESTION, config)["messages"]
    assert messages[2].content.startswith("The arguments do not fit: collection_name")
    assert messages[-1].content == "In January 2025."
