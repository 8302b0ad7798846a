"""Reports: one content, well-formed, self-contained, and safe from what documents and users say."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from ragistry.evaluation import Comparison, Dataset, Text, compare, markdown, page
from ragistry.evaluation.figures import Tuning
from ragistry.evaluation.report.html import Scale, scale
from ragistry.evaluation.report.text import print_report
from tests.conftest import full_run
from tests.evaluation.small_sets import Answers, first, numbered
from tests.messages import check_message

HOSTILE = "<script>alert('x')</script> & \"quotes\" | pipes"
LONG = "hybrid[fusion=min_max, k=60, weights=[0.25, 0.75], base=a_rather_long_name_of_a_technique]"


def fails(at: int) -> Callable[[int], int]:
    """For `Answers`: right, until it is asked this query."""

    def rank(number: int) -> int:
        if number == at:
            raise ValueError(HOSTILE)
        return 1

    return rank


def terminal(comparison: Comparison, width: int = 100, *, wrap: bool = False, details: bool = True) -> str:
    out = Console(file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False)
    print_report(comparison, out, wrap=wrap, details=details)
    return out.file.getvalue()  # type: ignore[attr-defined]


def reports(comparison: Comparison) -> dict[str, str]:
    """Each report as plain text."""
    return {
        "page": html.unescape(page(comparison)),
        "markdown": markdown(comparison).replace("\\", ""),
        "terminal": terminal(comparison),
    }


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """With every part that a report can have."""
    techniques = {
        "first": Answers(lambda number: 1 + number % 2),
        "second": Answers(lambda number: (3 + number % 4) if number % 5 else 0),
        "failing": Answers(fails(at=3)),
    }
    made = {"q0": {"kind": "title", "seed": 7}, "q1": {"kind": "question", "model": "asker"}}
    kinds = {f"q{number}": ("title", "heading")[number % 3 > 0] for number in range(30)}
    dataset = replace(numbered(30), synthetic=made, kinds=kinds)
    found = compare(techniques, dataset, ["nDCG@10", "R@5"], "first", chunk_size="document")
    tuned = Tuning(0.5, "second", "first", "nDCG@10", 0.044, 0.011, -0.01, 0.03, 0.2, 15, 15, ["first", "second"])
    return replace(found, selection=tuned)


class WellFormed(HTMLParser):
    """Fails where an element is not closed, and notes what the page would fetch or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.fetched: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.fetched += [f"{key}={value}" for key, value in attrs if key in ("src", "href") or key.startswith("on")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_well_formed_and_loads_nothing(comparison):
    text = page(comparison)
    found = WellFormed(text)
    assert {"svg", "table", "style", "details"} <= found.seen
    assert not {"script", "link", "img", "iframe"} & found.seen
    assert found.fetched == []
    assert "@import" not in text
    assert "url(" not in text
    assert "prefers-color-scheme: dark" in text


def test_names_and_texts_are_never_markup():
    corpus = [Text("d0", HOSTILE, HOSTILE), Text("d1", "", "x")]
    dataset = Dataset(HOSTILE, corpus, {"q0": f"{HOSTILE} 0", "q1": "query 1"}, {"q0": {"d0": 1}, "q1": {"d1": 1}})
    hostile = compare({HOSTILE: Answers(lambda _: 1), "other": Answers(lambda _: 3)}, dataset)
    assert "script" not in WellFormed(page(hostile)).seen
    assert "&lt;script&gt;" in page(hostile)
    text = markdown(hostile)
    assert "<script" not in text.replace("\\<script", "")
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_every_report_has_verdict_table_warning_and_details_in_this_order(comparison):
    synthetic = (
        "Partly synthetic test set (2 of 30 queries): a program made the queries from the documents (1 title, 1 "
        "question; model asker, seed 7)."
    )
    busy = "without a judgement counts as not relevant"
    for name, text in reports(comparison).items():
        said = (str(comparison.verdict), "vs first [95 %]", comparison.warnings[0], "tokens out", busy)
        places = [text.index(part) for part in said]
        assert places == sorted(places), name
        assert "filename" in text
        assert "failing failed on query 'q3': ValueError" in text
        for figure in ("title (n = 10)", "heading (n = 20)", "+0.044 there", "+0.011 (-0.010 to +0.030)"):
            assert figure in text, (name, figure)
    found = comparison.to_json()
    assert any(line.startswith(synthetic) for line in found["warnings"])
    assert any(busy in line for line in found["notes"])


@pytest.mark.parametrize("kind", ["sentence", "title of a page", "question"])
@pytest.mark.parametrize("rank", [2, 1], ids=["use", "keep"])
def test_verdict_over_made_questions_alone_is_a_candidate_in_every_report(kind, rank):
    made = {f"q{number}": {"kind": kind, "seed": 7} for number in range(30)}
    techniques = {"first": Answers(lambda _: rank), "second": Answers(first)}
    found = compare(techniques, replace(numbered(30), synthetic=made), ["nDCG@10"], "first", chunk_size="document")
    for name, text in (reports(found) | {"short": terminal(found, details=False)}).items():
        assert str(found.verdict) in " ".join(text.split()), name
    assert str(found.verdict).startswith("Candidate: ")
    assert (told := found.to_json())["decision"]["candidate"]
    assert told["verdict"] == str(found.verdict)
    assert Comparison.from_json(told).verdict == found.verdict
    check_message(str(found.verdict))
    [made_by] = [line for line in found.warnings if line.startswith("Synthetic test set")]
    check_message(made_by, {"sentence": "123 of 134"}.get(kind, "not known"))


@pytest.mark.parametrize("width", [60, 140])
def test_terminal_shows_whole_names_within_its_width(comparison, width):
    names = {"first": "first", "second": LONG}
    techniques = {names[name]: result for name, result in comparison.techniques.items()}
    pairs = [replace(pair, a=names[pair.a], b=names[pair.b]) for pair in comparison.pairs]
    text = terminal(replace(comparison, techniques=techniques, pairs=pairs, selection=None), width, wrap=True)
    assert max(map(len, text.splitlines())) <= width
    table = text[text.index("Techniques") : text.index("Differences")]
    assert LONG.replace(" ", "") in "".join(
        re.split(r"\s{2,}", line)[0].replace(" ", "") for line in table.splitlines()
    )
    shown = text[text.index("\ntechnique") :].split("\n")[1]
    left_out = " ".join(text.partition("Not shown: ")[2].split())
    for heading in ("nDCG@10", "vs first [95 %]", "p (Holm)", "ms"):
        assert heading in shown or heading in left_out, heading


def test_first_screen_is_verdict_table_and_one_warning_in_80_columns(comparison):
    lines = terminal(comparison, 80, wrap=True, details=False).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 24
    assert lines[0].startswith(str(comparison.verdict)[:40])
    assert sum(line.startswith("! ") for line in lines) == 1
    assert re.split(r"\s{2,}", next(line for line in lines if line.startswith("technique"))) == [
        "technique", "nDCG@10", "vs first [95 %]", "p (Holm)", "ms",
    ]  # fmt: skip
    assert "--details" in lines[-1]


def test_page_draws_every_interval_and_every_query_that_differs(comparison):
    text = page(comparison)
    assert text.count('class="interval"') == 1 + 4 + 2  # of the tables with intervals
    assert text.count('class="plane"') == 1
    [pair] = comparison.main_pairs
    assert text.count("<rect") == pair.wins + pair.losses


def test_many_techniques_do_not_make_long_sentences():
    ranks = {f"technique{rank:02}": lambda n, rank=rank: 1 + (n + rank) % (1 + rank) for rank in range(9)}
    techniques = {name: Answers(rank) for name, rank in ranks.items()}
    found = compare(techniques, numbered(20), ["nDCG@10"])
    assert len(found.verdict.sentence) < 120
    assert max(len(line) for line in terminal(found).splitlines()) < 600
    WellFormed(page(found))


@pytest.mark.parametrize(
    ("techniques", "queries", "said"),
    [
        ({"bad": Answers(fails(at=0))}, 3, "Every technique failed"),
        ({"only": Answers(first)}, 3, "Only one technique was compared"),
        ({"a": Answers(first), "b": Answers(lambda _: 2)}, 1, "Not decided: about 130 more questions"),
        (
            {"a": Answers(first), "b": Answers(first)},
            8,
            "Keep a: the other technique returns the same results",
        ),
    ],
)
def test_small_comparison_has_every_report(techniques, queries, said):
    found = compare(techniques, numbered(queries))
    for name, text in reports(found).items():
        assert said in text, name
    WellFormed(page(found))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8))
def test_scale_holds_its_values_and_marks_round_numbers(values):
    linear = scale(values, 10, 50)
    assert all(10 <= float(linear(value)[:-1]) <= 50 for value in values)
    assert 2 <= len(linear.marks()) <= 7
    assert all(9.99 <= float(linear(mark)[:-1]) <= 50.01 for mark in linear.marks())
    ends = [1e-3 + abs(value) for value in values]
    logarithmic = Scale(min(ends) / 1.6, max(ends) * 1.6, log=True)
    assert {f"{mark:.0e}"[0] for mark in logarithmic.marks()} <= {"1", "2", "5"}
    assert logarithmic.marks()


def numbers(text: str) -> list[str]:
    return re.findall(r"[-+]?\d\.\d{3}", text.replace("\N{MINUS SIGN}", "-"))


@pytest.mark.parametrize("seed", range(12 if full_run() else 4))
def test_first_line_has_the_numbers_of_the_tables_below(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    better = drawn.uniform(-0.6, 0.6)
    ranks = {
        name: [1 + int(drawn.integers(0, 4) * (1 - gain) > 1) for _ in range(40)]
        for name, gain in (("base", 0.0), *((f"t{number}", better) for number in range(1 + seed % 4)))
    }
    techniques = {name: Answers(lambda number, at=at: at[number]) for name, at in ranks.items()}
    found = compare(techniques, numbered(40), "nDCG@10", "base", chunk_size="document", tune_on=0.5, seed=seed)
    said = found.verdict.sentence
    named = [one for one in found.main_pairs if re.search(rf"\b{one.a}\b", said)]
    for name, text in reports(found).items():
        chosen = found.selection
        assert chosen is not None
        assert all(line in " ".join(text.split()) for line in found.first_lines), name
        if chosen.chosen != chosen.baseline:
            gain = [f"{end:+z.3f}" for end in (chosen.gain_held_out, chosen.low, chosen.high)]
            assert numbers(found.first_lines[1].rpartition(": ")[2]) == gain
            assert found.first_lines[1] in text, name
        for pair in named:
            ends = [one.lstrip("+-") for one in numbers(said)]
            rows = [line for line in re.split(r"\n|<tr", text) if re.search(rf"\b{pair.a}\b", line) and "[" in line]
            shown = [one.lstrip("+-") for one in numbers(rows[0].partition("[")[2])[:2]]
            assert {*ends} <= {*shown}, (name, said, rows[0])
