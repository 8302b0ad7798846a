"""What a technique answered to one query, and what that cost."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from ragistry.errors import TechniqueError
from ragistry.evaluation.charges import CHARGED
from ragistry.evaluation.dataset import Run
from ragistry.types import Document, Stage, StageScore

EXPLAINED = 10
"""Documents of a ranking, from the best, whose stage scores are kept to explain it."""


ITSELF = "itself"
"""The time of a technique outside of its stages."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One ranking of documents, best first, and its cost.

    ``stages``: milliseconds of each stage without those inside it, in the order in which they began, so that their
    sum is about ``ms``. ``scores``: of the first and of the relevant documents, what each stage gave them.
    ``route``: what the stages that chose where to search wrote down.
    """

    query: str
    ranking: list[tuple[str, float]]
    ms: float
    calls: int
    tokens: int
    stages: dict[str, float] = field(default_factory=dict)
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    route: list[dict[str, Any]] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)


def document_of(chunk: Document, known: Container[str], *, qualified: bool = True) -> str:
    """The document of the test set that a result belongs to, whose ids are ``known``.

    Its ``collection`` and ``source_file`` name it (``notes/tea.md``), or ``source_file`` alone, or its own id; the
    first of these that is known. Not ``qualified``: its ``source_file`` alone goes before both, since an id may begin
    with the name of a collection and a slash, too.
    """
    source = str(chunk.metadata.get("source_file", chunk.id))
    names = [f"{chunk.metadata.get('collection', '')}/{source}", source, chunk.id]
    return next((name for name in (names if qualified else [source, *names]) if name in known), source)


def ranking_of(
    name: str, chunks: Iterable[Document], known: Container[str], *, qualified: bool = True
) -> dict[str, Document]:
    """Documents in the order of their best chunk: each stands where the first of its chunks stands.

    ``qualified``: see `document_of`. Raises `TechniqueError` for a score that is no finite number.
    """
    best: dict[str, Document] = {}
    for chunk in chunks:
        document = document_of(chunk, known, qualified=qualified)
        if not is_finite(chunk.score):
            raise TechniqueError(
                f"technique {name!r} gave {document!r} the score {chunk.score!r}; it must be a finite number"
            )
        best.setdefault(document, chunk)
    return best


def is_finite(value: Any) -> bool:
    """Whether a score is a number that can be compared."""
    return isinstance(value, Real) and math.isfinite(value)


def stage_times(stages: Sequence[Stage]) -> dict[str, float]:
    """Milliseconds of each stage by its path below the technique, without those of the stages inside it."""
    own: dict[str, float] = {}
    path: list[str] = []
    for stage in stages:
        del path[stage.depth :]
        inside = CHARGED in stage.detail
        if not inside:
            path.append(stage.name)
        name, parent = " > ".join(path[1:]) or ITSELF, " > ".join(path[1:-1]) or ITSELF
        own[name] = own.get(name, 0.0) + (stage.detail[CHARGED] if inside else stage.ms)
        if len(path) > 1 and not inside:
            own[parent] = own.get(parent, 0.0) - stage.ms
    return {name: max(0.0, ms) for name, ms in own.items()}


def stage_name(score: StageScore) -> str:
    """What gave a score, with its kind: ``dense cosine``, ``bm25``."""
    return score.stage if score.stage == score.kind else f"{score.stage} {score.kind}"


def routes(stages: Sequence[Stage]) -> list[dict[str, Any]]:
    """The details of the stages that chose between targets, as plain values."""
    details = [dict(stage.detail) for stage in stages if "chosen" in stage.detail]
    plain: list[dict[str, Any]] = json.loads(json.dumps(details, default=str))
    return plain


def run_of(answers: Iterable[Answer]) -> Run:
    """The rankings alone."""
    return {answer.query: answer.ranking for answer in answers}
