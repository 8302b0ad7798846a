"""Compare techniques: test sets, measures, statistics, cost and reports.

Public names are loaded on first use, so that importing the package is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragistry.evaluation.changes import gate as gate
    from ragistry.evaluation.comparison import compare as compare
    from ragistry.evaluation.data.dataset import Dataset as Dataset
    from ragistry.evaluation.data.dataset import Text as Text
    from ragistry.evaluation.data.files import read_beir as read_beir
    from ragistry.evaluation.data.files import write_beir as write_beir
    from ragistry.evaluation.data.library import read_library as read_library
    from ragistry.evaluation.data.trec import read_ir_datasets as read_ir_datasets
    from ragistry.evaluation.data.trec import read_qrels as read_qrels
    from ragistry.evaluation.data.trec import read_run as read_run
    from ragistry.evaluation.data.trec import write_qrels as write_qrels
    from ragistry.evaluation.data.trec import write_run as write_run
    from ragistry.evaluation.report.html import page as page
    from ragistry.evaluation.report.text import markdown as markdown
    from ragistry.evaluation.result import Comparison as Comparison
    from ragistry.evaluation.systems.foreign import as_technique as as_technique

_HOMES = {
    "Comparison": "result",
    "Dataset": "data.dataset",
    "Text": "data.dataset",
    "as_technique": "systems.foreign",
    "compare": "comparison",
    "gate": "changes",
    "markdown": "report.text",
    "page": "report.html",
    "read_beir": "data.files",
    "read_ir_datasets": "data.trec",
    "read_library": "data.library",
    "read_qrels": "data.trec",
    "read_run": "data.trec",
    "write_beir": "data.files",
    "write_qrels": "data.trec",
    "write_run": "data.trec",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        from ragistry.utils.removed import no_attribute

        raise no_attribute(__name__, name)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
