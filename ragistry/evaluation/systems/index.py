"""The index of a test set: a store of its own, cut and embedded as a library is, built once for each chunking.

Synthetic queries often share words with the name of their document, and words of names are searched. So each document
has an opaque name in the index, a hash of the corpus and its id, which `DatasetIndex.names` translates back.
"""

from __future__ import annotations

import json
import logging
import random
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from time import perf_counter, process_time, time
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
from filelock import FileLock

from ragistry.chunking.breadcrumb import searched_text
from ragistry.config.folder import EVALUATION, REPOSITORIES
from ragistry.errors import ModelError, StoreError, UnsupportedError
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.data.trec import file_name
from ragistry.evaluation.figures import IndexCost
from ragistry.evaluation.progress import ESTIMATE
from ragistry.evaluation.systems.recorded_answers import TEXTS_AT_ONCE, RecordedEmbedder, fingerprint_of
from ragistry.evaluation.systems.variants import Chunking
from ragistry.library.embedding import embed_each
from ragistry.library.fit import measure_if_due
from ragistry.library.ingest.missing import refused_error
from ragistry.library.ingest.run import Ingest
from ragistry.library.ingest.source import ReadOptions, SourceText
from ragistry.protocols import Embedder, LibraryStore, as_ranking_store
from ragistry.readers.extracted import Extracted
from ragistry.stores.registry import open_local
from ragistry.techniques.routing.target import library_targets
from ragistry.types import Chunk, EmbeddedChunk, EmbedderFingerprint, Progress, Role, SourceInfo
from ragistry.utils.wording import duration, numbered
from ragistry.workspace import Workspace

if TYPE_CHECKING:
    from ragistry.protocols import Vectors


FOLDER = EVALUATION
"""Folder of vectors and indexes in the data of a workspace."""
NOT_OF_THE_LIBRARY = (FOLDER, REPOSITORIES)
"""Other folders of the data folder, besides the library's own store."""
CARD = "index.json"
"""File with the cost of an index, written when the index is complete."""
WORDS_ALONE = EmbedderFingerprint("none", "words alone", "", 1)
"""Embedder recorded for an index without vectors; its store has one constant number per chunk."""
TIMED_TEXTS = 16
"""Number of texts that are embedded first, to estimate the time of all."""
_LAYOUT = 7
"""Version of the chunks' metadata and of the card; increase it to rebuild every index."""


@dataclass(frozen=True)
class DatasetIndex:
    """A corpus that can be searched.

    Attributes:
        store: The store that techniques get, which they can only read.
        cost: The cost of the index.
        language: The language of the words.
        contents: For a library, a hash of its searched content, because test set and chunking do not determine it. A
            document's id is then its collection, a slash and its source. Otherwise it is the source, and every vector
            search compares all vectors.
        own: A hash of the chunks that a test set has from the library; empty without any.
        names: Opaque name of a source → the id of its document; empty for a library, which has real names.
    """

    store: LibraryStore
    cost: IndexCost
    language: str
    contents: str = ""
    own: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def configuration(self) -> dict[str, str]:
        """Chunking, language, and everything else that decides results."""
        found = {"chunking": self.cost.chunking, "language": self.language}
        found |= {"library": self.contents, "chunks": self.own}
        return {key: value for key, value in found.items() if value}

    @cached_property
    def collection_of(self) -> dict[str, str]:
        """The collection of each document."""
        found = {}
        for info in self.store.sources():
            name = self.names.get(info.source_file, info.source_file)
            found[f"{info.collection}/{name}" if self.contents else name] = info.collection
        return found


def library_index(dataset: Dataset, workspace: Workspace) -> DatasetIndex:
    """Use the store of a workspace as it is; the cost of its ingest is unknown."""
    folder, reading = workspace.path_of(workspace.settings.data_dir), workspace.reading
    # All metadata: a technique may rank by dates, tags and titles, a router by names and descriptions.
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
    store = cast("LibraryStore", ReadOnly(workspace.store, STORE))
    return DatasetIndex(store, cost, workspace.settings.language, contents)


@dataclass(frozen=True)
class Corpus:
    """A corpus to be indexed.

    Attributes:
        dataset: The test set.
        chunking: How documents are cut.
        vectors: The embedder; None if techniques search words only, so that nothing is embedded.
        counter: Counts tokens to fit chunks to a model if there is no embedder.
        language: The language of the words.
        library: A store whose vectors of equal texts are taken instead of embedding them; None without one.
        own: The chunks of documents that are cut as in the library; the others are cut here.
    """

    dataset: Dataset
    chunking: Chunking
    vectors: RecordedEmbedder | None = None
    counter: Embedder | None = None
    language: str = "english"
    library: LibraryStore | None = None
    own: Mapping[str, Sequence[Chunk]] = field(default_factory=dict)

    def file_name(self) -> str:
        """Return the name of the index folder, made from everything that decides its content."""
        embedder = self.vectors or self.counter
        about: list[Any] = [_LAYOUT, str(self.chunking), self.language, self.dataset.name, self.vectors is None]
        about += [] if embedder is None else [fingerprint_of(embedder)]
        about += [self.own_hash()] if self.own else []
        digest = sha256("\n".join(map(json.dumps, [about, *self.dataset.corpus])).encode()).hexdigest()
        return f"{file_name(self.dataset.name[:40])}-{digest[:16]}"

    @cached_property
    def opaque(self) -> dict[str, str]:
        """The name of each document in the index."""
        corpus = self.dataset.part_hashes()["corpus"]
        return {one.id: f"d{sha256(f'{corpus} {one.id}'.encode()).hexdigest()[:16]}" for one in self.dataset.corpus}

    def own_hash(self) -> str:
        """Return the SHA-256, hexadecimal, of the chunks from the library; empty without any."""
        return sha256(json.dumps(self.own, sort_keys=True).encode()).hexdigest() if self.own else ""


@dataclass(frozen=True, slots=True)
class CorpusText(SourceText):
    """A document of a test set, ingested with its title as metadata."""

    title: str = ""

    def read(self, reading: ReadOptions) -> tuple[Extracted, bytes]:
        metadata = {"title": self.title} if self.title else {}
        return Extracted(self.text, self.source_file, metadata=metadata), self.digest(reading.limits)


@dataclass(frozen=True, slots=True)
class Counter:
    """The `Embedder` of an ingest that only cuts a corpus: it counts tokens, and its vectors are placeholders."""

    corpus: Corpus

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        if self.corpus.vectors is not None:
            return self.corpus.vectors.fingerprint
        counter = self.corpus.counter
        return replace(WORDS_ALONE, max_tokens=0 if counter is None else counter.fingerprint.max_tokens)

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:  # noqa: ARG002
        return np.ones((len(texts), 1), np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        counter = self.corpus.vectors or self.corpus.counter
        return [len(text) // 4 for text in texts] if counter is None else counter.count_tokens(texts)


class Collected:
    """The `LibraryStore` of an ingest that collects the chunks of all sources.

    Writing them at once is several times as fast. An ingest writes each source by itself, so that an interruption loses
    little; an incomplete index is never used.
    """

    abilities: frozenset[str] = frozenset()

    def __init__(self, store: LibraryStore, rows: list[EmbeddedChunk]) -> None:
        self.rows = rows
        self.use_embedder = store.use_embedder

    def sources(self, collection: str | None = None) -> list[SourceInfo]:  # noqa: ARG002
        return []

    def known_vectors(self, *_: object) -> dict[str, Vectors]:
        return {}

    def replace_source(self, collection: str, source_file: str, chunks: Sequence[EmbeddedChunk]) -> None:  # noqa: ARG002
        self.rows += chunks

    def flush(self) -> None:
        """Do nothing: the rows are written when they have their vectors."""


def open_index(corpus: Corpus, folder: Path, progress: Progress | None = None) -> tuple[DatasetIndex, LibraryStore]:
    """Open the index of a corpus; build it if it is missing, incomplete (without a card) or damaged.

    Args:
        corpus: The corpus.
        folder: Folder of all indexes.
        progress: Called before each document.

    Returns:
        The index, and its store, which the caller closes.

    Raises:
        ModelError: The model refused a text, or cannot be reached.
        StoreError: The index cannot be written.
    """
    home = folder / corpus.file_name()
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{home}.lock"):  # Another comparison may build or check the same index.
        cost = _verified(home, corpus.language)
        if cost is None:
            shutil.rmtree(home, ignore_errors=True)
            cost = _build(corpus, home, progress)
    store = _opened(home, corpus.language)
    names = {opaque: id for id, opaque in corpus.opaque.items()}
    searched: Any = ReadOnly(store, STORE)
    if corpus.vectors is None:
        searched.search = searched.vectors = _no_vectors
        searched.embedder = lambda: None
    return DatasetIndex(searched, cost, corpus.language, own=corpus.own_hash(), names=names), store


def _no_vectors(*_: Any, **__: Any) -> NoReturn:
    raise StoreError(
        "the index has no vectors, because no technique asked for the embedder; add a parameter `embedder` to "
        "the constructor of the technique that searches by vector"
    )


def _opened(home: Path, language: str) -> LibraryStore:
    """Open a store whose searches are exact at any size."""
    return open_local(home, exact_below=sys.maxsize, language=language)


def _verified(home: Path, language: str) -> IndexCost | None:
    """Return the cost of an index; None if it is missing or damaged (the check takes 0.4 s for 5,000 chunks)."""
    try:
        cost = IndexCost(**json.loads((home / CARD).read_text(encoding="utf-8")))
        with closing(_opened(home, language)) as store:
            return cost if store.count() == cost.chunks and not store.verify() else None
    except (StoreError, OSError, ValueError, TypeError):  # Damaged, or written by another version.
        return None


def _build(corpus: Corpus, home: Path, progress: Progress | None) -> IndexCost:
    """Cut a corpus, embed the chunks, write them into a store in ``home``, and write a card of the cost."""
    start, cpu, counter = perf_counter(), process_time(), Counter(corpus)
    dataset, chunking, opaque = corpus.dataset, corpus.chunking, corpus.opaque
    # The chunks from the library as an ingest writes them, with placeholders for vectors.
    known = {"collection": dataset.name, "type": "document", "ingested_at": time()}
    rows = [
        EmbeddedChunk(text, metadata | known | dict.fromkeys(("source", "source_file"), opaque[name]), [1.0])
        for name, chunks in corpus.own.items()
        for text, metadata in chunks
    ]
    others = [
        CorpusText(one.whole, opaque[one.id], title=one.title) for one in dataset.corpus if one.id not in corpus.own
    ]
    size = chunking.size or max(1, *(len(document.whole) for document in dataset.corpus))
    reading = ReadOptions(size, chunking.overlap, chunking.fit, headings=False, language=corpus.language)
    with closing(open_local(home, language=corpus.language)) as store:
        writer = Collected(store, rows)
        report = Ingest(cast("LibraryStore", writer), counter, reading, dataset.name).run(
            others, None if progress is None else lambda _, done, total: progress("indexing", done, total)
        )
        if report.failed:
            raise report.failed[0].cause
        texts = [searched_text(row.text, row.metadata) for row in writer.rows]
        embedding, embedding_cpu, from_library = perf_counter(), process_time(), 0
        if corpus.vectors is not None:
            from_library = _embed(corpus, writer.rows, texts, progress)
            vectors = corpus.vectors.embed(texts)
            writer.rows = [row._replace(embedding=vector) for row, vector in zip(writer.rows, vectors, strict=True)]
        embedding, embedding_cpu = perf_counter() - embedding, process_time() - embedding_cpu
        store.add_documents(writer.rows)
        if corpus.vectors is not None:
            measure_if_due(store, corpus.vectors)
    limit = 0 if corpus.vectors is None else counter.fingerprint.max_tokens
    embed_seconds, embed_cpu, tokens = (0.0, 0.0, 0.0) if corpus.vectors is None else corpus.vectors.cost(texts)
    cost = IndexCost(
        chunking=str(corpus.chunking),
        documents=len(corpus.dataset.corpus),
        chunks=len(writer.rows),
        cut=sum(row.metadata["token_count"] > limit for row in writer.rows) if limit else 0,
        from_library=from_library,
        as_in_library=len(corpus.own),
        embed_seconds=embed_seconds,
        embed_tokens=round(tokens),
        write_seconds=perf_counter() - start - embedding,
        cpu_seconds=process_time() - cpu - embedding_cpu + embed_cpu,
        disk_bytes=bytes_below(home),
    )
    (home / CARD).write_text(json.dumps(asdict(cost)), encoding="utf-8")
    return cost


def _embed(corpus: Corpus, rows: Sequence[EmbeddedChunk], texts: Sequence[str], progress: Progress | None) -> int:
    """Embed the texts whose vectors are not known. Before the start, report their number and how long it takes.

    Returns the number of vectors from the library. Raises `ModelError` with the document of a text that is refused.
    """
    vectors = corpus.vectors
    assert vectors is not None
    missing, from_library = vectors.missing(texts), 0
    if missing and corpus.library is not None:
        from_library = vectors.take(missing, corpus.library)
        missing = vectors.missing(missing)
    if not missing:
        return from_library
    sample, total = random.Random(0).sample(missing, min(TIMED_TEXTS, len(missing))), len(missing)

    def embed(batch: Sequence[str]) -> None:
        try:
            with _without_warnings():
                vectors.embed(batch)
        except ModelError as error:
            _, refused = embed_each(batch, vectors.embed)
            names = {opaque: id for id, opaque in corpus.opaque.items()}
            for row, text in zip(rows, texts, strict=True):
                if text in refused:
                    name, place = names[row.metadata["source_file"]], f"chunk {row.metadata['chunk_index'] + 1}"
                    raise refused_error(name, place, text, refused[text]) from error
            raise

    embed(missing[:1])  # the first call loads the model
    start = perf_counter()
    embed(sample)
    seconds = (perf_counter() - start) * sum(map(len, missing)) / max(1, sum(map(len, sample)))
    known = f" ({len(texts) - total:,} of {len(texts):,} are known)" if total < len(texts) else ""
    activity = f"embedding {numbered(total, '[chunk|chunks]')}{known}{ESTIMATE}{duration(seconds)}"
    for first in range(0, total, TEXTS_AT_ONCE):
        if progress is not None:
            progress(activity, first, total)
        embed(missing[first : first + TEXTS_AT_ONCE])
    if progress is not None:
        progress(activity, total, total)
    return from_library


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence warnings of a model about cut chunks: how many were cut is part of the cost."""
    logger = logging.getLogger("ragistry.models")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def bytes_below(folder: Path) -> int:
    """Return the size of the files in a folder, in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


# --- What techniques get: the reads of the index, or of the library and its collections ---


STORE = frozenset(
    {"abilities", "search", "search_text", "rank", "get", "vectors", "scan", "count", "sources", "embedder", "fit"}
)
"""It has no ``version``, so that techniques remember no answers and each query costs what it costs alone."""
LIBRARY = frozenset({"collections", "sources", "list_sources", "list_sources_detail", "list_collections", "count"})
COLLECTIONS = frozenset({"entries", "entry", "version"})


class ReadOnly:
    """The named reads of an object. Every other public call of it raises `UnsupportedError`."""

    def __init__(self, of: Any, reads: Collection[str]) -> None:
        # Attributes, because neither protocols nor `as_ranking_store` see what `__getattr__` passes on.
        for name in dir(of):
            if name.startswith("_") or (name == "rank" and not as_ranking_store(of)):
                continue
            if name in reads:
                setattr(self, name, getattr(of, name))
            elif name != "version":
                setattr(self, name, partial(_refused, name))


def read_only_library(library: Any) -> ReadOnly:
    """Return the reads of a library and of its collections."""
    found = ReadOnly(library, LIBRARY)
    found.collections = ReadOnly(library.collections, COLLECTIONS)  # type: ignore[attr-defined]
    return found


def _refused(name: str, *_: Any, **__: Any) -> NoReturn:
    raise UnsupportedError(f"a technique only reads while it is compared; remove its call of {name!r}")
