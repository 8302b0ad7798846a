"""What a chunk is found by besides its own text: the title, section and headings above it, as one line.

The line stands in the chunk's metadata under `KEY`. Indexes of words and embedders get `searched_text`; what a search
returns is the chunk's text alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEY = "breadcrumb"
LIMIT = 200
"""Characters of a breadcrumb: a title of a whole paragraph must not crowd out the text."""


def breadcrumb(metadata: Mapping[str, Any]) -> str:
    """The title, section and heading path of a chunk, each once: "Guide > Install > Requirements"; "" without any."""
    parts: dict[str, str] = {}
    for part in (metadata.get("title"), *_headings(metadata), metadata.get("section")):
        if isinstance(part, str) and (words := " ".join(part.split())):
            parts.setdefault(words.casefold(), words)
    return " > ".join(parts.values())[:LIMIT].rstrip()


def searched_text(text: str, metadata: Mapping[str, Any]) -> str:
    """What an index or an embedder sees of a chunk: its breadcrumb, if it has one, on a line before its text."""
    line = metadata.get(KEY)
    return f"{line}\n{text}" if isinstance(line, str) and line else text


def _headings(metadata: Mapping[str, Any]) -> list[str]:
    return str(metadata.get("heading_context") or "").split(" > ")
