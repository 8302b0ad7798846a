"""What a technique answered to one query and what that cost, and the file in which answers outlive a stop."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragistry.errors import EvaluationError, TechniqueError
from ragistry.evaluation.dataset import Run
from ragistry.evaluation.vectors import CHARGED
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


def document_of(chunk: Document, known: Container[str]) -> str:
    """The document of the test set that a result belongs to, whose ids are ``known``.

    Its ``collection`` and ``source_file`` name it (``notes/tea.md``), or ``source_file`` alone, or its own id.
    """
    source = str(chunk.metadata.get("source_file", chunk.id))
    names = (f"{chunk.metadata.get('collection', '')}/{source}", source, chunk.id)
    return next((name for name in names if name in known), source)


def ranking_of(name: str, chunks: Iterable[Document], known: Container[str]) -> dict[str, Document]:
    """Documents in the order of their best chunk: each stands where the first of its chunks stands.

    Raises `TechniqueError` for a score that is no finite number.
    """
    best: dict[str, Document] = {}
    for chunk in chunks:
        document = document_of(chunk, known)
        if not math.isfinite(chunk.score):
            raise TechniqueError(
                f"technique {name!r} gave {document!r} the score {chunk.score!r}; it must be a finite number"
            )
        best.setdefault(document, chunk)
    return best


def charged(stages: Sequence[Stage]) -> float:
    """Milliseconds to add to those of the clock, for work that was done earlier and kept."""
    return sum(float(stage.detail.get(CHARGED, 0.0)) for stage in stages)


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


class AnswerFile:
    """Answers of one technique, one a line, behind a line that says what they are answers of."""

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self.path = path
        self.head = {"of": sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()}

    def read(self) -> dict[str, Answer]:
        """Query → answer; a line that a stopped process left unfinished is taken off the file.

        Raises `EvaluationError` where the file holds answers of another comparison.
        """
        if not self.path.exists():
            return {}
        lines = self.path.read_bytes().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        if len(whole) < len(lines):
            self.path.write_bytes(b"".join(whole))
        if not whole:
            return {}
        try:
            head, *rows = [json.loads(line) for line in whole]
        except ValueError as error:
            raise EvaluationError(f"{self.path} holds no answers of a comparison: {error}; delete that file") from error
        if head != self.head:
            raise EvaluationError(
                f"{self.path} holds answers of another test set, configuration, model, depth or version of Ragistry; "
                "give another folder, or delete that file"
            )
        return {
            row["query"]: Answer(**{**row, "ranking": [(id, score) for id, score in row["ranking"]]}) for row in rows
        }

    def append(self, answers: Iterable[Answer]) -> None:
        """Add answers; they are kept even if the process is killed the next moment."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists() or not self.path.stat().st_size
        with self.path.open("a", encoding="utf-8") as file:
            for row in [*([self.head] if new else []), *map(asdict, answers)]:
                file.write(json.dumps(row) + "\n")


def run_of(answers: Iterable[Answer]) -> Run:
    """The rankings alone."""
    return {answer.query: answer.ranking for answer in answers}
