"""ChromaDB as a store: `ChromaStore`, for a directory of this process or a server."""

from ragistry.stores.chroma.store import ChromaStore

__all__ = ["ChromaStore"]
