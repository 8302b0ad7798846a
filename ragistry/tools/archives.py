"""Archives: collections on remote Chroma servers, which an agent searches with the tool `search_archives`.

Text Embeddings Inference embeds the query, and all archives are searched at once. The slim package ``chromadb-client``
is enough.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from ragistry.config.archives import TOP_K_RANGE, ArchiveSettings, RagArchiveConfig, archive_settings
from ragistry.errors import EmptyQueryError
from ragistry.library.remote.collection import Archive, embed_query
from ragistry.library.remote.technique import ArchiveTechnique, archive_target, archive_technique
from ragistry.tools.archive_search import ArchiveAnswer, ArchiveSearch, ChromaRagConfig, extract_rag_config
from ragistry.tools.archive_text import WORDS, answer_text
from ragistry.utils.quoting import visible_line

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
"""Maximum length of a query in characters; no embedding model reads more."""
MAX_DESCRIPTION = 500


def create_archive_search_tool(
    rag_config: ChromaRagConfig | None, settings: ArchiveSettings | None = None
) -> StructuredTool | None:
    """Create the tool ``search_archives(query, top_k=5)`` over the configured archives.

    It always answers with text; ``artifact`` has the passages as LangChain documents. Connections are opened on first
    use, kept, and closed when the tool is garbage-collected.

    Args:
        rag_config: The archives.
        settings: Settings; None for those of the environment.

    Returns:
        The tool; None without archives.

    Raises:
        ConfigError: A variable of the environment is invalid, or ``langchain-core`` is not installed.
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

    weakref.finalize(search_archives, archives.close)  # not with the tool: it may have copies
    return structured_tool(search_archives, NAME, _description(archives.archives), _arguments(settings.top_k))


def _arguments(top_k: int) -> type[BaseModel]:
    """Build the schema of the arguments. Others are refused, so that a model learns that they do not exist.

    The limits of ``top_k`` are not in the schema, because values outside are clamped, not refused.
    """
    low, high = TOP_K_RANGE
    return create_model(
        "SearchArchives",
        __config__=ConfigDict(extra="forbid"),
        query=(str, Field(max_length=MAX_QUERY, description="what to search for, in natural language")),
        top_k=(int | None, Field(default=top_k, description=f"number of passages, {low} to {high}")),
    )


def _description(archives: list[Archive]) -> str:
    lines = [f"- {archive.name}: {archive.config.description}".removesuffix(": ") for archive in archives]
    return "\n".join(
        [
            "Search the document archives for passages on a topic, by meaning. Use it when the answer may be in one "
            "of these archives:",
            *(visible_line(line, MAX_DESCRIPTION) for line in lines),
        ]
    )
