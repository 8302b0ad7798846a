"""Entities of a chunk: names, phrases, titles and tags."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ragistry.techniques.entities import _EDGES, FROM_METADATA, _found, _metadata, _reader, _words, entities
from ragistry.types import Document


def weights(text: str, **metadata: Any) -> dict[str, float]:
    """The entities of a chunk, as they are written there, with their weights."""
    document = Document(text, metadata, 0.0, "x")
    [rows] = entities([document])
    spelled: dict[int, str] = {}
    for texts, wholes in ([text], False), (_metadata(document), True):
        found, read = _found(_words(texts, [document] * len(texts)), wholes=wholes), _reader(document)
        written = [token for one in texts for token in one.split() for _ in read(token)]
        for key, first, length in zip(found.keys.tolist(), found.first, found.length, strict=True):
            spelled.setdefault(key, _EDGES.sub(r"\2", " ".join(written[first : first + length])))
    assert spelled.keys() == set(rows["key"].tolist())
    return {spelled[int(row["key"])]: float(row["weight"]) for row in rows}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it was by Tim Burton.", {"Tim", "Burton", "Tim Burton"}),
        ("at the University of Oxford,", {"University", "Oxford", "University of Oxford"}),
        ("by Ed Wood, Tim Burton", {"Ed", "Wood", "Ed Wood", "Tim", "Burton", "Tim Burton"}),
        ("by Ed Wood (Tim Burton)", {"Ed", "Wood", "Ed Wood", "Tim", "Burton", "Tim Burton"}),
        ("However it is so. Then it was.", set()),
        ("it is in Paris.", {"Paris"}),
        ("the boundary layer of a wing", {"boundary layer"}),
        ("a layer, boundary", set()),
    ],
)
def test_entities_are_capitalised_names_and_phrases_of_two_words(text, expected):
    assert weights(text).keys() == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the Boundary Layers", "a boundary layer"),
        ("by Émile Zola", "by Emile Zola"),
        ("of Ed Wood's film", "with Ed Wood"),
        ("by “Ed Wood”", "by Ed Wood"),
    ],
)
def test_another_form_is_the_same_entity(one, other):
    keys = [set(rows["key"].tolist()) for rows in entities([Document(text, {}, 0.0) for text in (one, other)])]
    assert keys[0] & keys[1]


def test_titles_headings_and_tags_count_more():
    metadata = {"title": "install guide", "heading_context": "A > Linux", "tags": ["kiwi"], "section": None}
    assert {"install guide", "Linux", "kiwi"} <= weights("text", **metadata).keys()
    assert weights("an install guide", **metadata)["install guide"] == FROM_METADATA
    assert weights("an install guide")["install guide"] == 1.0


@pytest.mark.parametrize("metadata", [{"title": 3}, {"tags": "one"}, {"tags": []}, {"title": " "}])
def test_odd_metadata_are_read_or_left_out(metadata):
    assert weights("the boundary layer", **metadata).keys() - {"one"} == {"boundary layer"}


def test_scripts_without_spaces_give_pairs_of_characters():
    document = Document("北京大学。东京", {"language": "chinese"}, 0.0)
    assert len(entities([document])[0]) == len({"北京", "京大", "大学", "东京"})


@pytest.mark.parametrize("text", ["", " \n", "…", "🙂 🙃", "\ud800", "x" * 100_000, "\x00 \x00"])
def test_odd_texts_have_few_entities(text):
    assert len(entities([Document(text, {}, 0.0)])[0]) <= 1


def test_many_chunks_give_what_each_gives_alone():
    texts = ["by Ed Wood", "", "the Boundary Layer of Tim", "by Tim Burton. Ed", "Ed Wood"]
    documents = [Document(text, {"title": f"Guide {text}"}, 0.0) for text in texts]
    for document, rows in zip(documents, entities(documents), strict=True):
        assert np.array_equal(rows, entities([document])[0])
    assert entities([]) == []
