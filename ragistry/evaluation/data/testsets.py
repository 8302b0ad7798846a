"""Make a test set from documents: known-item queries, each with the one source it must find.

A query is a text that the author wrote about the source: its title, a heading, or the description in its front matter.
If the same words were indexed, it would be found too easily. So

- a title or heading that becomes a query is removed from the text in the corpus;
- a query whose words are still in the text, in their order, is left out, because prose cannot be removed;
- a query that fits several sources is left out: one with the same words as another, a heading that names a part of a
  page ("Example: …", "Step 2") or has no rare word, or one with too few meaningful words;
- at most `PER_DOCUMENT` queries ask for one source, because they are not independent.

A query that shares no word with the remaining text stays: it needs a search by meaning.

These queries are marked as synthetic, because authors name things better than people who search for them.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from ragistry.errors import DatasetError
from ragistry.evaluation.data.dataset import Dataset, Text
from ragistry.evaluation.data.library import sources_of
from ragistry.library.ingest.folder import files_of
from ragistry.utils.chunker import chunk_extracted
from ragistry.utils.documents.extract import extract
from ragistry.utils.documents.markdown import outline
from ragistry.utils.joined import joined_text
from ragistry.utils.text.analysis import analyse, query_terms
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.workspace import Workspace

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

CHUNK = 1_000
"""Chunk size in characters for files that are not in a library."""

NEAR = 0.8
"""Share of common terms above which two queries count as duplicates."""


class Source(NamedTuple):
    """A source, the author's descriptions of it, and the chunks for questions."""

    id: str
    title: str
    description: str
    text: str
    chunks: list[str]


class Candidate(NamedTuple):
    """A query, the source it must find, and the parts of that text (start, end) that would give it away."""

    text: str
    kind: Kind
    source: str
    cuts: tuple[tuple[int, int], ...] = ()


class TestSet(NamedTuple):
    """A dataset all of whose queries are synthetic, and how many candidates were left out, by reason."""

    dataset: Dataset
    left_out: Counter[str]


def known_items(sources: Iterable[Source], kinds: Sequence[Kind] = KINDS) -> Iterator[Candidate]:
    """Every query from titles, headings and descriptions of the sources."""
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
    """The candidates that can be used, at most ``per_document`` for each source and ``limit`` in all, drawn at random.

    ``model``: the one that wrote the questions, recorded in the test set. ``left_out``: counts of candidates left out
    before, to be increased. Raises `DatasetError` if no candidate can be used.
    """
    if per_document < 1:
        raise DatasetError(f"{per_document} queries per document; give 1 or more")
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
    kept = _without(kept, ambiguous, "asking for what another one asks for", left_out)
    remaining = _cut(texts, kept)
    empty = {at for at, one in enumerate(kept) if not remaining[one.source].strip()}
    kept = _without(kept, empty, "of a source with nothing else in it", left_out)
    kept = _without(kept, _surplus(kept, per_document, seed), f"over the {per_document} of one document", left_out)
    if limit is not None and len(kept) > limit:
        drawn = random.Random(seed).sample(range(len(kept)), limit)
        kept = _without(kept, set(range(len(kept))).difference(drawn), "over the limit", left_out)
    if not kept:
        reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        remedy = f"try other kinds{'' if model else ' or a model'}"
        raise DatasetError(
            f"no query can be made from {numbered(len(sources), '[source|sources]')}: "
            f"{reasons or 'none of them has any of the kinds asked for'}; {remedy}"
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
    """Why a query cannot be used; empty if it can. ``spread``: term → number of sources; up to ``most`` is rare."""
    terms = query_terms(candidate.text)
    if len(terms) < TELLING[candidate.kind]:
        return "with too few telling words"
    if stands_in(candidate.text, without(text, candidate.cuts)):
        return "standing word for word in the text to be found"
    common = _STRUCTURE.match(candidate.text) or all(spread[term] > most for term in terms)
    return "taken from headings of many a page" if candidate.kind == "heading" and common else ""


def _ambiguous(candidates: Sequence[Candidate]) -> set[int]:
    """Near-duplicates to drop: all but the first if they ask for one source, all if they ask for several."""
    found: set[int] = set()
    for first, second, _ in near_duplicates([candidate.text for candidate in candidates]):
        found |= {second} if candidates[first].source == candidates[second].source else {first, second}
    return found


def _surplus(candidates: Sequence[Candidate], most: int, seed: int) -> set[int]:
    """The candidates of a source above ``most``; keeps one of each kind first, chosen at random within a kind."""
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
    """The text without these parts."""
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
    return text


def _cut(texts: Mapping[str, str], candidates: Iterable[Candidate]) -> dict[str, str]:
    """The texts without the parts that would give a candidate away."""
    cuts: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
    for candidate in candidates:
        cuts[candidate.source].update(candidate.cuts)
    return {source: without(text, cuts[source]) for source, text in texts.items()}


def _plain(text: str) -> str:
    """The words without Markdown's marks."""
    return " ".join(_MARKUP.sub("", _LINK.sub(r"\1", text)).split())


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


def near_duplicates(texts: Sequence[str], threshold: float = NEAR) -> Iterator[tuple[int, int, float]]:
    """Pairs of indexes (the smaller first) of texts that share most of their terms, with Jaccard's coefficient.

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


def stands_in(query: str, text: str) -> bool:
    """Whether the text contains the words of the query, in their order and next to each other."""
    words = plain_words(query)
    return bool(words) and f" {words} " in f" {plain_words(text)} "


def plain_words(text: str) -> str:
    """The stemmed words of a text in lower case, without punctuation, separated by single spaces."""
    return " ".join(analyse(text))
