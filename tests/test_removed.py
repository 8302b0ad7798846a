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
from ragistry.errors import ConfigError, UnknownTechniqueError
from ragistry.http.errors import detail_of
from ragistry.server.app import create_app
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.utils.removed import REMOVED
from tests.cli.conftest import Run, ragistry  # noqa: F401, a fixture
from tests.conftest import Corpus
from tests.serving import served

TECHNIQUES = [name.partition(" ")[2] for name in REMOVED if name.startswith("technique ")]
OLD = """\
# Retrieval techniques by name. `ragistry techniques --available` lists the values of `use`.
# The base `auto` is hybrid, or naive if the store has no word search, such as Chroma.
default: auto

techniques:
  naive: {use: naive}                                            # by meaning: nearest vectors
  bm25: {use: bm25}                                              # by words
  hybrid: {use: hybrid, bases: [naive, bm25]}                    # both; the weaker one counts less
  rerank: {use: rerank, base: auto}                              # reordered by a reranker
  mmr: {use: mmr, base: naive}                                   # without repetitions
  distinct: {use: distinct, base: auto}                          # only the newest of several versions of a text
  parent_document: {use: parent_document, base: auto}           # finds small chunks, returns their sections
  sentence_window: {use: sentence_window, base: auto, window: 1}
  routed: {use: collection_routed, base: auto, router: evidence}  # only the collections that fit the query
  rm3: {use: rm3, base: auto}                                    # adds words of the first results
  rocchio: {use: rocchio, base: auto}                            # adds vectors of the first results
  graph: {use: graph, base: auto}                                # adds passages that share names with the results
  adaptive: {use: adaptive, bases: [bm25, hybrid]}               # words only if they suffice

  # These need a language model in models.yaml; without one, a search with them is refused.
  multi_query: {use: multi_query, base: auto, n: 3}              # searches several wordings of the question
  step_back: {use: step_back, base: auto}                        # also searches a more general question
  decompose: {use: decompose, base: auto, n: 3}                  # asks follow-up questions in sequence
  hyde: {use: hyde}                                              # searches with an imagined answer
  llm_rerank: {use: llm_rerank, base: auto, fetch: 20}           # the model orders the results
  contextual_compression: {use: contextual_compression, base: auto}  # keeps the sentences that help
  corrective: {use: corrective, base: auto, n: 1}                # grades results, searches again if none fits
  self_rag: {use: self_rag, base: auto, n: 10}                   # ranks by answers drafted from the passages
"""
"""The techniques.yaml that `ragistry init` of 0.1 wrote."""


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


COMMANDS = {
    "search": "search 'green tea'",
    "ask": "ask 'green tea'",
    "grep": "grep Green",
    "read": "read tea.md",
    "outline": "outline tea.md",
    "check": "check answer.md",
    "why": "why 'green tea' --expect tea.md",
    "route": "route 'green tea'",
    "demo": "demo shown",
    "init": "init --yes",
    "ingest": "ingest tea.md --collection notes",
    "collections": "collections list",
    "sources": "sources list",
    "repo": "repo list",
    "techniques": "techniques",
    "testset": "testset forget",
    "compare": "compare --queries queries.jsonl -m RR@10 --json a.json",
    "gate": "gate a.json a.json",
    "plan": "plan",
    "ui": "ui --help",
    "serve": "serve token reader",
    "mcp": "mcp skill skills",
    "config": "config",
    "doctor": "doctor",
    "verify": "verify",
    "repair": "repair",
    "reembed": "reembed",
    "backup": "backup all.zip",
    "restore": "restore all.zip again",
    "store": "store copy local '{use: chroma, path: other}'",
}
"""A use of each command that needs no model but the embedder; the servers are tested below."""
TELLING = ("techniques", "compare", "doctor")


def test_every_command_runs_in_a_workspace_of_before(old: Callable[..., Any], tmp_path: Path) -> None:
    assert COMMANDS.keys() == {name for group in GROUPS.values() for name in group}
    (tmp_path / "answer.md").write_text("Green tea steeps for two minutes (tea.md).\n", encoding="utf-8")
    for name, words in COMMANDS.items():
        done = old(*shlex.split(words))
        assert done.code == 0, (name, done)
        told = " ".join((done.out + done.err).split())  # doctor breaks its lines
        assert ("removed in 0.2" in told) == (name in TELLING), (name, done)
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


@pytest.mark.parametrize("has_entry", [True, False])
@pytest.mark.parametrize("name", TECHNIQUES)
def test_a_removed_technique_that_is_asked_for_names_its_successor(
    name: str, has_entry: bool, old: Run, tmp_path: Path
) -> None:
    entries = OLD if has_entry else "techniques:\n  naive: {use: naive}\n  hybrid: {use: hybrid, bases: [naive]}\n"
    successor = REMOVED[f"technique {name}"]
    path = tmp_path / "config" / "techniques.yaml"
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
        if kind == "command":
            done = ragistry(*words.split())
            assert (done.code, successor in done.err, done.err.count("\n")) == (2, True, 1), done.err
        if kind == "value":
            done = ragistry(*words.replace("--kind", "set --kind").split())
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
