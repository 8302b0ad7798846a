from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.readers.front_matter import LISTS, split
from ragistry.utils.metadata import checked_metadata

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
        ("linkTitle: Short", {"linkTitle": "Short", "title": "Short"}),
        ("title: Long\nlinkTitle: Short", {"title": "Long", "linkTitle": "Short"}),
        ("Title: Capital", {"title": "Capital"}),
        ("title: 2024", {"title": "2024"}),
        ("tags: red, green , red", {"tags": ["red", "green"]}),
        ("tags: [1, true, null, '', [c]]", {"tags": ["1", "True", "c"]}),
        ("tags: []\nkeywords:\ndescription: ''\nempty:", {}),
        ("weight: 7", {"weight": 7}),
        ("date: 2024-05-01T10:30:00Z", {"date": "2024-05-01T10:30:00Z"}),
        ("when: 2024-05-01 10:30:00 +02:00", {"when": "2024-05-01T08:30:00Z"}),
        ("at: '2024-05-01T10:30+02:00'", {"at": "2024-05-01T08:30:00Z"}),
        ("aliases: [/old/]\ndraft: true\nPrice: 2.5", {"aliases": ["/old/"], "draft": True, "Price": 2.5}),
        ("title: Pumps: a guide", {"title": "Pumps: a guide"}),
        (
            "title: Pumps: a\n  long guide\nsummary: Yes: no: maybe",
            {"title": "Pumps: a long guide", "summary": "Yes: no: maybe"},
        ),
        (
            "subject: Re: Re: order\nurl: see: http://e.org/a",
            {"subject": "Re: Re: order", "url": "see: http://e.org/a"},
        ),
        ("note: ends with:", {"note": "ends with:"}),
        ("version: '1.10'\nrelease: 1.0\nbuild: 1.10.0", {"version": "1.10", "release": 1.0, "build": "1.10.0"}),
        ("sku: 00123\nzip: [01234, 09810]\nzero: 0", {"sku": "00123", "zip": ["01234", "09810"], "zero": 0}),
        (
            "account: 123456789012345678901\nhex: 0x1F\ntitle: 007",
            {"account": "123456789012345678901", "hex": 31, "title": "007"},
        ),
        ("posted: 2015-11-17 16:16:01 -0600\ntrue: 1", {"posted": "2015-11-17T22:16:01Z", "true": 1}),
        ("days: [2024-05-01, 2024-05-02]\n2024: a year", {"days": ["2024-05-01", "2024-05-02"], "2024": "a year"}),
        ("author: &who Ada\nsection: *who", {"author": "Ada", "section": "Ada"}),
    ],
)
def test_what_is_kept_of_a_field(line: str, kept: dict) -> None:
    assert split(f"---\n{line}\n---\nBody") == (kept, "Body", "")


TAGS = [f"tag{number}" for number in range(4_000)]
COMMENTS = "# comment\n" * 10_000
WHOLE = [
    *((text, "") for text in ("", "Plain text", "---\n\n# Between rules\n\n---\n", "---\n- a\n- b\n---\n", "--- \n")),
    *((text, "") for text in ("{{< shortcode >}}\n", "{not json}")),
    ("---\nSome text: with a: colon\nand prose\nthat goes on\n\nfor lines\n---\nMore\n", "kept as text"),
    ("---\nprose\nNote: a: b\n---\n", "kept as text"),
    ("---\ntitle: Never closed\n\nText", "has no end"),
    ("+++\ntitle = 'x'\n", "has no end"),
    ('{"title": }\n', "Expecting value"),
    ('{"a": ' + "[" * 60_000, "nested too deeply"),
    (f"---\ntitle: x\n{COMMENTS}", "has no end"),
    (f"---\ntitle: x\n{COMMENTS}---\n", "no end within its first 65,536 characters"),
    (f"+++\ntitle = 'x'\n{COMMENTS}+++\n", "no end within its first 65,536 characters"),
    (json.dumps({"title": "Big", "tags": TAGS * 3}) + "\nBody", "65,536"),
]


@pytest.mark.parametrize(("text", "said"), WHOLE)
def test_what_only_looks_like_front_matter_stays_in_the_text(text: str, said: str) -> None:
    metadata, body, warning = split(text)
    assert (metadata, body) == ({}, text)
    assert said in warning
    assert bool(warning) == bool(said)
    assert "\n" not in warning


def test_json_is_read_up_to_the_limit() -> None:
    fields = {"title": "Big", "tags": TAGS}
    assert split(json.dumps(fields) + "\nBody") == (fields, "Body", "")


def test_yaml_builds_no_objects(tmp_path: Path) -> None:
    target = tmp_path / "made"
    warning = split(f"---\nok: 1\ntitle: !!python/object/apply:pathlib.Path.touch [{target}]\n---\n").warning
    assert "the tag 'python/object/apply:pathlib.Path.touch' is unknown" in warning
    assert not target.exists()


@pytest.mark.parametrize("key", [*LISTS, "author"])
@pytest.mark.parametrize("entry", ["{name: Ann}", "[[Ann]]", "[Ann, [[Ben]]]", "9999999999999999999.5e999"])
def test_an_entry_that_is_dropped_is_reported(key: str, entry: str) -> None:
    for value in (f"[Zoe, {entry}]", f"[{entry}, Zoe, {entry}]"):
        metadata, _, warning = split(f"---\n{key}: {value}\n---\nBody")
        assert warning.count(key) == 1
        assert warning.startswith("front matter was not read completely: ")
        assert "Zoe" in metadata.get(key, ["Zoe"] if key == "author" else [])


def test_aliases_that_multiply_cost_nothing() -> None:
    levels = "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    assert split(f"---\na0: &a0 [x, x]\n{levels}tags: *a39\ntitle: Bomb\n---\n").metadata == {
        "a0": ["x", "x"],
        "title": "Bomb",
    }


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["---\n{}\n---\n", "+++\n{}\n+++\n", "{{{}}}"]), st.text(max_size=80))
def test_any_block_is_read_or_kept_whole(form: str, block: str) -> None:
    text = form.format(block) + "\nBody"
    metadata, body, _ = split(text)
    assert text.endswith(body)
    assert checked_metadata(metadata) == metadata
    assert body == text or text.endswith("Body")


def test_real_pages_all_have_a_title(data: Path) -> None:
    pages = [path for path in (data / "docs-hugo").rglob("*.md") if path.name != "README-source.md"]
    found = [split(page.read_text(encoding="utf-8-sig")) for page in pages]
    assert len(found) > 50
    assert {fields.warning.split("'")[1] for fields in found if fields.warning} <= {"params", "cascade", "card"}
    assert all(fields.metadata["title"] and not fields.body.startswith("---") for fields in found)


ODD = {
    "year: 1\nyear: 2": "year",
    "\tindented: x": "indented",
    "days:\n\t- monday": "monday",
    "{{ include 'head' }}": "include",
    "{% include head %}": "include",
    "a bare line": "bare",
    "type: post": "type",
    "chunk_index: 7": "chunk_index",
    "$where: 1": "$where",
    "params: {a: {b: 1}}": "params",
    "deep: [[1], [2]]": "deep",
    "mixed: [1, a]": "mixed",
    "size: .nan": "size",
    "data: !!binary aGk=": "data",
    "names: !!set {a, b}": "names",
}


ODD_TOML = ["due = 2024-02-30", "size = nan", "bare", "x = [1, 'a']", "y = ", "page = 3", "[params]\na = 1"]
NOT_BUILT = ["!!int ''", "!!float ''", "!!omap x", "*unknown"]
TEXTS = [
    "{{ page.title }}",
    "[a, b",
    '"open',
    "[" * 999,
    "@reference",
    "%percent",
    "'it's'",
    "2024-02-30",
    "0000-01-01",
]
"""Values that YAML cannot read."""


def odd_blocks() -> Iterator[tuple[str, dict[str, str], str]]:
    """Blocks with an odd line, what is kept of it, and what its warning names."""
    for at in range(3):
        for odd, key in ODD.items():
            lines = ["author: Ann", "tags: [a, b]"]
            lines.insert(at, odd)
            if at or not odd.startswith(("\t", "a bare")):  # without a key first, it may be text between two rules
                yield "---\n{}\n---\n".format("\n".join(lines)), {}, key
    front = "---\nauthor: Ann\ntags: [a, b]\n"
    for value in NOT_BUILT:
        for named in ("title", "other"):
            yield f"{front}title: {value}\nother: {value}\n---\n", {}, named
    for value in TEXTS:
        yield f"{front}odd: {value}\n---\n", {"odd": value}, "odd"
    for odd in ODD_TOML:
        yield f"+++\nauthor = 'Ann'\ntags = [\n  'a',\n  'b',\n]\n{odd}\n+++\n", {}, "completely"


@pytest.mark.parametrize(("block", "kept", "named"), list(odd_blocks()))
def test_an_odd_line_costs_only_its_key_and_is_reported(block: str, kept: dict[str, str], named: str) -> None:
    metadata, body, warning = split(f"{block}\nTea.\n")
    metadata.pop("year", None)
    assert (metadata, body) == ({"author": "Ann", "tags": ["a", "b"]} | kept, "Tea.\n")
    assert named in warning
    assert "\n" not in warning


def test_only_so_many_keys_are_kept() -> None:
    many = "".join(f"key{number}: {number}\n" for number in range(4_000))
    metadata, body, warning = split(f"---\n{many}title: Tea\n---\nTea.\n")
    assert (len(metadata), metadata["title"], body) == (100, "Tea", "Tea.\n")
    assert "4,001" in warning


def test_many_odd_lines_take_little_time() -> None:
    many = "".join(f"k{number}: a: b\n" for number in range(4_000))
    metadata, body, warning = split(f"---\ntitle: Tea\n{many}---\nTea.\n")
    assert (metadata["title"], body) == ("Tea", "Tea.\n")
    assert len(warning) < 3_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\nversion: 1.10\n---\n", ["`version: 1.10` is read as 1.1"]),
        ("---\nrelease: 3.20 # stable\nother: 2.5\n---\n", ["`release: 3.20` is read as 3.2"]),
        ("+++\npython = 3.10\n+++\n", ["`python: 3.10` is read as 3.1"]),
        ('{"version": 1.10}\n', ["`version: 1.10` is read as 1.1"]),
        (
            "---\nversions: [1.9, 1.10, 1.00]\n---\n",
            ["`versions: 1.10` is read as 1.1", "`versions: 1.00` is read as 1.0"],
        ),
        ("---\nv: 1.0\nw: '1.10'\nx: 1.10.0\ntext: costs 1.10\n---\n", []),
    ],
)
def test_decimal_that_loses_its_last_zero_is_reported(text: str, said: list[str]) -> None:
    warning = split(text + "Body").warning
    assert [phrase for phrase in said if f"{phrase}; quote it" not in warning] == []
    assert bool(warning) == bool(said)
