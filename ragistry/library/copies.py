"""Find copies and versions of one text among the sources of a store."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import islice
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ragistry.protocols import LibraryStore
from ragistry.techniques.newest import are_copies, date_of, shingles_of

Name = tuple[str, str]
"""Collection and name of a source."""
CHUNKS_READ = 20_000
"""Number of chunks that are read at most."""
SHORTEST = 20
"""Number of shingles below which a text is too short to be called a version of another."""
KEYS, CROWD, TRIED = 16, 20, 5
"""Keys by which a source is found, sources that one key leads to, and sources that one is compared with, at most.

They keep the work linear in the number of sources, even if a text such as a licence is part of each of them.
"""


@dataclass(frozen=True, slots=True)
class CopiedSources:
    """Families of copies.

    Attributes:
        families: The sources of each family, the newest first (`date_of`); the largest family first.
        compared: Number of sources that were compared.
        sources: Number of sources of the store.
    """

    families: list[list[Name]]
    compared: int
    sources: int


def copied_sources(store: LibraryStore, *, chunks_read: int = CHUNKS_READ) -> CopiedSources:
    """Group the sources that are copies by the rule of the technique `newest`.

    Each source is compared with the newest of a family. Candidates share one of their smallest hashed shingles (Broder,
    "On the Resemblance and Containment of Documents", 1997); all shingles decide.

    Args:
        store: The store.
        chunks_read: Number of chunks that are read at most. Sources that are not read to their end are not compared.
    """
    hashes: defaultdict[Name, list[NDArray[np.uint32]]] = defaultdict(list)
    dates: dict[Name, str] = {}
    for chunk in islice(store.scan(), chunks_read):
        name = str(chunk.metadata.get("collection", "")), str(chunk.metadata.get("source_file", ""))
        shingle_hashes = [crc32(shingle.encode()) for shingle in shingles_of(chunk.content)]
        hashes[name].append(np.array(shingle_hashes, dtype=np.uint32))
        dates[name] = date_of(chunk)
    sizes = {(info.collection, info.source_file): info.chunks for info in store.sources()}
    shingles = {
        name: np.unique(np.concatenate(found)) for name, found in hashes.items() if len(found) == sizes.get(name)
    }
    order = sorted(sorted(shingles), key=lambda name: dates[name], reverse=True)
    families = _families({name: shingles[name] for name in order if len(shingles[name]) >= SHORTEST})
    return CopiedSources(families, len(shingles), len(sizes))


def _families(shingles: dict[Name, NDArray[np.uint32]]) -> list[list[Name]]:
    families: dict[Name, list[Name]] = {}
    led: defaultdict[int, list[Name]] = defaultdict(list)  # the first sources of families, by key
    for name, own in shingles.items():
        keys = own[:KEYS].tolist()
        candidates = Counter(head for key in keys for head in led[key])
        for head, _ in candidates.most_common(TRIED):
            shared = len(np.intersect1d(own, shingles[head], assume_unique=True))
            if are_copies(shared, len(own), len(shingles[head])):
                families[head].append(name)
                break
        else:
            families[name] = [name]
            for key in keys:
                if len(led[key]) < CROWD:
                    led[key].append(name)
    return sorted((family for family in families.values() if len(family) > 1), key=len, reverse=True)
