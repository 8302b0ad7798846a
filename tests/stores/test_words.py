"""The index of words: BM25 scores, ties, conditions and languages, through `LocalStore.search_text`."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk
from tests.conftest import full_run

VECTOR = [1.0, 0.0]


def add(store: LocalStore, texts: list[str], start: int = 0, width: int = 4) -> None:
    chunks = [EmbeddedChunk(text, {"page": start + number}, VECTOR) for number, text in enumerate(texts)]
    store.add_documents(chunks, ids=[f"{start + number:0{width}}" for number in range(len(texts))])


def found(store: LocalStore, query: str, top_k: int = 10) -> list[int]:
    return [int(document.id) for document in store.search_text(query, top_k)]


def made(folder: Path, texts: list[str], language: str = "english") -> LocalStore:
    store = LocalStore(folder, language=language)
    add(store, texts)
    return store


@settings(max_examples=1_000 if full_run() else 40, deadline=None)
@given(st.data())
def test_unknown_words_are_those_of_which_a_search_finds_nothing(data: st.DataObject) -> None:
    """After writes of this process and of another one, before and after searches, under each condition."""
    words = [f"w{number}" for number in range(8)]
    texts = st.lists(st.lists(st.sampled_from(words), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=4)
    with (
        TemporaryDirectory() as folder,
        closing(made(Path(folder), ["w0"])) as store,
        closing(LocalStore(folder)) as other,
    ):
        for step in range(1, data.draw(st.integers(2, 8))):
            writer = data.draw(st.sampled_from([store, other]))
            match data.draw(st.sampled_from(["add", "delete", "search", "flush"])):
                case "add":
                    add(writer, data.draw(texts), 4 * step)
                case "delete":
                    writer.delete(where={"page": {"$lt": data.draw(st.integers(0, 4 * step))}})
                case "search":  # as a library does it
                    store.search_text(data.draw(st.sampled_from(words)))
                    store.unknown_words("w1")
                case "flush":
                    writer.flush()
            where = data.draw(st.sampled_from([None, {"page": {"$lt": 2 * step}}, {"page": {"$gte": 2 * step}}]))
            if data.draw(st.booleans()):
                store.search_text("w1", where=where)
            found = {word for word in words if other.search_text(word, 1, where=where)}
            expected = [word for word in words if other.count(where) and word not in found]
            assert store.unknown_words(" ".join(words), where=where) == expected


def test_scores_are_bm25(tmp_path: Path) -> None:
    """Texts under 40 terms, whose length tantivy keeps exactly; in three segments, and after a deletion."""
    dice = random.Random(1)
    texts = [" ".join(dice.choices("abcdefgh", k=dice.randint(1, 38))) for _ in range(60)]
    with closing(LocalStore(tmp_path / "local", language="none")) as store:
        for start in range(0, 60, 20):
            add(store, texts[start : start + 20], start)
            store.flush()
        terms = {number: Counter(text.split()) for number, text in enumerate(texts)}
        average = sum(map(Counter.total, terms.values())) / len(terms)

        def score(document: Counter[str], query: str) -> float:
            total = 0.0
            for term in query.split():
                holding = sum(term in other for other in terms.values())
                rarity = math.log(1 + (len(terms) - holding + 0.5) / (holding + 0.5))
                length = 1.2 * (1 - 0.75 + 0.75 * document.total() / average)
                total += rarity * document[term] * 2.2 / (document[term] + length)
            return total

        for query in ("a", "a b", "c c c a", "a b c d e f g h h"):
            hits = store.search_text(query, 60)
            assert [hit.score for hit in hits] == pytest.approx(
                [score(terms[int(hit.id)], query) for hit in hits], rel=1e-5
            )
            assert len(hits) == sum(any(term in document for term in query.split()) for document in terms.values())
            for where, allowed in (({"page": {"$lt": 3}}, range(3)), ({"page": {"$gte": 5}}, range(5, 60))):
                some = store.search_text(query, 60, where=where)
                assert some == [hit for hit in hits if int(hit.id) in allowed]


@pytest.fixture(scope="module")
def large(module_path: Path) -> Iterator[LocalStore]:
    """Some 2,400 chunks in several segments, some removed."""
    dice = random.Random(5)
    texts = [
        " ".join(f"w{int(dice.paretovariate(0.7)) % 900}" for _ in range(dice.randint(5, 60))) for _ in range(2_400)
    ]
    with closing(LocalStore(module_path / "large")) as store:
        for start in range(0, 2_400, 800):
            add(store, texts[start : start + 800], start)
            store.flush()
        store.delete(where={"page": {"$lt": 200}})
        yield store


@settings(max_examples=100 if full_run() else 10, deadline=None)
@given(st.data())
def test_the_best_of_those_that_meet_a_condition_are_found(large: LocalStore, data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([1, 3, 10, 40, 150, 600, 2_300]))
    start = data.draw(st.sampled_from([0, 190, 1_500]))
    allowed = set(range(start, start + size * data.draw(st.sampled_from([1, 2])), 2))
    query = " ".join(f"w{number}" for number in data.draw(st.lists(st.integers(1, 300), min_size=1, max_size=6)))
    top_k = data.draw(st.sampled_from([1, 10, 100, 1_000]))
    where = {"page": {"$in": sorted(allowed)}}
    parts = ({"page": {"$gte": low, "$lt": low + 1_000}} for low in (0, 1_000, 2_000))
    everything = [hit for part in parts for hit in large.search_text(query, 1_000, where=part)]
    expected = sorted((-hit.score, hit.id) for hit in everything if int(hit.id) in allowed)
    assert [(-hit.score, hit.id) for hit in large.search_text(query, top_k, where=where)] == expected[:top_k]


def test_segments_do_not_pile_up_in_the_folder(tmp_path: Path) -> None:
    with closing(LocalStore(tmp_path / "one")) as one, closing(LocalStore(one.folder)) as other:
        for turn in range(24):
            store = (one, other)[turn % 2]
            add(store, [f"turn{turn}"], turn % 12)
            assert found(store, f"turn{turn}")[0] == turn % 12
        assert len(list((one.folder / "words").glob("*.idx"))) <= 10
        assert one.verify() == []


def test_the_record_of_removed_chunks_does_not_grow(tmp_path: Path) -> None:
    with closing(LocalStore(tmp_path / "local")) as store:
        for _ in range(30):
            add(store, ["some words"] * 20)
            store.flush()
        store.flush()
        with store._database.read() as connection:
            [left] = connection.execute("SELECT count(*) FROM removed").fetchone()
        assert left <= 300


def test_another_language_rebuilds_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "local", ["die Häuser"], "english").close()
    with closing(LocalStore(tmp_path / "local", language="german")) as store:
        assert found(store, "Hauses") == [0]
    monkeypatch.setattr("ragistry.text.analysis.VERSION", 1_000)
    with closing(LocalStore(tmp_path / "local", language="german")) as store:
        assert found(store, "Hauses") == [0]
        assert '"version": 1000' in (store.folder / "words" / "stamp.json").read_text()


def test_a_repeated_word_counts_each_time(tmp_path: Path) -> None:
    with closing(made(tmp_path / "local", ["green tea", "coffee", "tea tea tea"])) as store:
        once, often = store.search_text("tea green", 3), store.search_text("tea green " * 2_000, 3)
        assert [hit.id for hit in once] == [hit.id for hit in often]
        assert [hit.score for hit in often] == pytest.approx([hit.score * 2_000 for hit in once], rel=1e-4)
        assert found(store, " ".join(f"word{number}" for number in range(3_000)) + " coffee") == [1]


def test_a_suffix_does_not_count_against_the_name_of_a_source(tmp_path: Path) -> None:
    texts = {
        "templates/types.md": "All kinds of them.",
        "Invoice_4711-Hagemeyer (2).TXT": "Amount due.",
        "text box.docx": "A frame.",
        "links.md": "See types.md, all types of md, and text-box.docx of docx.",
        "minutes of our general meeting may 2023.docx": "All agreed.",
        "meeting.md": "In the minutes of May 2023, the general meeting of docx.",
        "README.md": "Welcome.",
        "setup.md": "The installation takes a minute.",
        **{f"{number}.md": "Links to md and docx." for number in range(20)},
    }
    first = {
        "types.md": "templates/types.md", "templates/types.md": "templates/types.md", "TYPES.MD": "templates/types.md",
        "Invoice_4711-Hagemeyer (2).TXT": "Invoice_4711-Hagemeyer (2).TXT", "text-box.docx": "text box.docx",
        "minutes of our general meeting may 2023.docx": "minutes of our general meeting may 2023.docx",
    }  # fmt: skip
    names = [{"source_file": name, "chunk_index": 0} for name in texts]
    with closing(LocalStore(tmp_path)) as store:
        store.add_documents(
            [EmbeddedChunk(*one, VECTOR) for one in zip(texts.values(), names, strict=True)], ids=[*texts]
        )
        assert {query: store.search_text(query, 1)[0].metadata["source_file"] for query in first} == first
        both = [one.metadata["source_file"] for one in store.search_text("readme.md installation", 2)]
        assert sorted(both) == ["README.md", "setup.md"]
