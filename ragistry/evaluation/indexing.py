"""The corpus of a test set in a store of its own, made once for each way to cut it."""

from __future__ import annotations

import json
import shutil
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

from ragistry.errors import StoreError, StoreLockedError
from ragistry.evaluation.dataset import Dataset
from ragistry.evaluation.index_building import CARD, Chunking, IndexCost, build, bytes_below
from ragistry.evaluation.run_files import file_name
from ragistry.evaluation.vectors import KeptVectors
from ragistry.protocols import LibraryStore
from ragistry.stores.registry import open_local
from ragistry.techniques.routing.target import library_targets
from ragistry.types import Document, Progress
from ragistry.utils.fingerprints import to_json
from ragistry.workspace import Workspace

RUIN_SECONDS = 86_400
LOCK_SECONDS = 60.0
"""How long to wait for another comparison that looks an index over."""
FOLDER = "evaluation"
"""Where vectors and indexes are kept in the data of a workspace."""
NOT_OF_THE_LIBRARY = (FOLDER, "repositories")
"""What else is kept there, beside the library's own store."""
_LAYOUT = 2
"""Changes when chunks carry other metadata; every index is then built anew."""


@dataclass(frozen=True)
class DatasetIndex:
    """A corpus that can be searched.

    ``exact``: every search by vector compares every vector, at any size. ``contents``: a hash of what is searched,
    where the test set and the chunking do not decide it. ``qualified``: a document's id is its collection, a slash and
    its source, as in a library; else it is the source alone.
    """

    store: LibraryStore
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
        """Of each document, by its id in the test set, the collection that it is in."""
        return {
            f"{info.collection}/{info.source_file}" if self.qualified else info.source_file: info.collection
            for info in self.store.sources()
        }


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

    It gets its name when it is whole: an attempt that was interrupted leaves nothing but vectors, which are kept. One
    that cannot be opened is built anew. Searches are exact at any size. Raises `ModelError`, `StoreError`.
    """
    home = folder / _name(dataset, chunking, vectors, language)
    cost = _cost_of(home)
    if cost is None or not _is_whole(home, cost, language):
        folder.mkdir(parents=True, exist_ok=True)
        _clear_ruins(folder)
        building = Path(mkdtemp(prefix="building-", dir=folder))
        try:
            cost = build(dataset, chunking, vectors, building, language, progress)
            if (there := _cost_of(home)) is None or not _is_whole(home, there, language):  # else another was faster
                shutil.rmtree(home, ignore_errors=True)
                building.rename(home)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return DatasetIndex(_opened(home, language), cost, language)


def _opened(home: Path, language: str) -> LibraryStore:
    return open_local(home, exact_below=sys.maxsize, language=language, lock_timeout=LOCK_SECONDS)


def _is_whole(home: Path, cost: IndexCost, language: str) -> bool:
    """Whether the store has every chunk, as it was written; some 0.4 s for 5,000."""
    try:
        # Waits for a process that is building or verifying it.
        with closing(_opened(home, language)) as store, store.writing():
            return store.count() == cost.chunks and not store.verify()
    except StoreLockedError:
        raise
    except StoreError:  # damaged, or made by another version of the program
        return False


def _cost_of(home: Path) -> IndexCost | None:
    """What an index took; None where it is not there, or not whole."""
    try:
        return IndexCost(**json.loads((home / CARD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


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
    disk = bytes_below(folder) - sum(bytes_below(folder / other) for other in NOT_OF_THE_LIBRARY)
    cost = IndexCost(chunking, len(dataset.corpus), workspace.store.count(), 0, 0.0, 0, 0.0, disk)
    language, contents = workspace.settings.language, _contents(workspace)
    return DatasetIndex(workspace.store, cost, language, exact=False, contents=contents, qualified=True)


def _contents(workspace: Workspace) -> str:
    """SHA-256, hexadecimal, of every chunk with its metadata, and of the names and descriptions that queries go by."""
    chunks = sorted(map(_hash_of, workspace.store.scan()))
    targets = sorted((one.kind, one.name, one.description) for one in library_targets(workspace.library))
    return sha256(json.dumps([chunks, targets]).encode()).hexdigest()


def _hash_of(chunk: Document) -> str:
    """Its metadata counts, all of it: a technique may rank by its date, its tags, its title."""
    told = json.dumps([chunk.id, chunk.content, chunk.metadata], sort_keys=True, default=str)
    return sha256(told.encode()).hexdigest()


def _name(dataset: Dataset, chunking: Chunking, vectors: KeptVectors, language: str) -> str:
    digest = sha256(json.dumps([_LAYOUT, str(chunking), language, dataset.name]).encode())
    digest.update(to_json(vectors.fingerprint).encode())
    for document in dataset.corpus:
        digest.update(json.dumps(document).encode())
    return f"{file_name(dataset.name[:40])}-{digest.hexdigest()[:16]}"
