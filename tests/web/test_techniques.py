"""What is registered, on the page and as charts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ragistry import TechniqueRegistry
from ragistry.testing.hashed import HashingEmbedder
from ragistry.web.techniques_page import technique_chart
from tests.web.conftest import check_accessibility

YAML = """
techniques:
  naive: {use: naive, top_k: 7}
  bm25: {use: bm25}
  both: {use: hybrid, bases: [naive, bm25]}
  careful:
    use: pipeline
    steps:
      first: {technique: naive, on: {found: END, empty: wide}}
      wide: {technique: naive, top_k: 50}
"""


@pytest.mark.slow
def test_show_description_parameters_and_flowchart_of_each_technique(page: Page) -> None:
    page.goto("/techniques")
    section = page.get_by_role("region", name="hybrid", exact=True)
    expect(section).to_contain_text("Fusion: joins the results of several bases")
    expect(page.get_by_role("table")).to_have_count(0)
    check_accessibility(page, without="nothing")
    section.get_by_role("button").click()
    expect(section.get_by_role("row", name="fetch")).to_contain_text("candidates taken from each base")
    expect(page.get_by_role("cell", name=re.compile("null|^$"))).to_have_count(0)
    check_accessibility(page, without="nothing")
    expect(section.locator("svg").get_by_text("naive")).to_be_visible()
    expect(section.locator("svg").get_by_text("bm25")).to_be_visible()


def test_flowchart_shows_bases_or_steps(tmp_path: Path) -> None:
    (tmp_path / "techniques.yaml").write_text(YAML)
    registry = TechniqueRegistry.load(tmp_path / "techniques.yaml", {"store": object(), "embedder": HashingEmbedder()})
    assert technique_chart(registry, "both").splitlines()[2:] == [
        '    s0["both (hybrid)"]', '    s1["naive"]', '    s2["bm25"]', '    done(["END"])',
        "    s1 --> s0", "    s2 --> s0", "    start --> s1", "    start --> s2", "    s0 --> done",
    ]  # fmt: skip
    chart = technique_chart(registry, "careful")
    assert '|"empty"|' in chart
    assert '["wide"]' in chart
