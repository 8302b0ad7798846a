from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.utils.documents.front_matter import LISTS, SCALARS, split

FIELDS = {"title": "Install", "tags": ["a", "b"], "date": "2024-05-01"}


@pytest.mark.parametrize(
    "block",
    [
        "---\ntitle: Install\ntags: [a, b]\ndate: 2024-05-01\n---\n",
        "---\ntitle: Install\ntags:\n- a\n- b\ndate: 2024-05-01\n...\n",
        '+++\ntitle = "Install"\ntags = ["a", "b"]\ndate = 2024-05-01\n+++\n',
        '{\n  "title": "Install",\n  "tags": ["a", "b"],\n  "date": "2024-05-01"\n}\n',
    ],
    ids=["yaml", "yaml-dots", "toml", "json"],
)
def test_each_form_gives_the_same_metadata(block: str) -> None:
    assert split(block + "\n# Body\n") == (FIELDS, "# Body\n", "")


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("linkTitle: Short", {"title": "Short"}),
        ("title: Long\nlinkTitle: Short", {"title": "Long"}),
        ("Title: Capital", {"title": "Capital"}),
        ("title: 2024", {"title": "2024"}),
        ("tags: red, green , red", {"tags": ["red", "green"]}),
        ("tags: [1, true, null, {a: b}, [c]]", {"tags": ["1", "True"]}),
        ("tags: []\nkeywords:\ndescription: ''", {}),
        ("weight: 7", {"weight": 7}),
        ("weight: .inf", {}),
        ("date: 2024-05-01T10:30:00Z", {"date": "2024-05-01T10:30:00+00:00"}),
        ("aliases: [/old/]\nparams: {a: 1}\ndraft: true", {}),
        ("author: &who Ada\nsection: *who", {"author": "Ada", "section": "Ada"}),
    ],
)
def test_what_is_kept_of_a_field(line: str, kept: dict) -> None:
    assert split(f"---\n{line}\n---\nBody") == (kept, "Body", "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Plain text",
        "---\n\n# Between rules\n\n---\n",
        "---\n- a\n- b\n---\n",
        "{{< shortcode >}}\n",
        "{not json}",
        "--- \n",
    ],
)
def test_what_only_looks_like_front_matter_is_text(text: str) -> None:
    assert split(text) == ({}, text, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\ntitle: Never closed\n\nText", "has no end"),
        ("+++\ntitle = 'x'\n", "has no end"),
        ("---\ntitle: [\n---\nText", "line 3"),
        ("---\na: 1\na: 2\n---\n", "duplicate key"),
        ("---\ndate: 2024-13-45\n---\n", "month must be in 1..12"),
        ("---\nok: !!bool maybe\n---\n", "KeyError"),
        ("---\na: " + "[" * 1000 + "\n---\n", "RecursionError"),
        ("+++\ntitle = \n+++\n", "Invalid value"),
        ('{"title": }\n', "Expecting value"),
        ('{"a": ' + "[" * 60_000, "RecursionError"),
        ("---\ntitle: x\n" + "# comment\n" * 10_000, "has no end"),
        ("---\ntitle: x\n" + "# comment\n" * 10_000 + "---\n", "no end within its first 65,536 characters"),
        ("+++\ntitle = 'x'\n" + "# comment\n" * 10_000 + "+++\n", "no end within its first 65,536 characters"),
    ],
)
def test_malformed_front_matter_stays_in_the_text_with_a_warning(text: str, reason: str) -> None:
    metadata, body, warning = split(text)
    assert (metadata, body) == ({}, text)
    assert reason in warning
    assert "\n" not in warning


def test_json_is_read_up_to_the_limit() -> None:
    tags = [f"tag{number}" for number in range(4_000)]
    assert split(json.dumps({"title": "Big", "tags": tags}) + "\nBody") == ({"title": "Big", "tags": tags}, "Body", "")
    text = json.dumps({"title": "Big", "tags": tags * 3}) + "\nBody"
    metadata, body, warning = split(text)
    assert (metadata, body) == ({}, text)
    assert "65,536" in warning


def test_yaml_builds_no_objects(tmp_path: Path) -> None:
    target = tmp_path / "made"
    warning = split(f"---\ntitle: !!python/object/apply:pathlib.Path.touch [{target}]\n---\n").warning
    assert "could not determine a constructor" in warning
    assert not target.exists()


def test_aliases_that_multiply_cost_nothing() -> None:
    levels = "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    assert split(f"---\na0: &a0 [x, x]\n{levels}tags: *a39\ntitle: Bomb\n---\n").metadata == {"title": "Bomb"}


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["---\n{}\n---\n", "+++\n{}\n+++\n", "{{{}}}"]), st.text(max_size=80))
def test_any_block_is_read_or_kept_whole(form: str, block: str) -> None:
    text = form.format(block) + "\nBody"
    metadata, body, warning = split(text)
    assert text.endswith(body)
    assert set(metadata) <= {*SCALARS, *LISTS}
    assert body == text or not warning


def test_real_pages_all_have_a_title(data: Path) -> None:
    pages = [path for path in (data / "docs-hugo").rglob("*.md") if path.name != "README-source.md"]
    found = [split(page.read_text(encoding="utf-8-sig")) for page in pages]
    assert len(found) > 50
    assert [fields.warning for fields in found if fields.warning] == []
    assert all(fields.metadata["title"] and not fields.body.startswith("---") for fields in found)


@pytest.mark.parametrize("value", ["!!int ''", "!!float ''", "!!omap x", "2024-13-45", "0x" + 6_000 * "F"])
def test_a_value_that_yaml_cannot_build_leaves_the_block_as_text(value: str) -> None:
    text = f"---\ntitle: {value}\n---\nTea.\n"
    metadata, body, warning = split(text)
    assert (metadata, body) == ({}, text)
    assert warning.startswith("front matter cannot be read and was kept as text: ")
