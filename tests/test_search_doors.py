"""A search has the options of `SearchRequest` at every door."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields

import pytest
import typer

from ragistry import RemoteWorkspace, Workspace
from ragistry.cli.ask import ask
from ragistry.cli.search import search
from ragistry.library.search_methods import SearchMethods
from ragistry.tools.failures import CallError
from ragistry.tools.search import SEARCH_LIBRARY
from ragistry.tools.search_library import search_schema
from ragistry.types import SearchRequest

pytest.importorskip("nicegui")

from ragistry.web.search_form import SearchQuery

FIELDS = {one.name: one.metadata for one in fields(SearchRequest)}


@pytest.mark.parametrize("command", [search, ask])
def test_command_has_every_option_with_its_description(command: Callable[..., None]) -> None:
    app = typer.Typer()
    app.command()(command)
    options = {one.name or "": one for one in typer.main.get_command(app).params}
    assert list(options)[: len(FIELDS)] == list(FIELDS)
    for name, about in FIELDS.items():
        assert about["description"][:-1] in str(getattr(options[name], "help", ""))
        assert about.get("short") in (None, *options[name].opts)


@pytest.mark.parametrize(
    "method", [Workspace.search, RemoteWorkspace.search, SearchMethods.search, SearchMethods.answer]
)
def test_method_has_every_option(method: Callable[..., object]) -> None:
    names = {"n": "top_k"}
    assert {names.get(name, name) for name in inspect.signature(method).parameters} >= FIELDS.keys()


def test_server_describes_every_option_with_its_bounds() -> None:
    schemas = pytest.importorskip("ragistry.server.schemas")
    described = schemas.SearchBody.model_json_schema()["properties"]
    assert {name: one["description"] for name, one in described.items()} == {
        name: about["description"] for name, about in FIELDS.items()
    }
    assert described["top_k"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 1_000}
    assert described["query"]["maxLength"] == FIELDS["query"]["max_length"]


@pytest.mark.parametrize("strict", [False, True])
def test_tool_describes_the_options_for_models(strict: bool) -> None:
    parameters = search_schema([], strict=strict)["function"]["parameters"]["properties"]
    for name, about in FIELDS.items():
        assert (name in parameters) is (name == "query" or "model" in about)
    assert parameters["where"] == {
        "type": ["string", "null"] if strict else "object",
        "description": FIELDS["where"]["model"],
    }
    for value in ("[", [1], 5, "7"):
        with pytest.raises(CallError):
            SEARCH_LIBRARY.request_of({"query": "tea", "where": value})


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ({}, SearchQuery("", "bm25", top_k=20)),
        ({"q": "tea", "technique": "rerank", "k": "7", "ask": "1"}, SearchQuery("tea", "rerank", top_k=7, ask=True)),
        ({"k": "0"}, SearchQuery("", "bm25", top_k=0)),
        ({"q": "how long?", "follows": "tea"}, SearchQuery("how long?", "bm25", top_k=20, previous="tea")),
        ({"k": "٣", "filter": "\n"}, SearchQuery("", "bm25", top_k=0)),
        ({"collection": "a,,b", "open": "7"}, SearchQuery("", "bm25", collections=["a", "b"], top_k=20, passage="7")),
    ],
)
def test_page_reads_its_address(address: dict[str, str], expected: SearchQuery) -> None:
    assert SearchQuery.of_address(address, "bm25", 20) == expected
