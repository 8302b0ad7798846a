"""A grid of parameters: ``hybrid.k=10,60`` and ``chunk_size=document,500`` as every combination of their values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation.index_building import Chunking
from ragistry.utils.suggest import did_you_mean

Grid = Mapping[str, Sequence[Any]]
"""Parameter → values. ``TECHNIQUE.PARAMETER`` changes an entry of techniques.yaml, ``chunk_size`` the chunks."""

CHUNK_SIZE = "chunk_size"
WHOLE = "document"
LIBRARY = "library"
OVERLAP_SHARE = 0.15
"""What neighbours share of a chunk whose overlap nobody chose, as in the default of 150 of 1,000 characters."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One column of a comparison: a technique, what is changed in its entry, and how the documents are cut."""

    name: str
    technique: str
    chunking: Chunking
    changes: dict[str, Any] = field(default_factory=dict)


def parse_grid(lines: Iterable[str]) -> dict[str, list[Any]]:
    """``["hybrid.k=10,60"]`` as ``{"hybrid.k": [10, 60]}``; what is JSON, such as ``[1, 0]``, as that, else text."""
    grid: dict[str, list[Any]] = {}
    for line in lines:
        key, equals, text = line.partition("=")
        values = _split(text)
        if not equals or not key.strip() or not all(values):
            raise EvaluationError(
                f"a grid is written TECHNIQUE.PARAMETER=VALUE,VALUE, got {line!r}; try hybrid.k=10,60"
            )
        if key.strip() in grid:
            raise EvaluationError(f"the grid names {key.strip()!r} twice; write all its values after one =")
        grid[key.strip()] = [_value(value) for value in values]
    return grid


def _split(text: str) -> list[str]:
    """What stands between the commas, of which those within brackets separate nothing."""
    found, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth <= 0:
            found.append("")
        else:
            found[-1] += character
    return [value.strip() for value in found]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def parse_chunking(size: Any) -> Chunking:
    """``document``, ``500``, ``500/75`` (characters, and how many neighbours share), or ``library``."""
    if isinstance(size, Chunking):
        return size
    if size is None or size == WHOLE:
        return Chunking()
    if size == LIBRARY:
        return Chunking(library=True)
    characters, _, shared = str(size).partition("/")
    if characters.isdecimal() and (shared or "0").isdecimal() and int(characters) > int(shared or "0"):
        return Chunking(int(characters), int(shared) if shared else int(int(characters) * OVERLAP_SHARE))
    raise EvaluationError(f"a chunk size is 'document', 500, or 500/75 with the overlap below the size, got {size!r}")


def variants(techniques: Sequence[str], chunking: Chunking, grid: Grid) -> list[Variant]:
    """Every technique with every combination of what the grid says of it, in order.

    A name tells what was varied: ``hybrid[k=10,chunk_size=500/75]``. Raises `EvaluationError` for a parameter of a
    technique that is not compared, and for a combination that comes twice.
    """
    _check(techniques, grid)
    sizes = [parse_chunking(size) for size in grid.get(CHUNK_SIZE, [chunking])]
    found = [
        _variant(technique, dict(zip(_own(technique, grid), values, strict=True)), size, CHUNK_SIZE in grid)
        for technique in techniques
        for size in sizes
        for values in product(*_own(technique, grid).values())
    ]
    names = [variant.name for variant in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise EvaluationError(f"{twice!r} would be compared twice; name each technique and each value once")
    return found


def _own(technique: str, grid: Grid) -> dict[str, Sequence[Any]]:
    return {key.partition(".")[2]: values for key, values in grid.items() if key.partition(".")[0] == technique}


def _variant(technique: str, changes: dict[str, Any], chunking: Chunking, named: bool) -> Variant:
    shown = changes | ({CHUNK_SIZE: chunking} if named else {})
    settings = ",".join(f"{key}={value}" for key, value in shown.items())
    return Variant(f"{technique}[{settings}]" if settings else technique, technique, chunking, changes)


def _check(techniques: Sequence[str], grid: Grid) -> None:
    for key, values in grid.items():
        technique, dot, _ = key.partition(".")
        if not values:
            raise EvaluationError(f"the grid has no values for {key!r}; give one or more")
        if key != CHUNK_SIZE and not (dot and technique in techniques):
            known = [CHUNK_SIZE, *(f"{name}.PARAMETER" for name in techniques)]
            raise EvaluationError(
                f"the grid names {key!r}{did_you_mean(technique, techniques)}; it may name {', '.join(known)}"
            )
