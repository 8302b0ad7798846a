"""What is compared: a technique under its name, what decides its rankings, and the index that it searches."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragistry.evaluation.systems.index import DatasetIndex
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.types import Document

MODELS = ("embedder", "generator", "reranker")
"""Resources that are models; the first is shared by all techniques."""


@dataclass(frozen=True, slots=True)
class System:
    """A technique under the name that the report gives it.

    ``configuration``: what decides its rankings, defaults included. ``not_resumed``: why earlier answers are never
    taken for its own; empty where they are. ``own_top_k``: its ``top_k`` is part of what is compared, so it is asked
    for no other. ``embeds``: the embedder decides its rankings.
    """

    name: str
    technique: RegisteredTechnique
    configuration: dict[str, Any]
    index: DatasetIndex | None = None
    own_top_k: bool = False
    embeds: bool = False
    not_resumed: str = ""

    @property
    def chunks_per_document(self) -> float:
        """How many chunks make up a document, on average; 1 where that is not known."""
        return 1.0 if self.index is None else max(1.0, self.index.cost.chunks / self.index.cost.documents)

    @property
    def unmade(self) -> Exception | None:
        """Why there is nothing to ask, where the technique could not be made."""
        inner = self.technique.technique
        return inner.reason if isinstance(inner, Unmade) else None


class Unmade:
    """Replaces a technique that could not be made, so that the others can be compared."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason

    def retrieve(self, query: str, **_: Any) -> list[Document]:  # noqa: ARG002, nothing can be found
        raise self.reason


def code_hash(made: Any) -> str | None:
    """SHA-256, hexadecimal, of the source files of a class and of its base classes, or of a function.

    None where its own has no file, as for what was typed at a prompt. Files that these import are not seen.
    """
    kinds = made.__mro__ if isinstance(made, type) else (made,)
    files = {kind.__module__: _source_file(kind) for kind in kinds}
    if files[kinds[0].__module__] is None:
        return None
    digest = sha256()
    for name in sorted(files):
        if (file := files[name]) is not None:
            digest.update(sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _source_file(kind: Any) -> Path | None:
    if kind.__module__.partition(".")[0] in sys.stdlib_module_names and kind.__module__ != "__main__":
        return None
    try:
        file = Path(inspect.getfile(kind))
    except (TypeError, OSError):
        return None
    return file if file.suffix == ".py" and file.is_file() else None
