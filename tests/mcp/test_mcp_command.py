"""``ragistry mcp``, used wrongly: a line that says what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ragistry.cli import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--collection", "te"], "no collection 'te'; did you mean 'tea'?"),
        (["--technique", "bm52"], "no technique 'bm52'; did you mean 'bm25'?"),
        (["--http", "--host", "0.0.0.0"], "--host '0.0.0.0' lets other machines in; set RAGISTRY_MCP_TOKEN"),
        (["--http", "--port", "99999"], "Invalid value for '--port'"),
    ],
)
def test_what_is_wrong_is_said_on_one_line(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    code, out, err = run(folder, monkeypatch, capsys, words)
    assert code in (1, 2)
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


def test_without_the_sdk_the_extra_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    code, _, err = run(folder, monkeypatch, capsys, [])
    assert code == 1
    assert err == "error: `ragistry mcp` needs the package 'mcp'; pip install 'ragistry[mcp]'\n"


def test_no_model_and_no_vector_engine_is_loaded_before_the_first_search(folder: Path) -> None:
    script = """
import subprocess
import sys
from ragistry import open_workspace
from ragistry.mcp import server, tools
from ragistry.tools.search_library import SearchLibraryTool
heavy = ("onnxruntime", "tokenizers", "chromadb", "httpx")
with open_workspace(sys.argv[1]) as opened:
    tool = SearchLibraryTool(opened.library)
    assert server.build_server(tool) and len(tools.listed(tool)) == 3
    print([name for name in heavy if name in sys.modules])
    tool.handle({"query": "tea"})
    print("onnxruntime" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["[]", "True"]


def run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> tuple[object, str, str]:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["ragistry", "mcp", *words])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main()
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err
