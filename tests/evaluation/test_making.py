"""A technique that cannot be made ends among the failures, before anything is embedded where that can be known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import EvaluationError, InvalidConfigError
from ragistry.evaluation import Comparison, compare, page, read_library
from ragistry.evaluation.report_text import failures
from ragistry.evaluation.sheets import conclusion
from ragistry.types import Document
from tests.evaluation.small_sets import Answers, Failing, first, numbered, topics

TECHNIQUES = """
techniques:
  bm25: {use: bm25}
  naive: {use: naive}
  hybrid: {use: hybrid, bases: [naive, bm25]}
  routed: {use: collection_routed, base: hybrid}
  broken: {use: 'tests.evaluation.test_making:Broken'}
  above: {use: mmr, base: broken}
"""


class Broken:
    """Cannot be made."""

    def __init__(self, config: dict[str, Any]) -> None:
        raise KeyError("size")

    def retrieve(self, query: str, **_: object) -> list[Document]:
        return []


class BrokenLate(Broken):
    """Cannot be made over an index."""

    def __init__(self, config: dict[str, Any], *, store: object) -> None:
        raise RuntimeError("the store\nis odd")


class Narrow:
    def retrieve(self, query: str, top_k: int | None = None) -> list[Document]:
        return []


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("workspace")
    (root / "config").mkdir()
    (root / "config" / "techniques.yaml").write_text(TECHNIQUES)
    with open_workspace(root) as opened:
        yield opened


def test_whatever_a_constructor_raises_the_others_finish(workspace: Workspace, tmp_path: Path) -> None:
    given = {"bm25": None, "broken": None, "above": None, "Broken": Broken, "late": BrokenLate, "made": Broken.retrieve}
    result = compare(given | {"made": lambda store: 1 / 0}, topics(), workspace=workspace, cache=tmp_path)
    assert list(result.techniques) == ["bm25"]
    assert {name: failure.error for name, failure in result.failures.items()} == {
        "broken": "KeyError: 'size'",
        "above": "KeyError: 'size'",
        "Broken": "KeyError: 'size'",
        "late": "RuntimeError: the store is odd",
        "made": "ZeroDivisionError: division by zero",
    }
    assert {failure.query for failure in result.failures.values()} == {""}, "they failed before they were asked"


def test_nothing_is_embedded_for_what_can_never_be_asked(workspace: Workspace, tmp_path: Path) -> None:
    result = compare(["broken", "routed"], topics(), workspace=workspace, cache=tmp_path)
    assert set(result.failures) == {"broken", "routed"}
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.db"]


def test_what_routes_is_sent_to_the_library(workspace: Workspace, tmp_path: Path) -> None:
    grid = {"routed.margin": [0.01, 0.1]}
    result = compare(["routed", "bm25"], topics(), workspace=workspace, grid=grid, cache=tmp_path)
    assert len(result.failures) == 2
    assert all("--queries FILE" in failure.error for failure in result.failures.values())


@pytest.mark.parametrize(
    ("technique", "said"),
    [
        (Narrow(), "Narrow.retrieve does not take where; write retrieve(self, query, *, top_k=None, where=None)"),
        (Narrow, "Narrow.retrieve does not take where"),
        (lambda: None, "NoneType has no method retrieve"),
        (SimpleNamespace(retrieve=lambda query: []), "SimpleNamespace.retrieve does not take top_k and where"),
    ],
)
def test_what_is_no_technique_is_told_as_in_techniques_yaml(
    workspace: Workspace, tmp_path: Path, technique: Any, said: str
) -> None:
    result = compare({"bad": technique}, topics(), workspace=workspace, cache=tmp_path)
    assert said in result.failures["bad"].error


def test_a_value_of_a_grid_stands_in_no_file(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        compare(["hybrid"], topics(), workspace=workspace, grid={"hybrid.k": ["many"]}, cache=tmp_path)
    assert str(caught.value).startswith("grid: techniques.hybrid[k=many].k: ")
    assert "techniques.yaml" not in str(caught.value)


def test_where_all_fail_the_first_line_says_so() -> None:
    result = compare({name: Failing(0, OSError("gone")) for name in "ab"}, numbered(5))
    assert conclusion(result) == "Every technique failed: nothing could be compared."
    assert conclusion(result) in page(result)
    assert failures(result)[0] == "a failed on query 'q0': OSError: gone"


def test_the_library_is_searched_for_its_own_queries_only(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "queries.jsonl").write_text('{"text": "tea", "sources": ["tea.md"]}\n')
    with open_workspace(tmp_path / "one") as one, open_workspace(tmp_path / "other") as other:
        with pytest.raises(EvaluationError, match="'library' searches the workspace's own library, and the test set"):
            compare(["bm25"], topics(), workspace=one, grid={"chunk_size": ["document", "library"]})
        assert not (tmp_path / "one" / ".ragistry").exists(), "nothing was indexed for it"
        one.library.create_collection("notes", "Notes")
        one.library.ingest_text("Tea is steeped.", "tea.md", "notes")
        dataset = read_library(one, tmp_path / "queries.jsonl")
        with pytest.raises(EvaluationError, match="the test set is of the library in .*one.*, and the workspace is"):
            compare(["bm25"], dataset, workspace=other, chunk_size="library")


def test_a_workspace_may_be_a_folder_and_a_technique_a_single_name(workspace: Workspace, tmp_path: Path) -> None:
    for given in (workspace.root, str(workspace.root)):
        result: Comparison = compare("bm25", topics(), "RR@10", workspace=given, cache=tmp_path)
        assert list(result.techniques) == ["bm25"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": {"a": 1}}, r"the dataset is \{'a': 1\}; give a folder in BEIR's layout, or a Dataset"),
        ({"techniques": {"": Answers(first)}}, "the name of a technique is ''; give each one as text"),
        ({"techniques": {1: Answers(first)}}, "the name of a technique is 1; give each one as text"),
    ],
)
def test_what_is_of_the_wrong_kind_is_told(arguments: dict, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        compare(**({"techniques": {"a": Answers(first)}, "dataset": numbered(3)} | arguments))
