"""Collections and their passages as resources: what there is, for people and agents to look through."""

from __future__ import annotations

import json
from typing import Any

from mcp import types

from ragistry.mcp.addresses import ROOT, Address, read_address, write_address
from ragistry.mcp.passages import fetch
from ragistry.tools.failures import CallError
from ragistry.tools.reach import Reach
from ragistry.tools.tokens import estimated_tokens
from ragistry.utils.ids import chunk_id
from ragistry.utils.quoting import one_line

SOURCES_TOKENS = 7_000
"""Tokens of the names of sources at most that a collection lists."""
TEMPLATE = types.ResourceTemplate(
    name="passage",
    title="Passage of a source",
    uri_template=ROOT + "{collection}/{source_file}#chunk={chunk}",
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
    """A resource's JSON. Raises `CallError` for what is not in reach, as for what does not exist."""
    address = read_address(uri)
    try:
        if address.collection not in reach.names():
            raise CallError(f"no collection {address.collection!r}")
        content = (
            fetch(reach, _chunk(reach, address)) if address.source_file else _collection(reach, address.collection)
        )
    except CallError as error:
        told = f"no resource {one_line(uri)!r}; list the resources, or take the url of a result"
        raise CallError(told) from error
    text = json.dumps(content, ensure_ascii=False)
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=text)]
    )


def _chunk(reach: Reach, address: Address) -> str:
    """The id of a passage: while its collection is being renamed, the one by which the store still has it."""
    ids = [chunk_id(name, *address[1:]) for name in reach.library.scope.stored(address.collection)]
    return next((id for id in ids if len(ids) > 1 and reach.library.store.get([id])), chunk_id(*address))


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
