"""Which embedders are the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragistry.errors import EmbeddingMismatchError, StoreCorruptError
from ragistry.types import EmbedderFingerprint
from ragistry.utils.fingerprints import check_same_embedder, differences, from_json, to_json

MINILM = EmbedderFingerprint("embedded", "all-MiniLM-L6-v2", "8199be6f", 384, max_tokens=256)


def test_a_fingerprint_survives_as_text():
    nomic = EmbedderFingerprint("ollama", "nomic-embed-text", "", 768, "search_query: ", "search_document: ", 2048)
    assert [from_json(to_json(one)) for one in (MINILM, nomic)] == [MINILM, nomic]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"provider": 1}', "null"])
def test_what_is_no_fingerprint_is_damage(text):
    with pytest.raises(StoreCorruptError, match="clear the store"):
        from_json(text)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({}, []),
        ({"digest": ""}, []),
        ({"max_tokens": 0}, []),
        ({"digest": "ffff"}, ["digest"]),
        ({"max_tokens": 128}, ["max_tokens"]),
        ({"query_prefix": "query: "}, ["query_prefix"]),
        ({"provider": "ollama", "dimension": 768}, ["provider", "dimension"]),
    ],
)
def test_what_one_side_does_not_know_is_no_difference(change, names):
    assert differences(MINILM, replace(MINILM, **change)) == differences(replace(MINILM, **change), MINILM) == names


def test_the_message_names_both_and_the_remedy():
    with pytest.raises(EmbeddingMismatchError, match=r"embedded 'all-MiniLM-L6-v2'.*ollama 'nomic'.*embed_model"):
        check_same_embedder(MINILM, replace(MINILM, provider="ollama", model="nomic"))
