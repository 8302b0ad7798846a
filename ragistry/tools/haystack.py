"""A Haystack retriever component over the library. Needs the extra ``haystack``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ragistry.errors import ConfigError
from ragistry.types import SearchRequest, Where
from ragistry.utils.installation import install_command
from ragistry.utils.limits import check_top_k
from ragistry.workspace import open_workspace

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ModuleNotFoundError as error:
    raise ConfigError(f"{error.name!r} is not installed; run: {install_command('haystack')}") from error


@component
class LibraryRetriever:
    """Searches the library of a workspace, or one of its collections.

    The workspace is opened by ``warm_up``, or by the first run. A pipeline with this component can be saved; to load
    it, Haystack wants ``Pipeline.load(…, allowed_modules=["ragistry.tools.haystack"])``.

    Args:
        workspace: Folder of the workspace.
        technique: Name of a technique; None for the default.
        collection: The collection to search; None for all.
        top_k: Number of documents; None for the default.
        where: Condition on metadata.

    Raises:
        InvalidLimitError: ``top_k`` is invalid.
    """

    def __init__(
        self,
        workspace: str,
        technique: str | None = None,
        collection: str | None = None,
        top_k: int | None = None,
        where: Where | None = None,
    ) -> None:
        if top_k is not None:
            check_top_k(top_k)
        self.workspace = workspace
        self.request = SearchRequest("", technique, collection, top_k, where)
        self._opened: Any = None

    def warm_up(self) -> None:
        """Open the workspace."""
        if self._opened is None:
            self._opened = open_workspace(self.workspace, existing=True)

    def close(self) -> None:
        """Close the workspace; a later run opens it again."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a mapping, from which `from_dict` makes it again."""
        request = self.request
        return default_to_dict(
            self, workspace=self.workspace, technique=request.technique, collection=request.collection,
            top_k=request.top_k, where=None if request.where is None else dict(request.where),
        )  # fmt: skip

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LibraryRetriever:
        """Make the component that `to_dict` described."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None, where: dict[str, Any] | None = None) -> dict[str, Any]:
        """Search.

        Args:
            query: The query.
            top_k: Number of documents; None for that of the component.
            where: Condition on metadata; it replaces that of the component.

        Returns:
            ``{"documents": …}``, best first, with the id, text, metadata and score of each.
        """
        self.warm_up()
        known = self.request
        request = replace(
            known,
            query=query,
            top_k=known.top_k if top_k is None else top_k,
            where=known.where if where is None else where,
        )
        found = self._opened.run_search(request)
        documents = [
            Document(content=one.content, meta=one.metadata, score=one.score, **({"id": one.id} if one.id else {}))
            for one in found.documents
        ]
        return {"documents": documents}
