"""The programs of examples/ run on the project's own documents, and print what they promise.

What they show to write (own_*.py) goes through the conformance suites in the how-to pages that show it: `test_docs`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ragistry import open_workspace

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a part of what `ragistry demo` takes in."""
    root = tmp_path_factory.mktemp("demo")
    with open_workspace(root) as workspace:
        for collection, files in {
            "handbook": ("configuration.md", "security.md", "operations/backups.md", "operations/troubleshooting.md"),
            "garden": ("powdery-mildew.txt", "soil-ph.txt", "watering.txt"),
        }.items():
            workspace.library.create_collection(collection, f"The {collection}")
            for name in files:
                text = (ROOT / "fixtures" / collection / name).read_text(encoding="utf-8")
                workspace.library.ingest_text(text, name, collection)
    return root


def run(script: str, *words: object) -> str:
    """What an example prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / script), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_pipeline_sends_codes_to_words_and_questions_to_both(folder: Path) -> None:
    printed = run("compose_pipeline.py", folder)
    assert printed.startswith("flowchart TD\n")
    assert "'LNT-1042' by bm25," in printed
    assert '"how do I restore yesterday\'s backup?" by hybrid,' in printed
    assert "'ZZ-9999' by bm25 > hybrid," in printed
    assert "  bm25 " in printed
    assert " operations/troubleshooting.md" in printed


def test_techniques_are_compared_on_the_questions_that_the_library_can_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from examples import compare_techniques

    known = {"operations/backups.md", "operations/troubleshooting.md", "configuration.md", "security.md",
             "powdery-mildew.txt", "soil-ph.txt", "watering.txt"}  # fmt: skip
    lines = (ROOT / "fixtures" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    answered = [query for query in map(json.loads, lines) if query["source_file"] in known]
    questions = [{"text": query["text"], "sources": [query["source_file"]]} for query in answered]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["compare_techniques.py", str(folder)])
    compare_techniques.main()
    printed = capsys.readouterr().out
    assert f"7 documents, {len(answered)} judged queries" in printed
    for technique in ("naive", "bm25", "hybrid", "routed"):
        assert f"| {technique} |" in printed
    assert "winner: " in printed


def test_an_agent_calls_the_tool_and_answers_from_what_it_read(folder: Path) -> None:
    printed = run("agent_with_tools.py", folder)
    assert "assistant: calls search_library" in printed
    assert "tool: [Knowledge base results for" in printed
    assert "assistant: See operations/backups.md" in printed


class Model(BaseHTTPRequestHandler):
    """An OpenAI-compatible server whose model calls the tool that it is offered, then repeats what it read."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last, [tool] = asked["messages"][-1], asked["tools"]
        if last["role"] == "user":
            call = {"name": tool["function"]["name"], "arguments": json.dumps({"query": last["content"]})}
            said = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": call}]}
        else:
            said = {"role": "assistant", "content": f"{asked['model']} read {len(last['content'])} characters"}
        body = json.dumps({"choices": [{"message": said}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


@pytest.fixture
def model() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_a_real_model_takes_the_place_of_the_script(folder: Path, model: str) -> None:
    printed = run("agent_with_tools.py", folder, model, "small")
    assert "assistant: calls search_library" in printed
    assert "assistant: small read " in printed


def test_a_web_application_searches_and_says_what_is_wrong(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_an_example_without_a_workspace_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "compose_pipeline.py")],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode != 0
    assert "no such folder: 'demo-workspace'" in done.stderr
