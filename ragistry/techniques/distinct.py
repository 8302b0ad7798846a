"""Results without copies: of several versions of one text, only the newest is returned."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from ragistry.config.numbers import Number, Whole
from ragistry.config.parse import parse_config
from ragistry.protocols import Technique
from ragistry.techniques.built_in import TechniqueConfig, rescored
from ragistry.trace import stage
from ragistry.types import TOP_K_LIMIT, Document, Where, ranked

COPIES, COPY_PLACES = "copies", "copy_places"
"""Metadata keys of a result: the number of its copies, and their sources."""
WORDS, CHARACTERS = 4, 12
"""Length of a shingle in words, and in characters of a text without blanks between words."""
SIMILARITY = 0.8
"""Shared part from which texts are copies by default."""
LONGEST_WORD = 15
"""Mean length of words above which a text counts as one without blanks."""
_WORD = re.compile(r"\w+")


class DistinctTechnique:
    """Folds copies and versions of one text: returns the newest, and names the others in its metadata.

    Broder, "On the Resemblance and Containment of Documents", 1997. Two passages are copies if they share at least
    ``similarity`` of the shingles of the shorter one, and one is at most twice as long as the other. The newest by
    ``modified`` takes the place and the score of the best. ``copies`` in its metadata is the number of the others, and
    ``copy_places`` lists their sources.
    """

    class Config(TechniqueConfig):
        similarity: Number = Field(
            default=SIMILARITY, gt=0, le=1, description="shared part from which passages are copies"
        )
        fetch: Whole = Field(default=30, ge=1, le=TOP_K_LIMIT, description="number of candidates taken from the base")

    def __init__(self, config: Mapping[str, Any], *, base: Technique) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.base = base

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.top_k if top_k is None else top_k
        candidates = self.base.retrieve(query, top_k=min(TOP_K_LIMIT, max(2 * wanted, self.config.fetch)), where=where)
        with stage("fold") as this:
            this.documents_in = len(candidates)
            folded = ranked(_folded(family) for family in families(candidates, self.config.similarity))[:wanted]
            this.documents_out = len(folded)
        return folded


def families(documents: Sequence[Document], similarity: float) -> list[list[Document]]:
    """Group copies, in the order of the best document of each group.

    A document joins the group with which its text shares most, compared with the group's best document.
    """
    found: list[list[Document]] = []
    sizes: list[int] = []
    heads: dict[str, list[int]] = {}  # the groups whose best document has a shingle
    for document in documents:
        shingles = shingles_of(document.content)
        shared = Counter(group for shingle in shingles for group in heads.get(shingle, ()))
        group, count = max(shared.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
        if count and are_copies(count, len(shingles), sizes[group], similarity):
            found[group].append(document)
            continue
        for shingle in shingles:
            heads.setdefault(shingle, []).append(len(found))
        found.append([document])
        sizes.append(len(shingles))
    return found


def are_copies(shared: int, one: int, other: int, similarity: float = SIMILARITY) -> bool:
    """Decide from the number of shared shingles, and of all shingles of each, whether two texts are copies."""
    shorter, longer = sorted((one, other))
    return shared >= similarity * shorter and longer <= 2 * shorter


def shingles_of(text: str) -> set[str]:
    """Return the overlapping sequences of words of a text; of characters, if it has no blanks between words."""
    words = _WORD.findall(text.casefold())
    if len("".join(words)) > LONGEST_WORD * len(words):
        joined = "".join(words)
        return {joined[start : start + CHARACTERS] for start in range(max(1, len(joined) - CHARACTERS + 1))}
    return {" ".join(words[start : start + WORDS]) for start in range(max(1, len(words) - WORDS + 1))}


def _folded(family: Sequence[Document]) -> Document:
    newest = max(family, key=lambda one: (str(one.metadata.get("modified", "")), one.score))
    result = rescored(newest, "distinct", "other", family[0].score)
    others = [_source(one) for one in family if one is not newest]
    folded = {COPIES: len(others), COPY_PLACES: list(dict.fromkeys(others))} if others else {}
    return replace(result, metadata={**result.metadata, **folded})


def _source(document: Document) -> str:
    return str(document.metadata.get("source_file") or document.metadata.get("source") or document.id)
