"""A folder of runs holds answers of the same technique only, and reports say what was taken from it."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import pytest

from ragistry.errors import EvaluationError
from ragistry.evaluation import Comparison, compare, markdown, page, read_library, read_run
from ragistry.evaluation.asking import BATCH, WARM_UP
from ragistry.types import Document
from tests.evaluation.small_sets import Answers, first, hashed_workspace, numbered, topics
from tests.messages import refused

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
  above: {use: distinct, base: mine}
  step: {use: pipeline, steps: {only: {technique: mine}}}
"""


class Configured:
    """Finds the document that its configuration names; something else stops it at a query."""

    stable_order = True

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


def test_answers_are_not_asked_again(tmp_path, monkeypatch):
    earlier = compare({"a": Configured()}, numbered(30), runs=tmp_path, timing_repeats=2)
    before = (tmp_path / "a.run").read_bytes()
    monkeypatch.setattr(Configured, "asked", [])
    second = compare({"a": Configured(), "b": Answers(first, 5)}, numbered(30), runs=tmp_path)
    assert Configured.asked == []
    assert second.techniques["a"] == earlier.techniques["a"], "with its times"
    assert (tmp_path / "a.run").read_bytes() == before
    for report in (page(second), markdown(second)):
        assert "30 of 60 answers come from an earlier run" in report
    with refused(EvaluationError):
        compare({"a": Configured()}, numbered(31), runs=tmp_path)
    third = compare({"a": Configured("d1"), "b": Answers(first, 5)}, numbered(30), runs=tmp_path)
    assert set(Configured.asked) == set(numbered(30).queries.values())
    assert third.techniques["b"].measures == second.techniques["b"].measures
    for report in (page(third), markdown(third)):
        assert "a was asked again: technique.config.first changed" in report


def test_stop_loses_no_more_than_a_batch(tmp_path, monkeypatch):
    with monkeypatch.context() as stopped:
        stopped.setattr(Configured, "at", f"query {2 * BATCH + 5}")
        stopped.setattr(Configured, "error", KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            compare({"a": Configured()}, numbered(3 * BATCH), ["RR@10"], runs=tmp_path)
    kept = tmp_path / "a.answers.jsonl"
    kept.write_bytes(kept.read_bytes() + b'{"query": "q40", "ranking": [["d4')  # and a line that was cut
    monkeypatch.setattr(Configured, "asked", [])
    result = compare({"a": Configured()}, numbered(3 * BATCH), ["RR@10"], runs=tmp_path, timing_repeats=0)
    assert len(Configured.asked) == 2 * BATCH + WARM_UP, "a search and a ranking for each query"
    assert resumed(result) == 2 * BATCH


@pytest.mark.parametrize("name", ["mine", "above", "step", "class"])
def test_technique_is_asked_again_after_a_change_of_its_code(name, tmp_path, corpus, monkeypatch):
    module = f"technique_of_{name}"
    corpus({"techniques.yaml": TECHNIQUES.replace("MODULE", module)}, "config")
    code = tmp_path / f"{module}.py"
    code.write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    given = import_module(module).Mine if name == "class" else None
    with hashed_workspace(tmp_path) as workspace:
        options = {"dataset": topics(), "measures": ["RR@10"], "workspace": workspace, "runs": tmp_path / "runs"}
        assert [resumed(compare({name: given}, **options)) for _ in range(2)] == [0, 10]
        code.write_text(f"{MINE}# changed\n")
        changed = [compare({name: given, "bm25": None}, **options) for _ in range(2)]
        assert [resumed(result) for result in changed] == [0, 20], "only what changed"
        [paths] = changed[0].provenance["asking"]["asked_again"].values()
        assert any(path.endswith("code") for path in paths)


def test_technique_is_asked_again_with_another_model(tmp_path, corpus):
    corpus({"techniques.yaml": "techniques: {mine: {use: 'judged_technique:Mine'}}\n"}, "config")
    (tmp_path / "judged_technique.py").write_text(MINE)

    def judged(url: str) -> int:
        corpus({"models.yaml": f"rerankers: {{tei: {{use: tei, url: '{url}'}}}}\n"}, "config")
        with hashed_workspace(tmp_path) as workspace:
            return resumed(compare(["mine"], topics(), ["RR@10"], workspace=workspace, runs=tmp_path / "runs"))

    assert [judged("http://one:80"), judged("http://one:80")] == [0, 10]
    assert [judged("http://two:80"), judged("http://two:80")] == [0, 10]


def test_word_search_is_resumed_whether_or_not_others_embed(tmp_path):
    with hashed_workspace(tmp_path) as workspace:
        options = {"dataset": topics(), "workspace": workspace, "runs": tmp_path / "runs"}
        compare(["bm25"], **options)
        assert resumed(compare(["bm25", "naive"], **options)) == 10


def test_technique_whose_state_is_unknown_is_never_resumed_and_reports_say_so(tmp_path):
    for rank, expected in ((1, 1.0), (2, 0.5)):
        technique = Answers(lambda _, rank=rank: rank)
        given = {"object": technique, "function": lambda technique=technique: technique}
        result = compare(given, numbered(5), ["RR@10"], runs=tmp_path / "runs")
        assert [one.measures["RR@10"].mean for one in result.techniques.values()] == [expected] * 2
        assert resumed(result) == 0
        for report in (page(result), markdown(result)):
            assert "object is never resumed" in report
            assert "function is never resumed" in report


def test_nothing_of_a_technique_that_failed_is_kept(tmp_path, monkeypatch):
    compare({"a": Configured()}, numbered(30), runs=tmp_path)
    (tmp_path / "a.answers.jsonl").unlink()
    with monkeypatch.context() as broken:
        broken.setattr(Configured, "at", "query 25")
        given = {"a": Configured(), "b": Answers(first)}
        assert list(compare(given, numbered(30), runs=tmp_path).failures) == ["a"]
    assert {path.name for path in tmp_path.iterdir()} == {"b.answers.jsonl", "b.run"}, "an older a.run is gone, too"
    assert resumed(compare({"a": Configured()}, numbered(30), runs=tmp_path)) == 0
    assert len(read_run(tmp_path / "a.run")) == 30


def test_library_is_searched_again_once_it_has_changed(tmp_path):
    (tmp_path / "queries.jsonl").write_text('{"text": "green tea", "sources": ["tea.md"]}\n')
    source = tmp_path / "texts" / "tea.md"
    source.parent.mkdir()

    def asked(tag: str, description: str = "All") -> int:
        source.write_text(f"---\ntags: [{tag}]\n---\nGreen tea is steeped for two minutes.\n")
        with hashed_workspace(tmp_path) as workspace:
            if not workspace.library.list_collections():
                workspace.library.create_collection("drinks", "About drinks")
            workspace.library.update_description("drinks", description)
            workspace.library.ingest_folder(source.parent, "drinks")
            dataset = read_library(workspace, tmp_path / "queries.jsonl")
            options: dict[str, Any] = {"chunk_size": "library", "runs": tmp_path / "runs"}
            return resumed(compare(["bm25"], dataset, ["RR@10"], workspace=workspace, **options))

    assert [asked("new"), asked("new")] == [0, 1]
    for change in ({"tag": "old"}, {"tag": "new", "description": "None"}):
        assert [asked(**change), asked(**change)] == [0, 1]


def test_file_of_other_lines_is_refused(tmp_path):
    (tmp_path / "a.answers.jsonl").write_text("no answers\n")
    with refused(EvaluationError):
        compare({"a": Answers(first)}, numbered(3), runs=tmp_path)
    with refused(EvaluationError):
        compare({"a": Answers(first)}, numbered(3), runs=tmp_path, record=tmp_path / "models.db")
    for names in (("500/75", "500_75"), ("mine", "Mine")):  # some systems do not distinguish the latter
        with refused(EvaluationError, *map(repr, names)):
            compare({name: Answers(first) for name in names}, numbered(3), runs=tmp_path / "other")
