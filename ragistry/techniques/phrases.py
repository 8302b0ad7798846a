"""Search with phrases in quotation marks, by any technique on any store.

The words of the phrases find candidates, and their texts are checked: no index knows the positions of words. The
technique then ranks the chunks that hold the phrases: a condition limits it to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from itertools import islice
from math import inf, nextafter
from typing import Any

from ragistry.errors import QueryError
from ragistry.protocols import DocumentStore, LibraryStore
from ragistry.techniques.folding import retrieve_filled
from ragistry.text.languages import chunk_language
from ragistry.text.phrases import ParsedQuery, count_held, has_words, without_symbols
from ragistry.trace import degraded, stage
from ragistry.types import TOP_K_LIMIT, Document, StageScore, Where
from ragistry.utils.where import normalise
from ragistry.utils.wording import shown

Retrieve = Callable[[str, int | None, Where | None], list[Document]]
"""Query, ``top_k`` and ``where`` → documents, as `Technique.retrieve`."""

HOLDING = 200
"""Number of chunks with the phrases, the best by their words, that a technique ranks at least."""
SCANNED = 50_000
"""Number of chunks that are read from a store that does not search words."""
FEW_WORDS = 8
"""Number of further words up to which all passages with a phrase come before the others. A longer query is a
text that quotes something: there, one passage with the phrases comes first, the best of the first `CONSIDERED` results.
On the shared sets, the others with a quoted title are often not about what is asked."""
CONSIDERED = 10
SHOWN, SHOWN_PHRASES = 60, 3
"""Number of characters of a phrase, and of phrases, in a message."""
_within_router: ContextVar[bool] = ContextVar("ragistry_within_router", default=False)


class PhraseSearch:
    """Runs a technique for a query that may have phrases.

    Args:
        resources: Where the store is found, under ``store``.
        language: Language of chunks whose metadata have none.
        chooses_targets: The technique only chooses targets, whose own techniques search phrases.
    """

    def __init__(self, resources: Mapping[str, Any], language: str, *, chooses_targets: bool = False) -> None:
        self._resources = resources
        self._language = language
        self._chooses_targets = chooses_targets

    def run(
        self, retrieve: Retrieve, query: str, parsed: ParsedQuery, top_k: int | None, where: Where | None
    ) -> list[Document]:
        """Run a technique for a query and its parts. Raises `QueryError` if the query only excludes words."""
        if not parsed.phrases and not parsed.words_beside:
            raise QueryError(f"the query only excludes words: {shown(query)}; add the words to search for")
        if wordless := [phrase for phrase in (*parsed.phrases, *parsed.excluded) if not has_words(phrase)]:
            degraded(f"no such phrase: {_listed(wordless, ' and ')}; a phrase needs a word or a symbol")
        if self._chooses_targets:
            return self._among_targets(retrieve, query, parsed, top_k, where)
        holding = self._holding(parsed, where, max(HOLDING, top_k or 0))
        first = self._ranked(retrieve, parsed, top_k, where, holding) if holding else []
        if not parsed.words_beside:
            if holding or _within_router.get():
                return first[:top_k]
            return self._instead(retrieve, parsed.text, parsed, top_k, where)
        rest = self._without_excluded(retrieve, parsed.text, parsed, top_k, where)
        return self._phrases_first(parsed, first, rest)[: top_k or max(len(first), len(rest))]

    def _among_targets(
        self, retrieve: Retrieve, query: str, parsed: ParsedQuery, top_k: int | None, where: Where | None
    ) -> list[Document]:
        token = _within_router.set(True)
        try:
            found = [document for document in retrieve(query, top_k, where) if not self._is_excluded(document, parsed)]
        finally:
            _within_router.reset(token)
        if parsed.words_beside:
            return self._phrases_first(parsed, found, [])
        holding = [document for document in found if self._held(document, parsed) == len(parsed.phrases)]
        if holding:
            return holding
        return self._instead(retrieve, parsed.words, parsed, top_k, where)

    def _holding(self, parsed: ParsedQuery, where: Where | None, most: int) -> list[Document]:
        """Find chunks with all phrases, or with any if the query has other words; those with most of them first."""
        store = self._resources.get("store")
        if store is None or not parsed.phrases or parsed.words_beside > FEW_WORDS:
            return []
        least = _least(parsed)
        found: dict[str, tuple[int, Document]] = {}
        with stage("phrases") as this:
            for document in _candidates(store, parsed, where):
                this.documents_in += 1
                if document.id not in found and not self._is_excluded(document, parsed):
                    held = self._held(document, parsed)
                    if held >= least:
                        found[document.id] = held, document
            best = [document for _, document in sorted(found.values(), key=lambda pair: -pair[0])[:most]]
            this.documents_out = len(best)
        return best

    def _ranked(
        self,
        retrieve: Retrieve,
        parsed: ParsedQuery,
        top_k: int | None,
        where: Where | None,
        holding: Sequence[Document],
    ) -> list[Document]:
        """Rank chunks with the phrases by the technique."""
        ids = {document.id for document in holding}
        narrow = _only(holding, where)
        found = retrieve(parsed.text, top_k if narrow else TOP_K_LIMIT, narrow or where)
        least = _least(parsed)
        kept = [document for document in found if document.id in ids or self._held(document, parsed) >= least]
        if narrow is None:
            known = {document.id for document in kept}
            kept += [replace(document, score=-inf) for document in holding if document.id not in known]
            kept = _falling(kept)
        return kept

    def _instead(
        self, retrieve: Retrieve, text: str, parsed: ParsedQuery, top_k: int | None, where: Where | None
    ) -> list[Document]:
        """Search the words of phrases that no passage holds. Punctuation and symbols alone have nothing similar."""
        phrases = _listed(parsed.phrases, " with ")
        if has_words(without_symbols(parsed.words)):
            degraded(f"no passage holds {phrases}; searched the words instead")
            return self._without_excluded(retrieve, text, parsed, top_k, where)
        if has_words(parsed.words):
            degraded(f"no passage holds {phrases}")
        return []

    def _without_excluded(
        self, retrieve: Retrieve, text: str, parsed: ParsedQuery, top_k: int | None, where: Where | None
    ) -> list[Document]:
        """Search, and ask for more results in place of those that are left out."""
        return retrieve_filled(
            lambda number: retrieve(text, number, where),
            lambda found: [document for document in found if not self._is_excluded(document, parsed)],
            top_k,
        )

    def _phrases_first(
        self, parsed: ParsedQuery, first: Sequence[Document], rest: Sequence[Document]
    ) -> list[Document]:
        known = {document.id for document in first}
        documents = [*first, *(document for document in rest if document.id not in known)]
        if parsed.words_beside <= FEW_WORDS:
            return _falling(sorted(documents, key=lambda document: -self._held(document, parsed)))
        held = [self._held(document, parsed) for document in documents[:CONSIDERED]]
        if any(held):
            documents.insert(0, documents.pop(held.index(max(held))))
        return _falling(documents)

    def _held(self, document: Document, parsed: ParsedQuery) -> int:
        return count_held(parsed.phrases, document.content, chunk_language(document.metadata, self._language))

    def _is_excluded(self, document: Document, parsed: ParsedQuery) -> bool:
        language = chunk_language(document.metadata, self._language)
        return bool(parsed.excluded) and count_held(parsed.excluded, document.content, language) > 0


def _least(parsed: ParsedQuery) -> int:
    """Return how many of the phrases a passage must hold: all, or one if the query has other words."""
    return 1 if parsed.words_beside else len(parsed.phrases)


def _listed(phrases: Sequence[str], separator: str) -> str:
    some = [f'"{phrase[:SHOWN]}{"…" * (len(phrase) > SHOWN)}"' for phrase in phrases[:SHOWN_PHRASES]]
    return separator.join(some) + (f" and {len(phrases) - SHOWN_PHRASES} more" if len(phrases) > SHOWN_PHRASES else "")


def _candidates(store: DocumentStore, parsed: ParsedQuery, where: Where | None) -> Iterable[Document]:
    """Yield chunks with the words of the phrases, the best first; of a store that does not search words, all chunks."""
    if isinstance(store, LibraryStore) and "text" in store.abilities:
        searched = parsed.phrases if parsed.words_beside else [" ".join(parsed.phrases)]
        for words in searched:
            yield from store.search_text(words, TOP_K_LIMIT, where=where, every=True)
        return
    scanned = iter(store.scan(where))
    yield from islice(scanned, SCANNED)
    if next(scanned, None) is not None:
        degraded(f"only {SCANNED:,} chunks were searched for the phrases: the store does not search words")


def _only(documents: Sequence[Document], where: Where | None) -> Where | None:
    """Return a condition that only these chunks meet; None if they cannot be named by their metadata."""
    places: dict[tuple[str | None, str], list[int]] = {}
    for document in documents:
        collection, source, index = map(document.metadata.get, ("collection", "source_file", "chunk_index"))
        if not isinstance(source, str) or not isinstance(index, int) or not isinstance(collection, str | None):
            return None
        places.setdefault((collection, source), []).append(index)
    parts = []
    for (collection, source), indexes in places.items():
        named = [] if collection is None else [{"collection": collection}]
        parts.append({"$and": [*named, {"source_file": source}, {"chunk_index": {"$in": indexes}}]})
    only = {"$or": parts}
    return normalise(only if where is None else {"$and": [where, only]})


def _falling(documents: Sequence[Document]) -> list[Document]:
    """Raise scores such that they fall in this order."""
    ordered, below = [], -inf
    for document in reversed(documents):
        if document.score <= below:
            score = nextafter(below, inf)
            document = replace(document, score=score, scores=(*document.scores, StageScore("phrases", "other", score)))
        below = document.score
        ordered.append(document)
    return ordered[::-1]
