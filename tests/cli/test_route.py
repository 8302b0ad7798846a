"""``ragistry route``: the decision, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.conftest import Corpus
from tests.messages import check_message
from tests.techniques.topics import QUESTIONS, library

TWO = "techniques:\n  naive: {use: naive}\n  routed: {use: collection_routed, base: naive}\n"
NAMED = "  named: {use: collection_routed, base: naive, router: explicit}\n"
MEANT = "  meant: {use: collection_routed, base: naive, router: embedding}\n"


@pytest.fixture
def routes(ragistry: Run, tmp_path: Path) -> Run:
    """The command in a workspace with three collections."""
    library(tmp_path).close()
    return ragistry


def test_decision_is_printed_as_a_table_and_as_json(routes: Run) -> None:
    done = routes("route", QUESTIONS["garage"])
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines() if line.strip()]
    assert rows[0] == ["target", "score", "rule"]
    assert (rows[2][0], rows[2][2:]) == ("garage", ["best"])
    assert {row[0] for row in rows[2:5]} == set(QUESTIONS)
    assert rows[-1][:5] == ["technique", "routed,", "router", "evidence:", "best,"]
    decision = routes("route", QUESTIONS["garden"], "--json").json
    assert (decision["query"], decision["technique"], decision["router"]) == (QUESTIONS["garden"], "routed", "evidence")
    assert (decision["chosen"], decision["rule"]) == (["garden"], "best")
    assert list(decision["scores"]) == sorted(QUESTIONS, key=lambda name: (-decision["scores"][name], name))


def test_routing_default_is_used_and_what_cannot_be_routed_refused(routes: Run, corpus: Corpus) -> None:
    for default, technique, router in (("meant", "meant", "embedding"), ("naive", "routed", "evidence")):
        corpus({"techniques.yaml": f"default: {default}\n{TWO}{MEANT}{NAMED}"}, folder="config")
        assert f"technique {technique}, router {router}: best" in routes("route", QUESTIONS["garden"]).out
    routes("route", "bread", "-t", "named").refused(1, "'garage', 'garden', 'kitchen'", "`collection`")
    corpus({"techniques.yaml": "techniques:\n  naive: {use: naive}\n"}, folder="config")
    routes("route", "bread").refused(1, "`routed: {use: collection_routed, base: hybrid}`")


def test_fewer_than_two_collections_leave_nothing_to_choose(ragistry: Run) -> None:
    assert ragistry("init").code == 0
    done = ragistry("route", "bread")
    assert (done.code, done.out) == (0, "technique routed, router evidence: no targets\n")
    assert ragistry("collections", "add", "garden", "-d", "Plants.").code == 0
    check_message(ragistry("route", "bread").out, "garden")
