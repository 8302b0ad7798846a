"""``ragistry testset``: a test set from one's own documents, made and looked over in a shell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry.evaluation.data.beir import read_beir
from ragistry.testing.ollama_server import OllamaServer
from tests.cli.conftest import Done

Run = Callable[..., Done]

TEA = "---\ndescription: How to keep sencha from turning sour in water.\n---\n# Tea\n\n" + (
    "Leaves get bitter in boiling water. Eighty degrees are enough for them, and a minute is enough time. " * 3
)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "tea.md").write_text(TEA, encoding="utf-8")
    (folder / "rain.md").write_text("# Rain\n\n## Afternoon clouds\n\nIt falls.\n", encoding="utf-8")
    return folder


def test_a_set_is_made_from_a_library_and_found_sound(ragistry: Run, docs: Path, tmp_path: Path) -> None:
    assert ragistry("ingest", docs, "--collection", "notes").code == 0
    done = ragistry("testset", "make", "set", "--collection", "notes", "--json")
    assert done.code == 0, done.err
    assert done.json["queries"] == 1
    assert done.json["kinds"] == {"description": 1}
    dataset = read_beir(tmp_path / "set")
    assert dataset.qrels == {"d1": {"notes/tea.md": 1}}
    row = json.loads((tmp_path / "set" / "queries.jsonl").read_text(encoding="utf-8"))
    assert row["metadata"]["synthetic"] is True
    checked = ragistry("testset", "check", "set")
    assert (checked.code, checked.out) == (0, "1 judged query, 0 findings\n")


def test_a_set_is_made_from_a_folder_and_told_in_words(ragistry: Run, docs: Path) -> None:
    done = ragistry("testset", "make", "set", "--from", docs, "--kind", "description", "--limit", "5")
    assert done.code == 0
    assert done.out == "set: 1 query (1 description) over 2 documents, marked as synthetic\n"


def test_a_comparison_on_a_made_set_says_so_before_any_figure(ragistry: Run, docs: Path) -> None:
    ragistry("testset", "make", "set", "--from", docs)
    done = ragistry("compare", "--dataset", "set", "-t", "bm25", "-t", "naive")
    assert done.code == 0, done.err
    said = "! Synthetic test set: no person asked these queries. A program made them from the documents: "
    assert 0 < done.out.index(said) < done.out.index("favour techniques that match words") < done.out.index("vs best")


def test_a_made_set_is_cut_as_the_library_cuts(ragistry: Run, docs: Path, tmp_path: Path) -> None:
    (docs / "long.md").write_text(
        "# Long\n\n" + "Rivers carry the gravel of the glaciers down. " * 60, encoding="utf-8"
    )
    ragistry("testset", "make", "set", "--from", docs)
    words = ("compare", "--dataset", "set", "-t", "bm25", "--json", "-")
    ours = ragistry(*words).json
    assert ours["provenance"]["techniques"]["bm25"]["chunking"] == "1000/150 fitted"
    assert ours["indexes"]["1000/150 fitted"]["chunks"] > 3
    assert ragistry(*words, "--chunk-size", "document").json["indexes"]["document"]["chunks"] == 3
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "documents.yaml").write_text("chunk_size: 300\nchunk_overlap: 20\n", encoding="utf-8")
    assert ragistry(*words).json["provenance"]["techniques"]["bm25"]["chunking"] == "300/20"


def test_what_is_wrong_with_a_set_is_listed(ragistry: Run, docs: Path, tmp_path: Path) -> None:
    ragistry("testset", "make", "set", "--from", docs)
    with (tmp_path / "set" / "queries.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"_id": "x", "text": "Sencha from turning sour in water, how to keep"}\n')
    with (tmp_path / "set" / "qrels" / "test.tsv").open("a", encoding="utf-8") as stream:
        stream.write("x\train.md\t1\n")
    done = ragistry("testset", "check", "set", "--json")
    assert done.code == 1
    assert [finding["kind"] for finding in done.json["findings"]] == ["near-duplicate"]
    assert [(remark["kind"], remark["queries"]) for remark in done.json["remarks"]] == [("no shared word", ["x"])]
    told = ragistry("testset", "check", "set")
    assert told.code == 1
    assert told.out.endswith("2 judged queries, 1 finding, 1 remark\n")


def test_a_query_that_no_split_judges_is_a_finding(ragistry: Run, docs: Path, tmp_path: Path) -> None:
    ragistry("testset", "make", "set", "--from", docs)
    with (tmp_path / "set" / "queries.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"_id": "x", "text": "Where does rain fall"}\n')
    done = ragistry("testset", "check", "set")
    assert done.code == 1
    assert "not judged: x: 'Where does rain fall' has no judgement; say in the qrels" in done.out
    (tmp_path / "set" / "qrels" / "train.tsv").write_text("x\train.md\t1\n", encoding="utf-8")
    assert ragistry("testset", "check", "set").code == 0


def test_a_remark_leaves_the_exit_code(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "dogs").mkdir()
    (tmp_path / "dogs" / "a.md").write_text("# Canine obedience\n\nTeach a puppy to sit.\n", encoding="utf-8")
    assert ragistry("testset", "make", "set", "--from", "dogs").code == 0
    done = ragistry("testset", "check", "set")
    assert (done.code, done.out.splitlines()) == (0, [
        "no shared word: t1: 'Canine obedience' shares no word with what it should find",
        "1 judged query, 0 findings, 1 remark",
    ])  # fmt: skip


def test_a_model_asks_and_its_questions_are_checked(
    ragistry: Run, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, quote = "How hot should the kettle be for sencha?", "Eighty degrees are enough"
    with OllamaServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        server.answers.append(json.dumps({"question": question}))
        server.answers.append(json.dumps({"answered": True, "quote": quote}))
        done = ragistry("testset", "make", "set", "--from", docs, "--model", "llama3.2", "--json")
        assert done.code == 0, done.err
        assert done.json["kinds"] == {"question": 1}
        server.answers.append(json.dumps({"answered": False}))
        judged = ragistry("testset", "check", "set", "--model", "llama3.2", "--json")
        assert judged.code == 1
        assert judged.json["findings"][0]["queries"] == ["q1"]
    assert read_beir(tmp_path / "set").queries == {"q1": question}


def scripted(question: str, quote: str) -> list[str]:
    """What a model says when it asks, and when it checks; no quotation: the passage does not answer."""
    return [json.dumps({"question": question}), json.dumps({"answered": bool(quote), "quote": quote})]


def test_a_question_that_its_chunk_does_not_answer_is_left_out_and_the_others_are_compared(
    ragistry: Run, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kettles = "# Kettles\n\n" + "A kettle of iron keeps the warmth of its water for long. " * 5
    (docs / "kettles.md").write_text(kettles, encoding="utf-8")
    assert ragistry("ingest", docs, "--collection", "notes").code == 0
    with OllamaServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        server.answers += scripted("Which metal do smiths prefer?", "smiths prefer copper")
        server.answers += scripted("How hot should the pot be for sencha?", "Eighty degrees are enough")
        done = ragistry("testset", "make", "set", "--model", "llama3.2")
        prompts = [body["messages"][0]["content"] for body in server.asked("/api/chat")]
    assert (done.code, done.out) == (0, "set: 1 query (1 question) over 3 documents, marked as synthetic\n")
    assert "note: 1 query left out not answered by the chunk\n" in done.err
    assert "note: 1 query left out on chunks below 200 characters, too short to ask about\n" in done.err
    assert [("kettle of iron" in prompt, "Eighty degrees" in prompt) for prompt in prompts] == [
        (True, False), (True, False), (False, True), (False, True),
    ]  # fmt: skip
    dataset = read_beir(tmp_path / "set")
    assert dataset.qrels == {"q1": {"notes/tea.md": 1}}
    assert dataset.synthetic == {"q1": {"kind": "question", "seed": 0, "model": "llama3.2"}}
    compared = ragistry("compare", "--dataset", "set", "-t", "bm25", "-t", "naive")
    assert "A program made them from the documents: 1 question; model llama3.2, seed 0." in compared.out


def test_where_the_model_answers_nothing_it_says_why_and_writes_nothing(
    ragistry: Run, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("testset", "make", "set", "--from", docs, "--model")
    with OllamaServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        server.answers += scripted("How hot should the pot be for sencha?", "")
        rejected, unknown = ragistry(*words, "llama3.2"), ragistry(*words, "lama3")
    down = ragistry(*words, "llama3.2")
    assert "no query can be made from 2 sources: 1 on chunks below 200 characters" in rejected.err
    assert "1 not answered by the chunk; try other kinds\n" in rejected.err
    assert "llama3.2" in unknown.err
    assert "ollama serve" in down.err
    assert [done.code for done in (rejected, unknown, down)] == [1, 1, 1]
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (
            ("make", "set", "--kind", "titel"),
            "unknown kind 'titel'; there are description, title, heading, question",
            2,
        ),
        (("make", "set", "--kind", "question"), "add --model NAME", 2),
        (("make", "docs"), "is not empty; give a new folder", 1),
        (("make", "set"), "run `ragistry ingest` first", 1),
        (("make", "set", "--from", "nowhere"), "nowhere", 1),
        (("check", "docs"), "has no corpus.jsonl", 1),
        (("make",), "testset make --help", 2),
        (("check",), "testset check --help", 2),
    ],
)
@pytest.mark.usefixtures("configured")
def test_what_cannot_be_done_is_said_in_a_line(
    ragistry: Run, docs: Path, words: tuple[str, ...], said: str, code: int
) -> None:
    assert docs.is_dir()
    done = ragistry("testset", *words)
    assert done.code == code
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1
