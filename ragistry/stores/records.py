"""Sources and chunks as records: the parts that stores have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, replace
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ragistry.errors import (
    DuplicateChunkIDError,
    EmbeddingMismatchError,
    InvalidChunkError,
    InvalidFilterError,
    StoreError,
    UnsupportedError,
)
from ragistry.types import (
    Document,
    EmbeddedChunk,
    EmbedderFingerprint,
    Fit,
    ScoreKind,
    SourceInfo,
    StageScore,
    Unsearchable,
    Where,
    ranked,
)
from ragistry.utils.fingerprints import check_same_embedder, differences, from_json
from ragistry.utils.ids import chunk_id
from ragistry.utils.limits import check_ids
from ragistry.utils.metadata import SET_KEYS, custom_metadata
from ragistry.utils.where import Condition, normalise
from ragistry.utils.wording import agreeing, numbered, shown

if TYPE_CHECKING:
    from collections.abc import Container

    from ragistry.protocols import LibraryStore, UnsearchableStore

Keys = NDArray[np.int64]
Scores = NDArray[np.float32]
IdsOf = Callable[[Sequence[int]], Mapping[int, str]]
Name = tuple[str, str]
"""The collection and file name of a source."""
NAMES = ("collection", "source_file")


# Arguments


def check_deletion(ids: Sequence[str] | None, where: Where | None) -> tuple[list[Any], Condition | None]:
    """Check the arguments of `DocumentStore.delete`; return the ids and the normalised condition.

    Raises:
        InvalidFilterError: Both or neither of the two are given, or the condition is malformed.
        QueryError: ``ids`` is not a list.
    """
    if (ids is None) == (where is None):
        raise InvalidFilterError("delete takes ids or where, one of the two; clear_collection() removes everything")
    return [] if ids is None else check_ids(ids), normalise(where)


def check_stored(place: str, ids: Sequence[str], stored: Container[str]) -> None:
    """Raise `StoreError` if one of the ids is not stored; ``place``: the store, for the message."""
    missing = [identity for identity in ids if identity not in stored]
    if missing:
        raise StoreError(f"{place}: {len(missing)} of the ids are not stored: {shown(missing[:3])}")


def half_character_error(error: UnicodeEncodeError) -> InvalidChunkError:
    """Return the error for a text with a lone surrogate, which a database cannot encode."""
    return InvalidChunkError(
        f"nothing was changed: {error.object[:80]!r} has half a character (a lone surrogate); remove it"
    )


# Records


def text_hash(text: str) -> bytes:
    """Hash a text, to find equal and damaged texts."""
    return blake2b(text.encode(), digest_size=16).digest()


def compact_json(value: Any) -> str:
    """Serialize a value as JSON without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def source_in(metadata: Mapping[str, Any]) -> Name | None:
    """Return the source that a chunk belongs to according to its metadata."""
    collection, source_file, index = (metadata.get(key) for key in (*NAMES, "chunk_index"))
    if isinstance(collection, str) and isinstance(source_file, str) and type(index) is int:
        return collection, source_file
    return None


def source_info(
    name: Name, chunks: int, metadata: Mapping[str, Any], *, is_whole: bool, waiting: int = 0
) -> SourceInfo:
    """Describe a source; an incomplete one has no hash, so that it is ingested again."""
    return SourceInfo(
        *name,
        chunks,
        source=metadata.get("source", ""),
        source_hash=metadata.get("source_hash", "") if is_whole else "",
        ingested_at=metadata.get("ingested_at", 0.0),
        source_path=metadata.get("source_path", ""),
        lost=metadata.get("lost", ""),
        metadata=custom_metadata(metadata),
        set_keys=tuple(keys) if isinstance(keys := metadata.get(SET_KEYS), list) else (),
        waiting=waiting,
    )


def keeping(store: LibraryStore) -> UnsearchableStore:
    """Return a store that keeps which files are not searchable. Raises `UnsupportedError` for another one."""
    if "unsearchable" not in store.abilities:
        raise UnsupportedError(
            f"which files are not searchable is not kept by this store, {type(store).__name__}; use the local store or "
            "Postgres, or read the report of each ingest"
        )
    return cast("UnsearchableStore", store)


def entries_of(store: LibraryStore, after: int = 0) -> Iterator[tuple[int, Unsearchable]]:
    """Yield the entries of a store by their number, above ``after``, read in pages; none of one that keeps none."""
    while "unsearchable" in store.abilities and (page := keeping(store).unsearchable(after)):
        yield from page
        after = page[-1][0]


def entry_from(fields: Sequence[Any], *sources: str | None) -> Unsearchable:
    """Return the entry of stored fields; ``sources``: metadata, as JSON, of stored sources of its name or below it."""
    one = Unsearchable(*fields)
    paths = [json.loads(source).get("source_path", "") for source in sources if source and one.kind == "failed"]
    starts = (one.source_path, f"{one.source_path}/")
    is_stored = any(path == starts[0] or (starts[0] and path.startswith(starts[1])) for path in paths)
    return replace(one, kind="outdated") if is_stored else one


def entry_row(one: Unsearchable) -> tuple[Any, ...]:
    """Return the fields of an entry as they are stored."""
    return astuple(replace(one, kind="failed") if one.kind == "outdated" else one)


def moved_id(identity: str, metadata: Mapping[str, Any], name: Name, to: str) -> str:
    """Return the id of a chunk after its source moved to another collection; an id chosen by the caller stays."""
    index = metadata.get("chunk_index")
    is_derived = isinstance(index, int) and identity == chunk_id(*name, index)
    return chunk_id(to, name[1], index) if is_derived else identity  # type: ignore[arg-type]


def taken_source_error(name: Name, to: str) -> DuplicateChunkIDError:
    """Return the error for a move to a collection that already has a source of this name."""
    return DuplicateChunkIDError(
        f"collection {shown(to)} already has a source {shown(name[1])}; delete that one first, or rename the file"
    )


def chunks_of(store: LibraryStore, documents: Sequence[Document]) -> list[EmbeddedChunk]:
    """Return stored chunks with their vectors; None for one that waits for its vector."""
    vectors = store.vectors([document.id for document in documents])
    return [
        EmbeddedChunk(document.content, dict(document.metadata), vector if vector.any() else None)
        for document, vector in zip(documents, vectors, strict=True)
    ]


def source_chunks(store: LibraryStore, collection: str, source_file: str) -> list[EmbeddedChunk]:
    """Return the chunks of a stored source in order; see `chunks_of`."""
    found = store.scan({"$and": [{"collection": collection}, {"source_file": source_file}]})
    return chunks_of(store, sorted(found, key=lambda document: int(document.metadata["chunk_index"])))


# The embedder


class EmbedderRecord(Protocol):
    """What a store records: its embedder and the one whose vectors are being made, as JSON, and their dimension.

    The dimension is 0 before the first vector.
    """

    @property
    def embedder(self) -> str | None: ...
    @property
    def next_embedder(self) -> str | None: ...
    @property
    def dimension(self) -> int: ...


def recorded_embedder(record: EmbedderRecord) -> EmbedderFingerprint | None:
    """Return the recorded embedder."""
    return None if record.embedder is None else from_json(record.embedder)


def check_embedder(record: EmbedderRecord, fingerprint: EmbedderFingerprint) -> bool:
    """Return whether an embedder is recorded. Raises `EmbeddingMismatchError` if it is another one."""
    if recorded := recorded_embedder(record):
        check_same_embedder(recorded, fingerprint)
        return True
    if record.dimension not in (0, fingerprint.dimension):
        raise EmbeddingMismatchError(
            f"the vectors in the store have {record.dimension} numbers, those of {fingerprint.model!r} have "
            f"{fingerprint.dimension}; set embed_model in documents.yaml to the embedder that the store was filled "
            "with, or run `ragistry reembed`"
        )
    return False


def is_of(recorded: str | None, fingerprint: EmbedderFingerprint) -> bool:
    """Return whether the recorded fingerprint is of this embedder."""
    return recorded is not None and not differences(from_json(recorded), fingerprint)


def fit_to_json(fit: Fit) -> str:
    """Write a measurement as text for `recorded_fit`."""
    return json.dumps(asdict(fit))


@lru_cache(maxsize=16)
def recorded_fit(text: str | None) -> Fit | None:
    """Read what `fit_to_json` wrote."""
    return None if text is None else Fit(**json.loads(text))


def superseded_error(record: EmbedderRecord, fingerprint: EmbedderFingerprint) -> EmbeddingMismatchError:
    """Return the error for a run that a later run with another embedder replaced."""
    other = from_json(record.next_embedder or record.embedder or "").model
    return EmbeddingMismatchError(
        f"the vectors of {fingerprint.model!r} are not in use: another `ragistry reembed`, with {other!r}, started "
        "later; run it again with the model that you want"
    )


def waiting_line(count: int) -> str:
    """Say that this many chunks wait for their vectors."""
    return (
        f"{numbered(count, 'chunk[|s]')} {agreeing(count, '[waits|wait]')} for vectors and "
        f"{agreeing(count, '[is|are]')} only found by words; ingest again, or run `ragistry reembed`"
    )


# Results


def best_documents(
    found: tuple[Keys, Scores],
    top_k: int,
    stage: str,
    kind: ScoreKind,
    *,
    ids_of: IdsOf,
    documents_of: Callable[[Sequence[int]], Mapping[int, Document]],
) -> list[Document]:
    """Read the best ``top_k`` chunks, ordered by ``(-score, id)``.

    Args:
        found: Keys and scores of the candidates. Cosine similarities are clipped to [0, 1].
        top_k: Maximum number of documents.
        stage: Name of the stage for their scores.
        kind: Kind of the scores.
        ids_of: Returns the ids of stored keys.
        documents_of: Returns the documents of stored keys.
    """
    scores = best_scores(found, top_k, kind, ids_of=ids_of if len(found[0]) > top_k else None)
    documents = [
        Document(chunk.content, chunk.metadata, scores[key], chunk.id, (StageScore(stage, kind, scores[key]),))
        for key, chunk in documents_of(list(scores)).items()
    ]
    return ranked(documents)


def best_scores(found: tuple[Keys, Scores], top_k: int, kind: ScoreKind, *, ids_of: IdsOf | None) -> dict[int, float]:
    """Return the scores of the best ``top_k`` chunks by key, ordered by ``(-score, id)``; see `best_documents`.

    ``ids_of``: None to leave equal scores in any order.
    """
    keys, scores = found
    values = np.minimum(np.maximum(scores, 0.0), 1.0) if kind == "cosine" else scores
    order = np.argsort(-values, kind="stable")
    keys, values = keys[order], values[order]
    equal = values[1:] == values[:-1]
    if ids_of is not None and equal.any():
        tied = np.append(equal, False) | np.append(False, equal)
        ids, among = ids_of(keys[tied].tolist()), keys[tied].tolist()
        by_id = sorted(zip((-values[tied]).tolist(), [ids.get(key, "") for key in among], among, strict=True))
        keys[tied] = [key for _, _, key in by_id]
    return dict(zip(keys[:top_k].tolist(), values[:top_k].tolist(), strict=True))


def in_order(ids: Iterable[Any], keys: Mapping[str, int], documents: Mapping[int, Document]) -> list[Document]:
    """Return the documents of the stored ids, in the order of ``ids``."""
    return [documents[keys[identity]] for identity in ids if isinstance(identity, str) and identity in keys]
