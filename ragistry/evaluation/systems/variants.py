"""The columns of a comparison: techniques varied by a grid, and how documents are cut.

A grid is ``hybrid.fusion=dbsf,rrf`` or ``chunk_size=document,500``: every combination of the values is compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.utils.wording import did_you_mean

Grid = Mapping[str, Sequence[Any]]
"""Parameter → values. ``TECHNIQUE.PARAMETER`` changes an entry of techniques.yaml, ``chunk_size`` the chunks."""
_COMMA = re.compile(r",(?![^\[{]*[\]}])")
"""A comma between values, outside brackets."""
CHUNK_SIZE = "chunk_size"
EMBED_MODEL = "embed_model"
WHOLE = "document"
LIBRARY = "library"
OVERLAP_SHARE = 0.15
"""Overlap of a chunk size given without one, as a share of it; the default settings have 150 of 1,000 characters."""


@dataclass(frozen=True, slots=True)
class Chunking:
    """How documents are cut.

    Attributes:
        size: Maximum number of characters of a chunk. None: each document is one chunk, as in published results; a
            model still reads only its beginning.
        overlap: Maximum number of characters shared by neighbours.
        fit: Cut chunks again that are too long for the model.
        library: Search the library of a workspace as it is.
        ingested: Use the settings of the workspace, and the chunks of its library for documents that are in it.
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
class Variant:
    """One column of a comparison: a technique, the changes of its entry, the chunking, and the embedder by its name.

    ``entry``: the name of its entry, once a registry has it.
    """

    name: str
    technique: str
    chunking: Chunking
    changes: dict[str, Any] = field(default_factory=dict)
    embed_model: str | None = None
    entry: str = ""


def parse_grid(lines: Iterable[str]) -> dict[str, list[Any]]:
    """Parse ``["hybrid.fetch=10,60"]`` as ``{"hybrid.fetch": [10, 60]}``; values are JSON, such as ``[1, 0]``, or text.

    Raises:
        EvaluationError: A line is malformed, or names a parameter again.
    """
    grid: dict[str, list[Any]] = {}
    for line in lines:
        key, equals, text = (part.strip() for part in line.partition("="))
        values = [value.strip() for value in _COMMA.split(text)]
        if not equals or not key or not all(values):
            raise EvaluationError(
                f"a grid must be TECHNIQUE.PARAMETER=VALUE,VALUE, such as hybrid.fusion=dbsf,rrf; got {line!r}"
            )
        if key in grid:
            raise EvaluationError(f"the grid has {key!r} twice; put all values after one =")
        grid[key] = [_value(value) for value in values]
    return grid


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def parse_chunking(size: Any) -> Chunking:
    """Parse ``document``, ``500``, ``500/75`` (characters, and the overlap), or ``library``."""
    if isinstance(size, Chunking):
        return size
    if size is None or size == WHOLE:
        return Chunking()
    if size == LIBRARY:
        return Chunking(library=True)
    characters, _, shared = str(size).partition("/")
    if characters.isdecimal() and (shared or "0").isdecimal() and int(characters) > int(shared or "0"):
        return Chunking(int(characters), int(shared) if shared else int(int(characters) * OVERLAP_SHARE))
    raise EvaluationError(
        f"a chunk size must be 'document', 'library', 500, or 500/75 with the overlap below the size; got {size!r}"
    )


def variants(
    techniques: Sequence[str],
    chunking: Chunking,
    grid: Grid,
    embed_models: Sequence[str] = (),
    *,
    embedding: Container[str] = (),
) -> list[Variant]:
    """Combine every technique with every combination of its grid values, in order.

    The name shows the varied values: ``hybrid[fetch=10,chunk_size=500/75]``, ``naive[minilm]``.

    Args:
        techniques: The techniques.
        chunking: How documents are cut, unless the grid says it.
        grid: The values.
        embed_models: Embedders by name, for the techniques of ``embedding``; the others search the index of the first.
        embedding: Techniques that use vectors.

    Raises:
        EvaluationError: The grid has a parameter of a technique that is not compared, or a combination occurs twice.
    """
    for key, values in grid.items():
        technique, dot, _ = key.partition(".")
        if not values:
            raise EvaluationError(f"the grid has no values for {key!r}; add one or more")
        if key != CHUNK_SIZE and not (dot and technique in techniques):
            known = ", ".join([CHUNK_SIZE, *(f"{name}.PARAMETER" for name in techniques)])
            raise EvaluationError(f"the grid has {key!r}{did_you_mean(technique, techniques)}; it may have {known}")
    sizes = [parse_chunking(size) for size in grid.get(CHUNK_SIZE, [chunking])]
    found: dict[str, Variant] = {}
    for technique in techniques:
        own = {key.partition(".")[2]: values for key, values in grid.items() if key.partition(".")[0] == technique}
        models: Sequence[str | None] = embed_models if technique in embedding else embed_models[:1]
        for size, values, model in product(sizes, product(*own.values()), models or [None]):
            changes = dict(zip(own, values, strict=True))
            shown = changes | ({CHUNK_SIZE: size} if CHUNK_SIZE in grid else {})
            own_model = [model] if model is not None and technique in embedding else []
            settings = ",".join([*own_model, *(f"{key}={value}" for key, value in shown.items())])
            name = f"{technique}[{settings}]" if settings else technique
            if name in found:
                raise EvaluationError(f"{name!r} would be compared twice; give each technique and each value once")
            found[name] = Variant(name, technique, size, changes, model)
    return list(found.values())
