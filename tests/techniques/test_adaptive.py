"""Adaptive retrieval: which base each query goes to, and why."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry.errors import InvalidConfigError
from ragistry.techniques.adaptive import AdaptiveTechnique, identifier_share, is_identifier
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.types import Document
from tests.messages import refused
from tests.techniques.doubles import Ready, scored, traced

QUESTION = "how is tea made"


def falling(best: float) -> dict[str, float]:
    """A best document, and 19 others whose scores fall slowly from 5."""
    return {"d0": best} | {f"d{number}": 5 - number / 100 for number in range(1, 20)}


def chosen(query: str, words: dict[str, float], top_k: int = 5, **config: Any) -> tuple[str, list[Document]]:
    """The name of the base that was chosen, and what was found."""
    bases = Ready(scored(**words)), Ready(scored(other=1.0))
    named = [RegisteredTechnique(name, base) for name, base in zip(("words", "everything"), bases, strict=True)]
    found, stages = traced(AdaptiveTechnique(config | {"top_k": top_k}, bases=named), query)
    choose = next(stage for stage in stages if stage.name == "choose")
    name = choose.detail["base"]
    assert choose.detail["because"]
    assert [len(base.asked) for base in bases] == [1, int(name == "everything")]
    assert found == bases[name == "everything"].documents[:top_k]
    return name, found


@pytest.mark.parametrize(
    ("query", "words", "options", "expected"),
    [
        ("what is LNT-1042?", falling(5.0), {}, "words"),
        ("what is LNT-1042?", falling(5.0), {"identifiers": 0.5}, "everything"),
        ("LNT-1042", {}, {}, "everything"),
        (QUESTION, falling(10.0), {}, "words"),
        (QUESTION, falling(10.0), {"clear": 0.4}, "everything"),
        (QUESTION, falling(9.0), {}, "everything"),
        (QUESTION, {"w": 9.0}, {"top_k": 1}, "words"),
        (QUESTION, {"w": 9.0}, {"top_k": 2}, "everything"),
        (QUESTION, {"w": 9.0, "v": 8.0}, {"top_k": 1}, "everything"),
        (QUESTION, {"w": 9.0, "v": 1.0}, {"top_k": 1}, "words"),
        ("tea", {}, {"top_k": 1}, "everything"),
        ("tea", {"a": 0.0}, {"top_k": 1}, "everything"),
        ("tea", {"a": -1.0, "b": -3.0}, {"top_k": 1}, "everything"),
        ("tea", dict.fromkeys("abcdefghijkl", 2.0), {"top_k": 1}, "everything"),
    ],
)
def test_words_are_enough_for_identifiers_and_for_a_clear_best(query, words, options, expected):
    assert chosen(query, words, **options)[0] == expected


def test_both_bases_get_the_query_and_the_condition():
    bases = [Ready(scored(**falling(5.0))), Ready()]
    AdaptiveTechnique({}, bases=bases).retrieve("tea", top_k=200, where={"page": 3})
    assert [base.asked for base in bases] == [[{"query": "tea", "top_k": 200, "where": {"page": 3}}]] * 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("E1042 LNT-1042 v2.1 2.0.1 snake_case std::vector config.toml os.path docs/index ./run /etc/hosts", True),
        ("--force -v call() camelCase LocalStore", True),
        ("tea well-known 1972 API e.g Zürich 18世紀 🙂 3 don't", False),
    ],
)
def test_identifiers_are_codes_paths_options_and_names_of_programs(words, expected):
    assert {word: is_identifier(word) for word in words.split()} == dict.fromkeys(words.split(), expected)


def test_share_of_identifiers_ignores_punctuation():
    assert identifier_share("(see `config.toml`, please!)") == pytest.approx(1 / 3)
    assert (identifier_share("?!"), identifier_share("E1042")) == (0, 1)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_other_than_two_bases_are_refused(count):
    with refused(InvalidConfigError, count):
        AdaptiveTechnique({}, bases=[Ready()] * count)


def test_file_with_other_than_two_bases_is_refused_with_its_line(tmp_path):
    path = tmp_path / "techniques.yaml"
    path.write_text("techniques:\n  bm25:\n  one: {use: adaptive, bases: [bm25]}\n", encoding="utf-8")
    with refused(InvalidConfigError, "techniques.yaml:3"):
        TechniqueRegistry.load(path)
