"""Keep the file of token vectors in step with the chunks of the store."""

from __future__ import annotations

from collections.abc import Sequence

from ragistry.chunking.breadcrumb import searched_text
from ragistry.models.token_file import TokenEmbedder, TokenFile, in_8_bits, text_key
from ragistry.protocols import LibraryStore
from ragistry.types import SourceInfo

CHUNKS_AT_ONCE = 256


class TokenVectorKeeper:
    """Adds vectors of new chunks to the file, and removes those of deleted ones.

    The versions of the sources in the store are compared with those in the file. A moved or renamed source keeps its
    vectors. After a crash, the next call completes the work.
    """

    def __init__(self, file: TokenFile, embedders: Sequence[TokenEmbedder]) -> None:
        self.file = file
        self._embedders = embedders

    def follow(self, store: LibraryStore) -> None:
        """Update the file after a write to the store.

        The file has each source completely or not at all.

        Raises:
            StoreError: The store or the file cannot be read or written.
            ModelError: The token vectors cannot be computed.
        """
        models = {embedder.token_key: embedder for embedder in self._embedders}
        stored = {
            _version(info, model): (info, model) for info in store.sources() if info.source_hash for model in models
        }
        there = self.file.versions()
        self.file.remove(there - stored.keys())
        for version in sorted(stored.keys() - there):
            info, model = stored[version]
            self._add(store, version, info, model, models[model])

    def discard(self) -> None:
        """Delete the file, because its vectors would no longer be updated."""
        self.file.delete()

    def _add(self, store: LibraryStore, version: str, info: SourceInfo, model: str, embedder: TokenEmbedder) -> None:
        where = {"$and": [{"collection": info.collection}, {"source_file": info.source_file}]}
        chunks = list(store.scan(where, batch=CHUNKS_AT_ONCE))
        texts = list(dict.fromkeys(searched_text(one.content, one.metadata) for one in chunks))
        vectors = {}
        for start in range(0, len(texts), CHUNKS_AT_ONCE):
            some = texts[start : start + CHUNKS_AT_ONCE]
            for text, rows in zip(some, embedder.token_vectors(some), strict=True):
                vectors[text_key(text, model)] = in_8_bits(rows)
        if len(chunks) == info.chunks:  # otherwise another process is writing it, and will update the file
            self.file.add(version, vectors)


def _version(info: SourceInfo, model: str) -> str:
    return f"{info.source_hash} {info.chunks} {model}".rstrip()
