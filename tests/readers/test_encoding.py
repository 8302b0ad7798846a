# ruff: noqa: RUF001 - letters of other scripts are what is tested
from __future__ import annotations

import codecs
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.readers.encoding import decode
from ragistry.readers.extract import extract

POLISH = "Zażółć gęślą jaźń. Książka leży na stole, a żółw śpi pod łóżkiem. Był późny wieczór."
RUSSIAN = "Привет мир. Это простой текст на русском языке, который нужно прочитать правильно."
JAPANESE = "これは日本語の簡単な文章です。文字コードの判定を試しています。東京は日本の首都です。"
TEXTS = {
    "cp1252": "El niño comió piñas mañana y también habló español con su corazón. ¿Qué pasó?",
    "cp1250": POLISH,
    "iso8859-2": POLISH,
    "cp1254": "Bugün hava çok güzel. Çocuklar bahçede oynuyor, annesi ağacın altında kitap okuyor. Işık söndü.",
    "cp1251": RUSSIAN,
    "koi8-r": RUSSIAN,
    "cp866": RUSSIAN,
    "cp1253": "Καλημέρα κόσμε. Αυτό είναι ένα απλό κείμενο στα ελληνικά για τη δοκιμή.",
    "cp1255": "שלום עולם. זהו טקסט פשוט בעברית לבדיקה של הקידוד.",
    "cp1256": "مرحبا بالعالم. هذا نص بسيط باللغة العربية لاختبار الترميز.",
    "cp932": JAPANESE,
    "euc_jp": JAPANESE,
    "iso2022_jp": JAPANESE,
    "utf-16-le": RUSSIAN,
    "utf-16-be": RUSSIAN,
    "gb18030": "这是一个简单的中文文本，用于测试编码检测。北京是中国的首都，历史悠久。",
    "big5": "這是一個簡單的中文文本，用於測試編碼檢測。台北是台灣的首都，歷史悠久。",
    "cp949": "이것은 인코딩 감지를 테스트하기 위한 간단한 한국어 텍스트입니다. 서울은 한국의 수도입니다.",
}
MARKED = ["utf-8-sig", "utf-16", "utf-32"]


@pytest.mark.parametrize("encoding", TEXTS)
def test_the_encoding_is_guessed_from_the_letters(encoding: str) -> None:
    decoded = decode(TEXTS[encoding].encode(encoding))
    assert decoded.text == TEXTS[encoding]
    assert "guess" in decoded.warning


@pytest.mark.parametrize("text", ["café", "£5", "50 °C", "“hi”", "El Niño", "Größe"])
def test_a_few_letters_are_taken_for_western(text: str) -> None:
    assert decode(text.encode("cp1252"))[:2] == (text, "cp1252")


DECLARED = {
    "iso-8859-1": ("cp1252", "mañana “señor” 5 €"),
    "ISO-8859-9": ("cp1254", "şimdi ışık “ğ”"),
    "windows-1250": ("cp1250", "kůň a žluť"),
    "koi8-r": ("koi8-r", "это да"),
    "gb2312": ("gb18030", "朱镕基是"),
    "Shift_JIS": ("cp932", "①番の㈱です"),
}


@pytest.mark.parametrize("head", ['<meta charset="{}">', "<?xml version='1.0' encoding='{}'?>", "# -*- coding: {} -*-"])
@pytest.mark.parametrize("name", DECLARED)
def test_named_encoding_is_used_as_browsers_understand_it(name: str, head: str) -> None:
    encoding, text = DECLARED[name]
    start = head.format(name) + "\n"
    assert decode(start.encode() + text.encode(encoding)) == (start + text, codecs.lookup(encoding).name, "")


@pytest.mark.parametrize("name", ["no-such", "utf-8", "utf-16", "hex", "ascii", "undefined", "shift_jis"])
def test_named_encoding_that_does_not_fit_is_not_used(name: str) -> None:
    start = f'<meta http-equiv="Content-Type" content="text/html; charset={name}">'
    assert decode((start + POLISH).encode()).text == start + POLISH
    assert decode(start.encode() + RUSSIAN.encode("koi8-r")).text.endswith(RUSSIAN) or name == "ascii"


def test_one_long_line_is_guessed_from_its_start() -> None:
    text = "Le château fut bâti. Il faisait très froid, mais la soirée était agréable. " * 20_000
    assert decode(text.encode("cp1252")).text == text


@pytest.mark.parametrize("encoding", ["utf-8", *MARKED])
@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60))
def test_what_is_unicode_is_never_guessed(encoding: str, text: str) -> None:
    decoded = decode(("x" + text).encode(encoding))
    assert (decoded.text, decoded.warning) == ("x" + text, "")


def read_or_reason(data: bytes) -> str:
    try:
        return decode(data).text
    except ValueError as refusal:
        return f"\0{refusal}"


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_text_or_refused_with_a_remedy(data: bytes) -> None:
    text = read_or_reason(data)
    assert "\0" not in text or text.endswith("save it as UTF-8")


def test_utf16_big_endian_with_a_mark() -> None:
    assert decode(b"\xfe\xff" + "Grüße".encode("utf-16-be")).text == "Grüße"


def test_colours_of_a_terminal_are_not_an_encoding() -> None:
    log = b"\x1b[31mred\x1b(B\x1b[m and a price in \x1b$ signs"
    assert decode(log) == (log.decode(), "utf-8", "")


def test_utf16_without_a_mark_is_read_with_a_warning() -> None:
    decoded = decode("A plain English sentence, saved by an editor without a mark.".encode("utf-16-le"))
    assert decoded.text.startswith("A plain English sentence,")
    assert "utf-16-le, which is a guess" in decoded.warning


@pytest.mark.parametrize("data", [b"PK\x03\x04\x00\x00", b"text and \0", b"\xff\xfea\0\0\0b\0", bytes(range(256)) * 9])
def test_nul_characters_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="NUL"):
        decode(data)


def test_noise_is_refused() -> None:
    noise = random.Random(1).randbytes(3_000).replace(b"\0", b"")
    with pytest.raises(ValueError, match="encoding is unknown"):
        decode(noise)


def test_damaged_utf8_stays_utf8() -> None:
    decoded = decode("Это простой текст. ".encode() + b"\xff" + "Ещё один.".encode())
    assert decoded.text == "Это простой текст. \ufffdЕщё один."
    assert "invalid utf-8" in decoded.warning


def test_utf16_that_ends_in_half_a_character_is_a_warning() -> None:
    decoded = decode("Grüße".encode("utf-16") + b"\x41")
    assert decoded.text == "Grüße\ufffd"
    assert "invalid utf-16" in decoded.warning


@pytest.mark.parametrize(
    ("name", "encoding"),
    [("xquad-de", "cp1252"), ("xquad-es", "cp1252"), ("xquad-zh", "gb18030"), ("xquad-en", "utf-16-be")],
)
def test_real_paragraphs_are_read_as_they_were_written(data: Path, name: str, encoding: str) -> None:
    lines = (data / name / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[:100]
    texts = [json.loads(line)["text"].encode(encoding, "ignore") for line in lines]
    wrong = sum(decode(text).text != text.decode(encoding) for text in texts)
    assert wrong <= 0.02 * len(texts)


COLOURED = [
    ("\x1b[1mvalve\x1b[0m open", "valve open"),
    ("\x1b[38;5;12mvalve\x1b[K", "valve"),
    ("\x1b]8;;http://e.org\x1b\\link\x1b]8;;\x1b\\ \x1b]0;title\x07end", "link end"),
    ("N\bNA\bAME _\bu\x1b(B", "NAME u"),
    ("\u009b1mvalve", "valve"),
    ("no commands [1m", "no commands [1m"),
]


@pytest.mark.parametrize("suffix", [".txt", ".md", ".csv"])
@pytest.mark.parametrize(("text", "expected"), COLOURED)
def test_commands_of_a_terminal_are_removed_from_text_files(
    text: str, expected: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text(f"first\n{text}\n", encoding="utf-8")
    assert extract(path).text == f"first\n{expected}\n"
