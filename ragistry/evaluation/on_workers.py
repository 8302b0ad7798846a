"""Ask techniques on the workers of an engine: each technique is one task, over a copy of the frozen index.

Workers need the folder of the workspace and the code of the techniques under the same paths. The caller handles earlier
runs, statistics and reports.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ragistry.errors import RagistryError, WorkerLostError
from ragistry.evaluation.asking import Asking, QueryRanking, failure
from ragistry.evaluation.figures import TechniqueFailure
from ragistry.evaluation.systems.build import build_systems
from ragistry.evaluation.systems.index import FOLDER, folders_of
from ragistry.evaluation.systems.systems import System, is_ready
from ragistry.evaluation.systems.variants import Variant
from ragistry.protocols import Engine
from ragistry.workspace import Workspace, open_workspace


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """What every worker gets.

    Attributes:
        columns: Everything that is compared, without ready objects. Together they determine the index.
        given: Technique → the object given for it, as in `build_systems`.
        asking: The queries, without rankings.
        root: Folder of the workspace.
        cache: Folder of its indexes; None: in its data.
        settings: Settings that do not come from its files.
    """

    columns: Sequence[Variant]
    given: Mapping[str, Any]
    asking: Asking
    root: Path
    cache: Path | None
    settings: dict[str, Any] = field(default_factory=dict)


def ask_on(
    engine: Engine,
    asking: Asking,
    systems: Sequence[System],
    columns: Sequence[Variant],
    given: Mapping[str, Any],
    workspace: Workspace | str | Path | None,
    cache: Path | None,
) -> None:
    """Run `Asking.run` on workers. A technique with only some kept rankings is asked all queries again.

    Raises:
        EngineError: The engine failed.
        SourceError, ModelError, StoreError: A worker was stopped by it.
    """
    waiting = asking.resume(systems)
    asking.resumed -= sum(len(asking.rankings[one.name]) for one in waiting)
    made = [column for column in columns if not is_ready(given[column.technique])]
    makers = {column.technique: given[column.technique] for column in made}
    blank = replace(asking, embedder=None, files={}, progress=None, rankings={}, failures={}, resumed=0)
    cache = None if cache is None else cache.resolve()
    task = WorkerTask(made, makers, blank, *_home(workspace, cache))
    by_name = {column.name: (column, given[column.technique]) for column in columns}
    outcomes = engine.map(partial(_ask_alone, task=task), [by_name[one.name] for one in waiting])
    for done, one in enumerate(waiting):
        asking.report(done, len(waiting))
        outcome = next(outcomes)
        if isinstance(outcome, WorkerLostError):
            asking.failures[one.name] = failure(outcome)
            continue
        if isinstance(outcome, RagistryError):
            raise outcome
        asking.rankings[one.name], failures = outcome
        asking.failures.update(failures)
        if one.name in asking.files and not failures:
            asking.files[one.name].remove()
            asking.files[one.name].append(asking.rankings[one.name].values())
    asking.report(len(waiting), len(waiting))
    asking.drop_failed()


def _home(workspace: Workspace | str | Path | None, cache: Path | None) -> tuple[Path, Path | None, dict[str, Any]]:
    """Describe the workspace for a worker, whose environment has other variables."""
    if not isinstance(workspace, Workspace):
        return Path(workspace or ".").resolve(), cache, {}
    names = [name for name, place in workspace.origins.items() if place.startswith(("argument", "environment"))]
    return workspace.root.resolve(), cache, {name: getattr(workspace.settings, name) for name in names}


def _ask_alone(
    share: tuple[Variant, Any], task: WorkerTask
) -> tuple[dict[str, QueryRanking], dict[str, TechniqueFailure]]:
    """Return the rankings of one technique, or why it failed. Runs on a worker."""
    variant, given = share
    with ExitStack() as stack:
        workspace = stack.enter_context(open_workspace(task.root, **task.settings))
        indexes = task.cache or workspace.path_of(workspace.settings.data_dir) / FOLDER
        copy = Path(stack.enter_context(TemporaryDirectory(prefix="ragistry-", ignore_cleanup_errors=True)))
        for folder in folders_of(task.asking.dataset, indexes):
            shutil.copytree(folder, copy / folder.name)
        columns = [one for one in task.columns if one.name != variant.name]
        makers = {**task.given, variant.technique: given}
        built = build_systems(stack, [*columns, variant], makers, task.asking.dataset, workspace, cache=copy)
        if variant.name in built.errors:
            return {}, {variant.name: failure(built.errors[variant.name])}
        asking = replace(task.asking, embedder=built.embedder, rankings={}, failures={})
        asking.run([one for one in built.systems if one.name == variant.name])
        return asking.rankings.get(variant.name, {}), asking.failures
