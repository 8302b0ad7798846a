"""Copies and versions of one text are folded under the newest."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry.presentation.hits import folded_copies
from ragistry.techniques.distinct import DistinctTechnique, families, shingles_of
from ragistry.trace import collect, stage
from ragistry.types import Document, Where

TEXT = "The red valve of the boiler must be closed before the water is let out of the tank and the lid is opened."
OTHER = "Otters swim in clear rivers and eat the fish that they catch there, and they sleep in dens at the bank."


class Answers:
    """A technique that returns documents in their order."""

    def __init__(self, *documents: Document) -> None:
        self.documents = documents
        self.asked: list[int | None] = []

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        self.asked.append(top_k)
        return list(self.documents[:top_k])


def passage(name: str, text: str, score: float, **metadata: Any) -> Document:
    return Document(text, {"source_file": name, **metadata}, score, name)


def test_the_newest_version_takes_the_place_of_the_best() -> None:
    found = DistinctTechnique({}, base=Answers(
        passage("old.md", TEXT, 0.9, modified="2024-05-01"),
        passage("other.md", OTHER, 0.8),
        passage("new.md", f"{TEXT} Ask first.", 0.7, modified="2026-05-01T10:00:00Z"),
        passage("undated.md", TEXT.upper(), 0.6),
    )).retrieve("valve")  # fmt: skip
    assert [(one.id, one.score) for one in found] == [("new.md", 0.9), ("other.md", 0.8)]
    assert (found[0].metadata["copies"], found[0].metadata["copy_places"]) == (2, ["old.md", "undated.md"])
    assert "copies" not in found[1].metadata
    assert [score.stage for score in found[0].scores] == ["distinct"]


def test_folded_places_are_filled_from_the_candidates() -> None:
    copies = [passage(f"copy{n}.md", TEXT, 1 - n / 100) for n in range(9)]
    base = Answers(*copies, *(passage(f"{n}.md", f"Passage {n} is about the number {n} alone.", 0.5) for n in range(9)))
    found = DistinctTechnique({"fetch": 30}, base=base).retrieve("valve", top_k=3)
    assert [one.id for one in found] == ["copy0.md", "0.md", "1.md"]
    assert base.asked == [30]


def test_passages_of_one_source_are_never_folded() -> None:
    found = [passage("a.md", TEXT, 1.0), passage("a.md", TEXT, 0.9), passage("b.md", TEXT, 0.8)]
    assert [one.score for one in DistinctTechnique({}, base=Answers(*found)).retrieve("valve")] == [1.0, 0.9]
    documents = [Document(TEXT, {}, 1.0, "x"), Document(TEXT, {}, 0.9, "y")]
    assert len(DistinctTechnique({}, base=Answers(*documents)).retrieve("valve")) == 1, "no source is known"


def test_more_candidates_replace_folded_ones_and_the_answer_says_so() -> None:
    copies = [passage(f"copy{n}.md", TEXT, 1 - n / 100) for n in range(40)]
    base = Answers(*copies, passage("other.md", OTHER, 0.5))
    with collect() as trace, stage("distinct"):
        found = DistinctTechnique({"fetch": 10}, base=base).retrieve("valve", top_k=2)
    assert [one.id for one in found] == ["copy0.md", "other.md"]
    assert base.asked == [10, 40, 160]
    assert len([one for one in trace.stages() if one.degraded]) == 1
    with collect() as trace, stage("distinct"):
        DistinctTechnique({}, base=Answers(passage("a.md", TEXT, 1.0), passage("b.md", OTHER, 0.5))).retrieve("valve")
    assert not any(one.degraded for one in trace.stages())


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
    base = Answers(*(passage(text[-30:], text, 1.0, title=title) for text, title in zip(texts, titles, strict=True)))
    assert len(DistinctTechnique({}, base=base).retrieve(query)) == count


def test_shingles_overlap() -> None:
    assert shingles_of("One two, three four five") == {"one two three four", "two three four five"}


def test_copies_are_shown_with_their_sources() -> None:
    copies = [passage(f"old{n}.md", TEXT, 1 - n / 10, modified=f"20{n + 10}") for n in range(6)]
    [found] = DistinctTechnique({}, base=Answers(*copies)).retrieve("valve")
    assert folded_copies(found) == "5 copies: old0.md; old1.md; old2.md; …"
    assert folded_copies(copies[0]) == ""
