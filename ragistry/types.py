"""Values passed between parts: frozen, small, standard library only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from operator import attrgetter
from typing import Any, Literal, NamedTuple

Role = Literal["document", "query"]
ScoreKind = Literal[
    "cosine", "l2", "ip", "bm25", "rrf", "min_max", "dbsf", "rank", "grade", "cross_encoder", "maxsim",
    "probability", "pagerank", "dot", "other",
]  # fmt: skip
AnswerStatus = Literal["complete", "not_found", "cut", "filtered", "refused", "empty"]
"""How an answer of a language model ended: complete; the model said that the passages do not answer; ended early, as by
a maximum length; ended by a content filter; refused by the model; without text, as after a call of a tool or reasoning
alone."""
Where = Mapping[str, Any]
"""A condition on metadata: ``{"page": 3}``, ``{"page": {"$gte": 3}}``, ``{"$and": [...]}``; see `utils.where`."""

Progress = Callable[[str, int, int], None]
"""Called with the current activity, the number of finished steps, and the total."""

TOP_K_LIMIT = 1_000
"""The largest ``top_k`` of a workspace's search; the smallest is 1."""


class JsonMethods:
    """Methods of a dataclass that convert it, with the names of its fields that HTTP and ``--json`` use."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values. Values of metadata that JSON does not have, such as dates, stay as they are."""
        from ragistry.utils.dataclass_json import to_json  # not at the top, because it imports pydantic

        values: dict[str, Any] = to_json(self)
        return values

    def to_json(self, indent: int | None = None) -> str:
        """Write as JSON. Values that JSON does not have are written as text.

        Args:
            indent: Number of blanks for each level; None to write one line.
        """
        import json

        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, default=str)


@dataclass(frozen=True, slots=True)
class StageScore:
    """The score of a document in one stage of a retrieval. Values of different kinds are never compared."""

    stage: str
    kind: ScoreKind | str  # a technique of a user may have a kind of its own
    value: float


@dataclass(frozen=True, slots=True)
class Document(JsonMethods):
    """One result of a retrieval.

    ``score``: higher is better, always. ``scores``: the scores of the stages, earliest first.
    """

    content: str
    metadata: dict[str, Any]
    score: float
    id: str = ""
    scores: tuple[StageScore, ...] = ()

    def __repr__(self) -> str:
        return f"Document({_excerpt(self.content, 60)!r}, source={self._source!r}, score={self.score:.4g})"

    def _repr_html_(self) -> str:
        return html_table([], _COLUMNS, [self._cells])

    @property
    def _source(self) -> str:
        get = self.metadata.get
        names = [get("collection"), get("source_file") or get("source") or get("url") or self.id[:12]]
        return "/".join(str(name) for name in names if name)

    @property
    def _cells(self) -> list[str]:
        return [f"{self.score:.4g}", self._source, _excerpt(self.content, 300)]


class Place(NamedTuple):
    """The id of a chunk, and its source; None for what is unknown."""

    id: str
    collection: str | None
    source_file: str | None
    chunk_index: int | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best chunks of a store for one query, without their texts.

    Attributes:
        scores: The score of each chunk by its key, ordered by ``(-score, id)``.
        stage: Name of the stage of the scores.
        kind: Kind of the scores.
        snapshot: Identifies the store and its version. Rankings of equal snapshots can be joined by key.
        read: Reads the documents of keys, with score 0; None if the store has changed since this snapshot.
        places: Reads ids and sources of keys; None likewise.
        parts: The rankings that were fused to this one.
        fit: How well the embedder of the store knows its texts; None if unknown.
    """

    scores: Mapping[int, float]
    stage: str
    kind: ScoreKind
    snapshot: tuple[object, int]
    read: Callable[[Sequence[int]], Mapping[int, Document] | None]
    places: Callable[[Sequence[int]], Mapping[int, Place] | None]
    parts: tuple[Ranking, ...] = ()
    fit: Fit | None = None

    def stage_scores(self, key: int) -> tuple[StageScore, ...]:
        """Return the scores of all stages for one chunk, earliest first."""
        scores: list[StageScore] = []
        for part in self.parts:
            if part.parts and key in part.scores:
                scores += part.stage_scores(key)
            elif key in part.scores:
                scores.append(StageScore(part.stage, part.kind, part.scores[key]))
        return (*scores, StageScore(self.stage, self.kind, self.scores[key]))


class Chunk(NamedTuple):
    """A piece of a source: its text and metadata."""

    text: str
    metadata: dict[str, Any]


class EmbeddedChunk(NamedTuple):
    """A chunk and its vector, ``(d,)`` floats; None: it waits for its vector (`protocols.WordsFirstStore`)."""

    text: str
    metadata: dict[str, Any]
    embedding: Sequence[float] | None


@dataclass(frozen=True, slots=True)
class EmbedderFingerprint:
    """Identifies an embedder: vectors are comparable only if it is equal.

    Attributes:
        provider: How the model is run.
        model: Name of the model.
        digest: Hexadecimal digest of the weights; empty if unknown.
        dimension: Length of a vector.
        query_prefix: Prefix of queries.
        document_prefix: Prefix of documents.
        max_tokens: The model's limit; 0 if unknown.
        probe: First numbers of the vector of a fixed text, to detect another model of the same name; empty if unknown.
            They vary slightly between runs, so ``==`` ignores them; `utils.fingerprints` compares them.
    """

    provider: str
    model: str
    digest: str
    dimension: int
    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int = 0
    probe: str = field(default="", compare=False)


KNOWN = 0.4
"""The score of a `Fit` from which on a fusion relies on the vectors as much as on words."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How well the embedder of a store knows its texts (`library.fit`).

    Attributes:
        score: How far the best chunks stand out for a sentence of the texts, above noise; about 0 to 1.
        chunks: Number of chunks of the store when it was measured.
        model: Name of the embedder.
        language: The language of most texts by its code; empty if unknown.
    """

    score: float
    chunks: int
    model: str
    language: str = ""

    @property
    def weight(self) -> float:
        """What a ranking by these vectors counts in a fusion, 0.01 to 1; not 0, since words may find nothing."""
        return min(1.0, max(0.01, max(0.0, self.score / KNOWN) ** 2))

    @property
    def is_weak(self) -> bool:
        """Whether the embedder hardly knows the texts."""
        return self.score < 0.3


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """One source in a store.

    Attributes:
        collection: Its collection.
        source_file: Its name in the collection.
        chunks: Number of its chunks.
        source: Its path as it was passed.
        source_hash: Hash of its content; empty if it is incomplete.
        ingested_at: Time of the ingest, in seconds since 1970.
        source_path: Its full path, which distinguishes files of the same name; empty for a text.
        lost: Parts of the file that could not be extracted.
        metadata: Its own metadata, which all chunks share; see `utils.metadata`.
        set_keys: Keys of these that an argument or `set_metadata` has set, also removed ones.
        waiting: Number of its chunks that wait for their vectors, and are only found by their words.
    """

    collection: str
    source_file: str
    chunks: int = field(metadata={"alias": "chunk_count"})
    source: str = ""
    source_hash: str = ""
    ingested_at: float = 0.0
    source_path: str = ""
    lost: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    set_keys: tuple[str, ...] = ()
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Unsearchable:
    """A file that an ingest tried and that is not searchable, or not in full.

    Attributes:
        collection: Collection that it was ingested into.
        source_file: Its name in the collection.
        source_path: Its path or address; empty for a text or an uploaded file.
        folder: The id of a client's folder that it was sent from; empty for others.
        kind: ``failed``; ``outdated``: its new version failed, and the old one is searched; ``no text``; ``cut``: a
            part of it is not searched; ``waiting``: some of its chunks are only found by their words.
        reason: Why, in one line.
        at: Time of the ingest, in seconds since 1970.
    """

    collection: str
    source_file: str
    source_path: str
    folder: str
    kind: Literal["failed", "outdated", "no text", "cut", "waiting"]
    reason: str
    at: float


@dataclass(frozen=True, slots=True)
class IngestedFolder:
    """A folder that was ingested into a collection: what was left out, as numbers of files by reason, and patterns.

    Attributes:
        collection: The collection.
        folder: Its path, or the id of a client's folder.
        counts: Number of files that were left out, by reason.
        exclude: Patterns of files to leave out.
    """

    collection: str
    folder: str
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of a repair.

    Attributes:
        rebuilt: The rebuilt files, with the reason.
        lost: Unreadable parts, one line each.
        again: Sources to ingest again, as (collection, source_file).
        kept: The damaged file, kept next to the new one; empty if the database was intact.
    """

    rebuilt: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    again: tuple[tuple[str, str], ...] = ()
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a retrieval: its time in milliseconds, documents in and out, and its cost."""

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
class SearchRequest:
    """A search, as a person or a program asks for it.

    Every door reads its options from these fields. The metadata of a field has arguments of `pydantic.Field`; also
    ``short``, the short name of its option on the command line, and ``model``, its description for language models. A
    field without ``model`` is not an argument of ``search_library``, except ``query`` and ``collection``.

    Attributes:
        query: The query.
        technique: Name of a technique of techniques.yaml; None for its ``default``. In this process it may also be an
            entry or an object, as `TechniqueRegistry.chosen` takes them.
        collection: Name of a collection; None for all.
        top_k: Number of results; None for the technique's setting, or else ``n_results``.
        where: Condition on metadata.
        previous: The question before, if the query follows one; its phrases and exclusions do not count. None or a
            blank text: the query stands alone.
    """

    query: str = field(
        metadata={
            "description": "Text of the query. Words in double quotes are a phrase.",
            "max_length": 100_000,
            # Described only: the library refuses a blank text with its own error, as it does everywhere.
            "json_schema_extra": {"minLength": 1, "pattern": r"\S"},
        }
    )
    technique: Any = field(
        default=None, metadata={"description": "Technique, by its name in techniques.yaml.", "short": "-t"}
    )
    collection: str | None = field(
        default=None, metadata={"description": "Search only this collection.", "short": "-c"}
    )
    top_k: int | None = field(
        default=None, metadata={"description": "Number of passages.", "short": "-k", "ge": 1, "le": TOP_K_LIMIT}
    )
    where: Where | None = field(
        default=None,
        metadata={
            "description": "Condition on metadata.",
            "examples": [{"page": 3}],
            "model": (
                'Only to limit the search by metadata that results show, as JSON: {"client": "acme"}, '
                '{"year": {"$gte": 2025}}, {"tags": {"$contains": "tax"}}; joined by {"$and": [...]} or {"$or": [...]}.'
            ),
        },
    )
    previous: str | None = field(
        default=None,
        metadata={
            "description": "The question before, if the query is a follow-up to it.",
            "max_length": 100_000,
            "model": "Only for a follow-up: the user's question before this one.",
        },
    )


@dataclass(frozen=True, slots=True)
class RetrievalResult(JsonMethods):
    """The result of a search of a library or workspace, best document first.

    Documents with identical text are one; ``copies`` and ``copy_places`` in its metadata count and list the others.
    ``total_results`` is ``len(documents)``; ``trace`` has one entry per stage, in the order of their start.
    ``unknown_words``: the words of the query that no passage contains, in any spelling, of those that could be found.
    """

    query: str
    documents: list[Document]
    total_results: int
    search_time_ms: float
    trace: tuple[Stage, ...] = ()
    unknown_words: tuple[str, ...] = ()

    @property
    def degraded(self) -> tuple[str, ...]:
        """Why the answer is degraded, one line each; empty for a complete answer."""
        return tuple(stage.degraded for stage in self.trace if stage.degraded)

    def __repr__(self) -> str:
        count = f"{len(self.documents)} document{'' if len(self.documents) == 1 else 's'}"
        degraded = ", degraded" if self.degraded else ""
        return f"RetrievalResult({_excerpt(self.query, 60)!r}, {count}, {self.search_time_ms:.1f} ms{degraded})"

    def _repr_html_(self) -> str:
        rows = [document._cells for document in self.documents]
        said = [f"{self.query} ({self.search_time_ms:.1f} ms)", *self.degraded]
        said += [f"no passage contains {word}" for word in self.unknown_words]
        return html_table(said, _COLUMNS, rows)


_COLUMNS = ("score", "source", "text")


def _excerpt(text: str, longest: int) -> str:
    words = " ".join(text.split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def html_table(lines: Iterable[str], columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write lines and a table below them in HTML, as notebooks show a value."""
    said = "".join(f"<p>{escape(line)}</p>" for line in lines)
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"{said}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


OUTSIDE = "outside"
"""Metadata key, with the value True, of a document that is not from a store of the library, such as a page of the web.
It belongs to no collection, so conditions on metadata do not apply to it."""


def is_outside(document: Document) -> bool:
    """Return whether a document is marked as one from outside the library."""
    return document.metadata.get(OUTSIDE) is True and "collection" not in document.metadata


def ranked(documents: Iterable[Document]) -> list[Document]:
    """Sort documents best first; equal scores by id, so that a ranking is deterministic."""
    by_id = sorted(documents, key=attrgetter("id"))
    return sorted(by_id, key=attrgetter("score"), reverse=True)  # leaves equal scores in their order
