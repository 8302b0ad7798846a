"""The MCP tools: ``search_library``, ``search`` and ``fetch`` for research connectors, and those that read texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import types

from ragistry.library.asked import log_question
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.tools.toolbox import TOOLS
from ragistry.utils.dataclass_json import adapter_of

_READS = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def list_tools(tool: SearchLibraryTool) -> list[types.Tool]:
    """List the tools with the current collections of documents.yaml."""
    functions = {name: one.schema()["function"] for name, one in TOOLS.items()}
    functions[tool.name] = tool.schema()["function"]
    return [
        types.Tool(
            name=name,
            title=one.title,
            description=functions[name]["description"],
            input_schema={**functions[name]["parameters"], "additionalProperties": False},
            output_schema=adapter_of(one.answer).json_schema(mode="serialization"),
            annotations=_READS,
        )
        for name, one in TOOLS.items()
    ]


def call(tool: SearchLibraryTool, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
    """Call a tool. Errors become texts for the model.

    Raises:
        KeyError: The tool does not exist.
    """
    if name in (tool.name, "search") and isinstance(query := arguments.get("query"), str):
        log_question(tool.library, query, "mcp", limited=tool.reach.limited)
    answer = TOOLS[name].call(tool.reach, arguments)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=answer.structured,
        is_error=answer.error,
    )
