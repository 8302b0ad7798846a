"""The library in LangChain's words: a retriever, and the search tool. Needs the extra ``langchain``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from ragistry.errors import CollectionNotFoundError, ConfigError
from ragistry.utils.installation import install_command
from ragistry.utils.limits import check_top_k
from ragistry.utils.wording import listed

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
    from ragistry.types import Document
    from ragistry.workspace import Workspace


class LibraryRetriever(BaseRetriever):
    """Searches a library, or one ``collection`` of it, by a ``technique``; None: the library's own choice.

    ``allowed``: the only collections in reach; None: all. ``k``: how many documents; ``invoke(query, k=…)`` asks for
    another number once. Which collection is searched is decided here alone.
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
        """What may be searched; raises `CollectionNotFoundError` for an allowed collection that is not there."""
        from ragistry.tools.reach import Reach

        known = self._reach  # a copy may be of another library, or allowed less
        if known is None or known.library is not self.library or known.allowed != self.allowed:
            known = self._reach = Reach(self.library, None if self.allowed is None else sorted(self.allowed))
        return known

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002, LangChain gives it by name
        k: int | None = None,
    ) -> list[LangChainDocument]:
        if self.collection is not None and self.allowed is not None:
            _check_among([self.collection], self.reach)
        where = None if self.collection else self.reach.where()
        limit = self.k if k is None else k
        found = self.library.search(query, self.collection, limit, technique=self.technique, where=where)
        return [langchain_document(document) for document in found.documents]


def library_retriever(
    searched: Workspace | DocumentService | SearchLibraryTool,
    technique: str | None = None,
    collection: str | None = None,
    top_k: int | None = None,
    *,
    allowed: Sequence[str] | None = None,
) -> LibraryRetriever:
    """A retriever over a workspace's library; its documents carry the id, the metadata, and among these the score.

    ``allowed``: the only collections in reach; None: all. One that is made of a tool reaches what the tool does, by the
    tool's technique and number unless others are given. Raises `CollectionNotFoundError` for a name that is not there
    or out of reach, `UnknownTechniqueError`, `InvalidLimitError`, `ConfigError` for what is none of the three;
    ``invoke`` raises as `DocumentService.search` does.
    """
    from ragistry.library.service import DocumentService
    from ragistry.tools.reach import Reach
    from ragistry.tools.search_library import SearchLibraryTool
    from ragistry.workspace import Workspace

    if not isinstance(searched, Workspace | DocumentService | SearchLibraryTool):
        raise ConfigError(f"{searched!r:.80} cannot be searched; give a Workspace, its library, or a SearchLibraryTool")
    library = searched if isinstance(searched, DocumentService) else searched.library
    reach = Reach(library, allowed)
    if isinstance(searched, SearchLibraryTool):
        technique, top_k = technique or searched.technique, searched.n if top_k is None else top_k
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
    """Raise `CollectionNotFoundError` for a name that is not in reach; others are not told of."""
    for name in names:
        if name not in reach.names():
            raise CollectionNotFoundError(f"no collection {name!r}; there are {listed(reach.names())}")


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
