"""Whole texts with questions, each answered by ranges of them: searched by chunks, and scored by ranges."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ragistry.errors import DatasetError
from ragistry.evaluation.chunking import ChunkScores, Piece, chunk_scores, token_ranges
from ragistry.evaluation.dataset import raise_together
from ragistry.library.source import Reading, chunks_of
from ragistry.protocols import Embedder
from ragistry.utils.extracted import Extracted

TOP_K = 5
"""As many chunks as the published figures are of."""

Offsets = dict[str, list[tuple[int, int]]]
"""Of each text, where its tokens are."""


class Question(NamedTuple):
    """A question and the ranges that answer it."""

    id: str
    text: str
    answer: tuple[Piece, ...]


@dataclass(frozen=True)
class ChunkingSet:
    """Texts by name, and the questions on them.

    Raises `DatasetError` with all that is wrong: no questions, one without an answer, a range that is not in its text.
    """

    name: str
    texts: dict[str, str]
    questions: Sequence[Question]

    def __post_init__(self) -> None:
        problems = [problem for question in self.questions for problem in _problems(question, self.texts)]
        raise_together(self.name, problems if self.questions else ["it has no questions"])


def read_chunking_set(folder: str | Path) -> ChunkingSet:
    """``NAME.md.gz`` or ``NAME.md``, and ``queries.jsonl``: ``_id``, ``text``, ``corpus`` (NAME), ``references``.

    Line ends are kept as they are, since references count characters. Raises `DatasetError`.
    """
    root = Path(folder)
    try:
        lines = (root / "queries.jsonl").read_text(encoding="utf-8").split("\n")  # JSON may hold other ends of lines
        rows = [json.loads(line) for line in lines if line.strip()]
        questions = [_question(row) for row in rows]
        texts = {path.name.partition(".md")[0]: _read(path) for path in sorted(root.glob("*.md*")) if _is_text(path)}
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DatasetError(
            f"{str(root)!r} is no set of texts and questions: {error!r}; see read_chunking_set"
        ) from error
    return ChunkingSet(root.name, texts, questions)


def pieces_of(texts: dict[str, str], reading: Reading, embedder: Embedder) -> list[Piece]:
    """The chunks that a library would make of the texts, as Markdown."""
    return [
        Piece(name, chunk.metadata["start"], chunk.metadata["end"])
        for name, text in texts.items()
        for chunk in chunks_of(Extracted(text, f"{name}.md", "markdown"), reading, embedder)
    ]


def retrieved(asked: ChunkingSet, chunks: Sequence[Piece], embedder: Embedder, top_k: int = TOP_K) -> list[list[Piece]]:
    """For each question the ``top_k`` chunks of all texts that are nearest to it, compared exactly."""
    rows = embedder.embed([asked.texts[text][start:end] for text, start, end in chunks])
    queries = embedder.embed([question.text for question in asked.questions], role="query")
    order = np.argsort(-(queries @ rows.T), axis=1, kind="stable")[:, :top_k]
    return [[chunks[row] for row in best] for best in order.tolist()]


def scored(
    asked: ChunkingSet, chunks: Sequence[Piece], found: Sequence[Sequence[Piece]], tokens: Offsets | None = None
) -> list[ChunkScores]:
    """The scores of every question, in their order; counted in tokens where ``tokens`` says where those are."""

    def counted(pieces: Sequence[Piece]) -> Sequence[Piece]:
        return pieces if tokens is None else token_ranges(pieces, tokens)

    everything = counted(chunks)
    return [
        chunk_scores(counted(question.answer), counted(best), everything)
        for question, best in zip(asked.questions, found, strict=True)
    ]


def _is_text(path: Path) -> bool:
    return path.name.endswith((".md", ".md.gz")) and path.name != "README.md"


def _read(path: Path) -> str:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()


def _question(row: Any) -> Question:
    answer = tuple(Piece(row["corpus"], int(start), int(end)) for start, end in row["references"])
    return Question(str(row["_id"]), str(row["text"]), answer)


def _problems(question: Question, texts: dict[str, str]) -> list[str]:
    """What is wrong with a question, one line each."""
    said = f"question {question.id!r}"
    if not question.answer:
        return [f"{said} has no answer; leave it out"]
    unknown = {text for text, _, _ in question.answer} - set(texts)
    if unknown:
        return [f"{said} is on {sorted(unknown)!r}; the texts are {sorted(texts)!r:.200}"]
    wrong = [piece for piece in question.answer if not 0 <= piece.start < piece.end <= len(texts[piece.text])]
    return [f"{said}: {tuple(piece)!r} is no range of its {len(texts[piece.text]):,} characters" for piece in wrong]
