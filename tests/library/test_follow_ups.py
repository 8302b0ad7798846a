"""Questions that follow another one: both are searched, and the phrases and conditions are those of the query."""

# ruff: noqa: RUF001 - quotation marks of many languages are what this is about

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from ragistry import RemoteWorkspace, Workspace
from ragistry.answers.answer import Answerer
from ragistry.errors import QueryError
from ragistry.library.why import explain
from ragistry.testing.hashed import HashingEmbedder
from ragistry.text.phrases import parse_query, with_previous
from ragistry.types import Document, SearchRequest
from tests.conftest import everywhere
from tests.messages import refused

TEXTS = {
    "tea": "Green tea is steeped for three minutes in hot water.",
    "coffee": "Black coffee is brewed for five minutes in a pot.",
    "bread": "Bread is baked for one hour in an oven.",
    "moon": "A blue moon is seen at night.",
}


@pytest.fixture
def filled(workspace: Workspace | RemoteWorkspace) -> Workspace | RemoteWorkspace:
    for name, text in TEXTS.items():
        workspace.library.ingest_text(text, name, "notes")
    return workspace


def names(workspace: Workspace | RemoteWorkspace, query: str, previous: Any = None, **options: Any) -> list[str]:
    return [str(one.metadata["source_file"]) for one in workspace.search(query, previous=previous, **options).documents]


@everywhere
def test_a_follow_up_is_searched_alone_and_with_the_question_before(filled: Workspace | RemoteWorkspace) -> None:
    assert names(filled, "minutes?", TEXTS["coffee"], top_k=1) == ["coffee"]
    assert names(filled, "minutes?", TEXTS["tea"], top_k=1) == ["tea"]
    assert names(filled, "how many minutes?", " \n") == names(filled, "how many minutes?")


@everywhere
def test_phrases_and_conditions_are_those_of_the_query(filled: Workspace | RemoteWorkspace) -> None:
    assert names(filled, '"blue moon"', 'Is "green tea" better than bread in an oven?') == ["moon"]
    assert "coffee" not in names(filled, 'minutes -"coffee"', "black coffee in a pot")
    assert names(filled, 'minutes "hot water"', "black coffee brewed in a pot")[0] == "tea"
    assert names(filled, "minutes", 'hot water -"tea"', top_k=1) == ["tea"]
    assert names(filled, "minutes", "green tea", where={"source_file": {"$ne": "tea"}}, top_k=1) == ["coffee"]


@pytest.mark.parametrize(
    "previous", ['"green tea"', '-"tea"', 'the "moon', "«tea» „bread“ ‘oven’", "「茶」", '19" rack', "it’s tea"]
)
def test_the_question_before_adds_no_phrase(previous: str) -> None:
    for query in ("minutes", 'blue" minutes', '"hot water" -"coffee"', "in ‘hot water’"):
        alone, both = parse_query(query), parse_query(with_previous(query, previous))
        assert (alone and alone[:2]) == (both and both[:2])


def test_more_results_keep_the_order_of_fewer(library, workspace: Workspace) -> None:
    for number in range(130):
        library.ingest_text(
            f"Pump {number} holds {number % 7} valves near tank {number % 5}.", f"{number}.txt", "notes"
        )
    for technique in ("bm25", "hybrid"):
        found = [names(workspace, "valves 3", "tank 2 pump", technique=technique, top_k=k) for k in (5, 50, 51, 130)]
        for fewer, more in pairwise(found):
            assert more[: len(fewer)] == fewer
    assert len(names(workspace, "valves", "tank", technique="bm25")) == len(
        names(workspace, "valves", technique="bm25")
    )


@pytest.mark.parametrize("previous", [5, b"tea", ["tea"], "\ud800 tea"])
def test_a_wrong_question_before_is_refused(workspace: Workspace, previous: Any) -> None:
    with refused(QueryError, "previous"):
        workspace.search("tea", previous=previous)


def test_why_follows_too(filled: Workspace) -> None:
    request = SearchRequest("how many minutes?", "bm25", top_k=1, previous="Tell me about black coffee.")
    assert explain(filled.library, request, "coffee").rank == 1


def test_the_generator_reads_the_question_before() -> None:
    prompts: list[str] = []

    class Recorder:
        model = "recorder"

        def generate(self, prompt: str, **_: object) -> str:
            prompts.append(prompt)
            return "Three minutes [1]."

    answerer = Answerer(Recorder(), HashingEmbedder())
    document = Document(TEXTS["tea"], {}, 1.0, "a")
    assert answerer.answer("how long?", [document], previous="How is\ntea made?").query == "how long?"
    answerer.answer("how long?", [document])
    assert ["How is tea made?" in prompt for prompt in prompts] == [True, False]
