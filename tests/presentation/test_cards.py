"""Cards: one for each source, and similar passages of other sources together."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry.presentation import cards_of, excerpt_line, excerpt_of
from ragistry.presentation.cards import names_of
from ragistry.presentation.navigation import navigation_lines
from ragistry.types import Document

FILLER = "Nothing of this is about the matter that was asked for. "


def document(name: str, number: int, text: str, **more: Any) -> Document:
    metadata = {"collection": "manual", "source_file": name, "chunk_index": number, **more}
    return Document(text, metadata, 0.5, f"{name}-{number}")


def test_similar_passages_of_other_sources_are_in_the_card_of_the_best() -> None:
    def statement(month: str) -> str:
        return (
            f"Rent statement of the flat at 14 Quay Street for {month}. The balance is carried forward to the next "
            "statement. Please report differences to the office of the administration within fourteen days."
        )

    found = [
        document("may.md", 0, statement("May")), document("june.md", 0, statement("June")),
        document("june.md", 1, "The office is closed in June."), document("may.md", 1, statement("May 2024")),
        document("july.md", 0, statement("July")),
    ]  # fmt: skip
    first, second = cards_of(found, "rent", "english", 300)
    assert [part.document.id for part in first.similar] == ["june.md-0", "july.md-0"]
    assert {part.document.id for part in (*first.parts, *first.rest)} == {"may.md-0", "may.md-1"}, "of one source"
    assert [part.document.id for part in second.parts] == ["june.md-1"]
    july = cards_of(found, "rent in July", "english", 300)[-1]
    assert july.parts[0].document.id == "july.md-0", "it has a word of the query that the others lack"


def test_sources_of_copies_are_named_once() -> None:
    copies = [document(f"{name}.md", number, "Salt.") for name in "abbcd" for number in (0, 1)]
    assert names_of(copies) == "manual · a.md; manual · b.md; manual · c.md; and 1 more"
    assert names_of(copies[:2]) == "manual · a.md"


def test_a_sentence_that_overlapping_passages_share_is_shown_once() -> None:
    shared = "Salt softens the water of a dishwasher."
    texts, filler = (f"{FILLER * 9}{shared}", f"{shared} {FILLER * 9}"), 9 * len(FILLER)
    spans = (0, filler + len(shared)), (filler, 2 * filler)
    found = [
        document("a.md", number, text, start=start, end=end)
        for number, (text, (start, end)) in enumerate(zip(texts, spans, strict=True))
    ]
    [card] = cards_of(found, "what softens water", "english", len(shared) + 2)
    assert [len(card.parts), len(card.rest)] == [1, 1]


@pytest.mark.parametrize(
    ("texts", "query", "parts", "rest"),
    [
        (["Snow and ice", "Snow", "Winter", "Snow"], "snow", [0, 1, 2], [3]),  # the same word again
        (["18 MB", "The quota.", "2 GB", "A quota."], "quota", [1, 3, 0], [2]),  # those with words of the query first
        (["18 MB", "The quota.", "2 GB", "A quota."], "limit", [0, 1, 2], [3]),
        (["Background checks.", "More checks.", "Checks of background.", "Checks in Alaska."],
         "background checks in Alaska", [0, 3, 1], [2]),  # then those that add words that the first one lacks
    ],
)  # fmt: skip
def test_passages_of_a_card_are_in_the_order_in_which_they_help(
    texts: list[str], query: str, parts: list[int], rest: list[int]
) -> None:
    found = [document("a.pptx", number, text, page=number, start=number * 20) for number, text in enumerate(texts)]
    [card] = cards_of(found, query, "english", 300)
    assert [[found.index(part.document) for part in one] for one in (card.parts, card.rest)] == [parts, rest]


def test_what_a_lead_in_introduces_is_shown() -> None:
    lead = "A snapshot of the cluster is taken with this command:"
    text = f"{FILLER * 6}\n\n{lead}\n\n```sh\n$ etcdctl snapshot save backup.db\n```\n\n{FILLER * 6}"
    for room in (len(lead) + 1, len(lead) + 30, 300):
        shown = excerpt_of(document("a.md", 0, text), "how is a snapshot taken", "english", room)
        assert "etcdctl snapshot save" in excerpt_line(shown), room


BORDER = "+------+-------+"
LINKS = "- [Install](install.md)\n- [Quota and limits](quota.md)\n- [FAQ](faq.md)"


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        (f"{BORDER}\n| size | quota |\n{BORDER}", [0, 2]),
        ("[Home](/) | [Quota](/quota) | [Next](/next)\n\nThe quota is 2 GB.", [0]),
        (f"{LINKS}\n\nThe quota is 2 GB.", [0, 1, 2]),
        ("- [Quota](quota.md)\n- [FAQ](faq.md)\n- and text", []),
        ("1.2 Quota ............... 12\n1.3 Limits . . . . . . . xiv", [0, 1]),
        ("« Previous | Next »\nBack to top", [0, 1]),
        ("Next, set the quota.\nHome is where the quota is", []),
        ("See [the quota](quota.md).", []),
        ("[Quota](quota.md)", []),
        ("======\n――――\n· · ·", [0, 1, 2]),
        ("目次 ............ 3", [0]),
    ],
)
def test_lines_without_content(text: str, empty: list[int]) -> None:
    assert sorted(navigation_lines(text.splitlines())) == empty


@pytest.mark.parametrize(
    "lead", [f"```text\n{BORDER}\n| quota | 2 GB |\n{BORDER}\n```", f"{LINKS}\n\nThe quota is 2 GB."]
)
@pytest.mark.parametrize("room", [60, 2_000])
def test_an_excerpt_never_opens_with_a_border_or_navigation(lead: str, room: int) -> None:
    shown = excerpt_line(excerpt_of(document("a.md", 0, f"{lead}\n\n{FILLER * 5}"), "quota", "english", room))
    assert "2 GB" in shown
    assert not shown.strip("… ").startswith(("+--", "• Install"))


def test_a_passage_of_links_only_is_shown_all_the_same() -> None:
    assert "Quota and limits" in excerpt_line(excerpt_of(document("a.md", 0, LINKS), "quota", "english", 60))
