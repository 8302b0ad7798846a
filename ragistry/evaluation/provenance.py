"""Where figures come from: all that one needs to get them again, and by which to tell whether two agree."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ragistry.evaluation.asking import Asking
from ragistry.evaluation.contenders import Contender
from ragistry.evaluation.dataset import Dataset
from ragistry.evaluation.running import BATCH
from ragistry.evaluation.statistics import RESAMPLES, ROUNDS
from ragistry.evaluation.synthetic import origin
from ragistry.types import EmbedderFingerprint

PACKAGES = ("ragistry", "numpy", "onnxruntime", "tokenizers", "tantivy", "PyStemmer")
"""What can change a ranking or a figure."""


def identity(
    contender: Contender, asking: Asking, dataset_hash: str, embedder: EmbedderFingerprint | None
) -> dict[str, Any]:
    """All that decides a technique's rankings: answers of another identity are not its own."""
    return {
        "dataset": dataset_hash,
        "technique": contender.configuration,
        "unknown": contender.unknown,
        "embedder": None if embedder is None or contender.index is None else asdict(embedder),
        "depth": asking.depth,
        "drop_query": asking.drop_query,
        "ragistry": versions()["ragistry"],
    }


def provenance(
    contenders: Sequence[Contender],
    asking: Asking,
    dataset_hash: str,
    embedder: EmbedderFingerprint | None,
    *,
    measures: Sequence[str],
    baseline: str | None,
    test: str,
    resumed: int,
    keeping: bool,
    replayed: str | None,
) -> dict[str, Any]:
    """The record of a comparison, as plain values.

    ``keeping``: answers are kept to be resumed. ``replayed``: the file that models' answers were taken from.
    """
    return {
        "dataset": described(asking.dataset, dataset_hash),
        "techniques": {contender.name: contender.configuration for contender in contenders},
        "embedder": None if embedder is None else asdict(embedder),
        "measures": list(measures),
        "asking": {
            "depth": asking.depth,
            "drop_query": asking.drop_query,
            "warm_up_queries": asking.warm_up,
            "order": "techniques in turn, in an order drawn anew for each query",
            "search": _search(contenders),
            "replayed": replayed,
            "ranking": "a document stands where the first of its chunks stands",
            "resumed_answers": resumed,
            "never_resumed": {one.name: one.unknown for one in contenders if one.unknown and keeping},
            "not_seen": {one.name: one.not_seen for one in contenders if one.not_seen and keeping},
            "answers_written_every": BATCH,
        },
        "statistics": {
            "test": "paired randomisation test, two-sided" if test == "randomisation" else "paired t-test, two-sided",
            "rounds": ROUNDS if test == "randomisation" else None,
            "correction": "Holm",
            "family": "the pairs of one measure"
            + (f": each technique against the baseline {baseline!r}" if baseline else ": each against each"),
            "alpha": 0.05,
            "interval": f"95 %, percentile bootstrap of {RESAMPLES:,} resamples of the queries",
        },
        "seed": asking.seed,
        "versions": {"python": platform.python_version()} | versions(),
        "machine": {
            "system": platform.platform(),
            "processors": os.cpu_count(),
            "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            "peak_memory_bytes": peak_memory(),
        },
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _search(contenders: Sequence[Contender]) -> str:
    others = [one.name for one in contenders if one.index is None or not one.index.exact]
    if not others:
        return "exact: every vector is compared"
    exact = "" if len(others) == len(contenders) else "exact, except of "
    return f"{exact}{', '.join(others)}: as their own store searches"


def described(dataset: Dataset, content_hash: str) -> dict[str, Any]:
    """A test set in figures; ``synthetic``: how queries were made that no person asked, None where people asked all."""
    return {
        "name": dataset.name,
        "content_hash": content_hash,
        "documents": len(dataset.corpus),
        "queries": len(dataset.queries),
        "judged_queries": len(dataset.judged),
        "judgements": sum(map(len, dataset.qrels.values())),
        "relevant": sum(grade > 0 for grades in dataset.qrels.values() for grade in grades.values()),
        "synthetic": origin(dataset),
    }


def versions() -> dict[str, str]:
    """The installed version of each package that matters."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def peak_memory() -> int | None:
    """Bytes that this process has held at most, model and matrices included; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024
