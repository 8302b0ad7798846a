"""``ragistry testset``: a test set from one's own documents, made and compared in a shell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry.evaluation.data.files import read_beir
from ragistry.testing.ollama_server import OllamaServer
from tests.cli.conftest import Done, Run
from tests.conftest import Corpus
from tests.messages import check_message

TEA = "---\ndescription: How to keep sencha from turning sour in water.\n---\n# Tea\n\n" + (
    "Leaves get bitter in boiling water. Eighty degrees are enough for them, and a minute is enough time. " * 3
)

COMPARE = ("compare", "--dataset", "set", "-t", "bm25")


@pytest.fixture
def docs(corpus: Corpus) -> Path:
    return corpus({"tea.md": TEA, "rain.md": "# Rain\n\n## Afternoon clouds\n\nIt falls.\n"}, folder="docs")


@pytest.fixture
def made(ragistry: Run, docs: Path) -> Done:
    return ragistry("testset", "make", "set", "--from", docs)


def add(file: str, text: str) -> None:
    with Path("set", file).open("a", encoding="utf-8") as stream:
        stream.write(text)


def test_set_is_made_from_a_library_or_a_folder_and_compared_with_a_warning(
    made: Done, ragistry: Run, docs: Path, tmp_path: Path
) -> None:
    assert made.code == 0
    check_message(made.out, "1 query", "2 documents")
    warning = next(
        line for line in ragistry(*COMPARE, "-t", "naive").out.splitlines() if line.startswith("! Synthetic")
    )
    check_message(warning)
    assert ragistry("ingest", docs, "--collection", "notes").code == 0
    done = ragistry("testset", "make", "other", "--collection", "notes", "--json")
    assert (done.json["queries"], done.json["kinds"]) == (1, {"description": 1})
    dataset = read_beir(tmp_path / "other")
    assert (dataset.qrels, dataset.synthetic.keys()) == ({"d1": {"notes/tea.md": 1}}, {"d1"})


def test_made_set_is_cut_as_the_library_cuts(docs: Path, corpus: Corpus, ragistry: Run) -> None:
    corpus({"long.md": "# Long\n\n" + "Rivers carry the gravel of the glaciers down. " * 60}, folder="docs")
    ragistry("testset", "make", "set", "--from", docs)
    words = (*COMPARE, "--json", "-")
    ours = ragistry(*words).json
    assert ours["provenance"]["techniques"]["bm25"]["chunking"] == "1000/150 fitted"
    assert ours["indexes"]["1000/150 fitted"]["chunks"] > 3
    assert ragistry(*words, "--chunk-size", "document").json["indexes"]["document"]["chunks"] == 3
    corpus({"documents.yaml": "chunk_size: 300\nchunk_overlap: 20\n"}, folder="config")
    assert ragistry(*words).json["provenance"]["techniques"]["bm25"]["chunking"] == "300/20"


def test_comparison_remarks_on_the_questions(made: Done, ragistry: Run) -> None:
    add("queries.jsonl", '{"_id": "x", "text": "Sencha from turning sour in water, how to keep"}\n')
    words = (*COMPARE, "--json", "-")
    check_message("\n".join(ragistry(*words).json["problems"]), "no judgements", "'x'")
    add("qrels/test.tsv", "x\train.md\t1\n")
    check_message("\n".join(ragistry(*words).json["problems"]), "duplicate: d1 x", "no shared word: x")
    done = ragistry(*words[:-2], "--details")
    assert done.code == 0
    assert "Test set: no shared word: x" in " ".join(done.out.split())


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[OllamaServer]:
    with OllamaServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        yield server


def scripted(question: str, quote: str) -> list[str]:
    """What a model says when it asks, and when it checks; no quotation: the passage does not answer."""
    return [json.dumps({"question": question}), json.dumps({"answered": bool(quote), "quote": quote})]


def test_questions_of_a_model_are_checked_and_those_without_an_answer_left_out(
    model: OllamaServer, ragistry: Run, docs: Path, corpus: Corpus, tmp_path: Path
) -> None:
    kettles = "# Kettles\n\n" + "A kettle of iron keeps the warmth of its water for long. " * 5
    corpus({"kettles.md": kettles}, folder="docs")
    assert ragistry("ingest", docs, "--collection", "notes").code == 0
    question = "How hot should the pot be for sencha?"
    model.answers += scripted("Which metal do smiths prefer?", "smiths prefer copper")
    model.answers += scripted(question, "Eighty degrees are enough")
    done = ragistry("testset", "make", "set", "--model", "llama3.2")
    prompts = [body["messages"][0]["content"] for body in model.asked("/api/chat")]
    assert done.code == 0
    check_message(done.out, "1 query (1 question)", "3 documents")
    check_message(done.err, "1 candidate was not used", "200 characters")
    assert [("kettle of iron" in prompt, "Eighty degrees" in prompt) for prompt in prompts] == [
        (True, False), (True, False), (False, True), (False, True),
    ]  # fmt: skip
    dataset = read_beir(tmp_path / "set")
    assert (dataset.queries, dataset.qrels) == ({"q1": question}, {"q1": {"notes/tea.md": 1}})
    assert dataset.synthetic == {"q1": {"kind": "question", "seed": 0, "model": "llama3.2"}}


def test_model_without_an_answer_makes_no_set(
    model: OllamaServer, ragistry: Run, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("testset", "make", "set", "--from", docs, "--model")
    model.answers += scripted("How hot should the pot be for sencha?", "")
    ragistry(*words, "llama3.2").refused(1, "2 sources", "200 characters (1)")
    ragistry(*words, "lama3").refused(1, "lama3", "llama3.2")
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    ragistry(*words, "llama3.2").refused(1, "ollama serve")
    assert not (tmp_path / "set").exists()
