"""Sections and fences of Markdown."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.readers.markdown import outline, plain_heading


def contexts(text: str) -> list[str]:
    return [section.context for section in outline(text).sections]


def code(text: str) -> list[str]:
    return [text[start:end] for start, end in outline(text).fences]


def test_headings_nest_by_level() -> None:
    text = "before\n# A\na\n## B\n#### C\n## D\nd\n# E\n"
    assert contexts(text) == ["", "A", "A > B", "A > B > C", "A > D", "E"]


def test_a_heading_without_words_adds_nothing_to_the_context() -> None:
    assert contexts("# A\n##\ntext\n### B\n#\ntext") == ["A", "A", "A > B", ""]


def test_sections_cover_the_text() -> None:
    text = "before\n\n# A\n\na\n\n## B\n"
    sections = outline(text).sections
    assert [text[section.start : section.stop] for section in sections] == ["before\n\n", "# A\n\na\n\n", "## B\n"]
    assert [text[section.body : section.stop] for section in sections] == ["before\n\n", "a\n\n", ""]
    assert [section.bare for section in sections] == [False, False, True]


def test_a_text_without_headings_is_one_section() -> None:
    assert contexts("just text") == contexts("") == [""]


def test_setext_headings() -> None:
    text = "Title\n=====\n\ntext\n\nPart\n---\nmore\n\n---\n\n- item\n---\n\ntwo\nlines\n---\n"
    assert contexts(text) == ["Title", "Title > Part"]
    assert contexts("# A\nB\n===\ntext") == ["A", "B"]


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("## Install ##", "Install"),
        ("##\tInstall", "Install"),
        ("   ## Install", "Install"),
        ("## Install {#how-to}", "Install"),
        ("## The [guide](/guide/) and [index][]", "The guide and index"),
        ("## C#", "C#"),
        ("## Install\r", "Install"),
    ],
)
def test_the_title_of_a_heading(line: str, title: str) -> None:
    assert contexts(f"{line}\ntext") == [title]


@pytest.mark.parametrize("line", ["#tag", "####### seven", "    # indented code", "\\# escaped", "a # b", "> # quoted"])
def test_what_is_no_heading(line: str) -> None:
    assert contexts(f"{line}\ntext") == [""]


def test_a_very_long_title_is_shortened() -> None:
    assert len(contexts("# " + "[" * 100_000)[0]) == 200


@pytest.mark.parametrize(
    "fence",
    [
        "```\n# no heading\n```",
        "~~~ python\n# no heading\n~~~~",
        "````\n```\n# no heading\n````",
        "```sh {file=x}\r\n# no heading\r\n```",
        "> ```\n> # no heading\n> ```",
        "1. ```yaml\n   # no heading\n   ```",
        "      ```\n# no heading\n      ```",
    ],
)
def test_fenced_code_is_found_and_hides_headings(fence: str) -> None:
    text = f"# A\n\n{fence}\n\n# B\n"
    assert contexts(text) == ["A", "B"]
    assert code(text) == [fence[fence.index(fence.strip("> 1.")[0]) :]]


def test_an_open_fence_goes_to_the_end() -> None:
    text = "# A\n```\n# no heading\n~~~\n"
    assert contexts(text) == ["A"]
    assert code(text) == ["```\n# no heading\n~~~"]


def test_backticks_in_a_line_are_no_fence() -> None:
    assert code("```inline``` text\n# A\n") == []


lines = st.sampled_from(["# A", "## B", "text", "", "```", "~~~", "===", "---", "- x", "  ```", "#", "\r", "> ```"])


@given(st.lists(lines, max_size=30).map("\n".join))
@settings(max_examples=200, deadline=None)
def test_sections_and_fences_are_in_order_and_lose_nothing(text: str) -> None:
    sketch = outline(text)
    assert sketch.sections[0].start == 0 or not text[: sketch.sections[0].start].strip()
    assert sketch.sections[-1].stop == len(text)
    for before, after in pairwise(sketch.sections):
        assert before.start <= before.body <= before.stop == after.start
    offsets = [offset for fence in sketch.fences for offset in fence]
    assert offsets == sorted(offsets)
    assert not any(start < section.start < end for start, end in sketch.fences for section in sketch.sections)


PLAIN = [
    ("`throttle` and **more**", "throttle and more"),
    ("\\`\\`throttle\\`\\`", "``throttle``"),
    ("*A* [guide](x.md) to `__init__`", "A guide to __init__"),
    ("set_max_attempts and 2 * 3 * 4", "set_max_attempts and 2 * 3 * 4"),
    ("_one_ snake_case_name", "one snake_case_name"),
    ("C\\# and a \\* b", "C# and a * b"),
]


@pytest.mark.parametrize(("raw", "plain"), PLAIN)
def test_headings_are_plain(raw: str, plain: str) -> None:
    assert plain_heading(raw) == plain
    assert outline(f"## {raw}\n\ntext").sections[0].title == plain


@pytest.mark.parametrize(
    ("text", "found", "fenced"),
    [
        ("# A\n\n<!--\n# no\n\nx\n===\n```\n-->\n\n## B\n", ["A", "A > B"], []),
        ("  <!-- # no\n# no\n--> # no\n# A", ["", "A"], []),
        ("# A\n```\n<!--\n```\n## B\n-->", ["A", "A > B"], ["```\n<!--\n```"]),
        ("# A\n<!-- never closed\n## B", ["A", "A > B"], []),
        ("# A `<!--`\n## B `-->`", ["A <!--", "A <!-- > B -->"], []),
        ("# A\n<!-- one -->\nTitle\n---\n", ["A", "A > Title"], []),
        ("> <!--\n> # no\n> -->\n# A", ["", "A"], []),
    ],
)
def test_heading_in_a_comment_is_none(text: str, found: list[str], fenced: list[str]) -> None:
    assert (contexts(text), code(text)) == (found, fenced)
