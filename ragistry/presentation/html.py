"""Write an excerpt as HTML. All text of documents is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby, pairwise, takewhile

from ragistry.presentation.blocks import BETWEEN_CELLS, PassageBlock, Style, line_of
from ragistry.presentation.excerpts import Excerpt

TAGS = {"strong": "strong", "emphasis": "em", "code": "code", "match": "mark"}
SHORT = 50
"""Number of characters of a word in a cell, with its tags, up to which it is not broken at hyphens."""
CUT = '<span class="rg-cut">…</span>'


def excerpt_html(part: Excerpt) -> str:
    """Write the blocks in order, with an ellipsis for omitted text."""
    last = len(part.blocks) - 1
    parts: list[str] = []
    for is_table, group in groupby(enumerate(part.blocks), key=lambda one: one[1].kind == "row"):
        blocks = [_block(block, number == 0 and part.before, number == last and part.after) for number, block in group]
        parts += ["<table><tbody>", *blocks, "</tbody></table>"] if is_table else blocks
    return "".join(parts)


def line_html(text: str) -> str:
    """Convert one line of Markdown, such as a generated sentence; only emphasis and code become HTML."""
    line = line_of(text)
    return _styled(line.text, line.styles)


def _block(block: PassageBlock, before: bool, after: bool) -> str:
    words = (f"{CUT} " if before else "") + _styled(block.text, block.styles) + (f" {CUT}" if after else "")
    match block.kind:
        case "heading":
            return f'<p class="rg-heading">{words}</p>'
        case "code":
            return f"<pre><code>{words}</code></pre>"
        case "item":
            marker = f'<span class="rg-marker">{escape(block.marker)}</span>' if block.marker else ""
            return f'<p class="rg-item" style="--depth: {block.depth}">{marker}{words}</p>'
        case "quote":
            return f"<blockquote>{words}</blockquote>"
        case "row":
            return f"<tr>{''.join(map(_cell, words.split(BETWEEN_CELLS)))}</tr>"
        case _:
            return f"<p>{words}</p>"


def _cell(words: str) -> str:
    """Keep a number, date or name in one line."""
    is_short = " " not in words and len(words) < SHORT
    return f'<td class="rg-short">{words}</td>' if is_short else f"<td>{words}</td>"


def _styled(text: str, styles: Sequence[Style]) -> str:
    """Put the text into tags. Tags stay open as long as possible, so that a match does not split code."""
    cuts = sorted({0, len(text), *(at for style in styles for at in (style.start, style.end))})
    parts: list[str] = []
    opened: list[str] = []
    for start, end in pairwise(cuts):
        names = sorted({TAGS[name] for s, e, name in styles if s <= start and end <= e})
        kept = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(opened, names, strict=False))))
        parts += [f"</{name}>" for name in reversed(opened[kept:])] + [f"<{name}>" for name in names[kept:]]
        parts.append(escape(text[start:end]))
        opened = names
    return "".join(parts + [f"</{name}>" for name in reversed(opened)])
