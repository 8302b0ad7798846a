"""Retrievers of other libraries as contenders of a comparison: ``python -m benchmarks.contenders [--quick]``.

LangChain, LlamaIndex and Haystack get the same documents as our techniques, one passage each, and the same vectors
(MiniLM). Each is asked by a function of a query that returns ids, so that a comparison measures and tests them like
any technique. The packages are in the extra ``bench``; a missing one is named and left out. LlamaIndex's BM25 needs
PyStemmer 2, which cannot be installed with this package.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.fusion_data import read_set
from benchmarks.quality import DATA
from ragistry import open_workspace
from ragistry.evaluation import Comparison, Dataset, as_technique, compare
from ragistry.evaluation.systems.recorded_answers import cached_embedder
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.protocols import Embedder

SETS, QUICK = ("cranfield", "xquad-en", "scifact"), ("cranfield",)
OURS = ("hybrid", "naive", "bm25")
MEASURE = "nDCG@10"
DEPTH = 10
ASKED = 100
"""Maximum number of queries of a set."""
CACHE = Path(os.environ.get("RAGISTRY_BENCH_CACHE", Path.home() / ".cache" / "ragistry")) / "made"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where vectors are kept [{CACHE}]")
    options = parser.parse_args()
    print(f"| set | contender | {MEASURE} | to {OURS[0]} | p, Holm | ms a search |\n|---|---|--:|--:|--:|--:|")
    for name in QUICK if options.quick else SETS:
        if (DATA / name).is_dir():
            dataset = read_set(name)
            asked = dict(list(dataset.judged.items())[:ASKED])
            dataset = replace(dataset, queries=asked, qrels={query: dataset.qrels[query] for query in asked})
            print_table(compared(dataset, options.cache))
        else:
            print(f"skipped: {name} is not in {DATA}", file=sys.stderr)


def compared(dataset: Dataset, cache: Path) -> Comparison:
    embedder = cached_embedder(MiniLMEmbedder(), cache / "vectors.db")
    contenders: dict[str, Any] = dict.fromkeys(OURS)
    for name, make in FROM_ELSEWHERE.items():
        try:
            contenders |= {label: as_technique(one) for label, one in make(dataset, embedder).items()}
        except ImportError as error:
            print(f"skipped: {name} is not installed ({error}); install the extra bench", file=sys.stderr)
    with TemporaryDirectory() as folder, open_workspace(folder) as workspace:
        return compare(
            contenders, dataset, MEASURE, OURS[0], workspace=workspace, cache=cache, depth=DEPTH,
            chunk_size="document", timing_repeats=0, progress=False,
        )  # fmt: skip


def print_table(comparison: Comparison) -> None:
    pairs = {pair.a: pair for pair in comparison.main_pairs}
    for name, of in sorted(comparison.techniques.items(), key=lambda one: -one[1].measures[MEASURE].mean):
        pair = pairs.get(name)
        against = "| |" if pair is None else f"{pair.difference:+.3f} | {pair.p_holm:.4f} |"
        quality, ms = of.measures[MEASURE].mean, of.latency_ms.p50
        print(f"| {comparison.name} | {name} | {quality:.3f} | {against} {ms:.1f} |", flush=True)
    for name, failed in comparison.failures.items():
        print(f"{name} failed: {failed.error}", file=sys.stderr)
    print(f"{comparison.name}: {comparison.verdict}", file=sys.stderr)


def of_langchain(dataset: Dataset, embedder: Embedder) -> dict[str, Any]:
    from langchain_community.retrievers import BM25Retriever
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Vectors(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return list_of_lists(embedder.embed(texts))

        def embed_query(self, text: str) -> list[float]:
            return list_of_lists(embedder.embed([text], role="query"))[0]

    documents = [Document(page_content=text, metadata={"source": name}) for name, text in texts_of(dataset).items()]
    store = InMemoryVectorStore(Vectors())
    store.add_documents(documents)
    label = f"LangChain {version('langchain-core')}"
    words = BM25Retriever.from_documents(documents, k=DEPTH)
    return {
        f"{label} InMemoryVectorStore": lambda query: sources_of(store.similarity_search(query, k=DEPTH)),
        f"{label} BM25Retriever": lambda query: sources_of(words.invoke(query)),
    }


def of_llamaindex(dataset: Dataset, embedder: Embedder) -> dict[str, Any]:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.schema import TextNode

    class Vectors(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return list_of_lists(embedder.embed([text]))[0]

        def _get_query_embedding(self, query: str) -> list[float]:
            return list_of_lists(embedder.embed([query], role="query"))[0]

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    texts = texts_of(dataset)
    vectors = list_of_lists(embedder.embed(list(texts.values())))
    nodes = [
        TextNode(id_=name, text=text, embedding=row) for (name, text), row in zip(texts.items(), vectors, strict=True)
    ]
    index = VectorStoreIndex(nodes, embed_model=Vectors(model_name="MiniLM"))
    label = f"LlamaIndex {version('llama-index-core')} VectorIndexRetriever"
    retriever = index.as_retriever(similarity_top_k=DEPTH)
    return {label: lambda query: [(found.node_id, found.score) for found in retriever.retrieve(query)]}


def of_haystack(dataset: Dataset, embedder: Embedder) -> dict[str, Any]:
    from haystack import Document, Pipeline, component
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    @component
    class QueryVector:
        @component.output_types(embedding=list[float])
        def run(self, text: str) -> dict[str, list[float]]:
            return {"embedding": list_of_lists(embedder.embed([text], role="query"))[0]}

    texts = texts_of(dataset)
    vectors = list_of_lists(embedder.embed(list(texts.values())))
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(
        [
            Document(id=name, content=text, embedding=row)
            for (name, text), row in zip(texts.items(), vectors, strict=True)
        ]
    )
    pipeline = Pipeline()
    pipeline.add_component("vector", QueryVector())
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=DEPTH))
    pipeline.connect("vector.embedding", "retriever.query_embedding")
    label = f"Haystack {version('haystack-ai')}"
    words = InMemoryBM25Retriever(store, top_k=DEPTH)

    def hits(found: dict[str, Any]) -> list[tuple[str, float]]:
        return [(one.id, one.score) for one in found["documents"]]

    return {
        f"{label} InMemoryEmbeddingRetriever": lambda query: hits(
            pipeline.run({"vector": {"text": query}})["retriever"]
        ),
        f"{label} InMemoryBM25Retriever": lambda query: hits(words.run(query)),
    }


FROM_ELSEWHERE: dict[str, Callable[[Dataset, Embedder], dict[str, Any]]] = {
    "LangChain": of_langchain,
    "LlamaIndex": of_llamaindex,
    "Haystack": of_haystack,
}


def sources_of(documents: Any) -> list[str]:
    return [document.metadata["source"] for document in documents]


def texts_of(dataset: Dataset) -> dict[str, str]:
    return {one.id: one.whole for one in dataset.corpus if one.whole}


def list_of_lists(vectors: Any) -> list[list[float]]:
    found: list[list[float]] = vectors.tolist()
    return found


if __name__ == "__main__":
    main()
