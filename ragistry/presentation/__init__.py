"""Present results to people: passages as blocks, excerpts, matches and places; as text and as HTML."""

from ragistry.presentation.answering import AnsweringLine, answering_line, place_of
from ragistry.presentation.blocks import PassageBlock, Style, blocks_of
from ragistry.presentation.cards import Card, Part, cards_of, separate_cards
from ragistry.presentation.excerpts import Excerpt, excerpt, excerpt_line, excerpt_of
from ragistry.presentation.hits import Hit, body_of, grouped

__all__ = [
    "AnsweringLine", "Card", "Excerpt", "Hit", "Part", "PassageBlock", "Style", "answering_line", "blocks_of",
    "body_of", "cards_of", "excerpt", "excerpt_line", "excerpt_of", "grouped", "place_of", "separate_cards",
]  # fmt: skip
