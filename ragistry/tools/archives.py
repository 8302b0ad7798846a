"""Archives: collections on remote Chroma servers, which an agent searches with the tool `search_archives`.

Text Embeddings Inference embeds the query, and all archives are searched at once. The slim package ``chromadb-client``
is enough.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from ragistry.config.archives import TOP_K_RANGE, ArchiveSettings, RagArchiveConfig, archive_settings
from ragistry.errors import EmptyQueryError
from ragistry.library.remote.collection import Archive, embed_query
from ragistry.library.remote.technique import ArchiveTechnique, archive_target, archive_technique
from ragistry.tools.archive_search import ArchiveAnswer, ArchiveSearch, ChromaRagConfig, extract_rag_config
from ragistry.tools.archive_text import answer_text
from ragistry.tools.tool import Tool
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


@dataclass(frozen=True, slots=True)
class ArchiveRequest:
    """A search of archives. ``top_k``: values outside of 1 to 20 are clamped; None for that of the environment."""

    query: str = field(metadata={"description": "what to search for, in natural language", "max_length": MAX_QUERY})
    top_k: int | None = field(
        default=None, metadata={"description": "number of passages, {} to {}".format(*TOP_K_RANGE)}
    )


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
    archives = ArchiveSearch(rag_config, settings)
    tool = Tool(
        NAME,
        "Search the archives",
        _description(archives.archives),
        ArchiveRequest,
        ArchiveAnswer,
        _search,
        partial(answer_text, language=rag_config.language or settings.language),
    )
    schema = tool.schema()
    schema["function"]["parameters"]["properties"]["top_k"]["default"] = settings.top_k
    call = partial(tool.call, archives)
    weakref.finalize(call, archives.close)  # not with the LangChain tool: it may have copies
    return structured_tool(schema, call, lambda answer: [langchain_document(one) for one in answer.documents])


def _search(archives: ArchiveSearch, asked: ArchiveRequest) -> ArchiveAnswer:
    try:
        return archives.search(asked.query, asked.top_k)
    except EmptyQueryError:
        return ArchiveAnswer([], (), ())


def _description(archives: list[Archive]) -> str:
    lines = [f"- {archive.name}: {archive.config.description}".removesuffix(": ") for archive in archives]
    return "\n".join(
        [
            "Search the document archives for passages on a topic, by meaning. Use it when the answer may be in one "
            "of these archives:",
            *(visible_line(line, MAX_DESCRIPTION) for line in lines),
        ]
    )
