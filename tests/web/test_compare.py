"""Reports of comparisons in a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ragistry import Workspace
from ragistry.errors import EvaluationError
from ragistry.evaluation import compare, read_library
from ragistry.web.app_state import AppState
from ragistry.web.jobs import PageJobs, failures
from ragistry.web.reports import list_reports, read_report
from tests.messages import check_message, refused
from tests.web.conftest import check_accessibility, check_words_are_whole, ended, upload

REPORTS = Path(".ragistry", "evaluation", "reports")


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
    path = other.root / REPORTS / "first.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(comparison.to_json()))
    return path


@pytest.mark.slow
def test_start_a_comparison_with_a_file_of_queries(page: Page, tmp_path: Path) -> None:
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
    told = page.frame_locator("iframe[title=Report]")
    expect(told.get_by_role("heading", level=1)).to_be_visible()
    expect(told.get_by_text("2 judged queries").first).to_be_visible()


@pytest.fixture
def filled(fixtures: Path, state: AppState, workspace: Workspace) -> PageJobs:
    """Over a library of two sources, in which titles and headings make a few questions."""
    for name in ("backups.md", "upgrades.md"):
        workspace.library.ingest_file(fixtures / "handbook" / "operations" / name, "notes")
    return state.jobs


def test_questions_are_generated_from_the_library(filled: PageJobs, workspace: Workspace) -> None:
    job = ended(filled.compare(["naive", "bm25"], questions=5))
    assert (failures(job), job.state, filled.comparisons()) == ([], "done", [job])
    [listed] = list_reports(workspace.root / REPORTS)
    assert listed.techniques == ("naive", "bm25")
    assert len(listed.warnings) == 1


def test_stopped_and_failed_comparisons_have_a_reason(filled: PageJobs, state: AppState, workspace: Workspace) -> None:
    with refused(EvaluationError):
        filled.compare(["naive"])
    job = filled.compare(["naive", "bm25"])
    with refused(EvaluationError):
        filled.compare(["naive", "bm25"])
    state.saved.cancel(job)
    assert failures(ended(job)) == ["the comparison was stopped; start it again"]
    wrong = b'{"text": "frost", "sources": ["absent.md"]}'
    job = ended(filled.compare(["naive", "bm25"], name="mine.jsonl", queries=wrong))
    assert job.state == "failed"
    check_message(failures(job)[0], "mine.jsonl", "'absent.md'")
    assert list_reports(workspace.root / REPORTS) == []


def test_list_and_open_a_report(page: Page, report: Path) -> None:
    page.goto("/compare")
    row = page.get_by_role("row").filter(has=page.locator(f"a[href$='{report.stem}']"))
    expect(row).to_contain_text("naive, bm25, hybrid")
    expect(row).to_contain_text("longer than the embedder's limit of 256 tokens")
    row.get_by_role("link").click()
    told = page.frame_locator("iframe[title=Report]")
    report_values = json.loads(report.read_text())
    for text in (report_values["verdict"], report_values["warnings"][0]):
        expect(told.get_by_text(text, exact=True).first).to_be_visible()
    expect(told.get_by_role("heading", name="Provenance")).not_to_be_visible()
    told.get_by_text("Details", exact=True).click()
    expect(told.get_by_role("heading", name="Provenance")).to_be_visible()
    expect(told.get_by_role("row", name="random").first).to_be_visible()
    expect(told.get_by_role("img")).to_have_count(
        1 + len(report_values["pairs"]) // len(report_values["provenance"]["measures"])
    )
    assert report.stem in page.url
    check_accessibility(page, without="nothing")
    query = report_values["diagnosis"][0]["queries"][0]
    told.locator("summary").filter(has_text=query["text"]).first.click()
    expect(told.get_by_text(f"Query {query['query']}: {query['why']}.").first).to_be_visible()
    told.locator("details").evaluate_all("all => all.forEach((one) => one.open = true)")
    check_words_are_whole(page, least=20)
    page.goto("/compare/nothing")
    expect(page.get_by_text("report 'nothing' does not exist")).to_be_visible()


def test_damaged_reports_are_not_listed(report: Path, tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(report.read_text())
    (tmp_path / "cut.json").write_text(report.read_text()[:100])
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "number.json").write_text("5")
    for name, provenance in (("undated", {}), ("misdated", {"made": "yesterday"}), ("none", None)):
        (tmp_path / f"{name}.json").write_text(json.dumps(json.loads(report.read_text()) | {"provenance": provenance}))
    assert [listed.name for listed in list_reports(tmp_path)] == ["good"]
    names = ("cut", "other", "number", "undated", "misdated", "none", "../good", "absent", "x" * 300, "a\0b")
    for name in names:
        with pytest.raises(EvaluationError):
            read_report(tmp_path, name)
