"""`chunk_document` under its fixed address; `ragistry.chunking` contains it."""

from ragistry.chunking.chunker import chunk_document

__all__ = ["chunk_document"]
