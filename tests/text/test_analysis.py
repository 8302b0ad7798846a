"""Text to terms."""

# ruff: noqa: RUF001 - many scripts is what this is about

from __future__ import annotations

import os
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import ConfigError
from ragistry.text import analysis
from ragistry.text.analysis import (
    CACHED_TOKENS,
    JOINED_WORDS,
    TERM_LIMIT,
    CodeTable,
    analyse,
    analysis_record,
    forms,
    query_forms,
    query_pairs,
    query_terms,
)
from ragistry.text.languages import STEMMED, UNSTEMMED, canonical_language
from tests.messages import refused


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The running dogs ran.", ["the", "run", "dog", "ran"]),
        ("Don't; “quoted” (John’s)!", ["don", "t", "quot", "john", "s"]),
        ("one\ttwo\nthree\u00a0four\u3000five", ["one", "two", "three", "four", "five"]),
        ("vitamin C", ["vitamin", "c"]),
        ("", []),
        (" \n… ´ ¨ ", []),
        ("a\x00b \ud800", ["a", "b"]),
    ],
)
def test_words_are_stemmed_and_punctuation_goes(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("LNT-1042", ["lnt", "1042", "lnt-1042"]),
        ("(EM62-0951),", ["em62", "0951", "em62-0951"]),
        ("max_tokens=3", ["max", "token", "max_tokens", "3"]),
        ("__init__", ["init"]),
        ("v1.5.9.", ["v1", "5", "9", "v1.5.9"]),
        ("3.14 and 2024/05/06", ["3", "14", "3.14", "and", "2024", "05", "06", "2024/05/06"]),
        ("well-known and/or", ["well", "known", "and", "or"]),
        ("Größe_2", ["grosse", "2", "grosse_2"]),
    ],
)
def test_an_identifier_gives_its_parts_and_itself(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("🙂 ❤️ pear🍐", ["🙂", "❤", "pear", "🍐"]),
        ("👍🏽 👩🏽‍💻", ["👍", "👍🏽", "👩", "👩🏽", "💻"]),
        ("🇩🇪🇩🇰 🏴\U000e0067\U000e007f", ["🇩🇪", "🇩🇰", "🏴", "🏴\U000e0067\U000e007f"]),
        ("1️⃣ #️⃣", ["1", "1⃣", "#⃣"]),
        ("a→b ★★★☆ ∑x ©2024 §♫", ["a", "→", "b", "★", "☆", "∑", "x", "©", "2024", "§", "♫"]),
        ("5€ 20°C", ["5", "€", "20", "°", "c"]),
        ("a->b • — – … · ‣ « » ' | ~ ^ ` $ + < = > │ ═ █ − ⋅ \ufffd \ufffc \uf0b7", ["a", "b"]),
    ],
)  # fmt: skip
def test_emoji_and_symbols_are_words_and_punctuation_is_not(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("模型", ["模", "型", "模型"]),
        ("猫", ["猫"]),
        ("GPT4模型v2", ["gpt4", "模", "型", "模型", "v2"]),
        ("東京、大阪。", ["東", "京", "東京", "大", "阪", "大阪"]),
        ("ひらカナ", ["ひ", "ら", "カ", "ナ", "ひら", "らカ", "カナ"]),
        ("ｶﾞ", ["ガ"]),
        ("한국어", ["한", "국", "어", "한국", "국어"]),
        ("ไทย", ["ไ", "ท", "ย", "ไท", "ทย"]),
        ("ລາວ", ["ລ", "າ", "ວ", "ລາ", "າວ"]),
        ("ខ្មែរ", ["ខ", "្", "ម", "ែ", "រ", "ខ្", "្ម", "មែ", "ែរ"]),
        ("မြန်", ["မ", "ြ", "န", "်", "မြ", "ြန", "န်"]),
        ("𠀀𠀁", ["𠀀", "𠀁", "𠀀𠀁"]),
    ],
)
def test_scripts_without_spaces_become_characters_and_pairs(text: str, terms: list[str]) -> None:
    assert analyse(text, "none") == terms


@pytest.mark.parametrize("word", ["हिन्दी", "தமிழ்", "മലയാളം", "עִבְרִית", "العربية", "Ελλάδα", "русский", "Việt", "ọmọ"])
def test_marks_are_part_of_their_word(word: str) -> None:
    assert len(analyse(f"{word}, {word}", "none")) == 2
    assert len(set(analyse(f"{word} {word}.", "none"))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("CAFÉ", "cafe"),
        ("Cafe\u0301", "café"),
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("ﬁle", "file"),
        ("Ｆｕｌｌ１", "full1"),
        ("co\u00adoperate", "cooperate"),
        ("می\u200cخواهم", "میخواهم"),
        ("ΣΟΦΟΣ", "σοφος"),
        ("ёлка", "елка"),
        ("Łódź Đakovo Søren", "lodz dakovo soren"),
        ("encyclopædia œuvre Þingvellir", "encyclopaedia oeuvre thingvellir"),
        ("Қазақ", "казак"),
        ("Hawaiʻi", "hawaii"),
        ("مُحَمَّد محـــمد", "محمد محمد"),
        ("שָׁלוֹם", "שלום"),
        ("أحمد ایران", "احمد ايران"),
        ("٢٠٢٤ १५ ๓๖๕ ８０", "2024 15 365 80"),
        ("non\u2011profit", "non-profit"),
        ("COL\u00b7LECCI\u00d3 paral\u00b7lel", "co\u0140lecci\u00f3 parallel"),
    ],
)
def test_writings_of_one_word_are_one_term(one: str, other: str) -> None:
    assert analyse(one, "none") == analyse(other, "none") != []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("refreshAccessToken", ["refresh", "access", "token"]),
        ("XMLHttpRequests", ["xml", "http", "request"]),
        ("set_max_attempts", ["setmaxattempt"]),
        ("torch.nn.functional", ["torchnnfunct"]),
        ("e-mail, docs/plug-in", ["email", "plugin"]),
        ("LNT-1042 500GB", ["lnt1042", "500", "gb"]),
        ("1,000 1'000'000 1,00,000", ["1,000", "1000", "1.000", "1'000'000", "1000000", "1,00,000", "100000"]),
        ("1.250,00 1.250 3,5", ["1.250,00", "1250.00", "1250", "1250", "3,5", "3.5"]),
        ("1 000\u202f000", ["1000000", "1 000 000"]),
        ("0x00FF", ["ff"]),
        ("2024-05-06 20240506", ["20240506"]),
        ("2024-05-06T10:30", ["20240506", "2024-05-06", "10:30", "10.30", "1030", "06", "10", "20240506t10"]),
        ("1'299.50 1 299,99", ["1'299.50", "1299.50", "1299", "299,99", "299.99", "1299", "1 299", "1299.99"]),
        ("0800/123-456, (0800) 123 456", ["123456", "0800123456", "0800123456"]),
        (
            "Tel.:+49 (0)800 123-456 +1 800 555 0199",
            ["123456", "0800123456", "49800123456", "8005550199", "18005550199"],
        ),
        ("01/02/2024 2019 2020 2021 0.25 0.50", []),
        ("00:1A:2B:3C:4D:5F 001a.2b3c.4d5f", ["00:1a:2b:3c:4d:5f", "001a2b3c4d5f", "001a2b3c4d5f", "001"]),
        ("9:05 14h05", ["9:05", "09.05", "0905", "14.05", "1405", "14", "05"]),
        ("12:05 a.m. a:b 16:9 ::1 1:2:3", ["12:05", "12.05", "1205", "am", "0:05", "00.05", "0005"]),
        ("10uF 10µF µF 4.7kΩ", ["10", "uf", "10", "μf", "uf", "uf", "4.7", "kω", "kohm", "7kohm"]),
        ("10kHz 50m² 5GB", ["10", "khz", "hz", "50", "m2", "5", "gb"]),
        ("24.12.2025 3.5.2026", ["20251224", "2025-12-24", "20260503", "2026-05-03"]),
        ("TCP/IP AT&T, (I/O)", ["tcpip", "att", "io"]),
        ("1/2 a/b/c docs/in R&D&E", []),
        ("5V 4k x2 4x4", ["5", "v", "4", "k"]),
        ("v1.5.9 3.14 word Word WORD URLs 19th it's", []),
        ("0a1b2c3d4e5f6a7b8c9d a-b-c-d-e-f-g", []),
    ],
)
def test_a_word_has_forms(text: str, found: list[str]) -> None:
    assert forms(text) == found


@pytest.mark.parametrize(
    ("word", "without", "language"),
    [("Łódź", "lodz", "pl"), ("frères", "freres", "fr"), ("städte", "stadte", "de"), ("canción", "cancion", "es")],
)
def test_a_word_without_accents_is_found_in_every_language(word: str, without: str, language: str) -> None:
    assert set(analyse(without, language)) <= {*analyse(word, language), *forms(word, language)}


def test_adjacent_words_of_a_short_query_are_also_one_word() -> None:
    assert query_pairs("the plug in") == {"theplug": 1, "plugin": 1}
    assert query_pairs("plug, in (plug) e-mail") == {}
    assert query_pairs("plugin plug in") == {"pluginplug": 1}
    assert query_pairs("Plug Ins") == {"plugin": 1}
    assert query_pairs("caf\u00e9 bar") == {"cafebar": 1}
    assert query_pairs("plug in " * JOINED_WORDS) == {}


def test_words_with_digits_of_a_short_query_are_also_one_code() -> None:
    pairs = query_pairs("part 978 3 16 1484X")
    assert pairs == {"part978": 1, "9783": 1, "316": 1, "161484x": 1, "9783161484x": 4}
    assert query_pairs("2 parts of 3 or 4") == {"2part": 1, "partsof": 1, "of3": 1, "3or": 1, "or4": 1}


def test_a_spaced_number_is_found_by_its_value_and_its_spelling() -> None:
    assert query_forms("1 000") == {"1000": 2, "1 000": 2}
    assert query_forms("1\u202f000\u00a0000 km") == {"1000000": 3, "1 000 000": 3}
    assert query_pairs("1 000") == {}


def test_a_code_of_a_query_counts_as_much_as_its_parts() -> None:
    assert query_forms("00:1A:2B:3C:4D:5F") == {"00:1a:2b:3c:4d:5f": 1, "001a2b3c4d5f": 6}
    assert query_forms("0800/123-456") == {"123456": 1, "0800123456": 3}
    assert query_forms("LNT-1042") == {"lnt1042": 1}
    assert query_pairs("10 µF") == {"10μf": 1, "10uf": 1}


def test_languages_stem_differently() -> None:
    assert analyse("Häuser Hauses", "german") == ["haus", "haus"]
    assert analyse("canciones canción", "es") == ["cancion", "cancion"]
    assert analyse("running", "none") == ["running"]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_turkish_has_two_letters_i_each_with_a_small_one_of_its_own(form: str) -> None:
    for words in ("Işık IŞIK ışık", "İzmir İZMİR izmir", "Irmak IRMAK ırmak", "Diyarbakır DİYARBAKIR diyarbakır"):
        assert len(set(analyse(unicodedata.normalize(form, words), "tr"))) == 1
    assert analyse("API ve CLI, ID; INSERT", "tr") == analyse("api ve cli, id; insert", "tr")
    assert analyse("Diyarbakır", "en") == analyse("Diyarbakir", "en")
    assert analyse("INDEX", "en") == analyse("index", "en")


def test_a_language_goes_by_its_name_or_code() -> None:
    assert canonical_language("EN") == canonical_language("English") == "english"
    assert canonical_language("zh") == "chinese"
    assert set(STEMMED.values()) <= set(Stemmer.algorithms())
    for code, name in (STEMMED | UNSTEMMED).items():
        assert analyse("x1", code) == analyse("x1", name) == ["x1"]


def test_an_unknown_language_is_refused_with_the_known_ones() -> None:
    with refused(ConfigError):
        analyse("text", "englsh")
    with refused(ConfigError):
        analysis_record("")


def test_stop_words_are_left_out_of_queries_that_have_others() -> None:
    assert query_terms("What is the state of the art?") == {"what": 1, "state": 1, "art": 1}
    assert query_terms("to be or not to be") == {"to": 2, "be": 2, "or": 1, "not": 1}
    assert query_terms("der Zug", "german") == {"der": 1, "zug": 1}
    assert query_terms("tea tea pot") == {"tea": 2, "pot": 1}
    assert query_terms("?!") == {}


def test_a_term_has_a_limit_that_long_words_share() -> None:
    assert analyse("x" * 1_000_000, "none") == ["x" * TERM_LIMIT]
    digest = "0123456789abcdef" * 4
    assert analyse(digest) == [digest]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.sampled_from(["english", "german", "none", "tr"]))
def test_any_text_gives_terms_without_blanks(text: str, language: str) -> None:
    terms = analyse(text, language)
    assert all(0 < len(term) <= TERM_LIMIT and term.split() == [term] for term in terms)
    assert all(0 < len(form) <= TERM_LIMIT and " ".join(form.split()) == form for form in forms(text, language))
    assert " ".join(terms).encode().decode().split(" ") == (terms or [""])


def codes_of_both(text: str, language: str) -> list[str]:
    """The codes of an index from the two functions that analyse terms and forms apart."""
    terms = analyse(text, language)
    return [
        *map(quote, terms),
        *(f"~{quote(form)}" for form in sorted({*forms(text, language)}.difference(terms), key=quote)),
    ]


def code_table(language: str) -> CodeTable:
    return CodeTable(language, quote, lambda form: f"~{quote(form)}")


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.sampled_from(["english", "german", "none", "tr"]))
def test_one_pass_gives_the_terms_and_forms_of_any_text(text: str, language: str) -> None:
    assert code_table(language).codes(text).split() == codes_of_both(text, language)


@pytest.mark.parametrize(
    ("folder", "language"),
    [("docs-etcd", "english"), ("docs-hugo", "turkish"), ("xquad-de", "german"), ("xquad-zh", "chinese")],
)
def test_one_pass_gives_the_terms_and_forms_of_a_corpus(data: Path, folder: str, language: str) -> None:
    table = code_table(language)
    for path in sorted(path for path in (data / folder).rglob("*") if path.is_file()):
        text = path.read_text(encoding="utf-8", errors="replace")[:60_000]
        for start in range(0, len(text), 900):
            assert table.codes(text[start : start + 900]).split() == codes_of_both(text[start : start + 900], language)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=12), max_size=6))
def test_pieces_between_blanks_are_independent(pieces: list[str]) -> None:
    apart = [term for piece in pieces for term in analyse(piece)]
    assert analyse(" ".join(pieces)) == apart


def test_what_is_remembered_changes_nothing_and_has_a_bound() -> None:
    analyser = analysis._Analyser("english")
    words = [f"w{number}-{number % 7}s" for number in range(CACHED_TOKENS + 1000)]
    first = [analyser[word] for word in words]
    assert len(analyser) <= CACHED_TOKENS
    assert [analyser[word] for word in words[:3000]] == first[:3000]
    long = "x" * 200
    assert analyser[long] == ("x" * TERM_LIMIT,)
    assert long not in analyser


def test_threads_share_a_stemmer_without_mixing_words() -> None:
    texts = [f"running{number} horses jumped quickly {number} relational{number}" for number in range(400)]
    alone = [analyse(text) for text in texts]
    analysis._analyser.cache_clear()
    with ThreadPoolExecutor(max(4, os.cpu_count() or 1)) as pool:
        assert list(pool.map(analyse, texts)) == alone


def test_the_record_names_what_decides_the_terms() -> None:
    record = analysis_record("en")
    assert record["language"] == "english"
    assert record["snowball"] == Stemmer.version()
    assert record != analysis_record("german")
