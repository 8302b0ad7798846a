"""The library in LangChain's words, over a real workspace."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import pytest
from langchain_tests.integration_tests import RetrieversIntegrationTests

from ragistry import open_workspace
from ragistry.errors import (
    CollectionNotFoundError,
    EmptyQueryError,
    InvalidLimitError,
)
from ragistry.tools.langchain import LibraryRetriever, library_retriever, library_tool
from ragistry.tools.search_library import SearchLibraryTool

TEXTS = {
    "tea": ["Steep green tea for two minutes.", "Black tea wants boiling water.", "Oolong is half oxidised.", "Mate"],
    "weather": ["A cold front brings rain.", "Behind the front the skies are clear."],
}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with open_workspace(tmp_path_factory.mktemp("house")) as workspace:
        for collection, texts in TEXTS.items():
            workspace.library.create_collection(collection, f"All about {collection}")
            for number, text in enumerate(texts):
                workspace.library.ingest_text(text, f"{number}.txt", collection)
        yield workspace


@pytest.mark.anyio
class TestRetriever(RetrieversIntegrationTests):
    """LangChain's own tests of a retriever."""

    @pytest.fixture(autouse=True)
    def _library(self, house: Any) -> None:
        self.library = house.library

    @property
    def retriever_constructor(self) -> type[LibraryRetriever]:
        return LibraryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"library": self.library}

    @property
    def retriever_query_example(self) -> str:
        return "how long to steep tea"

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"


class TestRetrieverOfOneCollection(TestRetriever):
    """The same of one collection by one technique."""

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"library": self.library, "technique": "naive", "collection": "tea", "k": 4}


def test_condition_of_one_call_limits_only_it(house: Any) -> None:
    for retriever in (
        library_retriever(house),
        library_retriever(house, collection="tea"),
        library_retriever(house, allowed=["tea"]),
    ):
        found = retriever.invoke("rain", where={"source_file": "1.txt"}, k=10)
        assert {one.metadata["source_file"] for one in found} == {"1.txt"}
        assert ("weather" in {one.metadata["collection"] for one in found}) == (
            retriever.collection is None and not retriever.allowed
        )
        assert len(retriever.invoke("rain", k=10)) > len(found)
        assert retriever.invoke("rain", where={"collection": "nowhere"}) == []


def test_a_retriever_finds_what_the_library_finds(house):
    found = house.search("steep tea", top_k=3).documents
    documents = library_retriever(house, top_k=3).invoke("steep tea")
    assert [document.page_content for document in documents] == [document.content for document in found]
    assert [document.id for document in documents] == [document.id for document in found]
    assert [document.metadata for document in documents] == [d.metadata | {"score": d.score} for d in found]
    one, other = library_retriever(house, "bm25", "tea", 2), library_retriever(house.library, "bm25", "tea", 2)
    assert one == other
    assert [document.page_content for document in one.invoke("green tea")] == [
        d.content for d in house.search("green tea", "bm25", "tea", 2).documents
    ]


def test_no_argument_of_a_call_leads_to_another_collection(house):
    retriever = library_retriever(house, collection="tea", top_k=10)
    for option in ({}, {"k": 10}):
        assert {d.metadata["collection"] for d in retriever.invoke("rain of a cold front", None, **option)} == {"tea"}
    for name in ("collection", "library", "technique"):
        with pytest.raises(TypeError, match=name):
            retriever.invoke("rain", None, **{name: "weather"})
    assert retriever.invoke("rain", where={"collection": "weather"}) == []


def test_errors_reach_the_caller(house):
    with pytest.raises(EmptyQueryError):
        library_retriever(house).invoke(" ")
    with pytest.raises(InvalidLimitError):
        library_retriever(house).invoke("tea", None, k=0)
    with pytest.raises(CollectionNotFoundError):
        LibraryRetriever(library=house.library, collection="coffee").invoke("tea")


def test_a_retriever_stands_in_a_chain(house):
    chain = library_retriever(house, top_k=1) | (lambda documents: documents[0].page_content)
    assert chain.invoke("how long to steep green tea") == TEXTS["tea"][0]


def call(**arguments):
    return {"type": "tool_call", "id": "1", "name": "search_library", "args": arguments}


def test_the_tool_has_the_schema_and_the_answers_of_search_library(house):
    original = SearchLibraryTool(house.library)
    tool = library_tool(original)
    function = original.schema()["function"]
    assert (tool.name, tool.description) == ("search_library", function["description"])
    assert tool.tool_call_schema["properties"] == function["parameters"]["properties"]
    text = original.handle({"query": "steep green tea"})
    assert tool.invoke({"query": "steep green tea"}) == tool.invoke("steep green tea") == text
    assert asyncio.run(tool.ainvoke({"query": "steep green tea"})) == text


def test_the_artifact_is_the_documents_that_are_quoted(house):
    message = library_tool(SearchLibraryTool(house.library)).invoke(call(query="steep tea", collection="tea"))
    assert {document.metadata["collection"] for document in message.artifact} == {"tea"}
    assert all(document.page_content in message.content for document in message.artifact)
    assert all(document.metadata["score"] >= 0 for document in message.artifact)


@pytest.mark.parametrize("name", ["config", "run_manager", "callbacks", "allowed", "where", "self", "arguments"])
def test_no_argument_of_the_tool_leads_to_a_collection_that_is_not_allowed(house, name):
    tool = library_tool(SearchLibraryTool(house.library, allowed=["tea"]))
    for value, more in product(("weather", ["weather"], {"collection": "weather"}), ({}, {"collection": "weather"})):
        message = tool.invoke(call() | {"args": {"query": "rain", name: value} | more})
        assert "cold front" not in message.content
        assert all(document.metadata["collection"] == "tea" for document in message.artifact)
