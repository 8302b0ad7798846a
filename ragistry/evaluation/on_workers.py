"""Ask techniques on the workers of an engine: each technique is one task, over a copy of the frozen index.

Workers need the folder of the workspace and the code of the techniques under the same paths. The caller handles earlier
runs, statistics and reports.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ragistry.errors import RagistryError, WorkerLostError
from ragistry.evaluation.asking import Asking, QueryRanking, failure
from ragistry.evaluation.figures import TechniqueFailure
from ragistry.evaluation.systems.build import Contenders, build_systems
from ragistry.evaluation.systems.index import FOLDER, folders_of
from ragistry.evaluation.systems.systems import System, is_ready
from ragistry.evaluation.systems.variants import Variant
from ragistry.protocols import Engine
from ragistry.workspace import Workspace, open_workspace


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """What every worker gets.

    Attributes:
        contenders: Everything that is compared, without ready objects: together they determine the index.
        asking: The queries, without rankings.
        root: Folder of the workspace.
        settings: Settings of the workspace that do not come from its files.
    """

    contenders: Contenders
    asking: Asking
    root: Path
    settings: dict[str, Any]


def ask_on(engine: Engine, asking: Asking, systems: Sequence[System], contenders: Contenders) -> None:
    """Run `Asking.run` on workers. A technique with only some kept rankings is asked all queries again.

    Raises:
        EngineError: The engine failed.
        SourceError, ModelError, StoreError: A worker was stopped by it.
    """
    waiting = asking.resume(systems)
    asking.resumed -= sum(len(asking.rankings[one.name]) for one in waiting)
    unready = [one for one in contenders.variants if not is_ready(contenders.objects[one.technique])]
    blank = replace(asking, embedder=None, files={}, progress=None, rankings={}, failures={}, resumed=0)
    root, settings = _home(contenders.workspace)
    task = WorkerTask(
        replace(
            contenders,
            variants=unready,
            objects={one.technique: contenders.objects[one.technique] for one in unready},
            workspace=None,
            cache=None if contenders.cache is None else contenders.cache.resolve(),
        ),
        blank,
        root,
        settings,
    )
    by_name = {one.name: (one, contenders.objects[one.technique]) for one in contenders.variants}
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


def _home(workspace: Workspace | str | Path | None) -> tuple[Path, dict[str, Any]]:
    """Describe the workspace for a worker, whose environment has other variables."""
    if not isinstance(workspace, Workspace):
        return Path(workspace or ".").resolve(), {}
    names = [name for name, place in workspace.origins.items() if place.startswith(("argument", "environment"))]
    return workspace.root.resolve(), {name: getattr(workspace.settings, name) for name in names}


def _ask_alone(
    share: tuple[Variant, Any], task: WorkerTask
) -> tuple[dict[str, QueryRanking], dict[str, TechniqueFailure]]:
    """Return the rankings of one technique, or why it failed. Runs on a worker."""
    (variant, technique), contenders = share, task.contenders
    with ExitStack() as stack:
        workspace = stack.enter_context(open_workspace(task.root, **task.settings))
        indexes = contenders.cache or workspace.path_of(workspace.settings.data_dir) / FOLDER
        copy = Path(stack.enter_context(TemporaryDirectory(prefix="ragistry-", ignore_cleanup_errors=True)))
        for folder in folders_of(contenders.dataset, indexes):
            shutil.copytree(folder, copy / folder.name)
        variants = [*(one for one in contenders.variants if one.name != variant.name), variant]
        objects = {**contenders.objects, variant.technique: technique}
        own = replace(contenders, variants=variants, objects=objects, workspace=workspace, cache=copy)
        built = build_systems(stack, own)
        if variant.name in built.errors:
            return {}, {variant.name: failure(built.errors[variant.name])}
        asking = replace(task.asking, embedder=built.embedder, rankings={}, failures={})
        asking.run([one for one in built.systems if one.name == variant.name])
        return asking.rankings.get(variant.name, {}), asking.failures
