"""Lines that are searched with the text of a chunk: its breadcrumb, and the header row of its table.

The breadcrumb is title, section and headings above the chunk. A chunk that continues a table has the header row of the
table. The lines are in the chunk's metadata under `KEY` and `TABLE_HEADER`. Word indexes and embedders get
`searched_text`; a search returns only the text of the chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragistry.types import Document

KEY = "breadcrumb"
TABLE_HEADER = "table_header"
LIMIT = 200
"""Maximum length of a breadcrumb in characters, so that a very long title does not dominate the text."""


def breadcrumb(metadata: Mapping[str, Any]) -> str:
    """Join title, section and headings of a chunk: "Guide > Install > Requirements"; empty without any."""
    parts: dict[str, str] = {}
    for part in (metadata.get("title"), *_headings(metadata), metadata.get("section")):
        if isinstance(part, str) and (words := " ".join(part.split())):
            parts.setdefault(words.casefold(), words)
    return " > ".join(parts.values())[:LIMIT].rstrip()


def searched_text(text: str, metadata: Mapping[str, Any]) -> str:
    """Return a chunk for indexes and embedders: its breadcrumb and table header on lines before its text."""
    lines = (metadata.get(KEY), metadata.get(TABLE_HEADER))
    return "\n".join([*(line for line in lines if isinstance(line, str) and line), text])


def _headings(metadata: Mapping[str, Any]) -> list[str]:
    return str(metadata.get("heading_context") or "").split(" > ")


def readable_text(document: Document) -> str:
    """Return the text of a passage for a language model; rows of a table begin with the table's header row."""
    header = document.metadata.get(TABLE_HEADER)
    return f"{header}\n{document.content}" if isinstance(header, str) and header else document.content
