"""Adaptive retrieval: which base each query goes to, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragistry.errors import InvalidConfigError
from ragistry.techniques.adaptive import AdaptiveTechnique, identifier_share, is_identifier
from ragistry.techniques.registry import RegisteredTechnique, TechniqueRegistry
from ragistry.trace import collect
from ragistry.types import Document


class Ready:
    """A base with its answer in hand, that keeps what it was asked."""

    def __init__(self, scores: dict[str, float]) -> None:
        self.documents = [Document(f"text of {name}", {}, score, name) for name, score in scores.items()]
        self.asked: list[dict[str, Any]] = []

    def retrieve(self, query, *, top_k=None, where=None):
        self.asked.append({"query": query, "top_k": top_k, "where": where})
        return self.documents[:top_k]


def falling(prefix: str, best: float, count: int = 20) -> dict[str, float]:
    """A best document, and others whose scores fall slowly from 5."""
    return {f"{prefix}0": best} | {f"{prefix}{number}": 5 - number / 100 for number in range(1, count)}


ALIKE = falling("d", 5.0)


def chosen(
    query: str, words: dict[str, float], top_k: int = 5, **config: Any
) -> tuple[str, Ready, Ready, list[Document]]:
    """The name of the base that was chosen, both bases, and what was found."""
    bases = Ready(words), Ready({"other": 1.0})
    named = [RegisteredTechnique(name, base) for name, base in zip(("words", "everything"), bases, strict=True)]
    with collect() as trace:
        found = AdaptiveTechnique(config, bases=named).retrieve(query, top_k=top_k)
    choose = next(stage for stage in trace.stages() if stage.name == "choose")
    assert choose.detail["because"]
    return choose.detail["base"], *bases, found


def test_a_query_of_identifiers_asks_words_alone() -> None:
    name, words, everything, found = chosen("what is LNT-1042?", ALIKE)
    assert name == "words"
    assert (len(words.asked), everything.asked) == (1, [])
    assert found == words.documents[:5]
    assert chosen("what is LNT-1042?", ALIKE, identifiers=0.5)[0] == "everything"


def test_identifiers_that_words_do_not_find_ask_everything() -> None:
    assert chosen("LNT-1042", {})[0] == "everything"


def test_a_clear_best_by_words_asks_words_alone() -> None:
    name, words, everything, found = chosen("how is tea made", falling("d", 10.0))
    assert name == "words"
    assert (len(words.asked), everything.asked) == (1, [])
    assert found == words.documents[:5]
    assert chosen("how is tea made", falling("d", 10.0), clear=0.4)[0] == "everything"


def test_a_best_that_is_not_clear_asks_everything() -> None:
    name, _, everything, found = chosen("how is tea made", falling("d", 9.0))
    assert name == "everything"
    assert found == everything.documents


def test_fewer_documents_by_words_than_asked_for_are_not_enough() -> None:
    assert chosen("how is tea made", {"w": 9.0}, top_k=1)[0] == "words"
    assert chosen("how is tea made", {"w": 9.0}, top_k=2)[0] == "everything"


def test_one_document_is_compared_with_the_second() -> None:
    assert chosen("how is tea made", {"w": 9.0, "v": 8.0}, top_k=1)[0] == "everything"
    assert len(chosen("how is tea made", {"w": 9.0, "v": 1.0}, top_k=1)[3]) == 1


@pytest.mark.parametrize("scores", [{}, {"a": 0.0}, {"a": -1.0, "b": -3.0}, dict.fromkeys("abcdefghijkl", 2.0)])
def test_scores_that_say_nothing_ask_everything(scores: dict[str, float]) -> None:
    assert chosen("tea", scores, top_k=1)[0] == "everything"


def test_both_bases_get_the_query_and_the_condition() -> None:
    bases = [Ready(ALIKE), Ready(ALIKE)]
    AdaptiveTechnique({}, bases=bases).retrieve("tea", top_k=200, where={"page": 3})
    assert [base.asked for base in bases] == [[{"query": "tea", "top_k": 200, "where": {"page": 3}}]] * 2


@pytest.mark.parametrize(
    "word",
    [
        "E1042", "LNT-1042", "v2.1", "2.0.1", "snake_case", "std::vector", "config.toml", "os.path", "docs/index",
        "./run", "/etc/hosts", "--force", "-v", "call()", "camelCase", "LocalStore",
    ],
)  # fmt: skip
def test_identifiers(word: str) -> None:
    assert is_identifier(word)


@pytest.mark.parametrize("word", ["tea", "well-known", "1972", "API", "e.g", "Zürich", "18世紀", "🙂", "3", "don't"])
def test_words_that_are_not_identifiers(word: str) -> None:
    assert not is_identifier(word)


def test_the_share_of_identifiers_ignores_punctuation() -> None:
    assert identifier_share("(see `config.toml`, please!)") == pytest.approx(1 / 3)
    assert identifier_share("?!") == 0


@pytest.mark.parametrize("bases", [[], [Ready({})], [Ready({})] * 3])
def test_other_than_two_bases_are_refused(bases: list[Ready]) -> None:
    with pytest.raises(
        InvalidConfigError, match=rf"bases: got {len(bases)}; list one for words and one for everything"
    ):
        AdaptiveTechnique({}, bases=bases)


def test_a_file_with_other_than_two_bases_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "techniques.yaml"
    path.write_text("techniques:\n  bm25:\n  one: {use: adaptive, bases: [bm25]}\n", encoding="utf-8")
    with pytest.raises(InvalidConfigError, match=r"techniques.yaml:3: techniques.one.bases: got 1; list one for words"):
        TechniqueRegistry.load(path)


@pytest.mark.parametrize("config", [{"clear": 1}, {"clear": -0.1}, {"identifiers": 0}, {"rules": 3}])
def test_bad_configuration_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError):
        AdaptiveTechnique(config, bases=[Ready({})] * 2)
