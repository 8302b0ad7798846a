"""Search a question that follows another one, without a language model."""

from __future__ import annotations

from ragistry.techniques.fusion import fused_documents, whole_parts
from ragistry.techniques.hybrid import under_present_names
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.text.phrases import with_previous
from ragistry.trace import stage
from ragistry.types import Document, Where

FETCH = 50
"""Number of results of both searches that are fused at once."""
K = 2
"""Of the fusion by rank: the best result of either search is among the first."""
WEIGHTS = (1.0, 1.001)
"""Of two documents with the same ranks in the other order, the one that fits both questions better is first."""


class FollowUp:
    """Searches a query alone and with the question before in front of it, and fuses both rankings by rank.

    It helps where the last question cannot stand alone: over the query alone, nDCG@10 of hybrid rose by .059 on 309
    conversations that were used to choose `K`, and by .014 (not significant) on 132 others. With the usual 60 in place
    of 2 it was .033 and -.003.

    Args:
        technique: The technique that searches.
        previous: The question before.
    """

    def __init__(self, technique: RegisteredTechnique, previous: str) -> None:
        self.technique = technique
        self.previous = previous

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        depth = None if top_k is None else whole_parts(top_k, FETCH)
        queries = (query, with_previous(query, self.previous))
        rankings = [self.technique.retrieve(one, top_k=depth, where=where) for one in queries]
        if top_k is None:  # the number of the technique is known now
            number = max(map(len, rankings))
            return self.retrieve(query, top_k=number, where=where) if number else []
        with stage("fuse", fusion="rrf") as this:
            this.documents_in = sum(map(len, rankings))
            fused = fused_documents(
                under_present_names(rankings), "rrf", weights=WEIGHTS, k=K, top_k=top_k, fetch=FETCH, stage="follow_up"
            )
            this.documents_out = len(fused)
        return fused
