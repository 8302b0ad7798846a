"""Print results in a terminal: wrapped at words to its width, indented below their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragistry.presentation.blocks import Block
from ragistry.presentation.excerpts import Excerpt
from ragistry.presentation.hits import Hit, collection_of, score_of, source_of, spot_of, title_of

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


def print_hit(
    console: Console, number: int, hit: Hit, part: Excerpt, more: Sequence[str] = (), *, scores: bool = False
) -> None:
    """Print number, title, place and excerpt of a hit, and the number and places of other passages of its source."""
    from rich.text import Text

    document = hit.document
    head = Text(f"{number}. ", "bold")
    head.append(title_of(document), f"bold cyan{_link(document.metadata)}")
    if scores:
        head.append(f"  {score_of(document)}", "dim")
    _wrapped(console, head, "", " " * len(f"{number}. "))
    name, spot = source_of(document), spot_of(document, part.place or None)
    places = [collection_of(document), name if name != title_of(document) else "", spot]
    _wrapped(console, Text(" · ".join(filter(None, places)), "dim"), "   ", "   ")
    for place, block in enumerate(part.blocks):
        first, last = place == 0 and part.before, place == len(part.blocks) - 1 and part.after
        _print_block(console, block, first, last)
    if hit.more:
        spots = list(dict.fromkeys(filter(None, more)))[:3]
        others = f"{len(hit.more)} more in this file{': ' if spots else ''}{'; '.join(spots)}"
        _wrapped(console, Text(others, "dim italic"), "   ", "   ")


def _print_block(console: Console, block: Block, cut_before: bool, cut_after: bool) -> None:
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
