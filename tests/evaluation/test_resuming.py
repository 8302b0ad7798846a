"""A folder of runs holds answers of the same technique only, and reports say what was taken from it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ragistry import open_workspace
from ragistry.errors import EvaluationError
from ragistry.evaluation import Comparison, compare, markdown, page, read_library, read_run
from ragistry.evaluation.answers import BATCH, WARM_UP
from ragistry.types import Document
from tests.evaluation.small_sets import Answers, first, numbered, topics

MINE = """
class Mine:
    def __init__(self, config, *, base=None, reranker=None):
        pass

    def retrieve(self, query, **options):
        return []
"""
TECHNIQUES = """
techniques:
  bm25: {use: bm25}
  mine: {use: 'MODULE:Mine', base: bm25}
  above: {use: mmr, base: mine}
  step: {use: pipeline, steps: {only: {technique: mine}}}
"""


class Configured:
    """Finds the document that its configuration names; something else stops it at a query."""

    at: ClassVar[str] = ""
    error: ClassVar[type[BaseException]] = OSError
    asked: ClassVar[list[str]] = []

    def __init__(self, first: str = "d0") -> None:
        self.first = first

    def retrieve(self, query: str, **_: object) -> list[Document]:
        self.asked.append(query)
        if query == self.at:
            raise self.error("gone")
        return [Document("", {}, 1.0, self.first)]


def resumed(comparison: Comparison) -> int:
    return int(comparison.provenance["asking"]["resumed_answers"])


def test_answers_are_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = compare({"a": Configured()}, numbered(30), runs=tmp_path, timing_repeats=2)
    before = (tmp_path / "a.run").read_bytes()
    monkeypatch.setattr(Configured, "asked", [])
    second = compare({"a": Configured(), "b": Answers(first, 5)}, numbered(30), runs=tmp_path)
    assert Configured.asked == []
    assert second.techniques["a"] == earlier.techniques["a"], "with its times"
    assert (tmp_path / "a.run").read_bytes() == before
    for report in (page(second), markdown(second)):
        assert "30 of 60 answers come from an earlier run" in report
    with pytest.raises(EvaluationError, match=r"answers of another test set.*'dataset' is not the same"):
        compare({"a": Configured()}, numbered(31), runs=tmp_path)
    with pytest.raises(EvaluationError, match=r"'technique.config.first' is not the same"):
        compare({"a": Configured("d1")}, numbered(30), runs=tmp_path)


def test_a_stop_loses_no_more_than_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as stopped:
        stopped.setattr(Configured, "at", f"query {2 * BATCH + 5}")
        stopped.setattr(Configured, "error", KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            compare({"a": Configured()}, numbered(3 * BATCH), runs=tmp_path)
    kept = tmp_path / "a.answers.jsonl"
    kept.write_bytes(kept.read_bytes() + b'{"query": "q40", "ranking": [["d4')  # and a line that was cut
    monkeypatch.setattr(Configured, "asked", [])
    result = compare({"a": Configured()}, numbered(3 * BATCH), ["RR@10"], runs=tmp_path, timing_repeats=0)
    assert len(Configured.asked) == BATCH + WARM_UP
    assert resumed(result) == 2 * BATCH


@pytest.mark.parametrize("name", ["mine", "above", "step", "class"])
def test_answers_of_other_code_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"technique_of_{name}"
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "techniques.yaml").write_text(TECHNIQUES.replace("MODULE", module))
    code = tmp_path / f"{module}.py"
    code.write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    given = import_module(module).Mine if name == "class" else None
    with open_workspace(tmp_path) as workspace:
        options = {"dataset": topics(), "measures": ["RR@10"], "workspace": workspace, "runs": tmp_path / "runs"}
        assert [resumed(compare({name: given}, **options)) for _ in range(2)] == [0, 10]
        code.write_text(f"{MINE}# changed\n")
        with pytest.raises(EvaluationError, match=r"code.*not the same"):
            compare({name: given}, **options)


def test_answers_of_another_model_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "techniques.yaml").write_text("techniques: {mine: {use: 'judged_technique:Mine'}}\n")
    (tmp_path / "judged_technique.py").write_text(MINE)

    def judged(url: str) -> int:
        (tmp_path / "config" / "models.yaml").write_text(f"rerankers: {{tei: {{use: tei, url: '{url}'}}}}\n")
        with open_workspace(tmp_path) as workspace:
            options = {"dataset": topics(), "measures": ["RR@10"], "workspace": workspace, "runs": tmp_path / "runs"}
            return resumed(compare(["mine"], **options))

    assert [judged("http://one:80"), judged("http://one:80")] == [0, 10]
    with pytest.raises(EvaluationError, match=r"models.*not the same"):
        judged("http://two:80")


def test_word_search_is_resumed_whether_or_not_others_embed(tmp_path: Path) -> None:
    with open_workspace(tmp_path) as workspace:
        options = {"dataset": topics(), "workspace": workspace, "runs": tmp_path / "runs"}
        compare(["bm25"], **options)
        assert resumed(compare(["bm25", "naive"], **options)) == 10


@pytest.mark.parametrize("made_by", ["object", "function"])
def test_a_technique_whose_state_is_unknown_is_asked_anew_and_reports_say_so(made_by: str, tmp_path: Path) -> None:
    for rank, expected in ((1, 1.0), (2, 0.5)):
        technique = Answers(lambda _, rank=rank: rank)
        given = technique if made_by == "object" else lambda technique=technique: technique
        with open_workspace(tmp_path) as workspace:
            options = {"workspace": workspace, "runs": tmp_path / "runs"}
            result = compare({"a": given}, numbered(5), ["RR@10"], **options)
        assert result.techniques["a"].measures["RR@10"].mean == expected
        assert resumed(result) == 0
        for report in (page(result), markdown(result)):
            assert "a is never resumed" in report


def test_nothing_of_a_technique_that_failed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare({"a": Configured()}, numbered(30), runs=tmp_path)
    (tmp_path / "a.answers.jsonl").unlink()
    with monkeypatch.context() as broken:
        broken.setattr(Configured, "at", "query 25")
        given = {"a": Configured(), "b": Answers(first)}
        assert list(compare(given, numbered(30), runs=tmp_path).failures) == ["a"]
    assert {path.name for path in tmp_path.iterdir()} == {"b.answers.jsonl", "b.run"}, "an older a.run is gone, too"
    assert resumed(compare({"a": Configured()}, numbered(30), runs=tmp_path)) == 0
    assert len(read_run(tmp_path / "a.run")) == 30


def test_answers_over_a_library_are_refused_once_it_has_changed(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text('{"text": "green tea", "sources": ["tea.md"]}\n')
    source = tmp_path / "texts" / "tea.md"
    source.parent.mkdir()

    def asked(tag: str, description: str = "All") -> int:
        source.write_text(f"---\ntags: [{tag}]\n---\nGreen tea is steeped for two minutes.\n")
        with open_workspace(tmp_path) as workspace:
            if not workspace.library.list_collections():
                workspace.library.create_collection("drinks", "About drinks")
            workspace.library.update_description("drinks", description)
            workspace.library.ingest_folder(source.parent, "drinks")
            dataset = read_library(workspace, tmp_path / "queries.jsonl")
            options: dict[str, Any] = {"chunk_size": "library", "runs": tmp_path / "runs"}
            return resumed(compare(["bm25"], dataset, ["RR@10"], workspace=workspace, **options))

    assert [asked("new"), asked("new")] == [0, 1]
    for change in ({"tag": "old"}, {"tag": "new", "description": "None"}):
        with pytest.raises(EvaluationError, match=r"'technique.library' is not the same"):
            asked(**change)


def test_a_file_of_other_lines_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.answers.jsonl").write_text("no answers\n")
    with pytest.raises(EvaluationError, match="holds no answers of a comparison"):
        compare({"a": Answers(first)}, numbered(3), runs=tmp_path)
    with pytest.raises(EvaluationError, match="has answers that were not recorded; give a new folder for runs"):
        compare({"a": Answers(first)}, numbered(3), runs=tmp_path, record=tmp_path / "models.db")
    for names in (("500/75", "500_75"), ("mine", "Mine")):  # some systems do not distinguish the latter
        with pytest.raises(EvaluationError, match=f"{names[0]!r} and {names[1]!r} would share the file"):
            compare({name: Answers(first) for name in names}, numbered(3), runs=tmp_path / "other")
