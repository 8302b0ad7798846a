"""Questions that people ask are kept if a setting says so, and become a test set."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from ragistry import open_workspace
from ragistry.errors import DatasetError
from ragistry.library import asked
from ragistry.library.asked import FILE, QuestionLog
from tests.cli.conftest import Run
from tests.conftest import Corpus
from tests.messages import check_message, refused


@pytest.fixture
def log(tmp_path: Path) -> QuestionLog:
    return QuestionLog(tmp_path / "data" / FILE)


def texts(log: QuestionLog) -> list[str]:
    return [one.text for one in log.read()]


@pytest.mark.parametrize(
    "text",
    [
        "why is sk-proj1234567890abcdefXYZ refused",
        "ghp_abcdefghij1234567890ABCDEFGHIJ does not push",
        "login with password: hunter22!",
        "API key = 9f8e7d6c5b",
        "is the token abc123def ok",
        "AKIAIOSFODNN7EXAMPLE in s3",
        "SECRET_KEY='django-insecure-abc'",
        "DB_PASSWORD=hunter2",
        "auth_token: correct-horse",
        "curl https://me:secret@example.org",
        "what is -----BEGIN RSA PRIVATE KEY-----",
        "decode eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.x",
        "hash 5f4dcc3b5aa765d61d8327deb882cf99",
        " ",
    ],
)
def test_question_with_a_key_is_not_kept(text: str, log: QuestionLog) -> None:
    log.add(text, "shell")
    assert not log.path.exists()


@pytest.mark.parametrize(
    "text",
    ["how do I reset my password", "what is a token", "error 0x80070005 in Windows11", "wie heißt 水", "line\nbreak",
     "what does ConnectionResetByPeerException mean", "max_tokens: 200000", "tokenizer 4.57.1", "token: none",
      "docs/howto/compare_two_reports", "secret sharing explained",
     "line\u2028separator", "next\x85line", "half a \ud83d character"],
)  # fmt: skip
def test_question_is_kept_as_it_was_asked(text: str, log: QuestionLog) -> None:
    log.add(text, "page", limited=True)
    [one] = log.read()
    assert (one.text, one.door, one.limited) == (text, "page", True)
    assert one.time
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    log.path.unlink()
    assert log.read() == []


def test_oldest_questions_are_deleted_first(log: QuestionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "MOST", 10)
    monkeypatch.setattr(asked, "ROOM", 3)
    for number in range(12):
        QuestionLog(log.path).add(f"q{number}", "mcp")
        log.add(f"again {number}", "mcp")
        assert len(texts(log)) <= 10
    assert texts(log)[-2:] == ["q11", "again 11"]
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600


def test_other_content_is_an_error_and_a_search_goes_on(log: QuestionLog) -> None:
    log.path.parent.mkdir()
    log.path.write_text('{"text": 1\n')
    with refused(DatasetError, FILE):
        log.read()
    log.path.unlink()
    log.path.mkdir()
    log.add("rain", "server")


def test_questions_of_the_shell_become_a_test_set(ragistry: Run, corpus: Corpus, tmp_path: Path) -> None:
    files = {
        "tea.md": "Leaves turn bitter in boiling water.",
        "rain.md": "When does it rain? It rains.",
        "hidden.md": "Zinc.",
    }
    docs = corpus({**files, **{f"{n}.md": f"It rains on leaves {n} times." for n in range(9)}}, folder="docs")
    assert ragistry("ingest", docs, "--collection", "notes").code == 0
    ragistry("search", "not kept")
    check_message(ragistry("testset", "make", "set", "--from", "asked").err, "log_questions")
    Path("config").mkdir(exist_ok=True)
    with Path("config", "documents.yaml").open("a", encoding="utf-8") as file:
        file.write("\nlog_questions: true\n")
    for query in ("bitter leaves", "when does it rain", "bitter leaves", "my password is abc123"):
        assert ragistry("search", query).code == 0
    with open_workspace(tmp_path) as opened:
        log = opened.library.questions
        assert log is not None
        hidden = next(opened.store.scan({"source_file": "hidden.md"}))
        log.add("bitter leaves", "page", confirmed=[hidden, replace(hidden, content="no longer there")])
        log.add("of a limited token", "server", limited=True)
        opened.library.search("a program")
    assert texts(log) == ["bitter leaves", "when does it rain", *["bitter leaves"] * 2, "of a limited token"]
    assert set(json.loads(log.path.read_text().splitlines()[0])) == {"text", "time", "door", "limited", "confirmed"}
    assert ragistry("testset", "make", "set", "--from", "asked").code == 0
    rows = [json.loads(line) for line in Path("set", "queries.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == ["bitter leaves", "when does it rain"]
    assert {"notes/tea.md", "notes/hidden.md"} <= set(rows[0]["candidates"])
    assert "notes/rain.md" in rows[1]["candidates"]
    assert "notes/hidden.md" not in rows[1]["candidates"]
    del rows[0]["candidates"]
    rows[0]["sources"] = ["notes/tea.md"]
    Path("set", "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("compare", "--queries", "set/queries.jsonl", "-t", "bm25", "-t", "mine")
    Path("config", "techniques.yaml").write_text(
        "techniques:\n  bm25: {use: bm25}\n  mine: {use: bm25, min_score: 1000}\n", encoding="utf-8"
    )
    done = ragistry(*words, "--json", "report.json", "--html", "report.html", "--markdown", "report.md")
    assert done.code == 0
    reports = [Path(f"report.{suffix}").read_text(encoding="utf-8") for suffix in ("json", "html", "md")]
    assert not any("bitter leaves" in text for text in [*reports, done.out])
    assert '"q1"' in reports[0]
    ragistry("testset", "forget").refused(2)
