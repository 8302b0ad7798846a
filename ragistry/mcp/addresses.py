"""What collections and passages are called outside: ``ragistry://collections/mba/Finance.pdf#chunk=8``."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from ragistry.tools.failures import CallError
from ragistry.types import Document

ROOT = "ragistry://collections/"
_CHUNK = re.compile(r"chunk=([0-9]{1,9})")


class Address(NamedTuple):
    """A collection; with ``source_file``, one of its sources, from the chunk ``chunk_index`` on."""

    collection: str
    source_file: str = ""
    chunk_index: int = 0


def write_address(address: Address) -> str:
    """The URI of a collection, or of a passage in it."""
    uri = ROOT + quote(address.collection, safe="")
    if not address.source_file:
        return uri
    return f"{uri}/{quote(address.source_file, safe='')}#chunk={address.chunk_index}"


def read_address(uri: str) -> Address:
    """What a URI of `write_address` stands for; raises `CallError` for any other."""
    try:
        parts = urlsplit(uri)
        collection, _, source = parts.path.removeprefix("/").partition("/")
        chunk = _CHUNK.fullmatch(parts.fragment or "chunk=0")
        if not uri.startswith(ROOT) or not collection or parts.query or chunk is None:
            raise ValueError("not of the form")
        return Address(unquote(collection, errors="strict"), unquote(source, errors="strict"), int(chunk[1]))
    except ValueError as error:
        raise CallError(f"no resource {uri[:200]!r}; list the resources, or take the url of a result") from error


def url_of(document: Document) -> str:
    """Where a passage can be read: on the web where its metadata say so, else from this server."""
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
