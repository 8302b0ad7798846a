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


def entry(body: str) -> str:
    return f"techniques:\n  it: {body}\n"


def test_the_packaged_file_and_the_one_of_readme_are_accepted(schema: Draft202012Validator) -> None:
    assert problems(schema, (DEFAULTS / "techniques.yaml").read_text(encoding="utf-8")) == []
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"^```yaml\n(# config/techniques.yaml\n.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    assert [problems(schema, block) for block in found] == [[]]


@pytest.mark.parametrize(
    "body",
    [
        "{use: naive, top_k: 5}",
        "{use: mmr, base: naive, lambda: 0.3}",
        "{use: hybrid, bases: [naive, bm25], fusion: min_max}",
        "{use: pipeline, steps: {first: {technique: naive, on: {found: END, empty: END}}}}",
        "{use: 'module:Class', base: naive, anything: [1, {at: all}]}",
    ],
)
def test_what_the_registry_would_load_is_accepted(schema: Draft202012Validator, body: str) -> None:
    assert problems(schema, entry(body)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (entry("{use: naive, top_kk: 5}"), "'top_kk' was unexpected"),
        (entry("{use: naive, top_k: 0}"), "0 is less than the minimum of 1"),
        (entry("{use: naive, chunk_size: 0}"), "0 is not valid under any of the given schemas"),
        (entry("{use: mmr}"), "'base' is a required property"),
        (entry("{use: nowhere}"), "'nowhere'"),
        (entry("{use: hybrid, bases: naive}"), "'naive' is not of type 'array'"),
        (entry("{use: hybrid, bases: [1]}"), "1 is not of type 'string'"),
        (entry("naive"), "'naive' is not of type 'object'"),
        ("technique: {}\n", "'technique' was unexpected"),
    ],
)
def test_what_the_registry_would_refuse_is_refused(schema: Draft202012Validator, text: str, said: str) -> None:
    assert any(said in problem for problem in problems(schema, text))
