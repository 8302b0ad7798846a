"""A test set: texts, queries, and which texts (or which passages of them) answer which query."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

from ragistry.errors import DatasetError
from ragistry.utils.wording import agreeing, numbered

Qrels = dict[str, dict[str, int]]
"""Query id → document id → grade: 0 is not relevant, more is better."""

Run = dict[str, list[tuple[str, float]]]
"""Query id → ranking, best first: document id and score."""

Spans = dict[str, dict[str, list[tuple[int, int]]]]
"""Query id → document id → where its answers are: character offsets (start, end) into `Text.whole`."""

NAMED = 3
"""Ids listed in a problem; the rest is counted."""


class Text(NamedTuple):
    """A document of a test set."""

    id: str
    title: str
    text: str

    @property
    def whole(self) -> str:
        """What is searched: the title, a blank and the text, as in BEIR."""
        return f"{self.title} {self.text}".strip()


@dataclass(frozen=True)
class Dataset:
    """A corpus, queries, and judgements.

    ``synthetic``: query → how a program made it (kind, seed, model). ``groups``: query → its cluster, because queries
    about one document are not independent; by default the document that a synthetic query was made from, else the
    query itself. ``kinds``: query → title, heading, description, question, …. ``spans``: passages that answer; with
    them measures are taken over passages. A document with a span is relevant (grade 1) unless the judgements say more.
    ``library``: folder of the workspace whose sources the corpus is, and ``starts`` where the searched text of each
    begins in its source. ``problems``: remarks, one line each.

    Raises `DatasetError` with everything that makes the set useless: an empty corpus, duplicate ids, judgements of
    unknown documents or queries, spans outside of their document, no query with judgements.
    """

    name: str
    corpus: Sequence[Text]
    queries: dict[str, str]
    qrels: Qrels
    problems: list[str] = field(default_factory=list, compare=False)
    synthetic: dict[str, dict[str, Any]] = field(default_factory=dict)
    library: str | None = field(default=None, compare=False)
    groups: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    spans: Spans = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.spans:
            self._set("qrels", _with_spans(self.qrels, self.spans))
        raise_together(self.name, [*faults(self.corpus, self.queries, self.qrels), *self._bad_spans()])
        said = [*self.problems, *cautions(self.corpus, self.queries, self.qrels)]
        self._set("problems", list(dict.fromkeys(said)))
        self._set("groups", {query: self._group(query) for query in self.queries})
        made = {query: str(how["kind"]) for query, how in self.synthetic.items() if "kind" in how}
        self._set("kinds", {query: kind for query, kind in (made | self.kinds).items() if query in self.queries})

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _group(self, query: str) -> str:
        if self.groups.get(query, query) != query:
            return self.groups[query]
        relevant = [document for document, grade in self.qrels.get(query, {}).items() if grade > 0]
        return relevant[0] if query in self.synthetic and relevant else query

    def _bad_spans(self) -> Iterator[str]:
        lengths = {document.id: len(document.whole) for document in self.corpus}
        for query, by_document in self.spans.items():
            for document, spans in by_document.items():
                for start, end in spans if document in lengths else ():
                    if not 0 <= start < end <= lengths[document]:
                        yield f"query {query!r}: {span_fault(document, start, end, lengths[document])}"

    @cached_property
    def judged(self) -> dict[str, str]:
        """The queries with judgements, in their order: those that are measured."""
        return {query: text for query, text in self.queries.items() if self.qrels.get(query)}

    @cached_property
    def texts(self) -> dict[str, str]:
        """Document id → the text that is searched."""
        return {document.id: document.whole for document in self.corpus}

    @cached_property
    def positives_only(self) -> bool:
        """Whether nothing is judged not relevant, so that an unjudged result says nothing."""
        return all(grade > 0 for grades in self.qrels.values() for grade in grades.values())

    def content_hash(self) -> str:
        """SHA-256 of corpus, queries, judgements and spans, hexadecimal; order and name do not change it."""
        digest = sha256()
        judgements = ((query, *judged) for query, grades in self.qrels.items() for judged in grades.items())
        parts: list[Iterable[Any]] = [self.corpus, self.queries.items(), judgements]
        for rows in [*parts, self.spans.items()] if self.spans else parts:
            lines = sorted(json.dumps(row) for row in rows)
            digest.update(f"{len(lines)}\n".encode())
            digest.update("\n".join(lines).encode())
        return digest.hexdigest()


def raise_together(name: str, problems: Sequence[str]) -> None:
    """Raise `DatasetError` with every problem, if there is one."""
    if len(problems) == 1:
        raise DatasetError(f"test set {name!r}: {problems[0]}")
    if problems:
        raise DatasetError("\n".join([f"test set {name!r}: {len(problems)} problems:", *(f"  {p}" for p in problems)]))


# Spans


def find_span(text: str, wanted: str, start: int | None = None) -> tuple[int, int] | None:
    """Where a passage is in a text, the occurrence nearest to ``start``; white space may differ."""
    words = wanted.split()
    pattern = r"\s+".join(map(re.escape, words))
    found = [match.span() for match in re.finditer(pattern, text)] if words else []
    return min(found, key=lambda span: abs(span[0] - (start or 0)), default=None)


def span_fault(document: str, start: int, end: int, length: int) -> str:
    """What is wrong with offsets into a document of that length."""
    wrong = "starts at or after its end" if start >= end else f"is outside of its {length:,} characters"
    return f"the span {start} to {end} of {document!r} {wrong}; give 0 <= start < end <= {length}"


def read_spans(
    query: str, given: Any, texts: Mapping[str, str], shifts: Mapping[str, int], remarks: list[str]
) -> dict[str, list[tuple[int, int]]]:
    """The spans of a row: ``[{"document": id, "start": n, "end": n}]`` or ``[{"document": id, "text": "…"}]``.

    ``text`` wins over offsets that no longer hold: a changed source is searched for it, and a passage that is gone is
    added to ``remarks`` and left out. ``shifts``: document → what to add to offsets. Raises `ValueError` with every
    problem.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    problems = []
    for span in given if isinstance(given, list) else [given]:
        try:
            document, place = _read_span(span, texts, shifts)
        except ValueError as error:
            problems.append(f"query {query!r}: {error}")
            continue
        if place is None:
            remarks.append(f"query {query!r}: {span['text']!r:.60} is not in {document!r}; this span is left out")
        else:
            found.setdefault(document, []).append(place)
    if problems:
        raise ValueError("; ".join(problems))
    return found


def _read_span(span: Any, texts: Mapping[str, str], shifts: Mapping[str, int]) -> tuple[str, tuple[int, int] | None]:
    """The document of a span, and where it is; None when its text is not there any more."""
    if not isinstance(span, dict) or not isinstance(span.get("document"), str):
        raise ValueError(f'no span: {span!r:.80}; write {{"document": ID, "start": 0, "end": 9}} or "text"')
    document, wanted = str(span["document"]), span.get("text")
    start, end = (offset if type(offset := span.get(key)) is int else None for key in ("start", "end"))
    if document not in texts:
        raise ValueError(f"the span is of {document!r}, which is not in the corpus")
    whole, shift = texts[document], shifts.get(document, 0)
    if wanted is None:
        if start is None or end is None:
            raise ValueError(f"the span of {document!r} needs whole numbers 'start' and 'end', or 'text'")
        if not max(0, shift) <= start + shift < end + shift <= len(whole):
            raise ValueError(span_fault(document, start, end, len(whole) - shift))
        return document, (start + shift, end + shift)
    if not isinstance(wanted, str) or not wanted.strip():
        raise ValueError(f"'text' of the span of {document!r} is empty or no text")
    if start is None or end is None:
        return document, find_span(whole, wanted)
    first, last = max(0, start + shift), end + shift
    return document, (first, last) if whole[first:last] == wanted else find_span(whole, wanted, first)


def _with_spans(qrels: Qrels, spans: Spans) -> Qrels:
    """Judgements in which a document with a span is relevant."""
    joined = {query: dict(grades) for query, grades in qrels.items()}
    for query, by_document in spans.items():
        for document in by_document:
            grades = joined.setdefault(query, {})
            grades[document] = max(1, grades.get(document, 1))
    return joined


# Checks


def faults(corpus: Sequence[Text], queries: Mapping[str, str], qrels: Qrels) -> list[str]:
    """What makes a test set useless, each kind once with how many and the first of them."""
    if not corpus:
        return ["the corpus is empty; give at least one document"]
    counts = Counter(document.id for document in corpus)
    relevant = {document for grades in qrels.values() for document, grade in grades.items() if grade > 0}
    texts = [(one.id, one.id + one.whole) for one in corpus] + [(q, q + text) for q, text in queries.items()]
    problems = [
        *_said(
            "[document has|documents have] an id that another one has",
            (name for name, count in counts.items() if count > 1),
            "give [it|each] its own",
        ),
        *_said(
            "[document is|documents are] judged relevant but not in the corpus",
            relevant - counts.keys(),
            "add [it|them], or take out what is said of [it|them] in the qrels",
        ),
        *_said(
            "[query has|queries have] judgements but no text",
            qrels.keys() - queries.keys(),
            "add [it|them] to the queries, or take [its|their] judgements out",
        ),
        *_said(
            "[query is|queries are] empty",
            (query for query, text in queries.items() if not text.strip()),
            "write what is asked, or take [it|them] out",
        ),
        *_said(
            "[document or query has|documents or queries have] half a surrogate pair, which no file and no model takes",
            (name for name, text in texts if _broken(text)),
            "decode [its|their] source with errors='replace'",
        ),
        *_said(
            "[id is empty or holds|ids are empty or hold] a tab or a line end",
            (name for name in [*counts, *queries] if not name or not {"\t", "\n", "\r"}.isdisjoint(name)),
            "give [it another id|them other ids]",
        ),
        *_said(
            "[query has|queries have] a grade that is not a whole number",
            (query for query, grades in qrels.items() if any(type(grade) is not int for grade in grades.values())),
            "grade with 0, 1, 2, …",
        ),
    ]
    if not any(qrels.get(query) for query in queries):
        problems.append("no query has judgements; say in the qrels which documents answer it")
    return problems


def cautions(corpus: Sequence[Text], queries: Mapping[str, str], qrels: Qrels) -> list[str]:
    """What a reader of the results must know, one line each."""
    known = {document.id for document in corpus}
    return [
        *_said(
            "[query has no judgements: no mean counts it|queries have no judgements: no mean counts them]",
            (query for query in queries if not qrels.get(query)),
        ),
        *_said(
            "[query has|queries have] judgements but no relevant document: everybody scores 0 on [it|them]",
            (query for query, grades in qrels.items() if grades and max(grades.values()) <= 0),
        ),
        *_said(
            "[document has|documents have] neither title nor text: [it|they] cannot be found",
            (document.id for document in corpus if not document.whole),
        ),
        *_said(
            "[document is|documents are] judged not relevant and not in the corpus",
            set().union(*qrels.values()) - known,
        ),
    ]


def _said(what: str, ids: Iterable[str], remedy: str = "") -> Iterator[str]:
    names = sorted(set(ids))
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    if names:
        said = f"{numbered(len(names), what)}: {', '.join(map(repr, names[:NAMED]))}{rest}"
        yield f"{said}; {agreeing(len(names), remedy)}" if remedy else said


def _broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
