"""MCP resources: collections and their passages, by URIs such as ``ragistry://collections/mba/Finance.pdf#chunk=8``."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote, urlsplit

from mcp import types

from ragistry.tools.failures import CallError
from ragistry.tools.fetch import ROOT, Address, FetchRequest, fetch, write_address
from ragistry.tools.reach import Reach
from ragistry.tools.tokens import estimated_tokens
from ragistry.utils.dataclass_json import to_json
from ragistry.utils.ids import chunk_id
from ragistry.utils.quoting import visible_line

_CHUNK = re.compile(r"chunk=([0-9]{1,9})")
SOURCES_TOKENS = 7_000
"""Maximum number of tokens of the source names that a collection lists."""
TEMPLATE = types.ResourceTemplate(
    name="passage",
    title="Passage of a source",
    uri_template=ROOT + "{collection}/{source_file}#chunk={chunk}",
    description="The text around one passage of a source, by the url of a search result.",
    mime_type="application/json",
)


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
            to_json(fetch(reach, FetchRequest(_chunk(reach, address))))
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
