"""Text that is searched with a chunk: its breadcrumb, the header row of its table, the rest of a cut sentence, names.

The breadcrumb is title, section and headings above the chunk. A chunk that continues a table has the header row of the
table. If the end of a page cuts a sentence, the chunks on both pages have the other part. All are in the chunk's
metadata, under `KEY`, `TABLE_HEADER`, `SENTENCE_BEFORE` and `SENTENCE_AFTER`. Word indexes and embedders get
`searched_text`; a search returns only the text of the chunk. Word indexes also get `searched_names`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ragistry.types import Document
from ragistry.utils.metadata import listed_metadata
from ragistry.utils.quoting import visible_line

KEY = "breadcrumb"
TABLE_HEADER = "table_header"
SENTENCE_BEFORE = "sentence_before"
"""The beginning, on the page before, of the chunk's first sentence."""
SENTENCE_AFTER = "sentence_after"
"""The end, on the next page, of the chunk's last sentence."""
OLDER = "older_version_of"
"""Metadata key of a result of the technique ``newest``: the place of a later version of the text."""
LIMIT = 200
"""Maximum length of a breadcrumb in characters, so that a very long title does not dominate the text."""

NAME_LIMIT = 200
"""Maximum length in characters of a value of metadata that is searched."""
_SUFFIX = re.compile(r"(?<=.)\.[A-Za-z0-9]{1,8}$")
_HASH = re.compile(r"(?=.*\d)[0-9A-Fa-f-]{16,}")
_NUMBER = re.compile(r"\+?[\d\s.,:()/TZ-]{8,}")
"""A long number, or a date."""


def breadcrumb(metadata: Mapping[str, Any]) -> str:
    """Join title, section and headings of a chunk: "Guide > Install > Requirements"; empty without any."""
    parts: dict[str, str] = {}
    headings = str(metadata.get("heading_context") or "").split(" > ")
    for part in (metadata.get("title"), *headings, metadata.get("section")):
        if isinstance(part, str) and (words := " ".join(part.split())):
            parts.setdefault(words.casefold(), words)
    return " > ".join(parts.values())[:LIMIT].rstrip()


def searched_with(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return what is searched with the text of a chunk, by its kind."""
    keys = {
        "headings": KEY,
        "table": TABLE_HEADER,
        "sentence before": SENTENCE_BEFORE,
        "sentence after": SENTENCE_AFTER,
    }
    return {kind: found for kind, key in keys.items() if isinstance(found := metadata.get(key), str) and found}


def searched_text(text: str, metadata: Mapping[str, Any]) -> str:
    """Return a chunk for indexes and embedders: its breadcrumb and table header on lines before its whole sentences."""
    found = searched_with(metadata).get
    text = _joined(before, text) if (before := found("sentence before")) else text
    text = _joined(text, after) if (after := found("sentence after")) else text
    return "\n".join(filter(None, (found("headings"), found("table"), text)))


def searched_names(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts by which people remember a source, for its first chunk: its path, and its own metadata.

    Only the first chunk has them, so that one result of a source is found by its name, and a word of names is as
    frequent as the sources that have it. The suffix of the file, dates, long numbers and hashes are left out.

    Returns:
        The texts by label: ``file name``, and keys such as ``tags`` and ``author``. Empty for other chunks.
    """
    if metadata.get("chunk_index") != 0:
        return {}
    path = str(metadata.get("source_file") or "")
    path = without_suffix(path.partition("://")[2] or path)
    found = {"file name": path} if path and not _HASH.fullmatch(path) else {}
    for key, value in listed_metadata(metadata).items():
        words = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
        words = [
            one for one in words if len(one) <= NAME_LIMIT and not (_HASH.fullmatch(one) or _NUMBER.fullmatch(one))
        ]
        found |= {key: "; ".join(words)} if words else {}
    return found


def without_suffix(name: str) -> str:
    """Return a name of a file without its suffix."""
    return _SUFFIX.sub("", name)


def _joined(before: str, after: str) -> str:
    """Join the parts of a sentence; a hyphen at the end of the first divides a word."""
    return f"{before[:-1]}{after}" if before.endswith("-") else f"{before} {after}"


def readable_text(document: Document) -> str:
    """Return the text of a passage for a language model, with the header row of its table and its whole sentences.

    The first line says of which passage it is an older version.
    """
    header, older = document.metadata.get(TABLE_HEADER), older_version(document)
    lines = older and f"[{older}]", header if isinstance(header, str) else "", sentence_before(document)
    return "\n".join(filter(None, (*lines, document.content, sentence_after(document))))


def older_version(document: Document) -> str:
    """Say of which passage a result is an older version: ``older version of handbook: rules.md``; empty for others."""
    newer = document.metadata.get(OLDER)
    return f"older version of {visible_line(newer, 200)}" if newer else ""


def sentence_before(document: Document) -> str:
    """Return the beginning of a cut sentence with its page; empty without one."""
    return _from_page(document, SENTENCE_BEFORE, "from p.", -1)


def sentence_after(document: Document) -> str:
    """Return the end of a cut sentence with its page; empty without one."""
    return _from_page(document, SENTENCE_AFTER, "continues on p.", 1)


def _from_page(document: Document, key: str, label: str, step: int) -> str:
    text, page = document.metadata.get(key), document.metadata.get("page")
    return f"[{label} {page + step}] {text}" if isinstance(text, str) and type(page) is int else ""
