"""Hits with more of their source: the part that they lie in, or the chunks next to them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from ragistry.readers.extract import extract
from ragistry.stores.local import LocalStore
from ragistry.techniques.parent_document import ParentDocumentTechnique
from ragistry.types import Document, EmbeddedChunk
from ragistry.utils.ids import chunk_id
from tests.chunking.span_invariants import cut
from tests.techniques.doubles import Ready
from tests.techniques.passages import GUIDE, Finds, guide, ingest, parts, words


def parents(
    store: LocalStore, *indexes: int, where: dict[str, Any] | None = None, top_k: int = 10, **config: int
) -> list[Document]:
    base = Finds(store, "guide.md", *indexes)
    return ParentDocumentTechnique(config, base=base, store=store).retrieve("q", top_k=top_k, where=where)


def section(first: str, last: str) -> list[str]:
    return words(GUIDE[GUIDE.index(first) : GUIDE.index(last)])


def test_largest_section_around_a_hit_that_fits(guide_store):
    [parent] = parents(guide_store, 4, max_characters=200)
    assert words(parent.content) == section("### Linux", "### Windows")
    assert parent.metadata["chunk_indexes"] == [3, 4, 5]
    assert (parent.metadata["start"], parent.metadata["end"]) == (101, 217)
    assert len(parent.content) == 217 - 101
    assert parents(guide_store, 4, max_characters=116) == [parent]
    [parent] = parents(guide_store, 4, max_characters=300)
    assert words(parent.content) == section("## Install", "## Use")
    [parent] = parents(guide_store, 4, max_characters=4000)
    assert words(parent.content) == words(GUIDE)


@pytest.mark.parametrize(
    ("hit", "limit", "expected"),
    [
        (10, 170, [9, 10, 11]),
        (8, 100, [8, 9]),  # no further back than its section
        (12, 100, [11, 12]),  # nothing comes after it
        (10, 1, [10]),
    ],
)
def test_of_a_section_that_is_too_long_as_much_as_fits_around_the_hit(guide_store, hit, limit, expected):
    assert parts(parents(guide_store, hit, max_characters=limit)) == [expected]


def test_hits_in_one_part_are_one_document_with_the_best_score(guide_store):
    one, two = parents(guide_store, 7, 4, 6, 3, 5, max_characters=150)
    assert parts([one, two]) == [[6, 7], [3, 4, 5]]
    assert (one.score, two.score) == (1.0, 0.99)
    assert [one.id, two.id] == [chunk_id("notes", "guide.md", 7), chunk_id("notes", "guide.md", 4)]
    assert one.scores[0].stage == "fixed"
    assert one.metadata["heading_context"] == "Guide > Install > Windows"


@pytest.mark.parametrize("limit", [40, 100, 170, 300])
def test_no_chunk_is_returned_twice_and_no_document_is_too_long(guide_store, limit):
    for first in range(0, 13, 3):
        hits = [(first + 5 * step) % 13 for step in range(13)]
        documents = parents(guide_store, *hits, max_characters=limit, top_k=13)
        assert sorted(index for chunks in parts(documents) for index in chunks) == list(range(13))
        assert all(len(one.content) <= limit or len(one.metadata["chunk_indexes"]) == 1 for one in documents)
        assert all(one.score > two.score for one, two in pairwise(documents))


def test_reach_limits_how_far_the_store_is_read(guide_store):
    assert parts(parents(guide_store, 6, reach=2)) == [[4, 5, 6, 7, 8]]


def test_neighbours_and_the_whole_document_meet_the_condition(guide_store):
    assert parts(parents(guide_store, 6, where={"chunk_index": {"$gte": 5}})) == [[5, 6, 7, 8, 9, 10, 11, 12]]
    assert parts(parents(guide_store, 6, where={"section": "Windows"})) == [[6, 7]]
    # Two chunks meet this condition on their places, but the document that they make would not.
    where = {"$or": [{"$and": [{"start": first}, {"end": last}]} for first, last in ((219, 251), (252, 302))]}
    one, two = parents(guide_store, 6, 7, where=where)
    assert (one.metadata["start"], one.metadata["end"]) == (219, 251)
    assert (two.metadata["start"], two.metadata["end"]) == (252, 302)


def test_another_version_of_the_source_is_not_mixed_in(store, tmp_path):
    chunk = ingest(store, guide(tmp_path), 60)[5]
    store.add_documents([chunk._replace(metadata={**chunk.metadata, "source_hash": "2"})])
    assert parts(parents(store, 3)) == [[0, 1, 2, 3, 4]]


def test_pages_are_the_parts_of_a_pdf(store, fixtures):
    path = fixtures / "manuals" / "dishwasher.pdf"
    chunks = ingest(store, path, 200, 50)
    on_page = [index for index, chunk in enumerate(chunks) if chunk.metadata["page"] == 2]
    start, end = chunks[on_page[0]].metadata["start"], chunks[on_page[-1]].metadata["end"]
    base, config = Finds(store, path.name, on_page[1]), {"max_characters": end - start, "reach": 100}
    [parent] = ParentDocumentTechnique(config, base=base, store=store).retrieve("q")
    assert parent.metadata["chunk_indexes"] == on_page
    assert len(on_page) < len(chunks)
    assert words(parent.content) == words(extract(path).text[start:end])


def test_text_without_parts_is_its_source(store, tmp_path):
    text = "One sentence here. Another one there.\n\nA third one. And the last."
    (tmp_path / "plain.txt").write_text(text, encoding="utf-8")
    ingest(store, tmp_path / "plain.txt", 20)
    assert len(cut(text, 20)) == 4
    [parent] = ParentDocumentTechnique({}, base=Finds(store, "plain.txt", 2), store=store).retrieve("q")
    assert words(parent.content) == words(text)


def test_hit_of_no_source_and_one_without_offsets(store):
    store.add_documents([EmbeddedChunk("alone", {"kind": "note"}, [1.0, 0.0])])
    keys = {"collection": "notes", "source_file": "a"}
    store.add_documents([EmbeddedChunk(text, {**keys, "chunk_index": i}, [1.0, 1.0]) for i, text in enumerate("xyz")])
    found = [replace(document, score=0.5) for document in store.scan({"kind": "note"})]
    base = Ready([*found, *Finds(store, "a", 1).documents])
    alone, joined = ParentDocumentTechnique({}, base=base, store=store).retrieve("q")
    assert alone == found[0]
    assert joined.content == "x\n\ny\n\nz"
    assert "start" not in joined.metadata


def test_base_is_asked_for_more_and_the_store_for_what_is_needed(guide_store):
    reads = []

    class Counted:
        def get(self, ids: list[str]) -> list[Document]:
            reads.append(len(ids))
            return guide_store.get(ids)

    base = Finds(guide_store, "guide.md", 1, 4, 6, 8)
    technique = ParentDocumentTechnique({"max_characters": 150, "reach": 2}, base=base, store=Counted())
    assert len(technique.retrieve("q", top_k=3)) == 3
    assert reads == [len({0, 2, 3, 4, 5, 6, 7, 8}), len({6, 7, 9, 10})], "of three hits, then of one more"
    technique.retrieve("q", top_k=1000)
    assert [asked["top_k"] for asked in base.asked] == [9, 1000]


def test_overlapping_chunks_are_joined_without_repetition(store, tmp_path):
    ingest(store, guide(tmp_path), 90, 30)
    [document] = parents(store, 7, reach=2)
    assert parts([document]) == [[5, 6, 7, 8, 9]]
    assert words(document.content) == words(GUIDE[GUIDE.index("## Use") :])
