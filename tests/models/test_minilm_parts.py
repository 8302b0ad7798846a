"""The parts of MiniLM: its vocabulary, tokenizer and batches, and what a process pays for it."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from textwrap import dedent

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.models.minilm import MiniLMEmbedder, load_tokenizer, read_vocabulary
from ragistry.models.onnx import batches, cut_ids

CLS, SEP = 101, 102
TOKENIZER = load_tokenizer()
MINILM = MiniLMEmbedder()


def run_python(script: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", dedent(script)], capture_output=True, text=True, timeout=100, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


def test_the_vocabulary_is_berts_and_comes_with_its_licence():
    vocabulary = read_vocabulary()
    assert (len(vocabulary), len(set(vocabulary))) == (30_522, 30_522)
    assert [vocabulary.index(token) for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]")] == [0, 100, CLS, SEP]
    assert "Apache License" in (files("ragistry.models") / "data" / "LICENSE").read_text()


def test_text_is_lower_case_without_accents_and_cut_into_word_pieces():
    ids = TOKENIZER.encode("Zürich: EMBEDDINGS 東京 \x00").ids
    pieces = ["[CLS]", "zurich", ":", "em", "##bed", "##ding", "##s", "東", "京", "[SEP]"]
    vocabulary = read_vocabulary()
    assert [vocabulary[number] for number in ids] == pieces


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=80), max_size=4), st.integers(2, 20))
def test_tokens_are_cut_to_the_limit_and_counted_before(texts: list[str], limit: int):
    for text, count in zip(texts, MINILM.count_tokens(texts), strict=True):
        full = TOKENIZER.encode(text).ids
        assert len(full) == count
        cut = cut_ids(full, limit)
        assert len(cut) == min(limit, count)
        assert (cut[0], cut[-1]) == (CLS, SEP)
        np.testing.assert_array_equal(cut[:-1], full[: len(cut) - 1])


def test_many_texts_are_tokenized_in_their_order():
    texts = ["word " * (number % 7) for number in range(1000)]
    assert MINILM.count_tokens(texts) == [2 + number % 7 for number in range(1000)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 300), max_size=60), st.integers(1, 600))
def test_batches_hold_every_row_once_and_keep_to_the_budget(lengths: list[int], budget: int):
    planned = list(batches(lengths, budget))
    assert sorted(position for batch in planned for position in batch) == list(range(len(lengths)))
    for batch in planned:
        longest = max(lengths[position] for position in batch)
        assert len(batch) == 1 or len(batch) * longest <= budget
    in_turn = [lengths[position] for batch in planned for position in batch]
    assert in_turn == sorted(lengths, reverse=True)


def test_making_an_embedder_and_reading_its_fingerprint_loads_no_model():
    loaded = run_python("""
        import sys
        from ragistry.models.minilm import MiniLMEmbedder
        fingerprint = MiniLMEmbedder().fingerprint
        print(fingerprint.digest[:8], fingerprint.dimension, fingerprint.max_tokens)
        print(*{"onnxruntime", "tokenizers", "chromadb", "httpx", "pydantic", "yaml"} & set(sys.modules))
    """)
    assert loaded == "8199be6f 384 256"


def test_embedding_uses_no_network_no_torch_and_no_hub():
    used = run_python("""
        import sys
        events = set()
        sys.addaudithook(lambda event, _: events.add(event) if event.startswith("socket.") else None)
        from ragistry.models.minilm import MiniLMEmbedder
        print(MiniLMEmbedder().embed(["text"]).shape)
        print(*events, *{"torch", "huggingface_hub", "transformers"} & set(sys.modules))
    """)
    assert used == "(1, 384)"
