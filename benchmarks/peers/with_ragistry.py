"""Ragistry: `Ingest` into a `LocalStore`, and the techniques naive and hybrid over it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.peers.side import FETCH, TOP_K, Chunk, Corpus, Ready, serve
from ragistry.library.ingest.run import Ingest
from ragistry.library.ingest.source import ReadOptions, SourceText
from ragistry.stores.local import LocalStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.hybrid import HybridTechnique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.types import Document, EmbedderFingerprint, Role


class ReadyEmbedder:
    """The vectors that are there already, as an embedder."""

    def __init__(self, ready: Ready) -> None:
        self.ready = ready
        self.fingerprint = EmbedderFingerprint("ready", "ready", "", len(next(iter(ready.vectors.values()))))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Any:  # noqa: ARG002
        return self.ready.rows(texts)


class Ragistry:
    """Meets `Side`. It is given whole sources, and cuts them into the same chunks as its peers are given."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        self.folder = folder
        self.ready = Ready(corpus)
        self.embedder = ReadyEmbedder(self.ready)
        # No two of the paragraphs, which are the chunks, fit into one.
        self.reading = ReadOptions(max(len(chunk.text) for chunk in corpus.chunks), 0)
        self.sources: dict[str, list[SourceText]] = {}
        for name, chunks in corpus.by_source.items():
            source = SourceText("\n\n".join(chunk.text for chunk in chunks), name)
            self.sources.setdefault(chunks[0].metadata["collection"], []).append(source)

    def ingest(self) -> None:
        with closing(LocalStore(self.folder)) as store:
            for collection, sources in self.sources.items():
                Ingest(store, self.embedder, self.reading, collection).run(sources)
            store.flush()

    def open(self) -> None:
        self.store = LocalStore(self.folder)
        self.naive = NaiveRAGTechnique({"top_k": TOP_K}, store=self.store, embedder=self.embedder)

    def open_words(self) -> None:
        bm25 = BM25Technique({"top_k": TOP_K}, store=self.store)
        self.both = HybridTechnique({"top_k": TOP_K, "fetch": FETCH}, bases=[self.naive, bm25])

    def query(self, text: str) -> list[str]:
        return _names(self.naive.retrieve(text))

    def filtered(self, text: str, collection: str) -> list[str]:
        return _names(self.naive.retrieve(text, where={"collection": collection}))

    def hybrid(self, text: str) -> list[str]:
        return _names(self.both.retrieve(text))

    def count(self) -> int:
        return self.store.count()


def _names(documents: Sequence[Document]) -> list[str]:
    return [Chunk.name(document.metadata) for document in documents]


if __name__ == "__main__":
    serve(Ragistry)
