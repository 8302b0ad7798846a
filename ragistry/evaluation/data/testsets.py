"""A test set from one's own documents: known-item queries, each with the one source that it must find.

A query is what an author wrote about a source: its title, a heading, the description in its front matter. That would
be found too easily where the same words are indexed, so

- a title or heading that becomes a query is taken out of the text that is written to the corpus;
- a query whose words still stand there, in their order, is left out: one cannot take prose out of a text;
- a query that fits several sources is left out: the same words as another one's, a heading that names a part of a
  page ("Example: …", "Step 2") or has no word that is rare in the corpus, too few words that tell anything;
- at most `PER_DOCUMENT` queries ask for one source, because they are not independent.

A query that shares no word with what is left of its source stays: that is one which words alone do not find.

What is made is marked as synthetic: authors name things better than those who look for them.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ragistry.errors import DatasetError
from ragistry.evaluation.data.dataset import Dataset, Text
from ragistry.evaluation.data.library import sources_of
from ragistry.library.listing import files_of
from ragistry.utils.analysis import analyse, query_terms
from ragistry.utils.chunker import chunk_extracted
from ragistry.utils.extract import extract
from ragistry.utils.joined import joined_text
from ragistry.utils.markdown import outline
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.workspace import Workspace

Kind = Literal["description", "title", "heading", "question"]
KINDS: tuple[Kind, ...] = ("description", "title", "heading")
"""The kinds that need no model, the most like a person's question first."""

TELLING: dict[Kind, int] = {"description": 4, "title": 2, "heading": 3, "question": 3}
"""Words, without stop words, that a query must have."""

RARE = 0.1
"""Share of the sources that may contain the rarest word of a heading; a heading without such a word fits too many."""

PER_DOCUMENT = 3
"""Queries that ask for one source, at most."""

_STRUCTURE = re.compile(r"(?:examples?|methods?|steps?|options?|parts?|notes?|case|appendix|figure|table|\d+)\b", re.I)
_MARKUP = re.compile(r"[`*]|\{\{[<%].*?[%>]\}\}|<[^<>]*>")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")

CHUNK = 1_000
"""Characters of the chunks of a file, where no library has cut it."""

NEAR = 0.8
"""Shared terms, of all the terms of two queries, from which they ask the same."""


class Source(NamedTuple):
    """A source, what its author says it is about, and the chunks that questions are asked about."""

    id: str
    title: str
    description: str
    text: str
    chunks: list[str]


class Candidate(NamedTuple):
    """A query, the source that it must find, and the parts of its text (start, end) that would give it away."""

    text: str
    kind: Kind
    source: str
    cuts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TestSet:
    """A dataset all of whose queries are synthetic, and how many candidates were left out, by reason."""

    __test__ = False  # no test of pytest's

    dataset: Dataset
    left_out: Counter[str] = field(default_factory=Counter)


def known_items(sources: Iterable[Source], kinds: Sequence[Kind] = KINDS) -> Iterator[Candidate]:
    """Every query that the sources' titles, headings and descriptions give."""
    for source in sources:
        headings = [section for section in outline(source.text).sections if section.title]
        if "description" in kinds and source.description:
            yield Candidate(_plain(source.description), "description", source.id)
        if "title" in kinds and source.title:
            named = [section for section in headings if plain_words(section.title) == plain_words(source.title)]
            cuts = tuple((section.start, section.body) for section in named)
            yield Candidate(_plain(source.title), "title", source.id, cuts)
        for section in headings if "heading" in kinds else ():
            if plain_words(section.title) != plain_words(source.title):
                yield Candidate(_plain(section.title), "heading", source.id, ((section.start, section.body),))


def make_testset(
    name: str,
    sources: Sequence[Source],
    candidates: Iterable[Candidate],
    *,
    limit: int | None = None,
    per_document: int = PER_DOCUMENT,
    seed: int = 0,
    model: str | None = None,
    left_out: Counter[str] | None = None,
) -> TestSet:
    """The candidates that hold, at most ``per_document`` for each source and ``limit`` in all, drawn at random.

    ``model``: the one that asked the questions, to be written beside them. ``left_out``: what was no use before, to be
    counted on. Raises `DatasetError` where none holds.
    """
    if per_document < 1:
        raise DatasetError(f"{per_document} queries per document; give 1 or more")
    left_out = Counter(left_out)
    texts = {source.id: source.text for source in sources}
    found = _telling(candidates, texts, left_out)
    specific = _specific(found, list(texts.values()), left_out)
    kept = list(_of_some_text(list(_without_ambiguous(specific, left_out)), texts, left_out))
    kept = _capped(kept, per_document, seed, left_out)
    if limit is not None and len(kept) > limit:
        left_out["over the limit"] = len(kept) - limit
        drawn = set(random.Random(seed).sample(range(len(kept)), limit))
        kept = [candidate for number, candidate in enumerate(kept) if number in drawn]
    if not kept:
        reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        reasons = reasons or "none of them has any of the kinds asked for"
        remedy = "try other kinds" if model else "try other kinds or a model"
        raise DatasetError(
            f"no query can be made from {numbered(len(sources), '[source|sources]')}: {reasons}; {remedy}"
        )
    corpus = [Text(source, "", text) for source, text in _cut(texts, kept).items()]
    ids = {f"{candidate.kind[0]}{number}": candidate for number, candidate in enumerate(kept, 1)}
    dataset = Dataset(
        name,
        corpus,
        {query: candidate.text for query, candidate in ids.items()},
        {query: {candidate.source: 1} for query, candidate in ids.items()},
        synthetic={query: _origin(candidate, seed, model) for query, candidate in ids.items()},
    )
    return TestSet(dataset, left_out)


def without(text: str, cuts: Iterable[tuple[int, int]]) -> str:
    """The text without these parts."""
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
    return text


def _capped(kept: Sequence[Candidate], most: int, seed: int, left_out: Counter[str]) -> list[Candidate]:
    """At most so many of each source: one of each kind first, drawn among those of a kind."""
    by_source: defaultdict[str, list[int]] = defaultdict(list)
    for number, candidate in enumerate(kept):
        by_source[candidate.source].append(number)
    chosen: set[int] = set()
    for source, numbers in by_source.items():
        random.Random(f"{seed}/{source}").shuffle(numbers)
        of_kind: Counter[str] = Counter()
        turns = {}
        for number in numbers:
            of_kind[kept[number].kind] += 1
            turns[number] = of_kind[kept[number].kind]
        chosen.update(sorted(numbers, key=turns.__getitem__)[:most])
    if len(chosen) < len(kept):
        left_out[f"over the {most} of one document"] = len(kept) - len(chosen)
    return [candidate for number, candidate in enumerate(kept) if number in chosen]


def _origin(candidate: Candidate, seed: int, model: str | None) -> dict[str, Any]:
    """How a query was made."""
    asked = {"model": model} if model and candidate.kind == "question" else {}
    return {"kind": candidate.kind, "seed": seed, **asked}


def _cut(texts: Mapping[str, str], candidates: Iterable[Candidate]) -> dict[str, str]:
    """The texts without what would give any of the candidates away."""
    cuts: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
    for candidate in candidates:
        cuts[candidate.source].update(candidate.cuts)
    return {source: without(text, cuts[source]) for source, text in texts.items()}


def _telling(candidates: Iterable[Candidate], texts: Mapping[str, str], left_out: Counter[str]) -> Iterator[Candidate]:
    for candidate in candidates:
        if len(query_terms(candidate.text)) < TELLING[candidate.kind]:
            left_out["with too few telling words"] += 1
        elif stands_in(candidate.text, without(texts[candidate.source], candidate.cuts)):
            left_out["standing word for word in the text to be found"] += 1
        else:
            yield candidate


def _specific(candidates: Iterable[Candidate], texts: Sequence[str], left_out: Counter[str]) -> Iterator[Candidate]:
    """Descriptions, titles and questions, and the headings that say which source they are of."""
    spread = Counter(term for text in texts for term in set(analyse(text)))
    most = max(2, int(RARE * len(texts)))
    for candidate in candidates:
        rare = any(spread[term] <= most for term in query_terms(candidate.text))
        if candidate.kind == "heading" and (not rare or _STRUCTURE.match(candidate.text)):
            left_out["taken from headings of many a page"] += 1
        else:
            yield candidate


def _without_ambiguous(candidates: Iterable[Candidate], left_out: Counter[str]) -> Iterator[Candidate]:
    """Of near-duplicates that ask for one source the first is kept, of those that ask for several none."""
    listed = list(candidates)
    dropped: set[int] = set()
    for first, second, _ in near_duplicates([candidate.text for candidate in listed]):
        if listed[first].source == listed[second].source:
            dropped.add(second)
        else:
            dropped |= {first, second}
    if dropped:
        left_out["asking for what another one asks for"] = len(dropped)
    yield from (candidate for number, candidate in enumerate(listed) if number not in dropped)


def _of_some_text(
    candidates: Sequence[Candidate], texts: Mapping[str, str], left_out: Counter[str]
) -> Iterator[Candidate]:
    """Those whose source has any text left when all that gives any query away is taken out."""
    remaining = _cut(texts, candidates)
    for candidate in candidates:
        if remaining[candidate.source].strip():
            yield candidate
        else:
            left_out["of a source with nothing else in it"] += 1


def _plain(text: str) -> str:
    """The words without Markdown's marks."""
    return " ".join(_MARKUP.sub("", _LINK.sub(r"\1", text)).split())


# The sources


def library_sources(workspace: Workspace, collection: str | None = None) -> list[Source]:
    """The sources of a library, or of one of its collections, ordered by id."""
    found = []
    for name, chunks in sources_of(workspace):
        known = chunks[0].metadata
        if collection in (None, known.get("collection")):
            title, description = str(known.get("title", "")), str(known.get("description", ""))
            found.append(Source(name, title, description, joined_text(chunks), [chunk.content for chunk in chunks]))
    return found


def folder_sources(folder: str | Path) -> list[Source]:
    """The readable files below a folder that have text, ordered by name. Raises `SourceError`."""
    found = []
    for file in files_of(folder):
        extracted = extract(file.path)
        title, description = (str(extracted.metadata.get(key, "")) for key in ("title", "description"))
        chunks = [chunk.text for chunk in chunk_extracted(extracted, CHUNK)]
        if chunks:
            found.append(Source(file.source_file, title, description, extracted.text, chunks))
    return found


# Queries that are alike


def near_duplicates(texts: Sequence[str], threshold: float = NEAR) -> Iterator[tuple[int, int, float]]:
    """Pairs of places (the smaller first) of texts that share most of their terms, and how much: 1 is all of them.

    Jaccard's coefficient. Only pairs that share one of their rarest terms are looked at, which misses none
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


def stands_in(query: str, text: str) -> bool:
    """Whether the text contains the words of the query, in their order and next to each other."""
    words = plain_words(query)
    return bool(words) and f" {words} " in f" {plain_words(text)} "


def plain_words(text: str) -> str:
    """The words of a text with single blanks between: no case, no marks, no endings."""
    return " ".join(analyse(text))
