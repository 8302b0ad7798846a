"""Of versions of one passage the newest comes first, and the others say of which they are older versions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragistry.techniques.newest import UNREADABLE, NewestTechnique, date_of, families
from ragistry.types import Document, ranked
from tests.techniques.doubles import Ready

TEXT = "The red valve of the boiler must be closed before the water is let out of the tank and the lid is opened."
OTHER = "Otters swim in clear rivers and eat the fish that they catch there, and they sleep in dens at the bank."
OLDER = "older_version_of"


def passage(name: str, text: str, score: float, **metadata: Any) -> Document:
    return Document(text, {"source_file": name, **metadata}, score, name)


def newest(documents: list[Document], query: str = "valve", top_k: int | None = None, **config: Any) -> list[Document]:
    return NewestTechnique(config, base=Ready(documents)).retrieve(query, top_k=top_k)


def test_the_newest_version_takes_the_best_place_and_the_others_follow() -> None:
    found = newest([
        passage("old.md", TEXT, 0.9, date="2024-05-01"),
        passage("other.md", OTHER, 0.8),
        passage("new.md", f"{TEXT} Ask first.", 0.7, modified="2026-05-01T10:00:00Z"),
        passage("undated.md", TEXT.upper(), 0.6),
        passage("older.md", TEXT, 0.5, date="1999-01-01", collection="shelf"),
    ])  # fmt: skip
    assert [(one.id, one.score, one.metadata.get(OLDER)) for one in found] == [
        ("new.md", 0.9, None),
        ("other.md", 0.8, None),
        ("old.md", 0.7, "new.md"),
        ("older.md", 0.6, "new.md"),
        ("undated.md", 0.5, None),
    ]
    assert [[score.stage for score in one.scores] for one in found] == [["newest"], [], *[["newest"]] * 3]


DATES: list[tuple[dict[str, Any], str]] = [
    ({"date": "2026-05-01", "modified": "2027-01-01"}, "2026-05-01"),
    ({"date": "2026-05-01", "updated": "2026-06-01T01:00:00+02:00"}, "2026-05-31T23:00:00Z"),
    ({"date": ["2020-01-01", "2021-01-01"], "updated": "last spring"}, "2021-01-01"),
    ({"date": 2019, "updated": "2019-07"}, "2019-07"),
    ({"date": "0000-01-01", "updated": "2026-02-30", "modified": "2020-01-01"}, UNREADABLE),
    ({"date": "0000-00-00", "modified": "2020-01-01"}, UNREADABLE),
    ({"date": "01.04.2019", "modified": "2026-01-01"}, "2019-04-01"),
    ({"date": "1. 4. 2019 10:00", "updated": ["31.12.2018"]}, "2019-04-01T10:00:00Z"),
    ({"date": "31.02.2019"}, UNREADABLE),
    ({"date": "04/01/2019", "updated": "2020-01-01"}, "2020-01-01"),
    ({"date": "", "updated": [], "modified": "2020-01-01"}, "2020-01-01"),
    ({"date": "2999-01-01"}, "2999-01-01"),
    ({"date": True, "updated": [1.5, None, {}], "modified": 17}, UNREADABLE),
    ({"date": "\u0662\u0660\u0662\u0666-\u0660\u0665-\u0660\u0661", "created": "2026-01-01"}, UNREADABLE),
]


@pytest.mark.parametrize(("metadata", "date"), DATES)
def test_date_is_the_later_one_of_metadata_or_else_of_the_file(metadata: dict[str, Any], date: str) -> None:
    assert date_of(passage("a", TEXT, 1.0, **metadata)) == date


ANY_DATE = st.sampled_from(
    [None, "", "2020", "2021-03", "2022-05-01", "2022-05-01T10:00:00Z", "2999-12-31", "soon", ["2023-01-01"]]
)


@given(
    st.lists(st.tuples(st.sampled_from([TEXT, f"{TEXT} Now.", OTHER]), ANY_DATE, st.integers(0, 3)), max_size=40),
    st.integers(1, 40),
    st.integers(1, 9),
)
def test_every_result_is_returned_once_and_fewer_are_the_first_of_more(
    rows: list[tuple[str, Any, int]], top_k: int, fetch: int
) -> None:
    documents = ranked(passage(f"{n}.md", text, score, date=date) for n, (text, date, score) in enumerate(rows))
    found = newest(documents, top_k=1_000, fetch=fetch)
    assert sorted(one.id for one in found) == sorted(one.id for one in documents)
    assert found == ranked(found)
    assert newest(documents, top_k=top_k, fetch=fetch) == found[:top_k]
    for family in families(documents[:fetch], 0.5, "valve"):
        by_date = [documents[place] for place in family]
        if UNREADABLE not in map(date_of, by_date):
            by_date.sort(key=date_of, reverse=True)
        assert [found[place].id for place in family] == [one.id for one in by_date]
    dates = {one.id: date_of(one) for one in documents}
    for one in found:
        if newer := one.metadata.get(OLDER):
            assert "" < dates[one.id] < dates[newer] < UNREADABLE


def test_a_family_of_a_hundred_is_ordered_by_date_and_asked_for_once() -> None:
    versions = [passage(f"{n:03}.md", TEXT, 1 - n / 1000, date=f"20{n:02}") for n in range(100)]
    base = Ready(versions)
    found = NewestTechnique({"fetch": 100}, base=base).retrieve("valve", top_k=100)
    assert [one.id for one in found] == [f"{n:03}.md" for n in reversed(range(100))]
    assert {one.metadata[OLDER] for one in found[1:]} == {"099.md"}
    assert [one.id for one in newest(versions, top_k=1)] == ["029.md"], "one of those that were fetched"
    assert [asked["top_k"] for asked in base.asked] == [100]


def test_a_base_whose_order_depends_on_the_number_is_asked_for_no_more() -> None:
    base = Ready([passage(name, TEXT, 1.0, date=date) for name, date in (("a", "2020"), ("b", "2021"), ("c", "2022"))])
    base.stable_order = False  # type: ignore[attr-defined]
    assert [one.id for one in NewestTechnique({}, base=base).retrieve("valve", top_k=2)] == ["b", "a"]
    assert [asked["top_k"] for asked in base.asked] == [2]


def test_passages_of_one_source_are_no_versions() -> None:
    found = [passage("a.md", TEXT, 1.0, date="2020"), passage("a.md", f"{TEXT} Now.", 0.9, date="2020")]
    assert newest(found) == found
    assert len(families([Document(TEXT, {}, 1.0, "x"), Document(TEXT, {}, 0.9, "y")], 0.8, "")) == 1


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
    found = [passage(text[-30:], text, 1.0, title=title) for text, title in zip(texts, titles, strict=True)]
    assert len(families(found, 0.8, query)) == count
