"""Print results in a terminal: wrapped at words to its width, indented below their number."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragistry.presentation.blocks import PassageBlock
from ragistry.presentation.cards import Card, names_of
from ragistry.presentation.hits import collection_of, folded_copies, score_of, source_of, spot_of, title_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

STYLES = {"strong": "bold", "emphasis": "italic", "code": "cyan", "match": "bold yellow"}
NARROWEST = 40
WIDEST = 100
"""Maximum number of columns; longer lines are hard to read."""
LINES = 4
"""Approximate number of lines of an excerpt."""


def room_in(console: Console) -> int:
    """Return the number of characters of an excerpt."""
    return LINES * (_width(console) - 4)


def print_card(console: Console, number: int | None, card: Card, more: str = "", *, scores: bool = False) -> None:
    """Print number, title, places and excerpts of a source, and how many other and similar passages there are.

    Args:
        console: The console.
        number: Number of the card; None for a similar passage of the card before.
        card: The card.
        more: How to print the other passages, such as ``--result 2``.
        scores: Print the score of each passage.
    """
    from rich.text import Text

    document = card.parts[0].document
    label = "   " if number is None else f"{number}. "
    head = Text(label, "bold")
    head.append(title_of(document), f"bold cyan{_link(document.metadata)}")
    if scores:
        head.append(f"  {score_of(document)}", "dim")
    _wrapped(console, head, "", " " * len(label))
    name = source_of(document)
    source = [collection_of(document), name if name != title_of(document) else ""]
    for position, part in enumerate(card.parts):
        places = [*([] if position else source), spot_of(part.document, part.excerpt.place or None)]
        if position and scores:
            places.append(score_of(part.document))
        _wrapped(console, Text(" · ".join(filter(None, places)), "dim"), "   ", "   ")
        blocks = part.excerpt.blocks
        for place, block in enumerate(blocks):
            first, last = place == 0 and part.excerpt.before, place == len(blocks) - 1 and part.excerpt.after
            _print_block(console, block, first, last)
    notes, how = [folded_copies(document)], f": {more}" if more else ""
    if card.rest:
        notes.append(f"{len(card.rest)} more in this file{how}")
    if card.similar:
        names = names_of([part.document for part in card.similar])
        notes.append(f"{len(card.similar)} similar: {names}{how}")
    for note in filter(None, notes):
        _wrapped(console, Text(note, "dim italic"), "   ", "   ")


def _print_block(console: Console, block: PassageBlock, cut_before: bool, cut_after: bool) -> None:
    from rich.text import Text

    text = Text(block.text)
    for start, end, name in block.styles:
        text.stylize(STYLES[name], start, end)
    if block.kind == "heading":
        text.stylize("bold")
    if cut_before:
        text = Text("… ").append_text(text)
    if cut_after:
        text.append(" …")
    indent = "   " + "  " * (block.depth if block.kind == "item" else 0)
    marker = {"item": f"{block.marker} " if block.marker else "  ", "quote": "│ ", "code": "  "}.get(block.kind, "")
    if block.kind == "code":
        for line in text.split("\n"):
            _wrapped(console, line, indent + marker, indent + marker + "  ")
    else:
        _wrapped(console, text, indent + marker, indent + (marker if block.kind == "quote" else " " * len(marker)))


def _wrapped(console: Console, text: Text, first: str, rest: str) -> None:
    """Print a text, wrapped; in a pipe in one line, because the width of its reader is unknown."""
    from rich.text import Text

    if not console.is_terminal:
        console.print(Text(first).append_text(text), soft_wrap=True)
        return
    lines = text.wrap(console, _width(console) - max(len(first), len(rest)))
    for number, line in enumerate(lines):
        line.rstrip()
        console.print(Text(first if number == 0 else rest).append_text(line), no_wrap=True, crop=False)


def _width(console: Console) -> int:
    return max(NARROWEST, min(console.width, WIDEST))


def _link(metadata: Mapping[str, Any]) -> str:
    """Return the style of a hyperlink to the file; terminals without hyperlinks ignore it."""
    path = metadata.get("source_path")
    if not isinstance(path, str) or not Path(path).is_absolute():
        return ""
    return f" link {Path(path).as_uri()}"
