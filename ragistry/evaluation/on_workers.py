"""Ask techniques on the workers of an engine: each technique is one task, over a copy of the frozen index.

Workers need the folder of the workspace and the code of the techniques under the same paths. The caller handles earlier
runs, statistics and reports.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ragistry.errors import RagistryError, WorkerLostError
from ragistry.evaluation.answers import Answer, Asking, failure
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.result import Failure
from ragistry.evaluation.systems.build import build_systems
from ragistry.evaluation.systems.entries import Variant
from ragistry.evaluation.systems.index import FOLDER, folders_of
from ragistry.evaluation.systems.systems import System, is_ready
from ragistry.protocols import Engine
from ragistry.workspace import Workspace, open_workspace


@dataclass(frozen=True, slots=True)
class Home:
    """The workspace that a worker opens: its folder, and the settings that do not come from its files.

    ``cache``: the folder of its indexes; None: in its data.
    """

    root: Path
    cache: Path | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Questions:
    """The queries for every technique, as in `Asking`.

    ``columns``, ``given``: everything that is compared, as in `build_systems`, without ready objects. Together they
    determine the index.
    """

    columns: Sequence[Variant]
    given: Mapping[str, Any]
    dataset: Dataset
    depth: int
    drop_query: bool
    seed: int
    timing_repeats: int


def home_of(workspace: Workspace | str | Path | None, cache: Path | None) -> Home:
    """The same workspace for a worker, whose environment has other variables."""
    cache = None if cache is None else cache.resolve()
    if not isinstance(workspace, Workspace):
        return Home(Path(workspace or ".").resolve(), cache)
    given = [name for name, place in workspace.origins.items() if place.startswith(("argument", "environment"))]
    return Home(workspace.root.resolve(), cache, {name: getattr(workspace.settings, name) for name in given})


def ask_on(
    engine: Engine,
    asking: Asking,
    systems: Sequence[System],
    columns: Sequence[Variant],
    given: Mapping[str, Any],
    home: Home,
) -> None:
    """`Asking.run` on workers. A technique with only some kept answers is asked all queries again.

    Raises `EngineError`, and the `SourceError`, `ModelError` or `StoreError` that stops a worker.
    """
    waiting = asking.resume(systems)
    asking.resumed -= sum(len(asking.answers[one.name]) for one in waiting)
    made = [column for column in columns if not is_ready(given[column.technique])]
    makers = {column.technique: given[column.technique] for column in made}
    questions = Questions(
        made, makers, asking.dataset, asking.depth, asking.drop_query, asking.seed, asking.timing_repeats
    )
    by_name = {column.name: (column, given[column.technique]) for column in columns}
    shares = [by_name[one.name] for one in waiting]
    outcomes = engine.map(partial(_ask_alone, questions=questions, home=home), shares)
    for done, one in enumerate(waiting):
        asking.report(done, len(waiting))
        outcome = next(outcomes)
        if isinstance(outcome, WorkerLostError):
            asking.failures[one.name] = failure(outcome)
            continue
        if isinstance(outcome, RagistryError):
            raise outcome
        asking.answers[one.name], failures = outcome
        asking.failures.update(failures)
        if one.name in asking.files and not failures:
            asking.files[one.name].remove()
            asking.files[one.name].append(asking.answers[one.name].values())
    asking.report(len(waiting), len(waiting))
    asking.drop_failed()


def _ask_alone(
    share: tuple[Variant, Any], questions: Questions, home: Home
) -> tuple[dict[str, Answer], dict[str, Failure]]:
    """On a worker: the answers of one technique, or why it failed."""
    variant, given = share
    dataset = questions.dataset
    with ExitStack() as stack:
        workspace = stack.enter_context(open_workspace(home.root, **home.settings))
        indexes = home.cache or workspace.path_of(workspace.settings.data_dir) / FOLDER
        copy = Path(stack.enter_context(TemporaryDirectory(prefix="ragistry-", ignore_cleanup_errors=True)))
        for folder in folders_of(dataset, indexes):
            shutil.copytree(folder, copy / folder.name)
        columns = [one for one in questions.columns if one.name != variant.name]
        makers = {**questions.given, variant.technique: given}
        built = build_systems(stack, [*columns, variant], makers, dataset, workspace, cache=copy)
        asking = Asking(
            dataset, questions.depth, questions.drop_query, questions.seed, questions.timing_repeats, built.embedder
        )
        if variant.name in built.errors:
            return {}, {variant.name: failure(built.errors[variant.name])}
        asking.run([one for one in built.systems if one.name == variant.name])
        return asking.answers.get(variant.name, {}), asking.failures
