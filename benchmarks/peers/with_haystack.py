"""Haystack: `CacheChecker` and `DocumentWriter` over `ChromaDocumentStore`, and a pipeline that joins it with BM25.

The checker asks for the hash of each source, so that what has not changed is not embedded again. The writer hands over
all documents at once, with the policy that is its default; the store adds them to ChromaDB one by one, as it does with
every policy (chroma-haystack, ``write_documents``).
"""

from __future__ import annotations

from pathlib import Path

from haystack import Document, Pipeline, component
from haystack.components.caching import CacheChecker
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers import InMemoryBM25Retriever
from haystack.components.writers import DocumentWriter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.components.retrievers.chroma import ChromaEmbeddingRetriever
from haystack_integrations.document_stores.chroma import ChromaDocumentStore

from benchmarks.peers.side import FETCH, TOP_K, Chunk, Corpus, Ready, serve


@component
class ReadyChunks:
    """Hashes of sources to the chunks and vectors that are there already."""

    def __init__(self, corpus: Corpus, ready: Ready) -> None:
        self.ready = ready
        self.by_hash = {chunks[0].metadata["source_hash"]: chunks for chunks in corpus.by_source.values()}

    @component.output_types(documents=list[Document])
    def run(self, hashes: list) -> dict[str, list[Document]]:  # as the checker declares them
        chunks = [chunk for one in hashes for chunk in self.by_hash[one]]
        vectors = self.ready.lists([chunk.text for chunk in chunks]) if chunks else []
        return {"documents": [_document(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)]}


class Haystack:
    """Meets `Side`."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        self.folder, self.corpus = folder, corpus
        self.ready = Ready(corpus)
        self.chunks = ReadyChunks(corpus, self.ready)

    def ingest(self) -> None:
        self.open()
        pipeline = Pipeline()
        pipeline.add_component("checker", CacheChecker(self.store, cache_field="meta.source_hash"))
        pipeline.add_component("chunks", ReadyChunks(self.corpus, self.ready))
        pipeline.add_component("writer", DocumentWriter(self.store))
        pipeline.connect("checker.misses", "chunks.hashes")
        pipeline.connect("chunks.documents", "writer.documents")
        pipeline.run({"checker": {"items": list(self.chunks.by_hash)}})

    def open(self) -> None:
        self.store = ChromaDocumentStore("chunks", persist_path=str(self.folder), distance_function="cosine")
        self.retriever = ChromaEmbeddingRetriever(self.store, top_k=TOP_K)

    def open_words(self) -> None:
        words = InMemoryDocumentStore()
        words.write_documents([_document(chunk) for chunk in self.corpus.chunks])
        self.both = Pipeline()
        self.both.add_component("vectors", ChromaEmbeddingRetriever(self.store, top_k=FETCH))
        self.both.add_component("words", InMemoryBM25Retriever(words, top_k=FETCH))
        self.both.add_component("joiner", DocumentJoiner("reciprocal_rank_fusion", top_k=TOP_K))
        self.both.connect("vectors", "joiner")
        self.both.connect("words", "joiner")

    def query(self, text: str) -> list[str]:
        return _names(self.retriever.run(query_embedding=self._vector(text))["documents"])

    def filtered(self, text: str, collection: str) -> list[str]:
        only = {"field": "meta.collection", "operator": "==", "value": collection}
        return _names(self.retriever.run(query_embedding=self._vector(text), filters=only)["documents"])

    def hybrid(self, text: str) -> list[str]:
        answer = self.both.run({"vectors": {"query_embedding": self._vector(text)}, "words": {"query": text}})
        return _names(answer["joiner"]["documents"])

    def count(self) -> int:
        return self.store.count_documents()

    def _vector(self, text: str) -> list[float]:
        return self.ready.lists([text])[0]


def _document(chunk: Chunk, vector: list[float] | None = None) -> Document:
    return Document(id=Chunk.name(chunk.metadata), content=chunk.text, meta=chunk.metadata, embedding=vector)


def _names(documents: list[Document]) -> list[str]:
    return [Chunk.name(document.meta) for document in documents]


if __name__ == "__main__":
    serve(Haystack)
