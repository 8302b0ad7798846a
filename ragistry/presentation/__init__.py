"""Present results to people: passages as blocks, excerpts, matches and places; as text and as HTML."""

from ragistry.presentation.blocks import Block, Style, blocks_of
from ragistry.presentation.excerpts import Excerpt, excerpt, excerpt_line, similar_by
from ragistry.presentation.hits import Hit, body_of, grouped

__all__ = [
    "Block", "Excerpt", "Hit", "Style", "blocks_of", "body_of", "excerpt", "excerpt_line", "grouped", "similar_by",
]  # fmt: skip
