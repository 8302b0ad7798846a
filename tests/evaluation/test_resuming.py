"""What a folder of runs holds is taken for answers of the same technique only, and reports say how much was taken."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict

from ragistry import open_workspace
from ragistry.errors import EvaluationError
from ragistry.evaluation import Comparison, compare, markdown, page, read_library, read_run
from ragistry.evaluation.notes import notes
from ragistry.types import Document
from tests.evaluation.small_sets import Answers, first, numbered, topics

MINE = """
class Mine:
    def __init__(self, config, *, base):
        self.base = base

    def retrieve(self, query, **options):
        return {}
"""
JUDGED = """
class Judged:
    def __init__(self, config, *, reranker):
        self.reranker = reranker

    def retrieve(self, query, **options):
        return []
"""
TECHNIQUES = """
techniques:
  bm25: {use: bm25}
  mine: {use: 'MODULE:Mine', base: bm25}
  above: {use: mmr, base: mine}
"""


class Configured:
    """Finds the document that its configuration names."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    def retrieve(self, query: str, **_: object) -> list[Document]:
        if query == self.config.get("fails"):
            raise OSError("gone")
        return [Document("", {}, 1.0, self.config["first"])]


class Broken(Configured):
    """Fails at one query, for a reason that is none of its settings."""

    at = "query 25"

    def retrieve(self, query: str, **options: object) -> list[Document]:
        if query == type(self).at:
            raise OSError("gone")
        return super().retrieve(query, **options)


def in_every_report(comparison: Comparison, text: str) -> bool:
    said = [note for note in notes(comparison) if text in note]
    return bool(said) and all(
        text in report for report in (page(comparison), markdown(comparison).replace("\\", ""))
    )  # fmt: skip


@pytest.mark.parametrize("name", ["mine", "above"])
def test_answers_of_other_code_are_refused(name: str, tmp_path: Path) -> None:
    module = f"technique_of_{name}"
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "techniques.yaml").write_text(TECHNIQUES.replace("MODULE", module))
    code = tmp_path / f"{module}.py"
    code.write_text(MINE.format("self.base.retrieve(query, **options)"))
    with open_workspace(tmp_path) as workspace:
        options = {"dataset": topics(), "measures": ["RR@10"], "workspace": workspace, "runs": tmp_path / "runs"}
        compare([name], **options)
        assert compare([name], **options).provenance["asking"]["resumed_answers"] == 10
        code.write_text(MINE.format("[]"))
        with pytest.raises(EvaluationError, match="answers of another test set, configuration, code"):
            compare([name], **options)


def test_answers_of_another_reranker_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "techniques.yaml").write_text("techniques: {judged: {use: 'judged_technique:Judged'}}\n")
    (tmp_path / "judged_technique.py").write_text(JUDGED)

    def resumed(url: str) -> int:
        with open_workspace(tmp_path, rerank_url=url) as workspace:
            options = {"dataset": topics(), "measures": ["RR@10"], "workspace": workspace, "runs": tmp_path / "runs"}
            return compare(["judged"], **options).provenance["asking"]["resumed_answers"]

    assert [resumed("http://one:80"), resumed("http://one:80")] == [0, 10]
    with pytest.raises(EvaluationError, match="answers of another .* model"):
        resumed("http://two:80")


def test_answers_of_another_configuration_of_an_object_are_refused(tmp_path: Path) -> None:
    compare({"mine": Configured({"first": "d0"})}, numbered(3), runs=tmp_path)
    again = compare({"mine": Configured({"first": "d0"})}, numbered(3), runs=tmp_path)
    assert again.provenance["techniques"]["mine"]["config"] == {"first": "d0"}
    assert in_every_report(again, "Resumed: 3 of 3 answers come from an earlier run")
    with pytest.raises(EvaluationError, match="answers of another .* configuration"):
        compare({"mine": Configured({"first": "d1"})}, numbered(3), runs=tmp_path)


def test_an_object_that_nobody_can_tell_from_another_is_asked_anew_and_reports_say_so(tmp_path: Path) -> None:
    for rank, expected in ((1, 1.0), (2, 0.5)):
        result = compare({"a": Answers(lambda _, rank=rank: rank)}, numbered(5), ["RR@10"], runs=tmp_path)
        assert result.techniques["a"].measures["RR@10"].mean == expected
        assert result.provenance["asking"]["resumed_answers"] == 0
        assert in_every_report(result, "a is never resumed")
        assert "rank, a function" in result.provenance["asking"]["never_resumed"]["a"]
    quiet = compare({"a": Answers(lambda _: 1)}, numbered(5), ["RR@10"])
    assert notes(quiet) == [note for note in notes(quiet) if "resumed" not in note]


def test_nothing_of_a_technique_that_failed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as mended:
        mended.setattr(Broken, "at", "")
        compare({"a": Broken({"first": "d0"})}, numbered(30), runs=tmp_path)
    (tmp_path / "a.answers.jsonl").unlink()
    failed = compare({"a": Broken({"first": "d0"}), "b": Answers(first)}, numbered(30), runs=tmp_path)
    assert list(failed.failures) == ["a"]
    assert {path.name for path in tmp_path.iterdir()} == {"b.answers.jsonl", "b.run"}, "an older a.run is gone, too"
    monkeypatch.setattr(Broken, "at", "")
    whole = compare({"a": Broken({"first": "d0"})}, numbered(30), runs=tmp_path)
    assert whole.provenance["asking"]["resumed_answers"] == 0
    assert len(read_run(tmp_path / "a.run")) == 30


def test_a_function_of_a_module_says_all_of_what_it_makes_and_one_without_a_name_does_not(tmp_path: Path) -> None:
    with open_workspace(tmp_path) as workspace:
        options = {"dataset": topics(), "measures": ["RR@10"], "workspace": workspace, "runs": tmp_path / "runs"}
        for resumed in (0, 10):
            asking = compare({"made": made}, **options).provenance["asking"]
            assert (asking["resumed_answers"], asking["never_resumed"]) == (resumed, {})
        asking = compare({"other": lambda store: Answers(lambda _: 1)}, **options).provenance["asking"]
        assert list(asking["never_resumed"]) == ["other"]


def test_what_methods_and_objects_make_is_told_by_what_it_keeps(tmp_path: Path) -> None:
    with open_workspace(tmp_path) as workspace:
        options = {"dataset": topics(), "measures": ["RR@10"], "workspace": workspace, "runs": tmp_path / "runs"}
        for name, of in (("method", lambda first: Factory(first).make), ("object", Factory)):
            for resumed in (0, 10):
                asking = compare({name: of("d-tea")}, **options).provenance["asking"]
                assert (asking["resumed_answers"], asking["never_resumed"]) == (resumed, {})
            with pytest.raises(EvaluationError, match="answers of another .* configuration"):
                compare({name: of("d-bees")}, **options)


class Odd:
    """Its configuration has a value that is none of JSON, and a set."""

    class Config(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        pattern: Annotated[Any, AfterValidator(lambda text: SimpleNamespace(text=text))] = "d-tea"
        words: set[str] = {"b", "a", "c"}

    def __init__(self, config: dict[str, Any]) -> None:
        self.first = config.get("pattern", "d-tea")

    def retrieve(self, query: str, **_: object) -> list[Document]:
        return [Document("", {}, 1.0, self.first)]


def test_a_configuration_of_any_values_is_compared_and_resumed(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    file = tmp_path / "config" / "techniques.yaml"
    options = {"dataset": topics(), "measures": ["RR@10"], "runs": tmp_path / "runs", "workspace": tmp_path}
    entry = "techniques:\n  odd: {use: 'tests.evaluation.test_resuming:Odd', pattern: %s}\n"
    file.write_text(entry % "d-tea")
    compare(["odd"], **options)
    again = compare(["odd"], **options).provenance
    assert again["asking"]["resumed_answers"] == 10
    assert again["techniques"]["odd"]["config"] == {"pattern": "d-tea", "words": ["a", "b", "c"]}
    file.write_text(entry % "d-bees")
    with pytest.raises(EvaluationError, match="answers of another"):
        compare(["odd"], **options)


class Kept(Configured):
    """Keeps what it finds beside its configuration."""

    def __init__(self, first: str) -> None:
        self.config = {}
        self.first = first

    def retrieve(self, query: str, **_: object) -> list[Document]:
        return [Document("", {}, 1.0, self.first)]


class Factory:
    """Decides what is made."""

    def __init__(self, first: str) -> None:
        self.first = first

    def make(self) -> Kept:
        return Kept(self.first)

    __call__ = make


def test_answers_over_the_library_are_refused_once_it_has_changed(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text('{"text": "how long is tea steeped", "sources": ["tea.md"]}\n')
    text = "\n\n".join(f"Tea number {number} is steeped for two minutes." for number in range(30))
    contents = set()

    def resumed(folder: str) -> int:
        with open_workspace(tmp_path) as workspace:
            dataset = read_library(workspace, tmp_path / "queries.jsonl")
            contents.add(dataset.content_hash())
            options = {"workspace": workspace, "chunk_size": "library", "runs": tmp_path / folder}
            return compare(["bm25"], dataset, ["RR@10"], **options).provenance["asking"]["resumed_answers"]

    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("drinks", "About drinks")
        workspace.library.ingest_text(text, "tea.md", "drinks")
    assert [resumed("runs"), resumed("runs")] == [0, 1]
    with open_workspace(tmp_path) as workspace:
        workspace.library.update_description("drinks", "All that one can drink")
    with pytest.raises(EvaluationError, match="answers of another"):
        resumed("runs")
    assert [resumed("later"), resumed("later")] == [0, 1]
    with open_workspace(tmp_path, chunk_size=100, chunk_overlap=0) as workspace:
        workspace.library.delete_source("tea.md", "drinks")
        workspace.library.ingest_text(text, "tea.md", "drinks")
    with pytest.raises(EvaluationError, match="answers of another"):
        resumed("later")
    assert len(contents) == 1, "the documents are the same: what is searched is not"


def test_answers_over_the_library_are_refused_once_what_is_known_of_a_source_has_changed(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text('{"text": "green tea", "sources": ["tea.md"]}\n')
    source = tmp_path / "texts" / "tea.md"
    source.parent.mkdir()

    def resumed(tag: str) -> int:
        source.write_text(f"---\ntags: [{tag}]\n---\nGreen tea is steeped for two minutes.\n")
        with open_workspace(tmp_path) as workspace:
            if not workspace.library.list_collections():
                workspace.library.create_collection("drinks", "About drinks")
            workspace.library.ingest_folder(source.parent, "drinks")
            dataset = read_library(workspace, tmp_path / "queries.jsonl")
            options = {"workspace": workspace, "chunk_size": "library", "runs": tmp_path / "runs"}
            return compare(["bm25"], dataset, ["RR@10"], **options).provenance["asking"]["resumed_answers"]

    assert [resumed("new"), resumed("new")] == [0, 1]
    with pytest.raises(EvaluationError, match="answers of another"):
        resumed("old")


READS = """
import re
from pathlib import Path

import numpy as np

class Reads:
    def __init__(self, config=None):
        self.words = READ(Path(__file__).with_name("words.txt").read_text())

    def retrieve(self, query, **options):
        return []

def make():
    return Reads()
"""
READING = """
techniques:
  entry: {use: 'MODULE:Reads'}
  above: {use: mmr, base: entry}
  step: {use: pipeline, steps: {only: {technique: entry}}}
"""
READERS = {"words": "str.split", "pattern": "re.compile", "array": "(lambda text: np.array([len(text)]))"}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("name", ["entry", "above", "step", "class", "function"])
def test_answers_are_refused_once_a_file_has_changed_that_is_read_when_the_technique_is_made(
    name: str, read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"{name}_reads_{read}"
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "techniques.yaml").write_text(READING.replace("MODULE", module))
    (tmp_path / f"{module}.py").write_text(READS.replace("READ(", f"{READERS[read]}("))
    (tmp_path / "words.txt").touch()
    monkeypatch.syspath_prepend(tmp_path)
    given = {name: getattr(import_module(module), {"class": "Reads", "function": "make"}.get(name, ""), None)}

    def resumed(text: str) -> int:
        (tmp_path / "words.txt").write_text(text)
        with open_workspace(tmp_path) as workspace:
            options = {"workspace": workspace, "runs": tmp_path / "runs"}
            asking = compare(given, topics(), ["RR@10"], **options).provenance["asking"]
        assert asking["never_resumed"] == {}
        return asking["resumed_answers"]

    assert [resumed("tea"), resumed("tea")] == [0, 10]
    with pytest.raises(EvaluationError, match=r"answers of another .* kept data, .*'technique\.\w+\..*words' is not"):
        resumed("coffee")


def test_the_code_of_a_workspace_is_its_own_where_another_one_has_modules_of_the_same_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(folder: str) -> dict[str, Any]:
        with open_workspace(tmp_path / folder) as workspace:
            options = {"dataset": topics(), "measures": ["RR@10"], "workspace": workspace}
            options["runs"] = tmp_path / f"runs of {folder}"
            return compare(["entry", "nodes"], **options).provenance

    for folder in ("one", "other"):
        (tmp_path / folder / "config").mkdir(parents=True)
        (tmp_path / folder / "config" / "techniques.yaml").write_text(
            "techniques:\n  entry: {use: 'same_name:Same'}\n"
            "  nodes: {use: pipeline, steps: {a: {node: 'same_name:Node'}}}\n"
        )
        (tmp_path / folder / "same_name.py").write_text(SAME + f"# of {folder}\n")
    one, other = found("one")["techniques"], found("other")["techniques"]
    assert one["entry"]["code"] != other["entry"]["code"]
    assert one["nodes"]["nodes"] != other["nodes"]["nodes"]
    assert None not in (one["entry"]["code"], other["entry"]["code"])
    assert found("other")["asking"]["resumed_answers"] == 20
    for name in [name for name in sys.modules if name.rpartition(".")[2] == "same_name"]:
        del sys.modules[name]
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(tmp_path / "one")])
    for folder in ("other", "one"):  # as in another process, which may open either first
        assert found(folder)["asking"]["resumed_answers"] == 20
    (tmp_path / "one" / "same_name.py").write_text(SAME + "# changed\n")
    with pytest.raises(EvaluationError, match="answers of another"):
        found("one")


SAME = """
from pocketflow import Node as Above

class Same:
    def __init__(self, config):
        pass

    def retrieve(self, query, **options):
        return []

class Node(Above):
    actions = frozenset({"default"})

    def post(self, shared, prepared, done):
        return "default"
"""


class Locked(Configured):
    """Keeps a lock, of which nothing is known and which decides nothing."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__({"first": "d-tea"} | config)
        self.lock = Lock()


def test_what_has_no_plain_value_keeps_no_entry_from_being_resumed(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    file = tmp_path / "config" / "techniques.yaml"
    file.write_text("techniques: {locked: {use: 'tests.evaluation.test_resuming:Locked'}}\n")
    options = {"dataset": topics(), "measures": ["RR@10"], "workspace": tmp_path, "runs": tmp_path / "runs"}
    found = [compare(techniques, **options) for techniques in (["locked"], ["locked"], {"class": Locked})]
    assert [one.provenance["asking"]["resumed_answers"] for one in found] == [0, 10, 0]
    for one, name in zip(found, ("locked", "locked", "class"), strict=True):
        assert f"{name} is resumed whether or not this has changed, which has no plain value: lock, a lock;" in "".join(
            notes(one)
        )
    silent = compare(["locked"], **options | {"runs": None})
    assert not notes(silent), "what is kept nowhere is not resumed"


def test_data_named_as_what_is_said_of_an_object_is_seen_too(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    file = tmp_path / "config" / "techniques.yaml"
    file.write_text("techniques: {coded: {use: 'coded_words:Coded'}}\n")
    module = tmp_path / "coded_words.py"
    module.write_text(
        "from pathlib import Path\nclass Kept:\n    def retrieve(self, query, **options): return []\n"
        "class Coded(Kept):\n    def __init__(self, config):\n        self.part = Kept()\n"
        "        self.part.code = Path(__file__).with_name('words.txt').read_text()\n"
        "        self.table = {'use': 1, 'code': 2, 'state': self.part.code}\n"
    )
    options = {"dataset": topics(), "measures": ["RR@10"], "workspace": tmp_path, "runs": tmp_path / "runs"}
    (tmp_path / "words.txt").write_text("tea")
    assert [compare(["coded"], **options).provenance["asking"]["resumed_answers"] for _ in range(2)] == [0, 10]
    (tmp_path / "words.txt").write_text("coffee")
    with pytest.raises(EvaluationError, match=r"'technique.keeps.part.code', 'technique.keeps.table.state' are not"):
        compare(["coded"], **options)


def made(store: object) -> object:
    """A technique that keeps what nothing is known of, decided by this function alone."""

    class Made(Configured):
        def retrieve(self, query: str, **_: object) -> list[Document]:
            return list(store.scan())

    return Made({})


def test_a_name_of_any_length_has_a_file(tmp_path: Path) -> None:
    names = ["x" * 300, "x" * 299 + "y", "ü" * 200]
    result = compare({name: Answers(first) for name in names}, numbered(3), runs=tmp_path)
    assert list(result.techniques) == names
    assert len(list(tmp_path.glob("*.run"))) == 3
