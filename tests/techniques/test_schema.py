"""The JSON Schema of techniques.yaml tells an editor what the registry would say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ragistry.config.settings import DEFAULTS
from ragistry.techniques.classes import techniques_schema
from ragistry.utils.yaml_tree import parse_yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    written = techniques_schema()
    Draft202012Validator.check_schema(written)
    return Draft202012Validator(written)


def problems(schema: Draft202012Validator, text: str) -> list[str]:
    """Return the rules that a text breaks, each with the value."""
    found = schema.iter_errors(parse_yaml(text, "").data)
    return [f"{error.validator}: {error.instance!r}" for error in found]


def test_packaged_file_and_the_one_of_the_readme_are_accepted(schema):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"^```yaml\n(# config/techniques.yaml\n.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    for text in (*found, (DEFAULTS / "techniques.yaml").read_text(encoding="utf-8")):
        assert problems(schema, text) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{use: naive, top_k: 5}", ""),
        ("{use: newest, base: naive, similarity: 0.3}", ""),
        ("{use: hybrid, bases: [naive, bm25], fusion: min_max}", ""),
        ("{use: pipeline, steps: {first: {technique: naive, on: {found: END, empty: END}}}}", ""),
        ("{use: 'module:Class', base: naive, anything: [1, {at: all}]}", ""),
        ("{use: naive, top_kk: 5}", "additionalProperties: {'use': 'naive', 'top_kk': 5}"),
        ("{use: naive, top_k: 0}", "minimum: 0"),
        ("{use: naive, chunk_size: 0}", "anyOf: 0"),
        ("{use: newest}", "required: {'use': 'newest'}"),
        ("{use: nowhere}", "anyOf: 'nowhere'"),
        ("{use: hybrid, bases: naive}", "type: 'naive'"),
        ("{use: hybrid, bases: [1]}", "type: 1"),
        ("naive", "type: 'naive'"),
    ],
)
def test_schema_accepts_what_the_registry_would_load(schema, body, said):
    found = problems(schema, f"techniques:\n  it: {body}\n")
    assert any(said in problem for problem in found) if said else found == []
    assert problems(schema, "technique: {}\n") == ["additionalProperties: {'technique': {}}"]
