"""``ragistry route``: the decision, a score, and limits that fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry import open_workspace
from tests.cli.conftest import Done
from tests.techniques.topics import QUESTIONS, STRANGE, library

Run = Callable[..., Done]


@pytest.fixture
def routes(ragistry: Run, tmp_path: Path) -> Run:
    """The command in a workspace with three collections."""
    library(tmp_path).close()
    return ragistry


def test_prints_the_decision_as_a_table(routes: Run) -> None:
    done = routes("route", QUESTIONS["garage"])
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines() if line.strip()]
    assert rows[0] == ["target", "score", "rule"]
    assert (rows[2][0], rows[2][2:]) == ("garage", ["best"])
    assert {row[0] for row in rows[2:5]} == set(QUESTIONS)
    assert rows[-1][:5] == ["technique", "routed,", "router", "evidence:", "best,"]


def test_prints_the_decision_as_json(routes: Run) -> None:
    decision = routes("route", QUESTIONS["garden"], "--json").json
    assert (decision["query"], decision["technique"]) == (QUESTIONS["garden"], "routed")
    assert (decision["chosen"], decision["rule"]) == (["garden"], "best")
    assert list(decision["scores"]) == sorted(QUESTIONS, key=lambda name: (-decision["scores"][name], name))


TWO = "techniques:\n  naive: {use: naive}\n  routed: {use: collection_routed, base: naive}\n"
NAMED = "  named: {use: collection_routed, base: naive, router: explicit}\n"
MEANT = "  meant: {use: collection_routed, base: naive, router: embedding}\n"


@pytest.mark.parametrize(
    ("default", "technique", "router"), [("meant", "meant", "embedding"), ("naive", "routed", "evidence")]
)
def test_what_searches_by_default_decides_if_it_routes(
    routes: Run, tmp_path: Path, default: str, technique: str, router: str
) -> None:
    (tmp_path / "config" / "techniques.yaml").write_text(f"default: {default}\n{TWO}{MEANT}", encoding="utf-8")
    decision = routes("route", QUESTIONS["garden"], "--json").json
    assert (decision["technique"], decision["router"]) == (technique, router)
    assert f"technique {technique}, router {router}: best" in routes("route", QUESTIONS["garden"]).out
    (tmp_path / "q.jsonl").write_text(json.dumps({"text": STRANGE, "collection": None}), encoding="utf-8")
    assert routes("route", "--evaluate", "q.jsonl", "--json").json["technique"] == technique
    assert f"technique {technique}: 0 labelled" in routes("route", "--evaluate", "q.jsonl").out


def test_one_collection_leaves_nothing_to_fit(ragistry: Run) -> None:
    assert ragistry("collections", "add", "garden", "-d", "Plants.").code == 0
    done = ragistry("route", "--fit")
    assert done.code == 1
    assert "a fit needs two targets or more to choose between (now: 'garden'); add a collection" in done.err


def test_a_router_that_leaves_it_to_the_caller_is_told_without_an_option_that_there_is_not(
    routes: Run, tmp_path: Path
) -> None:
    (tmp_path / "config" / "techniques.yaml").write_text(TWO + NAMED, encoding="utf-8")
    done = routes("route", "bread", "-t", "named")
    assert done.code == 1
    assert "the search has to name one of 'garage', 'garden', 'kitchen' as its `collection`" in done.err


def test_scores_a_router_on_labelled_queries(routes: Run, tmp_path: Path) -> None:
    lines = [{"text": text, "collection": name} for name, text in QUESTIONS.items()]
    lines.append({"text": STRANGE, "collection": None})
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    report = routes("route", "--evaluate", "q.jsonl", "--json").json
    assert (report["accuracy"], report["detected"], report["threshold"]) == (1.0, 0.0, 0.0)
    printed = routes("route", "--evaluate", "q.jsonl")
    assert printed.code == 0
    assert "accuracy  100.0%" in printed.out
    assert "0.0%  out-of-scope queries rejected (threshold 0.0)" in printed.out
    assert printed.out.splitlines()[1].split() == ["belongs", "to", "\\", "best", *sorted(QUESTIONS)]


def test_the_line_that_a_fit_prints_is_what_a_later_run_takes(routes: Run, tmp_path: Path) -> None:
    with open_workspace(tmp_path) as opened:
        for number in range(8):
            text = f"The greenhouse of kind {number} has a door and windows that open when it is warm."
            opened.library.ingest_text(text, f"more-{number}.txt", "garden")
    done = routes("route", "--fit")
    assert done.code == 0, done.err
    [line] = done.out.splitlines()
    assert line.startswith("  routed: {use: collection_routed, base: hybrid, router: evidence, margin: 0.")
    (tmp_path / "config").mkdir(exist_ok=True)
    (tmp_path / "config" / "techniques.yaml").write_text(
        f"techniques:\n  naive: {{use: naive}}\n  bm25: {{use: bm25}}\n  hybrid: {{bases: [naive, bm25]}}\n{line}\n"
    )
    found = routes("route", "--fit", "--json").json
    with open_workspace(tmp_path) as opened:
        config = opened.registry.entry("routed").config
    assert (config["margin"], config["threshold"]) == (found["margin"], found["threshold"])
    assert config["threshold"] > 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "give one of QUERY, --evaluate FILE and --fit"),
        (("a", "--fit"), "give one of QUERY, --evaluate FILE and --fit"),
        (("a", "-t", "naive"), "technique 'naive' does not route"),
        (("a", "-t", "nave"), "no technique 'nave'"),
        (("--evaluate", "none.jsonl"), "no such file: 'none.jsonl'"),
        (("--fit",), "queries can be made"),
        ((" ",), "the query is empty"),
    ],
)
def test_what_is_used_wrongly_is_told_in_a_line(routes: Run, words: tuple[str, ...], complaint: str) -> None:
    done = routes("route", *words)
    assert done.code != 0
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1


def test_where_nothing_routes_the_remedy_is_a_line_of_yaml(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "techniques.yaml").write_text("techniques:\n  naive: {use: naive}\n")
    assert "add `routed: {use: collection_routed, base: hybrid}`" in ragistry("route", "bread").err


def test_without_collections_there_is_nothing_to_choose(ragistry: Run) -> None:
    assert ragistry("init").code == 0
    done = ragistry("route", "bread")
    assert (done.code, done.out) == (0, "technique routed, router evidence: no targets\n")
