"""Keep the file of token vectors in step with the chunks of the store."""

from __future__ import annotations

from ragistry.chunking.breadcrumb import searched_text
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.models.runtimes import Runtime
from ragistry.models.token_file import TokenFile, in_8_bits, text_key
from ragistry.protocols import LibraryStore
from ragistry.types import SourceInfo

CHUNKS_AT_ONCE = 256


class TokenVectorKeeper:
    """Adds vectors of new chunks to the file, and removes those of deleted ones.

    The versions of the sources in the store are compared with those in the file. A moved or renamed source keeps its
    vectors. After a crash, the next call completes the work.
    """

    def __init__(self, file: TokenFile, *, runtime: Runtime = "auto") -> None:
        self.file = file
        self._embedder = MiniLMEmbedder(runtime=runtime)

    def follow(self, store: LibraryStore) -> None:
        """Update the file after a write to the store.

        The file has each source completely or not at all.

        Raises:
            StoreError: The store or the file cannot be read or written.
            ModelError: The token vectors cannot be computed.
        """
        stored = {_version(info): info for info in store.sources() if info.source_hash}
        there = self.file.versions()
        self.file.remove(there - stored.keys())
        for version in sorted(stored.keys() - there):
            self._add(store, version, stored[version])

    def discard(self) -> None:
        """Delete the file, because its vectors would no longer be updated."""
        self.file.delete()

    def _add(self, store: LibraryStore, version: str, info: SourceInfo) -> None:
        where = {"$and": [{"collection": info.collection}, {"source_file": info.source_file}]}
        chunks = list(store.scan(where, batch=CHUNKS_AT_ONCE))
        texts = list(dict.fromkeys(searched_text(one.content, one.metadata) for one in chunks))
        vectors = {}
        for start in range(0, len(texts), CHUNKS_AT_ONCE):
            some = texts[start : start + CHUNKS_AT_ONCE]
            for text, rows in zip(some, self._embedder.token_vectors(some), strict=True):
                vectors[text_key(text)] = in_8_bits(rows)
        if len(chunks) == info.chunks:  # otherwise another process is writing it, and will update the file
            self.file.add(version, vectors)


def _version(info: SourceInfo) -> str:
    return f"{info.source_hash} {info.chunks}"
