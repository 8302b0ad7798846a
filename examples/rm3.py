"""RM3, feedback by words, as a technique of your own: ``rm3: {use: "rm3:RM3", base: hybrid}`` in techniques.yaml.

Abdul-Jaleel et al., "UMass at TREC 2004: Novelty and HARD", 2004: the most important words of the first results are
added to the query. A store counts a repeated word several times, so weights are written as repetitions.
"""

from collections import defaultdict

from pydantic import BaseModel, Field

from ragistry.protocols import LibraryStore, Technique
from ragistry.text.analysis import query_terms
from ragistry.types import Document, Where


class RM3:
    """Add words of the first documents of the base to the query, and search the words."""

    class Config(BaseModel):
        documents: int = Field(default=10, ge=1, description="number of documents that count as relevant")
        terms: int = Field(default=10, ge=1, description="number of words that are added")
        repeat: int = Field(default=5, ge=1, description="how often the query is repeated, against the added words")

    def __init__(self, config: Config, *, base: Technique, store: LibraryStore) -> None:
        self.config, self.base, self.store = config, base, store

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        feedback = self.base.retrieve(query, top_k=self.config.documents, where=where)
        weights: defaultdict[str, float] = defaultdict(float)
        for document in feedback:
            counts = query_terms(document.content, document.metadata.get("language", "english"))
            for word, count in counts.items():
                weights[word] += count / sum(counts.values()) / len(feedback)
        best = sorted(weights, key=lambda word: (-weights[word], word))[: self.config.terms]
        added = [word for word in best for _ in range(max(1, round(10 * weights[word])))]
        return self.store.search_text(" ".join([query] * self.config.repeat + added), top_k or 5, where=where)
