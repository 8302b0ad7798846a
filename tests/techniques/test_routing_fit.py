"""Limits from the collections alone, and a router scored on labelled queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragistry.errors import ConfigError, QueryError, SourceNotFoundError
from ragistry.techniques.routing.evaluate import (
    NONE,
    Labelled,
    MadeQuery,
    evaluate_router,
    fit_limits,
    made_queries,
    read_labelled,
)
from ragistry.techniques.routing.route import Limits, Route, decide
from ragistry.techniques.routing.target import Target
from ragistry.types import Where
from ragistry.utils.where import matches, normalise
from tests.messages import refused
from tests.techniques.passages import ingest
from tests.techniques.topics import QUESTIONS, STRANGE, TEXTS, routed


def test_queries_are_made_of_headings_and_sentences_each_without_its_own_chunk(store, tmp_path):
    page = tmp_path / "bees.md"
    page.write_text(
        "# Bees\n\n## Keeping the hive warm in winter\n\nWrap the hive in winter and feed the bees with syrup. "
        "Look after them again in spring.\n"
    )
    ingest(store, page, 400)
    made = made_queries([Target("notes"), Target("empty")], store)
    assert [query.text for query in made] == [
        "Keeping the hive warm in winter",
        "Wrap the hive in winter and feed the bees with syrup.",
    ]
    own = {"source_file": "bees.md", "chunk_index": 0}
    assert not any(matches(normalise(query.others), own) for query in made)
    assert all(matches(normalise(query.others), own | {"chunk_index": 1}) for query in made)
    assert {query.target for query in made} == {"notes"}


def test_query_is_made_of_every_chunk_that_says_enough(opened):
    targets = routed(opened).targets()
    made = made_queries(targets, opened.store)
    assert {query.target for query in made} == set(TEXTS)
    assert all(5 <= len(query.text.split()) <= 16 for query in made)
    for few in (targets[:1], []):
        with refused(ConfigError):
            made_queries(few, opened.store)


def fitted(routes: dict[str, Route]) -> Any:
    """The limits fitted to a query for each route, all of which should go to "b"."""

    def choose(query: str, _where: Where | None) -> Route:
        return routes[query]

    return fit_limits(choose, [MadeQuery(name, "b", {}) for name in routes])


def test_limits_keep_95_of_100_and_reach_the_target_of_98():
    scores = [{"a": 0.5 + n / 200, "b": 0.5 - n / 200} for n in range(100)]  # "b" is behind by n / 100
    routes = {str(n): decide("evidence", given, n / 100, Limits()) for n, given in enumerate(scores)}
    fit = fitted(routes)
    assert sum(n / 100 < fit.threshold for n in range(100)) <= 5
    assert fit.margin == 0.5, "never wider than this"
    near = {name: decide("evidence", {"a": 0.5, "b": 0.5 - int(name) / 250}, 1, Limits()) for name in routes}
    fit = fitted(near)
    reached = [decide("evidence", route.scores, 1, Limits(fit.margin)).chosen for route in near.values()]
    assert sum("b" in chosen for chosen in reached) in range(98, 100)
    with refused(ConfigError, 3):
        fitted(dict(list(routes.items())[:3]))


def test_router_is_scored(opened):
    labelled = [Labelled(text, name) for name, text in QUESTIONS.items()]
    labelled += [Labelled(STRANGE, None), Labelled(QUESTIONS["garden"], "kitchen"), Labelled(QUESTIONS["garage"], None)]
    technique = routed(opened, threshold=0.2)
    report = evaluate_router(technique.route, labelled, threshold=0.2, margin=0.05)
    assert (report.queries, report.out_of_scope) == (4, 2)
    assert (report.accuracy, report.reached, report.kept, report.detected) == (0.75, 0.75, 1.0, 0.5)
    assert report.searched == pytest.approx(5 / 6)
    assert report.confusion == {
        NONE: {NONE: 1, "garage": 1},
        "garage": {"garage": 1},
        "garden": {"garden": 1},
        "kitchen": {"kitchen": 1, "garden": 1},
    }
    only = evaluate_router(technique.route, [Labelled(STRANGE, None)], threshold=0, margin=0)
    assert (only.accuracy, only.kept, only.detected) == (None, None, 1.0), "no share without such queries"


def labelled(folder: Path, text: str) -> list[Labelled]:
    (folder / "q.jsonl").write_bytes(text.encode())
    return read_labelled(folder / "q.jsonl", ["garden"])


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"text": "x"}',
        '{"text": " ", "collection": null}',
        '{"text": 5, "collection": null}',
        '{"text": {"de": "x"}, "collection": null}',
        "[1]",
        '{"text": "x", "collection": "gardn"}',
        '{"text": "x", "collection": 0}',
    ],
)
def test_line_that_cannot_be_used_is_named(tmp_path, line):
    with refused(QueryError, "q.jsonl:2: "):
        labelled(tmp_path, f'{{"text": "fine", "collection": null}}\n{line}\n')


@pytest.mark.parametrize("inside", ["\u2028", "\u2029", "\x85"])
def test_what_ends_a_line_elsewhere_may_be_part_of_a_query(tmp_path, inside):
    lines = [json.dumps({"text": text, "collection": None}, ensure_ascii=False) for text in (f"a{inside}b", "c")]
    assert labelled(tmp_path, "\r\n".join(lines)) == [(f"a{inside}b", None), ("c", None)]


def test_files_without_usable_queries_are_refused(tmp_path):
    with refused(QueryError):
        labelled(tmp_path, "\n\n")
    with refused(SourceNotFoundError, "none.jsonl"):
        read_labelled(tmp_path / "none.jsonl", ["garden"])
    (tmp_path / "q.jsonl").write_text('{"text": "x", "collection": "garden"}')
    with refused(QueryError, "'garden'"):
        read_labelled(tmp_path / "q.jsonl", [])
