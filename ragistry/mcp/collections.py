"""Collections and their passages as resources: what there is, for people and agents to look through."""

from __future__ import annotations

import json
from typing import Any

from mcp import types

from ragistry.errors import QueryError
from ragistry.mcp.addresses import ROOT, Address, read_address, write_address
from ragistry.mcp.passages import fetch
from ragistry.tools.quoting import one_line
from ragistry.tools.reach import Reach
from ragistry.tools.tokens import estimated_tokens
from ragistry.utils.ids import chunk_id

SOURCES_TOKENS = 7_000
"""Tokens of the names of sources at most that a collection lists."""
TEMPLATE = types.ResourceTemplate(
    name="passage",
    title="Passage of a source",
    uri_template=ROOT + "{collection}/{+source_file}{#chunk}",
    description="The text around one passage of a source, by the url of a search result.",
    mime_type="application/json",
)


def listed(reach: Reach) -> list[types.Resource]:
    """A resource for every collection in reach."""
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


def read(reach: Reach, uri: str) -> types.ReadResourceResult:
    """A resource's JSON. Raises `QueryError` for what is not in reach, as for what does not exist."""
    address = read_address(uri)
    if address.collection not in reach.names():
        raise QueryError(f"no resource {one_line(uri)!r}; list the resources, or take the url of a result")
    content = fetch(reach, chunk_id(*address)) if address.source_file else _collection(reach, address.collection)
    text = json.dumps(content, ensure_ascii=False)
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=text)]
    )


def _collection(reach: Reach, name: str) -> dict[str, Any]:
    [entry] = [entry for entry in reach.entries() if entry.name == name]
    sources = reach.sources(name)
    names, room = [], SOURCES_TOKENS
    for info in sources:
        told = one_line(info.source_file)
        room -= estimated_tokens(told) + 3
        if room < 0:
            break
        names.append(told)
    return {
        "name": name,
        "display_name": entry.display_name or name,
        "description": one_line(entry.description, 2_000),
        "source_count": len(sources),
        "chunk_count": sum(info.chunks for info in sources),
        "sources": names,
        "sources_left_out": len(sources) - len(names),
    }
