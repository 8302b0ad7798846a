"""``search_library`` for models that call functions as OpenAI's do: Ollama, vLLM, and most others too.

`SearchLibraryTool.schema` is the entry of a request's ``tools``; here are the calls of its response answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragistry.tools.search_library import SearchLibraryTool
from ragistry.utils.quoting import one_line


def answer_tool_call(tool: SearchLibraryTool, call: Any) -> dict[str, Any]:
    """The message that answers one entry of a response's ``tool_calls``, given as a mapping. Never raises.

    ``call``: ``{"id": …, "function": {"name": …, "arguments": JSON or mapping}}``; what is none is answered too.
    """
    if not isinstance(call, Mapping):
        call = {}
    function = call.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    if isinstance(function, Mapping) and name == tool.name:
        content = tool.handle(function.get("arguments") or {})
    else:
        content = f"Error: there is no function {one_line(repr(name))}; call {tool.name}"
    return {"role": "tool", "tool_call_id": call.get("id") or "", "content": content}
