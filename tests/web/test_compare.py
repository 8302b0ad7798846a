"""Reports of comparisons in a browser."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from ragistry import open_workspace
from ragistry.errors import EvaluationError
from ragistry.evaluation import compare, read_library
from ragistry.web.charts import by_query, quality
from ragistry.web.comparisons import Comparisons, Queries, Running
from ragistry.web.reports import read_report, reports


@pytest.fixture(scope="module")
def report(root: Path) -> Path:
    """Three techniques compared on the library's own sources, kept as the command keeps it."""
    lines = [
        {"_id": "one", "text": "put yesterday's copy back after a disk failure", "sources": ["operations/backups.md"]},
        {"_id": "two", "text": "LNT-1042", "sources": ["operations/troubleshooting.md"]},
        {"_id": "three", "text": "plants droop although their pot is soaked", "sources": ["watering.txt"]},
    ]
    queries = root / "queries.jsonl"
    queries.write_text("\n".join(map(json.dumps, lines)))
    folder = root / ".ragistry" / "evaluation" / "reports"
    folder.mkdir(parents=True, exist_ok=True)
    with open_workspace(root) as workspace:
        comparison = compare(
            ["naive", "bm25", "hybrid"], read_library(workspace, queries), baseline="bm25", workspace=workspace
        )
    path = folder / "first.json"
    path.write_text(json.dumps(comparison.to_json()))
    return path


def test_without_a_report_the_page_says_how_to_make_one(page: Page, address: str) -> None:
    page.goto(f"{address}/compare")
    expect(page.get_by_text("No comparison yet.")).to_be_visible()
    expect(page.get_by_role("button", name="New comparison")).to_be_visible()


def test_a_comparison_is_started_on_the_page_with_a_file_of_queries(page: Page, address: str, tmp_path: Path) -> None:
    lines = [
        {"text": "put yesterday's copy back", "sources": ["operations/backups.md"]},
        {"text": "plants droop although their pot is soaked", "sources": ["watering.txt"]},
    ]
    (tmp_path / "asked.jsonl").write_text("\n".join(map(json.dumps, lines)))
    page.goto(f"{address}/compare")
    page.get_by_role("button", name="New comparison").click()
    page.get_by_role("radio", name="From a file").click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose queries").click()
    chooser.value.set_files(tmp_path / "asked.jsonl")
    expect(page.get_by_role("dialog").get_by_text("asked.jsonl").last).to_be_visible()
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("status", name="Comparison")).to_contain_text("Comparing naive, bm25, hybrid")
    page.get_by_role("link", name="Show the report").click(timeout=60_000)
    expect(page.get_by_role("heading", name="naive, bm25, hybrid")).to_be_visible()
    expect(page.get_by_text("2 judged queries")).to_be_visible()


@pytest.fixture
def comparisons(fixtures: Path, tmp_path: Path) -> Iterator[Comparisons]:
    """Over a library of six sources, in which titles and headings make a few questions."""
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("operations")
        workspace.library.ingest_folder(fixtures / "handbook" / "operations", "operations")
        made = Comparisons(workspace, tmp_path / "reports")
        yield made
        made.close()


def ended(comparisons: Comparisons) -> Running:
    until = time.monotonic() + 120
    while comparisons.last is None or comparisons.last.state == "running":
        assert time.monotonic() < until
        time.sleep(0.02)
    return comparisons.last


def test_questions_are_made_from_the_library(comparisons: Comparisons, tmp_path: Path) -> None:
    comparisons.start(["naive", "bm25"], Queries(number=5))
    assert (ended(comparisons).error, comparisons.last and comparisons.last.state) == ("", "done")
    [listed] = reports(tmp_path / "reports")
    assert listed.techniques == ("naive", "bm25")
    assert any("Synthetic test set" in warning for warning in listed.warnings)


def test_a_comparison_is_stopped_before_its_next_question(comparisons: Comparisons, tmp_path: Path) -> None:
    comparisons.start(["naive", "bm25"], Queries())
    with pytest.raises(EvaluationError, match="another comparison is running"):
        comparisons.start(["naive", "bm25"], Queries())
    comparisons.stop()
    assert ended(comparisons).error == "the comparison was stopped; start it again"
    assert reports(tmp_path / "reports") == []


def test_bad_queries_end_in_one_line(comparisons: Comparisons) -> None:
    with pytest.raises(EvaluationError, match="needs two techniques"):
        comparisons.start(["naive"], Queries())
    comparisons.start(["naive", "bm25"], Queries(b'{"text": "frost", "sources": ["absent.md"]}', "mine.jsonl"))
    failed = ended(comparisons)
    assert failed.state == "failed"
    assert "mine.jsonl" in failed.error
    assert "no source 'absent.md'" in failed.error


def test_a_report_is_listed_and_opens(page: Page, address: str, report: Path) -> None:
    page.goto(f"{address}/compare")
    row = page.get_by_role("row").filter(has=page.locator(f"a[href$='{report.stem}']"))
    expect(row).to_contain_text("naive, bm25, hybrid")
    expect(row).to_contain_text("longer than the embedder's limit of 256 tokens")
    row.get_by_role("link").click()
    expect(page.get_by_text("no difference shown between naive and bm25").first).to_be_visible()
    told = json.loads(report.read_text())
    for said in (told["conclusion"], *told["warnings"]):
        expect(page.get_by_text(said, exact=True)).to_be_visible()
    assert any("longer than the embedder's limit of 256 tokens" in warning for warning in told["warnings"])
    expect(page.get_by_role("row", name="control: random")).to_be_visible()
    expect(page.get_by_role("img")).to_have_count(3)
    assert report.stem in page.url


def test_a_query_that_differs_shows_both_rankings(page: Page, address: str, report: Path) -> None:
    page.goto(f"{address}/compare/{report.stem}")
    page.get_by_role("button", name="LNT-1042").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("naive: nDCG@10")
    expect(dialog).to_contain_text("bm25: nDCG@10 0.631")
    expect(dialog).to_contain_text("(grade 1)")


def test_a_report_that_is_not_there_is_said_plainly(page: Page, address: str) -> None:
    page.goto(f"{address}/compare/nothing")
    expect(page.get_by_text("there is no report 'nothing'")).to_be_visible()


def test_axe_finds_no_serious_violation(page: Page, address: str, report: Path) -> None:
    page.goto(f"{address}/compare/{report.stem}")
    page.wait_for_timeout(800)
    violations = Axe().run(page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"]) for v in violations if v["impact"] in ("serious", "critical")] == []


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


def test_screenshots(address: str, report: Path, shoot: Callable[[str, str], None]) -> None:
    shoot(f"{address}/compare/{report.stem}", "compare")
