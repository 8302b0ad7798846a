"""Make a test set from documents: queries with one right source each.

A query is a text that the author wrote about the source: its title, a heading, or the description in its front matter.
If the same words were indexed, it would be found too easily. Therefore

- a title or heading that becomes a query is removed from the text in the corpus;
- a query whose words are still in the text, in their order, is left out, because prose cannot be removed;
- a query that fits several sources is left out: one with the same words as another, a heading that names a part of a
  page ("Example: …", "Step 2") or has no rare word, or one with too few meaningful words;
- at most `PER_DOCUMENT` queries ask for one source, because they are not independent.

A query that shares no word with the remaining text is kept: it needs a search by meaning.

A generator can write questions about chunks as well. A question is kept only if the generator, asked again with the
chunk, says that the chunk answers it and quotes words that are in the chunk.

All these queries are marked as synthetic, because authors name things better than people who search for them.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, Field

from ragistry.errors import DatasetError, ModelConnectionError, ModelError, ModelNotFoundError
from ragistry.evaluation.data.checks import contains_words, is_answered, near_duplicates, plain_words
from ragistry.evaluation.data.dataset import Dataset, Text
from ragistry.evaluation.data.library import LibrarySource, library_sources
from ragistry.protocols import Generator
from ragistry.readers.markdown import outline
from ragistry.text.analysis import analyse, query_terms
from ragistry.utils.model_output import parse_answer
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.workspace import Workspace

LIBRARY_QUERIES = "queries made from the library"
"""Name of the test set that `library_queries` makes."""

Kind = Literal["description", "title", "heading", "question"]
KINDS: tuple[Kind, ...] = ("description", "title", "heading")
"""The kinds that need no model; those most similar to a person's question come first."""
TELLING: dict[Kind, int] = {"description": 4, "title": 2, "heading": 3, "question": 3}
"""Minimum number of words in a query, without stop words."""
RARE = 0.1
"""Maximum share of the sources that contain the rarest word of a heading; other headings fit too many sources."""
PER_DOCUMENT = 3
"""Maximum number of queries for one source."""
_STRUCTURE = re.compile(r"(?:examples?|methods?|steps?|options?|parts?|notes?|case|appendix|figure|table|\d+)\b", re.I)
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


def known_items(sources: Iterable[LibrarySource], kinds: Sequence[Kind] = KINDS) -> Iterator[Candidate]:
    """Yield every query from titles, headings and descriptions of the sources."""
    for source in sources:
        if "description" in kinds and source.description:
            yield Candidate(_plain(source.description), "description", source.id)
        headings = [section for section in outline(source.text).sections if section.title]
        named = [section for section in headings if plain_words(section.title) == plain_words(source.title)]
        if "title" in kinds and source.title:
            yield Candidate(_plain(source.title), "title", source.id, tuple((one.start, one.body) for one in named))
        for one in headings if "heading" in kinds else ():
            if one not in named:
                yield Candidate(_plain(one.title), "heading", source.id, ((one.start, one.body),))


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
    """Make queries from the titles, headings and descriptions in a library.

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
    return make_testset(LIBRARY_QUERIES, sources, known_items(sources), limit=limit, seed=seed).dataset


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
    kept = []
    spread = Counter(term for text in texts.values() for term in set(analyse(text)))
    for candidate in candidates:
        if reason := _fault(candidate, texts[candidate.source], spread, max(2, int(RARE * len(texts)))):
            left_out[reason] += 1
        else:
            kept.append(candidate)
    ambiguous = _ambiguous(kept)
    kept = _without(kept, ambiguous, "another query has the same words", left_out)
    remaining = _cut(texts, kept)
    empty = {at for at, one in enumerate(kept) if not remaining[one.source].strip()}
    kept = _without(kept, empty, "the document has no other text", left_out)
    kept = _without(
        kept,
        _surplus(kept, per_document, seed),
        f"more than {numbered(per_document, '[query|queries]')} for one document",
        left_out,
    )
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
            query: {"kind": one.kind, "seed": seed} | ({"model": model} if model and one.kind == "question" else {})
            for query, one in ids.items()
        },
    )
    return TestSet(dataset, left_out)


def _fault(candidate: Candidate, text: str, spread: Mapping[str, int], most: int) -> str:
    """Return why a query cannot be used; empty if it can.

    ``spread``: term → number of sources; a term with up to ``most`` is rare.
    """
    terms = query_terms(candidate.text)
    if len(terms) < TELLING[candidate.kind]:
        return "too few meaningful words"
    if contains_words(candidate.text, without(text, candidate.cuts)):
        return "the document still contains the words of the query"
    common = _STRUCTURE.match(candidate.text) or all(spread[term] > most for term in terms)
    return "the heading is too common" if candidate.kind == "heading" and common else ""


def _ambiguous(candidates: Sequence[Candidate]) -> set[int]:
    """Return near-duplicates to drop: all but the first if they ask for one source, all if they ask for several."""
    found: set[int] = set()
    for first, second, _ in near_duplicates([candidate.text for candidate in candidates]):
        found |= {second} if candidates[first].source == candidates[second].source else {first, second}
    return found


def _surplus(candidates: Sequence[Candidate], most: int, seed: int) -> set[int]:
    """Return the candidates of a source above ``most``; one of each kind is kept first, at random within a kind."""
    by_source: defaultdict[str, list[int]] = defaultdict(list)
    for at, candidate in enumerate(candidates):
        by_source[candidate.source].append(at)
    found: set[int] = set()
    for source, places in by_source.items():
        random.Random(f"{seed}/{source}").shuffle(places)
        of_kind: Counter[str] = Counter()
        turns = {}
        for at in places:
            of_kind[candidates[at].kind] += 1
            turns[at] = of_kind[candidates[at].kind]
        found.update(sorted(places, key=turns.__getitem__)[most:])
    return found


def _without(kept: list[Candidate], dropped: set[int], reason: str, left_out: Counter[str]) -> list[Candidate]:
    if dropped:
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
