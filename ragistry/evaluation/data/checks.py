"""Check the queries of a test set: duplicates, queries that give their document away.

A query that shares no word with its answer is valid, but hard for techniques that match words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from pydantic import BaseModel

from ragistry.evaluation.data.dataset import Dataset
from ragistry.protocols import Generator
from ragistry.text.analysis import analyse, query_terms
from ragistry.utils.model_output import parse_answer

NAMED = 3
"""Number of queries that are listed for each kind; the rest is counted."""
GIVEN_AWAY = 4
"""Minimum number of words of a query whose literal occurrence in its document is not a coincidence."""
NEAR = 0.8
"""Share of common terms above which two queries count as duplicates."""

VERIFY = """\
Does this passage, by itself, answer the question? If it does, quote the words of the passage that answer it, exactly \
as they are written there.

Question: {question}

Passage:
{chunk}
"""


class Verdict(BaseModel):
    """Whether a passage answers a question, and the words that do."""

    answered: bool
    quote: str = ""


def check_queries(dataset: Dataset, shown: Mapping[str, str]) -> list[str]:
    """List what is wrong or hard about the judged queries, a line for each of the first ones of a kind.

    Args:
        dataset: The test set.
        shown: Query id → what the lines show of its text.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    ids, texts, words = list(dataset.judged), list(dataset.judged.values()), dict[str, list[str]]()
    for first, second, shared in near_duplicates(texts):
        same = plain_words(texts[first]) == plain_words(texts[second])
        one, other = ids[first], ids[second]
        found["duplicate" if same else "near-duplicate"].append(
            f"{one} {other}: {shown[one]!r} and {shown[other]!r} "
            + ("ask the same" if same else f"share {shared:.0%} of their words")
        )
    for query, text in dataset.judged.items():
        relevant = [document for document, grade in dataset.qrels[query].items() if grade > 0]
        words |= {document: analyse(dataset.texts[document]) for document in relevant if document not in words}
        asked = analyse(text)
        if len(asked) >= GIVEN_AWAY and any(_contains(words[document], asked) for document in relevant):
            found["given away"].append(
                f"{query}: the document that {shown[query]!r} must find contains it word for word"
            )
        there = {word for document in relevant for word in words[document]}
        if there and there.isdisjoint(query_terms(text)):
            found["no shared word"].append(f"{query}: {shown[query]!r} shares no word with its relevant documents")
    lines = []
    for kind, messages in found.items():
        lines += [f"{kind}: {message}" for message in messages[:NAMED]]
        if more := len(messages) - NAMED:
            lines += [f"{kind}: … and {more:,} more"] if more > 0 else []
    return lines


def is_answered(generator: Generator, question: str, text: str) -> bool:
    """Ask the generator whether the text answers the question; it must quote words that are in the text."""
    raw = generator.generate(VERIFY.format(question=question, chunk=text), schema=Verdict)
    verdict = parse_answer(raw, Verdict.model_validate_json)
    return verdict.answered and contains_words(verdict.quote, text)


def near_duplicates(texts: Sequence[str]) -> Iterator[tuple[int, int, float]]:
    """Yield pairs of indexes (the smaller first) of texts that share most of their terms, with Jaccard's coefficient.

    Only pairs that share one of their rarest terms are compared, which misses none
    (Chaudhuri, Ganti and Kaushik, A primitive operator for similarity joins in data cleaning, 2006).
    """
    terms = [set(query_terms(text)) if text.strip() else set() for text in texts]
    counts = Counter(term for found in terms for term in found)
    places: defaultdict[str, list[int]] = defaultdict(list)
    for second, found in enumerate(terms):
        rarest = sorted(found, key=lambda term: (counts[term], term))
        prefix = rarest[: len(found) - ceil(NEAR * len(found)) + 1] if found else []
        for first in sorted({place for term in prefix for place in places[term]}):
            shared = len(found & terms[first]) / len(found | terms[first])
            if shared >= NEAR:
                yield first, second, shared
        for term in prefix:
            places[term].append(second)


def contains_words(query: str, text: str) -> bool:
    """Return whether the text contains the words of the query, in their order and next to each other."""
    return _contains(analyse(text), analyse(query))


def _contains(words: Sequence[str], wanted: Sequence[str]) -> bool:
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(words)} "


def plain_words(text: str) -> str:
    """Return the stemmed words of a text in lower case, without punctuation, separated by single spaces."""
    return " ".join(analyse(text))
