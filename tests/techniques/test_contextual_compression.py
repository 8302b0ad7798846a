"""Contextual compression: sentences are copied, never written, and keep their place in the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ragistry.techniques.contextual_compression import ContextualCompressionTechnique, compressed
from ragistry.trace import collect
from ragistry.types import Document
from tests.techniques.talking import Fixed, Says, names

SOURCE = "Tea is old. Green tea is steeped\nin water of 80 degrees. It is served hot. Black tea is fermented."
PASSAGE = SOURCE[12:]


def passage(**metadata: Any) -> Document:
    place = {"start": 12, "end": len(SOURCE), "token_count": 25, "collection": "tea"}
    return Document(PASSAGE, {**place, **metadata}, 0.5, "a")


class Finds:
    def __init__(self, document: Document) -> None:
        self.document = document

    def retrieve(self, query: str, **options: Any) -> list[Document]:
        return [self.document]


def compress(*sentences: str, where: Mapping[str, Any] | None = None) -> tuple[list[Document], str]:
    generator = Says(lambda _: {"sentences": list(sentences)})
    with collect() as trace:
        found = ContextualCompressionTechnique({}, base=Finds(passage()), generator=generator).retrieve(
            "q", where=where
        )
    return found, "; ".join(stage.degraded for stage in trace.stages() if stage.degraded)


def test_one_span_keeps_its_offsets_in_the_source() -> None:
    [document], said = compress("Green tea is steeped in water of 80 degrees.")
    assert document.content == "Green tea is steeped\nin water of 80 degrees."
    assert SOURCE[document.metadata["start"] : document.metadata["end"]] == document.content
    assert (document.id, document.score, document.metadata["collection"]) == ("a", 0.5, "tea")
    assert "token_count" not in document.metadata
    assert said == ""


def test_sentences_that_touch_are_one_span_in_the_order_of_the_source() -> None:
    [document], _ = compress("It is served hot.", "Green tea is steeped in water of 80 degrees.")
    assert document.content == SOURCE[document.metadata["start"] : document.metadata["end"]]
    assert document.content.endswith("It is served hot.")


def test_several_spans_are_listed_and_the_document_claims_no_offsets() -> None:
    [document], _ = compress("Black tea is fermented.", "Green tea is steeped in water of 80 degrees.")
    assert not {"start", "end"} & document.metadata.keys()
    assert [SOURCE[start:end] for start, end in document.metadata["spans"]] == [
        "Green tea is steeped\nin water of 80 degrees.",
        "Black tea is fermented.",
    ]
    assert document.content == "\n".join(SOURCE[start:end] for start, end in document.metadata["spans"])


def test_a_sentence_that_is_not_in_the_passage_is_refused() -> None:
    [document], said = compress("It is served hot.", "Tea cures every illness.", "green TEA is steeped")
    assert document.content == "It is served hot."
    assert "refused 2 of 3 sentences that are not in document 'a'" in said


def test_a_passage_of_invented_sentences_stays_whole() -> None:
    [document], said = compress("Tea cures every illness.")
    assert document == passage()
    assert "refused 1 of 1" in said


@pytest.mark.parametrize("sentences", [(), ("", " \n")])
def test_a_passage_without_a_useful_sentence_is_left_out(sentences: tuple[str, ...]) -> None:
    assert compress(*sentences) == ([], "")


def test_a_condition_on_what_would_change_keeps_the_document_whole() -> None:
    sentence = "Black tea is fermented."
    assert compress(sentence, where={"start": {"$lt": 20}})[0] == [passage()]
    assert compress(sentence, where={"start": {"$gte": 20}})[0][0].content == sentence
    assert compress(sentence, where={"collection": "tea"})[0][0].content == sentence


def test_a_document_whose_offsets_do_not_fit_gets_none() -> None:
    short = compressed(passage(end=40), ["It is served hot."])
    assert short is not None
    assert not {"start", "end", "spans"} & short.metadata.keys()


def test_the_document_of_the_base_is_not_changed() -> None:
    whole = passage()
    compressed(whole, ["It is served hot."])
    assert whole == passage()


def test_documents_after_n_stay_whole_and_cost_no_call() -> None:
    generator = Says(lambda _: {"sentences": []})
    technique = ContextualCompressionTechnique({"n": 1}, base=Fixed("tea", "magnet"), generator=generator)
    assert names(technique.retrieve("q")) == ["magnet"]
    assert len(generator.prompts) == 1
