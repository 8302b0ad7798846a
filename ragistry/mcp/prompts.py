"""The MCP prompts: requests that a person chooses in a client."""

from __future__ import annotations

from collections.abc import Mapping

from mcp import types

from ragistry.tools.failures import CallError

_TEXTS = {
    "answer_with_sources": "Answer from the document library: {question}\n\nSearch it with search_library, and with "
    "grep for names, numbers and quotations. Read the passages that you use. After each sentence, name its source and "
    "page in brackets, such as (guide.pdf, p. 3). Quote figures and rules word for word. Before you answer, pass your "
    "answer to check_quotes and correct what is not at its place. If the documents do not answer, say so.",
    "find_document": "Find the document in the library: {description}\n\nList names with sources, search with "
    "search_library, and look into candidates with outline. Answer with the names of the documents that fit, the best "
    "first, and what shows that they fit.",
}
PROMPTS = [
    types.Prompt(
        name="answer_with_sources",
        title="Answer with sources",
        description="Answer a question from the documents, with checked quotations.",
        arguments=[types.PromptArgument(name="question", description="The question.", required=True)],
    ),
    types.Prompt(
        name="find_document",
        title="Find a document",
        description="Find a document by what it is about.",
        arguments=[types.PromptArgument(name="description", description="What it is about.", required=True)],
    ),
]


def get_prompt(name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Write a prompt. Raises `CallError` if it does not exist, or its argument is missing."""
    prompt = next((one for one in PROMPTS if one.name == name), None)
    if prompt is None or not prompt.arguments:
        raise CallError(f"prompt {name[:100]!r} does not exist; existing prompts: {', '.join(_TEXTS)}")
    [argument] = prompt.arguments
    text = arguments.get(argument.name, "").strip()
    if not text:
        raise CallError(f"prompt {name!r} needs the argument {argument.name!r}; pass a text")
    content = types.TextContent(type="text", text=_TEXTS[name].replace(f"{{{argument.name}}}", text))
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])
