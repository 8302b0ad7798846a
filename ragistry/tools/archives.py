"""Archives: collections of remote Chroma servers, searched by an agent through the tool `search_archives`.

A query is embedded by Text Embeddings Inference, and every archive is asked at once. Only what the slim package
``chromadb-client`` has is used.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from ragistry.config.archives import TOP_K_RANGE, ArchiveSettings, RagArchiveConfig, archive_settings
from ragistry.errors import EmptyQueryError
from ragistry.library.remote.collection import Archive, embed_query
from ragistry.library.remote.technique import ArchiveTechnique, archive_target, archive_technique
from ragistry.tools.archive_config import ChromaRagConfig, extract_rag_config
from ragistry.tools.archive_search import ArchiveAnswer, ArchiveSearch
from ragistry.tools.archive_text import WORDS, answer_text
from ragistry.utils.quoting import one_line

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool

__all__ = [
    "ArchiveAnswer",
    "ArchiveSearch",
    "ArchiveSettings",
    "ArchiveTechnique",
    "ChromaRagConfig",
    "RagArchiveConfig",
    "archive_settings",
    "archive_target",
    "archive_technique",
    "create_archive_search_tool",
    "embed_query",
    "extract_rag_config",
]

NAME = "search_archives"
MAX_QUERY = 10_000
"""Characters; no embedding model takes in more."""
MAX_DESCRIPTION = 500


def create_archive_search_tool(
    rag_config: ChromaRagConfig | None, settings: ArchiveSettings | None = None
) -> StructuredTool | None:
    """The tool ``search_archives(query, top_k=5)`` over the configured archives; None where there are none.

    It answers with text, in any case, and gives the passages as ``artifact``, a list of LangChain's documents.
    ``settings`` None: those of the environment. Connections are made on first use, kept, and closed when the tool is
    forgotten. Raises `ConfigError` for a bad variable of the environment, or where ``langchain-core`` is not installed.
    """
    if rag_config is None or not rag_config.archives:
        return None
    from ragistry.tools.langchain import langchain_document, structured_tool

    settings = settings or archive_settings()
    language = rag_config.language or settings.language
    archives = ArchiveSearch(rag_config, settings)

    def search_archives(query: str, top_k: int | None = None) -> tuple[str, list[Any]]:
        try:
            answer = archives.search(query, top_k)
        except EmptyQueryError:
            return WORDS[language].empty, []
        return answer_text(answer, language), [langchain_document(document) for document in answer.documents]

    weakref.finalize(search_archives, archives.close)  # not with the tool, of which there may be copies
    return structured_tool(search_archives, NAME, _description(archives.archives), _arguments(settings.top_k))


def _arguments(top_k: int) -> type[BaseModel]:
    """The tool's arguments. What is not among them is refused, so that a model learns that nothing else is to be had.

    The limits of ``top_k`` are not in the schema: what is outside is clamped, not refused.
    """
    low, high = TOP_K_RANGE
    return create_model(
        "SearchArchives",
        __config__=ConfigDict(extra="forbid"),
        query=(str, Field(max_length=MAX_QUERY, description="what to look for, in natural language")),
        top_k=(int | None, Field(default=top_k, description=f"how many passages, {low} to {high}")),
    )


def _description(archives: list[Archive]) -> str:
    lines = [f"- {archive.name}: {archive.config.description}".removesuffix(": ") for archive in archives]
    return "\n".join(
        [
            "Search the document archives for passages on a topic, by meaning. Use it when the answer may be in one "
            "of these archives:",
            *(one_line(line, MAX_DESCRIPTION) for line in lines),
        ]
    )
