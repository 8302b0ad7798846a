"""Entities of a chunk: names, phrases, titles and tags."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ragistry.techniques.entities import FROM_METADATA, entities, names
from ragistry.types import Document


def found(text: str, **metadata: Any) -> set[str]:
    """The entities of a chunk, as they are written there."""
    document = Document(text, metadata, 0.0, "x")
    [rows] = entities([document])
    spelled = names(document, rows["key"].tolist())
    assert len(spelled) == len(rows)
    return set(spelled.values())


def weight(text: str, name: str, **metadata: Any) -> float:
    document = Document(text, metadata, 0.0, "x")
    [rows] = entities([document])
    spelled = names(document, rows["key"].tolist())
    return next(float(row["weight"]) for row in rows if spelled[int(row["key"])] == name)


def test_names_are_runs_of_capitalised_words_and_what_lies_within_them() -> None:
    assert found("it was by Tim Burton.") == {"Tim", "Burton", "Tim Burton"}
    assert found("at the University of Oxford,") == {"University", "Oxford", "University of Oxford"}
    assert "Ed Wood" in found("with director Ed Wood (born 1924)")
    assert "Ed Wood Tim" not in found("by Ed Wood, Tim Burton")
    assert "Wood Tim" not in found("by Ed Wood (Tim Burton)")


def test_a_single_word_that_begins_a_sentence_is_not_a_name() -> None:
    assert found("However it is so. Then it was.") == set()
    assert "Paris" in found("it is in Paris now")


def test_phrases_are_two_words_without_a_stop_word() -> None:
    assert found("the boundary layer of a wing") == {"boundary layer"}
    assert found("a layer, boundary") == set()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the Boundary Layers", "a boundary layer"),
        ("by Émile Zola", "by Emile Zola"),
        ("of Ed Wood's film", "with Ed Wood"),
        ("by “Ed Wood”", "by Ed Wood"),
    ],
)
def test_the_same_entity_in_another_form(one: str, other: str) -> None:
    keys = [set(rows["key"].tolist()) for rows in entities([Document(text, {}, 0.0) for text in (one, other)])]
    assert keys[0] & keys[1]


def test_titles_headings_and_tags_count_more() -> None:
    metadata = {"title": "install guide", "heading_context": "A > Linux", "tags": ["kiwi"], "section": None}
    assert {"install guide", "Linux", "kiwi"} <= found("text", **metadata)
    assert weight("an install guide", "install guide", **metadata) == FROM_METADATA
    assert weight("an install guide", "install guide") == 1.0


@pytest.mark.parametrize("metadata", [{"title": 3}, {"tags": "one"}, {"tags": []}, {"title": " "}])
def test_odd_metadata_are_read_or_left_out(metadata: dict[str, Any]) -> None:
    assert found("the boundary layer", **metadata) - {"one"} == {"boundary layer"}


def test_scripts_without_spaces_give_pairs_of_characters() -> None:
    document = Document("北京大学。东京", {"language": "chinese"}, 0.0)
    assert len(entities([document])[0]) == len({"北京", "京大", "大学", "东京"})


@pytest.mark.parametrize("text", ["", " \n", "…", "🙂 🙃", "\ud800", "x" * 100_000, "\x00 \x00"])
def test_odd_texts_have_few_entities(text: str) -> None:
    assert len(entities([Document(text, {}, 0.0)])[0]) <= 1


def test_many_chunks_give_what_each_gives_alone() -> None:
    texts = ["by Ed Wood", "", "the Boundary Layer of Tim", "by Tim Burton. Ed", "Ed Wood"]
    documents = [Document(text, {"title": f"Guide {text}"}, 0.0) for text in texts]
    together = entities(documents)
    assert len(together) == len(texts)
    for document, rows in zip(documents, together, strict=True):
        assert np.array_equal(rows, entities([document])[0])
    assert entities([]) == []
