"""Present results to people: passages as blocks, excerpts, matches and places; as text and as HTML."""

from ragistry.presentation.answering import AnsweringLine, answering_line, place_of
from ragistry.presentation.blocks import Block, Style, blocks_of
from ragistry.presentation.excerpts import Excerpt, excerpt, excerpt_line, excerpt_of, similar_by
from ragistry.presentation.hits import Hit, body_of, grouped

__all__ = [
    "AnsweringLine", "Block", "Excerpt", "Hit", "Style", "answering_line", "blocks_of", "body_of", "excerpt",
    "excerpt_line", "excerpt_of", "grouped", "place_of", "similar_by",
]  # fmt: skip
