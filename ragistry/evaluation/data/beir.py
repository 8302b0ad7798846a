"""Test sets in BEIR's layout: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``, each plain or ``.gz``.

A row of queries.jsonl may have ``group``, ``kind`` and ``spans`` (see `dataset.Dataset`, `dataset.read_spans`; offsets
count characters of the document's ``text``). Where rows have spans, qrels may be missing.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragistry.errors import DatasetError
from ragistry.evaluation.data.dataset import Dataset, Qrels, Spans, Text, faults, raise_together, read_spans
from ragistry.utils.wording import numbered

HEADER = ("query-id", "corpus-id", "score")
SHOWN = 20
"""Problems of single lines that are listed; the rest is counted."""


def read_beir(folder: str | Path, split: str = "test") -> Dataset:
    """The test set in a folder, named after it. Raises `DatasetError` with every problem of every file."""
    root, names = Path(folder), ("corpus.jsonl", "queries.jsonl", f"qrels/{split}.tsv")
    corpus_file, queries_file, qrels_file = (_present(root / name) for name in names)
    reading = _Reading()
    rows = list(reading.jsonl(queries_file, ("_id", "text"))) if queries_file else []
    unjudged = not _splits(root) and any(row.get("spans") for _, row in rows)
    paths = (corpus_file, queries_file, qrels_file or unjudged)
    missing = [name for name, path in zip(names, paths, strict=True) if not path]
    if missing or corpus_file is None or queries_file is None:
        raise DatasetError(
            f"{str(folder)!r} has no {', '.join(missing)}{_splits(root)}; a test set in BEIR's layout is "
            "corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv, each plain or with .gz"
        )
    corpus = [Text(*values) for values, _ in reading.jsonl(corpus_file, ("_id", "title", "text"))]
    queries = reading.queries(rows, queries_file.name, corpus)
    qrels = reading.qrels(qrels_file) if qrels_file else {}
    name = root.resolve().name
    if reading.problems:
        judged = qrels if qrels_file else {query: {one.id: 1 for one in corpus[:1]} for query in queries}
        raise_together(name, [*reading.listed(), *faults(corpus, queries, judged)])
    return Dataset(
        name, corpus, queries, qrels, reading.notes, reading.synthetic,
        groups=reading.groups, kinds=reading.kinds, spans=reading.spans,
    )  # fmt: skip


def write_beir(
    dataset: Dataset,
    folder: str | Path,
    split: str = "test",
    *,
    compressed: bool = False,
) -> None:
    """Write a test set, in the order that it has; the same set gives the same bytes. ``compressed``: with gzip.

    The line of a synthetic query says so: ``"metadata": {"synthetic": true, "kind": …}``.
    """
    root, ending = Path(folder), ".gz" if compressed else ""
    (root / "qrels").mkdir(parents=True, exist_ok=True)
    write_lines(
        root / f"corpus.jsonl{ending}",
        (_line({"_id": document.id, "title": document.title, "text": document.text}) for document in dataset.corpus),
    )
    shifts = {document.id: text_offset(document) for document in dataset.corpus}
    write_lines(
        root / f"queries.jsonl{ending}", (_line(_query_row(dataset, query, shifts)) for query in dataset.queries)
    )
    judgements = (
        f"{query}\t{document}\t{grade}" for query, grades in dataset.qrels.items() for document, grade in grades.items()
    )
    write_lines(root / "qrels" / f"{split}.tsv{ending}", ("\t".join(HEADER), *judgements))
    for name in ("corpus.jsonl", "queries.jsonl", f"qrels/{split}.tsv"):  # of an earlier set, that would be read
        (root / f"{name}{'' if compressed else '.gz'}").unlink(missing_ok=True)


def _query_row(dataset: Dataset, query: str, shifts: Mapping[str, int]) -> dict[str, Any]:
    row: dict[str, Any] = {"_id": query, "text": dataset.queries[query]}
    made = dataset.synthetic.get(query)
    if made is not None:
        row["metadata"] = {"synthetic": True, **made}
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
    """Where the ``text`` of a document begins in what is searched, after the title."""
    full = f"{document.title} {document.text}"
    return len(document.title) + 1 - (len(full) - len(full.lstrip()))


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """Each line of a text file, plain or gzip, that is not blank, and its place ``file:line``."""
    opened: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield f"{path.name}:{number}", line.rstrip("\r\n")
    except FileNotFoundError as error:
        raise DatasetError(f"there is no file {str(path)!r}; give the path of one that exists") from error
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DatasetError(f"{str(path)!r} cannot be read: {error}; it must be UTF-8 text, plain or gzip") from error


@dataclass(slots=True)
class _Reading:
    """``problems`` make the files useless; ``notes`` do not."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    synthetic: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    spans: Spans = field(default_factory=dict)

    def listed(self) -> list[str]:
        rest = len(self.problems) - SHOWN
        return self.problems[:SHOWN] + ([f"… and {numbered(rest, 'more [line|lines]')}"] if rest > 0 else [])

    def jsonl(self, path: Path, keys: tuple[str, ...]) -> Iterator[tuple[list[str], dict[str, Any]]]:
        """The values of the keys of each line, and all of it; a title may be missing, an id may be a whole number."""
        for place, line in lines_of(path):
            try:
                row = json.loads(line)
                values = [row.get(key, "" if key == "title" else None) for key in keys]
            except (ValueError, AttributeError, RecursionError):  # the last of a line that is nested too deep
                self.problems.append(f"{place}: no JSON object: {line!r:.80}")
                continue
            values = [str(value) if type(value) is int else value or "" for value in values]
            wrong = [key for key, value in zip(keys, values, strict=True) if not isinstance(value, str)]
            if wrong or not values[0]:
                self.problems.append(f"{place}: {wrong[0] if wrong else '_id'!r} must be text: {line!r:.80}")
                continue
            yield values, row

    def queries(
        self, rows: Sequence[tuple[list[str], dict[str, Any]]], file: str, corpus: Sequence[Text]
    ) -> dict[str, str]:
        """Query id → text; what else a row says of a query is kept."""
        found: dict[str, str] = {}
        texts, shifts = {one.id: one.whole for one in corpus}, {one.id: text_offset(one) for one in corpus}
        for (query, text), row in rows:
            if query in found:
                self.problems.append(f"{file}: the id {query!r} comes twice; give each query its own")
            found[query] = text
            metadata = row.get("metadata")
            if isinstance(metadata, dict) and metadata.get("synthetic") is True:
                self.synthetic[query] = {key: value for key, value in metadata.items() if key != "synthetic"}
            for name, kept in (("group", self.groups), ("kind", self.kinds)):
                if row.get(name) not in (None, ""):
                    kept[query] = str(row[name])
            try:
                if spans := read_spans(query, row.get("spans") or [], texts, shifts, self.notes):
                    self.spans[query] = spans
            except ValueError as error:
                self.problems.append(f"{file}: {error}")
        return found

    def qrels(self, path: Path) -> Qrels:
        """Query → document → grade; the same judgement twice is taken once, two that differ are a problem."""
        found: Qrels = {}
        for index, (place, line) in enumerate(lines_of(path)):
            fields = line.split("\t")
            if index == 0 and fields[-1].strip() == HEADER[-1]:
                continue
            grade = whole_grade(fields[2]) if len(fields) == 3 else None
            if grade is None:
                self.problems.append(
                    f"{place}: {line!r:.80} is not query, document and a whole number, with tabs between"
                )
                continue
            query, document, _ = fields
            before = found.setdefault(query, {}).setdefault(document, grade)
            if before != grade:
                self.problems.append(
                    f"{place}: {document!r} has grade {before} and {grade} for query {query!r}; keep one"
                )
        return found


def whole_grade(text: str) -> int | None:
    """A grade; some sets write ``1.0``."""
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _present(path: Path) -> Path | None:
    zipped = path.with_name(f"{path.name}.gz")
    return path if path.is_file() else zipped if zipped.is_file() else None


def _splits(root: Path) -> str:
    names = sorted({path.name.split(".tsv")[0] for path in (root / "qrels").glob("*.tsv*")})
    return f" (splits there: {', '.join(names)})" if names else ""


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8, each ended by a line feed on every system, with gzip where the name ends in ``.gz``."""
    whole = (f"{line}\n".encode() for line in lines)
    with path.open("wb") as file:
        if path.suffix != ".gz":
            file.writelines(whole)
            return
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as stream:  # no name and no time: the same bytes again
            stream.writelines(whole)
