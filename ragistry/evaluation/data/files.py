"""Read and write folders of test sets in BEIR's layout: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``.

Each file may be plain or ``.gz``.

A line of ``queries.jsonl`` is ``{"_id": "q1", "text": "how hot is the water", "group": "tea", "kind": "question",
"spans": [SPAN, …]}``. A SPAN is a passage that answers: ``{"document": ID, "start": 0, "end": 9}`` or
``{"document": ID, "text": "…"}``. Offsets count characters of the document's ``text``. If rows have spans, the qrels
may be missing.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ragistry.errors import DatasetError
from ragistry.evaluation.data.dataset import Dataset, Qrels, Text, faults, raise_together, span_fault
from ragistry.utils.wording import numbered, problem_of

HEADER = ("query-id", "corpus-id", "score")
SHOWN = 20
"""Number of listed problems of single lines; the rest is counted."""
R = TypeVar("R", bound="Row")


class Row(BaseModel):
    """A line with a JSON object; ids may be numbers, and unknown keys are ignored."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


class DocumentRow(Row):
    """A line of corpus.jsonl."""

    id: str = Field(alias="_id")
    title: str | None = None
    text: str | None = None


class SpanRow(Row):
    """A passage of a document. If the offsets do not match ``text``, ``text`` decides."""

    document: str
    start: int | None = None
    end: int | None = None
    text: str | None = Field(None, pattern=r"\S")

    def place(self, texts: Mapping[str, str], shifts: Mapping[str, int]) -> tuple[int, int] | None:
        """Find the passage in the searched text; it may have moved or have different white space.

        Returns:
            Its start and end, or None if the document does not contain it.

        Raises:
            ValueError: The document is not in the corpus, or the offsets are outside of it.
        """
        if self.document not in texts:
            raise ValueError(f"the span names the document {self.document!r}, which is not in the corpus")
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
    """A line of queries.jsonl.

    ``sources``, or ``collection`` and ``source_file``, name the sources of a library that answer the query.
    """

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
        """Accept a list of names as well; each is relevant."""
        names = isinstance(sources, list) and all(isinstance(name, str) for name in sources)
        return dict.fromkeys(sources, 1) if names else sources or {}

    def graded_sources(self) -> dict[str, int]:
        """Return the grade of each source. Raises `ValueError` for a collection without a source."""
        if self.collection is not None and self.source_file is None:
            raise ValueError(f"it names the collection {self.collection!r} but no source; add 'source_file'")
        named = "/".join(filter(None, (self.collection, self.source_file)))
        return self.sources or ({named: 1} if named else {})


def read_beir(folder: str | Path, split: str = "test") -> Dataset:
    """Read a test set in BEIR's layout, named after its folder.

    Args:
        folder: Has ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``, each plain or ``.gz``.
        split: Name of the judgements.

    Raises:
        DatasetError: The files have errors; all of them.
    """
    root, problems = Path(folder), list[str]()
    names = ("corpus.jsonl", "queries.jsonl", f"qrels/{split}.tsv")
    corpus_file, queries_file, qrels_file = (_present(root / name) for name in names)
    splits = sorted({path.name.split(".tsv")[0] for path in (root / "qrels").glob("*.tsv*")})
    if corpus_file is None or queries_file is None or (qrels_file is None and splits):
        missing = [name for name in names if _present(root / name) is None]
        there = f" (splits there: {', '.join(splits)})" if splits else ""
        raise DatasetError(
            f"{str(folder)!r} has no {', '.join(missing)}{there}; a test set in BEIR's layout is "
            "corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv, each plain or with .gz"
        )
    rows = rows_of(corpus_file, DocumentRow, problems)
    corpus = [Text(row.id, row.title or "", row.text or "") for _, row in rows]
    texts = {document.id: document.whole for document in corpus}
    found = read_queries(queries_file, texts, {document.id: text_offset(document) for document in corpus}, problems)
    if qrels_file is not None:
        qrels: Qrels = found["qrels"]
        qrels.clear()

        def take(query: str, document: str, grade: str) -> None:
            if grade != HEADER[-1]:
                judge(qrels, query, document, grade)

        fields_of(qrels_file, take, "query<tab>document<tab>whole number", lambda line: line.split("\t"), problems)
    if problems:
        rest = len(problems) - SHOWN
        more = [f"… and {numbered(rest, 'more [line|lines]')}"] if rest > 0 else []
        raise_together(root.name, [*problems[:SHOWN], *more, *faults(corpus, found["queries"], found["qrels"])])
    return Dataset(root.resolve().name, corpus, **found)


def _present(path: Path) -> Path | None:
    return next((file for file in (path, path.with_name(f"{path.name}.gz")) if file.is_file()), None)


def read_queries(
    path: Path,
    texts: Mapping[str, str],
    shifts: Mapping[str, int],
    problems: list[str],
    known: Callable[[str], str] = str,
) -> dict[str, Any]:
    """Read a queries.jsonl. A line without an id gets its line number.

    Args:
        path: The file.
        texts: The searched text of each document.
        shifts: Where the span offsets of each document begin in its searched text.
        problems: Errors of the lines are added here.
        known: Returns the document that a name means; raises `ValueError` if there is none.

    Returns:
        Arguments of `Dataset`.
    """
    found: dict[str, Any] = {key: {} for key in ("queries", "qrels", "synthetic", "groups", "kinds", "spans")}
    found["problems"] = []
    for number, (place, row) in enumerate(rows_of(path, QueryRow, problems), 1):
        query = row.id or str(number)
        if query in found["queries"]:
            problems.append(f"{place}: an earlier query has the id {query!r}, too; give each query its own id")
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


def write_beir(dataset: Dataset, folder: str | Path, split: str = "test") -> None:
    """Write a test set in BEIR's layout; the same set gives the same bytes.

    The line of a synthetic query is marked: ``"metadata": {"synthetic": true, "kind": …}``.

    Args:
        dataset: The test set.
        folder: The folder; created if missing.
        split: Name of the judgements.
    """
    root = Path(folder)
    (root / "qrels").mkdir(parents=True, exist_ok=True)
    judgements = ((query, *judged) for query, grades in dataset.qrels.items() for judged in grades.items())
    shifts = {document.id: text_offset(document) for document in dataset.corpus}
    files = {
        "corpus.jsonl": (_line({"_id": id, "title": title, "text": text}) for id, title, text in dataset.corpus),
        "queries.jsonl": (_line(_query_row(dataset, query, shifts)) for query in dataset.queries),
        f"qrels/{split}.tsv": ("\t".join(map(str, row)) for row in [HEADER, *judgements]),
    }
    for name, lines in files.items():
        write_lines(root / name, lines)


def _query_row(dataset: Dataset, query: str, shifts: Mapping[str, int]) -> dict[str, Any]:
    row: dict[str, Any] = {"_id": query, "text": dataset.queries[query]}
    if query in dataset.synthetic:
        row["metadata"] = {"synthetic": True, **dataset.synthetic[query]}
    elif query in dataset.kinds:
        row["kind"] = dataset.kinds[query]
    if dataset.groups[query] not in (query, *dataset.qrels.get(query, {})):
        row["group"] = dataset.groups[query]
    if spans := dataset.spans.get(query):
        row["spans"] = [
            {"document": document, "start": start - shifts[document], "end": end - shifts[document],
             "text": dataset.texts[document][start:end]}
            for document, places in spans.items()
            for start, end in places
        ]  # fmt: skip
    return row


def text_offset(document: Text) -> int:
    """Return the offset of a document's ``text`` in the searched text, after the title."""
    full = f"{document.title} {document.text}"
    return len(document.title) + 1 - (len(full) - len(full.lstrip()))


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)


GZIP = b"\x1f\x8b"
"""The first bytes of a compressed file, whatever its name."""


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the place ``file:line`` and the text of each line that is not blank. Raises `DatasetError`."""
    try:
        with path.open("rb") as file:
            is_compressed = path.suffix == ".gz" or file.read(len(GZIP)) == GZIP
        opened: Callable[..., Any] = gzip.open if is_compressed else open
        with opened(path, "rt", encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield f"{path.name}:{number}", line.rstrip("\r\n")
    except FileNotFoundError as error:
        raise DatasetError(f"no such file: {str(path)!r}; check the path") from error
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DatasetError(f"cannot read {str(path)!r}: {error}; it must be UTF-8 text, plain or gzip") from error


def rows_of(path: Path, model: type[R], problems: list[str]) -> Iterator[tuple[str, R]]:
    """Yield the place and the model of each line; add invalid lines to ``problems``."""
    for place, line in lines_of(path):
        try:
            row = model.model_validate_json(line)
        except ValidationError as error:
            wrong = error.errors()[0]
            key = f"{wrong['loc'][0]!r}: " if wrong["loc"] else ""
            problems.append(f"{place}: {key}{problem_of(wrong)}, in {line!r:.80}")
        else:
            yield place, row


def judge(qrels: Qrels, query: str, document: str, grade: str) -> None:
    """Add a judgement; some sets write grades as ``1.0``. Raises `ValueError` if it contradicts an earlier one."""
    number = float(grade)
    if not number.is_integer():
        raise ValueError(f"the grade {grade!r} is not a whole number")
    before = qrels.setdefault(query, {}).setdefault(document, int(number))
    if before != number:
        raise ValueError(f"{document!r} already has grade {before} for query {query!r}; keep one of them")


def fields_of(
    path: Path, take: Callable[..., None], shape: str, split: Callable[[str], Iterable[str]], problems: list[str]
) -> None:
    """Pass the fields of each line to ``take``; add lines that it rejects to ``problems``."""
    for place, line in lines_of(path):
        try:
            take(*split(line))
        except TypeError:  # Too many fields, or too few.
            problems.append(f"{place}: {line!r:.80} is not {shape!r}")
        except (ValueError, OverflowError) as error:
            problems.append(f"{place}: {line!r:.80}: {error}")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8, each ended by a line feed on every system; compress if the name ends in ``.gz``."""
    encoded = (f"{line}\n".encode() for line in lines)
    with path.open("wb") as file:
        if path.suffix != ".gz":
            file.writelines(encoded)
            return
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as stream:  # without name and time: always the same bytes
            stream.writelines(encoded)
