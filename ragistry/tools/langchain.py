"""The library in LangChain's words: a retriever, and the search tool. Needs ``pip install 'ragistry[langchain]'``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ragistry.errors import ConfigError

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document as LangChainDocument
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import StructuredTool
except ModuleNotFoundError as error:
    raise ConfigError(f"{error.name!r} is not installed; run: pip install 'ragistry[langchain]'") from error

if TYPE_CHECKING:
    from ragistry.library.service import DocumentService
    from ragistry.tools.search_library import SearchLibraryTool
    from ragistry.types import Document
    from ragistry.workspace import Workspace


class LibraryRetriever(BaseRetriever):
    """Searches a library, or one ``collection`` of it, by a ``technique``; None: the library's own choice.

    ``k``: how many documents; ``invoke(query, k=…)`` asks for another number once. Which collection is searched is
    decided here alone.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    library: Any
    technique: str | None = None
    collection: str | None = None
    k: int | None = None

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002, LangChain gives it by name
        k: int | None = None,
    ) -> list[LangChainDocument]:
        found = self.library.search(query, self.collection, self.k if k is None else k, technique=self.technique)
        return [langchain_document(document) for document in found.documents]


def library_retriever(
    workspace_or_library: Workspace | DocumentService,
    technique: str | None = None,
    collection: str | None = None,
    top_k: int | None = None,
) -> LibraryRetriever:
    """A retriever over a workspace's library; its documents carry the id, the metadata, and among these the score.

    Its ``invoke`` raises as `DocumentService.search` does.
    """
    library = getattr(workspace_or_library, "library", workspace_or_library)
    return LibraryRetriever(library=library, technique=technique, collection=collection, k=top_k)


def library_tool(tool: SearchLibraryTool) -> StructuredTool:
    """``search_library`` as LangChain's agents call it; its artifact is the documents that are quoted in the text.

    The schema is that of the moment: make the tool anew where the collections may have changed.
    """

    def search_library(arguments: str | dict[str, Any]) -> tuple[str, list[LangChainDocument]]:
        answer = tool.answer(arguments)
        return answer.text, [langchain_document(document) for document in answer.documents]

    function = tool.schema()["function"]
    return WholeArgumentsTool.from_function(
        search_library,
        name=function["name"],
        description=function["description"],
        args_schema=function["parameters"],
        response_format="content_and_artifact",
    )


def langchain_document(document: Document) -> LangChainDocument:
    """The same document in LangChain's words, with the ``score`` among its metadata."""
    return LangChainDocument(
        page_content=document.content, metadata={**document.metadata, "score": document.score}, id=document.id or None
    )


class WholeArgumentsTool(StructuredTool):
    """Hands its arguments on as one mapping, so that no name that a model invents meets a parameter of LangChain's."""

    def _to_args_and_kwargs(
        self,
        tool_input: str | dict[str, Any],
        tool_call_id: str | None,  # noqa: ARG002, LangChain gives it by position
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        return (), {"arguments": {"query": tool_input} if isinstance(tool_input, str) else tool_input}


def structured_tool(
    function: Callable[..., tuple[str, Any]], name: str, description: str, arguments: type[BaseModel]
) -> StructuredTool:
    """A tool whose ``function`` returns what the model reads, and the artifact that goes with it.

    Arguments that do not fit are told to the model, which can then correct them.
    """
    return StructuredTool.from_function(
        function,
        name=name,
        description=description,
        args_schema=arguments,
        response_format="content_and_artifact",
        handle_validation_error=_complaint,
    )


def _complaint(error: Any) -> str:
    if not isinstance(error, ValidationError):
        return f"The arguments do not fit: {error}"
    found = error.errors(include_url=False, include_input=False)
    complaints = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in found]
    return f"The arguments do not fit: {'; '.join(complaints)}."
