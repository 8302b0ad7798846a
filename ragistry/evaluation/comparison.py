"""Which technique is better on these documents? Every technique over one frozen corpus and the same queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation.beir import read_beir
from ragistry.evaluation.dataset import Dataset
from ragistry.evaluation.figures import TESTS, Test
from ragistry.evaluation.grid import WHOLE, Grid, Variant, parse_chunking, variants
from ragistry.evaluation.indexing import Chunking, Progress
from ragistry.evaluation.measures import Measure, parse_measures
from ragistry.evaluation.preparing import Kept, prepare
from ragistry.evaluation.provenance import identity, provenance
from ragistry.evaluation.result import Comparison
from ragistry.evaluation.run_files import answer_files, write_runs
from ragistry.evaluation.running import Asking, run
from ragistry.evaluation.summary import summarised
from ragistry.types import TOP_K_LIMIT
from ragistry.utils.suggest import did_you_mean
from ragistry.workspace import Workspace

MEASURES = ("nDCG@10", "R@100", "RR@10")
DEPTH = 100
"""Documents of a ranking, unless a measure looks further."""

Techniques = Sequence[str] | Mapping[str, Any]


def compare(
    techniques: Techniques,
    dataset: Dataset | str | Path,
    measures: str | Sequence[str] = MEASURES,
    baseline: str | None = None,
    *,
    workspace: Workspace | None = None,
    grid: Grid | None = None,
    chunk_size: str | int | Chunking = WHOLE,
    depth: int | None = None,
    drop_query: bool = False,
    test: Test = "randomisation",
    seed: int = 0,
    runs: str | Path | None = None,
    cache: str | Path | None = None,
    record: str | Path | None = None,
    replay: str | Path | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare techniques on a test set and say which differences are more than chance.

    ``techniques``: names of techniques.yaml, or name → object with ``retrieve``, class, or function that makes one of
    ``store`` and ``embedder``; None stands for the technique of that name in techniques.yaml. ``dataset``: a folder in
    BEIR's layout, or a `Dataset`. ``measures``: the first is the one that verdicts are about. ``baseline``: the one
    that each is tested against; None: each against each.

    ``grid``: parameters → values, as in `grid.Grid`. ``chunk_size``: ``"document"`` (each is one chunk, as published
    figures have it), characters, ``"500/75"``, or ``"library"`` for a `read_library`: the workspace as it is.
    ``depth``: documents of a ranking, 1 to 1,000. ``drop_query``: take out the hit whose id is the query's. ``test``:
    randomisation or t.

    ``runs``: a folder that keeps answers and TREC runs; what it holds already of the same configuration is not asked
    again (of an object only its class and ``config`` are known). ``cache``: a folder that keeps vectors and indexes
    (default: in the workspace's data). ``record``: a file that keeps every answer of a model, ``replay``: one to take
    them from, so that no model is asked.

    A technique that raises is left out, and `Comparison.failures` says why. Raises `EvaluationError` and
    `DatasetError` for what cannot be measured, `ConfigError`, `ModelError` and `StoreError`.
    """
    tested = dataset if isinstance(dataset, Dataset) else read_beir(dataset)
    parsed = parse_measures([measures] if isinstance(measures, str) else measures)
    given = dict(techniques) if isinstance(techniques, Mapping) else dict.fromkeys(techniques)
    if test not in TESTS:
        raise EvaluationError(f"unknown test {test!r}; there are {' and '.join(TESTS)}")
    columns = variants(list(given), parse_chunking(chunk_size), grid or {})
    _check_baseline(baseline, columns)
    _check_record(record, runs)
    looked_at = _depth(depth, parsed)
    where = Kept(*(None if path is None else Path(path) for path in (cache, record, replay)))
    with ExitStack() as stack:
        contenders, vectors = prepare(stack, columns, given, tested, workspace, where, progress)
        asking = Asking(tested, looked_at, vectors, drop_query, seed)
        content, fingerprint = tested.content_hash(), vectors.fingerprint if vectors else None
        identities = {one.name: identity(one, asking, content, fingerprint) for one in contenders}
        files = {} if runs is None else answer_files(Path(runs), identities)
        outcome = run(contenders, asking, files, progress)
        origin = provenance(
            contenders, asking, content, fingerprint,
            measures=[str(measure) for measure in parsed], baseline=baseline, test=test, resumed=outcome.resumed,
            replayed=None if where.replay is None else where.replay.name,
        )  # fmt: skip
        result = summarised(contenders, asking, outcome, parsed, baseline, test, origin)
    if runs is not None:
        write_runs(Path(runs), result.runs)
    return result


def _check_baseline(baseline: str | None, columns: Sequence[Variant]) -> None:
    names = [variant.name for variant in columns]
    if not names:
        raise EvaluationError("no technique is named; give two or more to compare them")
    if baseline is not None and baseline not in names:
        raise EvaluationError(
            f"the baseline {baseline!r} is not compared{did_you_mean(baseline, names)}; "
            f"add it to the techniques, or take one of {', '.join(names)}"
        )


def _check_record(record: str | Path | None, runs: str | Path | None) -> None:
    """What is resumed asks no model, so that a recording that begins with it could not be replayed."""
    if record is None or runs is None or Path(record).exists():
        return
    if any(Path(runs).glob("*.answers.jsonl")):
        raise EvaluationError(f"{str(runs)!r} has answers that were not recorded; give a new folder for runs")


def _depth(depth: int | None, measures: Sequence[Measure]) -> int:
    deepest = max((measure.cutoff or 1 for measure in measures), default=1)
    chosen = max(DEPTH, deepest) if depth is None else depth
    if not deepest <= chosen <= TOP_K_LIMIT:
        raise EvaluationError(
            f"rankings of {chosen} documents do not do for the measures, which look at {deepest}; "
            f"the depth is at least that and at most {TOP_K_LIMIT:,}"
        )
    return chosen
