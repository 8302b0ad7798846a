"""RTF and Org become Markdown with all their words. What RTF shares with office files is in test_office_table.py."""

from __future__ import annotations

import pytest

from ragistry.readers import org, rtf

CHARSETS = [
    (0, "cp1252", "Grüße"), (77, "mac_roman", "Ünïcødé"), (128, "cp932", "日本語ソ表"), (129, "cp949", "한국어"),
    (130, "johab", "한국"), (134, "gbk", "中文测试"), (136, "cp950", "繁體功"), (161, "cp1253", "Ελλάδα"),
    (162, "cp1254", "ğışÖ"), (163, "cp1258", "đườ"), (177, "cp1255", "שלום"), (178, "cp1256", "سلام"),
    (186, "cp1257", "Šiauliai"), (204, "cp1251", "Привет"), (222, "cp874", "ไทย"), (238, "cp1250", "Příliš"),
]  # fmt: skip


@pytest.mark.parametrize("written", ["escapes", "bytes", "escaped lead bytes"])
@pytest.mark.parametrize(("charset", "encoding", "text"), CHARSETS)
def test_text_is_read_in_the_encoding_of_its_font(charset: int, encoding: str, text: str, written: str) -> None:
    raw = text.encode(encoding, "ignore")
    expected = raw.decode(encoding)
    if written == "bytes":
        given = b"".join(b"\\" + bytes([one]) if one in b"\\{}" else bytes([one]) for one in raw)
    else:
        plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" if written == "escaped lead bytes" else b""
        given = b"".join(bytes([one]) if one in plain else b"\\'%02x" % one for one in raw)
    fonts = b"{\\fonttbl{\\f0\\fcharset0 A;}{\\f1\\fnil\\fcharset%d B;}}" % charset
    source = b"{\\rtf1\\ansi\\deff0" + fonts + b"caf\\'e9 {\\f1 " + given + b"} \\'e9\\par}"
    assert [block.text for block in rtf.read(source, ".rtf").blocks] == [f"café {expected} é"]


BODY = [
    (r"a\~b x\_y op\-tional \{c\} \\ \emdash \ldblquote q\rdblquote", "a b x-y optional {c} \\ —“q”"),
    (r"\u8364? \u-10179?\u-8704? \uc2\u20013ab\uc1 z {\upr{old}{\*\ud{new\u8364?}}}", "€ 😀 中z new€"),
    (r"\ansicpg1251\'cf\'f0\'e8", "При"),
    (r"\mac\'8a", "ä"),
    (r"{\fonttbl{\f1\fcharset2 Symbol;}{\f2 Wingdings;}}{\f1 abg}{\f2 \'fc}", "αβγ✔"),
    (
        r"{\stylesheet{\s1 heading 1;}{\s7\outlinelevel2 Mine;}}\pard\s1 Top\par\pard\s7 Low\par\pard end",
        "# Top\n\n### Low\n\nend",
    ),
    (
        r"{\pntext\f1\'B7\tab}one\par{\listtext 2)\tab}two\par\ilvl1{\listtext\'b7}in\par\pard end",
        "- one\n2) two\n  - in\n\nend",
    ),
    (
        r"\trowd\intbl A\cell B\cell\row\intbl 1\cell 2|3\par 4\cell\row\pard end",
        "| A | B |\n| --- | --- |\n| 1 | 2\\|3 4 |\n\nend",
    ),
    (r"\trowd text\cell\row", "text"),
    (
        r"\pard\intbl o\cell\itap2 n\nestcell m\nestcell{\*\nesttableprops\nestrow}{\nonesttables\par}"
        r"\pard\intbl t\cell\row",
        "| o | n, m t |\n| --- | --- |",
    ),
    (r"{\object{\*\objdata 01}{\result shown}}{\*\unknown no}{\deleted no}{\xe no}yes", "shownyes"),
    (r"{\*\moMath{\mf{\mnum{\mr a}}{\mden{\mr b}}}}", "a/b"),
    (r"# no heading\line second\par\page third", "\\# no heading\nsecond\n\nthird"),
    (r"cut {off \b here", "cut off here"),
    (r"a}}}} after", "a after"),
]


@pytest.mark.parametrize(("source", "expected"), BODY)
def test_words_structure_and_signs_of_rtf_are_read(source: str, expected: str) -> None:
    found = rtf.read(b"{\\rtf1\\ansi " + source.encode() + b"}", ".rtf")
    assert "\n\n".join(block.text for block in found.blocks) == expected
    assert found.lost == {}


def test_boxes_of_old_programs_follow_the_text_and_hidden_words_are_counted() -> None:
    found = rtf.read(rb"{\rtf1 a{\v not shown}{\*\do{\dptxbxtext Old}} end}", ".rtf")
    assert ([block.text for block in found.blocks], found.lost) == (["a end", "Old"], {"hidden text": 2})


ORG = """#+TITLE: Pumps
#+AUTHOR: Zoe
#+OPTIONS: toc:nil
* TODO Top :a:b:
:PROPERTIES:
:ID: 7
:END:
Some *bold* /it/ =a/b/c= +old+ [[https://e.org/a/b/][link]] 2*3*4 x[fn:1] y[fn::in].
# a comment
- term :: meaning
#+BEGIN_SRC sh
ls
,* kept
#+END_SRC
#+CAPTION: Prices
|---+---|
| a | b |
|---+---|
| 1 | 2 |
#+BEGIN_QUOTE
quoted
#+END_QUOTE
-----
#+begin_comment
unseen
#+end_comment
## no heading
[fn:1] The note.
"""
ORG_READ = """**Title**: Pumps

**Author**: Zoe

# TODO Top (a, b)

**ID**: 7

Some **bold** *it* `a/b/c` ~~old~~ [link](https://e.org/a/b/) 2*3*4 x[1] y[in].
- term: meaning

```sh
ls
* kept
```
**Caption**: Prices

| a | b |
| --- | --- |
| 1 | 2 |

> quoted
\\-----
\\## no heading
[1] The note."""


def test_org_is_read_with_its_structure() -> None:
    found = org.read(ORG.encode(), ".org")
    assert found.blocks[0].text == ORG_READ
    assert found.info == {"Title": "Pumps", "Author": "Zoe"}
