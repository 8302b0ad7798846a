"""The JSON Schema of techniques.yaml tells an editor what the registry would say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from ragistry.config.settings import DEFAULTS
from ragistry.techniques.classes import techniques_schema

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    written = techniques_schema()
    Draft202012Validator.check_schema(written)
    return Draft202012Validator(written)


def problems(schema: Draft202012Validator, text: str) -> list[str]:
    return [error.message for error in schema.iter_errors(YAML(typ="safe", pure=True).load(text))]


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
        ("{use: mmr, base: naive, lambda: 0.3}", ""),
        ("{use: hybrid, bases: [naive, bm25], fusion: min_max}", ""),
        ("{use: pipeline, steps: {first: {technique: naive, on: {found: END, empty: END}}}}", ""),
        ("{use: 'module:Class', base: naive, anything: [1, {at: all}]}", ""),
        ("{use: naive, top_kk: 5}", "'top_kk' was unexpected"),
        ("{use: naive, top_k: 0}", "0 is less than the minimum of 1"),
        ("{use: naive, chunk_size: 0}", "0 is not valid under any of the given schemas"),
        ("{use: mmr}", "'base' is a required property"),
        ("{use: nowhere}", "'nowhere'"),
        ("{use: hybrid, bases: naive}", "'naive' is not of type 'array'"),
        ("{use: hybrid, bases: [1]}", "1 is not of type 'string'"),
        ("naive", "'naive' is not of type 'object'"),
    ],
)
def test_schema_accepts_what_the_registry_would_load(schema, body, said):
    found = problems(schema, f"techniques:\n  it: {body}\n")
    assert any(said in problem for problem in found) if said else found == []
    assert any("'technique' was unexpected" in problem for problem in problems(schema, "technique: {}\n"))
