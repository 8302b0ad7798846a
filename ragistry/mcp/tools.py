"""The MCP tools: ``search_library``, ``search`` and ``fetch`` for research connectors, and those that read texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcp import types

from ragistry.library.asked import log_question
from ragistry.mcp.resources import FetchedPassage, fetch, title_of, url_of
from ragistry.presentation import excerpt_line, excerpt_of
from ragistry.tools import toolbox
from ragistry.tools.arguments import parse_arguments, read_object
from ragistry.tools.failures import CallError, failure_text
from ragistry.tools.schema import MODEL_OPTIONS, QUERY
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.tools.toolbox import TOOLS
from ragistry.types import Document
from ragistry.utils.dataclass_json import adapter_of, to_json
from ragistry.utils.quoting import visible_line

CONNECTOR_RESULTS = 10
"""Maximum number of results of ``search``."""
EXCERPT = 300
"""Maximum number of characters of a result's excerpt."""
EXCERPT_SOURCE = 8_000
"""Number of characters of a passage in which the excerpt is searched."""
ID_CHARACTERS = 200
_READS = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A result of the tool ``search``: the lines that answer, and their place in the source."""

    id: str
    title: str
    url: str
    text: str
    place: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FoundPassages:
    """The answer of the tool ``search``."""

    results: list[FoundPassage]


@dataclass(frozen=True, slots=True)
class QuotedPassage:
    """A passage that ``search_library`` quotes."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class QuotedPassages:
    """The answer of the tool ``search_library``; ``cursor`` continues it, and is empty at the end."""

    results: list[QuotedPassage]
    cursor: str


def list_tools(tool: SearchLibraryTool) -> list[types.Tool]:
    """List the tools with the current collections of documents.yaml."""
    function = tool.schema()["function"]
    return [
        _tool(tool.name, "Search the library", function["description"], function["parameters"], QuotedPassages),
        _tool(
            "search",
            "Find passages",
            "Search the document library and list passages by id, title and url, with the lines that answer. "
            "Read one with fetch.",
            _search_parameters(),
            FoundPassages,
        ),
        _tool(
            "fetch",
            "Read a passage",
            "Read one passage of the document library, with the text around it, by an id that search gave.",
            _one_text("id", "An id from the results of search."),
            FetchedPassage,
        ),
        *(_tool(name, one.title, one.description, one.parameters(), one.answer) for name, one in TOOLS.items()),
    ]


def _tool(
    name: str, title: str, description: str, schema: Mapping[str, Any], output: type[Any] | None = None
) -> types.Tool:
    return types.Tool(
        name=name,
        title=title,
        description=description,
        input_schema={**schema, "additionalProperties": False},
        output_schema=None if output is None else adapter_of(output).json_schema(mode="serialization"),
        annotations=_READS,
    )


def _one_text(name: str, description: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": description}},
        "required": [name],
    }


def _search_parameters() -> dict[str, Any]:
    described = _one_text("query", QUERY)
    [previous] = [one for one in MODEL_OPTIONS if one.name == "previous"]
    described["properties"]["previous"] = {"type": "string", "description": previous.metadata["model"]}
    return described


def call(tool: SearchLibraryTool, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
    """Call a tool. Errors become texts for the model.

    Raises:
        KeyError: The tool does not exist.
    """
    if name in (tool.name, "search") and isinstance(query := arguments.get("query"), str):
        log_question(tool.library, query, "mcp", limited=tool.reach.limited)
    if name == tool.name:
        answer = tool.answer(arguments)
        quoted = [QuotedPassage(one.id, title_of(one), one.content) for one in answer.documents]
        return _text(
            answer.text, answer.error, None if answer.error else to_json(QuotedPassages(quoted, answer.cursor))
        )
    if name in TOOLS:
        read = toolbox.answer(tool.reach, name, arguments)
        return _text(read.text, read.structured is None, read.structured)
    connector = CONNECTOR[name]
    try:
        found = to_json(connector(tool, arguments))
        return _text(json.dumps(found, ensure_ascii=False), structured=found)
    except Exception as error:  # noqa: BLE001, a technique of the user's may raise anything, and a model waits
        return _text(failure_text(error, name, limited=tool.reach.limited), True)


def _search(tool: SearchLibraryTool, arguments: Mapping[str, Any]) -> FoundPassages:
    asked = parse_arguments(read_object(arguments, ["query", "previous"]), [])
    documents = tool.find_in_collections(asked.query, asked.previous)[:CONNECTOR_RESULTS]  # only these can be fetched
    return FoundPassages([_result(tool, asked.query, document) for document in documents])


def _result(tool: SearchLibraryTool, query: str, document: Document) -> FoundPassage:
    passage = replace(document, content=document.content[:EXCERPT_SOURCE])
    lines = excerpt_of(passage, query, tool.library.reading.language, EXCERPT)
    title = title_of(document, lines.place)
    return FoundPassage(document.id, title, url_of(document), excerpt_line(lines), dict(lines.place))


def _fetch(tool: SearchLibraryTool, arguments: Mapping[str, Any]) -> FetchedPassage:
    chunk = read_object(arguments, ["id"]).get("id")
    if not isinstance(chunk, str) or not 0 < len(chunk) <= ID_CHARACTERS:
        raise CallError(f"id must be text of 1 to {ID_CHARACTERS} characters, got {visible_line(repr(chunk), 100)}")
    return fetch(tool.reach, chunk)


CONNECTOR: dict[str, Callable[[SearchLibraryTool, Mapping[str, Any]], object]] = {"search": _search, "fetch": _fetch}


def _text(text: str, error: bool = False, structured: dict[str, Any] | None = None) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=structured, is_error=error
    )
