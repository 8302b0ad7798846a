"""Test sets of the ``ir_datasets`` package, which fetches them over the network and keeps them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ragistry.errors import DatasetError, EvaluationError
from ragistry.evaluation.dataset import Dataset, Qrels, Text


def read_ir_datasets(name: str) -> Dataset:
    """A test set by its name there, as ``beir/scifact/test``: documents, queries and judgements.

    Raises `EvaluationError` where the package is not installed, `DatasetError` for what it does not have or what is
    wrong with it.
    """
    try:
        ir_datasets = import_module("ir_datasets")
    except ImportError as error:
        raise EvaluationError("ir_datasets is not installed; run pip install 'ragistry[datasets]'") from error
    try:
        source: Any = ir_datasets.load(name)
    except KeyError as error:
        raise DatasetError(f"ir_datasets has no {name!r}; https://ir-datasets.com lists what it has") from error
    lacking = [kind for kind in ("docs", "queries", "qrels") if not getattr(source, f"has_{kind}")()]
    if lacking:
        raise DatasetError(
            f"{name!r} of ir_datasets has no {', '.join(lacking)}; name a part that has, such as a split"
        )
    qrels: Qrels = {}
    for judgement in source.qrels_iter():
        qrels.setdefault(judgement.query_id, {})[judgement.doc_id] = int(judgement.relevance)
    queries = {query.query_id: query.default_text() for query in source.queries_iter()}
    return Dataset(name, [_text(document) for document in source.docs_iter()], queries, qrels)


def _text(document: Any) -> Text:
    if hasattr(document, "title") and hasattr(document, "text"):
        return Text(document.doc_id, document.title or "", document.text or "")
    return Text(document.doc_id, "", document.default_text())
