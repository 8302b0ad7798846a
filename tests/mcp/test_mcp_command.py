"""``ragistry mcp``, used wrongly: a line that says what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Run, ragistry  # noqa: F401, the fixture


def test_invalid_options_are_reported_in_one_line(folder: Path, ragistry: Run) -> None:  # noqa: F811
    ragistry("mcp", "--collection", "te").refused(1, "'te'", "'tea'")
    ragistry("mcp", "--technique", "bm52").refused(1, "'bm52'", "'bm25'")
    ragistry("mcp", "--http", "--host", "0.0.0.0").refused(1, "--host '0.0.0.0'", "RAGISTRY_MCP_TOKEN")
    ragistry("mcp", "--http", "--port", "99999").refused(2, "--port")


def test_no_model_and_no_vector_engine_is_loaded_before_the_first_search(folder: Path) -> None:
    script = """
import subprocess
import sys
from ragistry import open_workspace
from ragistry.mcp import server
from ragistry.tools.search_library import SearchLibraryTool
heavy = ("onnxruntime", "tokenizers", "chromadb", "httpx")
with open_workspace(sys.argv[1]) as opened:
    tool = SearchLibraryTool(opened.library)
    assert server.build_server(tool) and len(server.list_tools(tool).tools) == 8
    print([name for name in heavy if name in sys.modules])
    tool.handle({"query": "tea"})
    print("onnxruntime" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["[]", "True"]
