"""The corpus of a test set in a store of its own, made once for each way to cut it."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter

from ragistry.evaluation.dataset import Dataset, Text
from ragistry.evaluation.run_files import file_name
from ragistry.evaluation.vectors import TEXTS_AT_ONCE, KeptVectors
from ragistry.library.source import Reading, chunks_of
from ragistry.protocols import SourceStore
from ragistry.stores.local import LocalStore
from ragistry.types import Chunk, EmbeddedChunk
from ragistry.utils.extracted import Extracted
from ragistry.utils.fingerprints import to_json
from ragistry.workspace import Workspace

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

WRITTEN_AT_ONCE = 1_000
RUIN_SECONDS = 86_400
FOLDER = "evaluation"
"""Where vectors and indexes are kept in the data of a workspace."""
NOT_OF_THE_LIBRARY = (FOLDER, "repositories")
"""What else is kept there, beside the library's own store."""
_CARD = "index.json"
_LAYOUT = 1
"""Of what a chunk carries: another number, and every index is made anew."""


@dataclass(frozen=True, slots=True)
class Chunking:
    """How documents are cut: at most ``size`` characters, neighbours sharing at most ``overlap``.

    ``size`` None: each document is one chunk, as published figures have it; a model still sees only its beginning.
    ``library``: nothing is cut, the library of a workspace is searched as it is.
    """

    size: int | None = None
    overlap: int = 0
    library: bool = False

    def __str__(self) -> str:
        if self.library:
            return "library"
        return "document" if self.size is None else f"{self.size}/{self.overlap}"


@dataclass(frozen=True, slots=True)
class IndexCost:
    """What an index took when it was made, and what it takes up.

    ``cut``: chunks that are longer than the model takes in, and found by their beginning only. ``embed_seconds``:
    spent in the model, however long ago. ``write_seconds``: to cut, to write and to make the index of words.
    """

    chunking: str
    documents: int
    chunks: int
    cut: int
    embed_seconds: float
    embed_tokens: int
    write_seconds: float
    disk_bytes: int


@dataclass(frozen=True)
class DatasetIndex:
    """A corpus that can be searched; ``exact``: every search by vector compares every vector, at any size."""

    store: SourceStore
    cost: IndexCost
    language: str
    exact: bool = True

    @property
    def configuration(self) -> dict[str, str]:
        """How the corpus is cut, and the language of its words."""
        return {"chunking": self.cost.chunking, "language": self.language}

    @cached_property
    def collection_of(self) -> dict[str, str]:
        """Of each document, by its source and by collection and source, the collection that it is in."""
        found: dict[str, str] = {}
        for info in self.store.sources():
            found[info.source_file] = found[f"{info.collection}/{info.source_file}"] = info.collection
        return found


def open_index(
    dataset: Dataset,
    chunking: Chunking,
    vectors: KeptVectors,
    folder: Path,
    *,
    language: str = "english",
    progress: Progress | None = None,
) -> DatasetIndex:
    """The index of a corpus, made below ``folder`` unless it is there.

    It gets its name when it is whole: an attempt that was interrupted leaves nothing but vectors, which are kept.
    Searches are exact at any size. Raises `ModelError`, `StoreError`.
    """
    home = folder / _name(dataset, chunking, vectors, language)
    if not (home / _CARD).exists():
        folder.mkdir(parents=True, exist_ok=True)
        _clear_ruins(folder)
        building = Path(mkdtemp(prefix="building-", dir=folder))
        try:
            _build(dataset, chunking, vectors, building, language, progress)
            if not home.exists():  # else another process was faster
                building.rename(home)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    cost = IndexCost(**json.loads((home / _CARD).read_text(encoding="utf-8")))
    return DatasetIndex(LocalStore(home, exact_below=sys.maxsize, language=language), cost, language)


def _clear_ruins(folder: Path) -> None:
    """Remove what processes that were killed have left, if it is a day old."""
    for ruin in folder.glob("building-*"):
        if time.time() - ruin.stat().st_mtime > RUIN_SECONDS:
            shutil.rmtree(ruin, ignore_errors=True)


def library_index(dataset: Dataset, workspace: Workspace) -> DatasetIndex:
    """The store of a workspace, as it is; what its chunks took when they were ingested is not known."""
    folder = workspace.path_of(workspace.settings.data_dir)
    reading = workspace.reading
    chunking = f"library {reading.chunk_size}/{reading.chunk_overlap}"
    disk = _bytes_below(folder) - sum(_bytes_below(folder / other) for other in NOT_OF_THE_LIBRARY)
    cost = IndexCost(chunking, len(dataset.corpus), workspace.store.count(), 0, 0.0, 0, 0.0, disk)
    return DatasetIndex(workspace.store, cost, workspace.settings.language, exact=False)


@contextmanager
def _without_warnings() -> Iterator[None]:
    logger = logging.getLogger("ragistry.embedders")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _name(dataset: Dataset, chunking: Chunking, vectors: KeptVectors, language: str) -> str:
    digest = sha256(json.dumps([_LAYOUT, str(chunking), language, dataset.name]).encode())
    digest.update(to_json(vectors.fingerprint).encode())
    for document in dataset.corpus:
        digest.update(json.dumps(document).encode())
    return f"{file_name(dataset.name[:40])}-{digest.hexdigest()[:16]}"


def _build(
    dataset: Dataset, chunking: Chunking, vectors: KeptVectors, home: Path, language: str, progress: Progress | None
) -> None:
    start = perf_counter()
    chunks = [chunk for document in dataset.corpus for chunk in _chunks(document, chunking, vectors, dataset.name)]
    seconds = perf_counter() - start
    with _without_warnings():  # how many chunks were cut stands in the cost
        rows = list(_embedded(chunks, vectors, progress))
    start = perf_counter()
    store = LocalStore(home, language=language)
    try:
        store.use_embedder(vectors.fingerprint)
        for first in range(0, len(rows), WRITTEN_AT_ONCE):
            store.add_documents(rows[first : first + WRITTEN_AT_ONCE])
            if progress is not None:
                progress("writing the index", min(first + WRITTEN_AT_ONCE, len(rows)), len(rows))
    finally:
        store.close()
    seconds += perf_counter() - start
    limit = vectors.fingerprint.max_tokens
    embed_seconds, tokens = vectors.cost([chunk.text for chunk in chunks])
    cost = IndexCost(
        chunking=str(chunking),
        documents=len(dataset.corpus),
        chunks=len(chunks),
        cut=sum(chunk.metadata.get("token_count", 0) > limit for chunk in chunks) if limit else 0,
        embed_seconds=embed_seconds,
        embed_tokens=round(tokens),
        write_seconds=seconds,
        disk_bytes=_bytes_below(home),
    )
    (home / _CARD).write_text(json.dumps(asdict(cost)), encoding="utf-8")


def _chunks(document: Text, chunking: Chunking, vectors: KeptVectors, collection: str) -> list[Chunk]:
    """The chunks of a document, with the metadata that a library gives them; none where it has no text."""
    text = document.whole
    size = max(len(text), 1) if chunking.size is None else chunking.size
    chunks = chunks_of(Extracted(text, document.id), Reading(size, chunking.overlap), vectors)
    for chunk in chunks:
        chunk.metadata.update(source_file=document.id, collection=collection, type="document")
        if document.title:
            chunk.metadata["title"] = document.title
    return chunks


def _embedded(chunks: Sequence[Chunk], vectors: KeptVectors, progress: Progress | None) -> Iterator[EmbeddedChunk]:
    for start in range(0, len(chunks), TEXTS_AT_ONCE):
        if progress is not None:
            progress("embedding", start, len(chunks))
        group = chunks[start : start + TEXTS_AT_ONCE]
        for chunk, vector in zip(group, vectors.embed([chunk.text for chunk in group]), strict=True):
            yield EmbeddedChunk(chunk.text, chunk.metadata, vector)
