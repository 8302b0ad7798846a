"""The tool ``fetch``: a passage with the text around it; also the addresses and titles of passages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

from ragistry.chunking.places import KEYS
from ragistry.techniques.neighbours import widened
from ragistry.tools.failures import CallError
from ragistry.tools.reach import Reach
from ragistry.tools.result_text import describe
from ragistry.tools.tokens import cut_to_tokens, estimated_tokens
from ragistry.tools.tool import Tool
from ragistry.types import Document
from ragistry.utils.dataclass_json import to_json
from ragistry.utils.metadata import custom_metadata, shown_metadata
from ragistry.utils.quoting import visible, visible_line

ROOT = "ragistry://collections/"
TOKENS = 7_000
"""Maximum number of tokens of a text; the whole answer with metadata stays below 10,000."""
REACH = 100
"""Number of chunks that are read on both sides of a passage."""
SENT_METADATA = ("collection", "source_file", "title", "tags", "start", "end", *KEYS)
"""Metadata that are sent to clients with those that people have set. Paths of this machine are not."""
CUSTOM_CHARACTERS = 2_000
"""Maximum length of the metadata that people have set; further keys are left out."""


class Address(NamedTuple):
    """A collection, or a source in it with the index of its first chunk."""

    collection: str
    source_file: str = ""
    chunk_index: int = 0


def write_address(address: Address) -> str:
    """Write the URI of a collection or passage."""
    uri = ROOT + quote(address.collection, safe="")
    if not address.source_file:
        return uri
    return f"{uri}/{quote(address.source_file, safe='')}#chunk={address.chunk_index}"


def url_of(document: Document) -> str:
    """Return the address of a passage: its web page if the metadata contain one, else its URI."""
    metadata = document.metadata
    url = metadata.get("url")
    if isinstance(url, str) and url.startswith(("https://", "http://")):
        return url
    index = metadata.get("chunk_index")
    return write_address(
        Address(
            str(metadata.get("collection", "")),
            str(metadata.get("source_file", "")),
            index if type(index) is int else 0,
        )
    )


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Read a passage. ``id``: that of a result."""

    id: str = field(metadata={"description": "An id from the results of search.", "max_length": 200})


@dataclass(frozen=True, slots=True)
class FetchedPassage:
    """A passage with the text around it, as the tool ``fetch`` returns it."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, Any]


def fetch(reach: Reach, request: FetchRequest) -> FetchedPassage:
    """Read a chunk with its context.

    Raises:
        CallError: The chunk does not exist or is not accessible.
    """
    found = reach.library.store.get([request.id])
    if not found or not reach.holds(found[0]):
        raise CallError(
            f"document {visible_line(request.id, 100)!r} does not exist; use an id from the results of search"
        )
    [hit] = found
    where = {"collection": hit.metadata["collection"]}
    [wide] = widened(reach.library.store, [hit], reach=REACH, top_k=1, where=where, choose=_as_many_as_fit)
    [hit, wide] = reach.library.scope.current_names().with_current_names([hit, wide])
    metadata = {key: _plain_value(wide.metadata[key]) for key in SENT_METADATA if key in wide.metadata}
    room = CUSTOM_CHARACTERS
    for key, value in custom_metadata(hit.metadata).items():
        room -= len(shown_metadata({key: value}))
        if key not in metadata and room >= 0:
            metadata[visible_line(key)] = _plain_value(value)
    text = visible(wide.content)
    if _length(text) > TOKENS:
        text = cut_to_tokens(text, TOKENS, _length)
        metadata["cut"] = True
    return FetchedPassage(hit.id, title_of(hit), text, url_of(hit), metadata)


def title_of(document: Document, place: Mapping[str, Any] | None = None) -> str:
    """Return the title of a passage and its place in the source, or that of a line of it."""
    title, spot = document.metadata.get("title"), describe(document, place)
    return f"{visible_line(title)}: {spot}" if title else spot


def _plain_value(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [visible_line(item) for item in value[:50]]
    return value if isinstance(value, int | float) else visible_line(value)


def _length(text: str) -> int:
    """Estimate the tokens of a text in JSON."""
    return estimated_tokens(json.dumps(text, ensure_ascii=False))


def _as_many_as_fit(chunks: list[Document], hit: int) -> list[Document]:
    """Return the hit with alternating following and preceding chunks, as many as fit."""
    first, last = hit, hit + 1
    room = TOKENS - _length(chunks[hit].content)
    while True:
        sides = [index for index in (last, first - 1) if 0 <= index < len(chunks)]
        # The nearer side first; at equal distance, the following chunk.
        sides.sort(key=lambda index: abs(index - hit))
        if not sides:
            break
        room -= _length(chunks[sides[0]].content)
        if room < 0:
            break
        first, last = min(first, sides[0]), max(last, sides[0] + 1)
    return chunks[first:last]


def json_text(found: Any) -> str:
    """Write an answer as JSON, as research connectors read it."""
    return json.dumps(to_json(found), ensure_ascii=False)


FETCH = Tool(
    "fetch",
    "Read a passage",
    "Read one passage of the document library, with the text around it, by an id that search gave.",
    FetchRequest,
    FetchedPassage,
    fetch,
    json_text,
)
