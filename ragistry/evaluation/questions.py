"""Questions that a generator asks about a chunk, each kept only where the chunk answers it.

The check is a question of its own: shown the chunk and the question, the generator must say that the chunk answers it
and quote the words that do. The quotation is looked up; a model that makes one up is not believed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, Field

from ragistry.errors import ModelConnectionError, ModelError, ModelNotFoundError
from ragistry.evaluation.similar_queries import plain_words, stands_in
from ragistry.evaluation.testset import Candidate
from ragistry.evaluation.testset_sources import Source
from ragistry.protocols import Generator

COPIED = 6
"""Words in a row that a question may not take from its chunk."""

SHORTEST = 200
"""Characters below which a chunk is not asked about."""

ASK = """\
Below is a passage of a document. Write one question that somebody who has never seen the passage might ask, and that \
the passage answers fully. Do not speak of "the passage", "the text" or "the document", name the thing that you ask \
about, and use other words than the passage does where you can.

Passage:
{chunk}
"""

VERIFY = """\
Does this passage, by itself, answer the question? If it does, quote the words of the passage that answer it, exactly \
as they stand there.

Question: {question}

Passage:
{chunk}
"""


class Question(BaseModel):
    """What the generator asks."""

    question: str = Field(min_length=1)


class Verdict(BaseModel):
    """Whether a passage answers a question, and by which of its words."""

    answered: bool
    quote: str = ""


def ask_questions(
    sources: Sequence[Source], generator: Generator, count: int, left_out: Counter[str], *, seed: int = 0
) -> Iterator[Candidate]:
    """At most ``count`` questions about chunks that are drawn at random; ``left_out`` counts what was no use, and why.

    Two calls of the generator a chunk, on at most three times as many chunks as questions. Raises `ModelError` where
    every call fails, at once where there is no such model or nobody to ask.
    """
    every = [(source.id, chunk) for source in sources for chunk in source.chunks]
    chunks = [(source, chunk) for source, chunk in every if len(chunk) >= SHORTEST]
    if len(chunks) < len(every):
        left_out[f"on chunks below {SHORTEST} characters, too short to ask about"] = len(every) - len(chunks)
    random.Random(seed).shuffle(chunks)
    asked = failures = 0
    for tried, (source, chunk) in enumerate(chunks[: 3 * count], 1):
        if asked == count:
            return
        try:
            question = Question.model_validate_json(
                generator.generate(ASK.format(chunk=chunk), schema=Question)
            ).question
            reason = _fault(question, chunk, generator)
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
        asked += 1
        yield Candidate(question.strip(), "question", source)


def answers(generator: Generator, question: str, text: str) -> bool:
    """Whether the generator says that the text answers the question, and quotes words that do stand in it."""
    raw = generator.generate(VERIFY.format(question=question, chunk=text), schema=Verdict)
    verdict = Verdict.model_validate_json(raw)
    return verdict.answered and stands_in(verdict.quote, text)


def _fault(question: str, chunk: str, generator: Generator) -> str:
    if _copies(question, chunk):
        return "copying the chunk"
    return "" if answers(generator, question, chunk) else "not answered by the chunk"


def _copies(question: str, chunk: str) -> bool:
    words, there = plain_words(question).split(), f" {plain_words(chunk)} "
    runs = (" ".join(words[start : start + COPIED]) for start in range(len(words) - COPIED + 1))
    return any(f" {run} " in there for run in runs)
