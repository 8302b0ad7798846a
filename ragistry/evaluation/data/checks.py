"""Check the queries of a test set: duplicates, queries without an answer, queries that give their document away.

A query that shares no word with its answer is valid, but hard for techniques that match words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel

from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.data.files import lines_of
from ragistry.protocols import Generator
from ragistry.text.analysis import analyse, query_terms
from ragistry.utils.model_output import parse_answer

LONGEST = 6_000
"""Number of characters of a document in the prompt."""
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


class QueryFinding(NamedTuple):
    """An error or a remark about one query or a pair of queries."""

    kind: Literal["duplicate", "near-duplicate", "not judged", "unanswerable", "given away", "no shared word"]
    queries: tuple[str, ...]
    message: str


def check_testset(
    dataset: Dataset, generator: Generator | None = None, elsewhere: Collection[str] = ()
) -> list[QueryFinding]:
    """Find the errors of the queries.

    A query is unanswerable if it has no relevant document, if all these are empty, or if the generator says that none
    of them answers it.

    Args:
        dataset: The test set.
        generator: Judges whether documents answer the queries, if it is given.
        elsewhere: Queries that another split judges.
    """
    found = list(_repeated(dataset))
    for query, text in dataset.queries.items():
        if query not in dataset.judged:
            if query not in elsewhere:
                message = f"{text!r} has no judgement; add documents that answer it to the qrels, or remove it"
                found.append(QueryFinding("not judged", (query,), message))
            continue
        relevant = _relevant(dataset, query)
        if reason := _no_answer(text, relevant, generator):
            found.append(QueryFinding("unanswerable", (query,), f"{text!r}: {reason}"))
        if len(analyse(text)) >= GIVEN_AWAY and any(contains_words(text, document) for document in relevant):
            message = f"the document that {text!r} must find contains it word for word"
            found.append(QueryFinding("given away", (query,), message))
    return found


def remarks(dataset: Dataset) -> list[QueryFinding]:
    """Find the judged queries that share no word with their answer: paraphrases, other languages, or errors."""
    found = []
    for query, text in dataset.judged.items():
        words = {word for document in _relevant(dataset, query) for word in analyse(document)}
        if words and words.isdisjoint(query_terms(text)):
            found.append(
                QueryFinding("no shared word", (query,), f"{text!r} shares no word with its relevant documents")
            )
    return found


def judged_in_any_split(folder: str | Path) -> set[str]:
    """Return the queries that have a judgement in one of the splits of a folder in BEIR's layout."""
    files = sorted((Path(folder) / "qrels").glob("*.tsv*"))
    return {line.split("\t")[0] for file in files for _, line in lines_of(file)}


def _repeated(dataset: Dataset) -> Iterator[QueryFinding]:
    ids, texts = list(dataset.judged), list(dataset.judged.values())
    for first, second, shared in near_duplicates(texts):
        says = f"{texts[first]!r} and {texts[second]!r}"
        if plain_words(texts[first]) == plain_words(texts[second]):
            yield QueryFinding("duplicate", (ids[first], ids[second]), f"{says} ask the same")
        else:
            yield QueryFinding("near-duplicate", (ids[first], ids[second]), f"{says} share {shared:.0%} of their words")


def _no_answer(text: str, relevant: list[str], generator: Generator | None) -> str:
    if not relevant:
        return "no document is relevant to it"
    if not any(document.strip() for document in relevant):
        return "its relevant documents are empty"
    if generator is None or any(is_answered(generator, text, document[:LONGEST]) for document in relevant):
        return ""
    return "the generator finds no answer in its relevant documents"


def _relevant(dataset: Dataset, query: str) -> list[str]:
    return [dataset.texts[document] for document, grade in dataset.qrels[query].items() if grade > 0]


def is_answered(generator: Generator, question: str, text: str) -> bool:
    """Ask the generator whether the text answers the question; it must quote words that are in the text."""
    raw = generator.generate(VERIFY.format(question=question, chunk=text), schema=Verdict)
    verdict = parse_answer(raw, Verdict.model_validate_json)
    return verdict.answered and contains_words(verdict.quote, text)


def near_duplicates(texts: Sequence[str], threshold: float = NEAR) -> Iterator[tuple[int, int, float]]:
    """Yield pairs of indexes (the smaller first) of texts that share most of their terms, with Jaccard's coefficient.

    Only pairs that share one of their rarest terms are compared, which misses none
    (Chaudhuri, Ganti and Kaushik, A primitive operator for similarity joins in data cleaning, 2006).
    """
    terms = [set(query_terms(text)) if text.strip() else set() for text in texts]
    counts = Counter(term for found in terms for term in found)
    places: defaultdict[str, list[int]] = defaultdict(list)
    for second, found in enumerate(terms):
        rarest = sorted(found, key=lambda term: (counts[term], term))
        prefix = rarest[: len(found) - ceil(threshold * len(found)) + 1] if found else []
        for first in sorted({place for term in prefix for place in places[term]}):
            shared = len(found & terms[first]) / len(found | terms[first])
            if shared >= threshold:
                yield first, second, shared
        for term in prefix:
            places[term].append(second)


def contains_words(query: str, text: str) -> bool:
    """Return whether the text contains the words of the query, in their order and next to each other."""
    words = plain_words(query)
    return bool(words) and f" {words} " in f" {plain_words(text)} "


def plain_words(text: str) -> str:
    """Return the stemmed words of a text in lower case, without punctuation, separated by single spaces."""
    return " ".join(analyse(text))
