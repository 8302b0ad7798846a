"""Grades are kept line by line, belong to texts, and become an ordinary set of questions."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ragistry.errors import DatasetError
from ragistry.evaluation import read_qrels
from ragistry.evaluation.judging import FILE, Judgement, candidates, text_hash
from ragistry.types import Document
from tests.messages import refused

FOUND = {"naive": ["a", "b", "c", "x"], "bm25": ["d", "b", "a", "y"]}
PLAN = {"default": "naive", "challenger": "bm25", "margin": None, "total": 80}


def workspace(moved: str = "", changed: str = "") -> Any:
    """A workspace whose techniques always find the same passages, of sources with the same names."""

    def document(text: str) -> Document:
        name = f"new-{text}" if text == moved else text
        text = f"{text} anew" if text == changed else text
        return Document(text, {"collection": "notes", "source_file": f"{name}.md", "line": 3}, 1.0)

    def search(_: str, technique: str, top_k: int) -> Any:
        return SimpleNamespace(documents=[document(text) for text in FOUND[technique][:top_k]])

    return SimpleNamespace(search=search, store=SimpleNamespace(scan=lambda: map(document, "abcdxy")))


def judgement(folder: Path, *questions: str, of: Any = None) -> Judgement:
    made = Judgement(folder)
    if not made.plan:
        made.add(PLAN)
    for question in questions:
        if question not in made.questions:
            made.add({"questions": {question: "asked"}})
        made.candidates[question] = candidates(of or workspace(), question, PAIR)
    return made


PAIR = ("naive", "bm25")


def test_candidates_are_the_first_of_both_in_the_order_of_the_question() -> None:
    orders = set()
    for number in range(20):
        found = candidates(workspace(), f"q{number}", PAIR)
        assert found == candidates(workspace(), f"q{number}", PAIR[::-1])._replace(rankings=found.rankings)
        assert {one.content for one in found.passages.values()} == set("abcd")
        orders.add("".join(one.content for one in found.passages.values()))
    assert len(orders) > 10
    assert not candidates(workspace(), "q", ["naive", "naive"]).needed


def test_every_killed_process_keeps_its_grade(tmp_path: Path) -> None:
    for number in range(200):
        if not (child := os.fork()):
            try:
                made = judgement(tmp_path, "q")
                made.grade("q", {text_hash("abcd"[number % 4]): number % 3})
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert sum("grades" in event for event in Judgement(tmp_path).events) == 200


def test_undo_takes_keys_back_one_by_one_and_a_cut_line_is_dropped(tmp_path: Path) -> None:
    made = judgement(tmp_path, "q", "r")
    made.grade("q", {text_hash("a"): 2, text_hash("b"): 0})
    made.grade("q", {}, absent=True)
    made.grade("r", {})  # no key was needed
    made.add({"questions": {"s": "asked"}})
    assert (made.complete(), made.differences(), made.keys) == (["q"], [0.0], 2)
    before = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(before + b'{"question": "q", "gra')
    made = judgement(tmp_path, "q", "r")
    assert (tmp_path / FILE).read_bytes() == before
    for grades in [{text_hash("a"): 2, text_hash("b"): 0}, {}, {}]:
        made.add({"undo": True})
        assert (made.complete(), made.grades("q")) == ([], grades)
        assert judgement(tmp_path, "q", "r").grades("q") == grades


def test_difference_and_agreement(tmp_path: Path) -> None:
    made = judgement(tmp_path, *"qrs")
    for question, grades in {"q": (2, 0, 0, 1), "r": (0, 0, 0, 2), "s": (1, 1, 1, 1)}.items():
        made.grade(question, dict(zip(map(text_hash, "abcd"), grades, strict=True)))
    assert made.complete() == [*"qrs"]
    assert made.differences() == pytest.approx([1 / 3 - 1, 1, 0])  # only "answers it" counts
    assert made.differences("nDCG@3")[2] == pytest.approx(0)
    assert made.due() == ("q", text_hash("a"))
    made.grade("q", {text_hash("a"): 1}, again=True)
    assert (made.agreement(), made.due(), made.grades("q")[text_hash("a")]) == ([0.0], None, 2)


def test_moved_source_keeps_its_grade_and_a_changed_text_loses_it(tmp_path: Path) -> None:
    made = judgement(tmp_path, "q")
    made.grade("q", dict(zip(map(text_hash, "abcd"), (2, 1, 0, 0), strict=True)))
    row = json.loads((tmp_path / FILE).read_text().splitlines()[-1])
    assert row["grades"][text_hash("a")] == {"grade": 2, "source": "notes/a.md", "lines": [3, 3]}
    changed = workspace(moved="a", changed="c")
    made = judgement(tmp_path, "q", of=changed)
    assert made.complete() == []
    assert made.write_set(changed) == 1
    [row] = [json.loads(line) for line in (tmp_path / "queries.jsonl").read_text().splitlines()]
    assert row["sources"] == {"notes/new-a.md": 2, "notes/b.md": 1, "notes/d.md": 0}
    assert read_qrels(tmp_path / "qrels.txt") == {row["_id"]: row["sources"]}


def test_other_content_and_other_writers_are_refused(tmp_path: Path) -> None:
    first, second = judgement(tmp_path, "q"), judgement(tmp_path, "q")
    first.grade("q", {text_hash("a"): 2})
    with refused(DatasetError, FILE):
        second.grade("q", {text_hash("a"): 0})
    assert judgement(tmp_path, "q").grades("q") == {text_hash("a"): 2}
    for content in ("5\n", "{}\n[]\n", '{"undo"\n'):
        (tmp_path / FILE).write_text(content)
        with refused(DatasetError, str(tmp_path)):
            Judgement(tmp_path)


def test_answers_that_questions_came_with_stay(tmp_path: Path) -> None:
    rows = [
        {"text": "q", "sources": ["notes/x.md"]},
        {"_id": "same", "text": "q", "sources": []},
        {"text": "r", "sources": [], "candidates": ["notes/a.md"]},
    ]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for _ in range(2):  # the second judges on
        made = judgement(tmp_path)
        made.keep_answers()
        for question in "qr":
            made.candidates[question] = candidates(workspace(), question, PAIR)
            made.grade(question, {text_hash("a"): 0, text_hash("b"): 2})
        made.write_set(workspace())
        rows[2] = {"text": "r", "sources": {"notes/a.md": 0, "notes/b.md": 2}}
        assert [json.loads(line) for line in (tmp_path / "queries.jsonl").read_text().splitlines()] == rows
    made.grade("r", {}, absent=True)
    made.write_set(workspace())
    assert read_qrels(tmp_path / "qrels.txt") == {"1": {"notes/a.md": 0, "notes/b.md": 2}}
