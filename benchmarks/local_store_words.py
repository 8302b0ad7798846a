"""Searches of `local_store` by words: `bm25` beside bare tantivy, and what `hybrid` costs over its parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tantivy import Document, Index, Occur, Query, SchemaBuilder

from benchmarks.local_store_build import Built
from benchmarks.local_store_data import DIMENSION, query_texts, query_vectors, sources
from benchmarks.local_store_row import Row, in_turn, ratio_row
from ragistry.stores.local import LocalStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.hybrid import HybridTechnique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.text.analysis import analyse, query_terms
from ragistry.types import EmbedderFingerprint, Role

TOP_K, FETCH = 10, 100
TIMES_BARE, OVER_PARTS_MS = 2.5, 0.5


class ReadyEmbedder:
    """Costs nothing: a vector is there already for each text that may be asked for, and one for all others."""

    fingerprint = EmbedderFingerprint("ready", "ready", "", DIMENSION)

    def __init__(self, known: dict[str, Any] | None = None) -> None:
        self.known = known or {}
        self.calls = 0
        self._other = query_vectors(1)[0]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> NDArray[np.float32]:  # noqa: ARG002
        self.calls += 1
        return np.stack([self.known.get(text, self._other) for text in texts])


def words_rows(built: Built, rounds: int, temporary: Path) -> list[Row]:
    """The same terms on both sides. `LocalStore` finds whole documents; bare tantivy keys, or documents it keeps."""
    index = _bare(built.chunks, temporary / "tantivy")
    searcher = index.searcher()
    texts = query_texts(rounds)
    terms = [list(query_terms(text)) for text in texts]

    def hits(number: int) -> list[Any]:
        clauses = [(Occur.Should, Query.term_query(index.schema, "terms", term, "freq")) for term in terms[number]]
        return searcher.search(Query.boolean_query(clauses), TOP_K, count=False).hits

    def keys(number: int) -> list[int]:
        return searcher.fast_field_values("key", [address for _, address in hits(number)])

    def documents(number: int) -> list[Any]:
        found = [searcher.doc(address) for _, address in hits(number)]
        return [(document["text"], document["metadata"]) for document in found]

    with closing(LocalStore(built.ours)) as store:
        ours, bare, whole = in_turn(rounds, lambda n: store.search_text(texts[n], TOP_K), keys, documents)
    work = f"{built.chunks:,}: bm25 with documents"
    return [
        ratio_row(f"{work} (raw: bare tantivy, keys only)", ours, bare, None),
        ratio_row(f"{work} (raw: bare tantivy, documents that it keeps)", ours, whole, TIMES_BARE),
    ]


def hybrid_row(built: Built, rounds: int) -> Row:
    """Fusion takes what the parts find; each part is also measured by itself, as far down as it is asked for here."""
    texts = query_texts(rounds)
    embedder = ReadyEmbedder(dict(zip(texts, query_vectors(rounds), strict=True)))
    with closing(LocalStore(built.ours)) as store:
        parts = [NaiveRAGTechnique({}, store=store, embedder=embedder), BM25Technique({}, store=store)]
        hybrid = HybridTechnique({"fetch": FETCH}, bases=parts)
        both, dense, words = in_turn(
            rounds,
            lambda n: hybrid.retrieve(texts[n], top_k=TOP_K),
            lambda n: parts[0].retrieve(texts[n], top_k=FETCH),
            lambda n: parts[1].retrieve(texts[n], top_k=FETCH),
        )
    over = median(b - d - w for b, d, w in zip(both, dense, words, strict=True))
    return Row(
        f"{built.chunks:,}: hybrid, {FETCH} of each part (raw: its two parts)",
        f"{median(both):.2f} ms",
        f"{median(dense):.2f} + {median(words):.2f} ms",
        f"{over:+.2f} ms",
        f"+{OVER_PARTS_MS} ms",
        over <= OVER_PARTS_MS,
    )


def _bare(chunks: int, folder: Path) -> Index:
    folder.mkdir()
    fields = SchemaBuilder()
    fields.add_integer_field("key", fast=True)
    fields.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    fields.add_text_field("text", stored=True, tokenizer_name="raw", index_option="basic")
    fields.add_json_field("metadata", stored=True, tokenizer_name="raw", index_option="basic")
    index = Index(fields.build(), str(folder))
    writer = index.writer(128_000_000, 1)
    everything = (chunk for source in sources(chunks) for chunk in source.chunks)
    for key, (text, metadata, _) in enumerate(everything):
        terms = " ".join(analyse(text))
        writer.add_document(Document(key=key, terms=terms, text=text, metadata=metadata))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index
