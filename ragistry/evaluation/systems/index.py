"""The index of a test set: its own store, cut and embedded as needed, built once for each chunking."""

from __future__ import annotations

import json
import logging
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

from filelock import FileLock

from ragistry.config.folder import EVALUATION, REPOSITORIES
from ragistry.errors import StoreError
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.data.trec import file_name
from ragistry.evaluation.systems.masking import MaskedStore
from ragistry.evaluation.systems.vectors import TEXTS_AT_ONCE, KeptVectors, fingerprint_of
from ragistry.library.ingest.source import Reading, chunks_of
from ragistry.protocols import Embedder, LibraryStore
from ragistry.stores.registry import open_local
from ragistry.techniques.routing.target import library_targets
from ragistry.types import Chunk, EmbeddedChunk, EmbedderFingerprint, Progress
from ragistry.utils.chunker import chunk_extracted
from ragistry.utils.documents.extracted import Extracted
from ragistry.workspace import Workspace

FOLDER = EVALUATION
"""Folder of vectors and indexes in the data of a workspace."""
NOT_OF_THE_LIBRARY = (FOLDER, REPOSITORIES)
"""Other folders of the data folder, besides the library's own store."""
CARD = "index.json"
"""File with the cost of an index, written when the index is complete."""
WORDS_ALONE = EmbedderFingerprint("none", "words alone", "", 1)
"""Embedder recorded for an index without vectors; its store has one constant number per chunk."""
_LAYOUT = 3
"""Version of the chunks' metadata; increase it to rebuild every index."""


@dataclass(frozen=True, slots=True)
class Chunking:
    """How documents are cut: at most ``size`` characters, with at most ``overlap`` shared by neighbours.

    ``size`` None: each document is one chunk, as in published results; a model still reads only its beginning.
    ``fit``: chunks too long for the model are cut again. ``library``: the library of a workspace is searched as it is.
    ``ingested``: with the settings of the workspace.
    """

    size: int | None = None
    overlap: int = 0
    fit: bool = False
    library: bool = False
    ingested: bool = False

    def __str__(self) -> str:
        if self.library:
            return "library"
        cut = f"{self.size}/{self.overlap}{' fitted' if self.fit else ''}"
        return "document" if self.size is None else cut


@dataclass(frozen=True, slots=True)
class IndexCost:
    """The cost of building an index, and its size.

    ``cut``: number of chunks longer than the model's limit, of which only the beginning is embedded.
    ``embed_seconds``: time in the model, also of cached vectors. ``write_seconds``: time to cut, write and index words.
    """

    chunking: str
    documents: int
    chunks: int
    cut: int = 0
    embed_seconds: float = 0.0
    embed_tokens: int = 0
    write_seconds: float = 0.0
    disk_bytes: int = 0


@dataclass(frozen=True)
class DatasetIndex:
    """A corpus that can be searched; ``store`` is what techniques get, with opaque names.

    ``contents``: for a library, a hash of its searched content, because test set and chunking do not determine it. A
    document's id is then its collection, a slash and its source. Otherwise it is the source, and every vector search
    compares all vectors.
    """

    store: MaskedStore
    cost: IndexCost
    language: str
    contents: str = ""

    @property
    def configuration(self) -> dict[str, str]:
        """Chunking, language, and everything else that decides results."""
        found = {"chunking": self.cost.chunking, "language": self.language}
        return {**found, "library": self.contents} if self.contents else found

    @cached_property
    def collection_of(self) -> dict[str, str]:
        """Document → the collection that it is in."""
        found = {}
        for info in self.store.sources():
            name = self.store.real_name(info.source_file)
            found[f"{info.collection}/{name}" if self.contents else name] = info.collection
        return found


def library_index(dataset: Dataset, workspace: Workspace) -> DatasetIndex:
    """The store of a workspace as it is; the cost of its ingest is unknown."""
    folder, reading = workspace.path_of(workspace.settings.data_dir), workspace.reading
    # all metadata: a technique may rank by dates, tags and titles, a router by names and descriptions
    chunks = sorted(
        sha256(json.dumps([one.id, one.content, one.metadata], sort_keys=True, default=str).encode()).hexdigest()
        for one in workspace.store.scan()
    )
    targets = sorted((one.kind, one.name, one.description) for one in library_targets(workspace.library))
    contents = sha256(json.dumps([chunks, targets]).encode()).hexdigest()
    cost = IndexCost(
        chunking=f"library {reading.chunk_size}/{reading.chunk_overlap}",
        documents=len(dataset.corpus),
        chunks=len(chunks),
        disk_bytes=bytes_below(folder) - sum(bytes_below(folder / other) for other in NOT_OF_THE_LIBRARY),
    )
    return DatasetIndex(MaskedStore(workspace.store), cost, workspace.settings.language, contents)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus to be indexed: how it is cut, and the language of its words.

    ``vectors`` None: techniques search words only, and nothing is embedded. ``counter``: counts tokens to fit chunks to
    a model if there are no vectors.
    """

    dataset: Dataset
    chunking: Chunking
    vectors: KeptVectors | None = None
    counter: Embedder | None = None
    language: str = "english"

    @property
    def embedder(self) -> Embedder | None:
        return self.counter if self.vectors is None else self.vectors

    def file_name(self) -> str:
        """The name of the index folder, made from everything that decides its content."""
        about: list[Any] = [_LAYOUT, str(self.chunking), self.language, self.dataset.name, self.vectors is None]
        about += [] if self.embedder is None else [fingerprint_of(self.embedder)]
        digest = sha256("\n".join(map(json.dumps, [about, *self.dataset.corpus])).encode()).hexdigest()
        return f"{_prefix(self.dataset)}{digest[:16]}"

    def chunks(self) -> Iterator[Chunk]:
        """Every chunk with the metadata of a library; none for a document without text."""
        for document in self.dataset.corpus:
            extracted = Extracted(document.whole, document.id)
            size = self.chunking.size or max(len(extracted.text), 1)
            if self.embedder is None:
                chunks = chunk_extracted(extracted, size, self.chunking.overlap)
            else:
                reading = Reading(size, self.chunking.overlap, self.chunking.fit, headings=False)  # as above
                chunks = chunks_of(extracted, reading, self.embedder)
            for chunk in chunks:
                chunk.metadata.update(source_file=document.id, collection=self.dataset.name, type="document")
                chunk.metadata.update({"title": document.title} if document.title else {})
                yield chunk


def _prefix(dataset: Dataset) -> str:
    return f"{file_name(dataset.name[:40])}-"


def folders_of(dataset: Dataset, folder: Path) -> list[Path]:
    """All indexes of a test set below ``folder``; may include those of another set of the same name."""
    return [card.parent for card in folder.glob(f"*/{CARD}") if card.parent.name.startswith(_prefix(dataset))]


def open_index(corpus: Corpus, folder: Path, progress: Progress | None = None) -> tuple[DatasetIndex, LibraryStore]:
    """The index of a corpus and its store, to be closed by the caller; built below ``folder`` if missing.

    An incomplete index (without a card) or a damaged one is built again. Raises
    `ModelError`, `StoreError`.
    """
    home = folder / corpus.file_name()
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{home}.lock"):  # another comparison may build or check the same index
        cost = _verified(home, corpus.language)
        if cost is None:
            shutil.rmtree(home, ignore_errors=True)
            cost = _build(corpus, home, progress)
    store = _opened(home, corpus.language)
    return DatasetIndex(MaskedStore(store, has_vectors=corpus.vectors is not None), cost, corpus.language), store


def _opened(home: Path, language: str) -> LibraryStore:
    """Searches are exact at any size."""
    return open_local(home, exact_below=sys.maxsize, language=language)


def _verified(home: Path, language: str) -> IndexCost | None:
    """The cost of an index; None if it is missing or damaged (the check takes 0.4 s for 5,000 chunks)."""
    try:
        cost = IndexCost(**json.loads((home / CARD).read_text(encoding="utf-8")))
        with closing(_opened(home, language)) as store:
            return cost if store.count() == cost.chunks and not store.verify() else None
    except (StoreError, OSError, ValueError, TypeError):  # damaged, or written by another version
        return None


def _build(corpus: Corpus, home: Path, progress: Progress | None) -> IndexCost:
    """Cut, embed and write a corpus to a store in ``home``, with a card of the cost."""
    start = perf_counter()
    chunks, vectors = list(corpus.chunks()), corpus.vectors
    seconds, texts = perf_counter() - start, [chunk.text for chunk in chunks]
    rows = [EmbeddedChunk(*chunk, (1.0,)) for chunk in chunks]
    fingerprint, embed_seconds, tokens = WORDS_ALONE, 0.0, 0.0
    if vectors is not None:
        for first in range(0, len(rows), TEXTS_AT_ONCE):
            if progress is not None:
                progress("embedding", first, len(rows))
            with _without_warnings():  # how many chunks were cut is in the cost
                found = vectors.embed(texts[first : first + TEXTS_AT_ONCE])
            for at, vector in enumerate(found, first):
                rows[at] = EmbeddedChunk(*chunks[at], vector)
        fingerprint, (embed_seconds, tokens) = vectors.fingerprint, vectors.cost(texts)
    start = perf_counter()
    if progress is not None:
        progress("writing the index", 0, len(rows))
    with closing(open_local(home, language=corpus.language)) as store:
        store.use_embedder(fingerprint)
        store.add_documents(rows)
    limit = fingerprint.max_tokens
    cost = IndexCost(
        chunking=str(corpus.chunking),
        documents=len(corpus.dataset.corpus),
        chunks=len(chunks),
        cut=sum(chunk.metadata.get("token_count", 0) > limit for chunk in chunks) if limit else 0,
        embed_seconds=embed_seconds,
        embed_tokens=round(tokens),
        write_seconds=seconds + perf_counter() - start,
        disk_bytes=bytes_below(home),
    )
    (home / CARD).write_text(json.dumps(asdict(cost)), encoding="utf-8")
    return cost


def bytes_below(folder: Path) -> int:
    """The size of the files in a folder, in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def _without_warnings() -> Iterator[None]:
    logger = logging.getLogger("ragistry.models")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
