"""Make a test set from documents: queries with one right source each.

By default each document is asked for by its description, if its author wrote one, else by a sentence from its middle
that is cut out of its text. `python -m benchmarks.made` measures how often such queries rank techniques as people's
questions do. A query must neither be found by its own words alone, nor fit several sources. Therefore

- the text of a query is removed from the document in the corpus, if it occurs there;
- a query whose words are still in the text, in their order, is left out;
- so is one with the same words as another, and one with too few meaningful words.

A query that shares no word with the remaining text is kept: it needs a search by meaning.

A generator can write questions about chunks as well. A question is kept only if the generator, asked again with the
chunk, says that the chunk answers it and quotes words that are in the chunk.

All these queries are marked as synthetic, with the parts that were cut out for them.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, Field

from ragistry.errors import DatasetError, ModelConnectionError, ModelError, ModelNotFoundError
from ragistry.evaluation.data.checks import contains_words, is_answered, near_duplicates, plain_words
from ragistry.evaluation.data.dataset import Dataset, Text
from ragistry.evaluation.data.library import LibrarySource, library_sources
from ragistry.protocols import Generator
from ragistry.text.analysis import query_terms
from ragistry.text.boundaries import first_sentence_start
from ragistry.utils.model_output import parse_answer
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.workspace import Workspace

LIBRARY_QUERIES = "queries made from the library"
"""Name of the test set that `library_queries` makes."""

Kind = Literal["description", "sentence", "question"]
KINDS: tuple[Kind, ...] = ("description", "sentence")
"""The default kinds: a sentence where a document has no description."""
AGREEMENT: dict[str, tuple[int, int, int]] = {
    "description": (123, 134, 9),
    "sentence": (123, 134, 9),
}
"""How far made queries decide as people's do: of the pairs of techniques that people's questions decide, those that the
made ones rank the same way; all such pairs; and the number of test sets.

Measured in November 2026 over ten techniques on mtrag, Cranfield, CISI, CACM and cosqa, on which the default kinds were
chosen, and over vectors, words and six fusions on HotpotQA, NPL, SciFact and MIRACL (Yoruba).
`python -m benchmarks.made` measures other sets."""
TELLING: dict[Kind, int] = {"description": 4, "sentence": 4, "question": 3}
"""Minimum number of words in a query, without stop words."""
PER_DOCUMENT = 1
"""Maximum number of queries for one source; those for one source are not independent."""
SENTENCE_WORDS = (6, 30)
"""Smallest and largest number of words of a sentence that becomes a query."""
RESERVE = 2
"""Sources with a usable candidate, as a multiple of the wanted queries, after which no more are read."""
TRIED = 5
"""Number of sentences of a source that are tried for each query."""
_DOCSTRING = re.compile(r'"""(.+?)"""|/\*\*(.+?)\*/', re.DOTALL)
_CODE = (
    ".py",
    ".pyi",
    ".js",
    ".mjs",
    ".ts",
    ".tsx",
    ".java",
    ".c",
    ".h",
    ".cc",
    ".cpp",
    ".hpp",
    ".cs",
    ".go",
    ".kt",
    ".rs",
    ".php",
)
"""Suffixes of sources whose first documentation comment is their description."""
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_NO_PROSE = re.compile(r"[#|>]|[-*+]\s|\d{1,3}[.)]\s")
_MARKUP = re.compile(r"[`*]|\{\{[<%].*?[%>]\}\}|<[^<>]*>")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
COPIED = 6
"""Number of consecutive words that a question may not copy from its chunk."""
SHORTEST = 200
"""Minimum length in characters of a chunk for a question."""

ASK = """\
Below is a passage of a document. Write one question that a person who has never seen the passage might ask, and that \
the passage answers fully. Do not speak of "the passage", "the text" or "the document", name the thing that you ask \
about, and use other words than the passage does where you can.

Passage:
{chunk}
"""


class Candidate(NamedTuple):
    """A query, the source it must find, and the parts (start, end) of that source that would give it away."""

    text: str
    kind: Kind
    source: str
    cuts: tuple[tuple[int, int], ...] = ()


class TestSet(NamedTuple):
    """A dataset with synthetic queries only, and the number of rejected candidates for each reason."""

    dataset: Dataset
    left_out: Counter[str]


class Question(BaseModel):
    """A generated question."""

    question: str = Field(min_length=1)


def known_items(
    sources: Iterable[LibrarySource], kinds: Sequence[Kind] = KINDS, *, per_document: int = PER_DOCUMENT, seed: int = 0
) -> Iterator[Candidate]:
    """Yield candidates of the sources in a random order; those of one source are together, the best first.

    Args:
        sources: The sources.
        kinds: The kinds of queries.
        per_document: Number of queries wanted for each source.
        seed: Seed of the order, and of the choice of sentences.
    """
    for source in random.Random(f"sources/{seed}").sample(found := list(sources), len(found)):
        if "description" in kinds:
            yield from _descriptions(source)
        if "sentence" in kinds and not source.id.endswith(_CODE):  # Sentences of programs agree badly with people.
            spans = _sentences(source)
            tried = random.Random(f"{seed}/{source.id}").sample(spans, min(len(spans), TRIED * per_document))
            yield from (Candidate(_plain(source.text[slice(*span)]), "sentence", source.id, (span,)) for span in tried)


def _descriptions(source: LibrarySource) -> Iterator[Candidate]:
    """Yield the description of a document, or the first documentation comment of a program."""
    if source.description:
        yield Candidate(_plain(source.description), "description", source.id)
    elif source.id.endswith(_CODE) and (found := _DOCSTRING.search(source.text)):
        said = (found[1] or found[2]).strip(" \n*").partition("\n\n")[0]
        yield Candidate(_plain(re.sub(r"\n\s*\*", " ", said)), "description", source.id, (found.span(),))


def _sentences(source: LibrarySource) -> list[tuple[int, int]]:
    """Return sentences from the middle of a text; of a single long sentence, the words in its middle.

    Sentences inside a single chunk come before others: without one of them, only one chunk differs from the library.
    """
    text, least, most = source.text, *SENTENCE_WORDS
    ends = [0]
    while (start := first_sentence_start(text, ends[-1] + 1, len(text))) >= 0:
        ends.append(start)
    fences = [found.span() for found in _FENCED.finditer(text)]
    prose = [
        (start, start + len(line))
        for start, end in pairwise([*ends, len(text)])
        if (line := text[start:end].rstrip())
        and not _NO_PROSE.match(line)
        and "\n\n" not in line
        and not any(low <= start < high for low, high in fences)
    ]
    usable = [span for span in prose if least <= len(text[slice(*span)].split()) <= most]
    if inner := [span for span in usable if span in prose[1:-1]]:
        whole = [span for span in inner if sum(text[slice(*span)] in chunk for chunk in source.chunks) == 1]
        return whole or inner
    if len(prose) > 1 and usable:
        return usable
    first, last = max(prose, key=lambda span: span[1] - span[0], default=(0, 0))
    words = [found.span() for found in re.compile(r"\S+").finditer(text, first, last)]
    third = min(most, len(words) // 3)
    return [(words[third][0], words[2 * third - 1][1])] if third >= least else []


def ask_questions(
    sources: Sequence[LibrarySource], generator: Generator, count: int, left_out: Counter[str], *, seed: int = 0
) -> Iterator[Candidate]:
    """Write questions about random chunks with a generator; two calls per chunk.

    Args:
        sources: The sources.
        generator: The generator.
        count: Maximum number of questions; at most three times as many chunks are tried.
        left_out: The number of rejected questions is added here for each reason.
        seed: Seed of the choice of chunks.

    Raises:
        ModelError: The first calls all failed, or the model or its server is missing.
    """
    every = [(source.id, chunk) for source in sources for chunk in source.chunks]
    chunks = [(source, chunk) for source, chunk in every if len(chunk) >= SHORTEST]
    if len(chunks) < len(every):
        left_out[f"the passage has fewer than {SHORTEST} characters"] = len(every) - len(chunks)
    random.Random(seed).shuffle(chunks)
    asked = failures = 0
    for tried, (source, chunk) in enumerate(chunks[: 3 * count], 1):
        reason = ""
        try:
            raw = generator.generate(ASK.format(chunk=chunk), schema=Question)
            question = parse_answer(raw, Question.model_validate_json).question.strip()
            if _copies(question, chunk):
                reason = "the question copies the passage"
            elif not is_answered(generator, question, chunk):
                reason = "the passage does not answer the question"
        except (ModelConnectionError, ModelNotFoundError):
            raise
        except (ModelError, ValueError) as error:
            failures += 1
            if failures == tried >= 3:
                raise ModelError(f"the generator failed on the first {tried} chunks: {error}") from error
            reason = "the generator failed"
        if reason:
            left_out[reason] += 1
            continue
        yield Candidate(question, "question", source)
        asked += 1
        if asked == count:
            return


def _copies(question: str, chunk: str) -> bool:
    words, there = plain_words(question).split(), f" {plain_words(chunk)} "
    runs = (" ".join(words[start : start + COPIED]) for start in range(len(words) - COPIED + 1))
    return any(f" {run} " in there for run in runs)


def library_queries(workspace: Workspace, limit: int, *, collection: str | None = None, seed: int = 0) -> Dataset:
    """Make queries from the descriptions and sentences in a library.

    Args:
        workspace: The workspace with the library.
        limit: Maximum number of queries.
        collection: Use the sources of this collection only.
        seed: Seed of the random choice of queries.

    Raises:
        DatasetError: There are no sources, or no query can be made from them.
    """
    sources = library_sources(workspace, collection)
    if not sources:
        raise DatasetError("the library has no sources to make queries from; ingest some first")
    return make_testset(LIBRARY_QUERIES, sources, known_items(sources, seed=seed), limit=limit, seed=seed).dataset


def make_testset(
    name: str,
    sources: Sequence[LibrarySource],
    candidates: Iterable[Candidate],
    *,
    limit: int | None = None,
    per_document: int = PER_DOCUMENT,
    seed: int = 0,
    model: str | None = None,
    left_out: Counter[str] | None = None,
) -> TestSet:
    """Make a test set from the candidates that can be used.

    Args:
        name: Name of the test set.
        sources: The sources of the candidates.
        candidates: The queries.
        limit: Maximum number of queries, drawn at random.
        per_document: Maximum number of queries for each source.
        seed: Seed of all random choices.
        model: Name of the model that wrote the questions, recorded in the test set.
        left_out: Number of candidates rejected before, for each reason.

    Raises:
        DatasetError: No candidate can be used.
    """
    if per_document < 1:
        raise DatasetError(f"per_document is {per_document}; it must be 1 or more")
    left_out = Counter(left_out)
    texts = {source.id: source.text for source in sources}
    kept: list[Candidate] = []
    usable = set[str]()
    for candidate in candidates:
        if candidate.source not in usable and limit is not None and len(usable) >= RESERVE * limit:
            break
        if len(query_terms(candidate.text)) < TELLING[candidate.kind]:
            left_out["too few meaningful words"] += 1
        elif contains_words(candidate.text, without(texts[candidate.source], candidate.cuts)):
            left_out["the document still contains the words of the query"] += 1
        else:
            kept.append(candidate)
            usable.add(candidate.source)
    order = {source.id: place for place, source in enumerate(sources)}
    kept.sort(key=lambda one: order[one.source])
    ambiguous: set[int] = set()  # all but the first if they ask for one source, all if they ask for several
    for first, second, _ in near_duplicates([candidate.text for candidate in kept]):
        ambiguous |= {second} if kept[first].source == kept[second].source else {first, second}
    kept = _without(kept, ambiguous, "another query has the same words", left_out)
    kept = _without(kept, _surplus(kept, per_document), "", left_out)
    remaining = _cut(texts, kept)
    empty = {at for at, one in enumerate(kept) if not remaining[one.source].strip()}
    kept = _without(kept, empty, "the document has no other text", left_out)
    if limit is not None and len(kept) > limit:
        drawn = random.Random(seed).sample(range(len(kept)), limit)
        kept = _without(
            kept, set(range(len(kept))).difference(drawn), "more than the maximum number of queries", left_out
        )
    if not kept:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in left_out.items())
        remedy = f"try other kinds{'' if model else ' or a model'}"
        raise DatasetError(
            f"no query can be made from {numbered(len(sources), '[source|sources]')}: "
            f"{reasons or 'none of them has a query of these kinds'}; {remedy}"
        )
    ids = {f"{candidate.kind[0]}{number}": candidate for number, candidate in enumerate(kept, 1)}
    dataset = Dataset(
        name,
        [Text(source, "", text) for source, text in _cut(texts, kept).items()],
        {query: candidate.text for query, candidate in ids.items()},
        {query: {candidate.source: 1} for query, candidate in ids.items()},
        synthetic={
            query: {"kind": one.kind, "seed": seed}
            | ({"cuts": one.cuts} if one.cuts else {})
            | ({"model": model} if model and one.kind == "question" else {})
            for query, one in ids.items()
        },
    )
    return TestSet(dataset, left_out)


def _surplus(candidates: Sequence[Candidate], most: int) -> set[int]:
    """Return the candidates of a source above ``most``; one of each kind is kept first."""
    turns: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)  # of a source: the number in its kind, the place
    of_kind = Counter[tuple[str, str]]()
    for at, (_, kind, source, _) in enumerate(candidates):
        of_kind[source, kind] += 1
        turns[source].append((of_kind[source, kind], at))
    return {at for places in turns.values() for _, at in sorted(places)[most:]}


def _without(kept: list[Candidate], dropped: set[int], reason: str, left_out: Counter[str]) -> list[Candidate]:
    if dropped and reason:
        left_out[reason] = len(dropped)
    return [candidate for at, candidate in enumerate(kept) if at not in dropped]


def without(text: str, cuts: Iterable[tuple[int, int]]) -> str:
    """Return the text without these parts."""
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
    return text


def _cut(texts: Mapping[str, str], candidates: Iterable[Candidate]) -> dict[str, str]:
    """Return the texts without the parts that would give a candidate away."""
    cuts: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
    for candidate in candidates:
        cuts[candidate.source].update(candidate.cuts)
    return {source: without(text, cuts[source]) for source, text in texts.items()}


def _plain(text: str) -> str:
    """Return the words without the marks of Markdown."""
    return " ".join(_MARKUP.sub("", _LINK.sub(r"\1", text)).split())
