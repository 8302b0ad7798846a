"""Names of 0.1 that were removed: what people have in files, scripts and fingers gets one line with the successor."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragistry import TechniqueRegistry, open_workspace
from ragistry.errors import UnknownTechniqueError
from ragistry.utils.removed import REMOVED
from tests.cli.conftest import Run, ragistry  # noqa: F401, a fixture
from tests.conftest import Corpus

TECHNIQUES = [name.partition(" ")[2] for name in REMOVED if name.startswith("technique ")]
OLD = """\
default: auto
techniques:
  naive: {use: naive}
  bm25: {use: bm25}
  hybrid: {use: hybrid, bases: [naive, bm25]}
  rm3: {use: rm3, base: auto}                                    # adds words of the first results
  rocchio: {use: rocchio, base: auto}
  adaptive: {use: adaptive, bases: [bm25, hybrid]}
  step_back: {use: step_back, base: auto}
  self_rag: {use: self_rag, base: auto, n: 10}
  mmr: {use: mmr, base: naive}                                   # without repetitions
  sentence_window: {use: sentence_window, base: auto, window: 1}
"""
"""The techniques.yaml that `ragistry init` of 0.1 wrote, without the techniques that are as they were."""


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


@pytest.mark.parametrize("name", TECHNIQUES)
def test_a_removed_technique_that_is_asked_for_names_its_successor(
    name: str, old: Callable[..., Any], tmp_path: Path
) -> None:
    old("search", "green tea", "-t", name).refused(1, name)
    old("compare", "--queries", "queries.jsonl", "-t", name).refused(1, name)
    entries = (
        f"{{use: rerank, base: {name}}}",
        f"{{use: hybrid, bases: [{name}, naive]}}",
        f"{{use: pipeline, steps: {{only: {{technique: {name}}}}}}}",
    )
    for entry in entries:
        (tmp_path / "config" / "techniques.yaml").write_text(f"{OLD}  mine: {entry}\n", encoding="utf-8")
        with open_workspace(tmp_path) as workspace, pytest.raises(Exception, match=f"'{name}' was removed in 0.2"):
            workspace.search("green tea", "mine")
    with (
        open_workspace(tmp_path) as workspace,
        pytest.raises(UnknownTechniqueError, match=REMOVED[f"technique {name}"]),
    ):
        workspace.search("green tea", name)


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


def test_removed_names_of_python_name_their_successor() -> None:
    for key, successor in REMOVED.items():
        kind, _, name = key.partition(" ")
        if kind == "name":
            module, _, attribute = name.rpartition(".")
            with pytest.raises(AttributeError) as caught:
                getattr(importlib.import_module(module), attribute)
            assert successor in str(caught.value)
    assert len(REMOVED) <= 40
