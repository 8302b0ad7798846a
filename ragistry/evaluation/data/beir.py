"""Test sets in BEIR's layout: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``, each plain or ``.gz``.

A row of queries.jsonl may have ``group``, ``kind`` and ``spans`` (see `queries`, `dataset.Dataset`; offsets count
characters of the document's ``text``). If rows have spans, qrels may be missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from ragistry.errors import DatasetError
from ragistry.evaluation.data.dataset import Dataset, Qrels, Text, faults, raise_together
from ragistry.evaluation.data.lines import Row, fields_of, judge, rows_of, write_lines
from ragistry.evaluation.data.queries import read_queries
from ragistry.utils.wording import numbered

HEADER = ("query-id", "corpus-id", "score")
SHOWN = 20
"""Number of listed problems of single lines; the rest is counted."""


class DocumentRow(Row):
    """A line of corpus.jsonl."""

    id: str = Field(alias="_id")
    title: str | None = None
    text: str | None = None


def read_beir(folder: str | Path, split: str = "test") -> Dataset:
    """The test set in a folder, named after it. Raises `DatasetError` with every problem of every file."""
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
        found["qrels"] = _read_qrels(qrels_file, problems)
    if problems:
        rest = len(problems) - SHOWN
        more = [f"… and {numbered(rest, 'more [line|lines]')}"] if rest > 0 else []
        raise_together(root.name, [*problems[:SHOWN], *more, *faults(corpus, found["queries"], found["qrels"])])
    return Dataset(root.resolve().name, corpus, **found)


def _present(path: Path) -> Path | None:
    return next((file for file in (path, path.with_name(f"{path.name}.gz")) if file.is_file()), None)


def _read_qrels(path: Path, problems: list[str]) -> Qrels:
    qrels: Qrels = {}

    def take(query: str, document: str, grade: str) -> None:
        if grade != HEADER[-1]:
            judge(qrels, query, document, grade)

    fields_of(path, take, "query<tab>document<tab>whole number", lambda line: line.split("\t"), problems)
    return qrels


def write_beir(dataset: Dataset, folder: str | Path, split: str = "test") -> None:
    """Write a test set in its order; the same set gives the same bytes.

    The line of a synthetic query is marked: ``"metadata": {"synthetic": true, "kind": …}``.
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
    """The offset of a document's ``text`` in the searched text, after the title."""
    full = f"{document.title} {document.text}"
    return len(document.title) + 1 - (len(full) - len(full.lstrip()))


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)
