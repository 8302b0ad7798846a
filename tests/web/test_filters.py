"""Filters by metadata on the search page."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from ragistry import Workspace
from ragistry.errors import ConfigError
from ragistry.types import SourceInfo
from ragistry.web.filters import MOST_VALUES, filters_where, offered_filters, shown_values


def test_filters_are_the_values_that_sources_share() -> None:
    metadata = {"title": "Tea", "client": "acme", "draft": True, "tags": ["b", "a"], "modified": "2026-05-01"}
    sources = [SourceInfo("c", "a.md", 1, metadata=metadata), SourceInfo("c", "b.md", 1, metadata={"client": "b" * 99})]
    sources += [SourceInfo("c", f"{n}.md", 1, metadata={"id": n}) for n in range(MOST_VALUES + 1)]
    offered = offered_filters(sources)
    assert list(offered.values())[:1] == ["client: acme"]
    assert [label for label in offered.values() if not label.startswith("client")] == [
        "draft: true",
        "tags: a",
        "tags: b",
    ]
    chosen = [name for name, label in offered.items() if label in ("client: acme", "tags: a", "tags: b")]
    assert filters_where(chosen) == {
        "$and": [
            {"$or": [{"client": {"$eq": "acme"}}]},
            {"$or": [{"tags": {"$contains": "a"}}, {"tags": {"$contains": "b"}}]},
        ]
    }
    assert filters_where([]) is None
    for wrong in ("{", "3", '["a"]', "[" * 100_000):
        with pytest.raises(ConfigError):
            filters_where([wrong])


def test_values_of_a_passage_are_shown_without_those_of_ragistry() -> None:
    assert shown_values({"page": 3, "title": "Tea", "client": "acme", "tags": ["a", "b"]}) == [
        "client: acme",
        "tags: a; b",
    ]
    site = {"weight": 4450, "linkTitle": "Tea", "slug": "tea", "draft": False}
    assert shown_values(site) == ["draft: false"], "front matter about the menu of a site"
    assert shown_values(site | {"set_keys": ["weight"]}) == ["weight: 4450", "draft: false"]
    many = shown_values({f"k{n}": "x" * 99 for n in range(12)})
    assert (len(many), many[-1], max(map(len, many))) == (9, "4 more", 61)


def test_a_filter_limits_the_search_and_stays_in_the_address(
    page: Page, other: Workspace, collection: Callable[..., str]
) -> None:
    name = collection("clients")
    for client in ("acme", "globex"):
        metadata = {"client": client, "year": 2026}
        other.library.ingest_text(
            f"The contract with {client} about zeppelins.", f"{client}.txt", name, metadata=metadata
        )
    page.goto("/?q=contract+about+zeppelins&collection=clients&technique=bm25")
    expect(page.get_by_role("article")).to_have_count(2)
    expect(page.get_by_role("article").first.get_by_text("year: 2026", exact=True)).to_be_visible()
    page.get_by_label("Metadata (any)").click()
    page.get_by_role("option", name="client: globex").click()
    expect(page.get_by_role("article")).to_have_count(1)
    expect(page.get_by_role("article").first).to_contain_text("globex.txt")
    page.keyboard.press("Escape")
    page.goto("/?q=contract+about+zeppelins&filter=" + quote('["client", "acme", false]'))
    expect(page.get_by_role("article")).to_have_count(1)
    expect(page.get_by_role("article").first).to_contain_text("acme.txt")
    page.goto("/?q=zeppelins&filter=nonsense")
    expect(page.get_by_text("is not a filter")).to_be_visible()
