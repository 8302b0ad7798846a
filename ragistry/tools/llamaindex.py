"""A LlamaIndex retriever over the library. Needs the extra ``llamaindex``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragistry.errors import ConfigError
from ragistry.utils.installation import install_command
from ragistry.utils.limits import check_top_k

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ModuleNotFoundError as error:
    raise ConfigError(f"{error.name!r} is not installed; run: {install_command('llamaindex')}") from error

if TYPE_CHECKING:
    from ragistry.library.search_methods import SearchMethods
    from ragistry.types import Where


class LibraryRetriever(BaseRetriever):
    """Searches a library, or one of its collections.

    The nodes have the text, the id, the metadata and the score of the documents, best first.

    Args:
        library: ``workspace.library``, of this process or of a server.
        technique: Name of a technique; None for the default.
        collection: The collection to search; None for all.
        top_k: Number of nodes; None for the default.
        where: Condition on metadata.
        options: Arguments of LlamaIndex's `BaseRetriever`.

    Raises:
        InvalidLimitError: ``top_k`` is invalid.
    """

    def __init__(
        self,
        library: SearchMethods,
        technique: str | None = None,
        collection: str | None = None,
        top_k: int | None = None,
        where: Where | None = None,
        **options: Any,
    ) -> None:
        if top_k is not None:
            check_top_k(top_k)
        self.library, self.technique, self.collection = library, technique, collection
        self.top_k, self.where = top_k, where
        super().__init__(**options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self.library.search(
            query_bundle.query_str, self.collection, self.top_k, technique=self.technique, where=self.where
        )
        return [
            NodeWithScore(
                node=TextNode(text=one.content, metadata=one.metadata, **({"id_": one.id} if one.id else {})),
                score=one.score,
            )
            for one in found.documents
        ]
