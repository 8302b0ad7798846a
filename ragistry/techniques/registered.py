"""A technique under its name: it records a stage, and its input and results are checked."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isfinite
from pathlib import Path
from traceback import walk_tb
from typing import Any

from ragistry.errors import ConfigError, RagistryError, TechniqueError
from ragistry.models.adapt import is_built_in
from ragistry.protocols import Generator, Reranker, Technique
from ragistry.techniques.built_in import least_score
from ragistry.techniques.classes import retrieve_complaints
from ragistry.techniques.folding import fold_identical, folds, retrieve_filled
from ragistry.techniques.phrases import PhraseSearch
from ragistry.text.phrases import parse_query
from ragistry.trace import stage
from ragistry.types import OUTSIDE, Document, Ranking, StageScore, Where, is_outside
from ragistry.utils.limits import check_query, check_top_k
from ragistry.utils.where import Condition, matches, normalise

INSTALLED = tuple(
    f"{folder}{os.sep}"
    for folder in (
        Path(__file__).parents[1],
        *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),
    )
)
"""Folders of this package, of Python and of installed packages."""


class RegisteredTechnique:
    """A named technique that records a stage, and checks its input and its results.

    ``where`` also limits access, so a document that does not meet it is an error, never a result, unless it is marked
    as one from outside the library. Documents that are not ordered by their scores are an error. At most ``top_k``
    documents are returned, because the caller may have no room for more. A score that ``scores`` of a document lacks
    is added there under the name of the technique.

    Arguments and results of a base are not checked, because the outermost technique checks them.
    The results of a base whose code is not part of this package are checked all the same: the technique above may
    send them to a language model.

    In a search of a library, a technique that asks a model gets no identical passages from the techniques below it.

    Args:
        name: Name of the technique, of its stage and in its errors.
        technique: The technique.
        sets_top_k: The entry of the technique sets ``top_k``.
        is_base: Another technique of the registry builds on this one.
        phrases: Searches the phrases of a query; None to treat quotation marks as text, as in a base.
        entry: The name or entry that it was built from, so that a comparison can build it again; None for an object.
        over: The techniques that it builds on.

    Attributes:
        stable_order: The results for a smaller ``top_k`` are the first of those for a larger one: what the attribute
            ``stable_order`` of the class says, else true for a technique of this package, if it builds only on such
            ones.
        can_rank: It is one of this package that ranks without reading texts, over a store that can.
        asks_model: It asks a generator or a reranker, or a technique that it builds on does: what the attribute
            ``asks_model`` of the class says, else true for a technique that has one of them as an attribute.
    """

    def __init__(
        self,
        name: str,
        technique: Technique,
        *,
        sets_top_k: bool = False,
        is_base: bool = False,
        phrases: PhraseSearch | None = None,
        entry: str | Mapping[str, Any] | None = None,
        over: Sequence[RegisteredTechnique] = (),
    ) -> None:
        self.name = name
        self.entry = entry
        self.technique = technique
        self.sets_top_k = sets_top_k
        self._phrases = phrases
        self._least = least_score(technique)
        built_in = is_built_in(technique)
        own: bool = getattr(technique, "stable_order", built_in)
        self.stable_order: bool = own and all(base.stable_order for base in over)
        parts = [*over, *getattr(technique, "__dict__", {}).values()]
        has_model = any(isinstance(part, Generator | Reranker) for part in parts)
        self._has_model: bool = getattr(technique, "asks_model", has_model)
        self.asks_model: bool = self._has_model or any(getattr(part, "asks_model", False) for part in parts)
        self.can_rank: bool = built_in and getattr(technique, "can_rank", False)
        self._checks_arguments = not is_base and not built_in  # techniques of this package check them
        self._checks_results = not (is_base and built_in)

    def __repr__(self) -> str:
        return f"<technique {self.name!r}: {type(self.technique).__name__}>"

    def without_phrases(self) -> RegisteredTechnique:
        """Return the same technique, for which quotation marks are text."""
        return RegisteredTechnique(self.name, self.technique, over=[self])

    def around(self, technique: Technique) -> RegisteredTechnique:
        """Return a technique over this one, with its name; phrases of a query are searched as by this one."""
        return RegisteredTechnique(self.name, technique, sets_top_k=self.sets_top_k, phrases=self._phrases, over=[self])

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        if self._checks_arguments:
            check_query(query)
            if top_k is not None:
                check_top_k(top_k)
        if self._checks_results and where is not None:
            where = normalise(where)
        folds_here = folds.get()
        token = folds.set(None if folds_here is None else self._has_model)
        with stage(self.name) as this:
            try:
                parsed = parse_query(query) if self._phrases is not None and isinstance(query, str) else None
                if self._phrases is None or parsed is None:
                    run = partial(self._retrieve, query, where=where)
                else:
                    run = partial(self._phrases.run, self._retrieve, query, parsed, where=where)
                documents = (
                    retrieve_filled(run, fold_identical, top_k, once=self.asks_model) if folds_here else run(top_k)
                )
            except Exception as error:
                name_error(error, self.name)
                raise
            finally:
                folds.reset(token)
            this.documents_out = len(documents)
        return documents

    def rank(self, query: str, top_k: int, where: Condition | None) -> Ranking | None:
        """Rank as `retrieve` does, without reading texts; None if it cannot. The arguments were checked."""
        if not self.can_rank or (self._phrases is not None and parse_query(query) is not None):
            return None
        with stage(self.name) as this:
            try:
                ranking: Ranking | None = self.technique.rank(query, top_k, where)  # type: ignore[attr-defined]
            except Exception as error:
                name_error(error, self.name)
                raise
            if ranking is not None and (least := self._least) is not None:
                scores = {key: score for key, score in ranking.scores.items() if score >= least}
                ranking = replace(ranking, scores=scores)
            this.documents_out = len(ranking.scores) if ranking is not None else 0
        return ranking

    def _retrieve(self, query: str, top_k: int | None, where: Where | None) -> list[Document]:
        found = self._checked(self.technique.retrieve(query, top_k=top_k, where=where), top_k, where)
        least = self._least
        return found if least is None else [document for document in found if document.score >= least]

    def _checked(self, documents: Any, top_k: int | None, where: Where | None) -> list[Document]:
        if not self._checks_results:
            return documents[:top_k]  # type: ignore[no-any-return]
        above, checked = inf, []
        for document in documents if isinstance(documents, list) else [None]:
            if not isinstance(document, Document):
                raise TechniqueError(
                    f"technique {self.name!r} returned {type(documents).__name__} {str(documents)[:80]!r}; "
                    "retrieve must return a list of Document"
                )
            try:
                finite = isfinite(document.score)
            except (TypeError, ValueError, OverflowError):
                finite = False
            if not finite:
                raise TechniqueError(
                    f"technique {self.name!r} gave document {document.id!r} the score {document.score!r}; "
                    "a score must be a finite number"
                )
            if document.score > above:
                raise TechniqueError(
                    f"technique {self.name!r} returned {document.id!r} with the score {document.score:.4g} after one "
                    f"with {above:.4g}; order documents by score with ranked() of ragistry.types, and give each the "
                    "score that decides its place"
                )
            above = document.score
            if where is not None and not matches(where, document.metadata) and not is_outside(document):
                raise TechniqueError(
                    f"technique {self.name!r} ignored where={where!r}: it returned {document.id!r}; pass `where` on "
                    f"to the store or base, and mark a document from elsewhere by the metadata {{{OUTSIDE!r}: True}}"
                )
            if not document.scores or document.scores[-1].value != document.score:  # a technique did not record it
                scores = (*document.scores, StageScore(self.name, "other", document.score))
                document = replace(document, scores=scores)
            checked.append(document)
        return checked[:top_k]


def registered(name: str, technique: Any) -> RegisteredTechnique:
    """Give a technique the name under which its stages are recorded. Raises `ConfigError` if it is not a technique."""
    if wrong := retrieve_complaints(technique):
        raise ConfigError("; ".join(wrong))
    return technique if isinstance(technique, RegisteredTechnique) else RegisteredTechnique(name, technique)


def name_error(error: Exception, technique: str, remedy: str = "") -> None:
    """Add a note to an exception of a technique's code: the name of the technique and the line in the user's file."""
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    # The lines of files that are neither part of this package nor installed; the innermost is the last one.
    own = [f" at {file}:{line}" for file, line in frames if not file.startswith((*INSTALLED, "<"))]
    if own or not isinstance(error, RagistryError):  # if only our code ran, its message is enough
        error.add_note(f"technique {technique!r} failed{''.join(own[-1:])}{remedy}")
