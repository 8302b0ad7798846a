"""MCP resources: collections and their passages, by URIs such as ``ragistry://collections/mba/Finance.pdf#chunk=8``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from mcp import types

from ragistry.chunking.places import KEYS
from ragistry.techniques.neighbours import widened
from ragistry.tools.failures import CallError
from ragistry.tools.reach import Reach
from ragistry.tools.result_text import describe
from ragistry.tools.tokens import cut_to_tokens, estimated_tokens
from ragistry.types import Document
from ragistry.utils.custom_metadata import custom_metadata, shown_metadata
from ragistry.utils.dataclass_json import to_json
from ragistry.utils.ids import chunk_id
from ragistry.utils.quoting import visible, visible_line

ROOT = "ragistry://collections/"
_CHUNK = re.compile(r"chunk=([0-9]{1,9})")
TOKENS = 7_000
"""Maximum number of tokens of a text; the whole answer with metadata stays below 10,000."""
REACH = 100
"""Number of chunks that are read on both sides of a passage."""
SENT_METADATA = ("collection", "source_file", "title", "tags", "start", "end", *KEYS)
"""Metadata that are sent to clients with those that people have set. Paths of this machine are not."""
CUSTOM_CHARACTERS = 2_000
"""Maximum length of the metadata that people have set; further keys are left out."""
SOURCES_TOKENS = 7_000
"""Maximum number of tokens of the source names that a collection lists."""
TEMPLATE = types.ResourceTemplate(
    name="passage",
    title="Passage of a source",
    uri_template=ROOT + "{collection}/{source_file}#chunk={chunk}",
    description="The text around one passage of a source, by the url of a search result.",
    mime_type="application/json",
)


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


def read_address(uri: str) -> Address:
    """Parse a URI of `write_address`.

    Raises:
        CallError: It is not such a URI.
    """
    try:
        parts = urlsplit(uri)
        collection, _, source = parts.path.removeprefix("/").partition("/")
        chunk = _CHUNK.fullmatch(parts.fragment or "chunk=0")
        if not uri.startswith(ROOT) or not collection or parts.query or chunk is None:
            raise ValueError("malformed")
        return Address(unquote(collection, errors="strict"), unquote(source, errors="strict"), int(chunk[1]))
    except ValueError as error:
        message = f"resource {uri[:200]!r} does not exist; list the resources, or use the url of a result"
        raise CallError(message) from error


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
class FetchedPassage:
    """A passage with the text around it, as the tool ``fetch`` returns it."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, Any]


def fetch(reach: Reach, chunk: str) -> FetchedPassage:
    """Read a chunk with its context.

    Raises:
        CallError: The chunk does not exist or is not accessible.
    """
    found = reach.library.store.get([chunk])
    if not found or not reach.holds(found[0]):
        raise CallError(f"document {visible_line(chunk, 100)!r} does not exist; use an id from the results of search")
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


def list_resources(reach: Reach) -> list[types.Resource]:
    """List a resource for each accessible collection."""
    return [
        types.Resource(
            uri=write_address(Address(entry.name)),
            name=entry.name,
            title=entry.display_name or entry.name,
            description=" ".join(entry.description.split()) or None,
            mime_type="application/json",
        )
        for entry in reach.entries()
    ]


def read_resource(reach: Reach, uri: str) -> types.ReadResourceResult:
    """Read a resource as JSON.

    Raises:
        CallError: The resource does not exist or is not accessible.
    """
    address = read_address(uri)
    try:
        if address.collection not in reach.names():
            raise CallError(f"collection {address.collection!r} does not exist")
        content = (
            to_json(fetch(reach, _chunk(reach, address)))
            if address.source_file
            else _collection(reach, address.collection)
        )
    except CallError as error:
        message = f"resource {visible_line(uri)!r} does not exist; list the resources, or use the url of a result"
        raise CallError(message) from error
    text = json.dumps(content, ensure_ascii=False)
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=text)]
    )


def _chunk(reach: Reach, address: Address) -> str:
    """Return the id of a passage. During a rename, the store may have it under the earlier name of the collection."""
    ids = [chunk_id(name, *address[1:]) for name in reach.library.scope.current_names().stored(address.collection)]
    return next((id for id in ids if len(ids) > 1 and reach.library.store.get([id])), chunk_id(*address))


def _collection(reach: Reach, name: str) -> dict[str, Any]:
    [entry] = [entry for entry in reach.entries() if entry.name == name]
    sources = reach.sources(name)
    names, room = [], SOURCES_TOKENS
    for info in sources:
        shown = visible_line(info.source_file)
        room -= estimated_tokens(shown) + 3
        if room < 0:
            break
        names.append(shown)
    return {
        "name": name,
        "display_name": entry.display_name or name,
        "description": visible_line(entry.description, 2_000),
        "source_count": len(sources),
        "chunk_count": sum(info.chunks for info in sources),
        "sources": names,
        "sources_left_out": len(sources) - len(names),
    }
