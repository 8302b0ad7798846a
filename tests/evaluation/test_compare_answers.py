"""From what a technique returns to a ranking of documents, and where its time went."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import EvaluationError, TechniqueError
from ragistry.evaluation.answer_file import AnswerFile
from ragistry.evaluation.answers import Answer, document_of, ranking_of, stage_times
from ragistry.evaluation.asking import Asking, ask
from ragistry.evaluation.charges import CHARGED, charged
from ragistry.evaluation.dataset import Dataset, Text
from ragistry.evaluation.from_program import from_ready
from ragistry.evaluation.run_files import answer_files
from ragistry.types import Document, Stage

KNOWN = {"a", "b", "notes/tea.md", "tea.md"}


def chunk(source: str, score: float, **metadata: str) -> Document:
    return Document("", {"source_file": source, **metadata}, score, f"chunk of {source}")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abcdef"), max_size=30))
def test_a_document_stands_where_its_first_chunk_stands(sources: list[str]) -> None:
    chunks = [chunk(source, -at) for at, source in enumerate(sources)]
    ranking = ranking_of("t", chunks, set("abcdef"))
    assert list(ranking) == sorted(set(sources), key=sources.index)
    assert all(ranking[source].score == -sources.index(source) for source in ranking)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_not_finite_is_refused(score: float) -> None:
    with pytest.raises(TechniqueError, match="'t' gave 'a' the score"):
        ranking_of("t", [chunk("a", score)], KNOWN)


def test_a_result_belongs_to_the_document_that_its_metadata_or_id_names() -> None:
    assert document_of(chunk("tea.md", 1, collection="notes"), KNOWN) == "notes/tea.md"
    assert document_of(chunk("tea.md", 1, collection="other"), KNOWN) == "tea.md"
    assert document_of(Document("", {}, 1, "b"), KNOWN) == "b"
    assert document_of(Document("", {"source_file": "elsewhere"}, 1, "b"), KNOWN) == "b"
    assert document_of(chunk("unknown", 1), KNOWN) == "unknown"


def test_where_sources_are_ids_the_name_of_a_collection_makes_no_other_document_of_one() -> None:
    tea = chunk("tea.md", 1, collection="notes")
    assert document_of(tea, KNOWN, qualified=False) == "tea.md"
    assert document_of(tea, KNOWN - {"tea.md"}, qualified=False) == "notes/tea.md"
    assert document_of(Document("", {}, 1, "b"), KNOWN, qualified=False) == "b"


def test_what_searches_a_store_of_its_own_may_name_collection_and_source() -> None:
    class Own:
        def retrieve(self, query: str, **_: object) -> list[Document]:
            return [chunk("tea.md", 1, collection="notes")]

    corpus = [Text(name, "", name) for name in sorted(KNOWN)]
    asking = Asking(Dataset("notes", corpus, {"q": "tea"}, {"q": {"notes/tea.md": 1}}), 10)
    assert ask(from_ready("t", Own()), "q", asking).ranking == [("notes/tea.md", 1.0)]


def test_each_stage_has_the_time_that_is_its_own() -> None:
    stages = [
        Stage("hybrid", 20.0),
        Stage("naive", 12.0, depth=1),
        Stage("embed", 5.0, depth=2),
        Stage("kept vectors", 4.0, depth=3, detail={CHARGED: 6.0}),
        Stage("search", 4.0, depth=2),
        Stage("bm25", 3.0, depth=1),
    ]
    found = stage_times(stages)
    assert found == {"itself": 5.0, "naive": 3.0, "naive > embed": 11.0, "naive > search": 4.0, "bm25": 3.0}
    assert sum(found.values()) == 20 + charged(stages)


def test_a_stage_that_runs_twice_is_summed() -> None:
    stages = [Stage("multi", 10.0), Stage("search", 3.0, depth=1), Stage("search", 4.0, depth=1)]
    assert stage_times(stages) == {"itself": 3.0, "search": 7.0}


def test_answers_are_read_back_as_they_were(tmp_path: Path) -> None:
    file = AnswerFile(tmp_path / "new" / "a.jsonl", {"dataset": "x"})
    assert file.read() == {}
    answers = [
        Answer("q1", [("a", 1.0), ("b", 0.1)], 2.5, 1, 7, {"embed": 2.0}, {"a": {"bm25": 1.0}}, [{"chosen": []}])
    ]
    file.append(answers)
    file.append([])
    assert list(file.read().values()) == answers
    with pytest.raises(
        EvaluationError, match="another test set, configuration, code, model, kept data, depth or version"
    ):
        AnswerFile(file.path, {"dataset": "y"}).read()


def test_a_file_that_holds_no_answers_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("no answers\n")
    with pytest.raises(EvaluationError, match="holds no answers of a comparison"):
        AnswerFile(tmp_path / "a.jsonl", {}).read()


def test_techniques_that_would_share_a_file_are_told_apart(tmp_path: Path) -> None:
    assert len(answer_files(tmp_path, {"500/75": {}, "500,75": {}})) == 2
    for names in (("500/75", "500_75"), ("mine", "Mine")):  # some systems do not tell the latter apart
        with pytest.raises(EvaluationError, match=f"{names[0]!r} and {names[1]!r} would share the file"):
            answer_files(tmp_path, {name: {} for name in names})


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_file_that_was_cut_anywhere_is_read_as_far_as_it_is_whole(tmp_path: Path, cut: int) -> None:
    file = AnswerFile(tmp_path / "a.jsonl", {})
    file.append([Answer(f"q{number}", [], 1.0, 0, 0) for number in range(3)])
    file.path.write_bytes(file.path.read_bytes()[:-cut])
    assert list(file.read()) == ["q0", "q1"]
    file.append([Answer("q2", [], 1.0, 0, 0)])
    assert list(file.read()) == ["q0", "q1", "q2"]


def test_a_file_without_a_whole_line_is_begun_anew(tmp_path: Path) -> None:
    file = AnswerFile(tmp_path / "a.jsonl", {})
    file.path.write_text('{"of": "12')
    assert file.read() == {}
    file.append([Answer("q", [], 1.0, 0, 0)])
    assert list(file.read()) == ["q"]
