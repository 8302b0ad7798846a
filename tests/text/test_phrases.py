"""Phrases of a query, and texts that hold them."""

# ruff: noqa: RUF001 - quotation marks of many languages are what this is about

from __future__ import annotations

import pytest

from ragistry.text.phrases import count_held, parse_query


@pytest.mark.parametrize(
    ("query", "phrases", "excluded", "beside"),
    [
        ('"red valve must be closed"', ("red valve must be closed",), (), 0),
        ('  "a b" "c" "c" ', ("a b", "c"), (), 0),
        ('valve "must be" -"red pump" -"x"', ("must be",), ("red pump", "x"), 1),
        ('("red valve"), "blue".', ("red valve", "blue"), (), 0),
        ("“red valve” now", ("red valve",), (), 1),
        ("„rotes Ventil“", ("rotes Ventil",), (), 0),
        ('"O\'Brien\'s" 19" rack', ("O'Brien's",), (), 2),
        ('-"valve"', (), ("valve",), 0),
        ('"大模型"', ("大模型",), (), 0),
        ('"✅" "🍐 pear" "->" x', ("✅", "🍐 pear", "->"), (), 1),
        ("« vanne rouge » l’«eau»", ("vanne rouge", "eau"), (), 1),
        ("»rotes Ventil« ›eng‹ ‚zu‘", ("rotes Ventil", "eng", "zu"), (), 0),
        ("»röd ventil» ”vatten” -”pump”", ("röd ventil", "vatten"), ("pump",), 0),
        ("‘the pump’s valve’ -‹x› don’t", ("the pump’s valve",), ("x",), 1),
        ("什么是「红阀」、『水』和“泵”", ("红阀", "水", "泵"), (), 1),
        ("-「泵」 《红楼梦》 〈序〉 ＂阀＂ 〝水〟", ("红楼梦", "序", "阀", "水"), ("泵",), 0),
    ],
)
def test_phrases_are_read(query: str, phrases: object, excluded: object, beside: int) -> None:
    parsed = parse_query(query)
    assert parsed is not None
    assert (parsed.phrases, parsed.excluded, parsed.words_beside) == (phrases, excluded, beside)


@pytest.mark.parametrize(
    "query",
    [
        "kubectl get pods -n x", "-word", "don't 'quote me'", '19" rack', '5\'11" tall, 6" wide', '"lone', 'lone"',
        '"', '""',
        'a " b " c', 'print("x")y', '"' * 1_001, '"a ' * 10_000, "rock’n’roll ’90s’",
        "19” rack, 6“ wide”", "«lone", "5»", "‘" * 10_000, "«a " * 10_000, "a » b »",
    ],
)  # fmt: skip
def test_other_quotation_marks_and_dashes_are_text(query: str) -> None:
    assert parse_query(query) is None


def test_the_text_is_the_query_without_what_is_excluded() -> None:
    parsed = parse_query('red -"blue" "must be" -n')
    assert parsed is not None
    assert parsed.text.split() == ["red", '"must', 'be"', "-n"]
    assert parsed.words.split() == ["red", "must", "be", "-n"]


TEXT = (
    "The Red  Valve, must be\nclosed; setMaxAttempts apart e-mail address costs 1,000 at café. Disk: 500GB every day."
)


@pytest.mark.parametrize(
    ("phrase", "held"),
    [
        ("red valve must be closed", True), ("RED VALVES", True), ("valve closed", False), ("closed must", False),
        ("set_max_attempts", True), ("set max attempts", True), ("max attempts", True), ("setmaxattempts", True),
        ("email address", True), ("e mail address", True), ("mail address", True), ("ail address", False),
        ("costs 1000", True), ("costs 1 000", True), ("cafe", True), ("500 GB", True), ("a part", False),
        ("everyday", False), ("every day", True), ("ed valve", False), ("the", True), ("day the", False),
        ("red " * 10_000, False),
    ],
)  # fmt: skip
def test_a_text_holds_a_phrase(phrase: str, held: bool) -> None:
    assert count_held([phrase], TEXT, "english") == held


@pytest.mark.parametrize(
    ("phrase", "text", "language"),
    [
        ("模型", "大模型的", "none"), ("ไทย", "ภาษาไทยนะ", "none"), ("frères humains", "Freres humains", "fr"),
        ("✅ done", "all ✅ done", "en"), ("all done", "all ✅ done", "en"),
        ("👍🏽", "great👍🏽!", "en"), ("👍", "👍🏽", "en"),
        ("20 C", "at 20°C", "en"), ("→", "a→b", "none"), ("🇩🇪", "🇩🇪🇩🇰", "none"), ("1️⃣", "1️⃣ first", "none"),
        ("محمد", "كتب مُحَمَّد رسالة", "ar"), ("Łódź", "in lodz today", "pl"), ("aa", "a aa", "none"),
    ],
)  # fmt: skip
def test_phrases_follow_the_analysis_of_the_language(phrase: str, text: str, language: str) -> None:
    assert count_held([phrase, "nothing"], text, language) == 1


@pytest.mark.parametrize(
    ("phrase", "text"),
    [("✅ done", "all done"), ("👍🏽", "👍"), ("👍🏽", "🙏🏽"), ("🇩🇪", "🇩🇰"), ("1️⃣", "1"), ("->", "a -> b")],
)
def test_a_phrase_with_a_symbol_is_not_held_without_it(phrase: str, text: str) -> None:
    assert count_held([phrase], text, "none") == 0
