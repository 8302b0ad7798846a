"""Scores of retrieved ranges of characters against those that answer a question.

Smith and Troynikov, Evaluating Chunking Strategies for Retrieval (Chroma technical report, 2024). A range is
``(start, end)``, its end outside, in characters, or in tokens (`token_ranges`); ranges of different texts never meet.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from ragistry.errors import EvaluationError


class Piece(NamedTuple):
    """A range of one of several texts."""

    text: str
    start: int
    end: int


class ChunkScores(NamedTuple):
    """What one question's retrieved chunks are worth, each 0 to 1.

    ``recall``: the share of the answer that was retrieved. ``precision``: the share of what was retrieved that belongs
    to the answer; what two chunks share counts twice. ``iou``: the retrieved part of the answer over everything that
    was retrieved or should have been, counted likewise. ``precision_omega``: the precision of all chunks that hold a
    part of the answer and no others, so that it tells of the cutting alone; here what they share counts once.
    """

    recall: float
    precision: float
    precision_omega: float
    iou: float


def chunk_scores(answer: Sequence[Piece], retrieved: Sequence[Piece], chunks: Iterable[Piece]) -> ChunkScores:
    """The scores of one question. ``chunks``: all there are, retrieved or not.

    Raises `EvaluationError` for an answer of no length, and for a range that ends before it starts.
    """
    wanted = union(answer)
    length = total(wanted)
    if not length:
        raise EvaluationError(f"the ranges of an answer are empty: {list(answer)!r:.200}; leave the question out")
    found = total(intersection(wanted, union(retrieved)))
    shown = total(retrieved)
    touching = union([chunk for chunk in chunks if _touches(chunk, wanted)])
    held = total(intersection(wanted, touching))
    return ChunkScores(
        recall=found / length,
        precision=found / shown if shown else 0.0,
        precision_omega=held / (total(touching) + length - held),
        iou=found / (shown + length - found),
    )


def union(pieces: Iterable[Piece]) -> list[Piece]:
    """The same characters as ranges that neither touch nor overlap, in order."""
    joined: list[Piece] = []
    for text, start, end in sorted(pieces):
        if end < start:
            raise EvaluationError(f"a range ends before it starts: {Piece(text, start, end)!r}; swap the two")
        if joined and joined[-1].text == text and start <= joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(end, joined[-1].end))
        else:
            joined.append(Piece(text, start, end))
    return [piece for piece in joined if piece.start < piece.end]


def intersection(a: Sequence[Piece], b: Sequence[Piece]) -> list[Piece]:
    """What two unions share."""
    shared = []
    left = right = 0
    while left < len(a) and right < len(b):
        one, other = a[left], b[right]
        if one.text == other.text and max(one.start, other.start) < min(one.end, other.end):
            shared.append(Piece(one.text, max(one.start, other.start), min(one.end, other.end)))
        if (one.text, one.end) < (other.text, other.end):
            left += 1
        else:
            right += 1
    return shared


def total(pieces: Iterable[Piece]) -> int:
    """The lengths of all ranges together."""
    return sum(end - start for _, start, end in pieces)


def token_ranges(pieces: Iterable[Piece], tokens: Mapping[str, Sequence[tuple[int, int]]]) -> list[Piece]:
    """The same ranges counted in tokens: each takes the tokens of which it holds a character.

    ``tokens``: of each text, the character offsets of its tokens, in order, as tokenizers give them. Raises
    `EvaluationError` for a text without offsets.
    """
    counted = []
    for text, start, end in pieces:
        if text not in tokens:
            raise EvaluationError(f"no token offsets of text {text!r}; there are {sorted(tokens)!r:.200}")
        first = bisect_right(tokens[text], start, key=itemgetter(1))
        counted.append(Piece(text, first, max(first, bisect_left(tokens[text], end, key=itemgetter(0)))))
    return counted


def _touches(chunk: Piece, wanted: Sequence[Piece]) -> bool:
    """Whether a chunk shares a character with a union."""
    return any(chunk.text == text and chunk.start < end and start < chunk.end for text, start, end in wanted)
