"""Corrective retrieval: grades decide whether documents are enough, and a query is rewritten within a budget."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry.errors import ModelError
from ragistry.techniques.corrective import CorrectiveTechnique
from ragistry.types import Document, Stage
from tests.messages import check_message
from tests.techniques.doubles import FACTS, Facts, Says, degraded, names, traced


class ByQuery(Facts):
    """A base that finds what a test says for each query."""

    def __init__(self, **found: tuple[str, ...]) -> None:
        super().__init__()
        self.by_query = found

    def retrieve(self, query: str, *, top_k: int | None = None, where: Any = None) -> list[Document]:
        self.documents = Facts(*self.by_query.get(query, ())).documents
        return super().retrieve(query, top_k=top_k, where=where)


def grader(rewrites: tuple[str, ...] = (), **grades: str) -> Says:
    """A model that grades texts by their names, all others incorrect, and writes these queries in turn."""
    written = iter(rewrites)

    def reply(prompt: str) -> Any:
        if prompt.startswith("Rewrite"):
            return {"query": next(written)}
        name = next(name for name, text in FACTS.items() if text in prompt)
        said = grades.get(name, "incorrect")
        return said if said == "?" else {"grade": said}

    return Says(reply)


def corrective(base: Facts, generator: Says, **config: Any) -> tuple[list[Document], tuple[Stage, ...]]:
    settings = {"rewrite_prompt": "Rewrite {query}; not {tried}", **config}
    return traced(CorrectiveTechnique(settings, base=base, generator=generator), "start")


def verdict(stages: tuple[Stage, ...]) -> str:
    return str(stages[-1].detail["verdict"] if stages[-1].name == "judge" else stages[-2].detail["verdict"])


def test_one_correct_document_is_enough_and_incorrect_ones_are_left_out():
    base = ByQuery(start=("wilson", "taft", "tea"))
    documents, stages = corrective(base, grader(taft="correct", wilson="ambiguous"))
    assert names(documents) == ["wilson", "taft"]
    assert [document.score for document in documents] == [1, 1 / 2], "the scores of the base"
    assert base.queries == ["start"]
    assert verdict(stages) == "documents"


def test_the_query_is_rewritten_while_nothing_fits():
    base = ByQuery(start=("tea",), second=("magnet", "taft"))
    documents, stages = corrective(base, grader(("second",), taft="correct"))
    assert base.queries == ["start", "second"]
    assert names(documents) == ["taft"]
    top = [stage.name for stage in stages if stage.depth == 0]
    assert top == ["search", "grade", "rewrite", "search", "grade", "judge"]


def test_ambiguous_documents_of_several_queries_are_fused():
    base = ByQuery(start=("wilson", "tea"), second=("taft", "wilson"))
    documents, _ = corrective(base, grader(("second",), wilson="ambiguous", taft="ambiguous"))
    assert names(documents) == ["wilson", "taft"]
    assert [document.score for document in documents] == pytest.approx([1 / 61 + 1 / 62, 1 / 61])


@pytest.mark.parametrize("n", [0, 1, 3])
def test_nothing_fits_is_said_when_the_budget_is_used_up(n):
    base = ByQuery(start=("tea",), a=("tea",), b=("magnet",))
    documents, stages = corrective(base, grader(("a", "b", "c")), n=n)
    assert documents == []
    assert verdict(stages) == "nothing fits"
    assert base.queries == ["start", "a", "b", "c"][: n + 1]


def test_a_repeated_query_is_not_searched_again():
    base = ByQuery(start=("tea",))
    documents, stages = corrective(base, grader(("Start?", "x")), n=3)
    assert (documents, base.queries, verdict(stages)) == ([], ["start"], "nothing fits")


def test_a_base_that_finds_nothing_is_asked_in_other_words():
    base = ByQuery(second=("taft",))
    assert names(corrective(base, grader(("second",), taft="correct"))[0]) == ["taft"]


def test_documents_that_cannot_be_graded_are_returned_as_found():
    generator = grader(taft="?", tea="?")
    documents, stages = corrective(ByQuery(start=("taft", "tea")), generator)
    assert names(documents) == ["taft", "tea"]
    check_message(degraded(stages), "2 of 2")
    with pytest.raises(ModelError):
        corrective(ByQuery(start=("taft", "tea")), generator, strict=True)


def test_a_document_without_a_grade_counts_as_ambiguous():
    documents, _ = corrective(ByQuery(start=("tea", "taft", "magnet")), grader(taft="correct", tea="?"))
    assert names(documents) == ["tea", "taft"]


def test_a_rewriting_that_fails_keeps_what_fits_so_far():
    def reply(prompt: str) -> Any:
        return TimeoutError("late") if prompt.startswith("Rewrite") else {"grade": "ambiguous"}

    documents, stages = corrective(ByQuery(start=("taft",)), Says(reply))
    assert names(documents) == ["taft"]
    check_message(degraded(stages), "late")
