"""Queries with phrases in double quotes, on every store and through every kind of technique."""

from __future__ import annotations

import pytest

from ragistry import RemoteWorkspace, Workspace
from ragistry.errors import QueryError
from tests.conftest import Corpus, everywhere
from tests.messages import check_message, refused

FILES = {
    "a.txt": "The red valve must be closed before the pump starts.",
    "b.txt": "The valve is red. It must be opened, never closed.",
    "c.txt": "At night a RED-VALVE must be closed by the pump crew.",
    "d.txt": "Gardens and water in spring.",
}
ONLY = '"Red valves must be closed"'


@pytest.fixture
def filled(workspace: Workspace | RemoteWorkspace, corpus: Corpus) -> Workspace | RemoteWorkspace:
    assert not workspace.library.ingest_paths([corpus(FILES)], "notes").failed
    return workspace


def names(
    workspace: Workspace | RemoteWorkspace, query: str, technique: str | None = None, **limits: object
) -> list[str]:
    result = workspace.search(query, technique, **limits)  # type: ignore[arg-type]
    scores = [document.score for document in result.documents]
    assert scores == sorted(scores, reverse=True)
    return [str(document.metadata["source_file"]) for document in result.documents]


@everywhere
def test_phrases_are_searched_on_every_store(filled: Workspace | RemoteWorkspace) -> None:
    assert sorted(names(filled, ONLY)) == ["a.txt", "c.txt"]
    assert len(names(filled, ONLY, top_k=1)) == 1
    assert names(filled, ONLY, where={"source_file": {"$ne": "a.txt"}}) == ["c.txt"]
    assert names(filled, ONLY, where={"source_file": "b.txt"})[:1] == ["b.txt"]
    assert names(filled, '"it must be" "never closed"') == ["b.txt"]
    assert set(names(filled, f"gardens {ONLY}", top_k=2)) == {"a.txt", "c.txt"}
    assert names(filled, f"gardens {ONLY}", top_k=3)[2] in {"b.txt", "d.txt"}
    assert set(names(filled, 'pump valve -"red valve"', "naive")) == {"b.txt", "d.txt"}
    assert names(filled, '"must be" -"red valve"') == ["b.txt"]


@everywhere
def test_symbols_are_phrases_and_punctuation_is_none(workspace: Workspace | RemoteWorkspace, corpus: Corpus) -> None:
    files = FILES | {
        "pear.txt": "A 🍐 is ripe ✅ in autumn.",
        "arrow.txt": "Water → valve; pears are ripe in autumn -> eat.",
    }
    assert not workspace.library.ingest_paths([corpus(files)], "notes").failed
    assert names(workspace, '"🍐"') == names(workspace, '"ripe ✅"') == ["pear.txt"]
    assert names(workspace, "«→ valve»") == ["arrow.txt"]
    for nothing in ('"->"', "« … » 「!?」", '"🍋"', '"⇒ ⇐"'):
        result = workspace.search(nothing)
        assert not result.documents
        check_message("; ".join(result.degraded), nothing[1:-1].strip() if '"' in nothing else "…")
    beside = workspace.search('ripe "->"')
    assert beside.documents
    check_message("; ".join(beside.degraded), '"->"')


@pytest.mark.parametrize("technique", ["naive", "bm25", "hybrid", "rerank", "parent_document", "graph", "routed"])
def test_phrases_are_searched_by_every_technique(filled: Workspace, technique: str) -> None:
    assert sorted(names(filled, ONLY, technique)) == ["a.txt", "c.txt"]
    assert set(names(filled, f"gardens {ONLY}", technique, top_k=2)) == {"a.txt", "c.txt"}
    result = filled.search('"blue valve"', technique)
    assert result.degraded == ('no passage holds "blue valve"; searched the words instead',)
    assert result.documents


def test_a_query_without_phrases_is_searched_as_it_is(filled: Workspace) -> None:
    for query in ('19" valve', "pump -n valve", 'the "pump', "don't close"):
        assert not filled.search(query).degraded
        found = filled.search(query, "bm25").documents
        assert [document.score for document in found] == [
            document.score for document in filled.store.search_text(query, len(found))
        ]


def test_a_long_text_with_quotes_only_moves_the_best_result_with_them(filled: Workspace) -> None:
    long = f"{ONLY} is what somebody wrote about gardens and water in spring, and about nothing else"
    plain = names(filled, long.replace('"', ""), "bm25")
    assert plain[0] == "d.txt"
    best = next(name for name in plain if name in {"a.txt", "c.txt"})
    assert names(filled, long, "bm25") == [best, *(name for name in plain if name != best)]
    assert not filled.search(f'"blue valve" {"gardens " * 9}').degraded


def test_a_query_of_exclusions_is_refused(filled: Workspace) -> None:
    with refused(QueryError, '-"red valve"'):
        filled.search('-"red valve" -"pump"')


def test_a_phrase_of_many_words_is_answered(filled: Workspace) -> None:
    assert filled.search(f'"{"red valve " * 5_000}"').degraded
    assert filled.search('"red ' * 5_000).documents


def test_the_technique_ranks_many_passages_with_a_phrase(workspace: Workspace, corpus: Corpus) -> None:
    words = {f"{number:03}.txt": f"A blue door number {number}." for number in range(300)}
    workspace.library.ingest_paths([corpus(words | FILES)], "notes")
    assert len(names(workspace, '"blue door"', top_k=1_000)) == 300
    assert len(names(workspace, '"blue door" gardens', top_k=302)) == 302
    assert names(workspace, 'door -"blue door"', "bm25") == []
    assert "blue" not in " ".join(document.content for document in workspace.search('door -"blue door"').documents)
