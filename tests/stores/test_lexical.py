"""The lexical index: what it finds, under which conditions, in which order, and across threads and processes."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import ConfigError, StoreCorruptError, StoreError
from ragistry.stores.lexical import LexicalIndex
from ragistry.stores.lexical_query import Keys, Scores

HOSTILE = (
    "", " ", "AND OR NOT", "+tea -cup", "terms:tea", "key:1", "(tea", '"tea', "tea~2", "te*", "[a TO b]", "\\", "\x00",
    "\ud800", "🙂", "'; DROP TABLE chunks; --", "tea^" + "9" * 400, "x" * 20_000,
)  # fmt: skip


def made(folder: Path, texts: dict[int, str] | list[str], language: str = "english") -> LexicalIndex:
    rows = texts.items() if isinstance(texts, dict) else enumerate(texts)
    LexicalIndex.build(folder, rows, language=language)
    return LexicalIndex(folder, language=language)


def found(index: LexicalIndex, query: str, top_k: int = 10) -> list[int]:
    return [int(key) for key in index.search(query, top_k)[0]]


def prose(count: int, dice: random.Random) -> list[str]:
    return [
        " ".join(f"w{int(dice.paretovariate(0.7)) % 900}" for _ in range(dice.randint(5, 60))) for _ in range(count)
    ]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[LexicalIndex]:
    opened = made(tmp_path / "lexical", ["green tea", "black tea in a cup", "coffee", "tea tea tea"])
    yield opened
    opened.close()


def test_finds_by_stem_best_first(index: LexicalIndex) -> None:
    keys, scores = index.search("TEAS", 10)
    assert keys.tolist() == [3, 0, 1]
    assert keys.dtype == np.int64
    assert scores.dtype == np.float32
    assert scores[0] > scores[1] > scores[2] > 0
    assert found(index, "coffee cup") == [2, 1]
    assert found(index, "milk") == []


def test_scores_are_bm25(tmp_path: Path) -> None:
    """Documents under 40 terms, whose length tantivy keeps exactly; in three segments."""
    dice = random.Random(1)
    texts = [" ".join(dice.choices("abcdefgh", k=dice.randint(1, 38))) for _ in range(60)]
    index = made(tmp_path / "lexical", texts[:20], "none")
    index.apply(list(enumerate(texts))[20:40], [])
    index.apply(list(enumerate(texts))[40:], [])
    terms = [Counter(text.split()) for text in texts]
    average = sum(map(len, map(str.split, texts))) / len(texts)

    def score(document: Counter[str], query: str) -> float:
        total = 0.0
        for term in query.split():
            holding = sum(term in other for other in terms)
            rarity = math.log(1 + (len(terms) - holding + 0.5) / (holding + 0.5))
            length = 1.2 * (1 - 0.75 + 0.75 * document.total() / average)
            total += rarity * document[term] * 2.2 / (document[term] + length)
        return total

    for query in ("a", "a b", "c c c a", "a b c d e f g h h"):
        keys, scores = index.search(query, 60)
        assert scores == pytest.approx([score(terms[key], query) for key in keys], rel=1e-5)
        assert len(keys) == sum(any(term in document for term in query.split()) for document in terms)


def test_equal_scores_come_by_key_and_none_of_them_is_left_out(tmp_path: Path) -> None:
    index = made(tmp_path / "lexical", dict.fromkeys(range(90, 30, -2), "the same words"))
    index.apply([(key, "the same words") for key in range(31, 91, 2)], [])
    index.apply([(1000, "words words")], [])
    assert found(index, "words", 5) == [1000, *range(31, 91)]
    assert found(index, "words", 1) == [1000]
    keys, _ = index.search("words", 3, allowed=np.array([40, 41, 42, 43, 1000]))
    assert keys.tolist() == [1000, 40, 41, 42, 43]


def test_applying_adds_replaces_and_deletes(index: LexicalIndex) -> None:
    index.apply([(0, "oolong"), (-7, "mate"), (2**40, "mate")], [1, 999])
    assert found(index, "green tea") == [3]
    assert found(index, "oolong") == [0]
    assert found(index, "mate") == [-7, 2**40]
    assert index.keys().tolist() == [-7, 0, 2, 3, 2**40]
    assert index.count() == 5
    index.apply([(3, "first"), (3, "second"), (2, "kept")], [2, 3])
    assert [found(index, word) for word in ("first", "second", "kept", "coffee")] == [[], [3], [2], []]


def test_applying_twice_is_applying_once(index: LexicalIndex) -> None:
    for _ in range(2):
        index.apply([(0, "oolong"), (10, "green mate")], [1])
        assert index.keys().tolist() == [0, 2, 3, 10]
        assert found(index, "oolong green") == [0, 10]


def test_applying_nothing_writes_nothing(index: LexicalIndex, tmp_path: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "lexical").iterdir()}
    index.apply([], [])
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "lexical").iterdir()} == before


def test_what_another_process_applies_is_found_at_once(index: LexicalIndex, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from ragistry.stores.lexical import LexicalIndex\n"
        "index = LexicalIndex(Path(sys.argv[1])); index.apply([(50, 'oolong'), (2, 'mocha')], [0])"
    )
    for _ in range(2):  # by turns, as two command lines do
        subprocess.run([sys.executable, "-c", script, str(tmp_path / "lexical")], check=True, timeout=60)
        assert [found(index, word) for word in ("oolong", "mocha", "coffee", "green")] == [[50], [2], [], []]
        index.apply([(50, "changed"), (0, "green")], [])
        assert [found(index, word) for word in ("oolong", "changed", "green")] == [[], [50], [0]]
    assert index.check(index.count()) == ""


def test_no_file_is_left_behind_by_writers_that_take_turns(index: LexicalIndex, tmp_path: Path) -> None:
    other = LexicalIndex(tmp_path / "lexical")
    for turn in range(12):
        (index, other)[turn % 2].apply([(turn, f"turn{turn}")], [turn - 1])
    segments = {path.stem.partition(".")[0] for path in (tmp_path / "lexical").glob("*.idx")}
    assert 1 <= len(segments) <= 8
    assert {path.name.partition(".")[0] for path in (tmp_path / "lexical").glob("?" * 32 + ".*")} == segments


@pytest.mark.parametrize("query", HOSTILE)
def test_any_text_is_a_query(index: LexicalIndex, query: str) -> None:
    keys, scores = index.search(query, 3)
    assert len(keys) == len(scores) <= 4
    assert set(keys.tolist()) <= {0, 1, 2, 3}


def test_a_long_query_counts_each_word_as_often_as_it_comes(index: LexicalIndex) -> None:
    once, often = index.search("tea green", 3), index.search("tea green " * 2000, 3)
    assert often[0].tolist() == once[0].tolist()
    assert often[1] == pytest.approx(once[1] * 2000, rel=1e-4)
    assert found(index, " ".join(f"word{number}" for number in range(3000)) + " coffee") == [2]


def test_any_text_can_be_indexed(tmp_path: Path) -> None:
    index = made(
        tmp_path / "lexical", ["nul \x00 apple", "half \ud800 pear", "", "🙂", "plum " * 200_000, "x" * 1_000_000]
    )
    assert [found(index, word) for word in ("apple", "pear", "plum", "x" * 1_000_000)] == [[0], [1], [4], [5]]
    assert index.count() == 6


def test_each_language_has_its_own_analysis(tmp_path: Path) -> None:
    assert found(made(tmp_path / "de", ["die Häuser", "ein Baum"], "german"), "Hauses") == [0]
    assert found(made(tmp_path / "zh", ["语言模型很大", "猫"], "zh"), "模型") == [0]
    index = made(tmp_path / "en", ["order LNT-1042 came", "LNT 9, then 1042", "LNT-1043"])
    assert found(index, "LNT-1042")[0] == 0
    assert sorted(found(index, "1042")) == [0, 1]


def test_an_empty_index_finds_nothing(tmp_path: Path) -> None:
    index = made(tmp_path / "lexical", [])
    assert found(index, "tea") == []
    assert index.search("tea", 3, allowed=np.array([1, 2]))[0].tolist() == []
    assert index.keys().tolist() == []
    assert index.check(0) == ""
    index.apply([(5, "tea")], [])
    assert found(index, "tea") == [5]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> LexicalIndex:
    folder = tmp_path_factory.mktemp("large") / "lexical"
    texts = prose(3000, random.Random(5))
    index = made(folder, {key * 3 - 900: text for key, text in enumerate(texts[:2400])})
    index.apply([(key * 3 - 900, text) for key, text in enumerate(texts)][2400:], list(range(0, 600, 6)))
    return index


def best_of(everything: tuple[Keys, Scores], allowed: Keys, top_k: int) -> tuple[Keys, Scores]:
    keys, scores = (column[np.isin(everything[0], allowed)] for column in everything)
    last = scores[min(top_k, len(scores)) - 1] if len(scores) else 0
    return keys[scores >= last], scores[scores >= last]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_best_of_the_allowed_are_found(large: LexicalIndex, data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([0, 1, 3, 10, 40, 150, 600, 2900]))
    dice = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    start = data.draw(st.sampled_from([-900, 0, 4000, 8000]))
    span = data.draw(st.sampled_from([max(2 * size, 5), 9000]))
    allowed = np.unique(dice.integers(start, start + span, size))
    if data.draw(st.booleans()):  # as the sources of a small collection lie
        allowed = np.unique(np.add.outer(allowed[: data.draw(st.integers(0, 9))], np.arange(60)))
    query = " ".join(f"w{number}" for number in data.draw(st.lists(st.integers(1, 300), min_size=1, max_size=6)))
    top_k = data.draw(st.sampled_from([1, 10, 100, 1000]))
    keys, scores = large.search(query, top_k, allowed=allowed)
    expected = best_of(large.search(query, 3000), allowed, top_k)
    assert keys.tolist() == expected[0].tolist()
    assert scores.tolist() == expected[1].tolist()


def test_threads_search_while_another_writes(index: LexicalIndex) -> None:
    with ThreadPoolExecutor(5) as pool:
        writing = pool.submit(lambda: [index.apply([(number, "mate")], []) for number in range(100, 108)])
        answers = list(pool.map(lambda _: (found(index, "tea"), found(index, "mate")), range(300)))
        writing.result()
    assert all(tea == [3, 0, 1] for tea, _ in answers)
    assert all(mate == list(range(100, 100 + len(mate))) for _, mate in answers)
    assert found(index, "mate", 20) == list(range(100, 108))


def test_a_folder_put_in_its_place_is_read_at_once_and_after_reopening(index: LexicalIndex, tmp_path: Path) -> None:
    folder = tmp_path / "lexical"
    LexicalIndex.build(tmp_path / "new", [(7, "oolong")])
    folder.rename(tmp_path / "old")
    (tmp_path / "new").rename(folder)
    assert (found(index, "tea"), found(index, "oolong")) == ([], [7])
    index.close()
    reopened = LexicalIndex(folder)
    reopened.apply([(8, "oolong")], [])
    assert found(reopened, "oolong") == [7, 8]
    assert found(LexicalIndex(tmp_path / "old"), "tea") == [3, 0, 1]


def test_building_needs_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="is not empty; remove what it holds"):
        LexicalIndex.build(tmp_path, [(1, "tea")])
    assert (tmp_path / "file").read_text() == "mine"


def test_an_unfinished_build_is_no_index(tmp_path: Path) -> None:
    def rows() -> Iterator[tuple[int, str]]:
        yield 1, "tea"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LexicalIndex.build(tmp_path / "lexical", rows())
    with pytest.raises(StoreCorruptError, match="there is no lexical index at .*ragistry repair"):
        LexicalIndex(tmp_path / "lexical")


def test_another_language_or_analysis_has_to_be_built_again(
    index: LexicalIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreCorruptError, match="'english'.*not.*'german'.*ragistry repair"):
        LexicalIndex(tmp_path / "lexical", language="de")
    with pytest.raises(ConfigError, match="'klingon'"):
        LexicalIndex(tmp_path / "lexical", language="klingon")
    monkeypatch.setattr("ragistry.utils.analysis.VERSION", 1_000)
    with pytest.raises(StoreCorruptError, match="was made with the analysis"):
        LexicalIndex(tmp_path / "lexical")
    assert "was made with the analysis" in index.check()


def test_a_closed_index_says_so(index: LexicalIndex) -> None:
    index.close()
    index.close()
    for use in (lambda: index.search("tea", 1), lambda: index.apply([(1, "a")], []), index.keys, index.count):
        with pytest.raises(StoreError, match="is closed; open the store again"):
            use()
