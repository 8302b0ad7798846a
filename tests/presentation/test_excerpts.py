"""The part of a passage that answers: the right window, cut at sentences, matches marked by stem and phrase."""

from __future__ import annotations

import pytest

from ragistry.presentation import Excerpt, blocks_of, excerpt, excerpt_line, excerpt_of
from ragistry.presentation.html import excerpt_html
from ragistry.types import Document

FILLER = [f"Sentence number {number} says nothing that matters to anyone." for number in range(20)]
ANSWER = "Pruning the apple trees is done in late winter."


def passage(*, at: int = 12) -> str:
    return " ".join([*FILLER[:at], ANSWER, *FILLER[at:]])


def excerpt_in(text: str, query: str, room: int | None, name: str = "trees.txt") -> Excerpt:
    return excerpt_of(Document(text, {"source_file": name}, 1.0), query, "english", room)


def marked(shown: Excerpt) -> list[str]:
    return [block.text[s:e] for block in shown.blocks for s, e, name in block.styles if name == "match"]


@pytest.mark.parametrize("at", [0, 12, 20])
def test_the_window_holds_the_sentence_that_answers(at: int) -> None:
    shown = excerpt_in(passage(at=at), "when to prune an apple tree", 200)
    text = " ".join(block.text for block in shown.blocks)
    assert ANSWER in text
    assert len(text) <= 200
    assert (shown.before, shown.after) == (at > 0, at < 20)
    assert text[0].isupper(), "begins with a sentence"
    assert marked(shown) == ["Pruning", "apple trees"]


def test_a_passage_with_room_for_it_is_shown_whole() -> None:
    text = passage()
    for room in (None, 5_000):
        shown = excerpt_in(text, "apple", room)
        assert [block.text for block in shown.blocks] == [text]
        assert (shown.before, shown.after) == (False, False)


@pytest.mark.parametrize(
    ("text", "query", "room", "matches"),
    [
        (f"An index is here. {' '.join(FILLER[:8])} A derived index is rebuilt. {' '.join(FILLER[8:])} derived",
         "derived index", 80, ["derived index"]),  # words side by side count more than words apart
        ("How often does salt do this? It does so daily.", "how often does it need salt", None, ["often", "salt"]),
        ("This is how.", "how", None, ["how"]),  # words that only ask are marked if there are no others
        (f"{'word ' * 300}needle in the hay {'word ' * 300}", "needle", 120, ["needle"]),
        ("我们在北京吃饭。", "北京", None, ["北京"]),  # pairs of a script without spaces
    ],
)  # fmt: skip
def test_matches_are_marked_within_the_room(text: str, query: str, room: int | None, matches: list[str]) -> None:
    shown = excerpt(blocks_of(text, {}), query, "chinese") if query == "北京" else excerpt_in(text, query, room)
    assert marked(shown) == matches
    assert len("".join(block.text for block in shown.blocks)) <= (room or len(text))
    assert (shown.before, shown.after) == (bool(room), bool(room))


def test_html_is_escaped_and_styles_are_nested() -> None:
    blocks = blocks_of("Use **bold `x < y`** and <script>alert(1)</script>", {"source_file": "a.md"})
    shown = excerpt(blocks, "bold", "english")
    text = excerpt_html(shown)
    assert "<mark><strong>bold</strong></mark>" in text.replace(
        "<strong><mark>bold</mark></strong>", "<mark><strong>bold</strong></mark>"
    )
    assert "x &lt; y" in text
    assert "<script" not in text


def test_rows_are_one_table_and_a_match_in_code_stays_in_one_piece_of_code() -> None:
    blocks = blocks_of("| a | b |\n|---|---|\n| c `x y` | d |\n\nAfter.", {"source_file": "a.md"})
    assert excerpt_html(excerpt(blocks, "y", "english")) == (
        '<table><tbody><tr><td class="rg-short">a</td><td class="rg-short">b</td></tr>'
        '<tr><td>c <code>x <mark>y</mark></code></td><td class="rg-short">d</td></tr></tbody></table><p>After.</p>'
    )


def test_an_excerpt_is_one_line_where_only_text_fits() -> None:
    text = "# Tea\n\n- Steep *green* tea.\n- Pour it.\n\n" + "Rain falls on the roof. " * 40
    assert excerpt_line(excerpt_in(text, "green tea", 40, "a.md")) == "Tea • Steep green tea. • Pour it. …"


def test_of_the_sentences_around_the_answer_those_with_words_of_the_query_come_first() -> None:
    before, after = "Apple trees are tall. And old. ", " " + " ".join(FILLER)
    assert excerpt_line(excerpt_in(before + ANSWER + after, "when to prune an apple tree", 80)) == f"{before}{ANSWER} …"


def test_a_passage_found_by_a_name_of_its_source_says_so() -> None:
    known = {"source_file": "old/Invoice_4711-Hagemeyer.TXT", "chunk_index": 0, "tags": ["Zahnarzt", "bill"]}
    for room in (200, None):
        shown = excerpt_of(Document("Amount due: 200.", known, 1.0), "hagemeyer zahnarzt amount", "english", room)
        names = ["file name: old/Invoice_4711-Hagemeyer", "tags: Zahnarzt; bill"]
        assert [block.text for block in shown.blocks] == [*names, "Amount due: 200."]
        assert marked(shown) == ["Hagemeyer", "Zahnarzt", "Amount"]
    for text, index in (("Hagemeyer owes 200.", 0), ("Amount due: 200.", 1)):  # has the word itself, is not the first
        other = excerpt_of(Document(text, known | {"chunk_index": index}, 1.0), "hagemeyer", "english", 200)
        assert [block.text for block in other.blocks] == [text]
