"""Edits of a YAML list in its own text: what is edited says what it should, and all the rest stays to the letter."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.config.yaml_edits import scalar, with_entry, with_fields, with_value, without_entry
from ragistry.errors import ConfigError
from tests.messages import refused

BLOCK = """\
# our library
n_results: 7        # not too many
collections:
  # one for each subject
  - name: mba       # the oldest
    display_name: 'MBA "Textbooks"'
    description: >  # folded
      MBA textbooks
      and more

  # ask Anna about this one
  - name: econ
    description: plain text
      over two lines   # with a remark
  # the last of them
  -
    name: law # nothing in it yet
# end of the list

language: english
"""
STYLES = {
    "block": BLOCK,
    "flush": "collections:\n- name: mba\n  description: x # y\n- description: z\n  name: econ\n- name: law\n",
    "flow": "collections: [{name: mba, description: x}, {name: econ}, {name: law}]   # in one line\nn_results: 7\n",
    "mixed": 'collections:\n  - {name: mba, description: "x"}  # one\n  - {name: econ}\n  - name: law\n',
    "windows": BLOCK.replace("\n", "\r\n"),
    "no newline at the end": "n_results: 3\ncollections:\n  - name: mba\n  - name: econ\n  - name: law",
    "a mark at the beginning": "\ufeffcollections:\n  - name: mba\n  - name: econ\n  - name: law\n",
    "a document mark": "---\ncollections:\n  - name: mba\n  - name: econ\n  - name: law\n",
    "no values": "collections:\n- name: mba\n  description:\n- name: econ\n  description:   # none\n- name: law\n",
}
EMPTY = {
    "no file": "",
    "no key": "n_results: 3  # three\n",
    "no value": "collections:   # none yet\nn_results: 3\n",
    "no value at the end": "collections:",
    "no value before the last comments": "n_results: 3\ncollections:   # none yet\n  # - name: old\n# the end\n",
    "brackets below a comment": "collections:   # none yet\n  # - name: old\n  []\nn_results: 3\n",
    "brackets": "collections: []   # none yet\nn_results: 3\n",
    "null": "collections: null\n",
    "comments only": "# nothing but this\n",
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def entries(text: str) -> list[dict[str, str]]:
    return [dict(entry) for entry in yaml.safe_load(text)["collections"] or []]


def comments(text: str) -> list[str]:
    return re.findall(r"#.*", text)


@pytest.fixture(params=STYLES.values(), ids=STYLES)
def text(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("text", EMPTY.values(), ids=EMPTY)
def test_an_entry_is_added_where_there_is_none(text: str) -> None:
    changed = with_entry(text, {"name": "tea", "description": "Green"})
    assert entries(changed) == [{"name": "tea", "description": "Green"}]
    assert comments(changed) == comments(text)
    assert entries(with_entry(changed, {"name": "rain"})) == [*entries(changed), {"name": "rain"}]


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_field_is_set_and_only_its_line_changes(text: str, index: int) -> None:
    before = entries(text)
    changed = with_fields(text, index, {"name": "renamed", "description": "yes: no"})
    before[index] |= {"name": "renamed", "description": "yes: no"}
    assert entries(changed) == before
    assert [comment for comment in comments(changed) if comment != '# no comment"'] == comments(text) or "[{" in text
    assert len(lines(text) - lines(changed)) <= 4
    added = with_fields(changed, index, {"formerly": "old"})
    assert with_fields(added, index, {"formerly": None}) == changed


@pytest.mark.parametrize("index", [0, 1, 2])
def test_an_entry_goes_and_the_comments_around_it_stay(text: str, index: int) -> None:
    changed = without_entry(text, index)
    assert entries(changed) == [entry for place, entry in enumerate(entries(text)) if place != index]
    own = {"the oldest", "folded", "with a remark", "nothing in it yet", "y", "one", "none"}
    kept = [comment for comment in comments(text) if comment.strip("# \r") not in own]
    assert [comment for comment in comments(changed) if comment.strip("# \r") not in own] == kept


def test_comments_of_the_others_stay_with_them() -> None:
    changed = without_entry(BLOCK, 0)
    assert changed == BLOCK.replace(BLOCK[BLOCK.index("  - name: mba") : BLOCK.index("\n  # ask Anna")], "")
    assert "# ask Anna about this one\n  - name: econ\n" in changed
    assert with_fields(BLOCK, 1, {"name": "economy"}) == BLOCK.replace("name: econ", "name: economy")


def test_styles_that_cannot_be_edited_are_refused() -> None:
    for edit in [
        lambda: with_fields("collections:\n  - &one {name: mba}\n  - *one\n", 1, {"description": "new"}),
        lambda: with_entry("{n_results: 3}", {"name": "tea"}),
        lambda: with_entry("collections: [  # none yet\n  # - {name: old}\n]\n", {"name": "tea"}),
        lambda: with_entry("collections: [{name: old},  # the first\n  {name: new}]\n", {"name": "tea"}),
    ]:
        with refused(ConfigError):
            edit()


@settings(max_examples=150, deadline=None)
@given(TEXT)
def test_every_text_is_read_back_as_it_was(text: str) -> None:
    assert yaml.safe_load(f"x: {scalar(text)}")["x"] == text


EDITS = st.lists(st.tuples(st.sampled_from(["add", "set", "remove"]), st.integers(0, 2), TEXT), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(STYLES)), EDITS)
def test_any_edits_mean_in_any_style_what_they_say(style: str, edits: list[tuple[str, int, str]]) -> None:
    """Until the list is empty, and afterwards; a list in brackets stays in brackets."""
    text, expected = STYLES[style], entries(STYLES[style])
    for action, index, words in edits:
        if action == "add" or index >= len(expected):
            text = with_entry(text, {"name": "tea", "description": words})
            expected.append({"name": "tea", "description": words})
        elif action == "set":
            text = with_fields(text, index, {"description": words, "display_name": words[:3]})
            expected[index] |= {"description": words, "display_name": words[:3]}
        else:
            text = without_entry(text, index)
            del expected[index]
        assert entries(text) == expected
    assert style != "flow" or "collections: [" in text
    assert text.startswith(STYLES[style].partition("collections:")[0])


def lines(text: str) -> set[str]:
    return set(text.splitlines())


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("default: auto  # base\nx: 1\n", "default: bm25  # base\nx: 1\n"),
        ("# x\n'default': \"a b\"\r\n", "# x\n'default': bm25\r\n"),
        ("techniques: {}", "techniques: {}\ndefault: bm25\n"),
        ("\ufeff{default: a, x: 1}\n", "\ufeff{default: bm25, x: 1}\n"),
        ("# nothing\n", "# nothing\ndefault: bm25\n"),
    ],
)
def test_a_value_is_set_and_nothing_else_changes(text: str, changed: str) -> None:
    assert with_value(text, "default", "bm25") == changed
    with refused(ConfigError):
        with_value("{x: 1}\n", "default", "bm25")
