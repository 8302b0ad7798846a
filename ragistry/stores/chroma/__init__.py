"""ChromaDB as a store: `ChromaStore`, in a directory or on a server."""

from ragistry.stores.chroma.store import ChromaStore

__all__ = ["ChromaStore"]
