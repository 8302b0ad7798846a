"""Explain why a search does not return a passage: which stage lost it, at which rank, and what would return it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, NamedTuple

from ragistry.chunking.places import places_in
from ragistry.errors import QueryError, RagistryError
from ragistry.library.fit import fit_of
from ragistry.library.ingest.source import extract_bytes
from ragistry.library.service import DocumentService, technique_of
from ragistry.models.known import fit_line
from ragistry.techniques.classes import wanted_resources
from ragistry.techniques.folding import identity, place_name
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.text.phrases import count_held, parse_query
from ragistry.types import TOP_K_LIMIT, Document, RetrievalResult, SearchRequest, SourceInfo, Where
from ragistry.utils.where import normalise
from ragistry.utils.wording import did_you_mean, listed, numbered

Cause = Literal["found", "not ingested", "filtered", "not routed", "folded", "no words", "ranked low"]
PLACE_KEYS = ("page", "page_label", "line", "sheet", "part", "chapter", "section", "heading_context")
SHOWN = 5
"""Number of sources that an error names."""
LARGEST = 100_000_000
"""Maximum size in bytes of a file that is read to find out why it was not ingested."""


@dataclass(frozen=True, slots=True)
class StageRank:
    """The rank of the passage in one technique.

    Attributes:
        technique: Name of the technique.
        rank: Its rank, from 1; None if it is not among the results.
        score: Its score there; without a rank, its score in a search of its source alone; None if it has none.
        results: Number of results.
    """

    technique: str
    rank: int | None
    score: float | None
    results: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a search returns a passage or not.

    Attributes:
        query: The query.
        technique: The technique of the search.
        expected: The passage as named by the caller.
        top_k: Number of results of the search.
        cause: The stage that lost the passage; ``found`` if it is among the results.
        message: What happened to the passage, in one line.
        remedies: What would return it, one line each.
        rank: Its rank in the search; None if it is not among the results.
        ranks: Its rank in the technique and in each of its bases, to a depth of 1,000.
        cost: Calls of language models and time of the search, in one line; empty if no model was asked.
        degraded: Why the search was degraded, one line each.
    """

    query: str
    technique: str
    expected: str
    top_k: int
    cause: Cause
    message: str
    remedies: tuple[str, ...] = ()
    rank: int | None = None
    ranks: tuple[StageRank, ...] = ()
    cost: str = ""
    degraded: tuple[str, ...] = ()


def explain(library: DocumentService, request: SearchRequest, expected: str) -> Explanation:
    """Explain why a search returns a passage or not.

    The search runs as configured. Then its bases are asked for 1,000 results each, and the store for the source. A
    technique that asks a language model runs only once.

    Args:
        library: The library.
        request: The search.
        expected: A source, or a source with a place: ``manual.pdf``, ``manual.pdf:3`` (a page, else a line),
            ``plan.xlsx:Budget``, ``guide.md:line 40``, ``guide.md:Installation``.

    Raises:
        QueryError: The source does not have the place, or the search is invalid; also the errors of a search.
    """
    return _Search(library, request, expected).explanation()


class _Lost(NamedTuple):
    cause: Cause
    message: str
    remedy: str


class _Search:
    """One explained search, and what is known about the expected passage."""

    def __init__(self, library: DocumentService, request: SearchRequest, expected: str) -> None:
        self.library, self.request, self.expected = library, request, expected
        self.names = library.scope.current_names()
        self.chosen = technique_of(request, library.registry)
        self.sources, self.place = _named_sources(library.sources(), expected)

    def explanation(self) -> Explanation:
        start = perf_counter()
        result = self.library.run_search(self.request)
        top_k = self.request.top_k or len(result.documents)
        calls = sum(stage.model_calls for stage in result.trace) if self.chosen.asks_model else 0
        cost = f"{numbered(calls, 'model call[|s]')}, {perf_counter() - start:.1f} s" if calls else ""
        plain = Explanation(
            self.request.query, self.chosen.name, self.expected, top_k, "not ingested", "", cost=cost,
            degraded=result.degraded,
        )  # fmt: skip
        if not self.sources:
            path = self._file()
            how = f"ragistry ingest {path}" if path else "list the sources: ragistry sources list"
            return replace(plain, message=self._not_ingested(path), remedies=(how,))
        chunks = self._chunks()
        rank = next((rank for rank, one in enumerate(result.documents, 1) if self._is_expected(one, chunks)), None)
        if rank is not None:
            return replace(plain, cause="found", message=f"found: result {rank} of {len(result.documents)}", rank=rank)
        if lost := next(self._lost(chunks, result), None):
            return replace(plain, cause=lost.cause, message=lost.message, remedies=(lost.remedy,))
        return self._ranked_low(plain, chunks)

    def _chunks(self) -> list[Document]:
        """Read the expected chunks. Raises `QueryError` if the sources do not have the place."""
        chunks = [one for info in self.sources for one in self.library.store.scan(self._only(info))]
        chunks = self.names.with_current_names(chunks)
        if self.place is None:
            return chunks
        found = [chunk for chunk in chunks if _is_at(chunk, self.place)]
        if not found:
            known = {str(place[key]) for one in chunks for _, place in places_in(one.metadata) for key in place}
            source, near = (
                self.sources[0].source_file,
                "" if self.place.isdecimal() else did_you_mean(self.place, known),
            )
            raise QueryError(
                f"{source!r} has no place {self.place!r}{near}; name a page, a line, a "
                "sheet, a chapter or a heading of it, or the source alone"
            )
        return found

    def _only(self, info: SourceInfo) -> Where:
        stored = self.names.condition_for(info.collection)
        return {"$and": [stored, {"source_file": info.source_file}]}

    def _condition(self) -> Where | None:
        """Return the condition of the search."""
        where = normalise(self.request.where)
        return self.names.joined(self.library.scope.condition(self.names, self.request.collection), where)

    def _is_expected(self, document: Document, chunks: Sequence[Document]) -> bool:
        """Whether a result has text of an expected chunk; a technique may join chunks to larger results."""
        if any(document.id == chunk.id for chunk in chunks):
            return True
        ours = [one for one in chunks if _source_of(one) == _source_of(document)]
        return any(
            self.place is None or one.content in document.content or document.content in one.content for one in ours
        )

    def _lost(self, chunks: Sequence[Document], result: RetrievalResult) -> Iterator[_Lost]:
        """Yield the causes that do not depend on ranks."""
        wanted, own = self.request.collection, {str(one.metadata.get("collection")) for one in chunks}
        if wanted is not None and wanted not in own:
            collections = " and ".join(sorted(own))
            yield _Lost(
                "filtered",
                f"filtered: the search is limited to collection {wanted!r}, and the source is in {collections!r}",
                f"search with --collection {min(own)}, or without --collection",
            )
        inside = [one for one in chunks if wanted in (None, one.metadata.get("collection"))]
        if self.request.where is not None:
            condition = self._condition()
            scans = (self.library.store.scan({"$and": [condition, self._only(info)]}) for info in self.sources)
            allowed = {one.id for scan in scans for one in scan}
            inside = [one for one in inside if one.id in allowed]
            if not inside:
                yield _Lost(
                    "filtered",
                    f"filtered: the source does not meet the condition {dict(self.request.where)!r}",
                    "change the condition; the passage has "
                    + ", ".join(f"{key}: {chunks[0].metadata.get(key)!r}" for key in sorted(_keys(self.request.where))),
                )
                return
        yield from self._phrases(inside)
        yield from self._route(result, own)
        for rank, document in enumerate(result.documents, 1):
            if any(identity(one) == identity(document) for one in inside):
                yield _Lost(
                    "folded",
                    f"folded: result {rank}, {place_name(document)}, has the identical text",
                    "open that result; a larger --top-k lists the places of all copies",
                )

    def _phrases(self, chunks: Sequence[Document]) -> Iterator[_Lost]:
        parsed, language = parse_query(self.request.query), self.library.reading.language
        if parsed is None:
            return
        if parsed.excluded and all(count_held(parsed.excluded, one.content, language) for one in chunks):
            yield _Lost(
                "filtered",
                f"filtered: the query excludes {listed(parsed.excluded)}, which the passage contains",
                "remove the exclusion from the query",
            )
        if (
            parsed.phrases
            and not parsed.words_beside
            and not any(count_held(parsed.phrases, one.content, language) for one in chunks)
        ):
            yield _Lost(
                "filtered",
                f"filtered: the passage does not contain the phrase {listed(parsed.phrases)}",
                "remove the quotation marks to search for the words",
            )

    def _route(self, result: RetrievalResult, own: set[str]) -> Iterator[_Lost]:
        for stage in result.trace:
            targets = stage.detail.get("chosen") if stage.name == "route" else None
            if isinstance(targets, list) and not own.intersection(targets):
                name, chosen = min(own), listed(targets)
                scores = stage.detail.get("scores", {})
                best = max(scores.values(), default=0.0)
                score = f" (score {scores[name]:.3f}, the best {best:.3f})" if name in scores else ""
                yield _Lost(
                    "not routed",
                    f"not routed: the router chose {chosen}, not {name!r}{score}",
                    f"search with --collection {name}, or raise margin of {self.chosen.name!r} in techniques.yaml",
                )

    def _ranked_low(self, plain: Explanation, chunks: Sequence[Document]) -> Explanation:
        ranks = tuple(self._ranks(chunks))
        store = self.library.store
        ids, query = {one.id for one in chunks}, self.request.query
        if "text" in store.abilities and not any(
            one.id in ids
            for info in self.sources
            for one in store.search_text(query, TOP_K_LIMIT, where=self._only(info))
        ):
            message = f"no words: no chunk of {self.expected!r} has a word of the query"
            best = min((one.rank for one in ranks if one.rank is not None), default=None)
            message += f"; its best rank is {best}" if best is not None else ""
            words = ("use words of the passage in the query",)
            return replace(plain, cause="no words", message=message, remedies=words, ranks=ranks)
        first = ranks[0]
        if first.rank is None:
            asked = (
                f"not among {first.results} results"
                if not self.chosen.asks_model
                else f"not in the first {plain.top_k}"
            )
            message = f"ranked too low: {asked} of {plain.technique}"
        else:
            message = f"ranked too low: rank {first.rank} in {plain.technique}, and the search shows {plain.top_k}"
        remedies = [] if first.rank is None else [f"--top-k {first.rank}"]
        within = [one for one in ranks[1:] if one.rank is not None and one.rank <= plain.top_k]
        remedies += [f"--technique {one.technique} (rank {one.rank})" for one in within]
        remedies += ["use more words of the passage in the query", *filter(None, [fit_line(fit_of(store))])]
        return replace(
            plain, cause="ranked low", message=message, rank=first.rank, ranks=ranks, remedies=tuple(remedies)
        )

    def _ranks(self, chunks: Sequence[Document]) -> Iterator[StageRank]:
        """Yield the rank in the technique, and in each technique below it that asks no model."""
        condition = self._condition()
        if self.chosen.asks_model:
            yield StageRank(self.chosen.name, None, None, 0)
        for technique in self._techniques():
            found = technique.retrieve(self.request.query, top_k=TOP_K_LIMIT, where=condition)
            found = self.names.with_current_names(found)
            at = [(rank, one.score) for rank, one in enumerate(found, 1) if self._is_expected(one, chunks)]
            if at:
                yield StageRank(technique.name, *at[0], len(found))
                continue
            alone = [
                one.score for info in self.sources
                for one in technique.retrieve(self.request.query, top_k=TOP_K_LIMIT, where=self._only(info))
                if self._is_expected(one, chunks)
            ]  # fmt: skip
            yield StageRank(technique.name, None, max(alone, default=None), len(found))

    def _techniques(self) -> Iterator[RegisteredTechnique]:
        registry = self.library.registry
        if not self.chosen.asks_model:
            yield self.chosen
        passed, below = {self.chosen.name}, [*self._bases(self.chosen.name)]
        while below:
            name = below.pop(0)
            if name not in passed:
                passed.add(name)
                below += self._bases(name)
                if not wanted_resources(registry.technique_class(name)).keys() & {"generator", "reranker"}:
                    yield registry.get(name)

    def _bases(self, name: str) -> list[str]:
        registry = self.library.registry
        return registry.builds_on(name) if name in registry.names() else []

    def _not_ingested(self, path: Path | None) -> str:
        known = [info.source_file for info in self.library.sources()]
        if "unsearchable" in self.library.store.abilities:
            for one in self.library.unsearchable():
                if self.expected in (one.source_file, one.source_path) or one.source_file.endswith(f"/{self.expected}"):
                    return f"not ingested: {one.kind}: {one.reason}"
        if path is None:
            return f"not ingested: the library has no source {self.expected!r}{did_you_mean(self.expected, known)}"
        try:
            if path.stat().st_size <= LARGEST:
                extract_bytes(path.read_bytes(), path.name, path.name, self.library.reading)
        except (RagistryError, OSError) as error:
            return f"not ingested: the file exists but is refused: {error}"
        return f"not ingested: the file {str(path)!r} exists, but the library has no source of this name"

    def _file(self) -> Path | None:
        """Find the expected file: at its path, or in a folder of a known source."""
        roots = {Path(info.source_path).parent for info in self.library.sources() if info.source_path}
        for path in (Path(self.expected), *(root / self.expected for root in sorted(roots))):
            try:
                if path.is_file():
                    return path
            except (OSError, ValueError):
                continue
        return None


def _named_sources(known: Sequence[SourceInfo], expected: str) -> tuple[list[SourceInfo], str | None]:
    """Return the sources of this name in all collections, and the place after the last colon, if it names one."""
    if not expected.strip():
        raise QueryError(f"the expected source is empty: {expected!r}; name a source, or SOURCE:PLACE")
    whole = _of_name(known, expected)
    source, colon, place = expected.rpartition(":")
    if whole or not colon or not place.strip():
        return whole, None
    return _of_name(known, source), place.strip()


def _of_name(known: Sequence[SourceInfo], name: str) -> list[SourceInfo]:
    """Return the sources of this name or path; without one, those whose path ends with it, if it is one name."""
    exact = [info for info in known if name in (info.source_file, info.source_path)]
    ending = [] if exact else [info for info in known if info.source_file.endswith(f"/{name}")]
    if len(names := sorted({info.source_file for info in ending})) > 1:
        count = numbered(len(names), "source[|s]")
        raise QueryError(f"{name!r} is the end of {count}: {listed(names[:SHOWN])}; name one of them")
    return exact or ending


def _is_at(chunk: Document, place: str) -> bool:
    """Whether a chunk has text at a place, such as ``3``, ``page 3``, ``line 40``, ``Budget``, ``Installation``."""
    key, _, value = place.replace("=", " ").partition(" ")
    key = key.lower()
    places = places_in(chunk.metadata)
    if key in PLACE_KEYS and value.strip():
        return (key == "line" and _has_line(chunk, value)) or any(
            str(one.get(key)) == value.strip() for _, one in places
        )
    if place.isdecimal():
        if any("page" in one for _, one in places):
            return any(str(one.get("page")) == place for _, one in places)
        return _has_line(chunk, place)
    folded = place.casefold()
    return any(
        folded in (part.strip().casefold() for part in str(one[name]).split(" > "))
        for _, one in places for name in PLACE_KEYS if name in one
    )  # fmt: skip


def _has_line(chunk: Document, number: str) -> bool:
    first = chunk.metadata.get("line")
    if not isinstance(first, int) or not number.strip().isdecimal():
        return False
    starts = [(offset, place["line"]) for offset, place in places_in(chunk.metadata) if "line" in place]
    ends = [offset for offset, _ in starts[1:]] + [len(chunk.content)]
    return any(
        line <= int(number) <= line + chunk.content.count("\n", offset, end)
        for (offset, line), end in zip(starts, ends, strict=True)
    )


def _source_of(document: Document) -> tuple[Any, Any]:
    return document.metadata.get("collection"), document.metadata.get("source_file")


def _keys(where: Any) -> set[str]:
    if isinstance(where, Mapping):
        own = {key for key in where if isinstance(key, str) and not key.startswith("$")}
        return own.union(*(_keys(part) for key, part in where.items() if key.startswith("$")))
    return set().union(*map(_keys, where)) if isinstance(where, list) else set()
