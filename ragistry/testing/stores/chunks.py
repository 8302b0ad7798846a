"""Valid and invalid chunks for tests of stores, with three dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ragistry.types import EmbeddedChunk

EAST, NORTH, UP = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
WEST, NORTH_EAST = [-1.0, 0.0, 0.0], [1.0, 1.0, 0.0]


def chunk(text: str, vector: Sequence[float] = EAST, **metadata: Any) -> EmbeddedChunk:
    """Build a chunk with its metadata as keywords."""
    return EmbeddedChunk(text, metadata, vector)


def source(collection: str, source_file: str, texts: Sequence[str], source_hash: str = "h") -> list[EmbeddedChunk]:
    """Build the chunks of a source as a library passes them to a store."""
    origin = {"collection": collection, "source_file": source_file, "source": f"/in/{source_file}"}
    return [
        chunk(text, EAST, **origin, chunk_index=index, source_hash=source_hash, ingested_at=12.5)
        for index, text in enumerate(texts)
    ]


BAD_TEXTS: dict[str, Any] = {
    "empty": "",
    "blank": " \n",
    "lone surrogate": "half \ud800",
    "no text": None,
    "eleven megabytes": "x" * 11_000_000,
}
BAD_VECTORS: dict[str, Any] = {
    "NaN": [math.nan, 0.0, 0.0],
    "infinite": [0.0, math.inf, 0.0],
    "zero": [0.0, 0.0, 0.0],
    "empty": [],
    "words": ["a", "b", "c"],
    "none": None,
    "nested": [[1.0], [2.0], [3.0]],
    "ragged": [[1.0], [2.0, 3.0]],
    "matrix": np.ones((1, 3)),
    "booleans": [True, False, True],
    "complex": np.array([1 + 2j, 0, 0]),
    "float16 with NaN": np.array([1, 2, np.nan], dtype=np.float16),
    "too large a number": [10**400, 0, 0],
    "a text": "abc",
    "bytes": b"abc",
    "a number": 3,
}
BAD_METADATA: dict[str, Any] = {
    "none": None,
    "a list": [("a", 1)],
    "NaN": {"key": math.nan},
    "infinite": {"key": -math.inf},
    "past 64 bits": {"key": 2**63},
    "far past 64 bits": {"key": 10**5_000},
    "below 64 bits": {"key": -(2**63) - 1},
    "lone surrogate": {"key": "\ud800"},
    "mapping": {"key": {"a": 1}},
    "bytes": {"key": b"a"},
    "nested list": {"key": [[1]]},
    "list of two kinds": {"key": [1, "a"]},
    "list of numbers and truth values": {"key": [True, 1]},
    "list with none": {"key": [None]},
    "list with NaN": {"key": [0.5, math.nan]},
    "long list": {"key": list(range(10_000))},
    "long value": {"key": "x" * 1_000_001},
    "many keys": {f"key{i}": i for i in range(5_462)},
    "many values": {f"key{i}": [0] * 100 for i in range(60)},
    "empty key": {"": 1},
    "numeric key": {1: 1},
    "surrogate in key": {"k\ud800": 1},
    "long key": {"k" * 1_000: 1},
    "reserved #": {"#key": 1},
    "reserved $": {"$key": 1},
    "reserved by Chroma": {"chroma:document": "a"},
    "reserved by Ragistry": {"ragistry:key": "a"},
}
BAD_CHUNKS: dict[str, Any] = {
    "pair": ("text", {}),
    **{f"text {name}": EmbeddedChunk(text, {}, EAST) for name, text in BAD_TEXTS.items()},
    **{f"vector {name}": EmbeddedChunk("text", {}, vector) for name, vector in BAD_VECTORS.items()},
    "vector of another length": EmbeddedChunk("text", {}, [1.0, 0.0]),
    **{f"metadata {name}": EmbeddedChunk("text", metadata, EAST) for name, metadata in BAD_METADATA.items()},
}
