"""Reports: well-formed, self-contained, and safe from what documents and users say."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.evaluation import Comparison, Dataset, Text, compare, markdown, page
from ragistry.evaluation.axes import linear, logarithmic
from ragistry.evaluation.html import Html, joined, tag
from ragistry.evaluation.labels import beside
from ragistry.evaluation.report_text import terminal_tables
from ragistry.evaluation.sheets import conclusion, sheets
from ragistry.evaluation.synthetic import cautions, heading
from tests.evaluation.small_sets import Answers, Failing, numbered

HOSTILE = "<script>alert('x')</script> & \"quotes\" | pipes"


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    techniques = {
        "first": Answers(lambda number: 1 + number % 2),
        "second": Answers(lambda number: (3 + number % 4) if number % 5 else 0),
        "failing": Failing(3, ValueError(HOSTILE)),
    }
    return compare(techniques, numbered(30), ["nDCG@10", "R@100"], "first")


@pytest.fixture(scope="module")
def hostile() -> Comparison:
    corpus = [Text("d0", HOSTILE, HOSTILE), Text("d1", "", "x")]
    queries = {"q0": f"{HOSTILE} 0", "q1": "query 1"}
    dataset = Dataset(HOSTILE, corpus, queries, {"q0": {"d0": 1}, "q1": {"d1": 1}})
    return compare({HOSTILE: Answers(lambda _: 1), "other": Answers(lambda _: 3)}, dataset)


class WellFormed(HTMLParser):
    """Fails where an element is not closed, and notes what the page would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.fetched += [f"{key}={value}" for key, value in attrs if key in ("src", "href", "onload", "onclick")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(text: str) -> WellFormed:
    parser = WellFormed()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def test_the_page_is_well_formed_and_needs_no_network(comparison: Comparison) -> None:
    text = page(comparison)
    found = parsed(text)
    assert {"svg", "table", "style", "details"} <= found.seen
    assert not {"script", "link", "img", "iframe"} & found.seen
    assert found.fetched == []
    assert "@import" not in text
    assert "url(" not in text


def test_what_others_wrote_is_never_markup(hostile: Comparison) -> None:
    text = page(hostile)
    found = parsed(text)
    assert "script" not in found.seen
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_markdown_keeps_hostile_text_in_its_cell(hostile: Comparison) -> None:
    text = markdown(hostile)
    assert "<script" not in text.replace("\\<script", "")
    [header] = [line for line in text.splitlines() if line.startswith("| technique") and "nDCG" in line]
    columns = len(re.findall(r"(?<!\\)\|", header))
    rows = [line for line in text.splitlines() if line.startswith("| \\<script") or line.startswith("| other")]
    assert any(len(re.findall(r"(?<!\\)\|", row)) == columns for row in rows)


def test_every_report_says_what_failed_and_what_may_be_concluded(comparison: Comparison) -> None:
    assert "significantly worse: second" in conclusion(comparison)
    for text in (page(comparison), markdown(comparison)):
        assert "failing failed on query" in text
        assert "significantly worse: second" in text.replace("\\", "")
    assert "n = 30" in page(comparison)


def synthetic(kinds: list[str], queries: int = 4) -> Comparison:
    """Of as many queries the first ones are synthetic."""
    made = {f"q{number}": {"kind": kind, "seed": 7, "model": "asker"} for number, kind in enumerate(kinds)}
    dataset = replace(numbered(queries), synthetic=made)
    return compare({"first": Answers(lambda _: 1), "second": Answers(lambda _: 2)}, dataset, ["nDCG@10"])


def test_a_synthetic_test_set_is_told_at_the_top_of_every_report() -> None:
    comparison = synthetic(["title", "heading", "heading", "question"])
    said = "Synthetic test set: no person asked these queries"
    assert heading(comparison.provenance) == said
    assert comparison.to_json()["provenance"]["dataset"]["synthetic"] == {
        "queries": 4, "kinds": {"title": 1, "heading": 2, "question": 1}, "seeds": ["7"], "models": ["asker"],
    }  # fmt: skip
    for text in (page(comparison), markdown(comparison)):
        assert (
            text.index(said)
            < text.index("titles (1), headings (2), questions that a model asked about one passage (1)")
            < text.index(conclusion(comparison))
        )
        assert "favour techniques that match words" in text
        assert "confirm it on queries that people asked" in text
        assert "model asker, seed 7" in text
    parsed(page(comparison))


def test_a_report_that_says_nothing_of_it_has_no_synthetic_queries() -> None:
    provenance = {"dataset": {"judged_queries": 4}}
    assert (heading(provenance), cautions(provenance)) == ("", [])


def test_a_test_set_that_is_synthetic_in_part_says_how_much_of_it() -> None:
    comparison = synthetic(["question"])
    assert heading(comparison.provenance) == "Partly synthetic test set: no person asked 1 of the 4 queries"
    assert not any("Known-item" in caution for caution in cautions(comparison.provenance))


def test_queries_of_people_carry_no_caution(comparison: Comparison) -> None:
    assert comparison.provenance["dataset"]["synthetic"] is None
    assert cautions(comparison.provenance) == []
    for text in (page(comparison), markdown(comparison)):
        assert "ynthetic" not in text


def test_the_page_has_a_plot_of_everything(comparison: Comparison) -> None:
    text = page(comparison)
    titles = re.findall(r"<svg[^>]*><title>(.*?)</title>", text)
    assert titles == [
        "nDCG@10",
        "R@100",
        "Difference in nDCG@10",
        "Difference in R@100",
        "Differences of single queries, second minus first",
        "nDCG@10 against latency",
        "Latency by stage",
        "What became of the relevant documents",
    ]
    differing = comparison.main_pairs[0].wins + comparison.main_pairs[0].losses
    chart = text[text.index("Differences of single queries") :]
    assert chart[: chart.index("</svg>")].count("<rect") == differing


def test_sheets_have_as_many_cells_as_headers(comparison: Comparison) -> None:
    for sheet in sheets(comparison):
        assert {len(row) for row in sheet.rows} == {len(sheet.headers)}


def test_a_narrow_terminal_gets_fewer_columns(comparison: Comparison) -> None:
    wide, narrow = (
        {str(table.title): len(table.columns) for table in terminal_tables(comparison, width)} for width in (140, 80)
    )
    assert narrow["Differences"] < wide["Differences"]
    assert narrow["Quality"] == wide["Quality"]


def test_nothing_but_failures_is_a_report_too() -> None:
    result = compare({"bad": Failing(0, RuntimeError("no"))}, numbered(3))
    assert "bad failed on query" in page(result)
    assert "bad failed on query" in markdown(result)
    parsed(page(result))


def test_one_technique_is_measured_without_a_test() -> None:
    result = compare({"only": Answers(lambda _: 1)}, numbered(3))
    assert conclusion(result) == "There is no second technique to compare with."
    assert result.winner is None
    parsed(page(result))


def test_one_query_is_compared_without_an_error() -> None:
    result = compare({"a": Answers(lambda _: 1), "b": Answers(lambda _: 2)}, numbered(1))
    assert result.verdicts[0].startswith("no difference shown")
    parsed(page(result))


def test_tags_escape_text_and_attributes_but_not_markup() -> None:
    assert tag("p", "<b>", Html("<i></i>"), class_='a"b', stroke_width=1.0, x=None) == (
        '<p class="a&quot;b" stroke-width="1">&lt;b&gt;<i></i></p>'
    )
    assert joined(["a", ["&", Html("<br>")]]) == "a&amp;<br>"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.booleans())
def test_a_scale_holds_its_values_and_marks_round_numbers(values: list[float], zero: bool) -> None:
    scale = linear(values, 100, 500, zero=zero)
    assert all(100 <= scale(value) <= 500 for value in values)
    marks = scale.marks()
    assert 2 <= len(marks) <= 7
    assert all(99.99 <= scale(mark) <= 500.01 for mark in marks)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["bm25", "hybrid", "routed[margin=0.05]"]), st.floats(60, 900)), max_size=8))
def test_names_of_dots_that_are_near_do_not_cover_each_other(dots: list[tuple[str, float]]) -> None:
    places = beside([name for name, _ in dots], [(x, 100.0) for _, x in dots], 920, 276)
    boxes = []
    for (name, x), place in zip(dots, places, strict=True):
        width = len(name) * 7.2
        left = place.x - (width if place.anchor == "end" else 0)
        assert 0 <= left + width <= 920 + 1e-9
        assert x < left or left + width < x, "no name covers its dot"
        boxes.append((left, left + width, place.y))
    for one, other in combinations(boxes, 2):
        assert one[1] <= other[0] or other[1] <= one[0] or abs(one[2] - other[2]) >= 12.9


def test_a_name_without_neighbours_stands_above_its_dot_at_the_right() -> None:
    assert beside(["bm25"], [(100, 50)], 920, 276) == [(109, 42, "start")]
    assert beside(["bm25"], [(900, 5)], 920, 276) == [(891, 22, "end")], "below, where there is nothing above"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=8))
def test_a_logarithmic_scale_marks_ones_twos_and_fives(values: list[float]) -> None:
    scale = logarithmic(values, 0, 100)
    assert all(0 < scale(value) < 100 for value in values)
    assert scale.marks()
    assert {f"{mark:.0e}"[0] for mark in scale.marks()} <= {"1", "2", "5"}


def test_two_techniques_without_a_difference_are_said_to_have_none() -> None:
    same = {"first": Answers(lambda number: 1 + number % 2), "second": Answers(lambda number: 2 - number % 2)}
    comparison = compare(same, numbered(10), ["nDCG@10"])
    assert conclusion(comparison) == "No difference is shown between first and second in nDCG@10, n = 10."
