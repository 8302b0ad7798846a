"""The breadcrumb of a chunk: title, section and headings above it as one line, searched with its text.

The line is in the chunk's metadata under `KEY`. Word indexes and embedders get `searched_text`; a search returns only
the text of the chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEY = "breadcrumb"
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
    """Return the text of a chunk for indexes and embedders: its breadcrumb, if any, on a line before its text."""
    line = metadata.get(KEY)
    return f"{line}\n{text}" if isinstance(line, str) and line else text


def _headings(metadata: Mapping[str, Any]) -> list[str]:
    return str(metadata.get("heading_context") or "").split(" > ")
