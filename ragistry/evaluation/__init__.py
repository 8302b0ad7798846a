"""An honest comparison of techniques: test sets, measures, statistics, cost, and reports.

Everything public is loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragistry.evaluation.beir import read_beir as read_beir
    from ragistry.evaluation.beir import write_beir as write_beir
    from ragistry.evaluation.comparison import compare as compare
    from ragistry.evaluation.dataset import Dataset as Dataset
    from ragistry.evaluation.dataset import Text as Text
    from ragistry.evaluation.from_ir_datasets import read_ir_datasets as read_ir_datasets
    from ragistry.evaluation.from_library import read_library as read_library
    from ragistry.evaluation.record import recording as recording
    from ragistry.evaluation.record import replaying as replaying
    from ragistry.evaluation.report_html import page as page
    from ragistry.evaluation.report_text import markdown as markdown
    from ragistry.evaluation.result import Comparison as Comparison
    from ragistry.evaluation.trec import read_qrels as read_qrels
    from ragistry.evaluation.trec import read_run as read_run
    from ragistry.evaluation.trec import read_topics as read_topics
    from ragistry.evaluation.trec import write_qrels as write_qrels
    from ragistry.evaluation.trec import write_run as write_run
    from ragistry.evaluation.trec import write_topics as write_topics

_HOMES = {
    "Comparison": "result",
    "Dataset": "dataset",
    "Text": "dataset",
    "compare": "comparison",
    "markdown": "report_text",
    "page": "report_html",
    "read_beir": "beir",
    "read_ir_datasets": "from_ir_datasets",
    "read_library": "from_library",
    "read_qrels": "trec",
    "read_run": "trec",
    "read_topics": "trec",
    "recording": "record",
    "replaying": "record",
    "write_beir": "beir",
    "write_qrels": "trec",
    "write_run": "trec",
    "write_topics": "trec",
}

__all__ = [
    "Comparison",
    "Dataset",
    "Text",
    "compare",
    "markdown",
    "page",
    "read_beir",
    "read_ir_datasets",
    "read_library",
    "read_qrels",
    "read_run",
    "read_topics",
    "recording",
    "replaying",
    "write_beir",
    "write_qrels",
    "write_run",
    "write_topics",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
