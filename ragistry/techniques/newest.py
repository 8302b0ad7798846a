"""Newest first among versions of one text, and the rule by which texts are copies."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cache
from math import inf, nextafter

from pydantic import Field

from ragistry.chunking.breadcrumb import OLDER, searched_text
from ragistry.config.numbers import Number, Whole
from ragistry.config.problems import Configuration, parse_config
from ragistry.protocols import Technique
from ragistry.techniques.built_in import TechniqueConfig, rescored
from ragistry.techniques.folding import place_name, source_key
from ragistry.text.analysis import analyse, query_terms
from ragistry.text.languages import chunk_language
from ragistry.types import TOP_K_LIMIT, Document, Where
from ragistry.utils.metadata import date_text

WORDS, CHARACTERS = 4, 12
"""Length of a shingle in words, and in characters of a text without blanks between words."""
LONGEST_WORD = 15
"""Mean length of words above which a text counts as one without blanks."""
_WORD = re.compile(r"\w+")
UNREADABLE = "?"
"""The date of a passage whose metadata have one that cannot be read."""
_DOTTED = re.compile(r"\A(\d{1,2})\. ?(\d{1,2})\. ?(\d{4})\b", re.ASCII)
_MONTH = re.compile(r"[1-9]\d{3}(?:-(?:0[1-9]|1[0-2]))?", re.ASCII)


class NewestTechnique:
    """Newest first: of several versions of a passage, the latest takes the best place; all are returned.

    Broder, "On the Resemblance and Containment of Documents", 1997. Passages of different sources are versions if they
    share at least ``similarity`` of the shingles of the shorter one, and one is at most twice as long as the other.
    They stay apart if their titles differ by more than numbers and added words, or if a word of the query is only in
    one. Within the places that versions have in the ranking of the base, the latest comes first. Equal dates keep the
    order of the base, and passages without a date come last. The date is the later one of ``date`` and ``updated`` in
    the metadata, else ``modified``, the time of the file. Versions keep the order of the base if a date of the
    metadata cannot be read. ``older_version_of`` in the metadata of an earlier version names the latest.

    The base is asked once, for ``fetch`` results or 4, 16, … times as many. A passage moves within the block between
    two of these numbers only, so that a larger ``top_k`` does not change the first results. If the order of the base
    depends on ``top_k``, the base is asked for ``top_k`` results.
    """

    class Config(TechniqueConfig):
        similarity: Number = Field(default=0.5, gt=0, le=1, description="shared part from which passages are versions")
        fetch: Whole = Field(default=30, ge=1, le=TOP_K_LIMIT, description="number of candidates taken from the base")

    def __init__(self, config: Configuration, *, base: Technique) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.base = base

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        ends = [self.config.fetch * 4**power for power in range(6)]
        depth = min(TOP_K_LIMIT, next(end for end in ends if end >= wanted))
        stable = getattr(self.base, "stable_order", True)
        found = self.base.retrieve(query, top_k=depth if stable else wanted, where=where)
        moved = list(found)
        for family in families(found, self.config.similarity, query):
            if len(family) == 1:  # nearly all
                continue
            dates = {place: date_of(found[place]) for place in family}
            unread = bisect_right(ends, next((place for place in family if dates[place] == UNREADABLE), inf))
            known = [place for place in family if bisect_right(ends, place) < unread]
            by_date = sorted(known, key=lambda place: (-bisect_right(ends, place), dates[place]), reverse=True)
            newest = (by_date or family)[0]
            for place, own in zip(known, by_date, strict=True):
                moved[place] = document = found[own]
                if dates[own] > dates[newest]:
                    newest = own
                elif "" < dates[own] < dates[newest]:
                    moved[place] = replace(document, metadata=document.metadata | {OLDER: place_name(found[newest])})
        results: list[Document] = []
        for document, held_by in zip(moved, found, strict=True):
            score = held_by.score
            if results and (score, results[-1].id) >= (results[-1].score, document.id):  # `ranked` sorts ties by id
                score = nextafter(results[-1].score, -inf)
            results.append(document if score == document.score else rescored(document, "newest", "other", score))
        return results[:wanted]


def families(documents: Sequence[Document], similarity: float, query: str) -> list[list[int]]:
    """Group the places of copies, in the order of the best document of each group.

    A document joins the group with which its text shares most, compared with the group's best document: at least
    ``similarity`` of the shingles of the shorter one, if the longer one has at most twice as many. A group has one
    passage of a source.
    """
    groups: dict[int, list[int]] = {}  # by the place of the best document
    sources: dict[int, set[Hashable]] = {}
    heads: dict[int, set[str]] = {}  # the shingles of the best document
    seen: set[str] = set()  # all of them
    words = cache(lambda place: _words_of(query, documents[place]))
    for place, document in enumerate(documents):
        shingles, source = shingles_of(document.content), source_key(document) or document.id
        # A copy shares at least this many with one head, which has half as many or more.
        may_be_copy = 2 * len(shingles & seen) >= similarity * len(shingles)
        shared = [(-len(shingles & head), first) for first, head in heads.items()] if may_be_copy else []
        for count, first in sorted(shared):
            shorter, longer = sorted((len(shingles), len(heads[first])))
            if (
                source not in sources[first]
                and -count >= similarity * shorter >= similarity * longer / 2
                and _have_one_title(document, documents[first])
                and words(place) == words(first)
            ):
                groups[first].append(place)
                sources[first].add(source)
                break
        else:
            groups[place], sources[place], heads[place] = [place], {source}, shingles
            seen |= shingles
    return list(groups.values())


def _have_one_title(one: Document, other: Document) -> bool:
    """Return whether one title has the words of the other: "Lease" and "Lease 2025 (draft)"; also if one is missing."""
    titles = [
        {word for word in _WORD.findall(str(document.metadata.get("title") or "").casefold()) if not word.isdigit()}
        for document in (one, other)
    ]
    return titles[0] <= titles[1] or titles[1] <= titles[0]


def _words_of(query: str, document: Document) -> frozenset[str]:
    """Return the words of a query that a document has."""
    language = chunk_language(document.metadata, "english")
    text = searched_text(document.content, document.metadata)
    return frozenset(query_terms(query, language)).intersection(analyse(text, language))


def shingles_of(text: str) -> set[str]:
    """Return the overlapping sequences of words of a text; of characters, if it has no blanks between words."""
    words = _WORD.findall(text.casefold())
    if len("".join(words)) > LONGEST_WORD * len(words):
        joined = "".join(words)
        return {joined[start : start + CHARACTERS] for start in range(max(1, len(joined) - CHARACTERS + 1))}
    if len(words) < WORDS:
        return {" ".join(words)}
    return set(map(" ".join, zip(*(words[first:] for first in range(WORDS)), strict=False)))


def date_of(document: Document) -> str:
    """Return the date of a passage's source, as text that sorts by time.

    Returns:
        Empty if the source has no date; `UNREADABLE` if its metadata have one that cannot be read.
    """
    get = document.metadata.get
    given = [value for value in (get("date"), get("updated")) if value not in (None, "", [])]
    dates = [date for value in given or [get("modified")] for date in _dates(value)]
    return max(dates, default=UNREADABLE if given else "")


def _dates(value: object) -> list[str]:
    """Return the dates in a value of metadata, also years, months and 31.12.2026; nothing for any other value."""
    texts = map(str, value if isinstance(value, list) else [value])
    iso = (_DOTTED.sub(lambda day: f"{day[3]}-{day[2]:0>2}-{day[1]:0>2}", text) for text in texts)
    return [date for text in iso if (date := text if _MONTH.fullmatch(text) else date_text(text))]
