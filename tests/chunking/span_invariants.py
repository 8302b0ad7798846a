"""What `ragistry.chunking.spans` promises of its spans."""

from __future__ import annotations

from itertools import pairwise

from ragistry.chunking.spans import Region, Span, check_sizes, cut_region


def cut(text: str, size: int, overlap: int = 0) -> list[Span]:
    """Cut a whole text."""
    check_sizes(size, overlap)
    return list(cut_region(text, Region(0, len(text)), size, overlap))


def check(text: str, spans: list[Span], size: int, overlap: int) -> None:
    """Assert that the spans cover ``text``, in order, none too long, sharing no more than the overlap."""
    covered = 0
    for start, end in spans:
        piece = text[start:end]
        assert piece
        assert piece == piece.strip()
        assert len(piece) <= size
        assert not text[covered:start].strip()  # nothing but white space is lost
        covered = end
    for before, after in pairwise(spans):
        assert before[0] < after[0]
        assert before[1] < after[1]
        assert before[1] - after[0] <= overlap
    assert not text[covered:].strip()
