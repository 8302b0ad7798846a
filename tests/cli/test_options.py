"""Every option of every command has an effect, or is refused in one line."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from ragistry import open_workspace
from ragistry.cli.app import app, load_command
from ragistry.evaluation import Dataset, Text, compare, write_beir
from ragistry.library.asked import log_question
from ragistry.library.backup import write_backup
from tests.cli.conftest import Run
from tests.evaluation.small_sets import QUESTIONS, TOPICS
from tests.library.git_trees import commit

COMPARE = "compare -t naive -t hybrid"
LINES = [
    "ingest elsewhere/tea.txt -c more --create x", "ingest elsewhere/tea.txt -c notes", "init new",
    "ingest folder -c more --create x", "ingest - -c notes --name a.md",
    "ingest --list", "ingest --delete tea.txt -c notes --yes", "collections list", "collections add more",
    "collections rename notes more", "collections describe notes", "collections delete notes --yes", "sources list",
    "sources move tea.txt --from notes --to econ --yes --overwrite", "sources set tea.txt year=2026 -c notes",
    "sources delete tea.txt -c notes --yes", "repo add other", "repo list", "repo search clone 'wet liquid'",
    "repo search clone 'wet liquid' --json", "repo search clone 'wet liquid' --result 2", "repo update",
    "repo remove clone --yes", "search 'tea liquid'", "search 'tea liquid' --json", "search 'tea liquid' --result 2",
    "grep w.t", "grep w.t --count", "grep w.t --sources-only", "grep w.t --context 1", "read guide.md --line 4",
    "read guide.md --place '{\"line\": 6}'", "outline guide.md", "check answer.md", "ask 'tea liquid'",
    "why 'tea liquid' --expect tea.txt", "route water", "techniques",
    "techniques --available", "config models", "config", "doctor", "verify", "repair",
    "repair --discard", "reembed", "backup all.zip", "restore all.zip new",
    "store copy local '{use: chroma, path: other}'", "serve token me", "mcp skill agents",
    "gate better.json worse.json", "plan", "plan better.json",
    f"{COMPARE} --dataset topics", f"{COMPARE} --queries asked.jsonl",
    "compare --dataset topics --run theirs=their.run", "testset make set", "testset make set --from folder",
    "testset make set --from asked", "testset make set --kind sentence", "testset judge set",
]  # fmt: skip
VALUES: dict[str, object] = {
    "--answers": "kept.db", "--exclude": "guide.md",
    "--baseline": "naive", "--before": 1, "--chunk-size": 60, "--collection": "econ",
    "--collections": "notes", "--column": 3, "--context": 1, "--create": "About x", "--dataset": "topics",
    "--delete": "tea.txt", "--depth": 150, "--description": "About y", "--display-name": "Y", "--embed-model": "minilm",
    "--expect": "guide.md", "--expires": "2999-01-01", "--from": "folder",
    "--grid": "naive.top_k=1,2", "--html": "out.html", "--json": "out.json", "--kind": "description", "--limit": 1,
    "--line": 3, "--lines": 1, "--margin": 0.2, "--markdown": "out.md", "--measure": "RR@3",
    "--meta": "year=2026", "--min-effect": 0.9, "--model": "none", "--name": "other.md",
    "--place": '{"line": 3}', "--previous": "how is tea made?", "--queries": "asked.jsonl", "--ray-address": "auto",
    "--result": 1, "--rights": "write", "--run": "more=their.run",
    "--runs": "runs", "--seed": 7, "--source": "guide*", "--split": "other", "--technique": "bm25",
    "--to": "notes", "--top-k": 1, "--tune-on": 0.5, "--where": '{"year": 2020}',
}  # fmt: skip
FAILING = {
    "backup all.zip",
    "check answer.md",
    "ingest elsewhere/tea.txt -c notes",
    "gate better.json worse.json",
    "testset judge set",  # there is no terminal
}
SAME = {
    "check answer.md": ["--strict"],  # its quotation is cited
    "init new": ["--yes"],  # nobody is asked without a terminal
    "ingest elsewhere/tea.txt -c notes": ["--meta"],  # it fails
    "read guide.md --place '{\"line\": 6}'": ["--before"],  # the place begins with the first line
    "why 'tea liquid' --expect tea.txt": ["--previous"],  # it is found anyway
    "ingest elsewhere/tea.txt -c more --create x": ["--replace"],  # nothing has the name
    "ingest - -c notes --name a.md": ["--replace"],
    "ingest folder -c more --create x": ["--prune", "--replace"],  # the collection is new
    "store copy local '{use: chroma, path: other}'": ["--prune"],
    # The model answers the same again.
    f"{COMPARE} --dataset topics": ["--no-answers"],
    f"{COMPARE} --queries asked.jsonl": ["--no-answers"],
}
"""Options that change nothing here, because what they ask for is so already."""
WRITTEN = (".json", ".jsonl", ".md", ".html", ".yaml", ".run", ".tsv")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which every command has something to do; its copy ``kept`` does not change."""
    root = tmp_path_factory.mktemp("shelf") / "shelf"
    more = "{0} were rare. Old books about {0} describe long journeys. Later writers drew maps of places with {0}."
    texts = {
        f"folder/{name}.txt": f"{text} {more.format(name)}\n\n{more.format(f'modern {name}')}"
        for name, text in TOPICS.items()
    }
    texts |= {
        "folder/guide.md": "---\ndescription: a note on water and its many uses\n---\n"
        "# A long guide to all the plants\n\nWater is wet.\nThe w.t here.\nwatered plants and w.ts grow.\n\n"
        "## How to dry leaves of plants\n\nLeave them alone.\n",
        "folder/other.md": "# Rules for the winter months\n\nMore w.ts.\n\n## Where to keep dry wood\n\nAway.\n",
        "folder/third.md": "# Notes about the W.T\n\nNone.\n",
        "folder/package-lock.json": '{"name": "water", "lockfileVersion": 3}',
        "elsewhere/tea.txt": "Tea needs water.",
        "answer.md": "> A colony of honey bees (bees.txt)\n",
        "asked.jsonl": "".join(
            json.dumps({"text": text, "sources": [f"notes/{name}.txt"], "kind": "asked"}) + "\n"
            for name, text in QUESTIONS.items()
            if name != "violin"
        ),
        "their.run": "".join(f"q-{topic} Q0 d-{topic} 1 1.0 x\n" for topic in QUESTIONS),
        "config/documents.yaml": "log_questions: true\nembed_model: ragistry.testing.hashed:HashingEmbedder\n",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    for name in ("clone", "other"):
        (root / name).mkdir()
        commit(root / name, {"_index.md": "# Water\n\nIt is wet.\n", "b.md": "# Cold water\n\nIt is cold.\n"})
    corpus = [Text(f"d-{topic}", topic, text) for topic, text in TOPICS.items()]
    qrels = {f"q-{topic}": {f"d-{topic}": 1} for topic in QUESTIONS}
    write_beir(
        Dataset("topics", corpus, {f"q-{topic}": text for topic, text in QUESTIONS.items()}, qrels), root / "topics"
    )
    judged = (root / "topics" / "qrels" / "test.tsv").read_text().splitlines(keepends=True)
    (root / "topics" / "qrels" / "other.tsv").write_text("".join(judged[:6]))
    with open_workspace(root) as workspace:
        library = workspace.library
        library.create_collection("notes", "Notes about tea and water")
        library.create_collection("econ", "Economy")
        library.ingest_folder(root / "folder", "notes")
        library.ingest_file(root / "folder" / "tea.txt", "econ")
        workspace.repositories.add(root / "clone", None, None, None)
        write_backup(root / "all.zip", root, workspace.store, workspace.repositories.root)
        log_question(library, "when does dough rise?", "shell")
        log_question(library, "how hot should tea be?", "shell")
        log_question(library, "and bread?", "http", limited=True)
        found = compare(["naive", "bm25"], root / "topics", "nDCG@10", workspace=workspace, answers=root / "kept.db")
    for name, value in (("better", 1.0), ("worse", 0.5)):
        report = found.to_json()
        for one in report["techniques"].values():
            one["per_query"]["nDCG@10"] = dict.fromkeys(one["per_query"]["nDCG@10"], value)
        (root / f"{name}.json").write_text(json.dumps(report))
    (root / "folder" / "violin.txt").unlink()
    (root / "folder" / "link").symlink_to(root / "elsewhere")
    shutil.copytree(root, root.with_name("kept"), symlinks=True)
    return root


def options_of(line: str) -> list[Any]:
    """The options of a command, without those that say how any command runs."""
    command: Any = typer.main.get_command(app)
    for word in shlex.split(line):
        if not hasattr(command, "commands"):
            break
        command = load_command(command.commands[word])
    options = [one for one in command.params if one.param_type_name == "option"]
    return [one for one in options if one.name not in ("debug", "help", "workspace")]


def masked(lines: set[str]) -> set[str]:
    """Lines without figures and checksums, which are those of times and drawn names in some."""
    return {re.sub(r"[-+\N{MINUS SIGN}0-9a-f., ]+", "0", line) for line in lines}


@pytest.mark.parametrize("line", LINES)
def test_option_has_an_effect_or_is_refused(
    ragistry: Run, shelf: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr("ragistry.cli.ingest.changes_in", lambda _: iter([set[str]()]))
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setenv("HOME", str(shelf))

    def observed(*words: object) -> tuple[int, str, set[str]]:
        """The exit code, the errors, and every line that was printed or is written somewhere."""
        shutil.rmtree(shelf)
        shutil.copytree(shelf.with_name("kept"), shelf, symlinks=True)
        monkeypatch.chdir(shelf)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"# A\n\nA text.")))
        done = ragistry(*words)
        files = [path for path in shelf.rglob("*") if ".ragistry" not in path.parts]
        read = [*files, *shelf.glob(".ragistry/evaluation/reports/*")]
        texts = [path.read_text(errors="replace") for path in read if path.suffix in WRITTEN]
        lists = [
            ragistry(*words, "--json").out for words in (("sources", "list"), ("collections", "list"), ("repo", "list"))
        ]
        printed = "\n".join([done.out, done.err, *map(str, files), *texts, *lists]).replace(", ", "\n")
        return done.code, done.err, {one for one in printed.splitlines() if not re.search(r"_bytes|seconds", one)}

    words = shlex.split(line)
    code, error, lines = observed(*words)
    assert code == 0 or line in FAILING, error
    again, silent = observed(*words)[2], []
    for option in options_of(line):
        if option.name == "engine" or ({*option.opts} & {*words} and not option.multiple):
            continue
        value = [] if option.is_flag else [VALUES[option.opts[0]]]
        code, error, found = observed(*words, option.opts[0], *value)
        is_refused = code > 0 and error.startswith("error: ") and error.count("\n") == 1
        if not is_refused and lines & again <= found and masked(found) <= masked(lines | again):
            silent.append(option.opts[0])
    assert {*silent} <= {*SAME.get(line, ())}
