"""Make questions about chunks with a generator, and check the queries of a test set.

A question is kept only if the chunk answers it. In a second call, the generator sees chunk and question, must say
whether the chunk answers it, and must quote the words that do. The quotation must be in the chunk.

`check_testset` finds duplicate queries, queries without an answer, and queries that give their document away. A query
that shares no word with its answer is valid, but hard for techniques that match words.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, Field

from ragistry.errors import ModelConnectionError, ModelError, ModelNotFoundError
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.data.lines import lines_of
from ragistry.evaluation.data.testsets import Candidate, Source, near_duplicates, plain_words, stands_in
from ragistry.protocols import Generator
from ragistry.utils.model_output import parse_answer
from ragistry.utils.text.analysis import analyse, query_terms

COPIED = 6
"""Number of consecutive words that a question may not copy from its chunk."""

SHORTEST = 200
"""Minimum length in characters of a chunk for a question."""

LONGEST = 6_000
"""Number of characters of a document in the prompt."""

GIVEN_AWAY = 4
"""Minimum number of words of a query whose literal occurrence in its document is no coincidence."""

ASK = """\
Below is a passage of a document. Write one question that a person who has never seen the passage might ask, and that \
the passage answers fully. Do not speak of "the passage", "the text" or "the document", name the thing that you ask \
about, and use other words than the passage does where you can.

Passage:
{chunk}
"""

VERIFY = """\
Does this passage, by itself, answer the question? If it does, quote the words of the passage that answer it, exactly \
as they are written there.

Question: {question}

Passage:
{chunk}
"""


class Question(BaseModel):
    """A generated question."""

    question: str = Field(min_length=1)


class Verdict(BaseModel):
    """Whether a passage answers a question, and the words that do."""

    answered: bool
    quote: str = ""


def ask_questions(
    sources: Sequence[Source], generator: Generator, count: int, left_out: Counter[str], *, seed: int = 0
) -> Iterator[Candidate]:
    """At most ``count`` questions about random chunks; ``left_out`` counts the rejected ones by reason.

    Uses two calls per chunk, on at most three times as many chunks as questions. Raises `ModelError` if every call
    fails, and at once if the model or its server is missing.
    """
    every = [(source.id, chunk) for source in sources for chunk in source.chunks]
    chunks = [(source, chunk) for source, chunk in every if len(chunk) >= SHORTEST]
    if len(chunks) < len(every):
        left_out[f"on chunks below {SHORTEST} characters, too short to ask about"] = len(every) - len(chunks)
    random.Random(seed).shuffle(chunks)
    asked = failures = 0
    for tried, (source, chunk) in enumerate(chunks[: 3 * count], 1):
        reason = ""
        try:
            raw = generator.generate(ASK.format(chunk=chunk), schema=Question)
            question = parse_answer(raw, Question.model_validate_json).question.strip()
            if _copies(question, chunk):
                reason = "copying the chunk"
            elif not answers(generator, question, chunk):
                reason = "not answered by the chunk"
        except (ModelConnectionError, ModelNotFoundError):
            raise
        except (ModelError, ValueError) as error:
            failures += 1
            if failures == tried >= 3:
                raise ModelError(f"the generator failed on the first {tried} chunks: {error}") from error
            reason = "on which the generator failed"
        if reason:
            left_out[reason] += 1
            continue
        yield Candidate(question, "question", source)
        asked += 1
        if asked == count:
            return


def answers(generator: Generator, question: str, text: str) -> bool:
    """Whether the generator says that the text answers the question, and quotes words that are in it."""
    raw = generator.generate(VERIFY.format(question=question, chunk=text), schema=Verdict)
    verdict = parse_answer(raw, Verdict.model_validate_json)
    return verdict.answered and stands_in(verdict.quote, text)


def _copies(question: str, chunk: str) -> bool:
    words, there = plain_words(question).split(), f" {plain_words(chunk)} "
    runs = (" ".join(words[start : start + COPIED]) for start in range(len(words) - COPIED + 1))
    return any(f" {run} " in there for run in runs)


class Finding(NamedTuple):
    """An error or a remark about one query or a pair of queries."""

    kind: Literal["duplicate", "near-duplicate", "not judged", "unanswerable", "given away", "no shared word"]
    queries: tuple[str, ...]
    message: str


def check_testset(
    dataset: Dataset, generator: Generator | None = None, elsewhere: Collection[str] = ()
) -> list[Finding]:
    """All errors of the queries.

    A query is unanswerable if it has no relevant document, if these are empty, or, with a ``generator``, if it says
    that none of them answers the query. ``elsewhere``: queries that another split judges.
    """
    found = list(_repeated(dataset))
    for query, text in dataset.queries.items():
        if query not in dataset.judged:
            if query not in elsewhere:
                message = f"{text!r} has no judgement; say in the qrels which documents answer it, or take it out"
                found.append(Finding("not judged", (query,), message))
            continue
        relevant = _relevant(dataset, query)
        if reason := _no_answer(text, relevant, generator):
            found.append(Finding("unanswerable", (query,), f"{text!r}: {reason}"))
        if len(analyse(text)) >= GIVEN_AWAY and any(stands_in(text, document) for document in relevant):
            message = f"{text!r} is contained word for word in the document that it must find"
            found.append(Finding("given away", (query,), message))
    return found


def remarks(dataset: Dataset) -> list[Finding]:
    """The judged queries that share no word with their answer: paraphrases, other languages, or errors."""
    found = []
    for query, text in dataset.judged.items():
        words = {word for document in _relevant(dataset, query) for word in analyse(document)}
        if words and words.isdisjoint(query_terms(text)):
            found.append(Finding("no shared word", (query,), f"{text!r} shares no word with what it should find"))
    return found


def judged_in_any_split(folder: str | Path) -> set[str]:
    """The queries that have a judgement in one of the splits of a folder in BEIR's layout."""
    files = sorted((Path(folder) / "qrels").glob("*.tsv*"))
    return {line.split("\t")[0] for file in files for _, line in lines_of(file)}


def _repeated(dataset: Dataset) -> Iterator[Finding]:
    ids, texts = list(dataset.judged), list(dataset.judged.values())
    for first, second, shared in near_duplicates(texts):
        says = f"{texts[first]!r} and {texts[second]!r}"
        if plain_words(texts[first]) == plain_words(texts[second]):
            yield Finding("duplicate", (ids[first], ids[second]), f"{says} ask the same")
        else:
            yield Finding("near-duplicate", (ids[first], ids[second]), f"{says} share {shared:.0%} of their words")


def _no_answer(text: str, relevant: list[str], generator: Generator | None) -> str:
    if not relevant:
        return "no document is relevant to it"
    if not any(document.strip() for document in relevant):
        return "its relevant documents are empty"
    if generator is None or any(answers(generator, text, document[:LONGEST]) for document in relevant):
        return ""
    return "the generator finds no answer in its relevant documents"


def _relevant(dataset: Dataset, query: str) -> list[str]:
    return [dataset.texts[document] for document, grade in dataset.qrels[query].items() if grade > 0]
