"""Sources in a Chroma collection, which has no transactions.

The first chunk of a source is written last and has the commit record, the number of chunks. A source without a matching
record was interrupted or lost a chunk: it is listed without its hash, so that it is ingested again. A search leaves out
chunks of other versions than the recorded one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ragistry.errors import DuplicateChunkIDError
from ragistry.stores.chroma import rows
from ragistry.stores.chunk_checks import CheckedChunks, refuse_duplicates
from ragistry.stores.records import source_info
from ragistry.types import SourceInfo
from ragistry.utils.ids import chunk_id, id_of
from ragistry.utils.metadata import OWN_PREFIX, RESERVED, custom_metadata, shared_metadata

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

COMMITTED = f"{OWN_PREFIX}source_chunks"
"""On the first chunk of a source: how many chunks were written; 0 while they are being replaced."""
MOVING_TO = f"{OWN_PREFIX}moving_to"
"""On the first chunk of a source: the collection that it is being copied to."""
ATTEMPTS = 4
"""Number of additional queries of a search to replace rows of other versions."""


def of_source(collection: str, source_file: str) -> dict[str, Any]:
    """Return the condition for the chunks of a source, in its normal form."""
    return {"$and": [{"collection": {"$eq": collection}}, {"source_file": {"$eq": source_file}}]}


def search(chroma: Collection, vector: Any, top_k: int, where: Mapping[str, Any] | None) -> list[rows.ChromaHit]:
    """Return the ``top_k`` nearest rows that meet a condition in its normal form.

    If a source is being replaced, only one version is found, possibly incomplete.
    """
    wanted, kept = top_k, list[rows.ChromaHit]()
    for _ in range(ATTEMPTS):
        hits = rows.nearest(chroma, vector, wanted, where)
        kept = _of_committed_versions(chroma, hits)
        if len(kept) >= top_k or len(kept) == len(hits):
            break
        wanted = min(top_k + 2 * (len(hits) - len(kept)), rows.MAX_FETCHED)
    return kept[:top_k]


def _of_committed_versions(chroma: Collection, hits: list[rows.ChromaHit]) -> list[rows.ChromaHit]:
    """Return the hits that have text and belong to the recorded version of their source, if any.

    ChromaDB makes a write visible gradually, and a vector before its text.
    """
    firsts = {
        hit.id: chunk_id(hit.row.metadata["collection"], hit.row.metadata["source_file"], 0)
        for hit in hits
        if {"collection", "source_file"} <= hit.row.metadata.keys()
    }
    known = {hit.id: hit.row.metadata for hit in hits if hit.row.metadata}
    known |= rows.metadatas(chroma, sorted(set(firsts.values()) - known.keys()))

    def is_current(hit: rows.ChromaHit) -> bool:
        record = known.get(firsts.get(hit.id, ""), {})
        return COMMITTED not in record or record.get("source_hash") == hit.row.metadata.get("source_hash")

    return [hit for hit in hits if hit.row.text and is_current(hit)]


def put(
    chroma: Collection,
    collection: str,
    source_file: str,
    chunks: CheckedChunks,
    batch_size: int,
    committed: int | None = None,
) -> None:
    """Replace a source by ``chunks``, in order; ``committed``: the number to record.

    Chunks that fit in one batch are replaced at once. Obsolete chunks are removed last.
    """
    old = rows.matching_ids(chroma, of_source(collection, source_file))
    if chunks.ids:
        if chunks.ids[0] in old and len(list(rows.batches(chunks.texts, batch_size))) > 1:
            chroma.update(ids=chunks.ids[:1], metadatas=[{COMMITTED: 0}])
        rows.write(chroma, _with_record_last(chunks, len(chunks.ids) if committed is None else committed), batch_size)
    kept = set(chunks.ids)
    rows.delete(chroma, [identity for identity in old if identity not in kept])


def _with_record_last(chunks: CheckedChunks, committed: int) -> CheckedChunks:
    order = [*range(1, len(chunks.ids)), 0]
    metadata = [chunks.metadatas[index] for index in order]
    metadata[-1] = {**metadata[-1], COMMITTED: committed}
    ids, texts = ([column[index] for index in order] for column in (chunks.ids, chunks.texts))
    return CheckedChunks(ids, texts, metadata, chunks.vectors[order])


def move(chroma: Collection, source_file: str, old: str, new: str, batch_size: int) -> int:
    """Copy a source to another collection, then remove the original; a repeated call completes the move."""
    ids = rows.matching_ids(chroma, of_source(old, source_file))
    if not ids or old == new:
        return len(ids)
    check_free(chroma, source_file, old, new)
    first = chunk_id(old, source_file, 0)
    chroma.update(ids=[first], metadatas=[{MOVING_TO: new}])
    stored = sorted(
        rows.fetched(chroma, ids, "documents", "metadatas", "embeddings"), key=lambda row: (row[0] != first, row[0])
    )
    committed = stored[0][2].get(COMMITTED, 0)
    texts = [text for _, text, _, _ in stored]
    metadata = [
        {**{key: value for key, value in found.items() if not key.startswith(OWN_PREFIX)}, "collection": new}
        for _, _, found, _ in stored
    ]
    new_ids = [id_of(*pair) for pair in zip(texts, metadata, strict=True)]
    refuse_duplicates(new_ids)
    vectors = np.array([vector for *_, vector in stored], dtype=np.float32)
    put(chroma, new, source_file, CheckedChunks(new_ids, texts, metadata, vectors), batch_size, committed)
    return rows.delete(chroma, ids)


def check_free(chroma: Collection, source_file: str, old: str, new: str) -> None:
    """Raise `DuplicateChunkIDError` if the source cannot move to ``new`` because that has one of the same name."""
    if not rows.matching_ids(chroma, of_source(new, source_file)):
        return
    ids = chunk_id(old, source_file, 0), chunk_id(new, source_file, 0)
    heads = rows.metadatas(chroma, ids)
    ours, theirs = (heads.get(identity, {}) for identity in ids)
    is_our_copy = ours.get(MOVING_TO) == new and theirs.get("source_hash") in (None, ours.get("source_hash"))
    if not is_our_copy:
        raise DuplicateChunkIDError(
            f"collection {new!r} has a source {source_file!r}; delete it there before you move the one of {old!r}"
        )


def list_sources(chroma: Collection, collection: str | None) -> list[SourceInfo]:
    """List the sources, ordered by collection and name. Reads the metadata of every chunk: about 35 µs each."""
    where = None if collection is None else {"collection": {"$eq": collection}}
    chunks: Counter[tuple[str, str]] = Counter()
    heads: dict[tuple[str, str], Mapping[str, Any]] = {}
    shared: dict[tuple[str, str], Mapping[str, Any]] = {}
    for identity, metadata in rows.metadatas(chroma, rows.matching_ids(chroma, where)).items():
        key = (metadata.get("collection"), metadata.get("source_file"))
        if not all(isinstance(name, str) for name in key):
            continue
        source = (str(key[0]), str(key[1]))
        chunks[source] += 1
        shared[source] = shared_metadata([shared.get(source, metadata), metadata])
        if identity == chunk_id(*source, 0):
            heads[source] = metadata
        else:
            heads.setdefault(source, {"source": metadata.get("source", "")})

    def described(source: tuple[str, str]) -> SourceInfo:
        head = heads[source]
        metadata = custom_metadata(shared[source]) | {key: head[key] for key in RESERVED & head.keys()}
        return source_info(source, chunks[source], metadata, is_whole=head.get(COMMITTED) == chunks[source])

    return [described(source) for source in sorted(chunks)]
