"""What a notebook and a prompt show of results, documents, workspaces and comparisons."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import date

import pytest

from ragistry import Workspace
from ragistry.answers.answer import Answer
from ragistry.evaluation import compare
from ragistry.types import Document, JsonMethods, RetrievalResult, Stage, StageScore
from ragistry.utils.dataclass_json import from_json
from tests.evaluation.small_sets import Answers, first, numbered

SOURCE = {"collection": "notes", "source_file": "tea.txt"}
DOCUMENTS = [
    Document("Green tea\n is <b>steeped</b>. " * 50, SOURCE, 0.43219, "a"),
    Document("short", {"url": "https://example.org"}, 1e-9, "b"),
    Document("", {}, 0.0, "0123456789abcdef"),
]


def test_document_is_one_short_line():
    assert [repr(document) for document in DOCUMENTS] == [
        f"Document('{'Green tea is <b>steeped</b>. ' * 2}G…', source='notes/tea.txt', score=0.4322)",
        "Document('short', source='https://example.org', score=1e-09)",
        "Document('', source='0123456789ab', score=0)",
    ]
    assert not any("<b>" in document._repr_html_() for document in DOCUMENTS)


def test_result_is_one_line_and_a_table():
    trace = (Stage("naive", 1.0, degraded="no <model>"),)
    result = RetrievalResult("tea " * 40, DOCUMENTS, 3, 12.345, trace)
    assert len(repr(result)) < 120
    assert repr(result).endswith("…', 3 documents, 12.3 ms, degraded)")
    assert repr(RetrievalResult("tea", DOCUMENTS[:1], 1, 2)) == "RetrievalResult('tea', 1 document, 2.0 ms)"
    page = result._repr_html_()
    assert page.count("<tr>") == 4
    assert "no &lt;model&gt;" in page
    assert "<b>" not in page


def test_comparison_is_one_line_and_the_table_of_its_techniques():
    result = compare({"good": Answers(first), "bad": Answers(lambda number: 2)}, numbered(10), "RR@10", progress=False)
    assert repr(result) == "Comparison('numbered', RR@10: good 1.000, bad 0.500)"
    page = result._repr_html_()
    assert str(result.verdict) in page
    assert len(re.findall("<tr>", page)) == 1 + 2
    assert len(page) < 3_000


def test_comparison_of_failures_has_a_repr():
    class Fails:
        def retrieve(self, query, **options):
            raise OSError("gone")

    result = compare({"a": Fails()}, numbered(3), progress=False)
    assert repr(result).endswith("none; failed: a)")
    assert "Every technique failed" in result._repr_html_()


def test_workspace_lists_its_collections(workspace: Workspace):
    assert repr(workspace).startswith(f"Workspace('{workspace.root}', ")
    page = workspace._repr_html_()
    assert "<td>notes</td>" in page


FOUND = Document("tea\nleaves", {"page": 3, "tags": ["a"]}, 0.5, "b", (StageScore("naive", "cosine", 0.5),))


@pytest.mark.parametrize(
    "value",
    [
        FOUND,
        RetrievalResult("tea", [FOUND], 1, 2.5, (Stage("naive", 1.0, detail={"k": 1}),)),
        Answer("tea", (FOUND,), "cut", text="Tea [1].", degraded=("no model",)),
    ],
)
def test_json_reads_back_as_the_same_value(value: JsonMethods) -> None:
    for indent in (None, 2):
        written = value.to_json(indent)
        assert ("\n" in written) is bool(indent)
        assert from_json(type(value), json.loads(written)) == value
    assert from_json(type(value), value.to_dict()) == value


def test_json_writes_values_that_json_lacks_as_text() -> None:
    found = Document("é", {"day": date(2026, 1, 2)}, 1.0)
    assert found.to_dict()["metadata"]["day"] == date(2026, 1, 2)
    assert '"content": "é"' in found.to_json()
    assert '"day": "2026-01-02"' in found.to_json()
    assert Answer("tea", (), text="None.").to_dict()["answer"] == "None."


def test_types_are_imported_without_what_their_json_needs() -> None:
    code = "import sys, ragistry; ragistry.Document; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
