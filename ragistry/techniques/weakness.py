"""Tell results that do not fit their query from results that do, by what the search has already computed.

The evidence is the largest share of the query's words within a few sentences of one of the first passages, and the
highest cosine of these passages. Cosines of two models are not comparable, so they count only for calibrated models.
`benchmarks.weak` measures the thresholds with questions whose document was removed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence, Set
from functools import cache
from typing import NamedTuple

from ragistry.protocols import Embedder
from ragistry.text.analysis import analyse, forms, iterate_terms, query_forms, query_terms
from ragistry.text.languages import chunk_language
from ragistry.text.phrases import with_previous
from ragistry.types import Document

FIRST = 5
"""Number of passages, from the best one, that are examined."""
WINDOW = 60
"""Number of consecutive terms of a passage that are compared with the query: a few sentences."""
WORDS, SHARE = 3, 0.34
"""Without cosines, a window with this number or this share of the query's words fits."""
FEW = 3
"""A query with at most this number of specific words, such as a follow-up in a dialogue, is met by one of them, if
words were searched."""


class Calibration(NamedTuple):
    """The share of words plus the weighted cosine of a passage that fits, for the cosines of one model.

    Attributes:
        weight: Weight of the cosine.
        least: Minimum of the sum.
    """

    weight: float
    least: float


VECTORS = {"all-minilm-l6-v2": Calibration(2.0, 1.1)}
"""By model, for passages that were searched by vectors alone."""
VECTORS_AND_WORDS = {"all-minilm-l6-v2": Calibration(1.5, 0.97)}
"""By model, for passages that were searched by words too: more words are then expected in the best ones."""

_UNSPECIFIC = {
    "english": (
        "about after again all also any anything anyone been before between both can come could did different do does "
        "during each else even ever every exactly first from get getting give go going had happen happened has have he "
        "her here him his how i instead it its just keep kind know last least let like long longer look made make many "
        "may maybe me mean more most much my name need never next now off often ok one only other our out over part "
        "people person please possible put really reason same say see she should show so some someone something sort "
        "still take taken tell than thank thanks them then thing think those time try two type under up us use used "
        "using very want way we well went were what when where which while who whom whose why work would yes you your"
    ),
}
"""Words of questions that passages with the answer often lack, in addition to the stop words."""


def is_weak(
    query: str, documents: Sequence[Document], embedder: Embedder, language: str, previous: str | None = None
) -> bool:
    """Return whether the documents show that nothing fits the query well; false without evidence.

    Results of a follow-up also come from the question before. They fit if they fit the query alone or both together.

    Documents of a technique that computes neither BM25 scores nor cosines of a calibrated model do not count.

    Args:
        query: The query.
        documents: The ranking.
        embedder: The embedder of the cosines; it is not called.
        language: Language of documents whose metadata have none.
        previous: The question before, if the query is a follow-up.
    """
    if previous is not None and not is_weak(with_previous(query, previous), documents, embedder, language):
        return False
    first = documents[:FIRST]
    scores = [score for document in first for score in document.scores]
    cosines = [score.value for score in scores if score.kind == "cosine"]
    has_words = any(score.kind == "bm25" for score in scores)
    calibration = None
    if cosines:
        models = VECTORS_AND_WORDS if has_words else VECTORS
        calibration = models.get(embedder.fingerprint.model.casefold())
    if calibration is None and (cosines or not has_words):
        return False
    likeness = calibration.weight * max(cosines) if calibration else 0.0
    if calibration and likeness >= calibration.least:
        return False  # no word is needed
    for document in first:
        of_document = chunk_language(document.metadata, language)
        asked = query_terms(query, of_document).keys() - _unspecific_terms(of_document)
        if not asked:  # a query without specific words says nothing
            return False
        needed = 1 if has_words and len(asked) <= FEW else _words_needed(len(asked), likeness, calibration)
        if needed > len(asked):
            continue
        found, seen = _most_together(asked, iterate_terms(document.content, of_document), needed)
        if found < needed:  # other spellings take as long as the words themselves
            found += _spelled_otherwise(query, asked - seen, document.content, of_document)
        if found >= needed:
            return False
    return True


def _words_needed(number: int, likeness: float, calibration: Calibration | None) -> int:
    """Return how many of the query's words a window of a passage that fits has; more than ``number`` if none fits."""
    for needed in range(1, number + 1):
        share = needed / number
        if share + likeness >= calibration.least if calibration else share >= SHARE or needed >= WORDS:
            return needed
    return number + 1


def _most_together(asked: Set[str], terms: Iterable[str], enough: int) -> tuple[int, Set[str]]:
    """Return the number of different terms in the window that has most of them, and those that occur.

    The terms after a window with ``enough`` of them are not read.
    """
    recent: deque[tuple[int, str]] = deque()
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    window, most = max(WINDOW, 2 * len(asked)), 0
    for place, term in enumerate(terms):
        if term in asked:
            recent.append((place, term))
            seen.add(term)
            counts[term] += 1
            while recent[0][0] <= place - window:
                _, passed = recent.popleft()
                counts[passed] -= 1
                if not counts[passed]:
                    del counts[passed]
            most = max(most, len(counts))
            if most >= enough:
                break
    return most, seen


def _spelled_otherwise(query: str, missing: Set[str], text: str, language: str) -> int:
    """Count the words of the query that a text has in another spelling only."""
    if not missing:
        return 0
    spelled, queried = set(forms(text, language)), query_forms(query, language).keys()
    return len(missing & spelled) or int(bool(queried) and queried <= spelled.union(analyse(text, language)))


@cache
def _unspecific_terms(language: str) -> frozenset[str]:
    return frozenset(analyse(_UNSPECIFIC.get(language, ""), language))
