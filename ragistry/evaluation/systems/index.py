"""The corpus of a test set in a store of its own: cut, embedded where that is needed, and made once a cutting."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter

from ragistry.errors import StoreError, StoreLockedError
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.data.trec import file_name
from ragistry.evaluation.systems.masking import MaskedStore
from ragistry.evaluation.systems.vectors import TEXTS_AT_ONCE, KeptVectors
from ragistry.library.source import Reading, chunks_of
from ragistry.protocols import Embedder, LibraryStore
from ragistry.stores.registry import open_local
from ragistry.techniques.routing.target import library_targets
from ragistry.types import Chunk, Document, EmbeddedChunk, EmbedderFingerprint, Progress
from ragistry.utils.chunker import chunk_extracted
from ragistry.utils.extracted import Extracted
from ragistry.utils.fingerprints import to_json
from ragistry.workspace import Workspace

RUIN_SECONDS = 86_400
LOCK_SECONDS = 60.0
"""How long to wait for another comparison that checks an index."""
FOLDER = "evaluation"
"""Where vectors and indexes are kept in the data of a workspace."""
NOT_OF_THE_LIBRARY = (FOLDER, "repositories")
"""What else is kept there, beside the library's own store."""
WRITTEN_AT_ONCE = 1_000
CARD = "index.json"
"""What an index took, written when it is whole."""
WORDS_ALONE = EmbedderFingerprint("none", "words alone", "", 1)
"""Recorded as the embedder of an index without vectors; its store holds one constant number for each chunk."""
_LAYOUT = 2
"""Changes when chunks carry other metadata; every index is then built anew."""


@dataclass(frozen=True, slots=True)
class Chunking:
    """How documents are cut: at most ``size`` characters, neighbours sharing at most ``overlap``.

    ``size`` None: each document is one chunk, as published figures have it; a model still sees only its beginning.
    ``fit``: what is too long for the model is cut again. ``library``: nothing is cut, the library of a workspace is
    searched as it is. ``ingested``: as the workspace cuts what it takes in, which its settings say.
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
    """A corpus that can be searched; ``store`` is what techniques get, with opaque names.

    ``exact``: every search by vector compares every vector, at any size. ``contents``: a hash of what is searched,
    where the test set and the chunking do not decide it. ``qualified``: a document's id is its collection, a slash and
    its source, as in a library; else it is the source alone.
    """

    store: MaskedStore
    cost: IndexCost
    language: str
    exact: bool = True
    contents: str = ""
    qualified: bool = False

    @property
    def configuration(self) -> dict[str, str]:
        """How the corpus is cut, the language of its words, and what else decides what is found."""
        found = {"chunking": self.cost.chunking, "language": self.language}
        return {**found, "library": self.contents} if self.contents else found

    @cached_property
    def collection_of(self) -> dict[str, str]:
        """Document → the collection that it is in."""
        return {
            f"{info.collection}/{name}" if self.qualified else name: info.collection
            for info in self.store.sources()
            for name in [self.store.real_name(info.source_file)]
        }


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus to be indexed: how it is cut, and the language of its words.

    ``vectors`` None: for techniques that search words alone, and nothing is embedded. ``counter``: counts tokens where
    chunks are fitted to a model, and there are no vectors.
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
        """Names the folder of the index by what decides its content."""
        digest = sha256(json.dumps([_LAYOUT, str(self.chunking), self.language, self.dataset.name]).encode())
        digest.update(b"words alone" if self.vectors is None else b"")
        if self.embedder is not None:
            digest.update(to_json(self.embedder.fingerprint).encode())
        for document in self.dataset.corpus:
            digest.update(json.dumps(document).encode())
        return f"{file_name(self.dataset.name[:40])}-{digest.hexdigest()[:16]}"

    def chunks(self) -> Iterator[Chunk]:
        """Every chunk, with the metadata that a library gives it; none of a document without text."""
        for document in self.dataset.corpus:
            text, size = document.whole, self.chunking.size
            extracted, reading = Extracted(text, document.id), (size or max(len(text), 1), self.chunking.overlap)
            if self.embedder is None:
                chunks = chunk_extracted(extracted, *reading)
            else:
                chunks = chunks_of(extracted, Reading(*reading, self.chunking.fit), self.embedder)
            for chunk in chunks:
                chunk.metadata.update(source_file=document.id, collection=self.dataset.name, type="document")
                chunk.metadata.update({"title": document.title} if document.title else {})
                yield chunk


def open_index(corpus: Corpus, folder: Path, progress: Progress | None = None) -> tuple[DatasetIndex, LibraryStore]:
    """The index of a corpus and its store, to be closed; it is made below ``folder`` unless it is there.

    It gets its name when it is whole: an attempt that was interrupted leaves nothing but vectors, which are kept. One
    that cannot be opened is built anew. Raises `ModelError`, `StoreError`.
    """
    home = folder / corpus.file_name()
    cost = _whole_index(home, corpus.language)
    if cost is None:
        folder.mkdir(parents=True, exist_ok=True)
        for ruin in folder.glob("building-*"):  # of processes that were killed
            if time.time() - ruin.stat().st_mtime > RUIN_SECONDS:
                shutil.rmtree(ruin, ignore_errors=True)
        building = Path(mkdtemp(prefix="building-", dir=folder))
        try:
            cost = _build(corpus, building, progress)
            if _whole_index(home, corpus.language) is None:  # else another process was faster
                shutil.rmtree(home, ignore_errors=True)
                building.rename(home)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    store = _opened(home, corpus.language)
    view = MaskedStore(store, has_vectors=corpus.vectors is not None)
    return DatasetIndex(view, cost, corpus.language), store


def library_index(dataset: Dataset, workspace: Workspace) -> DatasetIndex:
    """The store of a workspace, as it is; what its chunks took when they were ingested is not known."""
    folder = workspace.path_of(workspace.settings.data_dir)
    reading = workspace.reading
    chunking = f"library {reading.chunk_size}/{reading.chunk_overlap}"
    disk = bytes_below(folder) - sum(bytes_below(folder / other) for other in NOT_OF_THE_LIBRARY)
    cost = IndexCost(chunking, len(dataset.corpus), workspace.store.count(), 0, 0.0, 0, 0.0, disk)
    store, language, contents = MaskedStore(workspace.store), workspace.settings.language, _contents(workspace)
    return DatasetIndex(store, cost, language, exact=False, contents=contents, qualified=True)


def _opened(home: Path, language: str) -> LibraryStore:
    """Searches are exact at any size."""
    return open_local(home, exact_below=sys.maxsize, language=language, lock_timeout=LOCK_SECONDS)


def _whole_index(home: Path, language: str) -> IndexCost | None:
    """What an index took; None where it is not there, or not as it was written (some 0.4 s for 5,000 chunks)."""
    try:
        cost = IndexCost(**json.loads((home / CARD).read_text(encoding="utf-8")))
        # Waits for a process that is building or verifying it.
        with closing(_opened(home, language)) as store, store.writing():
            return cost if store.count() == cost.chunks and not store.verify() else None
    except StoreLockedError:
        raise
    except (StoreError, OSError, ValueError, TypeError):  # damaged, or made by another version of the program
        return None


def _contents(workspace: Workspace) -> str:
    """SHA-256, hexadecimal, of every chunk with its metadata, and of the names and descriptions that queries go by."""
    chunks = sorted(map(_hash_of, workspace.store.scan()))
    targets = sorted((one.kind, one.name, one.description) for one in library_targets(workspace.library))
    return sha256(json.dumps([chunks, targets]).encode()).hexdigest()


def _hash_of(chunk: Document) -> str:
    """Its metadata counts, all of it: a technique may rank by its date, its tags, its title."""
    described = json.dumps([chunk.id, chunk.content, chunk.metadata], sort_keys=True, default=str)
    return sha256(described.encode()).hexdigest()


# Building


def _build(corpus: Corpus, home: Path, progress: Progress | None) -> IndexCost:
    """Cut, embed and write a corpus to a store in ``home``, with a card that says what that took."""
    vectors, start = corpus.vectors, perf_counter()
    chunks = list(corpus.chunks())
    seconds = perf_counter() - start
    if vectors is None:
        rows = [EmbeddedChunk(chunk.text, chunk.metadata, (1.0,)) for chunk in chunks]
    else:
        with _without_warnings():  # how many chunks were cut is in the cost
            rows = list(_embedded(chunks, vectors, progress))
    fingerprint = WORDS_ALONE if vectors is None else vectors.fingerprint
    start = perf_counter()
    with closing(open_local(home, language=corpus.language)) as store:
        store.use_embedder(fingerprint)
        for first in range(0, len(rows), WRITTEN_AT_ONCE):
            store.add_documents(rows[first : first + WRITTEN_AT_ONCE])
            if progress is not None:
                progress("writing the index", min(first + WRITTEN_AT_ONCE, len(rows)), len(rows))
    seconds += perf_counter() - start
    limit = fingerprint.max_tokens
    embed_seconds, tokens = (0.0, 0.0) if vectors is None else vectors.cost([chunk.text for chunk in chunks])
    cost = IndexCost(
        chunking=str(corpus.chunking),
        documents=len(corpus.dataset.corpus),
        chunks=len(chunks),
        cut=sum(chunk.metadata.get("token_count", 0) > limit for chunk in chunks) if limit else 0,
        embed_seconds=embed_seconds,
        embed_tokens=round(tokens),
        write_seconds=seconds,
        disk_bytes=bytes_below(home),
    )
    (home / CARD).write_text(json.dumps(asdict(cost)), encoding="utf-8")
    return cost


def _embedded(chunks: Sequence[Chunk], vectors: KeptVectors, progress: Progress | None) -> Iterator[EmbeddedChunk]:
    for start in range(0, len(chunks), TEXTS_AT_ONCE):
        if progress is not None:
            progress("embedding", start, len(chunks))
        group = chunks[start : start + TEXTS_AT_ONCE]
        for chunk, vector in zip(group, vectors.embed([chunk.text for chunk in group]), strict=True):
            yield EmbeddedChunk(chunk.text, chunk.metadata, vector)


def bytes_below(folder: Path) -> int:
    """What the files of a folder take up."""
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
