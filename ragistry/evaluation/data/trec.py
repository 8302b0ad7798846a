"""Read and write TREC's qrels and runs, and read the test sets of the ``ir_datasets`` package.

A line of qrels is ``query 0 document grade``, one of a run ``query Q0 document rank score tag``. Fields end at white
space, for some readers also Unicode white space. Therefore white space in ids is percent-encoded, as in URLs (a space
as ``%20``), and decoded when read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from ragistry.errors import DatasetError, EvaluationError
from ragistry.evaluation.data.dataset import Dataset, Qrels, Run, Text, raise_together
from ragistry.evaluation.data.files import fields_of, judge, write_lines
from ragistry.utils.installation import install_command

_REST = "|".join(quote(each)[1:] for each in "%" + "".join(filter(str.isspace, map(chr, range(0x3001)))))
"""Percent-encoded % and white space, without the first %; the last white space of Unicode is U+3000."""
LONGEST = 120
"""Maximum length of a file name in bytes; systems allow 255."""


def read_qrels(path: str | Path) -> Qrels:
    """Read judgements.

    Args:
        path: The file, plain or ``.gz``.

    Returns:
        Query id → document id → grade.

    Raises:
        DatasetError: The file has errors; all of them.
    """
    qrels: Qrels = {}

    def take(query: str, _: str, document: str, grade: str) -> None:
        judge(qrels, query, document, grade)

    _read(path, take, "query 0 document grade")
    return qrels


def write_qrels(qrels: Qrels, path: str | Path) -> None:
    """Write judgements in their order."""
    judgements = ((query, *judged) for query, grades in qrels.items() for judged in grades.items())
    write_lines(
        Path(path), (f"{_escaped(query)} 0 {_escaped(document)} {grade}" for query, document, grade in judgements)
    )


def read_run(path: str | Path) -> Run:
    """Read rankings in trec_eval's order: by score, then by document id, both descending. Ranks are ignored.

    Args:
        path: The file, plain or ``.gz``.

    Returns:
        Query id → ranking: document ids and scores, best first.

    Raises:
        DatasetError: The file has errors; all of them, such as a score that is not finite or a repeated document.
    """
    found: dict[str, dict[str, float]] = {}

    def take(query: str, _: str, document: str, __: str, score: str, ___: str) -> None:
        hits = found.setdefault(query, {})
        if not isfinite(float(score)):
            raise ValueError("the score is not a finite number")
        if document in hits:
            raise ValueError(f"the query already has {document!r}; keep one of them")
        hits[document] = float(score)

    _read(path, take, "query Q0 document rank score tag")
    return {
        query: sorted(hits.items(), key=lambda hit: (hit[1], hit[0]), reverse=True) for query, hits in found.items()
    }


def write_run(run: Mapping[str, Sequence[tuple[str, float]]], path: str | Path, tag: str = "ragistry") -> None:
    """Write rankings in their order, with scores that give trec_eval the same order (`decreasing`).

    Args:
        run: Query id → ranking: document ids and scores, best first.
        path: The file; compressed if its name ends in ``.gz``.
        tag: Name of the technique.

    Raises:
        DatasetError: A score is not finite, or the first argument is not a run.
    """
    if not isinstance(run, Mapping):
        raise DatasetError(f"{run!r:.80} is not a run; call write_run(run, path) with `comparison.runs[name]`")
    rows = (
        f"{_escaped(query)} Q0 {_escaped(document)} {rank} {score:.9g} {_escaped(tag)}"
        for query, hits in run.items()
        for rank, (document, score) in enumerate(decreasing(hits), 1)
    )
    write_lines(Path(path), rows)


def file_name(name: str) -> str:
    """Turn a technique's name into a file name that every system accepts; a long one is cut and ends with its hash."""
    safe = re.sub(r"[^\w.,=+\[\]-]", "_", name)
    if len(safe.encode()) <= LONGEST:
        return safe
    return f"{safe.encode()[:LONGEST].decode(errors='ignore')}-{sha256(name.encode()).hexdigest()[:12]}"


def decreasing(hits: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Make the scores strictly decreasing, also as 32-bit floats, which trec_eval uses.

    A score that is not below the one before becomes the next smaller number. If 32 bits have no smaller number, the
    scores count down to 1. Raises `DatasetError` for a score that is not finite.
    """
    import numpy as np

    lowest, least = np.float32("inf"), np.float32("-inf")
    falling = []
    for document, score in hits:
        if not isfinite(score):
            raise DatasetError(f"the score of {document!r} is {score!r}; a run needs finite numbers")
        with np.errstate(over="ignore"):  # Overflow gives infinity, which is handled below.
            lowest = min(np.float32(score), np.nextafter(lowest, least))
        falling.append((document, float(lowest)))
    if lowest == least:
        return [(document, float(len(hits) - at)) for at, (document, _) in enumerate(hits)]
    return falling


def _read(path: str | Path, take: Callable[..., None], shape: str) -> None:
    """Pass the fields of each line to ``take``, and raise all errors together."""
    problems: list[str] = []
    fields_of(Path(path), take, shape, lambda line: map(_plain, re.split("[ \t]+", line.strip(" \t"))), problems)
    raise_together(str(path), problems)


def _escaped(name: str) -> str:
    """Percent-encode white space, and a % that would be read as an encoding."""
    return re.sub(rf"\s|%(?={_REST})", lambda found: quote(found[0]), name)


def _plain(field: str) -> str:
    return re.sub(f"%(?:{_REST})", lambda code: unquote(code[0]), field)


def read_ir_datasets(name: str) -> Dataset:
    """Read a test set of ``ir_datasets``, which fetches it over the network and keeps it.

    Args:
        name: Name of the set, such as ``beir/scifact/test``.

    Raises:
        EvaluationError: The package is not installed.
        DatasetError: The set is missing or invalid.
    """
    try:
        ir_datasets = import_module("ir_datasets")
    except ImportError as error:
        raise EvaluationError(f"'ir_datasets' is not installed; run: {install_command('datasets')}") from error
    try:
        source: Any = ir_datasets.load(name)
    except KeyError as error:
        raise DatasetError(f"ir_datasets has no {name!r}; https://ir-datasets.com lists its test sets") from error
    missing = [kind for kind in ("docs", "queries", "qrels") if not getattr(source, f"has_{kind}")()]
    if missing:
        raise DatasetError(
            f"{name!r} of ir_datasets has no {', '.join(missing)}; name a part that has them, such as a split"
        )
    queries = {query.query_id: query.default_text() for query in source.queries_iter()}
    return Dataset(name, [_text(document) for document in source.docs_iter()], queries, source.qrels_dict())


def _text(document: Any) -> Text:
    if hasattr(document, "title") and hasattr(document, "text"):
        return Text(document.doc_id, document.title or "", document.text or "")
    return Text(document.doc_id, "", document.default_text())
