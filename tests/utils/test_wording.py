"""Messages with a number in them agree with it."""

from __future__ import annotations

import re
from pathlib import Path

from ragistry.evaluation import Comparison, Dataset, Text, compare, markdown, page
from ragistry.evaluation.data.dataset import cautions, faults
from ragistry.types import Document
from ragistry.utils.wording import agreeing, numbered
from tests.evaluation.small_sets import Answers, first
from tests.evaluation.small_sets import numbered as queries

MANY_OF_ONE = re.compile(
    r"\b1 (?:judged |more |relevant )?(?:queries|documents|chunks|results|answers|pairs|ids|lines|sources)\b"
)


class Elsewhere(Answers):
    """Right, and then what is not in the corpus."""

    def retrieve(self, query: str, **_: object) -> list[Document]:
        return [Document("", {}, 1.0, "d0"), Document("", {}, 0.5, "gone")]


def test_a_number_decides_the_form() -> None:
    assert numbered(1, "[query has|queries have] no text") == "1 query has no text"
    assert numbered(1_200, "[query has|queries have] no text") == "1,200 queries have no text"
    assert numbered(0, "judged [query|queries]") == "0 judged queries"
    assert agreeing(1, "add [it|them], or [|all] of [it|them]") == "add it, or  of it"


def test_what_is_wrong_once_is_said_in_the_singular() -> None:
    corpus = [Text("d", "", "tea"), Text("d", "", "tea"), Text("e", "", "")]
    said = [
        *faults(corpus, {"q": " "}, {"q": {"gone": 1}, "p": {"d": 0.5}}),  # type: ignore[dict-item]
        *cautions(corpus, {"q": "x", "r": "y"}, {"q": {"gone": 0}}),
    ]
    assert len(said) == 9
    assert [line for line in said if not re.match(r"1 (?:document|id|query) (?:is|has) ", line)] == []


def test_a_comparison_of_one_query_and_one_document_is_told_in_the_singular(tmp_path: Path) -> None:
    def compared() -> Comparison:
        return compare({"right": Answers(first, 0), "more": Elsewhere(first)}, queries(1))

    compared()
    result = compared()
    warnings = " ".join(result.warnings)
    assert "more returned 1 document that is not in the corpus (1 of 2 results)" in warnings
    for text in (page(result), markdown(result), warnings):
        assert MANY_OF_ONE.findall(text) == []
    assert "1 document, 1 judged query" in page(result)


def test_one_of_each_is_a_problem_of_one_line() -> None:
    dataset = Dataset("d", [Text("d", "", "tea")], {"q": "tea", "p": "rain"}, {"q": {"d": 1}})
    assert dataset.problems == ["1 query has no judgements and is not measured: 'p'"]
