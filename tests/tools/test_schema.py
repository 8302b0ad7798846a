"""The function schema is what strict mode accepts, however many collections there are."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.config.files import CollectionEntry
from ragistry.tools.search_library import describe_collections, search_schema
from tests.conftest import full_run

NAMES = st.from_regex(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}", fullmatch=True)
ENTRIES = st.lists(
    st.builds(CollectionEntry, name=NAMES, description=st.text(max_size=300), display_name=st.none() | st.text()),
    max_size=30,
    unique_by=lambda entry: entry.name,
)


def entries(count: int, length: int = 8) -> list[CollectionEntry]:
    return [CollectionEntry(name=f"c{number:0{length - 1}}", description="Papers " * 20) for number in range(count)]


def parameters(collections: list[CollectionEntry], strict: bool = True) -> Any:
    return search_schema(collections, strict=strict)["function"]["parameters"]


@settings(max_examples=200 if full_run() else 40, deadline=None)
@given(ENTRIES)
def test_strict_schemas_follow_the_rules_of_strict_mode(collections: list[CollectionEntry]) -> None:
    schema = search_schema(collections, strict=True)["function"]
    assert schema["strict"] is True
    properties = schema["parameters"]["properties"]
    assert schema["parameters"]["required"] == list(properties)
    assert schema["parameters"]["additionalProperties"] is False
    for name, declared in properties.items():
        kind = "integer" if name == "max_tokens" else "string"
        assert declared["type"] == ("string" if name == "query" else [kind, "null"])
        assert None in declared.get("enum", [None])
    jsonschema.Draft202012Validator.check_schema(schema["parameters"])
    everything_null = {name: "tea" if name == "query" else None for name in properties}
    jsonschema.validate(everything_null, schema["parameters"])
    for entry in collections if len(collections) > 1 else []:
        jsonschema.validate(everything_null | {"collection": entry.name}, schema["parameters"])


@pytest.mark.parametrize(
    ("count", "length", "enum"),
    [
        (999, 8, True),  # and null are 1,000 values, of 7,996 characters
        (1_000, 8, False),
        (249, 63, True),  # up to 250 values may be of any length
        (250, 63, False),
        (500, 29, True),  # 500 * 29 + 4 characters are below 15,000
        (500, 30, False),
    ],
)
def test_past_the_limits_of_an_enum_the_names_are_in_the_description(count: int, length: int, enum: bool) -> None:
    collection = parameters(entries(count, length))["properties"]["collection"]
    assert ("enum" in collection) is enum
    assert len(collection["description"]) <= 8_000
    assert entries(count, length)[0].name in collection["description"]


def test_descriptions_are_shortened_before_names_are_left_out() -> None:
    assert describe_collections(entries(3)).count("Papers") == 60
    assert describe_collections(entries(100)).startswith("c0000000: Papers Papers")
    assert "…" in describe_collections(entries(100))
    assert describe_collections(entries(500)) == ", ".join(entry.name for entry in entries(500))
    many = describe_collections(entries(3_000))
    assert len(many) <= 8_000
    listed, _, rest = many.partition(" and ")
    assert listed.count("c") + int(rest.split()[0]) == 3_000


def test_a_description_of_several_lines_is_one_line() -> None:
    described_lines = describe_collections(
        [CollectionEntry(name="a", description="One\n  two\n"), CollectionEntry(name="b")]
    )
    assert described_lines == "a: One two; b"
