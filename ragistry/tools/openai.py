"""Answer calls of the tools in OpenAI's format, which Ollama, vLLM and most other servers use.

`SearchLibraryTool.schema`, and `Tool.schema` of each tool in `toolbox.READING`, return the entries for ``tools`` of a
request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragistry.tools.search import SEARCH_LIBRARY
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.tools.toolbox import READING
from ragistry.utils.quoting import visible_line


def answer_tool_call(tool: SearchLibraryTool, call: Any) -> dict[str, Any]:
    """Answer one entry of a response's ``tool_calls`` with a message. Never raises.

    Args:
        tool: The tool.
        call: ``{"id": …, "function": {"name": …, "arguments": JSON or mapping}}``. A malformed call gets an error as
            its answer.
    """
    if not isinstance(call, Mapping):
        call = {}
    function = call.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    called = READING.get(name, SEARCH_LIBRARY if name == tool.name else None) if isinstance(name, str) else None
    if called is None:
        content = f"Error: unknown function {visible_line(repr(name))}; call {tool.name}"
    else:
        content = called.call(tool.reach, function.get("arguments") or {}).text
    return {"role": "tool", "tool_call_id": call.get("id") or "", "content": content}
