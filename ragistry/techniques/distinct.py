"""Results without copies: of several versions of one text, only the newest is returned."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from pydantic import Field

from ragistry.chunking.breadcrumb import searched_text
from ragistry.config.numbers import Number, Whole
from ragistry.config.problems import Configuration, parse_config
from ragistry.protocols import Technique
from ragistry.techniques.built_in import TechniqueConfig, rescored
from ragistry.techniques.folding import COPIES, folded
from ragistry.text.analysis import analyse, query_terms
from ragistry.text.languages import chunk_language
from ragistry.trace import degraded, stage
from ragistry.types import TOP_K_LIMIT, Document, Where, ranked

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
    ``similarity`` of the shingles of the shorter one, and one is at most twice as long as the other. They stay apart if
    their titles differ by more than numbers and added words, or if a word of the query is only in one: a newer version
    without the answer does not replace the one that has it. The newest by ``modified`` takes the place and the score of
    the best. ``copies`` in its metadata is the number of the others, and ``copy_places`` lists their places. Passages
    of one source are never folded. An answer with folded passages is marked as degraded.
    """

    class Config(TechniqueConfig):
        similarity: Number = Field(
            default=SIMILARITY, gt=0, le=1, description="shared part from which passages are copies"
        )
        fetch: Whole = Field(default=30, ge=1, le=TOP_K_LIMIT, description="number of candidates taken from the base")

    def __init__(self, config: Configuration, *, base: Technique) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.base = base

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        for depth in self._depths():
            candidates = self.base.retrieve(query, top_k=depth, where=where)
            results = self._fold(candidates, query)[:wanted]
            if len(results) == wanted or len(candidates) < depth:
                break
        if any(COPIES in result.metadata for result in results):
            degraded(
                "similar passages of other sources are folded under some results, which name them; "
                "another technique returns each"
            )
        return results

    def _fold(self, candidates: Sequence[Document], query: str) -> list[Document]:
        with stage("fold") as this:
            this.documents_in = len(candidates)
            places = {id(document): place for place, document in enumerate(candidates)}
            results = []
            for family in families(candidates, self.config.similarity, query):
                end = next(depth for depth in self._depths() if places[id(family[0])] < depth)
                results.append(_folded(family, [one for one in family if places[id(one)] < end]))
            this.documents_out = len(results)
        return ranked(results)

    def _depths(self) -> Iterator[int]:
        """Yield the numbers of candidates, each four times the one before.

        A copy below the depth at which its group was found does not take the place of the group's newest, so that more
        results do not change fewer ones.
        """
        depth = self.config.fetch
        while depth < TOP_K_LIMIT:
            yield depth
            depth *= 4
        yield TOP_K_LIMIT


def families(documents: Sequence[Document], similarity: float, query: str) -> list[list[Document]]:
    """Group copies, in the order of the best document of each group.

    A document joins the group with which its text shares most, compared with the group's best document. A group has one
    passage of a source.
    """
    found: list[list[Document]] = []
    sources: list[set[Hashable]] = []
    sizes: list[int] = []
    heads: dict[str, list[int]] = {}  # the groups whose best document has a shingle
    for document in documents:
        shingles, source = shingles_of(document.content), _source(document)
        shared = Counter(group for shingle in shingles for group in heads.get(shingle, ()))
        for group, count in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
            if source in sources[group] or not are_copies(count, len(shingles), sizes[group], similarity):
                continue
            head = found[group][0]
            if _have_one_title(document, head) and _words_of(query, document) == _words_of(query, head):
                found[group].append(document)
                sources[group].add(source)
                break
        else:
            for shingle in shingles:
                heads.setdefault(shingle, []).append(len(found))
            found.append([document])
            sources.append({source})
            sizes.append(len(shingles))
    return found


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
    if len(words) < WORDS:
        return {" ".join(words)}
    return set(map(" ".join, zip(*(words[first:] for first in range(WORDS)), strict=False)))


def _folded(family: Sequence[Document], candidates: Sequence[Document]) -> Document:
    """Fold a group under the newest of some of its documents."""
    if len(family) == 1:
        return family[0]
    newest = max(candidates, key=lambda one: (str(one.metadata.get("modified", "")), one.score))
    result = rescored(newest, "distinct", "other", family[0].score)
    return folded(result, [one for one in family if one is not newest])


def _source(document: Document) -> Hashable:
    """Identify the source of a document; without one, the document."""
    get = document.metadata.get
    source = get("source_file") or get("file_path") or get("source")
    return (str(get("collection") or get("repository")), str(source)) if source else document.id
