"""Check the chunks of a write; all errors are reported before anything is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ragistry.errors import DuplicateChunkIDError, EmbeddingMismatchError, InvalidChunkError
from ragistry.stores.vectors import unit_vector, units_at_once
from ragistry.types import EmbeddedChunk
from ragistry.utils.ids import id_of
from ragistry.utils.metadata import plain, stored_metadata, text_problem
from ragistry.utils.wording import shown

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

MAX_TEXT_BYTES = 10_000_000
MAX_ID_BYTES = 512
SHOWN = 10


@dataclass(frozen=True, slots=True)
class CheckedChunks:
    """Checked chunks, ready to write; ``vectors``: ``(n, d)`` float32, rows of unit length, or zeros if it waits."""

    ids: list[str]
    texts: list[str]
    metadatas: list[dict[str, Any]]
    vectors: Vectors

    def picked(self, rows: Sequence[int]) -> CheckedChunks:
        """Return the chunks of these rows."""
        ids, texts, metadatas = ([column[row] for row in rows] for column in (self.ids, self.texts, self.metadatas))
        return CheckedChunks(ids, texts, metadatas, self.vectors[rows])  # type: ignore[arg-type]


def check_chunks(
    chunks: Sequence[EmbeddedChunk],
    ids: Sequence[str] | None = None,
    *,
    dimension: int | None = None,
    may_wait: bool = False,
) -> CheckedChunks:
    """Check chunks for writing.

    Args:
        chunks: The chunks.
        ids: Their ids; None to derive them (`utils.ids`).
        dimension: Dimension of the store's vectors, if known.
        may_wait: Accept chunks without a vector; ``dimension`` is then needed.

    Raises:
        InvalidChunkError: With all errors of all chunks.
        EmbeddingMismatchError: The vectors have another dimension.
        DuplicateChunkIDError: An id occurs twice.
    """
    chunks = as_list("chunks", chunks)
    ids = None if ids is None else [plain(identity) for identity in as_list("ids", ids)]
    if ids is not None and len(ids) != len(chunks):
        raise InvalidChunkError(f"got {len(chunks)} chunks and {len(ids)} ids; pass one id per chunk")
    problems: list[str] = []
    texts: list[str] = []
    metadatas: list[dict[str, Any]] = []
    rows: list[Any] = []
    missing = np.zeros(dimension, dtype=np.float32) if may_wait and dimension else None
    units = units_at_once([chunk[2] if isinstance(chunk, tuple) and len(chunk) == 3 else None for chunk in chunks])
    for index, chunk in enumerate(chunks):
        unit = missing if units is None else units[index]
        faults, name = _collect(chunk, texts, metadatas, rows, unit, is_known=units is not None), str(index)
        if ids is not None:
            faults, name = [*faults, *filter(None, [id_problem(ids[index])])], shown(ids[index], 80)
        problems += [f"chunk {name} {fault}" for fault in faults]
    problems += _uneven(rows)
    if problems:
        refuse(problems)
    if dimension is not None and rows and len(rows[0]) != dimension:
        raise EmbeddingMismatchError(
            f"the vectors have {len(rows[0])} numbers, those in the store have {dimension}; "
            "use the embedder that the store was filled with, or clear the store and ingest again"
        )
    keys = ids if ids is not None else [id_of(*pair) for pair in zip(texts, metadatas, strict=True)]
    refuse_duplicates(keys)
    vectors = np.stack(rows) if rows else np.empty((0, dimension or 0), dtype=np.float32)
    return CheckedChunks(keys, texts, metadatas, vectors)


def as_list(name: str, items: Any) -> list[Any]:
    """Return the argument as a list. Raises `InvalidChunkError` if it is not iterable."""
    if not isinstance(items, Iterable):
        raise InvalidChunkError(f"nothing was written: {name} must be a list, got {shown(items)}")
    return list(items)


def _collect(
    chunk: Any, texts: list[str], metadatas: list[dict[str, Any]], rows: list[Any], unit: Any, *, is_known: bool
) -> list[str]:
    """Append one chunk to the three lists, and return its errors.

    ``unit``: the unit vector if it ``is_known``, else that of a chunk without a vector.
    """
    if not isinstance(chunk, tuple) or len(chunk) != 3:
        return [f"is {shown(chunk, 80)}, not (text, metadata, embedding)"]
    text, metadata, embedding = chunk
    kept, faults = stored_metadata(metadata)
    if not isinstance(text, str) or not text.strip():
        faults.append(f"has no text: {shown(text, 80)}")
    elif problem := text_problem(text, MAX_TEXT_BYTES):
        faults.append(f"text {problem}")
    try:
        rows.append(unit if is_known or (embedding is None and unit is not None) else unit_vector(embedding))
    except (TypeError, ValueError) as error:
        faults.append(f"vector {error}")
    texts.append(text)
    metadatas.append(kept)
    return faults


def _uneven(rows: Sequence[Any]) -> list[str]:
    lengths = Counter(len(row) for row in rows)
    return [f"the vectors have unequal lengths: {dict(lengths)}"] if len(lengths) > 1 else []


def id_problem(identity: Any) -> str:
    """Return why this is not a valid chunk id; empty if it is."""
    if not isinstance(identity, str) or not identity:
        return f"has the id {shown(identity, 80)}; an id is text"
    problem = text_problem(identity, MAX_ID_BYTES)
    return f"id {problem}" if problem else ""


def refuse(problems: Sequence[str]) -> None:
    """Raise `InvalidChunkError` with the first problems and the total number."""
    more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    raise InvalidChunkError(f"nothing was written: {'; '.join(problems[:SHOWN])}{more}")


def refuse_duplicates(ids: Sequence[str]) -> None:
    """Raise `DuplicateChunkIDError` for duplicate ids."""
    twice = [identity for identity, times in Counter(ids).items() if times > 1]
    if twice:
        first = ", ".join(shown(identity, 80) for identity in twice[:SHOWN])
        raise DuplicateChunkIDError(
            f"nothing was written: {len(twice)} ids occur more than once in one call: {first}; "
            "give each chunk its own id, or chunk_index and source_file in its metadata"
        )


def check_source(collection: str, source_file: str, chunks: Sequence[EmbeddedChunk]) -> None:
    """Raise `InvalidChunkError` unless these are all chunks of this source, in order."""
    if not all(isinstance(name, str) and name for name in (collection, source_file)):
        raise InvalidChunkError(f"a source needs two names, got {shown(collection, 80)} and {shown(source_file, 80)}")
    problems: list[str] = []
    for index, (_, metadata, _) in enumerate(chunks):
        expected = {"collection": collection, "source_file": source_file, "chunk_index": index}
        problems += [
            f"chunk {index} has {key} {shown(metadata.get(key), 80)}, expected {shown(value, 80)}"
            for key, value in expected.items()
            if metadata.get(key) != value or isinstance(metadata.get(key), bool | float)
        ]
        if not isinstance(metadata.get("source_hash"), str):
            problems.append(f"chunk {index} needs a text as source_hash, got {shown(metadata.get('source_hash'), 80)}")
    if problems:
        refuse(problems)
