"""The types of the storage contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragistry import types


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A piece of a file of a documentation repository, before it is stored.

    Attributes:
        chunk_id: Id that is unique in its collection.
        content: The text.
        file_path: Path relative to the repository's root, with ``/``.
        repository_name: Name of the repository.
        heading_context: Headings above the text, such as "Installation > Prerequisites".
        chunk_index: Position in the file, from 0.
        token_count: Number of tokens.
        metadata: Further JSON values (``title``, ``section``, ``tags``, ``has_code``, ``processed_at`` …), which are
            returned unchanged. ``repository``, ``file_path``, ``heading_context``, ``chunk_index`` and ``token_count``
            must not differ from the chunk's fields.
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
    """A chunk that was found; its score is the cosine similarity, 0 to 1."""

    chunk_id: str
    content: str
    score: float
    repository: str
    file_path: str
    heading_context: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RetrievalResult(types.RetrievalResult):
    """The result of `search_chunks`; ``matches`` has the documents in another form."""

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
    """A collection in the result of `list_collections`."""

    name: str
    chunk_count: int
    metadata: dict[str, Any]
