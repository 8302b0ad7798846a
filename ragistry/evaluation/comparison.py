"""Which technique is better on these documents? Every technique over one frozen corpus and the same queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation.asking import Asking
from ragistry.evaluation.beir import read_beir
from ragistry.evaluation.dataset import Dataset
from ragistry.evaluation.figures import TESTS, Test
from ragistry.evaluation.grid import Grid, Variant, parse_chunking, variants
from ragistry.evaluation.index_building import Chunking
from ragistry.evaluation.measures import Measure, parse_measures
from ragistry.evaluation.paths import check_outputs
from ragistry.evaluation.preparing import Kept, prepare
from ragistry.evaluation.provenance import identity, provenance
from ragistry.evaluation.result import Comparison
from ragistry.evaluation.run_files import answer_files, write_runs
from ragistry.evaluation.running import run
from ragistry.evaluation.summary import summarised
from ragistry.types import TOP_K_LIMIT, Progress
from ragistry.utils.suggest import did_you_mean
from ragistry.workspace import Workspace

MEASURES = ("nDCG@10", "R@100", "RR@10")
DEPTH = 100
"""Documents of a ranking, unless a measure looks further."""

Techniques = str | Sequence[str] | Mapping[str, Any]


def compare(
    techniques: Techniques,
    dataset: Dataset | str | Path,
    measures: str | Sequence[str] = MEASURES,
    baseline: str | None = None,
    *,
    workspace: Workspace | str | Path | None = None,
    grid: Grid | None = None,
    chunk_size: str | int | Chunking | None = None,
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
    that each is tested against; None: each against each. ``workspace``: one that is open, or a folder (default: the
    current one).

    ``grid``: parameters → values, as in `grid.Grid`. ``chunk_size``: ``"document"`` (each is one chunk, as published
    figures have it), characters, ``"500/75"``, or ``"library"`` for a `read_library`: the workspace as it is. None: a
    test set that a program made is cut as the workspace cuts what it takes in, every other is ``"document"``.
    ``depth``: documents of a ranking, 1 to 1,000. ``drop_query``: take out the hit whose id is the query's. ``test``:
    randomisation or t.

    ``runs``: a folder that keeps answers and TREC runs; what it holds already of the same configuration is not asked
    again (the same: its code, its configuration and all that it keeps, such as words that it read from a file when it
    was made; an object that keeps what has no plain value, such as a store of its own, is asked anew, and the report
    says so). Not seen are other files that a technique reads when it is asked and, of an entry or a class, changes in
    what has no plain value: give a new folder after those. ``cache``: a folder that keeps vectors and indexes (default:
    in the workspace's data). ``record``: a file that keeps every answer of a model, ``replay``: one to take them from,
    so that no model is asked and each call is charged the time that it took.

    A technique that raises, when it is made or asked, is left out, and `Comparison.failures` says why. Raises
    `EvaluationError` and `DatasetError` for what cannot be measured, before any work is done, `ConfigError`,
    `ModelError` and `StoreError`.
    """
    check_outputs(files={"record": record}, folders={"runs": runs, "cache": cache}, seed=seed)
    tested = _test_set(dataset)
    parsed = parse_measures([measures] if isinstance(measures, str) else measures)
    given = _named(techniques)
    if test not in TESTS:
        raise EvaluationError(f"unknown test {test!r}; there are {' and '.join(TESTS)}")
    columns = variants(list(given), _chunking(chunk_size, tested), grid or {})
    _check_baseline(baseline, columns)
    _check_record(record, runs)
    looked_at = _depth(depth, parsed)
    where = Kept(*(None if path is None else Path(path) for path in (cache, record, replay)))
    with ExitStack() as stack:
        contenders, vectors = prepare(stack, columns, given, tested, workspace, where, progress)
        asking = Asking(tested, looked_at, vectors, drop_query, seed)
        content, fingerprint = tested.content_hash(), vectors.fingerprint if vectors else None
        identities = {one.name: identity(one, asking, content, fingerprint) for one in contenders}
        unknown = {one.name for one in contenders if one.unknown}
        files = {} if runs is None else answer_files(Path(runs), identities, unknown)
        outcome = run(contenders, asking, files, progress)
        origin = provenance(
            contenders, asking, content, fingerprint,
            measures=[str(measure) for measure in parsed], baseline=baseline, test=test, resumed=outcome.resumed,
            keeping=runs is not None,
            replayed=None if where.replay is None else where.replay.name,
        )  # fmt: skip
        result = summarised(contenders, asking, outcome, parsed, baseline, test, origin)
    if runs is not None:
        write_runs(Path(runs), result.runs, result.failures)
    return result


def _test_set(dataset: Any) -> Dataset:
    if isinstance(dataset, Dataset):
        return dataset
    if isinstance(dataset, str | Path):
        return read_beir(dataset)
    raise EvaluationError(f"the dataset is {dataset!r:.80}; give a folder in BEIR's layout, or a Dataset")


def _named(techniques: Any) -> dict[str, Any]:
    """Technique → what was given for it, None: its entry in techniques.yaml."""
    if isinstance(techniques, Mapping):
        named = dict(techniques)
    else:
        named = dict.fromkeys([techniques] if isinstance(techniques, str) else techniques)
    wrong = [name for name in named if not isinstance(name, str) or not name.strip()]
    if wrong:
        raise EvaluationError(f"the name of a technique is {wrong[0]!r:.80}; give each one as text")
    return named


def _chunking(size: str | int | Chunking | None, dataset: Dataset) -> Chunking:
    """A made test set asks what is better on one's own documents, where they are cut; a public one has figures."""
    return Chunking(ingested=True) if size is None and dataset.synthetic else parse_chunking(size)


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
    if type(chosen) is not int or not deepest <= chosen <= TOP_K_LIMIT:
        raise EvaluationError(
            f"rankings of {chosen!r:.80} documents do not do for the measures, which look at {deepest}; "
            f"the depth is at least that and at most {TOP_K_LIMIT:,}"
        )
    return chosen
