"""Options that exclude or need each other are refused before a workspace is opened; all other pairs are taken."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import typer.main

from ragistry import open_workspace
from ragistry.cli.app import app, load_command
from tests.cli.conftest import TEA, Run
from tests.cli.test_options import VALUES as KNOWN
from tests.cli.test_options import options_of
from tests.cli.test_refused import USED_WRONGLY

VALUES = KNOWN | {
    "--host": "127.0.0.1", "--port": 8000, "--name": "a.md", "--engine": "ray", "--root": "folder",
    "--concurrency": 2, "--queue": 2,
    "--timeout": 5, "--upload-megabytes": 5, "--workspace": ".", "--embed-model": "minilm",
}  # fmt: skip

OF_PATHS = [
    "--create", "--prune", "--follow-links", "--all", "--exclude", "--replace", "--name", "--meta", "--allow-private",
    "--watch", "--engine", "--ray-address",
]  # fmt: skip
EXCLUDED = {
    "search tea": ["--json --full", "--json --scores", "--json --trace", "--json --result", "--result --full"],
    "grep tea": ["--count --context", "--count --sources-only", "--context --sources-only"],
    "read tea.txt": ["--line --place"],
    "outline tea.txt": ["--chunks --line"],
    "repo search clone tea": ["--json --result"],
    "techniques": ["--available --workspace"],
    "sources list": ["--unsearchable --name", "--unsearchable --where"],
    "ingest folder -c notes": ["--json --watch", "--all --exclude"],
    "ingest --list": [f"--list {name}" for name in (*OF_PATHS, "--yes", "--delete")],
    "ingest --delete tea.txt -c notes": [f"--delete {name}" for name in (*OF_PATHS, "--list")],
    "testset make set": ["--from --collection", "--from --workspace", "--model --kind"],
    "testset make set --from folder": ["--model --kind"],
    "testset make set --from asked": [
        f"--from {name}" for name in ["--collection", "--kind", "--model"]
    ],
    "compare --dataset topics -t naive -t bm25": ["--dataset --queries", "--answers --no-answers"],
    "compare --queries q.jsonl -t naive -t bm25": [
        "--queries --dataset", "--queries --split", "--answers --no-answers",
    ],
    "compare --dataset topics": [
        f"--run {name}" for name in ("--chunk-size", "--embed-model", "--grid", "--answers", "--no-answers")
    ],
}  # fmt: skip
"""Options that exclude each other, by a call in which neither or only the first is given."""
NEEDED = {
    "ingest tea.txt": ["--create --collection", "--yes --delete", "--ray-address --engine"],
    "ingest --delete tea.txt": ["--delete --collection"],
    "sources move tea.txt --from notes --to econ": ["--yes --overwrite"],
    "testset make set --kind question": ["--kind --model"],
    "mcp": ["--host --http", "--port --http", "--name --http"],
}
"""Options that do nothing without another one, by a call that lacks the second."""
OPENING = [
    "search tea", "ask tea", "grep tea", "read tea.txt", "outline tea.txt", "check answer.md",
    "why tea --expect tea.txt", "route tea", "ingest folder -c notes",
    "ingest https://example.com - -c notes --name a.md",
    "collections list", "collections add new", "collections rename notes new", "collections describe notes",
    "collections delete notes", "sources list", "sources move tea.txt --from notes --to econ",
    "sources set tea.txt year=1 -c notes", "sources delete tea.txt -c notes", "repo add clone", "repo list",
    "repo update", "repo remove clone", "repo search clone tea", "techniques", "testset make set",
    "testset make set --from asked", "testset make set --from folder", "compare --dataset topics -t naive -t bm25",
    "compare --queries q.jsonl -t naive -t bm25", "compare --dataset topics --run a=topics.run --run b=topics.run",
    "serve token me", "mcp", "config",
    "doctor", "verify", "repair", "reembed", "backup all.zip", "store copy local chroma",
]  # fmt: skip
"""Calls that check their usage, and then open the workspace."""
PARSED = [
    "demo new", "init new", "restore all.zip new", "config models", "config models check folder",
    "mcp skill agents", "ui", "serve", "testset judge set", "gate a.json b.json", "plan",
]  # fmt: skip
"""Calls that do something else first."""


class Reached(BaseException):
    """The workspace would be opened now."""


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A workspace, with the files that the calls name."""
    for name in ("folder/a.md", "tea.txt", "answer.md", "topics/corpus.jsonl", "q.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(TEA, encoding="utf-8")
    (tmp_path / "topics.run").write_text("q Q0 d 1 1.0 x\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def workspace(shelf: Path) -> Path:
    with open_workspace(shelf) as opened:
        opened.library.create_collection("notes")
        opened.library.create_collection("econ")
        opened.library.ingest_file(shelf / "tea.txt", "notes")
    return shelf


@pytest.fixture
def reaches(ragistry: Run, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Whether a call is right, so that it opens the workspace or does without; else it is refused in one line."""

    def stop(*_: object, **__: object) -> None:
        raise Reached

    monkeypatch.setattr("ragistry.workspace.open_workspace", stop)

    def run(*words: str) -> bool:
        try:
            done = ragistry(*words)
        except Reached:
            return True
        assert done.code != 2 or (done.out, done.err.count("\n")) == ("", 1), (words, done)
        return done.code != 2

    return run


def with_values(line: str, *options: str) -> list[str]:
    """The words of a call with these options, each with a value unless it is there already or a flag."""
    words, known = (
        shlex.split(line),
        {name: one for one in options_of(line) for name in (*one.opts, *one.secondary_opts)},
    )
    for name in options:
        if name not in words:
            words += [name] if name in known and known[name].is_flag else [name, str(VALUES[name])]
    return words


def refused_lines() -> Iterator[tuple[list[str], list[str]]]:
    """Calls that are refused, each with what the error names."""
    for line, pairs in EXCLUDED.items():
        for pair in pairs:
            yield with_values(line, *pair.split()), pair.split()
    for line, pairs in NEEDED.items():
        for pair in pairs:
            yield with_values(line, pair.split()[0]), pair.split()


def test_pairs_that_exclude_or_need_each_other_are_refused_with_both_names(ragistry: Run, workspace: Path) -> None:
    for words, names in refused_lines():
        done = ragistry(*words)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), (words, done)
        assert all(name in done.err for name in names), (words, done.err)


def test_wrong_usage_is_refused_before_a_missing_workspace(ragistry: Run, shelf: Path) -> None:
    for words in [*(words for words, _ in refused_lines()), *map(shlex.split, USED_WRONGLY)]:
        done = ragistry(*words)
        assert (done.code, done.out[:6].strip()) in ((2, ""), (2, "Usage:")), (words, done)
    assert not (shelf / ".ragistry").exists()


@pytest.mark.parametrize("line", OPENING)
def test_every_other_pair_of_options_is_taken(reaches: Callable[..., bool], line: str) -> None:
    """Also: the table has every pair that is refused, although each of its options alone is not."""
    names = [one.opts[0] for one in options_of(line) if not {*one.opts} & {*shlex.split(line)}]
    single = [name for name in names if reaches(*with_values(line, name))]
    refused = {frozenset(pair) for pair in combinations(single, 2) if not reaches(*with_values(line, *pair))}
    table = {frozenset(pair.split()) for pair in EXCLUDED.get(line, ())}
    assert refused == {pair for pair in table if pair <= {*single}}


def test_every_command_is_tried() -> None:
    def leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[str]:
        command = load_command(command)
        below = getattr(command, "commands", {})
        if not below or (command.invoke_without_command and options_of(" ".join(words))):
            yield " ".join(words)
        for name, one in below.items():
            yield from leaves(one, (*words, name))

    tried = [*OPENING, *PARSED]
    assert [
        name
        for name in leaves(typer.main.get_command(app))
        if name and not any(f"{line} ".startswith(f"{name} ") for line in tried)
    ] == []
