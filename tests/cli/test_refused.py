"""Commands that are refused: one line with the value and the remedy, an exit code, and nothing changed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ragistry import open_workspace
from ragistry.evaluation import write_beir
from tests.cli.conftest import TEA, Done, Run
from tests.evaluation.small_sets import topics

USED_WRONGLY = [  # exit code 2
    "search", "serch tea", "search tea --colection x", "search tea --top-k many",
    "search '-\"word\"'", "ask '-5 degrees'", "--nothing", "ingest",
    "ingest tea.txt --list", "ingest --delete tea.txt --yes", "ingest --list --prune", "ingest --list --create x",
    "ingest --list --watch", "ingest --list --yes", "ingest tea.txt -y", "ingest --delete a -c n --prune",
    "ingest tea.txt --create x", "ingest tea.txt --prune", "ingest tea.txt --follow-links", "ingest tea.txt --watch",
    "ingest https://example.com/ --watch", "ingest https://example.com/ --prune", "ingest . --watch --json",
    "ingest - --collection notes", "ingest . --name tea.md --collection notes", "ingest ''", "ingest tea.txt ' '",
    "testset make out --from ''", "search tea --workspace ''", "sources move a.txt --from x --to y -y",
    "search tea --json --full", "search tea --trace --json",
    "techniques new newest", "mcp --port 8765", "mcp --name x", "mcp --http -p -1", "ui --port 99999",
    "ui --name https://library.example.org", "ui --name 'a b'", "ui --name me@host", "compare",
    "compare --dataset topics --json - --html -", "compare --dataset topics --json - --details",
    "compare --dataset topics --answers r --no-answers", "compare --dataset topics --queries q.jsonl",
    "compare --queries q.jsonl --split dev", "compare --dataset ir_datasets:a/b --split dev",
    *(f"compare --dataset topics --run a=b {useless}" for useless in (
        "--chunk-size 500", "--embed-model minilm", "--grid chunk_size=9", "--answers r", "--no-answers")),
    "compare --queries q.jsonl -t bm25 --tune-on 0.5", "compare --queries q.jsonl -t bm25 --margin 0.1",
    "gate", "gate a.json", "gate a.json b.json c.json", "gate a.json b.json --min-effect -1",
    "plan a.json b.json", "plan --html x.html", "gate a.json b.json --json x.json",
    "repo search a b --json --result 1",
    "serve --port 9000 token me", "config models --json check topics", "ingest tea.txt -c notes --allow-private",
    "testset make set --from asked --kind sentence", "testset make set --from . --collection notes",
    "testset make set --kind sentence --model m",
    "compare --dataset topics --tune-on 1.5", "route",
    "testset make", "testset make set --kind titel", "testset make set --kind question",
    "search tea --top-k 0", "search tea --top-k 10000", "search tea --where '{page: 3}'",
    "grep tea --count --context 1", "grep tea --count -l", "store copy local '[local]'",
    "store copy local '{use: chroma, host: \"http://bob:hunter2@h\"}'",
]  # fmt: skip
CANNOT_BE_DONE = [  # exit code 1
    "search ''", "search tea --technique naiv",
    "search tea --collection note", "search tea --where {}",
    "search tea --workspace nowhere", "--workspace tea.txt collections list", "ingest missing.txt -c notes",
    "ingest missing.txt -c new", "ingest tea.txt missing -c new --create 'A shelf'",
    "ingest empty -c new --create 'A shelf'", "ingest tea.txt --collection note", "ingest tea.txt",
    "ingest --delete tea.txt -c notes", "collections add notes", "collections delete notes", "collections delete nots",
    "sources delete tea.txt -c notes", "sources delete te.txt -c notes", "compare --dataset nowhere -t bm25",
    "compare --dataset topics -t bm52", "compare --dataset topics -t bm25 --grid bm25.k",
    "compare --dataset topics -t bm25 -m ndcg", "compare --dataset topics -t bm25 --baseline naive",
    "compare --dataset topics -t bm25 --grid chunk_size=100,200 --chunk-size 300",
    "compare --dataset topics -t bm25 --html topics",
    "route tea -t naive", "route tea -t nave", "route ' '",
    "testset make topics", "testset make set --collection econ", "testset make set --from nowhere",
    "repo add nowhere", "repo add empty", "repo update nothing", "repo remove nothing --yes",
    "repo search nothing tea", "store copy local '{use: local}'", "store copy chroma local",
    "store copy nowhere local", "store copy local '{use: chroma, pfad: x}'",
    "store copy local '{use: chroma, path: \"${NO_SUCH}\"}'",
    "mcp skill tea.txt",
    "-w empty store copy local chroma", "-w empty backup all.zip",
]  # fmt: skip
CASES = [(line, 2) for line in USED_WRONGLY] + [(line, 1) for line in CANNOT_BE_DONE]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that no command changes, with files of several kinds in its folder."""
    root = tmp_path_factory.mktemp("shelf")
    (root / "empty").mkdir()
    (root / "tea.txt").write_text(TEA, encoding="utf-8")
    write_beir(topics(), root / "topics")
    (root / "q.jsonl").write_text('{"text": "tea", "sources": ["tea.txt"]}', encoding="utf-8")
    with open_workspace(root) as workspace:
        workspace.library.create_collection("notes", "Notes about tea")
        workspace.library.create_collection("econ")
        workspace.library.ingest_file(root / "tea.txt", "notes")
    return root


def files(root: Path) -> dict[str, int]:
    return {
        str(path.relative_to(root)): path.stat().st_size for path in root.rglob("*") if ".ragistry" not in str(path)
    }


@pytest.mark.parametrize(("line", "code"), CASES, ids=[line for line, _ in CASES])
def test_refusal_is_one_line(ragistry: Run, shelf: Path, monkeypatch: pytest.MonkeyPatch, line: str, code: int) -> None:
    monkeypatch.chdir(shelf)
    before = files(shelf)
    done = ragistry(*shlex.split(line))
    done.refused(code)
    assert "hunter2" not in done.err
    assert files(shelf) == before


READING = [
    "collections list", "collections describe notes", "collections rename notes letters",
    "collections delete notes --yes", "ingest --list", "ingest --delete tea.txt --collection notes", "route tea",
    "search tea", "sources list", "sources move tea.txt --from notes --to letters",
    "sources delete tea.txt --collection notes --yes", "testset make set", "verify", "repair", "reembed",
]  # fmt: skip


@pytest.mark.parametrize("line", READING)
def test_reading_needs_a_workspace(ragistry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    done = ragistry(*shlex.split(line))
    done.refused(1, "`ragistry ingest FOLDER --collection NAME`")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "documents.yaml").touch()
    below = tmp_path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    done = ragistry(*shlex.split(line))
    done.refused(1, "'.'", "'..'", "`-w ..`")
    assert list(below.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PermissionError(13, "Permission denied", "some/file"), "'some/file': Permission denied"),
        (OSError(36, "File name too long", b"\xe9"), r"'\udce9': File name too long"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (TimeoutError("too\nslow"), "too slow"),
        (ConnectionResetError(), "ConnectionResetError"),
    ],
)
def test_system_error_is_one_line(ragistry: Run, monkeypatch: pytest.MonkeyPatch, error: OSError, line: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("ragistry.workspace.open_workspace", refuse)
    assert ragistry("config") == Done(1, "", f"error: {line}; `--debug` shows where\n")
    with pytest.raises(type(error)):
        ragistry("config", "--debug")
