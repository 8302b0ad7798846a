"""Texts with questions: read, searched and scored with the real model."""

import gzip
import json
import os
from pathlib import Path

import pytest

from ragistry.embedders.minilm import MiniLMEmbedder
from ragistry.errors import DatasetError
from ragistry.evaluation.chunking import Piece
from ragistry.evaluation.chunking_set import ChunkingSet, Question, pieces_of, read_chunking_set, retrieved, scored
from ragistry.library.source import Reading

DATA = Path(os.environ.get("RAGISTRY_DATA", Path(__file__).resolve().parents[2] / "../shared/data")) / "chunking-eval"

CATS = "Cats sleep for most of the day.\r\n\r\nThey hunt mice at night."
SHIPS = "A ship is steered by its rudder.\n\nThe anchor holds it in a storm."


def write(folder, rows, texts=None):
    (folder / "queries.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    for name, text in (texts or {"cats": CATS, "ships": SHIPS}).items():
        (folder / f"{name}.md.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "README.md").write_text("not a text of the set", encoding="utf-8")
    return folder


def row(name, text, corpus, *references):
    return {"_id": name, "text": text, "corpus": corpus, "references": references}


@pytest.fixture
def folder(tmp_path):
    mice, anchor = CATS.index("They"), SHIPS.index("The anchor")
    return write(
        tmp_path,
        [
            row("1", "What do cats catch in the dark?", "cats", [mice, len(CATS)]),
            row("2", "What does the anchor hold in a storm?", "ships", [anchor, len(SHIPS)]),
        ],
    )


def test_the_nearest_chunk_is_found_and_scored(folder):
    asked, embedder = read_chunking_set(folder), MiniLMEmbedder()
    chunks = pieces_of(asked.texts, Reading(40, 0), embedder)
    assert [asked.texts[name][start:end] for name, start, end in chunks][:2] == CATS.split("\r\n\r\n")
    found = retrieved(asked, chunks, embedder, top_k=1)
    assert found == [[chunks[1]], [chunks[3]]]
    assert [tuple(scores) for scores in scored(asked, chunks, found)] == [(1, 1, 1, 1)] * 2


def test_scores_can_be_counted_in_tokens(folder):
    asked = read_chunking_set(folder)
    tokens = {
        name: [(at, at + 1) for at, letter in enumerate(text) if letter == "i"] for name, text in asked.texts.items()
    }
    whole = [Piece(name, 0, len(text)) for name, text in asked.texts.items()]
    scores = scored(asked, whole, [[whole[0]], [whole[1]]], tokens)
    answers = [
        CATS[CATS.index("They") :].count("i") / CATS.count("i"),
        SHIPS.split("\n\n")[1].count("i") / SHIPS.count("i"),
    ]
    assert [one.precision for one in scores] == pytest.approx(answers)


def test_top_k_chunks_are_retrieved_from_all_texts(folder):
    asked, embedder = read_chunking_set(folder), MiniLMEmbedder()
    chunks = pieces_of(asked.texts, Reading(40, 0), embedder)
    assert [sorted(best) for best in retrieved(asked, chunks, embedder, top_k=9)] == [sorted(chunks)] * 2


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (row("1", "?", "dogs", [0, 3]), r"question '1' is on \['dogs'\]"),
        (row("1", "?", "cats", [0, 999]), r"\('cats', 0, 999\) is no range"),
        (row("1", "?", "cats", [5, 5]), "is no range"),
        (row("1", "?", "cats"), "has no answer"),
        ({"_id": "1"}, "is no set of texts and questions"),
        (row("1", "?", "cats", [3]), "is no set of texts and questions"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(tmp_path, bad, said):
    with pytest.raises(DatasetError, match=said):
        read_chunking_set(write(tmp_path, [bad]))


@pytest.mark.parametrize("inside", ["\u2028", "\x85"])
def test_what_ends_a_line_elsewhere_may_stand_in_a_question(tmp_path, inside):
    write(tmp_path, [])
    line = json.dumps(row("1", f"What do{inside}cats hunt?", "cats", [0, 3]), ensure_ascii=False)
    (tmp_path / "queries.jsonl").write_bytes(f"{line}\r\n".encode())
    assert [question.text for question in read_chunking_set(tmp_path).questions] == [f"What do{inside}cats hunt?"]


def test_all_problems_are_told_at_once(tmp_path):
    rows = [row("1", "?", "cats", [0, 999]), row("2", "?", "dogs", [0, 1])]
    with pytest.raises(DatasetError, match=r"(?s)2 problems.*'1'.*'2'"):
        read_chunking_set(write(tmp_path, rows))


def test_a_set_needs_questions_and_a_folder(tmp_path):
    with pytest.raises(DatasetError, match="no questions"):
        ChunkingSet("empty", {"a": "text"}, [])
    with pytest.raises(DatasetError, match="is no set of texts and questions"):
        read_chunking_set(tmp_path / "absent")


def test_a_text_that_is_not_whole_is_refused(folder):
    packed = folder / "cats.md.gz"
    packed.write_bytes(packed.read_bytes()[:-12])
    with pytest.raises(DatasetError, match="is no set of texts and questions"):
        read_chunking_set(folder)


def test_a_set_in_hand_needs_no_files():
    asked = ChunkingSet("ships", {"ships": SHIPS}, [Question("1", "Anchor?", (Piece("ships", 0, 5),))])
    assert asked.questions[0].answer[0].end == 5


@pytest.mark.skipif(not DATA.is_dir(), reason="the texts are not beside the repository")
def test_the_published_set_is_whole():
    asked = read_chunking_set(DATA)
    assert len(asked.questions) == 472
    assert {name: len(text) for name, text in asked.texts.items()} == {
        "chatlogs": 40_000, "finance": 737_905, "pubmed": 500_000, "state_of_the_union": 48_051, "wikitexts": 118_372,
    }  # fmt: skip
