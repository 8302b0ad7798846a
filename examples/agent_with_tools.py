"""An agent that answers from the library: it calls search_library, reads the result, and names its source.

usage: python examples/agent_with_tools.py [WORKSPACE] [URL MODEL]

Without URL and MODEL, a script replaces the model, so that this runs offline. Otherwise it uses a model with OpenAI's
protocol: `http://127.0.0.1:11434/v1 qwen3` is one of Ollama's; vLLM and llama.cpp have such servers too.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx

from ragistry import open_workspace
from ragistry.tools.openai import answer_tool_call
from ragistry.tools.search_library import SearchLibraryTool

QUESTION = "How do I restore yesterday's backup?"
Message = dict[str, Any]
Model = Callable[[list[Message], list[Message]], Message]


def scripted(messages: list[Message], tools: list[Message]) -> Message:
    """What a model would do: call the tool with the question, then answer from the first passage."""
    if messages[-1]["role"] == "user":
        call = {"name": tools[0]["function"]["name"], "arguments": json.dumps({"query": messages[-1]["content"]})}
        return {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": call}]}
    first = re.search(r"^1\. (.+)\n(?:\s+#.*\n|\s*\n)*\s+(.+)", messages[-1]["content"], flags=re.MULTILINE)
    said = f"See {first[1]}: {first[2]}" if first else "The library does not say."
    return {"role": "assistant", "content": said}


def served(url: str, model: str, messages: list[Message], tools: list[Message]) -> Message:
    """The next message of a model behind an OpenAI-compatible server."""
    body = {"model": model, "messages": messages, "tools": tools}
    answer = httpx.post(f"{url}/chat/completions", json=body, timeout=120).raise_for_status().json()
    message: Message = answer["choices"][0]["message"]
    return message


def run(tool: SearchLibraryTool, model: Model, question: str, most_calls: int = 5) -> list[Message]:
    """The conversation, until the model answers without a call."""
    messages: list[Message] = [{"role": "user", "content": question}]
    for _ in range(most_calls):
        messages.append(model(messages, [tool.schema()]))
        calls = messages[-1].get("tool_calls") or []
        if not calls:
            break
        messages += [answer_tool_call(tool, call) for call in calls]
    return messages


def main() -> None:
    folder, *server = sys.argv[1:] or ["demo-workspace"]
    with open_workspace(folder) as workspace:
        model = partial(served, server[0], server[1]) if server else scripted
        for message in run(SearchLibraryTool(workspace.library), model, QUESTION):
            calls = [call["function"]["arguments"] for call in message.get("tool_calls") or []]
            print(f"{message['role']}: {message.get('content') or f'calls search_library {calls}'}\n")


if __name__ == "__main__":
    main()
