"""The file ``queries.jsonl``: one query per line, in BEIR's layout or for the library of a workspace.

``{"_id": "q1", "text": "how hot is the water", "group": "tea", "kind": "question", "spans": [SPAN, …]}``. A SPAN is a
passage that answers: ``{"document": ID, "start": 0, "end": 9}`` or ``{"document": ID, "text": "…"}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from ragistry.evaluation.data.dataset import span_fault
from ragistry.evaluation.data.lines import Row, rows_of


class SpanRow(Row):
    """A passage of a document. ``text`` wins over offsets that no longer hold."""

    document: str
    start: int | None = None
    end: int | None = None
    text: str | None = Field(None, pattern=r"\S")

    def place(self, texts: Mapping[str, str], shifts: Mapping[str, int]) -> tuple[int, int] | None:
        """Its place in the searched text; None if it is no longer there.

        A text that moved is found again, also with different white space. Raises `ValueError` for a document that is
        not in the corpus, and for offsets outside of it.
        """
        if self.document not in texts:
            raise ValueError(f"the span is of {self.document!r}, which is not in the corpus")
        whole, shift = texts[self.document], shifts.get(self.document, 0)
        start, end = (shift + (offset or 0) for offset in (self.start, self.end))
        if self.text is None:
            if not max(0, shift) <= start < end <= len(whole):
                raise ValueError(span_fault(self.document, start - shift, end - shift, len(whole) - shift))
            return start, end
        if whole[max(0, start) : end] == self.text:
            return max(0, start), end
        pattern = r"\s+".join(map(re.escape, self.text.split()))
        found = (match.span() for match in re.finditer(pattern, whole))
        return min(found, key=lambda span: abs(span[0] - start), default=None)


class QueryRow(Row):
    """A line. ``sources``, or ``collection`` and ``source_file``, name the sources of a library that answer it."""

    id: str | None = Field(None, alias="_id")
    text: str
    group: str | None = None
    kind: str | None = None
    metadata: Any = None
    spans: list[SpanRow] = Field(default_factory=list)
    sources: dict[str, int] = Field(default_factory=dict)
    collection: str | None = None
    source_file: str | None = None

    @field_validator("sources", mode="before")
    @classmethod
    def _graded(cls, sources: Any) -> Any:
        """A list of names, each relevant."""
        names = isinstance(sources, list) and all(isinstance(name, str) for name in sources)
        return dict.fromkeys(sources, 1) if names else sources or {}

    def graded_sources(self) -> dict[str, int]:
        """Source → grade. Raises `ValueError` for a collection alone."""
        if self.collection is not None and self.source_file is None:
            raise ValueError(
                f"the collection {self.collection!r} without a 'source_file'; name the source that answers"
            )
        named = "/".join(filter(None, (self.collection, self.source_file)))
        return self.sources or ({named: 1} if named else {})


def read_queries(
    path: Path,
    texts: Mapping[str, str],
    shifts: Mapping[str, int],
    problems: list[str],
    known: Callable[[str], str] = str,
) -> dict[str, Any]:
    """The content of the lines as arguments of `Dataset`; errors are added to ``problems``.

    ``texts``: document → searched text, ``shifts``: document → the origin of span offsets. ``known``: returns
    the document of a source's name; raises `ValueError` if there is none. A line without an id gets its line number.
    """
    found: dict[str, Any] = {key: {} for key in ("queries", "qrels", "synthetic", "groups", "kinds", "spans")}
    found["problems"] = []
    for number, (place, row) in enumerate(rows_of(path, QueryRow, problems), 1):
        query = row.id or str(number)
        if query in found["queries"]:
            problems.append(f"{place}: the id {query!r} comes twice; give each query its own")
        found["queries"][query] = row.text
        if isinstance(row.metadata, dict) and row.metadata.get("synthetic") is True:
            found["synthetic"][query] = {key: value for key, value in row.metadata.items() if key != "synthetic"}
        for key, value in (("groups", row.group), ("kinds", row.kind)):
            if value:
                found[key][query] = value
        try:
            found["qrels"][query] = {known(source): grade for source, grade in row.graded_sources().items()}
        except ValueError as error:
            problems.append(f"{place}: {error}")
        for span in row.spans:
            try:
                span.document = known(span.document)
                where = span.place(texts, shifts)
            except ValueError as error:
                problems.append(f"{place}: query {query!r}: {error}")
                continue
            if where is None:
                missing = f"{span.text!r:.60} is not in {span.document!r}"
                found["problems"].append(f"query {query!r}: {missing}; this span is left out")
            else:
                found["spans"].setdefault(query, {}).setdefault(span.document, []).append(where)
    return found
