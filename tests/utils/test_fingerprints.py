"""Which embedders are the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragistry.errors import EmbeddingMismatchError, StoreCorruptError
from ragistry.types import EmbedderFingerprint
from ragistry.utils.fingerprints import check_same_embedder, differences, from_json, to_json
from tests.messages import refused

MINILM = EmbedderFingerprint("embedded", "all-MiniLM-L6-v2", "8199be6f", 384, max_tokens=256)


def test_a_fingerprint_survives_as_text():
    nomic = EmbedderFingerprint("ollama", "nomic-embed-text", "", 768, "search_query: ", "search_document: ", 2048)
    assert [from_json(to_json(one)) for one in (MINILM, nomic)] == [MINILM, nomic]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"provider": 1}', "null"])
def test_what_is_no_fingerprint_is_damage(text):
    with refused(StoreCorruptError):
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
        ({"probe": "0.1 0.2"}, []),
    ],
)
def test_what_one_side_does_not_know_is_no_difference(change, names):
    assert differences(MINILM, replace(MINILM, **change)) == differences(replace(MINILM, **change), MINILM) == names


@pytest.mark.parametrize(
    ("other", "names"),
    [("1 2 3", []), ("1.1 2 2.8", []), ("1 2", ["probe"]), ("3 2 1", ["probe"]), ("-1 -2 -3", ["probe"])],
)
def test_probes_are_compared_with_a_tolerance(other, names):
    one, two = replace(MINILM, probe="1 2 3"), replace(MINILM, probe=other)
    assert differences(one, two) == names
    assert one == two


def test_the_message_names_both_and_the_remedy():
    with refused(EmbeddingMismatchError):
        check_same_embedder(MINILM, replace(MINILM, provider="ollama", model="nomic"))
