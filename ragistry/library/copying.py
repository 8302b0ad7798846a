"""Copy a library with its vectors from one store to another.

Sources are read, written, read back and compared one by one. A source that is equal in both stores is only compared. So
an interrupted copy can continue, and a second copy transfers the changes since the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from itertools import islice
from math import isclose
from typing import Any, cast

import numpy as np

from ragistry.errors import StoreError
from ragistry.library.fit import fit_of
from ragistry.protocols import FitStore, LibraryStore
from ragistry.stores.records import chunks_of, entries_of, keeping
from ragistry.types import Document, EmbeddedChunk, EmbedderFingerprint, Progress, SourceInfo
from ragistry.utils.fingerprints import check_same_embedder
from ragistry.utils.ids import chunk_id
from ragistry.utils.wording import agreeing, numbered

VECTOR_TOLERANCE = 1e-6
"""Stores normalise vectors, which may change the last bit of a number."""
FLOAT_TOLERANCE = 1e-14
"""A Chroma server reads floats from JSON with an error in the last digit."""
PAGE = 1_000
Stored = dict[str, EmbeddedChunk]
"""Chunks by their ids."""


@dataclass(slots=True)
class CopyReport:
    """The result of a copy.

    Attributes:
        copied: Number of sources copied.
        skipped: Number of sources that were already equal.
        removed: Number of sources removed from the target.
        chunks: Number of chunks of all sources.
        differences: Remaining differences of the two stores, one line each; empty if they are equal.
    """

    copied: int = 0
    skipped: int = 0
    removed: int = 0
    chunks: int = 0
    differences: list[str] = field(default_factory=list)


def copy_library(
    source: LibraryStore, target: LibraryStore, *, prune: bool = False, progress: Progress | None = None
) -> CopyReport:
    """Copy ``source`` to ``target``, and compare the two.

    Other processes may write to ``source`` during the copy. Such changes are reported as differences, and the next copy
    transfers them.

    Args:
        source: Store to read.
        target: Store to write.
        prune: Remove sources from ``target`` that ``source`` does not have. Otherwise they are reported as differences.
        progress: Called before each source.

    Raises:
        EmbeddingMismatchError: ``target`` has vectors of another embedder.
        StoreError: A store cannot be read or written.
    """
    report = CopyReport()
    with target.writing():
        ours = _copy_embedder(source, target)
        infos = source.sources()
        if (waiting := sum(info.waiting for info in infos)) and "words_first" not in target.abilities:
            raise StoreError(
                f"{numbered(waiting, 'chunk[|s]')} of the store {agreeing(waiting, '[waits|wait]')} for vectors, and "
                "the other store has none without; run `ragistry reembed` before the copy"
            )
        there = {_name(info): info for info in target.sources()}
        for done, info in enumerate(infos):
            if progress:
                progress(info.source_file, done, len(infos))
            _copy_source(source, target, info, there.get(_name(info)), report)
        _copy_loose(source, target, {_name(info) for info in infos}, report)
        if prune:
            for name in there.keys() - {_name(info) for info in infos}:
                target.replace_source(*name, [])
                report.removed += 1
        _copy_unsearchable(source, target, prune=prune)
        if ours and (fit := fit_of(source)) and "fit" in target.abilities:
            cast("FitStore", target).record_fit(fit, ours)
        target.flush()
        report.differences += _of_lists(source, target)
    return report


def _copy_embedder(source: LibraryStore, target: LibraryStore) -> EmbedderFingerprint | None:
    ours, theirs = source.embedder(), target.embedder()
    if ours is not None and theirs is not None:
        check_same_embedder(theirs, ours, instead="copy into an empty store")
    if ours is not None:
        target.use_embedder(ours)
    return ours


def _copy_source(
    source: LibraryStore, target: LibraryStore, info: SourceInfo, there: SourceInfo | None, report: CopyReport
) -> None:
    chunks = _chunks_of(source, info)
    report.chunks += len(chunks)
    if _same_info(there, info) and not _differences(chunks, _chunks_of(target, info)):
        report.skipped += 1
        return
    if info.source_hash:
        target.replace_source(*_name(info), list(chunks.values()))
    else:  # an incomplete source must stay incomplete, so that the next ingest completes it
        target.replace_source(*_name(info), [])
        target.add_documents(list(chunks.values()), ids=list(chunks))
    report.copied += 1
    report.differences += [
        f"{info.collection}/{info.source_file}: {said}" for said in _differences(chunks, _chunks_of(target, info))
    ]


def _copy_loose(source: LibraryStore, target: LibraryStore, names: set[tuple[str, str]], report: CopyReport) -> None:
    """Copy the chunks without a source, which programs may have added."""
    if source.count() == report.chunks:
        return
    loose = (document for document in source.scan() if _name_in(document) not in names)
    while page := list(islice(loose, PAGE)):
        chunks = _with_vectors(source, page)
        target.add_documents(list(chunks.values()), ids=list(chunks))
        report.chunks += len(chunks)
        written = _with_vectors(target, target.get(list(chunks)))
        report.differences += [f"chunks without a source: {said}" for said in _differences(chunks, written)]


def _copy_unsearchable(source: LibraryStore, target: LibraryStore, *, prune: bool) -> None:
    """Copy which files are not searchable, if both stores keep it."""
    if all("unsearchable" in store.abilities for store in (source, target)):
        ours, theirs = keeping(source), keeping(target)
        theirs.record_unsearchable(gone=[number for number, _ in entries_of(theirs)] if prune else ())
        entries = (one for _, one in entries_of(ours))
        while page := list(islice(entries, PAGE)):
            theirs.record_unsearchable(page)
        theirs.record_unsearchable(folders=ours.folders())


def _chunks_of(store: LibraryStore, info: SourceInfo) -> Stored:
    """Read the chunks of one version of a source, in order.

    Raises:
        StoreError: The store cannot be read.
    """
    documents = _documents(store, info)
    while True:
        try:
            return _with_vectors(store, documents)
        except StoreError:
            again = _documents(store, info)
            if again == documents:
                raise
            documents = again  # another process replaced the source after its texts were read


def _documents(store: LibraryStore, info: SourceInfo) -> list[Document]:
    # by ids, which is much faster than a condition on some engines
    found = store.get([chunk_id(*_name(info), index) for index in range(info.chunks)])
    if len(found) == info.chunks:
        return found
    where = {"$and": [{"collection": info.collection}, {"source_file": info.source_file}]}
    return sorted(store.scan(where), key=lambda document: document.metadata.get("chunk_index", 0))


def _with_vectors(store: LibraryStore, documents: Sequence[Document]) -> Stored:
    return {document.id: chunk for document, chunk in zip(documents, chunks_of(store, documents), strict=True)}


def _differences(ours: Stored, theirs: Stored) -> list[str]:
    """Describe the differences of the target's chunks, one phrase each."""
    found = []
    if ours.keys() != theirs.keys():
        missing, extra = len(ours.keys() - theirs.keys()), len(theirs.keys() - ours.keys())
        found.append(f"{missing} chunks are missing and {extra} are not in the original")
    both = [(ours[id], theirs[id]) for id in ours if id in theirs]
    if texts := sum(one.text != other.text for one, other in both):
        found.append(f"the texts of {texts} chunks differ")
    if metadata := sum(not _same(one.metadata, other.metadata) for one, other in both):
        found.append(f"the metadata of {metadata} chunks differ")
    if vectors := sum(not _same_direction(one, other) for one, other in both):
        found.append(f"the vectors of {vectors} chunks differ")
    return found


def _same(one: Any, other: Any) -> bool:
    """Compare value and type: 1, 1.0 and true differ, rounding errors do not."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return isclose(one, other, rel_tol=FLOAT_TOLERANCE) if isinstance(one, float) else bool(one == other)


def _same_info(one: SourceInfo | None, other: SourceInfo) -> bool:
    return one is not None and _same(astuple(one), astuple(other))


def _same_direction(one: EmbeddedChunk, other: EmbeddedChunk) -> bool:
    if one.embedding is None or other.embedding is None:
        return one.embedding is other.embedding
    a, b = np.asarray(one.embedding), np.asarray(other.embedding)
    return a.shape == b.shape and bool(np.abs(a - b).max() <= VECTOR_TOLERANCE)


def _of_lists(source: LibraryStore, target: LibraryStore) -> list[str]:
    """Compare the lists of sources, the numbers of chunks and the embedders."""
    ours, theirs = ({_name(info): info for info in store.sources()} for store in (source, target))
    found = []
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in theirs:
            said = "missing in the copy"
        elif name not in ours:
            said = "only in the copy"
        elif not _same_info(ours[name], theirs[name]):
            said = "listed differently on the two sides; it may have changed meanwhile"
        else:
            continue
        found.append(f"{'/'.join(name)}: {said}")
    if not found and source.count() != target.count():
        found.append(f"the copy has {target.count():,} chunks, the original {source.count():,}")
    if source.embedder() != target.embedder():
        found.append("the recorded embedders differ")
    return found


def _name(info: SourceInfo) -> tuple[str, str]:
    return info.collection, info.source_file


def _name_in(document: Document) -> tuple[object, object]:
    return document.metadata.get("collection"), document.metadata.get("source_file")
