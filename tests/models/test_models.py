"""The table of known models, by every name that a model goes by."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.models.known import KNOWN_MODELS, known_model

PASSAGES = "Represent this sentence for searching relevant passages: "
INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
SAME = {
    "nomic-embed-text": ["nomic-embed-text:latest", "nomic-ai/nomic-embed-text-v1.5", "NOMIC-EMBED-TEXT:v1.5"],
    "nomic-embed-text-v2-moe": ["nomic-ai/nomic-embed-text-v2-moe", "toshk0/nomic-embed-text-v2-moe:Q6_K"],
    "mxbai-embed-large": ["mixedbread-ai/mxbai-embed-large-v1", "mxbai-embed-large:335m"],
    "snowflake-arctic-embed": ["snowflake-arctic-embed:22m", "Snowflake/snowflake-arctic-embed-m-v1.5"],
    "snowflake-arctic-embed2": ["snowflake-arctic-embed2:568m", "Snowflake/snowflake-arctic-embed-l-v2.0"],
    "bge-m3": ["BAAI/bge-m3", "bge-m3:567m"],
    "bge-large": ["BAAI/bge-large-en-v1.5", "bge-large:335m"],
    "bge-small-en": ["BAAI/bge-small-en-v1.5"],
    "e5-base": ["intfloat/e5-base-v2"],
    "multilingual-e5": ["intfloat/multilingual-e5-small"],
    "multilingual-e5-large-instruct": ["intfloat/multilingual-e5-large-instruct"],
    "embeddinggemma": ["google/embeddinggemma-300m", "embeddinggemma:300m"],
    "qwen3-embedding": ["Qwen/Qwen3-Embedding-0.6B", "qwen3-embedding:8b"],
    "all-minilm": ["sentence-transformers/all-MiniLM-L6-v2", "all-minilm:22m"],
    "granite-embedding": ["ibm-granite/granite-embedding-278m-multilingual", "granite-embedding:30m"],
    "paraphrase-multilingual": ["sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"],
}


@pytest.mark.parametrize(("known", "name"), [(known, name) for known, names in SAME.items() for name in names])
def test_a_model_is_found_by_any_of_its_names(known: str, name: str) -> None:
    assert known_model(name) == KNOWN_MODELS[known]


@pytest.mark.parametrize(
    ("name", "query", "document"),
    [
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("mxbai-embed-large", PASSAGES, ""),
        ("snowflake-arctic-embed", PASSAGES, ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("bge-base-en-v1.5", PASSAGES, ""),
        ("bge-m3", "", ""),
        ("e5-large-v2", "query: ", "passage: "),
        ("multilingual-e5-large", "query: ", "passage: "),
        ("multilingual-e5-large-instruct", f"{INSTRUCT} ", ""),
        ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
        ("qwen3-embedding", INSTRUCT, ""),
        ("all-minilm", "", ""),
    ],
)
def test_prefixes_are_those_of_the_model_cards(name: str, query: str, document: str) -> None:
    model = known_model(name)
    assert model is not None
    assert (model.query_prefix, model.document_prefix) == (query, document)


@pytest.mark.parametrize(
    "name", ["", "llama3.2", "bge", "e5-mistral-7b-instruct", "bge-base-zh", "my-nomic-embed-text"]
)
def test_a_model_that_is_not_known_is_none(name: str) -> None:
    assert known_model(name) is None


@pytest.mark.parametrize("name", KNOWN_MODELS)
def test_every_chunk_is_likely_to_fit(name: str) -> None:
    model = KNOWN_MODELS[name]
    assert 0 < model.chunk_overlap < model.chunk_size <= 4 * model.max_tokens
    assert name == name.lower()


@settings(max_examples=100, deadline=None)
@given(
    known=st.sampled_from(sorted(KNOWN_MODELS)),
    owner=st.sampled_from(["", "owner/", "hf.co/owner/"]),
    tag=st.sampled_from(["", ":latest", ":335m", ":Q8_0"]),
    shout=st.booleans(),
)
def test_owner_tag_and_case_do_not_matter(known: str, owner: str, tag: str, shout: bool) -> None:
    name = f"{owner}{known}{tag}"
    assert known_model(name.upper() if shout else name) is KNOWN_MODELS[known]
