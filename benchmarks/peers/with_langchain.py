"""LangChain: `index` with its record manager, `Chroma`, and an ensemble of it and `BM25Retriever`.

Of the ways to re-ingest that its documentation names, "full" with large batches is the fastest.
"""

from __future__ import annotations

from pathlib import Path

from langchain_chroma import Chroma
from langchain_classic.indexes import SQLRecordManager
from langchain_classic.retrievers import EnsembleRetriever
from langchain_community.retrievers import BM25Retriever
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import index

from benchmarks.peers.side import FETCH, TOP_K, Chunk, Corpus, Ready, serve

BATCH = 5_000
"""As many as ChromaDB takes at once, or nearly."""


class ReadyEmbeddings(Embeddings):
    """The vectors that are there already."""

    def __init__(self, ready: Ready) -> None:
        self.ready = ready

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.ready.lists(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.ready.lists([text])[0]


class LangChain:
    """Meets `Side`."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        self.folder = folder
        self.ready = Ready(corpus)
        self.documents = [Document(page_content=chunk.text, metadata=chunk.metadata) for chunk in corpus.chunks]

    def ingest(self) -> None:
        self.open()
        records = SQLRecordManager("chunks", db_url=f"sqlite:///{self.folder / 'records.db'}")
        records.create_schema()
        index(self.documents, records, self.store, batch_size=BATCH, cleanup="full", key_encoder="blake2b")

    def open(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.store = Chroma(
            "chunks",
            embedding_function=ReadyEmbeddings(self.ready),
            persist_directory=str(self.folder / "chroma"),
            collection_configuration={"hnsw": {"space": "cosine"}},
        )

    def open_words(self) -> None:
        words = BM25Retriever.from_documents(self.documents, k=FETCH)
        vectors = self.store.as_retriever(search_kwargs={"k": FETCH})
        self.both = EnsembleRetriever(retrievers=[vectors, words], weights=[0.5, 0.5], c=60)

    def query(self, text: str) -> list[str]:
        return _names(self.store.similarity_search(text, k=TOP_K))

    def filtered(self, text: str, collection: str) -> list[str]:
        return _names(self.store.similarity_search(text, k=TOP_K, filter={"collection": collection}))

    def hybrid(self, text: str) -> list[str]:
        return _names(self.both.invoke(text)[:TOP_K])

    def count(self) -> int:
        return len(self.store.get(include=[])["ids"])


def _names(documents: list[Document]) -> list[str]:
    return [Chunk.name(document.metadata) for document in documents]


if __name__ == "__main__":
    serve(LangChain)
