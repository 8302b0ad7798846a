"""Contextual compression: sentences are copied, never written, and keep their place in the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ragistry.techniques.contextual_compression import ContextualCompressionTechnique, compressed
from ragistry.types import Document
from tests.messages import check_message
from tests.techniques.doubles import Facts, Ready, Says, degraded, names, traced

SOURCE = "Tea is old. Green tea is steeped\nin water of 80 degrees. It is served hot. Black tea is fermented."
STEEPED, HOT, BLACK = "Green tea is steeped in water of 80 degrees.", "It is served hot.", "Black tea is fermented."


def passage(**metadata: Any) -> Document:
    place = {"start": 12, "end": len(SOURCE), "token_count": 25, "collection": "tea"}
    return Document(SOURCE[12:], {**place, **metadata}, 0.5, "a")


def compress(*sentences: str, where: Mapping[str, Any] | None = None) -> tuple[list[Document], str]:
    generator = Says({"sentences": list(sentences)})
    technique = ContextualCompressionTechnique({}, base=Ready([passage()]), generator=generator)
    found, stages = traced(technique, "q", where=where)
    return found, degraded(stages)


def test_one_span_keeps_its_offsets_in_the_source():
    [document], said = compress(STEEPED)
    assert document.content == "Green tea is steeped\nin water of 80 degrees."
    assert SOURCE[document.metadata["start"] : document.metadata["end"]] == document.content
    assert (document.id, document.score, document.metadata["collection"]) == ("a", 0.5, "tea")
    assert "token_count" not in document.metadata
    assert said == ""


def test_sentences_that_touch_are_one_span_in_the_order_of_the_source():
    [document], _ = compress(HOT, STEEPED)
    assert document.content == SOURCE[document.metadata["start"] : document.metadata["end"]]
    assert document.content.endswith(HOT)


def test_several_spans_are_listed_and_the_document_claims_no_offsets():
    [document], _ = compress(BLACK, STEEPED)
    assert not {"start", "end"} & document.metadata.keys()
    spans = [SOURCE[start:end] for start, end in document.metadata["spans"]]
    assert spans == ["Green tea is steeped\nin water of 80 degrees.", BLACK]
    assert document.content == "\n".join(spans)


def test_sentences_that_are_not_in_the_passage_are_refused():
    [document], said = compress(HOT, "Tea cures every illness.", "green TEA is steeped")
    assert document.content == HOT
    check_message(said, "2 of 3", "'a'")
    [document], said = compress("Tea cures every illness.")
    assert document == passage(), "a passage of invented sentences stays whole"
    check_message(said, "1 of 1")


@pytest.mark.parametrize("sentences", [(), ("", " \n")])
def test_passage_without_a_useful_sentence_is_left_out(sentences):
    assert compress(*sentences) == ([], "")


def test_condition_on_what_would_change_keeps_the_document_whole():
    assert compress(BLACK, where={"start": {"$lt": 20}})[0] == [passage()]
    assert compress(BLACK, where={"start": {"$gte": 20}})[0][0].content == BLACK
    assert compress(BLACK, where={"collection": "tea"})[0][0].content == BLACK


def test_document_whose_offsets_do_not_fit_gets_none_and_the_given_one_is_not_changed():
    whole = passage(end=40)
    short = compressed(whole, [HOT])
    assert short is not None
    assert not {"start", "end", "spans"} & short.metadata.keys()
    assert whole == passage(end=40)


def test_documents_after_n_stay_whole_and_cost_no_call():
    generator = Says({"sentences": []})
    technique = ContextualCompressionTechnique({"n": 1}, base=Facts("tea", "magnet"), generator=generator)
    assert names(technique.retrieve("q")) == ["magnet"]
    assert len(generator.prompts) == 1
