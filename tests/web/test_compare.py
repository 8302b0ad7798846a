"""Reports of comparisons in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ragistry import Workspace
from ragistry.errors import EvaluationError
from ragistry.evaluation import compare, read_library
from ragistry.web.charts import by_query, quality
from ragistry.web.comparisons import Comparisons, Queries, Running
from ragistry.web.reports import read_report, reports
from tests.messages import check_message, refused
from tests.web.conftest import check_accessibility, shoot, upload, wait_until


def write_queries(path: Path, *queries: tuple[str, str]) -> Path:
    """Write a file of judged queries, each with its source."""
    path.write_text("\n".join(json.dumps({"text": text, "sources": [source]}) for text, source in queries))
    return path


@pytest.fixture(scope="module")
def report(other: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three techniques compared on the library's own sources, kept as the command keeps it."""
    asked = write_queries(
        tmp_path_factory.mktemp("asked") / "queries.jsonl",
        ("put yesterday's copy back after a disk failure", "operations/backups.md"),
        ("LNT-1042", "operations/troubleshooting.md"),
        ("plants droop although their pot is soaked", "watering.txt"),
    )
    comparison = compare(["naive", "bm25", "hybrid"], read_library(other, asked), baseline="bm25", workspace=other)
    path = other.root / ".ragistry" / "evaluation" / "reports" / "first.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(comparison.to_json()))
    return path


def test_a_comparison_is_started_with_a_file_of_queries(page: Page, tmp_path: Path) -> None:
    write_queries(
        tmp_path / "asked.jsonl",
        ("put yesterday's copy back", "operations/backups.md"),
        ("plants droop although their pot is soaked", "watering.txt"),
    )
    page.goto("/compare")
    page.get_by_role("button", name="New comparison").click()
    page.get_by_role("radio", name="From a file").click()
    upload(page, tmp_path / "asked.jsonl", button="Choose queries")
    expect(page.get_by_role("dialog").get_by_text("asked.jsonl").last).to_be_visible()
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("status", name="Comparison")).to_contain_text("Comparing naive, bm25, hybrid")
    page.get_by_role("link", name="Show the report").click()
    expect(page.get_by_role("heading", name="naive, bm25, hybrid")).to_be_visible()
    expect(page.get_by_text("2 judged queries")).to_be_visible()


@pytest.fixture
def comparisons(fixtures: Path, workspace: Workspace, tmp_path: Path) -> Iterator[Comparisons]:
    """Over a library of two sources, in which titles and headings make a few questions."""
    for name in ("backups.md", "upgrades.md"):
        workspace.library.ingest_file(fixtures / "handbook" / "operations" / name, "notes")
    made = Comparisons(workspace, tmp_path / "reports")
    yield made
    made.close()


def ended(comparisons: Comparisons) -> Running:
    wait_until(lambda: comparisons.last is not None and comparisons.last.state != "running")
    assert comparisons.last is not None
    return comparisons.last


def test_questions_are_made_from_the_library(comparisons: Comparisons, tmp_path: Path) -> None:
    comparisons.start(["naive", "bm25"], Queries(number=5))
    assert (ended(comparisons).error, ended(comparisons).state) == ("", "done")
    [listed] = reports(tmp_path / "reports")
    assert listed.techniques == ("naive", "bm25")
    assert any("Synthetic test set" in warning for warning in listed.warnings)


def test_a_comparison_is_stopped_or_fails_with_its_reason(comparisons: Comparisons, tmp_path: Path) -> None:
    with refused(EvaluationError):
        comparisons.start(["naive"], Queries())
    comparisons.start(["naive", "bm25"], Queries())
    with refused(EvaluationError):
        comparisons.start(["naive", "bm25"], Queries())
    comparisons.stop()
    assert ended(comparisons).error == "the comparison was stopped; start it again"
    comparisons.start(["naive", "bm25"], Queries(b'{"text": "frost", "sources": ["absent.md"]}', "mine.jsonl"))
    assert ended(comparisons).state == "failed"
    check_message(ended(comparisons).error, "mine.jsonl", "'absent.md'")
    assert reports(tmp_path / "reports") == []


def test_a_report_is_listed_and_opens(page: Page, report: Path) -> None:
    page.goto("/compare")
    row = page.get_by_role("row").filter(has=page.locator(f"a[href$='{report.stem}']"))
    expect(row).to_contain_text("naive, bm25, hybrid")
    expect(row).to_contain_text("longer than the embedder's limit of 256 tokens")
    row.get_by_role("link").click()
    expect(page.get_by_text("no difference shown between naive and bm25").first).to_be_visible()
    told = json.loads(report.read_text())
    for said in (told["conclusion"], *told["warnings"]):
        expect(page.get_by_text(said, exact=True)).to_be_visible()
    expect(page.get_by_role("row", name="control: random")).to_be_visible()
    expect(page.get_by_role("img")).to_have_count(3)
    assert report.stem in page.url
    shoot(page, "compare")
    check_accessibility(page)
    shown = told["diagnosis"][0]
    different = next(query for query in shown["queries"] if query["difference"])
    page.get_by_role("button", name=different["text"]).click()
    dialog = page.get_by_role("dialog")
    for technique in (shown["a"], shown["b"]):
        value = told["techniques"][technique]["per_query"]["nDCG@10"][different["query"]]
        expect(dialog).to_contain_text(f"{technique}: nDCG@10 {value:.3f}")
    expect(dialog).to_contain_text("(grade 1)")
    page.goto("/compare/nothing")
    expect(page.get_by_text("there is no report 'nothing'")).to_be_visible()


def test_a_damaged_report_is_left_out_of_the_list(report: Path, tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(report.read_text())
    (tmp_path / "cut.json").write_text(report.read_text()[:100])
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "number.json").write_text("5")
    for name, provenance in (("undated", {}), ("misdated", {"made": "yesterday"}), ("none", None)):
        (tmp_path / f"{name}.json").write_text(json.dumps(json.loads(report.read_text()) | {"provenance": provenance}))
    assert [listed.name for listed in reports(tmp_path)] == ["good"]
    names = ("cut", "other", "number", "undated", "misdated", "none", "../good", "absent", "x" * 300, "a\0b")
    for name in names:
        with pytest.raises(EvaluationError):
            read_report(tmp_path, name)


def test_the_plots_show_what_the_report_says(report: Path) -> None:
    told = json.loads(report.read_text())
    options = quality(told)
    assert options["yAxis"]["data"] == ["hybrid", "bm25", "naive"]
    points = dict(zip(options["yAxis"]["data"], options["series"][0]["data"], strict=True))
    assert points["naive"][0] == pytest.approx(told["techniques"]["naive"]["measures"]["nDCG@10"]["mean"], abs=1e-4)
    for (low, high), name in zip(options["series"][0]["markLine"]["data"], options["yAxis"]["data"], strict=True):
        figure = told["techniques"][name]["measures"]["nDCG@10"]
        assert (low["coord"][0], high["coord"][0]) == (figure["low"], figure["high"])
        assert options["xAxis"]["min"] < figure["low"] <= figure["high"] < options["xAxis"]["max"]
    pair = next(pair for pair in told["pairs"] if pair["a"] == "naive" and pair["measure"] == "nDCG@10")
    bars, queries = by_query(told, pair)
    values = [bar["value"] for bar in bars["series"][0]["data"]]
    assert values == sorted(values, reverse=True)
    assert len(values) == len(queries) == pair["wins"] + pair["losses"]
