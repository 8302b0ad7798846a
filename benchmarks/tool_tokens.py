"""How many tokens do the tools for agents cost?

    python -m benchmarks.tool_tokens

For each MCP tool: the tokens of its name and description with those of its arguments, of its input schema as JSON, and
of the text and the structured content of a typical answer over ``fixtures/handbook``. The list of collections is not
counted, because the library decides how long it is. Tokens are those of the embedding model's tokenizer; `estimate`
counts more, so that an answer keeps its budget for every model.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragistry import open_workspace
from ragistry.mcp.tools import call, list_tools
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.tools.tokens import estimated_tokens

HANDBOOK = Path(__file__).resolve().parents[1] / "fixtures" / "handbook"
CALLS: Mapping[str, Mapping[str, Any]] = {
    "search_library": {"query": "how do I restore a backup?"},
    "search": {"query": "how do I restore a backup?"},
    "fetch": {},
    "grep": {"pattern": "lanternctl backup"},
    "read": {"source": "operations/backups.md", "line": 60, "lines": 20},
    "outline": {"source": "operations/backups.md"},
    "sources": {"name": "operations/*"},
    "check_quotes": {"answer": 'Restore "the last complete archive of the previous day" (operations/backups.md).'},
}
FIRST = ("search_library", "search", "fetch")
"""The tools before those that read texts."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the same; it is quick")
    parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, open_workspace(Path(folder)) as opened:
        opened.library.create_collection("handbook")
        opened.library.ingest_folder(HANDBOOK, "handbook")
        tool = SearchLibraryTool(opened.library)

        def tokens(text: str) -> int:
            return sum(opened.embedder.count_tokens([text[at : at + 500] for at in range(0, len(text), 500)]))

        found = call(tool, "search", CALLS["search"]).structured_content
        assert found is not None
        calls = {**CALLS, "fetch": {"id": found["results"][0]["id"]}}
        print("| tool | descriptions | as JSON schema | estimate | typical answer | structured |")
        print("|---|--:|--:|--:|--:|--:|")
        sums: dict[str, list[int]] = {"first three": [0, 0, 0], "all": [0, 0, 0]}
        for one in list_tools(tool):
            arguments = one.input_schema["properties"]
            words = " ".join(
                [one.name, one.description or "", *(str(each["description"]) for each in arguments.values())]
            )
            schema = json.dumps({"name": one.name, "description": one.description, "parameters": one.input_schema})
            counts = [tokens(words), tokens(schema), estimated_tokens(schema)]
            for name in ("all", *(["first three"] if one.name in FIRST else [])):
                sums[name] = [a + b for a, b in zip(sums[name], counts, strict=True)]
            told = call(tool, one.name, calls[one.name])
            [text] = told.content
            structured = json.dumps(told.structured_content)
            cells = [*counts, tokens(text.text), tokens(structured)]  # type: ignore[union-attr]
            print(f"| {one.name} | {' | '.join(f'{cell:,}' for cell in cells)} |", flush=True)
        for name, counts in sums.items():
            print(f"| {name} | {' | '.join(f'{cell:,}' for cell in counts)} | | |")


if __name__ == "__main__":
    main()
