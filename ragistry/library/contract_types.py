"""The values of the storage contract, by the names and fields that it gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragistry import types


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A piece of a file of a documentation repository, before it is stored.

    ``chunk_id``: unique in its collection. ``file_path``: relative to the repository's root, with ``/``.
    ``heading_context``: "Installation > Prerequisites". ``metadata``: what else is known (``title``, ``section``,
    ``tags``, ``has_code``, ``processed_at`` …), values as JSON has them, which come back as they were given.
    ``repository``, ``file_path``, ``heading_context``, ``chunk_index`` and ``token_count`` among them may not differ
    from the chunk's own.
    """

    chunk_id: str
    content: str
    file_path: str
    repository_name: str
    heading_context: str
    chunk_index: int
    token_count: int
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RetrievalMatch:
    """A chunk that a search found; ``score``: cosine similarity, 0 to 1; ``metadata``: all that is stored of it."""

    chunk_id: str
    content: str
    score: float
    repository: str
    file_path: str
    heading_context: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RetrievalResult(types.RetrievalResult):
    """The answer to `search_chunks`: ``documents`` as every search has them, and the same as ``matches``."""

    @property
    def matches(self) -> list[RetrievalMatch]:
        """The documents in the contract's form, best first."""
        return [
            RetrievalMatch(
                document.id,
                document.content,
                document.score,
                str(document.metadata.get("repository", "")),
                str(document.metadata.get("file_path", "")),
                str(document.metadata.get("heading_context", "")),
                document.metadata,
            )
            for document in self.documents
        ]


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection as `list_collections` names it."""

    name: str
    chunk_count: int
    metadata: dict[str, Any]
