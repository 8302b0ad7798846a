"""Reports: one content, well-formed, self-contained, and safe from what documents and users say."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from ragistry.evaluation import Comparison, Dataset, Text, compare, markdown, page
from ragistry.evaluation.report.content import report
from ragistry.evaluation.report.scales import beside, linear, logarithmic
from ragistry.evaluation.report.terminal import print_report
from ragistry.evaluation.result import Selection
from ragistry.trace import degraded, stage
from ragistry.types import Document
from tests.evaluation.small_sets import Answers, Failing, first, numbered

HOSTILE = "<script>alert('x')</script> & \"quotes\" | pipes"
LONG = "hybrid[fusion=min_max, k=60, weights=[0.25, 0.75], base=a_rather_long_name_of_a_technique]"


def terminal(comparison: Comparison, width: int = 100, *, wrap: bool = False) -> str:
    out = Console(file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False)
    print_report(comparison, out, wrap=wrap)
    return out.file.getvalue()  # type: ignore[attr-defined]


def told(comparison: Comparison) -> dict[str, str]:
    """Each report as plain text."""
    text = page(comparison)
    for entity, mark in (("&#39;", "'"), ("&#34;", '"'), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(entity, mark)
    return {"page": text, "markdown": markdown(comparison).replace("\\", ""), "terminal": terminal(comparison)}


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    techniques = {
        "first": Answers(lambda number: 1 + number % 2),
        "second": Answers(lambda number: (3 + number % 4) if number % 5 else 0),
        "failing": Failing(3, ValueError(HOSTILE)),
    }
    return compare(techniques, numbered(30), ["nDCG@10", "R@5"], "first")


@pytest.fixture(scope="module")
def whole(comparison: Comparison) -> Comparison:
    """With every part that a report can have."""
    [pair, _] = comparison.pairs
    kinds = {"title": {"nDCG@10": 0.25, "queries": 10}, "heading": {"nDCG@10": 0.75, "queries": 20}}
    return replace(
        comparison,
        warnings=["The machine was busy."],
        controls={"filename": {"nDCG@10": 0.511, "R@5": 0.6}, "random": {"nDCG@10": 0.012, "R@5": 0.1}},
        control_pairs=[replace(pair, a="first", b=f"{name} (control)") for name in ("filename", "random")],
        selection=Selection(0.5, "second", "first", "nDCG@10", 0.044, 0.011, -0.01, 0.03, 0.2, 15, 15, ["second"]),
        techniques={name: replace(result, by_kind=kinds) for name, result in comparison.techniques.items()},
    )


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
        self.fetched += [f"{key}={value}" for key, value in attrs if key in ("src", "href") or key.startswith("on")]
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


def test_the_page_is_well_formed_and_needs_no_network(whole: Comparison) -> None:
    text = page(whole)
    found = parsed(text)
    assert {"svg", "table", "style", "details"} <= found.seen
    assert not {"script", "link", "img", "iframe"} & found.seen
    assert found.fetched == []
    assert "@import" not in text
    assert "url(" not in text
    assert "prefers-color-scheme: dark" in text


def test_what_others_wrote_is_never_markup(hostile: Comparison) -> None:
    text = page(hostile)
    assert "script" not in parsed(text).seen
    assert "&lt;script&gt;" in text
    text = markdown(hostile)
    assert "<script" not in text.replace("\\<script", "")
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_every_report_says_the_same_in_the_same_order(whole: Comparison) -> None:
    for name, text in told(whole).items():
        places = [text.index(said) for said in (whole.conclusion(), "The machine was busy.", "control: filename")]
        assert places == sorted(places), name
        assert "failing failed on query 'q3': ValueError" in text
        for figure in ("0.511", "0.012", "title (n = 10)", "+0.044", "+0.011"):
            assert figure in text, (name, figure)
    assert whole.to_json()["warnings"] == report(whole).warnings
    for table in report(whole).tables.values():
        assert {len(row) for row in table.rows} == {len(table.columns)}, table.key


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_a_terminal_shows_whole_names_within_its_width(whole: Comparison, width: int) -> None:
    names = {"first": "first", "second": LONG}
    techniques = {names[name]: result for name, result in whole.techniques.items()}
    pairs = [replace(pair, a=names[pair.a], b=names[pair.b]) for pair in whole.pairs]
    text = terminal(replace(whole, techniques=techniques, pairs=pairs, selection=None), width, wrap=True)
    assert max(map(len, text.splitlines())) <= width
    table = text[text.index("Techniques") : text.index("By kind")]
    cells = "".join(re.split(r"\s{2,}", line)[0].replace(" ", "") for line in table.splitlines())
    assert LONG.replace(" ", "") in cells
    shown = text[text.index("\ntechnique") :].split("\n")[1]
    for heading, _ in report(whole).tables["overview"].columns:
        assert heading in shown or heading in " ".join(text.split("No room for: ")[1].split()), heading


def test_the_page_has_a_plot_of_everything_and_one_scale_for_queries(comparison: Comparison) -> None:
    ranks = {"a": first, "b": lambda n: 1 + (n == 0), "c": lambda n: 1 + n % 2}
    three = compare({name: Answers(rank) for name, rank in ranks.items()}, numbered(9))
    text = page(comparison)
    assert re.findall(r"<svg[^>]*><title>(.*?)</title>", text) == [
        "nDCG@10",
        "R@5",
        "Difference in nDCG@10",
        "Difference in R@5",
        "Differences of single queries, second minus first",
        "nDCG@10 against CPU milliseconds per query",
        "Time by stage",
        "What became of the relevant documents",
    ]
    charts = re.findall(r"<title>Differences of single queries.*?</svg>", page(three), re.S)
    assert len({tuple(re.findall(r'text-anchor="end" class="axis">(.*?)<', chart)) for chart in charts}) == 1
    differing = comparison.main_pairs[0].wins + comparison.main_pairs[0].losses
    chart = text[text.index("Differences of single queries") :]
    assert chart[: chart.index("</svg>")].count("<rect") == differing


class Degraded(Answers):
    def retrieve(self, query: str, **options: object) -> list[Document]:
        with stage("embed"):
            if query != "query 0":
                degraded(f"the query has {200 + int(query.split()[-1])} tokens and was cut to 128")
        return super().retrieve(query, **options)  # type: ignore[arg-type]


def test_what_makes_figures_doubtful_is_one_warning_each() -> None:
    techniques = {name: Degraded(lambda n, name=name: 1 + n % ord(name), documents=2) for name in "abcde"}
    comparison = compare({**techniques, "sound": Answers(first, documents=0)}, numbered(40), ["nDCG@10", "R@30", "R@5"])
    seconds = {"embed_seconds": 1, "write_seconds": 1, "disk_bytes": 1}
    cost = SimpleNamespace(chunking="document", documents=9, chunks=9, cut=2, **seconds)
    comparison.provenance["embedder"] = {"provider": "", "model": "", "digest": "", "max_tokens": 256}
    comparison = replace(comparison, indexes={"document": cost})
    warnings = report(comparison).warnings[len(comparison.warnings) :]
    assert [re.split("[:;]", warning)[0] for warning in warnings] == [
        "2 of 9 chunks (document) are longer than the embedder's limit of 256 tokens",
        "R@30 looks at 30 of 40 documents, so it hardly tells techniques apart",
        "a, b, c and 2 more were degraded on up to 39 of 40 queries",
        "a, b, c and 2 more returned up to 2 documents that are not in the corpus (80 of 120 results), such as 'x0'",
    ]
    assert warnings[2].endswith("for example, the query has 201 tokens and was cut to 128.")


def synthetic(kinds: list[str], queries: int = 4) -> Comparison:
    """The first queries are synthetic."""
    made = {f"q{number}": {"kind": kind, "seed": 7, "model": "asker"} for number, kind in enumerate(kinds)}
    dataset = replace(numbered(queries), synthetic=made)
    return compare(
        {"first": Answers(first), "second": Answers(lambda _: 2)}, dataset, ["nDCG@10"], chunk_size="document"
    )


def test_a_synthetic_test_set_is_named_before_any_figure() -> None:
    comparison = synthetic(["title", "heading", "heading", "question"])
    said = (
        "Synthetic test set: no person asked these queries. A program made them from the documents: titles (1), "
        "headings (2), questions that a model asked about one passage (1); model asker, seed 7."
    )
    for text in told(comparison).values():
        assert text.index(comparison.conclusion()) < text.index(said) < text.index("tokens out")
    for text in (page(comparison), markdown(comparison)):
        assert "confirm it on queries that people asked" in text
    part = synthetic(["question"])
    assert any("no person asked 1 of the 4 queries" in warning for warning in report(part).warnings)
    assert not any("author" in caveat for caveat in report(part).synthetic)


def test_many_techniques_do_not_make_long_sentences() -> None:
    techniques = {
        f"technique{rank:02}": Answers(lambda n, rank=rank: 1 + (n + rank) % (1 + rank)) for rank in range(20)
    }
    comparison = compare(techniques, numbered(20), ["nDCG@10"])
    said = report(comparison)
    assert len(said.conclusion) < 300
    assert len(said.verdicts) <= 11
    assert "in the table of differences" in said.verdicts[-1]
    against = report(compare(techniques, numbered(20), ["nDCG@10"], "technique00"))
    assert len(against.conclusion) < 300
    parsed(page(comparison))


@pytest.mark.parametrize(
    ("techniques", "queries", "said"),
    [
        ({"bad": Failing(0, RuntimeError("no"))}, 3, "Every technique failed"),
        ({"only": Answers(first)}, 3, "There is no second technique to compare with."),
        ({"a": Answers(first), "b": Answers(lambda _: 2)}, 1, "No difference can be significant with 1 query."),
        ({"a": Answers(first), "b": Answers(lambda n: 1 + n)}, 2, "No difference can be significant with 2 queries."),
        ({"a": Answers(first), "b": Answers(first)}, 8, "All techniques return the same rankings on every query."),
    ],
)
def test_a_small_comparison_has_every_report(techniques: dict, queries: int, said: str) -> None:
    comparison = compare(techniques, numbered(queries))
    for name, text in told(comparison).items():
        assert said in text, name
    parsed(page(comparison))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.booleans())
def test_a_scale_holds_its_values_and_marks_round_numbers(values: list[float], zero: bool) -> None:
    scale = linear(values, 100, 500, zero=zero)
    assert all(100 <= scale(value) <= 500 for value in values)
    marks = scale.marks()
    assert 2 <= len(marks) <= 7
    assert all(99.99 <= scale(mark) <= 500.01 for mark in marks)
    marks = logarithmic([1e-3 + abs(value) for value in values], 0, 100).marks()
    assert {f"{mark:.0e}"[0] for mark in marks} <= {"1", "2", "5"}
    assert marks


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["bm25", "hybrid", "routed[margin=0.05]"]), st.floats(60, 900)), max_size=8))
def test_names_of_near_dots_do_not_overlap(dots: list[tuple[str, float]]) -> None:
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
