"""Sources in a Chroma collection that is its own truth.

The first chunk of a source carries how many chunks there are and is written last, as the commit record. A source
that was interrupted on its way in, or that lost a chunk, is listed without its hash, so that it is ingested again. A
search goes by the record too: chunks of another version are not found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ragistry.errors import DuplicateChunkIDError
from ragistry.stores import chroma_records as records
from ragistry.types import SourceInfo
from ragistry.utils.chunk_checks import CheckedChunks, refuse_duplicates
from ragistry.utils.ids import chunk_id, id_of
from ragistry.utils.metadata import OWN_PREFIX

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

COMMITTED = f"{OWN_PREFIX}source_chunks"
"""On the first chunk of a source: how many chunks were written; 0 while they are being replaced."""


def condition(collection: str, source_file: str) -> dict[str, Any]:
    """The condition, in its normal form, that the chunks of a source meet."""
    return {"$and": [{"collection": {"$eq": collection}}, {"source_file": {"$eq": source_file}}]}


def of_committed_versions(rows: Collection, found: Mapping[str, records.Row]) -> set[str]:
    """The ids of those rows that have text and, where the source of one is on record, are of the version there.

    Others are on their way in or out: ChromaDB shows a write piece by piece, and a vector before its text.
    """
    firsts = {
        identity: chunk_id(row.metadata["collection"], row.metadata["source_file"], 0)
        for identity, row in found.items()
        if "collection" in row.metadata and "source_file" in row.metadata
    }
    known = {identity: row.metadata for identity, row in found.items() if row.metadata}
    for page in records.batched(sorted(set(firsts.values()) - known.keys()), records.PAGE):
        known |= records.metadatas(rows, page)

    def is_current(identity: str, row: records.Row) -> bool:
        record = known.get(firsts.get(identity, ""), {})
        return COMMITTED not in record or record.get("source_hash") == row.metadata.get("source_hash")

    return {identity for identity, row in found.items() if row.text and is_current(identity, row)}


def put(rows: Collection, collection: str, source_file: str, chunks: CheckedChunks, batch_size: int) -> None:
    """Put the chunks of a source, in their order, in the place of what is stored of it.

    What fits in one batch is replaced in one piece, but for chunks that the source no longer has: those go after.
    """
    old = records.matching_ids(rows, condition(collection, source_file))
    if chunks.ids:
        batches = list(records.batches(chunks.texts, batch_size))
        if len(batches) > 1 and chunks.ids[0] in old:
            rows.update(ids=chunks.ids[:1], metadatas=[{COMMITTED: 0}])
        records.write(rows, _with_record_last(chunks, len(chunks.ids)), batch_size)
    kept = set(chunks.ids)
    records.delete(rows, [identity for identity in old if identity not in kept])


def _with_record_last(chunks: CheckedChunks, committed: int) -> CheckedChunks:
    """The same chunks, the first at the end and with the commit record."""
    order = [*range(1, len(chunks.ids)), 0]
    metadatas = [chunks.metadatas[index] for index in order]
    metadatas[-1] = {**metadatas[-1], COMMITTED: committed}
    return CheckedChunks(
        [chunks.ids[index] for index in order], [chunks.texts[index] for index in order], metadatas,
        chunks.vectors[order],
    )  # fmt: skip


def move(rows: Collection, source_file: str, old: str, new: str, batch_size: int) -> int:
    """Give the chunks of a source to another collection; both have them for a moment, neither has none."""
    ids = records.matching_ids(rows, condition(old, source_file))
    if not ids or old == new:
        return len(ids)
    if records.matching_ids(rows, condition(new, source_file)):
        raise DuplicateChunkIDError(
            f"collection {new!r} has a source {source_file!r}; delete it there before the one of {old!r} is moved"
        )
    chunks, committed = _moved(rows, ids, chunk_id(old, source_file, 0), new)
    records.write(rows, _with_record_last(chunks, committed), batch_size)
    return records.delete(rows, ids)


def _moved(rows: Collection, ids: list[str], first: str, collection: str) -> tuple[CheckedChunks, int]:
    """The stored chunks as they will be in another collection, and their number as it was committed."""
    stored, vectors = records.rows(rows, ids), records.vectors(rows, ids)
    order = sorted(ids, key=lambda identity: (identity != first, identity))
    texts = [stored[identity].text for identity in order]
    metadatas = [{**stored[identity].shown(), "collection": collection} for identity in order]
    new_ids = [id_of(text, metadata) for text, metadata in zip(texts, metadatas, strict=True)]
    refuse_duplicates(new_ids)
    matrix = np.array([vectors[identity] for identity in order], dtype=np.float32)
    return CheckedChunks(new_ids, texts, metadatas, matrix), stored[order[0]].metadata.get(COMMITTED, 0)


@dataclass(slots=True)
class _Count:
    info: SourceInfo
    committed: int = -1


def listed(rows: Collection, collection: str | None) -> list[SourceInfo]:
    """Every source, ordered by collection and name. Reads the metadata of every chunk: about 35 µs each."""
    where = None if collection is None else {"collection": {"$eq": collection}}
    counts: dict[tuple[str, str], _Count] = {}
    for page in records.batched(records.matching_ids(rows, where), records.PAGE):
        for identity, metadata in records.metadatas(rows, page).items():
            _count(counts, identity, metadata)
    return [
        entry.info if entry.committed == entry.info.chunks else replace(entry.info, source_hash="")
        for _, entry in sorted(counts.items())
    ]


def _count(counts: dict[tuple[str, str], _Count], identity: str, metadata: Mapping[str, Any]) -> None:
    key = (metadata.get("collection"), metadata.get("source_file"))
    if not all(isinstance(name, str) for name in key):
        return
    name, source_file = str(key[0]), str(key[1])
    entry = counts.setdefault((name, source_file), _Count(SourceInfo(name, source_file, 0)))
    chunks = entry.info.chunks + 1
    if identity == chunk_id(name, source_file, 0):
        entry.committed = metadata.get(COMMITTED, -1)
        entry.info = SourceInfo(
            name,
            source_file,
            chunks,
            source=str(metadata.get("source", "")),
            source_hash=str(metadata.get("source_hash", "")),
            ingested_at=float(metadata.get("ingested_at", 0.0)),
            source_path=str(metadata.get("source_path", "")),
        )
    else:
        entry.info = replace(entry.info, chunks=chunks, source=entry.info.source or str(metadata.get("source", "")))
