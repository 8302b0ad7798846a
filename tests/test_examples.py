"""The programs of examples/ run on the project's own documents, and print what they promise.

What they show to write (own_*.py) goes through the conformance suites in the how-to pages that show it: `test_docs`.
"""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from examples import agent_with_tools, compare_techniques
from ragistry import open_workspace
from ragistry.errors import SourceNotFoundError
from ragistry.testing.openai_server import OpenAIServer
from tests.conftest import ROOT
from tests.messages import refused

FILES = {
    "handbook": ("configuration.md", "security.md", "operations/backups.md", "operations/troubleshooting.md"),
    "garden": ("powdery-mildew.txt", "soil-ph.txt", "watering.txt"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a part of what `ragistry demo` ingests."""
    root = tmp_path_factory.mktemp("demo")
    with open_workspace(root) as workspace:
        for collection, files in FILES.items():
            workspace.library.create_collection(collection, f"The {collection}")
            for name in files:
                text = (ROOT / "fixtures" / collection / name).read_text(encoding="utf-8")
                workspace.library.ingest_text(text, name, collection)
    return root


def run(script: str, *words: object) -> str:
    """What an example prints, in a process of its own."""
    command = [sys.executable, str(ROOT / "examples" / script), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run the main function of an example in this process, and return what it prints."""

    def run_main(module: ModuleType, *words: object) -> str:
        monkeypatch.setattr(sys, "argv", [f"{module.__name__}.py", *map(str, words)])
        module.main()
        return capsys.readouterr().out

    return run_main


def test_pipeline_sends_codes_to_words_and_questions_to_both(folder: Path) -> None:
    printed = run("compose_pipeline.py", folder)
    assert printed.startswith("flowchart TD\n")
    for part in (
        "'LNT-1042' by bm25,", '"how do I restore yesterday\'s backup?" by hybrid,', "'ZZ-9999' by bm25 > hybrid,",
        "  bm25 ", " operations/troubleshooting.md",
    ):  # fmt: skip
        assert part in printed


@pytest.fixture(scope="module")
def questions(folder: Path) -> int:
    """Write the questions about the workspace, and return their number."""
    lines = (ROOT / "fixtures" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    known = [query for query in map(json.loads, lines) if query["source_file"] in sum(FILES.values(), ())]
    rows = [json.dumps({"text": query["text"], "sources": [query["source_file"]]}) for query in known]
    (folder / "questions.jsonl").write_text("\n".join(rows), encoding="utf-8")
    return len(rows)


def test_techniques_are_compared_on_questions_of_the_library(
    folder: Path, questions: int, main: Callable[..., str]
) -> None:
    printed = main(compare_techniques, folder)
    assert f"7 documents, {questions} judged queries" in printed
    for technique in ("naive", "bm25", "hybrid", "routed"):
        assert f"| {technique} |" in printed
    assert re.search("^(Use|Keep|Not decided|These documents)", printed, re.MULTILINE)


@pytest.mark.slow
def test_notebook_shows_tables_and_progress(folder: Path, questions: int, tmp_path: Path) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    (tmp_path / "demo-workspace").symlink_to(folder)
    notebook = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells), "it is stored without outputs"
    nbclient.NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(tmp_path)}}).execute()
    opened, found, document, compared, _ = cells
    for cell, text in (
        (opened, "handbook"),
        (found, "operations/backups.md"),
        (document, "operations/backups.md"),
        (compared, "mine"),
    ):
        [shown] = [one.data for one in cell.outputs if one.output_type == "execute_result"]
        assert text in shown["text/html"]
        assert len(shown["text/plain"]) < 300
    written = "".join(one.text for one in compared.outputs if one.output_type == "stream")
    assert f"\rasking: {3 * questions} of {3 * questions}" in written, "a line that changes"
    assert "\n" not in written


def test_agent_calls_the_tool_and_answers_from_what_it_read(folder: Path, main: Callable[..., str]) -> None:
    printed = main(agent_with_tools, folder)
    assert "assistant: calls search_library" in printed
    assert "tool: [Knowledge base results for" in printed
    assert "assistant: See operations/backups.md" in printed
    with OpenAIServer("small", accent="vllm") as server:
        server.answers.append("Read the manual.")
        assert "assistant: Read the manual.\n" in main(agent_with_tools, folder, f"{server.url}/v1", "small")
        [asked] = server.asked("/v1/chat/completions")
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["search_library"]


def test_web_application_searches_and_reports_errors(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testclient = pytest.importorskip("fastapi.testclient")
    from examples.fastapi_app import app

    monkeypatch.setenv("RAGISTRY_WORKSPACE", str(folder))
    with testclient.TestClient(app) as client:
        found = client.get("/search", params={"q": "restore a backup", "top_k": 2}).json()
        assert found["documents"][0]["metadata"]["source_file"] == "operations/backups.md"
        assert len(found["documents"]) == 2
        assert [one["name"] for one in client.get("/collections").json()] == ["handbook", "garden"]
        for wrong in ({"q": " "}, {"q": "x", "collection": "gardn"}, {"q": "x", "technique": "bm52"}):
            answer = client.get("/search", params=wrong)
            assert (answer.status_code, list(answer.json())) == (400, ["error"])
        assert client.get("/search", params={"q": "x", "top_k": 0}).status_code == 422


PIPELINES = {
    "hybrid_rerank": ["operations/backups.md"],
    "parent_document": ["operations/backups.md"],
    "multi_query": ["operations/backups.md"],
    "routing": ["handbook operations/backups.md", "garden soil-ph.txt"],
    "fallback": ["restore a backup? → ", "Iceland → web"],
    "filters": ["'garden'} ", "'$lt': 1}} ", " configuration.md"],
}


@pytest.mark.parametrize("name", PIPELINES)
def test_pipeline_has_at_most_20_lines_and_finds_what_it_should(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ROOT / "examples" / "pipelines" / f"{name}.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 20
    monkeypatch.setattr(sys, "argv", [path.name, str(folder)])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    for text in PIPELINES[name]:
        assert text in printed


def test_every_pipeline_is_run() -> None:
    files = (ROOT / "examples" / "pipelines").glob("[!_]*.py")
    assert sorted(path.stem for path in files) == sorted(PIPELINES)


def test_example_needs_a_workspace(main: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with refused(SourceNotFoundError, "'demo-workspace'"):
        main(compare_techniques)


def generate(prompt: str, schema: Any = None) -> str:
    """Find passages about milk relevant."""
    is_relevant = "milk" in prompt.split("Passage:")[1]
    found = (
        {"relevance": "relevant", "support": "full"} if is_relevant else {"relevance": "irrelevant", "support": "none"}
    )
    return json.dumps({"answer": "", "usefulness": 5 if is_relevant else 1} | found)


@pytest.mark.parametrize("entry", [{"use": "rm3:RM3"}, {"use": "self_rag:SelfRAG", "generator": generate}])
def test_removed_techniques_are_short_ones_of_ones_own(
    folder: Path, entry: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ROOT / "examples" / f"{entry['use'].partition(':')[0]}.py"
    assert sum(bool(line.strip()) for line in source.read_text(encoding="utf-8").splitlines()) <= 40
    monkeypatch.syspath_prepend(str(source.parent))
    with open_workspace(folder) as workspace:
        technique = workspace.build(entry | {"base": "hybrid"})
        found = workspace.search("white powder on squash leaves", technique, collection="garden", top_k=3).documents
    assert found[0].metadata["source_file"] == "powdery-mildew.txt"
    assert len(found) == len({one.id for one in found}) <= 3
    assert found == sorted(found, key=lambda one: -one.score)
