"""The values that pass between the parts: frozen, small, standard library only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Role = Literal["document", "query"]
ScoreKind = Literal[
    "cosine", "l2", "ip", "bm25", "rrf", "min_max", "dbsf", "mmr", "rank", "grade", "cross_encoder", "maxsim",
    "probability", "pagerank", "dot", "other",
]  # fmt: skip
Where = Mapping[str, Any]
"""A condition on metadata: ``{"page": 3}``, ``{"page": {"$gte": 3}}``, ``{"$and": [...]}``; see `utils.where`."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many steps of it are done, and how many there are."""

TOP_K_LIMIT = 1_000
"""The largest ``top_k`` of a workspace's search; the smallest is 1."""


@dataclass(frozen=True, slots=True)
class StageScore:
    """What one stage of a retrieval gave a document. Values of different kinds are never compared."""

    stage: str
    kind: ScoreKind
    value: float


@dataclass(frozen=True, slots=True)
class Document:
    """One result of a retrieval.

    ``score``: higher is better, always. ``scores``: what each stage gave it, earliest first.
    """

    content: str
    metadata: dict[str, Any]
    score: float
    id: str = ""
    scores: tuple[StageScore, ...] = ()


class Chunk(NamedTuple):
    """A piece of a source: its text and where it comes from."""

    text: str
    metadata: dict[str, Any]


class EmbeddedChunk(NamedTuple):
    """A chunk and its vector, ``(d,)`` floats."""

    text: str
    metadata: dict[str, Any]
    embedding: Sequence[float]


@dataclass(frozen=True, slots=True)
class EmbedderFingerprint:
    """What must be the same for two vectors to be comparable.

    ``digest`` identifies the weights (hexadecimal; empty where the server does not tell), ``max_tokens`` is what
    the model takes in (0: not known). ``probe``: the first numbers of the vector of a fixed text, by which another
    model behind the same name is noticed (empty: not known); they vary a little between runs, so that
    `utils.fingerprints` compares them and ``==`` does not.
    """

    provider: str
    model: str
    digest: str
    dimension: int
    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int = 0
    probe: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """One source in a store: its collection, its name there, how many chunks, its path as given, hash and time.

    ``source_path``: the whole path, by which another file of the same name is told; empty for a text.
    """

    collection: str
    source_file: str
    chunks: int
    source: str = ""
    source_hash: str = ""
    ingested_at: float = 0.0
    source_path: str = ""


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did.

    ``rebuilt``: the broken files that were made anew, with the reason. ``lost``: what could not be read any more, one
    line each. ``again``: the sources to ingest again, as (collection, source_file). ``kept``: the damaged file, kept
    beside the new one; empty if the database was sound.
    """

    rebuilt: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    again: tuple[tuple[str, str], ...] = ()
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage of a retrieval did: its time in milliseconds, documents in and out, and what it cost."""

    name: str
    ms: float
    documents_in: int = 0
    documents_out: int = 0
    model_calls: int = 0
    tokens: int = 0
    depth: int = 0
    detail: Mapping[str, Any] = field(default_factory=dict)
    degraded: str = ""


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The answer to a search of a library or workspace, best document first.

    ``total_results`` is ``len(documents)``; ``trace`` has one entry a stage, in the order in which they began.
    """

    query: str
    documents: list[Document]
    total_results: int
    search_time_ms: float
    trace: tuple[Stage, ...] = ()

    @property
    def degraded(self) -> tuple[str, ...]:
        """What could not be done as asked, one line each; empty for a full answer."""
        return tuple(stage.degraded for stage in self.trace if stage.degraded)


def ranked(documents: Iterable[Document]) -> list[Document]:
    """Best first; equal scores in the order of their ids, so that a ranking never depends on chance."""
    return sorted(documents, key=lambda document: (-document.score, document.id))
