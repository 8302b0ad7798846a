"""Judging in a terminal: keys, the verdict, the changed default, and what ends it without a loss."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Run
from tests.conftest import Corpus
from tests.messages import check_message

WORDS = "copper granite willow falcon harbor lantern meadow nickel orchid pepper quartz raven saffron timber velvet walnut zinc amber basalt cedar".split()  # noqa: E501, SIM905
KEYS = "q end"
PLAIN = re.compile(r"\x1b\[[\d;]*m|\x1b\].*?\x1b\\|\r")


class Terminal:
    """``ragistry`` in a terminal of 80 columns."""

    def __init__(self, *words: str) -> None:
        self.pid, self.handle = pty.fork()
        if not self.pid:
            os.environ |= {"COLUMNS": "80", "NO_COLOR": "1"}
            os.execv(sys.executable, [sys.executable, "-m", "ragistry", *words])
        self.all = self.new = ""

    def until(self, text: str) -> str:
        """Read up to a text, and return what came before it; at the end all."""
        end = time.monotonic() + 30
        while text not in self.new and time.monotonic() < end:
            if select.select([self.handle], [], [], 1)[0]:
                try:
                    piece = os.read(self.handle, 65_536).decode()
                except OSError:
                    break
                self.all, self.new = self.all + piece, self.new + piece
        before, _, self.new = self.new.partition(text)
        return PLAIN.sub("", before)

    def press(self, key: str) -> None:
        os.write(self.handle, key.encode())

    def end(self) -> int:
        """Wait for the end, and return the exit code."""
        self.until("\0")
        self.all = PLAIN.sub("", self.all)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def library(ragistry: Run, corpus: Corpus, tmp_path: Path) -> Path:
    """A library in which `bm25` finds each of 20 words first, and the default technique nothing that it could find."""
    files = {f"{word}.txt": f"The {word} is kept in the {word} room." for word in WORDS}
    corpus(files, folder="docs")
    assert ragistry("ingest", "docs", "-c", "notes", "--create", "x").code == 0
    entries = (
        "# Mine\ndefault: none  # for now\ntechniques:\n  none: {use: bm25, min_score: 1000}\n  bm25: {use: bm25}\n"
    )
    corpus({"techniques.yaml": entries}, folder="config")
    return tmp_path


def questions(folder: Path) -> None:
    folder.mkdir()
    rows = [json.dumps({"text": f"where is {word}", "kind": "asked"}) for word in WORDS]
    (folder / "queries.jsonl").write_text("\n".join(rows), encoding="utf-8")


def judge(terminal: Terminal, keys: str) -> None:
    for key in keys:
        screen = terminal.until(KEYS)
        assert all(len(line) <= 80 for line in screen.splitlines()), screen
        assert "bm25" not in screen.partition("-----")[2]
        terminal.press(key)


def test_keys_lead_to_a_verdict_and_a_changed_default(library: Path, ragistry: Run) -> None:
    questions(library / "set")
    first = Terminal("testset", "judge", "set")
    judge(first, "1o1u11")
    first.until(KEYS)
    os.kill(first.pid, signal.SIGKILL)
    os.waitpid(first.pid, 0)
    again = Terminal("testset", "judge", "set", "--dry-run")
    assert "20 questions show a difference of 0.19" in again.until("-----")
    judge(again, "q")
    assert again.end() == 0
    assert "3 of 20 questions" in again.all
    last = Terminal("testset", "judge", "set")
    judge(last, "1" * 18)
    assert "-default: none  # for now\n+default: bm25  # for now" in last.until("Write it?")
    last.press("y")
    assert last.end() == 0
    assert "Use bm25: RR@3 +1.000" in last.all
    assert "Same grade twice: 1 of 1" in last.all
    changed = (library / "config" / "techniques.yaml").read_text(encoding="utf-8")
    assert changed.startswith("# Mine\ndefault: bm25  # for now\n")
    assert subprocess.run(last.all.partition("To undo: ")[2], shell=True, check=True, cwd=library).returncode == 0
    assert "\ndefault: none  # for now\n" in (library / "config" / "techniques.yaml").read_text(encoding="utf-8")
    done = ragistry(*shlex.split("compare --queries set/queries.jsonl -t bm25 -t none -m RR@10 --json -"))
    assert set(done.json["techniques"]["bm25"]["per_query"]["RR@10"].values()) == {1.0}
    ragistry("testset", "judge", "set").refused(1)  # without a terminal
    assert "Missing argument 'SET'" in ragistry("testset", "judge").err


def test_what_is_answered_without_a_grade_and_what_is_refused(library: Path, ragistry: Run, corpus: Corpus) -> None:
    asked = {"text": "where is zinc", "time": "2026-11-29", "door": "page", "limited": False}
    (library / ".ragistry" / "questions.jsonl").write_text(json.dumps(asked) + "\n", encoding="utf-8")
    typed = Terminal("testset", "judge", "set")
    typed.until("Judge 1 question that people asked? [Y/n] ")
    typed.press("n\n")
    typed.until("A question (Enter ends): ")
    typed.press("where is copper\n")
    judge(typed, "n")
    typed.until("A question (Enter ends): ")
    typed.press("where is the cheese\n")  # both techniques find nothing
    typed.until("A question (Enter ends): ")
    typed.press("which room is granite in\n")
    judge(typed, "l")
    typed.until("A question (Enter ends): ")
    other = Terminal("testset", "judge", "set")
    assert other.end() == 1
    check_message(other.all, "set")
    typed.press("\n")
    assert typed.end() == 0
    assert "Not decided yet: 3 of 80 questions, next look at 20." in typed.all
    rows = [json.loads(line) for line in (library / "set" / "queries.jsonl").read_text().splitlines()]
    assert [row.get("sources", {}) for row in rows] == [{"notes/copper.txt": 0}, {}, {}]
    entries = "techniques: {bm25: {use: bm25}, none: {use: bm25}, model: {use: hyde}}"
    corpus({"techniques.yaml": f"default: bm25\n{entries}\n"}, folder="config")
    for words in ("set bm25", "set bm52", "set none", "set model"):  # the default, unknown, another pair, no model
        refused = Terminal("testset", "judge", *words.split())
        assert refused.end() == 1
        check_message(refused.all)


def test_what_changes_meanwhile_costs_no_grade(library: Path, ragistry: Run) -> None:
    questions(library / "set")
    edited = Terminal("testset", "judge", "set")
    judge(edited, "é&s11")  # keys of another layout are named, and change nothing
    assert "note: 'é' is none of these keys" in PLAIN.sub("", edited.all)
    file = library / "set" / "queries.jsonl"
    more = '\n{"text": "where is my pen", "kind": "asked"}\n{"no'
    file.write_text(file.read_text(encoding="utf-8") + more, encoding="utf-8")
    judge(edited, "q")
    assert edited.end() == 1
    assert """error: 'set/queries.jsonl' has no question in the line '{"no'; correct it""" in edited.all
    file.write_text(file.read_text(encoding="utf-8").removesuffix('{"no'), encoding="utf-8")
    log = library / "set" / "grades.jsonl"
    graded = [json.loads(line)["question"].split()[-1] for line in log.read_text().splitlines() if '"grade": ' in line]
    assert len(graded) == 2
    assert ragistry("sources", "delete", f"{graded[0]}.txt", "-c", "notes", "--yes").code == 0
    removed = Terminal("testset", "judge", "set")
    judge(removed, "1")
    removed.until(KEYS)
    log.write_text(log.read_text() + "\n")  # an editor
    removed.press("1")
    assert removed.end() == 1
    assert "error: 'set/grades.jsonl' was changed by another program" in removed.all
    again = Terminal("testset", "judge", "set")
    judge(again, "q")
    assert again.end() == 0
    assert "3 of 20 questions" in again.all
    assert "1 grade is of texts that changed, and not used." in again.all


def test_contender_that_fails_and_one_that_finds_the_same(library: Path, corpus: Corpus) -> None:
    questions(library / "set")
    same = "default: bm25\ntechniques: {bm25: {use: bm25}, same: {use: bm25}, fails: {use: 'fails:Fails'}}\n"
    corpus({"techniques.yaml": same}, folder="config")
    failing = """class Fails:
    def __init__(self, config, *, store):
        self.store = store

    def retrieve(self, query, *, top_k=5, where=None):
        if query.endswith(("copper", "zinc")):
            raise ValueError("no " + query)
        return self.store.search_text(query, top_k)
"""
    Path("fails.py").write_text(failing)
    equal = Terminal("testset", "judge", "set", "same")
    assert equal.end() == 0
    assert "Not decided, so bm25 stays: RR@3 +0.000" in equal.all
    assert "Lists are equal for 20 of 20, and no question shows a difference." in equal.all
    questions(library / "other")
    partly = Terminal("testset", "judge", "other", "fails")
    partly.until("A question (Enter ends): ")
    partly.press("\n")
    assert partly.end() == 0
    assert sorted(re.findall(r"left out '(.+)': .*no ", partly.all)) == ["where is copper", "where is zinc"]
    assert "Not decided yet: 18 of 20 questions" in partly.all


def test_keys_on_a_passage_that_is_shown_again_and_undo_of_a_skip(library: Path) -> None:
    questions(library / "set")
    terminal = Terminal("testset", "judge", "set")
    judge(terminal, "1" * 10)
    assert "again ·" in terminal.until("Question")
    judge(terminal, "u1")  # the tenth is graded again
    assert "again ·" in terminal.until("Question")
    judge(terminal, "s")  # only the repetition is skipped
    judge(terminal, "u")
    assert "again ·" in terminal.until("Question")
    judge(terminal, "l")
    skipped = re.search(r"Question: (.*)", terminal.until(KEYS) + terminal.all.rpartition(KEYS)[0].rpartition("---")[2])
    assert skipped
    terminal.press("s")
    judge(terminal, "u")
    assert skipped[0] in PLAIN.sub("", terminal.until(KEYS) + KEYS)
    terminal.press("q")
    assert terminal.end() == 0
    assert "Not decided yet: 10 of 20 questions" in terminal.all


def test_pasted_lines_are_questions_and_a_stopped_program_goes_on(library: Path) -> None:
    terminal = Terminal("testset", "judge", "set")
    terminal.until("A question (Enter ends): ")
    terminal.press("where is copper\n1 where  is zinc\n\n\x1b[A\nwhere is cedar\n")
    terminal.until(KEYS)
    cooked = termios.tcgetattr(terminal.handle)
    cooked[3] |= termios.ICANON | termios.ECHO  # as a shell does that takes the terminal
    termios.tcsetattr(terminal.handle, termios.TCSANOW, cooked)
    time.sleep(2)  # more than it takes to notice
    terminal.press("1")
    terminal.until(KEYS)
    terminal.press("\x1b")  # Esc alone
    time.sleep(0.2)
    terminal.press("1")
    judge(terminal, "\x04")  # Ctrl+D
    assert terminal.end() == 0
    assert "Not decided yet: 2 of 80 questions" in terminal.all
    rows = [json.loads(line)["text"] for line in (library / "set" / "queries.jsonl").read_text().splitlines()]
    assert rows == ["where is copper", "1 where is zinc", "where is cedar"]


@pytest.mark.parametrize("before", ["# Mine\r\n\r\ndefault: 'none'  # a/b & c\r\n", "# Mine"])
def test_undo_gives_the_same_bytes(library: Path, before: str) -> None:
    path = library / "config" / "techniques.yaml"
    entries = "none: {use: bm25, min_score: 1000}, auto: {use: bm25, min_score: 1000}, b.m: {use: bm25}"
    text = f"{before}\ntechniques: {{{entries}}}"
    path.write_bytes(text.encode())
    questions(library / "set")
    terminal = Terminal("testset", "judge", "set", "b.m")
    judge(terminal, "1" * 21)
    terminal.until("Write it?")
    terminal.press("y")
    assert terminal.end() == 0
    assert yaml.safe_load(path.read_text())["default"] == "b.m"
    assert path.read_bytes().count(b"\r") == text.count("\r")
    subprocess.run(terminal.all.partition("To undo: ")[2], shell=True, check=True, cwd=library)
    assert path.read_bytes().strip() == text.encode().strip()


def test_folder_of_another_program_and_an_empty_library_are_refused(library: Path, corpus: Corpus) -> None:
    (library / "set").mkdir()
    (library / "set" / "qrels.txt").write_text("q 0 d 1\n")
    corpus({"techniques.yaml": "default: naive"}, folder="empty/config")
    for root, said in ((".", "'set/qrels.txt' is of another program"), ("empty", "the library is empty; ingest first")):
        refused = Terminal("testset", "judge", "set", "-w", root)
        assert refused.end() == 1
        assert said in " ".join(refused.all.split())
