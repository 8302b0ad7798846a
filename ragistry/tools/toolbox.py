"""The tools that read texts, one description for all doors: MCP, HTTP, OpenAI, LangChain and the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields
from functools import cache
from typing import Any

from pydantic import ValidationError

from ragistry.presentation.hits import place_text
from ragistry.tools import quotes, reading
from ragistry.tools.arguments import read_object
from ragistry.tools.failures import CallError, failure_text
from ragistry.tools.line_patterns import LINE_CHARACTERS
from ragistry.tools.reach import Reach
from ragistry.tools.reading import (
    GrepAnswer,
    OutlineAnswer,
    ReadAnswer,
    SourceLine,
    SourcesAnswer,
)
from ragistry.tools.result_text import QUOTED
from ragistry.utils.custom_metadata import shown_metadata
from ragistry.utils.dataclass_json import adapter_of, from_json, to_json
from ragistry.utils.quoting import visible_line
from ragistry.utils.wording import numbered, problem_of

PLACE = ("part", "sheet", "chapter", "page", "page_label")
"""The part of a place that stands behind lines with numbers."""


@dataclass(frozen=True, slots=True)
class ReadingTool:
    """A tool: a function of the collections in reach and a request.

    Attributes:
        title: Name for people.
        description: Description for language models.
        request: Type of the request, a dataclass.
        answer: Type of the answer, a dataclass.
        run: The function. It raises `CallError`.
        text: Writes an answer as text.
    """

    title: str
    description: str
    request: type[Any]
    answer: type[Any]
    run: Callable[[Reach, Any], Any]
    text: Callable[[Any], str]

    def options(self) -> dict[str, Field[Any]]:
        """Return the fields of the request by name."""
        return {one.name: one for one in fields(self.request)}

    def parameters(self) -> dict[str, Any]:
        """Build the JSON Schema of the arguments."""
        described = adapter_of(self.request).json_schema()
        properties = {name: _plain(one) for name, one in described["properties"].items()}
        return {"type": "object", "properties": properties, "required": described.get("required", [])}

    def request_of(self, arguments: Any) -> Any:
        """Check the arguments of a call, a mapping or its JSON. Raises `CallError`."""
        # A model that must pass every argument may pass "" for none.
        values = {key: value for key, value in read_object(arguments, [*self.options()]).items() if value is not None}
        for key in ("where", "place"):
            if isinstance(values.get(key), str):
                values[key] = _object(key, values[key])
        for key in ("collection", "cursor"):
            if values.get(key) == "":
                del values[key]
        try:
            request = from_json(self.request, values)
            json.dumps(values, ensure_ascii=False).encode()
        except ValidationError as error:
            wrong = error.errors()[0]
            name = ".".join(map(str, wrong["loc"]))
            got = "" if wrong["type"] == "missing" else f", got {repr(wrong['input'])[:100]}"
            raise CallError(f"{name}: {problem_of(wrong)}{got}; correct it") from error
        except UnicodeEncodeError as error:
            raise CallError("an argument has half a character; send whole characters") from error
        return request


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer to a call: ``text`` for a model, ``structured`` as plain values; without them if it is an error."""

    text: str
    structured: dict[str, Any] | None = None


def answer(reach: Reach, name: str, arguments: Any) -> ToolAnswer:
    """Answer a call of a tool. Never raises: errors are described to the model."""
    tool = TOOLS[name]
    try:
        found = tool.run(reach, tool.request_of(arguments))
        return ToolAnswer(tool.text(found), to_json(found))
    except Exception as error:  # noqa: BLE001, a model waits for the answer
        return ToolAnswer(failure_text(error, name, limited=reach.limited))


@cache
def function_schemas() -> list[dict[str, Any]]:
    """Return the entries for ``tools`` of a request in OpenAI's format."""
    return [
        {
            "type": "function",
            "function": {"name": name, "description": tool.description, "parameters": tool.parameters()},
        }
        for name, tool in TOOLS.items()
    ]


def _plain(described: Mapping[str, Any]) -> dict[str, Any]:
    """Describe an argument without what a model needs not: titles, defaults, and that it may be null."""
    one = {**described, **described.get("anyOf", [{}])[0]}
    keys = ("type", "minimum", "maximum", "description", "items")
    return {key: one[key] for key in keys if key in one}


def _object(name: str, text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else None
    except (ValueError, RecursionError) as error:
        raise CallError(f'{name} is not JSON: {text[:100]!r}; write an object such as {{"page": 3}}') from error


def grep_text(found: GrepAnswer) -> str:
    """Write found lines, grouped by source."""
    parts = []
    for one in found.sources:
        head = f"{visible_line(one.source)} [{one.collection}]" + (f": {one.matches}" if one.matches else "")
        parts.append("\n".join([head, *_numbered_lines(one.lines)]))
    parts = parts or ["No line matches." if not found.has_more else "No line matches so far."]
    parts += [f"[{note}]" for note in found.notes]
    if found.cursor:
        parts.append(f'[To continue, call again with the same arguments and cursor "{found.cursor}".]')
    return "\n\n".join([*parts, QUOTED])


def read_text(found: ReadAnswer) -> str:
    """Write the lines of a source."""
    head = f"{visible_line(found.source)} [{found.collection}]"
    lines = [head, *_numbered_lines(found.lines), *(f"[{note}]" for note in found.notes)]
    if found.next_line is not None and not found.notes:
        lines.append(f"[more: line {found.next_line}]")
    return "\n".join([*lines, QUOTED])


def outline_text(found: OutlineAnswer) -> str:
    """Write an outline."""
    head = f"{visible_line(found.source)} [{found.collection}], {numbered(found.lines, 'line[|s]')}"
    lines = [
        f"  {one.line}: {'  ' * max(0, one.level - 1)}{'' if one.kind == 'heading' else f'{one.kind} '}{one.title}"
        for one in found.entries
    ] or ["  no headings or pages"]
    more = [f"[more: line {found.next_line}]"] if found.next_line is not None else []
    return "\n".join([head, *lines, *more])


def sources_text(found: SourcesAnswer) -> str:
    """Write a list of sources."""
    lines = [numbered(found.total, "source[|s]")]
    for one in found.sources:
        metadata = f" {{{visible_line(shown_metadata(one.metadata), 200)}}}" if one.metadata else ""
        lines.append(f"  {visible_line(one.source)} [{one.collection}]{metadata}")
    if found.cursor:
        lines.append(f'[To continue, call again with the same arguments and cursor "{found.cursor}".]')
    return "\n".join(lines)


def _numbered_lines(lines: list[SourceLine]) -> list[str]:
    """Write lines as ``12: text``, those around a match as ``12- text``, each place and table header where it changes.

    The column of a long line says where its match begins.
    """
    written, place, header = [], "", ""
    for one in lines:
        if one.table_header not in ("", header):
            written.append(f"  columns: {one.table_header}")
        header = one.table_header or one.text
        here = place_text({key: one.place[key] for key in PLACE if key in one.place})
        told = [here] if here not in ("", place) else []
        if one.column > 1 and len(one.text) > LINE_CHARACTERS:
            told.append(f"column {one.column}")
        place = here or place
        written.append(
            f"  {one.line}{':' if one.match else '-'} {one.text}" + (f"  ({', '.join(told)})" if told else "")
        )
    return written


TOOLS: dict[str, ReadingTool] = {
    "grep": ReadingTool(
        "Find lines",
        "Find the lines of the documents that contain a pattern, exactly: names, numbers, codes, quotations. "
        "For questions use search_library.",
        reading.GrepRequest,
        reading.GrepAnswer,
        reading.grep,
        grep_text,
    ),
    "read": ReadingTool(
        "Read lines",
        "Read lines of a source, from a line or a place that grep, outline or a search names.",
        reading.ReadRequest,
        reading.ReadAnswer,
        reading.read,
        read_text,
    ),
    "outline": ReadingTool(
        "List headings",
        "List the headings, pages, slides, sheets and chapters of a source with their lines.",
        reading.OutlineRequest,
        reading.OutlineAnswer,
        reading.outline,
        outline_text,
    ),
    "sources": ReadingTool(
        "List sources",
        "List the sources of the library by name and metadata.",
        reading.SourcesRequest,
        reading.SourcesAnswer,
        reading.sources,
        sources_text,
    ),
    "check_quotes": ReadingTool(
        "Check quotations",
        "Check that the quotations and citations of an answer are in the documents, before you give it.",
        quotes.CheckRequest,
        quotes.CheckAnswer,
        quotes.check_quotes,
        quotes.check_text,
    ),
}
