"""A test set: texts, queries, and the texts or passages that answer each query."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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

ASKED = "asked"
"""Kind of the questions that people asked, whose texts a report does not show."""

NAMED = 3
"""Number of ids listed in a problem; the rest is counted."""


class Text(NamedTuple):
    """A document of a test set."""

    id: str
    title: str
    text: str

    @property
    def whole(self) -> str:
        """Return the searched text: title, a space and text, as in BEIR."""
        return f"{self.title} {self.text}".strip()


@dataclass
class Dataset:
    """A corpus, queries, and judgements.

    Args:
        name: Name of the test set.
        corpus: The documents.
        queries: Query id → text.
        qrels: Query id → document id → grade.
        problems: Remarks, one line each.
        synthetic: Query id → how a program made it (kind, seed, model).
        library: Folder of the workspace whose sources are the corpus.
        groups: Query id → its cluster, because queries about one document are not independent. The default is the
            document that a synthetic query was made from, else the query itself.
        kinds: Query id → title, heading, description, question, ….
        spans: Passages that answer. Measures are then taken over passages. A document with a span is relevant
            (grade 1), unless the judgements have a higher grade.
        starts: Where the searched text of each document begins in its source.

    Raises:
        DatasetError: The set is useless; the error lists every reason: an empty corpus, duplicate ids, judgements of
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
        if self.spans:  # a document with a span is relevant
            self.qrels = {query: dict(grades) for query, grades in self.qrels.items()}
            for query, by_document in self.spans.items():
                for document in by_document:
                    grades = self.qrels.setdefault(query, {})
                    grades[document] = max(1, grades.get(document, 1))
        lengths = {document.id: len(document.whole) for document in self.corpus}
        outside = [
            f"query {query!r}: {span_fault(document, start, end, lengths[document])}"
            for query, by_document in self.spans.items()
            for document in by_document.keys() & lengths.keys()
            for start, end in by_document[document]
            if not 0 <= start < end <= lengths[document]
        ]
        raise_together(self.name, [*faults(self.corpus, self.queries, self.qrels), *outside])
        self.problems = list(dict.fromkeys([*self.problems, *cautions(self.corpus, self.queries, self.qrels)]))
        self.groups = {query: self._group(query) for query in self.queries}
        made = {query: str(how["kind"]) for query, how in self.synthetic.items() if "kind" in how}
        self.kinds = {query: kind for query, kind in (made | self.kinds).items() if query in self.queries}

    def _group(self, query: str) -> str:
        relevant = [document for document, grade in self.qrels.get(query, {}).items() if grade > 0]
        own = relevant[0] if query in self.synthetic and relevant else query
        given = self.groups.get(query, query)
        return own if given == query else given

    @cached_property
    def judged(self) -> dict[str, str]:
        """The queries with judgements, in their order. Only these are measured."""
        return {query: text for query, text in self.queries.items() if self.qrels.get(query)}

    @cached_property
    def texts(self) -> dict[str, str]:
        """The searched text of each document."""
        return {document.id: document.whole for document in self.corpus}

    @cached_property
    def first_copy(self) -> dict[str, str]:
        """Document → the first one with the same text, for documents that are copies of another."""
        first: dict[str, str] = {}
        own = {one.id: first.setdefault(one.whole, one.id) for one in self.corpus if one.text.strip()}
        return {document: other for document, other in own.items() if other != document}

    def with_joined_copies(self) -> Dataset:
        """Return the set with the judgements of documents with identical texts joined under the first of them."""
        unit = self.first_copy
        if not unit:
            return self
        qrels: Qrels = {}
        for query, grades in self.qrels.items():
            for document, grade in grades.items():
                joined = qrels.setdefault(query, {})
                name = unit.get(document, document)
                joined[name] = max(grade, joined.get(name, grade))
        spans: Spans = {}
        for query, by_document in self.spans.items():
            for document, places in by_document.items():
                found = spans.setdefault(query, {}).setdefault(unit.get(document, document), [])
                found += [place for place in places if place not in found]
        return replace(self, qrels=qrels, spans=spans)

    @cached_property
    def positives_only(self) -> bool:
        """Whether there are only positive judgements, so that an unjudged result means nothing."""
        return all(grade > 0 for grades in self.qrels.values() for grade in grades.values())

    def content_hash(self) -> str:
        """Return the SHA-256, hexadecimal, of corpus, queries, judgements and spans, whatever their order."""
        return sha256("".join(self.part_hashes().values()).encode()).hexdigest()

    def part_hashes(self) -> dict[str, str]:
        """Return the SHA-256, hexadecimal, of each part, whatever its order."""
        judgements = ((query, *judged) for query, grades in self.qrels.items() for judged in grades.items())
        parts: dict[str, Iterable[Any]] = {
            "corpus": self.corpus,
            "queries": self.queries.items(),
            "judgements": judgements,
            "spans": self.spans.items(),
        }
        return {
            name: sha256("\n".join(sorted(json.dumps(row) for row in rows)).encode()).hexdigest()
            for name, rows in parts.items()
        }

    def evidence(self) -> dict[str, dict[str, str]]:
        """Return query → relevant document → a short SHA-256 of its text, or of the spans in it that answer."""
        found: dict[str, dict[str, str]] = {}
        for query in self.judged:
            for document in (name for name, grade in self.qrels[query].items() if grade > 0):
                text, spans = self.texts.get(document, ""), self.spans.get(query, {}).get(document)
                parts = [text] if spans is None else [text[start:end] for start, end in spans]
                found.setdefault(query, {})[document] = sha256(json.dumps(parts).encode()).hexdigest()[:16]
        return found


def raise_together(name: str, problems: Sequence[str]) -> None:
    """Raise `DatasetError` with all problems, if the list is not empty."""
    if len(problems) == 1:
        raise DatasetError(f"test set {name!r}: {problems[0]}")
    if problems:
        raise DatasetError("\n".join([f"test set {name!r}: {len(problems)} problems:", *(f"  {p}" for p in problems)]))


def span_fault(document: str, start: int, end: int, length: int) -> str:
    """Describe what is wrong with offsets into a document of this length."""
    return f"the span {start} to {end} of {document!r} is not valid; 0 <= start < end <= {length} is required"


def faults(corpus: Sequence[Text], queries: Mapping[str, str], qrels: Qrels) -> list[str]:
    """List errors that make a test set unusable, one line per kind with the number and the first ids."""
    if not corpus:
        return ["the corpus is empty; add a document"]
    counts = Counter(document.id for document in corpus)
    twice = [name for name, count in counts.items() if count > 1]
    relevant = {document for grades in qrels.values() for document, grade in grades.items() if grade > 0}
    blank = [query for query, text in queries.items() if not text.strip()]
    broken = [name for name in [*counts, *queries] if not name or not {"\t", "\n", "\r"}.isdisjoint(name)]
    fractions = [query for query, grades in qrels.items() if any(type(grade) is not int for grade in grades.values())]
    unknown, unasked = relevant - counts.keys(), qrels.keys() - queries.keys()
    found = [
        *_counted("[id is|ids are] used by several documents", twice, "give each document its own id"),
        *_counted("[document is|documents are] judged relevant but not in the corpus", unknown, "add [it|them]"),
        *_counted("[query has|queries have] judgements but no text", unasked, "add [it|them] to the queries"),
        *_counted("[query is|queries are] empty", blank, "write a text, or remove [it|them]"),
        *_counted("[id is empty or has|ids are empty or have] a tab or a line end", broken, "rename [it|them]"),
        *_counted("[query has|queries have] a grade that is not a whole number", fractions, "use 0, 1, 2, …"),
    ]
    if not any(qrels.get(query) for query in queries):
        found.append("no query has judgements; add documents that answer a query to the qrels")
    return found


def cautions(corpus: Sequence[Text], queries: Mapping[str, str], qrels: Qrels) -> list[str]:
    """List remarks for readers of the results, one line each."""
    left_out = [query for query in queries if not qrels.get(query)]
    hopeless = [query for query, grades in qrels.items() if grades and max(grades.values()) <= 0]
    empty = [document.id for document in corpus if not document.whole]
    missing = set().union(*qrels.values()) - {document.id for document in corpus}
    return [
        *_counted("[query has|queries have] no judgements and [is|are] not measured", left_out),
        *_counted("[query has|queries have] judgements but no relevant document: every technique scores 0", hopeless),
        *_counted("[document has|documents have] neither title nor text and cannot be found", empty),
        *_counted("[document is|documents are] judged not relevant and not in the corpus", missing),
    ]


def _counted(what: str, ids: Iterable[str], remedy: str = "") -> Iterator[str]:
    names = sorted(set(ids))
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    if names:
        text = f"{numbered(len(names), what)}: {', '.join(map(repr, names[:NAMED]))}{rest}"
        yield f"{text}; {agreeing(len(names), remedy)}" if remedy else text
