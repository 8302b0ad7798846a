"""LlamaIndex: an `IngestionPipeline` with a document store, `ChromaVectorStore`, and a fusion with `BM25Retriever`.

The document store remembers whole documents, so that what has not changed is seen before it is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chromadb
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms.mock import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, TextNode, TransformComponent
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25 import BM25Retriever
from llama_index.vector_stores.chroma import ChromaVectorStore

from benchmarks.peers.side import FETCH, TOP_K, Chunk, Corpus, Ready, serve

DOCUMENTS_AT_ONCE = 125
"""Of 40 chunks: its store hands all of them to ChromaDB together, which takes no more than 5,461."""


class ReadyNodes(TransformComponent):
    """Documents to the chunks that are there already."""

    by_source: dict[str, Any]

    def __call__(self, nodes: Sequence[BaseNode], **_: Any) -> list[BaseNode]:
        return [
            _node(chunk).model_copy(
                update={"relationships": {NodeRelationship.SOURCE: document.as_related_node_info()}}
            )
            for document in nodes
            for chunk in self.by_source[document.node_id]
        ]


class ReadyEmbedding(BaseEmbedding):
    """The vectors that are there already."""

    ready: Any

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.ready.lists([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self.ready.lists(texts)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.ready.lists([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class LlamaIndex:
    """Meets `Side`."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        self.folder, self.records = folder, folder / "documents.json"
        self.ready = Ready(corpus)
        self.embedding = ReadyEmbedding(ready=self.ready, embed_batch_size=1_000)
        self.corpus = corpus
        self.documents = [
            Document(id_=name, text="\n\n".join(chunk.text for chunk in chunks))
            for name, chunks in corpus.by_source.items()
        ]

    def ingest(self) -> None:
        self.folder.mkdir(exist_ok=True)
        known = self.records.exists()
        documents = SimpleDocumentStore.from_persist_path(str(self.records)) if known else SimpleDocumentStore()
        pipeline = IngestionPipeline(
            transformations=[ReadyNodes(by_source=self.corpus.by_source), self.embedding],
            vector_store=self._vectors(),
            docstore=documents,
            docstore_strategy=DocstoreStrategy.UPSERTS,
            disable_cache=True,
        )
        for start in range(0, len(self.documents), DOCUMENTS_AT_ONCE):
            pipeline.run(documents=self.documents[start : start + DOCUMENTS_AT_ONCE])
        documents.persist(str(self.records))

    def open(self) -> None:
        self.index = VectorStoreIndex.from_vector_store(self._vectors(), embed_model=self.embedding)
        self.retriever = self.index.as_retriever(similarity_top_k=TOP_K)
        self.by_collection: dict[str, Any] = {}

    def open_words(self) -> None:
        words = BM25Retriever.from_defaults(nodes=[_node(c) for c in self.corpus.chunks], similarity_top_k=FETCH)
        self.both = QueryFusionRetriever(
            [self.index.as_retriever(similarity_top_k=FETCH), words],
            llm=MockLLM(),  # one query, as it was asked: no model writes others
            num_queries=1,
            mode="reciprocal_rerank",
            similarity_top_k=TOP_K,
            use_async=False,
        )

    def query(self, text: str) -> list[str]:
        return _names(self.retriever.retrieve(text))

    def filtered(self, text: str, collection: str) -> list[str]:
        if collection not in self.by_collection:
            only = MetadataFilters(filters=[MetadataFilter(key="collection", value=collection)])
            self.by_collection[collection] = self.index.as_retriever(similarity_top_k=TOP_K, filters=only)
        return _names(self.by_collection[collection].retrieve(text))

    def hybrid(self, text: str) -> list[str]:
        return _names(self.both.retrieve(text))

    def count(self) -> int:
        return int(self._vectors().client.count())

    def _vectors(self) -> ChromaVectorStore:
        client = chromadb.PersistentClient(str(self.folder / "chroma"))
        cosine: Any = {"hnsw": {"space": "cosine"}}
        collection = client.get_or_create_collection("chunks", configuration=cosine, embedding_function=None)
        return ChromaVectorStore(chroma_collection=collection)


def _node(chunk: Chunk) -> TextNode:
    keys = list(chunk.metadata)
    name = Chunk.name(chunk.metadata)
    return TextNode(id_=name, text=chunk.text, metadata=chunk.metadata, excluded_embed_metadata_keys=keys)


def _names(found: list[NodeWithScore]) -> list[str]:
    return [Chunk.name(hit.node.metadata) for hit in found]


if __name__ == "__main__":
    serve(LlamaIndex)
