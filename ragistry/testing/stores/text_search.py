"""Tests of word search."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry.errors import EmptyQueryError, InvalidFilterError, InvalidLimitError, QueryError, StoreError
from ragistry.testing.stores.chunks import chunk, source
from ragistry.testing.stores.conditions import NO_CONDITIONS
from ragistry.testing.stores.searching import BAD_LIMITS
from ragistry.types import EmbeddedChunk

BLANK_QUERIES: tuple[Any, ...] = ("", "  \n\t", None, 3, b"text")

ODD_QUERIES = (
    "+apple -pear", "apple AND NOT pear OR", "(apple", 'an "apple', "text:apple", "a*", "apple~2", "apple^3",
    "[a TO b]", "{", "\\", "'; DROP TABLE chunks; --", "../apple", "%_", "!?…",
    "🙂", "日本", "apple\x00pear",
    "ﬁ", "\u202eapple", "a" * 100_000, "apple " * 20_000, " ".join(f"word{i}" for i in range(5_000)),
)  # fmt: skip


def _ids(documents: list[Any]) -> list[str]:
    return [document.id for document in documents]


class TextSearchConformance:
    """The ability ``"text"``."""

    def test_an_empty_store_finds_no_words_and_says_why(self, store: Any, caplog: pytest.LogCaptureFixture) -> None:
        assert store.search_text("apple") == []
        assert "empty" in caplog.text

    def test_what_was_added_is_found_at_once(self, store: Any) -> None:
        names = ("apple", "plum", "cherry", "quince", "medlar")
        for i, name in enumerate(names):
            store.add_documents([chunk(f"a fruit called {name}", page=i)], ids=[str(i)])
            assert _ids(store.search_text(name)) == [str(i)]
        [found] = store.search_text("quince")
        assert (found.content, found.metadata) == ("a fruit called quince", {"page": 3})
        assert sorted(_ids(store.search_text("fruit"))) == list("01234")

    def test_what_was_deleted_is_gone_at_once(self, store: Any) -> None:
        store.add_documents([chunk(f"apple {i}", page=i) for i in range(6)], ids=list("abcdef"))
        assert len(store.search_text("apple")) == 6
        store.delete(ids=["a"])
        assert sorted(_ids(store.search_text("apple"))) == list("bcdef")
        store.delete(where={"page": {"$gte": 3}})
        assert sorted(_ids(store.search_text("apple"))) == ["b", "c"]
        store.clear_collection()
        assert store.search_text("apple") == []

    def test_a_replaced_chunk_is_found_by_its_new_words_alone(self, store: Any) -> None:
        store.add_documents([chunk("apple"), chunk("plum")], ids=["a", "b"])
        assert _ids(store.search_text("apple")) == ["a"]
        store.add_documents([chunk("cherry")], ids=["a"])
        assert [_ids(store.search_text(word)) for word in ("apple", "cherry", "plum")] == [[], ["a"], ["b"]]

    def test_a_replaced_or_moved_source_is_found_as_it_is_now(self, store: Any) -> None:
        store.replace_source("c", "f.md", source("c", "f.md", ["apple one", "apple two"]))
        store.replace_source("c", "g.md", source("c", "g.md", ["apple three"]))
        assert len(store.search_text("apple")) == 3
        store.replace_source("c", "f.md", source("c", "f.md", ["cherry"]))
        assert [document.content for document in store.search_text("apple")] == ["apple three"]
        store.move_source("f.md", "c", "d")
        assert [d.content for d in store.search_text("cherry apple", where={"collection": "d"})] == ["cherry"]
        assert store.search_text("cherry", where={"collection": "c"}) == []
        store.replace_source("d", "f.md", [])
        assert store.search_text("cherry") == []

    def test_the_best_come_first_and_say_that_they_were_found_by_bm25(self, store: Any) -> None:
        texts = ["pear pear apple", "pear", "pear with a great many other words that say nothing of fruit", "plum"]
        store.add_documents([chunk(text) for text in texts], ids=list("abcd"))
        found = store.search_text("apple pear")
        assert _ids(found) == ["a", "b", "c"]
        assert found[0].score > found[1].score > found[2].score > 0
        assert [[(s.kind, s.value) for s in d.scores] for d in found] == [[("bm25", d.score)] for d in found]

    def test_a_rare_word_weighs_more_than_a_common_one(self, store: Any) -> None:
        store.add_documents([chunk(f"common {i}") for i in range(20)], ids=[f"c{i}" for i in range(20)])
        store.add_documents([chunk("rare 20")], ids=["z"])
        assert store.search_text("common rare", 1)[0].id == "z"

    def test_every_word_can_be_required_in_any_spelling(self, store: Any) -> None:
        store.add_documents(
            [chunk(text) for text in ("red apple", "apple", "Red e-mail, apples", "plum")], ids=list("abcd")
        )
        assert sorted(_ids(store.search_text("the red apple", every=True))) == ["a", "c"]
        assert _ids(store.search_text("email apple red", every=True)) == ["c"]
        assert store.search_text("red plum", every=True) == []

    def test_unknown_words_are_those_that_no_chunk_of_the_condition_has_in_any_spelling(self, store: Any) -> None:
        assert store.unknown_words("apple") == []  # nothing can be missing in an empty store
        store.replace_source("c", "f.md", source("c", "f.md", ["red apples, by e-mail", "東京 Äpfel"]))
        store.replace_source("d", "g.md", source("d", "g.md", ["plum"]))
        assert store.unknown_words("Is the APPLE or email, 東京, e-mail apfel red?") == []
        assert store.unknown_words("(Quince) of plums, no medlar medlar!") == ["Quince", "medlar"]
        for query in ("plum apple", "apple plum"):  # after a search with the same condition, and before one
            assert store.unknown_words(query, where={"collection": "c"}) == ["plum"]
            assert store.unknown_words(query, where={"collection": "d"}) == ["apple"]
            assert store.unknown_words(query, where={"collection": "e"}) == []
            store.search_text("plum", where={"collection": "d"})
        store.replace_source("d", "h.md", source("d", "h.md", ["cherry"]))
        store.move_source("g.md", "d", "c")
        assert store.unknown_words("plum", where={"collection": "d"}) == ["plum"]
        assert store.unknown_words("plum", where={"collection": "c"}) == []
        store.search_text("plum")
        store.replace_source("c", "g.md", [])
        assert store.unknown_words("plum apple") == ["plum"]
        with pytest.raises(EmptyQueryError):
            store.unknown_words("")

    def test_equal_scores_are_ordered_by_id_whichever_came_first(self, store: Any) -> None:
        ids = [f"{(i * 37) % 50:02}" for i in range(50)]
        for start in range(0, 50, 10):
            store.add_documents([chunk("the same apple")] * 10, ids=ids[start : start + 10])
            store.search_text("apple")
        assert _ids(store.search_text("apple", 7)) == [f"{i:02}" for i in range(7)]
        assert _ids(store.search_text("apple", 50)) == sorted(ids)

    def test_top_k_limits_and_may_exceed_what_is_stored(self, store: Any) -> None:
        store.add_documents([chunk(f"apple {'pear ' * i}") for i in range(20)])
        assert [len(store.search_text("apple", top_k)) for top_k in (1, 5, 20, 1000)] == [1, 5, 20, 20]
        assert store.search_text("apple", 5) == store.search_text("apple", 1000)[:5]

    def test_a_condition_holds_and_the_best_of_those_that_meet_it_are_found(self, store: Any) -> None:
        chunks = [chunk(f"apple {'pear ' * i}", page=i, even=i % 2 == 0, tags=[f"t{i % 3}"]) for i in range(30)]
        store.add_documents(chunks, ids=[f"{i:02}" for i in range(30)])
        everything = _ids(store.search_text("apple", 30))
        assert everything == sorted(everything)
        for where, kept in (
            ({"page": {"$gte": 25}}, range(25, 30)),
            ({"even": True}, range(0, 30, 2)),
            ({"tags": {"$contains": "t1"}}, range(1, 30, 3)),
            ({"$or": [{"page": 29}, {"page": 7}]}, (7, 29)),
            ({"page": {"$ne": 0}}, range(1, 30)),
            ({"page": 99}, ()),
            ({"unknown": 1}, ()),
        ):
            assert _ids(store.search_text("apple", 3, where=where)) == [f"{i:02}" for i in kept][:3]
            assert _ids(store.search_text("apple", 1000, where=where)) == [f"{i:02}" for i in kept]

    def test_words_are_found_whatever_their_case_and_punctuation(self, store: Any) -> None:
        store.add_documents(
            [chunk("The APPLES, (truly)!"), chunk("Ärger im Café"), chunk("東京都に住む")], ids=list("abc")
        )
        assert _ids(store.search_text("apples")) == ["a"]
        assert _ids(store.search_text("Truly?")) == ["a"]
        assert _ids(store.search_text("ÄRGER")) == ["b"]
        assert _ids(store.search_text("東京")) == ["c"]

    def test_emoji_and_symbols_are_words(self, store: Any) -> None:
        store.add_documents(
            [chunk("done \u2705"), chunk("\U0001f350\u2192"), chunk("\u2022 done -> \u2014")], ids=list("abc")
        )
        assert [_ids(store.search_text(query)) for query in ("\u2705\ufe0f", "\u2192", "->")] == [["a"], ["b"], []]

    def test_a_chunk_is_found_by_its_breadcrumb_and_returned_without_it(self, store: Any) -> None:
        chunks = [chunk("apple", breadcrumb="Lost > Zebra"), chunk("pear", title="Zebra"), chunk("plum", breadcrumb="")]
        store.add_documents(chunks, ids=list("abc"))
        found = store.search_text("zebra")
        assert [(document.id, document.content) for document in found] == [("a", "apple")]
        assert _ids(store.search_text("apple lost")) == ["a"]

    def test_the_first_chunk_is_found_by_names_of_its_source(self, store: Any) -> None:
        name = "bills/Invoice_4711-Hagemeyer (2).TXT"
        tags = {"tags": ["Zahnarzt", "2024-05-01", "0123456789"], "author": "Grün", "note": "quince " * 40, "page": 7}
        named = [
            EmbeddedChunk(text, one | tags, vector) for text, one, vector in source("c", name, ["due today", "pay us"])
        ]
        store.replace_source("c", name, named)
        store.replace_source("c", "b.md", source("c", "b.md", ["bills are due", "invoices of the author"]))
        for query in ("hagemeyer", "4711", "invoice 4711", "HAGEMEYERS", "zahnarzt", "grun", "bill hagemeyer"):
            assert [d.content for d in store.search_text(query, 1)] == ["due today"], query
            assert store.unknown_words(query) == []
        for query in ("2024-05-01", "0123456789", "quince", "txt", "tags"):
            assert store.search_text(query) == []
        assert store.search_text("hagemeyer", every=True) == []
        store.move_source(name, "c", "d")
        assert [d.content for d in store.search_text("4711", where={"collection": "d"})] == ["due today"]
        store.replace_source("d", name, [])
        assert store.search_text("hagemeyer zahnarzt") == []

    def test_words_of_a_chunk_are_those_of_its_language(self, store: Any) -> None:
        german, english = "Die Häuser und die Räte", "The houses of a rat"
        store.add_documents(
            [chunk(german, language="de"), chunk(english), chunk(german, language="?")], ids=list("abc")
        )
        assert _ids(store.search_text("Haus")) == ["a"]
        assert _ids(store.search_text("house")) == ["b"]

    def test_any_text_is_a_query_and_none_has_operators(self, store: Any) -> None:
        store.add_documents([chunk("apple"), chunk("pear")], ids=["a", "b"])
        for query in ODD_QUERIES:
            assert set(_ids(store.search_text(query))) <= {"a", "b"}
        assert sorted(_ids(store.search_text("+apple -pear"))) == ["a", "b"]
        assert sorted(_ids(store.search_text("apple AND pear"))) == ["a", "b"]
        assert _ids(store.search_text('"apple')) == ["a"]

    def test_any_text_that_is_stored_can_be_found_by_its_words(self, store: Any) -> None:
        texts = {
            "a": "nul \x00 apple",
            "b": "🙂 pear",
            "c": "x" * 300_000 + " plum",
            "d": "…!?",
            "e": "cherry " * 50_000,
        }
        store.add_documents([chunk(text) for text in texts.values()], ids=list(texts))
        assert [_ids(store.search_text(word)) for word in ("apple", "pear", "plum", "cherry")] == [[i] for i in "abce"]

    def test_an_empty_query_a_bad_limit_and_a_bad_condition_are_refused(self, store: Any) -> None:
        store.add_documents([chunk("apple", page=1)])
        for query in BLANK_QUERIES:
            with pytest.raises(EmptyQueryError):
                store.search_text(query)
        with pytest.raises(QueryError, match="half a character"):
            store.search_text("half \ud800")
        for top_k in BAD_LIMITS:
            with pytest.raises(InvalidLimitError, match="top_k"):
                store.search_text("apple", top_k)
        for where in NO_CONDITIONS:
            with pytest.raises(InvalidFilterError):
                store.search_text("apple", where=where)

    def test_a_closed_store_finds_no_words(self, store: Any) -> None:
        store.add_documents([chunk("apple")])
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.search_text("apple")
