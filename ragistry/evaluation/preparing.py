"""What a comparison needs before it can ask: models, vectors, one index for each way to cut, and the techniques."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation import contenders as make
from ragistry.evaluation.contenders import Contender
from ragistry.evaluation.dataset import Dataset
from ragistry.evaluation.grid import Variant
from ragistry.evaluation.indexing import FOLDER, DatasetIndex, Progress, library_index, open_index
from ragistry.evaluation.record import recording, replaying
from ragistry.evaluation.vectors import KeptVectors, kept
from ragistry.workspace import Workspace, open_workspace

MODELS = ("embedder", "generator", "reranker")


@dataclass(frozen=True, slots=True)
class Kept:
    """Where things outlive a comparison.

    ``cache``: the folder of vectors and indexes, None: in the workspace's data. ``record``: a file that models'
    answers are recorded to. ``replay``: one that they are taken from, no model asked. With either of the two every
    answer is needed anew, so ``cache`` is not used.
    """

    cache: Path | None = None
    record: Path | None = None
    replay: Path | None = None

    def __post_init__(self) -> None:
        if self.record is not None and self.replay is not None:
            raise EvaluationError("record and replay are both given; record first, then replay")
        if self.cache is not None and self.cache.is_file():
            raise EvaluationError(f"the cache {str(self.cache)!r} is a file; give a folder")
        if self.record is not None and self.record.is_dir():
            raise EvaluationError(f"the record {str(self.record)!r} is a folder; give a file")


def prepare(
    stack: ExitStack,
    columns: Sequence[Variant],
    given: Mapping[str, Any],
    dataset: Dataset,
    workspace: Workspace | None,
    where: Kept,
    progress: Progress | None,
) -> tuple[list[Contender], KeptVectors | None]:
    """Everything that is compared, in order, and the vectors that they share; None where all are objects.

    ``given``: technique → object, class, function, or None for the one of techniques.yaml. What has to be closed is
    left to ``stack``.
    """
    if all(make.is_ready(given[variant.technique]) for variant in columns):
        return [make.from_ready(variant.name, given[variant.technique]) for variant in columns], None
    opened = workspace or stack.enter_context(open_workspace())
    entries = make.varied(opened, [variant for variant in columns if given[variant.technique] is None])
    models = _models(opened, where)
    folder = _folder(stack, opened, where)
    vectors = kept(models["embedder"], folder / "vectors.db")
    stack.callback(vectors.close)
    models["embedder"] = vectors
    made: dict[str, Contender] = {}
    for chunking in dict.fromkeys(variant.chunking for variant in columns):
        same = [variant for variant in columns if variant.chunking == chunking]
        if chunking.library:
            index = library_index(dataset, opened)
        else:
            language = opened.settings.language
            index = open_index(dataset, chunking, vectors, folder, language=language, progress=progress)
            stack.callback(index.store.close)
        named = [variant for variant in same if given[variant.technique] is None]
        made |= {one.name: one for one in make.from_workspace(opened, entries, named, index, models)}
        made |= {one.name: one for one in _from_program(same, given, index, models)}
    return [made[variant.name] for variant in columns], vectors


def _models(workspace: Workspace, where: Kept) -> dict[str, Any]:
    """The models that the workspace has, recorded or replayed where that is asked."""
    if where.replay is not None:
        models = replaying(where.replay)
        if "embedder" not in models:
            raise EvaluationError(
                f"{str(where.replay)!r} has no answer of an embedder; record with --record FILE first"
            )
        return models
    parts = {name: part for name in MODELS if (part := getattr(workspace, name, None)) is not None}
    return parts if where.record is None else recording(parts, where.record)


def _folder(stack: ExitStack, workspace: Workspace, where: Kept) -> Path:
    if where.record is not None or where.replay is not None:
        folder = Path(mkdtemp(prefix="ragistry-"))
        stack.callback(rmtree, folder, ignore_errors=True)
        return folder
    return where.cache or workspace.path_of(workspace.settings.data_dir) / FOLDER


def _from_program(
    columns: Sequence[Variant], given: Mapping[str, Any], index: DatasetIndex, models: Mapping[str, Any]
) -> list[Contender]:
    return [
        make.from_ready(variant.name, technique)
        if make.is_ready(technique)
        else make.from_factory(technique, variant, index, models)
        for variant in columns
        if (technique := given[variant.technique]) is not None
    ]
