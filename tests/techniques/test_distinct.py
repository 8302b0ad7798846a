"""Copies and versions of one text are folded under the newest."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry.presentation.hits import folded_copies
from ragistry.techniques.distinct import DistinctTechnique, families
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.types import Document
from tests.techniques.doubles import Ready, degraded, traced

TEXT = "The red valve of the boiler must be closed before the water is let out of the tank and the lid is opened."
OTHER = "Otters swim in clear rivers and eat the fish that they catch there, and they sleep in dens at the bank."


def passage(name: str, text: str, score: float, **metadata: Any) -> Document:
    return Document(text, {"source_file": name, **metadata}, score, name)


def test_the_newest_version_takes_the_place_of_the_best() -> None:
    found = DistinctTechnique({}, base=Ready([
        passage("old.md", TEXT, 0.9, modified="2024-05-01"),
        passage("other.md", OTHER, 0.8),
        passage("new.md", f"{TEXT} Ask first.", 0.7, modified="2026-05-01T10:00:00Z"),
        passage("undated.md", TEXT.upper(), 0.6),
    ])).retrieve("valve")  # fmt: skip
    assert [(one.id, one.score) for one in found] == [("new.md", 0.9), ("other.md", 0.8)]
    assert (found[0].metadata["copies"], found[0].metadata["copy_places"]) == (2, ["old.md", "undated.md"])
    assert "copies" not in found[1].metadata
    assert [score.stage for score in found[0].scores] == ["distinct"]


def test_folded_places_are_filled_from_the_candidates() -> None:
    copies = [passage(f"copy{n}.md", TEXT, 1 - n / 100) for n in range(9)]
    others = [passage(f"{n}.md", f"Passage {n} is about the number {n} alone.", 0.5) for n in range(9)]
    base = Ready([*copies, *others])
    found = DistinctTechnique({"fetch": 30}, base=base).retrieve("valve", top_k=3)
    assert [one.id for one in found] == ["copy0.md", "0.md", "1.md"]
    assert [asked["top_k"] for asked in base.asked] == [30]


def test_passages_of_one_source_are_never_folded() -> None:
    found = [passage("a.md", TEXT, 1.0), passage("a.md", TEXT, 0.9), passage("b.md", TEXT, 0.8)]
    assert [one.score for one in DistinctTechnique({}, base=Ready(found)).retrieve("valve")] == [1.0, 0.9]
    documents = [Document(TEXT, {}, 1.0, "x"), Document(TEXT, {}, 0.9, "y")]
    assert len(DistinctTechnique({}, base=Ready(documents)).retrieve("valve")) == 1, "no source is known"


def test_more_candidates_replace_folded_ones_and_the_answer_says_so() -> None:
    copies = [passage(f"copy{n}.md", TEXT, 1 - n / 100) for n in range(40)]
    base = Ready([*copies, passage("other.md", OTHER, 0.5)])
    found, stages = traced(
        RegisteredTechnique("distinct", DistinctTechnique({"fetch": 10}, base=base)), "valve", top_k=2
    )
    assert [one.id for one in found] == ["copy0.md", "other.md"]
    assert [asked["top_k"] for asked in base.asked] == [10, 40, 160]
    assert len([one for one in stages if one.degraded]) == 1
    base = Ready([passage("a.md", TEXT, 1.0), passage("b.md", OTHER, 0.5)])
    assert not degraded(traced(RegisteredTechnique("distinct", DistinctTechnique({}, base=base)), "valve")[1])


@pytest.mark.parametrize(
    ("one", "other", "are_copies"),
    [
        (TEXT, TEXT.replace(",", " ").lower(), True),
        (TEXT, TEXT.replace("red valve", "blue tap"), True),
        (TEXT, f"{TEXT} {OTHER} {OTHER}", False),
        (TEXT, OTHER, False),
        ("Version 1", "Version 2", False),
        ("Ja.", "ja", True),
        (
            "在打开水箱之前必须关闭锅炉的红色阀门然后才能放水。",
            "在打开水箱之前必须关闭锅炉的红色阀门然后才能放水",
            True,
        ),
        ("在打开水箱之前必须关闭锅炉的红色阀门。", "水獭在清澈的河里游泳并吃它们捕到的鱼。", False),
        ("…", "???", True),
    ],
)
def test_texts_that_share_most_of_the_shorter_are_copies(one: str, other: str, are_copies: bool) -> None:
    for pair in ((one, other), (other, one)):
        found = families([passage("a", pair[0], 1.0), passage("b", pair[1], 0.5)], 0.8, "")
        assert (len(found) == 1) is are_copies


@pytest.mark.parametrize(
    ("query", "titles", "count"),
    [
        ("is the red valve closed?", ("", ""), 1),
        ("is the tap closed?", ("", ""), 2),
        ("closed", ("Lease", "Lease 2025 (draft)"), 1),
        ("closed", ("Lease 2024", "Lease 2025"), 1),
        ("closed", ("Lease", ""), 1),
        ("closed", ("Next page", "Previous page"), 2),
    ],
)
def test_texts_that_answer_otherwise_stay_apart(query: str, titles: tuple[str, str], count: int) -> None:
    texts = (TEXT, TEXT.replace("tank", "tap"))
    base = Ready([passage(text[-30:], text, 1.0, title=title) for text, title in zip(texts, titles, strict=True)])
    assert len(DistinctTechnique({}, base=base).retrieve(query)) == count


def test_copies_are_shown_with_their_sources() -> None:
    copies = [passage(f"old{n}.md", TEXT, 1 - n / 10, modified=f"20{n + 10}") for n in range(6)]
    [found] = DistinctTechnique({}, base=Ready(copies)).retrieve("valve")
    assert folded_copies(found) == "5 copies: old0.md; old1.md; old2.md; …"
    assert folded_copies(copies[0]) == ""
