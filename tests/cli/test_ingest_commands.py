"""``ragistry ingest``: which collection, what a prune deletes, and what stays of a collection that was made in vain."""

from __future__ import annotations

import io
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import TEA, Run
from tests.conftest import Corpus
from tests.messages import check_message

PRUNE = ("--prune", "--yes", "--json")
TWO = {"one.txt": "Text of one.", "two.txt": "Text of two."}


@pytest.fixture
def tea(corpus: Corpus) -> Path:
    return corpus({"tea.txt": TEA}, folder=".") / "tea.txt"


def names(ragistry: Run, *words: str) -> list[str]:
    return [row["name"] for row in ragistry("collections", "list", "--json", *words).json["collections"]]


def sources(ragistry: Run) -> list[str]:
    return [source["source_file"] for source in ragistry("sources", "list", "--json").json["sources"]]


def ingested(ragistry: Run, *words: object) -> Any:
    """The report of an ingest into the collection ``notes``, which is made."""
    done = ragistry("ingest", *words, "--collection", "notes", "--json")
    assert done.code == 0, done
    return done.json


def test_collection_made_for_a_file_that_cannot_be_read_or_embedded_does_not_stay(
    ragistry: Run, corpus: Corpus, tea: Path
) -> None:
    corpus({"documents.yaml": "embed_model: tei\nembed_url: http://127.0.0.1:9\n"}, folder="down/config")
    tea.with_name("broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    for words in ([], ["--create", "Papers"]):
        ragistry("ingest", "missing.pdf", "--collection", "papers", *words).refused(1, "'missing.pdf'")
        done = ragistry("ingest", "broken.pdf", "--collection", "papers", *words, "--json")
        assert (done.code, len(done.json["failed"])) == (1, 1)
        ragistry("--workspace", "down", "ingest", tea, "--collection", "papers", *words).refused(1, "127.0.0.1:9")
        assert names(ragistry) == names(ragistry, "-w", "down") == []
    done = ragistry("ingest", "broken.pdf", tea, "--collection", "papers", "--create", "Papers")
    assert (done.code, names(ragistry)) == (1, ["papers"])
    assert ragistry("ingest", "broken.pdf", "--collection", "papers").code == 1
    assert names(ragistry) == ["papers"], "one that has something stays"


def test_terminated_ingest_leaves_no_collection(ragistry: Run, corpus: Corpus, tmp_path: Path, tea: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        documents = corpus({"documents.yaml": f"embed_model: tei\nembed_url: {url}\n"}, folder="config")
        words = ["ingest", str(tea), "--collection", "papers", "--create", "Papers"]
        with subprocess.Popen([sys.executable, "-m", "ragistry", *words], cwd=tmp_path) as process:
            waiting, _ = silent.accept()  # for the model's answer, which never comes
            with waiting:
                assert "papers" in (documents / "documents.yaml").read_text(encoding="utf-8")
                process.terminate()
                assert process.wait(60) == 128 + signal.SIGTERM
    assert names(ragistry) == []


def test_only_collection_is_the_default_and_several_must_be_named(ragistry: Run, tea: Path) -> None:
    ragistry("ingest", tea).refused(1, "--collection NAME")
    ragistry("collections", "add", "notes")
    assert ragistry("ingest", tea, "--json").json["collection"] == "notes"
    deleted = ragistry("ingest", "--delete", "tea.txt", "--collection", "notes", "--yes", "--json").json
    assert deleted == {"source": "tea.txt", "collection": "notes", "chunks": 1}


def test_unknown_collection_is_made_after_a_question(ragistry: Run, tea: Path, answer: Callable[[str], None]) -> None:
    ingested(ragistry, tea)
    for typed, name, code, made in (
        ("n\n", "papers", 1, []),
        ("", "papers", 1, []),  # the end of the input
        ("\n", "papers", 0, ["papers"]),
        ("Y\n", "Über Tee", 0, ["uber-tee"]),
        ("y\n", "Notse", 0, []),  # 'notes' was meant
        ("\nn\n", "nots", 1, []),
        ("\n\n", "notes2", 0, ["notes2"]),
        ("n\ny\n", "paper", 0, ["paper"]),
    ):
        before = names(ragistry)
        answer(typed)
        done = ragistry("ingest", tea, "-c", name)
        assert (done.code, names(ragistry)[len(before) :]) == (code, made), done
        if code == 0:
            assert done.out.startswith(f"{(made or ['notes'])[0]}: ")
    answer("y\n")
    done = ragistry("ingest", tea, "-c", "nots")
    check_message(done.err, "Did you mean 'notes'? [y/N]")
    ragistry("ingest", "missing.pdf", "-c", "nots").refused(1, "'missing.pdf'")  # nothing is asked


@pytest.mark.parametrize(
    ("name", "words", "command"),
    [
        ("b", [], "ragistry ingest tea.txt -c b --create ''"),
        ("nots", [], "ragistry ingest tea.txt -c nots --create ''"),
        ("My Papers", ["--replace"], "ragistry ingest tea.txt -c 'My Papers' --replace --create ''"),
        ("b", ["--", "./tea.txt"], "ragistry ingest tea.txt -c b --create '' -- ./tea.txt"),
        ("b", ["-", "--name", "more.md"], "ragistry ingest tea.txt -c b - --name more.md --create ''"),
    ],
)
def test_refusal_in_a_pipe_has_the_command_that_works(
    ragistry: Run, tea: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: list[str], command: str
) -> None:
    ingested(ragistry, tea)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"More text.")))
    done = ragistry("ingest", tea.name, "-c", name, *words)
    done.refused(1, f"run: {command}")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"More text.")))
    assert ragistry(*shlex.split(command)[1:]).code == 0
    assert len(names(ragistry)) == 2


def test_prune_asks_and_deletes_vanished_files(ragistry: Run, corpus: Corpus, answer: Callable[[str], None]) -> None:
    folder = corpus(TWO)
    ingested(ragistry, folder)
    (folder / "one.txt").unlink()
    (folder / "bad.pdf").write_bytes(b"no PDF")
    done = ragistry("ingest", folder, "--prune")
    assert (done.code, sources(ragistry)) == (1, ["one.txt", "two.txt"])
    check_message(done.err, "bad.pdf", "one.txt", "--yes")
    (folder / "bad.pdf").unlink()
    check_message(ragistry("ingest", folder).err, "one.txt", "--prune")
    for typed, left in (("\n", ["one.txt", "two.txt"]), ("y\n", ["two.txt"])):
        answer(typed)
        done = ragistry("ingest", folder, "--prune")
        check_message(done.err, "1 source", "'notes'", "(one.txt)", "[y/N]")
        assert (done.code, sources(ragistry)) == (int(len(left) == 2), left)
    assert ragistry("ingest", folder, "--prune").code == 0, "nothing is asked where nothing is gone"
    (folder / "two.txt").unlink()
    corpus({"three.txt": "Text of three."})
    pruned = ragistry("ingest", folder, *PRUNE).json
    assert (pruned["deleted"], pruned["vanished"]) == (["two.txt"], ["two.txt"])


def test_emptied_folder_is_pruned_with_yes_only(ragistry: Run, corpus: Corpus, tea: Path) -> None:
    folder = corpus({f"{number}.txt": f"Otter {number}." for number in range(7)}, folder="share")
    ingested(ragistry, "share")
    folder.rename(folder.with_name("unmounted"))
    ragistry("ingest", "share").refused(1, "7 sources", "'0.txt', '1.txt', '2.txt', …")
    folder.mkdir()
    done = ragistry("ingest", "share", tea, "--prune", "--json")
    assert (done.code, done.json["deleted"], done.json["added"]) == (1, [], ["tea.txt"])
    check_message(done.err, "7 sources", "'notes'", "0.txt, 1.txt, 2.txt, 3.txt, 4.txt, …", "--yes")
    assert "7 deleted" in ragistry("ingest", "share", "--prune", "--yes").out
    assert sources(ragistry) == ["tea.txt"]


def test_replace_lets_a_file_take_the_place_of_one_that_is_gone(ragistry: Run, corpus: Corpus, tmp_path: Path) -> None:
    corpus({"old/tea.txt": "The old tea.", "new/tea.txt": "The new tea."}, folder=".")
    ingested(ragistry, "old/tea.txt")
    (tmp_path / "old").rename(tmp_path / "away")
    done = ragistry("ingest", "new/tea.txt")
    assert done.code == 1
    check_message(done.err, "`--replace`", "new/tea.txt")
    assert ragistry("ingest", "new/tea.txt", "--replace", "--json").json["updated"] == ["tea.txt"]


def test_exit_code_says_whether_everything_was_ingested(ragistry: Run, corpus: Corpus) -> None:
    folder = corpus(dict.fromkeys(("tea.txt", "a.pages", "b.pages", "c.numbers", "d.png"), TEA))
    done = ragistry("ingest", folder, "--collection", "notes")
    assert done.code == 3
    check_message(done.err, "3 of its files", "(2 .pages, 1 .numbers)")
    report = ragistry("ingest", folder, "--json").json
    [warning] = report["warnings"]
    assert ("(2 .pages, 1 .numbers)" in warning, report["unread"]) == (True, {".pages": 2, ".numbers": 1})
    (folder / "bad.pdf").write_bytes(b"no PDF")
    assert ragistry("ingest", folder).code == 1


def test_links_out_of_a_folder_need_an_option(ragistry: Run, corpus: Corpus) -> None:
    folder, large = corpus({"rain.txt": "Rain."}, folder="in"), corpus({"tea.txt": TEA}, folder="large")
    (folder / "link").symlink_to(large)
    done = ragistry("ingest", "in", "--collection", "notes")
    assert (done.code, "1 added" in done.out) == (0, True)
    check_message(done.err, "'in'", "1 of its links", "`ragistry ingest --follow-links`")
    assert ragistry("ingest", "in", "--follow-links", "--json").json["added"] == ["link/tea.txt"]
