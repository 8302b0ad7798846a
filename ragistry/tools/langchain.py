"""LangChain adapters of the library: a retriever and the tools. Needs the extra ``langchain``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, PrivateAttr

from ragistry.errors import CollectionNotFoundError, ConfigError
from ragistry.utils.installation import install_command
from ragistry.utils.limits import check_top_k
from ragistry.utils.removed import no_attribute
from ragistry.utils.wording import no_collection

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document as LangChainDocument
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import StructuredTool
except ModuleNotFoundError as error:
    raise ConfigError(f"{error.name!r} is not installed; run: {install_command('langchain')}") from error

if TYPE_CHECKING:
    from ragistry.library.service import DocumentService
    from ragistry.tools.reach import Reach
    from ragistry.tools.search_library import SearchLibraryTool
    from ragistry.tools.tool import ToolAnswer
    from ragistry.types import Document, Where
    from ragistry.workspace import Workspace


class LibraryRetriever(BaseRetriever):
    """Searches a library, or one of its collections.

    Attributes:
        library: The library.
        technique: Name of a technique; None for the default.
        collection: The collection to search; None for all. A call cannot choose another.
        k: Number of documents; None for the default. ``invoke(query, k=…)`` overrides it once, and
            ``invoke(query, where=…)`` also limits that search by a condition on metadata.
        allowed: The collections that may be searched; None for all.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    library: Any
    technique: str | None = None
    collection: str | None = None
    k: int | None = None
    allowed: frozenset[str] | None = None
    _reach: Reach | None = PrivateAttr(None)

    @property
    def reach(self) -> Reach:
        """The collections in reach. Raises `CollectionNotFoundError` if an allowed one does not exist."""
        from ragistry.tools.reach import Reach

        known = self._reach  # a copy may have another library, or other limits
        if known is None or known.library is not self.library or known.allowed != self.allowed:
            known = self._reach = Reach(self.library, None if self.allowed is None else sorted(self.allowed))
        return known

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002, LangChain passes it by name
        k: int | None = None,
        where: Where | None = None,
    ) -> list[LangChainDocument]:
        if self.collection is not None and self.allowed is not None:
            _check_among([self.collection], self.reach)
        limits = [one for one in (None if self.collection else self.reach.where(), where) if one is not None]
        condition = {"$and": limits} if len(limits) > 1 else next(iter(limits), None)
        limit = self.k if k is None else k
        found = self.library.search(query, self.collection, limit, technique=self.technique, where=condition)
        return [langchain_document(document) for document in found.documents]


def library_retriever(
    searched: Workspace | DocumentService | SearchLibraryTool,
    technique: str | None = None,
    collection: str | None = None,
    top_k: int | None = None,
    *,
    allowed: Sequence[str] | None = None,
) -> LibraryRetriever:
    """Create a retriever over a library; its documents have the id, the metadata, and ``score`` in the metadata.

    ``invoke`` raises as `DocumentService.search` does.

    Args:
        searched: A workspace, its library, or a tool. The retriever of a tool has the same reach, and by default the
            same technique and number of results.
        technique: Name of a technique; None for the default.
        collection: The collection to search; None for all.
        top_k: Number of documents; None for the default.
        allowed: The collections that may be searched; None for all.

    Raises:
        CollectionNotFoundError: A collection does not exist, or is out of reach.
        UnknownTechniqueError: The technique does not exist.
        InvalidLimitError: ``top_k`` is invalid.
        ConfigError: ``searched`` has another type.
    """
    from ragistry.library.service import DocumentService
    from ragistry.tools.reach import Reach
    from ragistry.tools.search_library import SearchLibraryTool
    from ragistry.workspace import Workspace

    if not isinstance(searched, Workspace | DocumentService | SearchLibraryTool):
        raise ConfigError(f"{searched!r:.80} cannot be searched; pass a Workspace, its library, or a SearchLibraryTool")
    library = searched if isinstance(searched, DocumentService) else searched.library
    reach = Reach(library, allowed)
    if isinstance(searched, SearchLibraryTool):
        technique, top_k = technique or searched.reach.technique, searched.reach.n if top_k is None else top_k
        if allowed is None:
            reach = searched.reach
        _check_among(reach.names(), searched.reach)
    if technique is not None:
        library.registry.entry(technique)
    if top_k is not None:
        check_top_k(top_k)
    if collection is not None:
        _check_among([collection], reach)
    return LibraryRetriever(library=library, technique=technique, collection=collection, k=top_k, allowed=reach.allowed)


def _check_among(names: Sequence[str], reach: Reach) -> None:
    """Raise `CollectionNotFoundError` for a name out of reach, without naming other collections."""
    for name in names:
        if name not in reach.names():
            raise CollectionNotFoundError(no_collection(name, reach.names()))


def library_tool(tool: SearchLibraryTool) -> StructuredTool:
    """Create ``search_library`` as a LangChain tool; its artifact has the documents quoted in the text.

    The schema does not change later: create the tool again after a change of the collections.
    """
    return structured_tool(
        tool.schema(), tool.answer, lambda answer: [langchain_document(one) for one in answer.documents]
    )


def reading_tools(tool: SearchLibraryTool) -> list[StructuredTool]:
    """Create the tools that read texts as LangChain tools; the artifact of each has its answer as plain values."""
    from ragistry.tools.toolbox import READING

    return [
        structured_tool(one.schema(), partial(one.call, tool.reach), lambda answer: answer.structured)
        for one in READING.values()
    ]


def structured_tool(
    schema: Mapping[str, Any], call: Callable[[Any], ToolAnswer], artifact: Callable[[ToolAnswer], Any]
) -> StructuredTool:
    """Create a LangChain tool of a tool in OpenAI's format."""

    def run(arguments: str | dict[str, Any]) -> tuple[str, Any]:
        answer = call(arguments)
        return answer.text, artifact(answer)

    return WholeArgumentsTool.from_function(
        run,
        name=schema["function"]["name"],
        description=schema["function"]["description"],
        args_schema=schema["function"]["parameters"],
        response_format="content_and_artifact",
    )


def langchain_document(document: Document) -> LangChainDocument:
    """Convert a document to LangChain's, with ``score`` in its metadata."""
    return LangChainDocument(
        page_content=document.content, metadata={**document.metadata, "score": document.score}, id=document.id or None
    )


class WholeArgumentsTool(StructuredTool):
    """Passes its arguments on as one mapping, so that invented names do not match parameters of LangChain."""

    def _to_args_and_kwargs(
        self,
        tool_input: str | dict[str, Any],
        tool_call_id: str | None,  # noqa: ARG002, LangChain passes it by position
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        return (), {"arguments": {"query": tool_input} if isinstance(tool_input, str) else tool_input}


def __getattr__(name: str) -> Any:
    raise no_attribute(__name__, name)
