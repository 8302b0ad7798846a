"""Limits from the collections alone, and a router scored on labelled queries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry import Workspace
from ragistry.errors import ConfigError, QueryError, SourceNotFoundError
from ragistry.techniques.routing.evaluate import NONE, Labelled, evaluate_router, read_labelled
from ragistry.techniques.routing.fit import MadeQuery, fit_limits, made_queries
from ragistry.techniques.routing.route import Limits, Route, decide
from ragistry.types import Where
from ragistry.utils.where import matches, normalise
from tests.techniques.topics import QUESTIONS, STRANGE, TEXTS, library, routed


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with library(tmp_path_factory.mktemp("fit")) as workspace:
        yield workspace


def test_queries_are_made_of_headings_and_sentences_each_without_its_own_chunk(tmp_path: Path) -> None:
    with library(tmp_path) as opened:
        page = tmp_path / "bees.md"
        page.write_text(
            "# Bees\n\n## Keeping the hive warm in winter\n\nWrap the hive in winter and feed the bees with syrup.\n"
        )
        opened.library.ingest_file(page, "garden")
        made = [query for query in made_queries(routed(opened).targets(), opened.store) if "hive" in query.text]
    assert "Keeping the hive warm in winter" in [query.text for query in made]
    own = {"source_file": "bees.md", "chunk_index": 0}
    assert not any(matches(normalise(query.others), own) for query in made)
    assert all(matches(normalise(query.others), own | {"chunk_index": 1}) for query in made)
    assert {query.target for query in made} == {"garden"}


def test_a_query_is_made_of_every_chunk_that_says_enough(opened: Workspace) -> None:
    made = made_queries(routed(opened).targets(), opened.store)
    assert {query.target for query in made} == set(TEXTS)
    assert all(5 <= len(query.text.split()) <= 16 for query in made)


def answers(routes: dict[str, Route]) -> object:
    def choose(query: str, _where: Where | None) -> Route:
        return routes[query]

    return choose


def test_the_limits_keep_95_of_100_and_reach_the_target_of_98() -> None:
    scores = [{"a": 0.5 + n / 200, "b": 0.5 - n / 200} for n in range(100)]  # "b" is behind by n / 100
    routes = {str(n): decide("evidence", given, n / 100, Limits()) for n, given in enumerate(scores)}
    fit = fit_limits(answers(routes), [MadeQuery(name, "b", {}) for name in routes])  # type: ignore[arg-type]
    assert sum(n / 100 < fit.threshold for n in range(100)) <= 5
    assert fit.margin == 0.5, "never wider than this"
    near = {name: decide("evidence", {"a": 0.5, "b": 0.5 - int(name) / 250}, 1, Limits()) for name in routes}
    fit = fit_limits(answers(near), [MadeQuery(name, "b", {}) for name in near])  # type: ignore[arg-type]
    reached = [decide("evidence", route.scores, 1, Limits(fit.margin)).chosen for route in near.values()]
    assert sum("b" in chosen for chosen in reached) in range(98, 100)


def test_too_few_queries_are_told() -> None:
    with pytest.raises(ConfigError, match="3 queries can be made .* a fit needs 20"):
        fit_limits(answers({}), [MadeQuery("x", "a", {})] * 3)  # type: ignore[arg-type]


def test_a_router_is_scored(opened: Workspace) -> None:
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


def test_queries_of_one_kind_leave_the_other_share_open(opened: Workspace) -> None:
    report = evaluate_router(routed(opened).route, [Labelled(STRANGE, None)], threshold=0, margin=0)
    assert (report.accuracy, report.kept, report.detected) == (None, None, 0.0)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", r"q.jsonl:2: '{' is not JSON"),
        ('{"text": "x"}', r"q.jsonl:2: .* lacks text or collection"),
        ('{"text": " ", "collection": null}', r"q.jsonl:2: text is ' ', no query"),
        ('{"text": 5, "collection": null}', r"q.jsonl:2: text is 5, no query"),
        ('{"text": {"de": "x"}, "collection": null}', r"q.jsonl:2: text is {'de': 'x'}, no query"),
        ("[1]", r"q.jsonl:2: .* lacks text or collection"),
        ('{"text": "x", "collection": "gardn"}', r"q.jsonl:2: no collection 'gardn'.*garden"),
        ('{"text": "x", "collection": 0}', r"q.jsonl:2: no collection 0"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(f'{{"text": "fine", "collection": null}}\n{line}\n', encoding="utf-8")
    with pytest.raises(QueryError, match=complaint):
        read_labelled(path, ["garden"])


def test_a_label_where_there_is_no_collection_is_told(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"text": "x", "collection": "garden"}', encoding="utf-8")
    with pytest.raises(QueryError, match="no collection 'garden'; there are none$"):
        read_labelled(path, [])


@pytest.mark.parametrize("inside", ["\u2028", "\u2029", "\x85"])
def test_what_ends_a_line_elsewhere_may_stand_in_a_query(tmp_path: Path, inside: str) -> None:
    path = tmp_path / "q.jsonl"
    lines = [json.dumps({"text": text, "collection": None}, ensure_ascii=False) for text in (f"a{inside}b", "c")]
    path.write_bytes("\r\n".join(lines).encode())
    assert read_labelled(path, []) == [(f"a{inside}b", None), ("c", None)]


def test_fewer_than_two_targets_leave_nothing_to_fit(opened: Workspace) -> None:
    [one, *_] = routed(opened).targets()
    with pytest.raises(ConfigError, match=r"two targets or more .*\(now: 'kitchen'\)"):
        made_queries([one], opened.store)
    with pytest.raises(ConfigError, match=r"\(now: none\)"):
        made_queries([], opened.store)


def test_a_file_without_queries_is_told(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text("\n\n", encoding="utf-8")
    with pytest.raises(QueryError, match="the file has no queries"):
        read_labelled(path, ["garden"])
    with pytest.raises(SourceNotFoundError, match="no such file"):
        read_labelled(tmp_path / "none.jsonl", ["garden"])
