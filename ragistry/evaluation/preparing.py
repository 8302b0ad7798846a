"""What a comparison needs before it can ask: models, vectors, one index for each way to cut, and the techniques."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation.configured import varied
from ragistry.evaluation.contenders import Contender, Unmade
from ragistry.evaluation.dataset import Dataset
from ragistry.evaluation.from_program import from_ready, is_ready
from ragistry.evaluation.grid import Variant
from ragistry.evaluation.index_building import Chunking
from ragistry.evaluation.indexing import FOLDER, library_index, open_index
from ragistry.evaluation.making import Maker
from ragistry.evaluation.record import recording, replaying
from ragistry.evaluation.vectors import KeptVectors, kept
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.types import Progress
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


def prepare(
    stack: ExitStack,
    columns: Sequence[Variant],
    given: Mapping[str, Any],
    dataset: Dataset,
    workspace: Workspace | str | Path | None,
    where: Kept,
    progress: Progress | None,
) -> tuple[list[Contender], KeptVectors | None]:
    """Everything that is compared, in order, and the vectors that they share; None where all are objects.

    ``given``: technique → object, class, function, or None for the one of techniques.yaml. What has to be closed is
    left to ``stack``.
    """
    _check_library(columns, dataset)
    if all(is_ready(given[variant.technique]) for variant in columns):
        return [from_ready(variant.name, given[variant.technique]) for variant in columns], None
    opened = workspace if isinstance(workspace, Workspace) else stack.enter_context(open_workspace(workspace or "."))
    entries = varied(opened, [variant for variant in columns if given[variant.technique] is None])
    models = _models(opened, where)
    folder = _folder(stack, opened, where)
    vectors = kept(models["embedder"], folder / "vectors.db")
    stack.callback(vectors.close)
    maker = Maker(given, entries, models | {"embedder": vectors})
    columns = [replace(one, chunking=_settled(one.chunking, opened)) for one in columns]
    made: dict[str, Contender] = {}
    for chunking in dict.fromkeys(variant.chunking for variant in columns):
        same = [variant for variant in columns if variant.chunking == chunking]
        if chunking.library:
            _check_home(opened, dataset)
            found = maker.over(library_index(dataset, opened), same, {}, library=opened.library)
        elif lost := _none_to_index_for(early := maker.early(same), same, given):
            found = lost
        else:
            language = opened.settings.language
            index = open_index(dataset, chunking, vectors, folder, language=language, progress=progress)
            stack.callback(index.store.close)
            found = maker.over(index, same, early)
        made |= {one.name: one for one in found}
    return [made[variant.name] for variant in columns], vectors


def _settled(chunking: Chunking, workspace: Workspace) -> Chunking:
    """The chunking in figures, where it is left to the workspace."""
    if not chunking.ingested:
        return chunking
    reading = workspace.reading
    return Chunking(reading.chunk_size, reading.chunk_overlap, reading.fit)


def _check_library(columns: Sequence[Variant], dataset: Dataset) -> None:
    """The library of a workspace holds other documents than a test set: a search of it finds none of those."""
    if dataset.library is None and any(variant.chunking.library for variant in columns):
        raise EvaluationError(
            f"chunk size 'library' searches the workspace's own library, and the test set {dataset.name!r} is another; "
            "give --queries FILE (in Python, read_library), or a chunk size such as 'document' or 500"
        )


def _check_home(workspace: Workspace, dataset: Dataset) -> None:
    home = str(workspace.root.resolve())
    if dataset.library != home:
        raise EvaluationError(
            f"the test set is of the library in {dataset.library!r}, and the workspace is {home!r}; open that one"
        )


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


def _none_to_index_for(
    early: Mapping[str, Any], columns: Sequence[Variant], given: Mapping[str, Any]
) -> list[Contender]:
    """The contenders, where all that would search an index failed before there was one; else nothing."""
    found = []
    for variant in columns:
        if is_ready(given[variant.technique]):
            found.append(from_ready(variant.name, given[variant.technique]))
        elif isinstance(made := early.get(variant.name), Unmade):
            found.append(Contender(variant.name, RegisteredTechnique(variant.name, made), {"use": variant.technique}))
    return found if len(found) == len(columns) else []
