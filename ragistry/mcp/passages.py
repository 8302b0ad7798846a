"""A passage with what stands around it in its source, as much as a model can take in at once."""

from __future__ import annotations

import json
from typing import Any

from ragistry.mcp.addresses import url_of
from ragistry.techniques.neighbours import widened
from ragistry.tools.failures import CallError
from ragistry.tools.reach import Reach
from ragistry.tools.result_text import place
from ragistry.tools.tokens import cut_to_tokens, estimated_tokens
from ragistry.types import Document
from ragistry.utils.quoting import one_line, visible

TOKENS = 7_000
"""Tokens of a text at most; with its metadata the answer stays below 10,000."""
REACH = 100
"""Chunks on both sides of a passage that are looked at."""
TOLD = ("collection", "source_file", "title", "section", "heading_context", "page", "tags", "start", "end")
"""Metadata that leave the server. Paths of this machine do not."""


def fetch(reach: Reach, chunk: str) -> dict[str, Any]:
    """``{"id", "title", "text", "url", "metadata"}`` of a chunk. Raises `CallError` where it is not in reach."""
    found = reach.library.store.get([chunk])
    if not found or not reach.holds(found[0]):
        raise CallError(f"no document {one_line(chunk, 100)!r}; take an id from the results of search")
    [hit] = found
    where = {"collection": hit.metadata["collection"]}
    [wide] = widened(reach.library.store, [hit], reach=REACH, top_k=1, where=where, choose=_as_many_as_fit)
    [hit, wide] = reach.library.scope.named([hit, wide])
    metadata = {key: _told(wide.metadata[key]) for key in TOLD if key in wide.metadata}
    text = visible(wide.content)
    if _length(text) > TOKENS:
        text = cut_to_tokens(text, TOKENS, _length)
        metadata["cut"] = True
    return {"id": hit.id, "title": title_of(hit), "text": text, "url": url_of(hit), "metadata": metadata}


def title_of(document: Document) -> str:
    """How a person would cite the passage."""
    title = document.metadata.get("title")
    return f"{one_line(title)}: {place(document)}" if title else place(document)


def _told(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [one_line(item) for item in value[:50]]
    return value if isinstance(value, int | float) else one_line(value)


def _length(text: str) -> int:
    """Tokens of the text as it is written in JSON."""
    return estimated_tokens(json.dumps(text, ensure_ascii=False))


def _as_many_as_fit(chunks: list[Document], hit: int) -> list[Document]:
    """The hit, and the chunks before and after it in turn, until the next one would be too much."""
    first, last = hit, hit + 1
    room = TOKENS - _length(chunks[hit].content)
    while True:
        sides = [index for index in (last, first - 1) if 0 <= index < len(chunks)]
        # The nearer side first; of two as near, what comes after.
        sides.sort(key=lambda index: abs(index - hit))
        if not sides:
            break
        room -= _length(chunks[sides[0]].content)
        if room < 0:
            break
        first, last = min(first, sides[0]), max(last, sides[0] + 1)
    return chunks[first:last]
