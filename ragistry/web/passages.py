"""Passages as HTML: escaped, the words of the query marked."""

from __future__ import annotations

import re
from html import escape

from ragistry.utils.analysis import analyse, query_terms

_WORD = re.compile(r"[^\W_]+(?:[-._/][^\W_]+)*")


def marked(text: str, query: str, language: str) -> str:
    """``text`` as HTML with ``<mark>`` around each word that a search of words for ``query`` would match.

    Everything in the text is escaped: whatever a document holds, it is shown and does nothing.
    """
    wanted = frozenset(query_terms(query, language)) if query.strip() else frozenset()
    parts, last = [], 0
    for match in _WORD.finditer(text):
        if wanted.isdisjoint(analyse(match[0], language)):
            continue
        parts += [escape(text[last : match.start()]), f"<mark>{escape(match[0])}</mark>"]
        last = match.end()
    return "".join(parts) + escape(text[last:])
