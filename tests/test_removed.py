"""Names of 0.1 that were removed: what people have in files, scripts and fingers gets one line with the successor."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from ragistry import TechniqueRegistry, connect, open_workspace
from ragistry.cli.app import GROUPS
from ragistry.config.settings import DEFAULTS
from ragistry.errors import ConfigError, UnknownTechniqueError
from ragistry.http.errors import detail_of
from ragistry.server.app import create_app
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.utils.removed import REMOVED
from tests.cli.conftest import Run, ragistry  # noqa: F401, a fixture
from tests.conftest import Corpus
from tests.serving import served

TECHNIQUES = [name.partition(" ")[2] for name in REMOVED if name.startswith("technique ")]
OLD = (
    (DEFAULTS / "techniques.yaml").read_text(encoding="utf-8")
    + """\
  distinct: {use: distinct, base: auto}                          # only the newest of several versions of a text
  mmr: {use: mmr, base: naive}                                   # without repetitions
  sentence_window: {use: sentence_window, base: auto, window: 1}
  rm3: {use: rm3, base: auto}                                    # adds words of the first results
  rocchio: {use: rocchio, base: auto}                            # adds vectors of the first results
  adaptive: {use: adaptive, bases: [bm25, hybrid]}               # words only if they suffice
  step_back: {use: step_back, base: auto}                        # also searches a more general question
  self_rag: {use: self_rag, base: auto, n: 10}                   # ranks by answers drafted from the passages
"""
)
"""The entries of techniques.yaml that `ragistry init` of 0.1 wrote."""


@pytest.fixture
def old(ragistry: Run, corpus: Corpus) -> Callable[..., Any]:  # noqa: F811
    """The command line in a workspace of 0.1."""
    corpus({"config/techniques.yaml": OLD, "tea.md": "Green tea steeps for two minutes."}, folder=".")
    corpus({"queries.jsonl": '{"text": "green tea", "sources": ["notes/tea.md"]}\n' * 2}, folder=".")
    assert ragistry("ingest", "tea.md", "--collection", "notes", "--create", "x").code == 0
    return ragistry


def test_entries_that_nothing_asks_for_stop_nothing(old: Callable[..., Any]) -> None:
    found = old("search", "green tea")
    assert (found.code, found.err) == (0, "")
    for words in (("techniques",), ("compare", "--queries", "queries.jsonl", "-m", "RR@10")):
        done = old(*words)
        [line] = [line for line in done.err.splitlines() if "removed in 0.2" in line]
        assert all(f"{name!r}" in line for name in TECHNIQUES), line
        assert done.code == 0, done.err
    assert not old("techniques", "--json").json["broken"]
    doctor = old("doctor", "--json")
    assert doctor.findings["techniques"][0] == "ok"
    assert "removed in 0.2" in doctor.findings["techniques"][1]


LINES = [
    "search 'green tea'", "ask 'green tea'", "grep Green", "read tea.md", "outline tea.md", "check answer.md",
    "why 'green tea' --expect tea.md", "route 'green tea'", "demo --help", "init --yes",
    "ingest tea.md --collection notes", "collections list", "sources list", "repo list", "techniques",
    "testset --help", "compare --queries queries.jsonl -m RR@10 --json a.json", "gate a.json a.json", "plan",
    "ui --help", "serve token reader", "mcp skill skills", "config", "doctor", "verify", "repair", "reembed",
    "backup all.zip", "restore all.zip again", "store copy local '{use: chroma, path: other}'",
]  # fmt: skip
"""A use of each command that needs no model but the embedder; a demo has a workspace of its own."""
TELLING = ("techniques", "compare", "doctor")


def test_every_command_runs_in_a_workspace_of_before(old: Callable[..., Any], tmp_path: Path) -> None:
    assert {line.split()[0] for line in LINES} == {name for group in GROUPS.values() for name in group}
    (tmp_path / "answer.md").write_text("Green tea steeps for two minutes (tea.md).\n", encoding="utf-8")
    for line in LINES:
        done = old(*shlex.split(line))
        assert done.code == 0, (line, done)
        told = " ".join((done.out + done.err).split())  # doctor breaks its lines
        assert ("removed in 0.2" in told) == line.startswith(TELLING), (line, done)
    assert (tmp_path / "config" / "techniques.yaml").read_text(encoding="utf-8") == OLD


def test_server_and_tools_leave_the_entries_out(old: Callable[..., Any], tmp_path: Path) -> None:
    with (
        open_workspace(tmp_path) as workspace,
        TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as client,
    ):
        listed = client.get("/v1/techniques").json()
        assert {row["name"] for row in listed["techniques"]} == set(workspace.registry.names())
        assert not {*TECHNIQUES} & {*listed["broken"], *workspace.registry.names()}
        found = client.post("/v1/search", json={"query": "green tea"}).json()
        assert (len(found["documents"]), [one["degraded"] for one in found["trace"] if one["degraded"]]) == (1, [])


@pytest.mark.parametrize(
    "entries", [OLD, "techniques:\n  naive: {use: naive}\n  hybrid: {use: hybrid, bases: [naive]}\n"]
)
def test_a_removed_technique_that_is_asked_for_names_its_successor(entries: str, old: Run, tmp_path: Path) -> None:
    path = tmp_path / "config" / "techniques.yaml"
    for name in TECHNIQUES:
        successor = REMOVED[f"technique {name}"]
        path.write_text(entries, encoding="utf-8")
        for words in ("search tea", "compare --queries queries.jsonl"):
            done = old(*words.split(), "-t", name)
            assert (done.code, done.out, done.err) == (1, "", f"error: {name!r} was removed in 0.2; use {successor}\n")
        for entry in (
            f"{{use: {name}, base: hybrid}}",
            f"{{use: rerank, base: {name}}}",
            f"{{use: hybrid, bases: [{name}, naive]}}",
            f"{{use: collection_routed, base: naive, techniques: {{notes: {name}}}}}",
            f"{{use: pipeline, steps: {{only: {{technique: {name}}}}}}}",
        ):
            path.write_text(f"{entries}  mine: {entry}\n", encoding="utf-8")
            with open_workspace(tmp_path) as workspace, pytest.raises(ConfigError, match=f"{name!r}.*use {successor}"):
                workspace.search("green tea", "mine")


@pytest.mark.parametrize("has_entry", [True, False])
def test_every_door_names_the_successor(has_entry: bool, old: Run, tmp_path: Path) -> None:
    if not has_entry:
        (tmp_path / "config" / "techniques.yaml").unlink()
    with open_workspace(tmp_path) as workspace, served(workspace) as url, connect(url) as remote:
        doors: list[Callable[[], Any]] = [
            lambda: workspace.search("tea", "rm3"),
            lambda: remote.search("tea", "rm3"),
            lambda: workspace.registry.build({"use": "rerank", "base": "rm3"}),
            lambda: workspace.registry.entry("rm3"),  # as the page does
            lambda: SearchLibraryTool(workspace.library, technique="rm3"),  # as the MCP server does
        ]
        for door in doors:
            with pytest.raises(ConfigError, match=r"'rm3' was removed in 0\.2; use hybrid"):
                door()
        with pytest.raises(UnknownTechniqueError) as caught:
            workspace.search("tea", "rm3")
        assert "use hybrid" in detail_of(caught.value, limited=True).message
    for words in ("ask tea", "route tea", "why tea --expect tea.md", "mcp"):
        assert old(*words.split(), "-t", "rm3").err == "error: 'rm3' was removed in 0.2; use hybrid\n"


def test_a_removed_default_is_told_and_the_default_of_the_package_is_used(
    old: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "config" / "techniques.yaml"
    path.write_text(OLD.replace("default: auto", "default: rm3"), encoding="utf-8")
    assert TechniqueRegistry.load(path).default == "hybrid"
    found = old("search", "green tea")
    assert found.code == 0
    assert found.err.count("'rm3' was removed in 0.2; use hybrid; hybrid is used") == 1


def test_removed_commands_and_options_name_their_successor(ragistry: Run) -> None:  # noqa: F811
    for key, successor in REMOVED.items():
        kind, _, words = key.partition(" ")
        if kind in ("command", "value"):
            done = ragistry(*words.replace("make --kind", "make set --kind").split())
            assert (done.code, successor in done.err, done.err.count("\n")) == (2, True, 1), done.err


def test_removed_names_of_python_name_their_successor() -> None:
    for key, successor in REMOVED.items():
        kind, _, name = key.partition(" ")
        if kind == "name":
            module, _, attribute = name.rpartition(".")
            with pytest.raises(AttributeError) as caught:
                getattr(importlib.import_module(module), attribute)
            assert successor in str(caught.value)
    assert len(REMOVED) <= 40
