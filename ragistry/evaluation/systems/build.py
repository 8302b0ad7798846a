"""Everything that a comparison asks: models, vectors, one index for each way to cut, and the techniques over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from ragistry.config.yaml_file import YamlFile
from ragistry.errors import ConfigError, EvaluationError
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.systems.entries import Variant, builds_on, checked_entries, resolved, wanted_by
from ragistry.evaluation.systems.index import FOLDER, Chunking, Corpus, DatasetIndex, library_index, open_index
from ragistry.evaluation.systems.programs import attempted, described, is_ready, made_of, program_wants, ready_system
from ragistry.evaluation.systems.record import recording, replaying
from ragistry.evaluation.systems.systems import MODELS, System
from ragistry.evaluation.systems.vectors import KeptVectors, kept
from ragistry.protocols import Technique
from ragistry.techniques.check import Checked
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.techniques.shape import wanted_resources
from ragistry.types import Progress
from ragistry.workspace import Workspace, open_workspace


@dataclass(frozen=True, slots=True)
class Places:
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

    def folder(self, stack: ExitStack, workspace: Workspace) -> Path:
        if self.record is None and self.replay is None:
            return self.cache or workspace.path_of(workspace.settings.data_dir) / FOLDER
        folder = Path(mkdtemp(prefix="ragistry-"))
        stack.callback(rmtree, folder, ignore_errors=True)
        return folder


def build_systems(
    stack: ExitStack,
    variants: Sequence[Variant],
    given: Mapping[str, Any],
    dataset: Dataset,
    workspace: Workspace | str | Path | None,
    places: Places,
    progress: Progress | None,
) -> tuple[list[System], KeptVectors | None]:
    """Everything that is compared, in order, and the vectors that they share; None where nothing embeds.

    ``given``: technique → object, class, function, or None for the one of techniques.yaml. What has to be closed is
    left to ``stack``.
    """
    if dataset.library is None and any(variant.chunking.library for variant in variants):
        raise EvaluationError(
            f"chunk size 'library' searches the workspace's own library, and the test set {dataset.name!r} is another; "
            "give --queries FILE (in Python, read_library), or a chunk size such as 'document' or 500"
        )
    if all(is_ready(given[variant.technique]) for variant in variants):
        return [ready_system(variant.name, given[variant.technique]) for variant in variants], None
    opened = workspace if isinstance(workspace, Workspace) else stack.enter_context(open_workspace(workspace or "."))
    entries = checked_entries(opened, [variant for variant in variants if given[variant.technique] is None])
    variants = [replace(one, chunking=_settled(one.chunking, opened)) for one in variants]
    builder = _Builder(given, *entries, dataset)
    wanted = set().union(*(builder.wanted(variant) for variant in variants))
    fitted = any(variant.chunking.fit for variant in variants)
    models = _models(opened, places, wanted | ({"embedder"} if fitted else set()))
    folder, vectors = places.folder(stack, opened), None
    if "embedder" in wanted:
        vectors = kept(models["embedder"], folder / "vectors.db")
        stack.callback(vectors.close)
        models = models | {"embedder": vectors}
    found: dict[str, System] = {}
    for chunking in dict.fromkeys(variant.chunking for variant in variants):
        same = [variant for variant in variants if variant.chunking == chunking]
        resources, index = dict(models), None
        searching = set().union(*(builder.wanted(variant) for variant in same))
        if chunking.library:
            if dataset.library != (home := str(opened.root.resolve())):
                raise EvaluationError(
                    f"the test set is of the library in {dataset.library!r}, and the workspace is {home!r}; open that "
                    "one"
                )
            index = library_index(dataset, opened)
            resources["library"] = opened.library
        elif "store" in searching:
            counter = models["embedder"] if chunking.fit else None
            of_index = vectors if "embedder" in searching else None
            corpus = Corpus(dataset, chunking, of_index, counter, opened.settings.language)
            index, store = open_index(corpus, folder, progress)
            stack.callback(store.close)
        if index is not None:
            resources["store"] = index.store
        found |= {one.name: one for one in builder.over(index, same, resources)}
    return [found[variant.name] for variant in variants], vectors


@dataclass(frozen=True, slots=True)
class _Builder:
    """Makes the techniques of variants; ``file`` and ``checked`` are techniques.yaml as a grid changes it."""

    given: Mapping[str, Any]
    file: YamlFile
    checked: Checked
    dataset: Dataset

    def wanted(self, variant: Variant) -> set[str]:
        """The resources that a variant asks for."""
        given = self.given[variant.technique]
        if given is None:
            registry = TechniqueRegistry(self.file, self.checked, {})
            refused = not variant.chunking.library and _router_in(registry, variant.entry)
            return set() if refused else wanted_by(registry, variant.entry)
        return set() if is_ready(given) else program_wants(given)

    def over(
        self, index: DatasetIndex | None, variants: Sequence[Variant], resources: Mapping[str, Any]
    ) -> list[System]:
        """Every variant over an index."""
        registry = TechniqueRegistry(self.file, self.checked, resources)
        registry.searches_words = index is not None and "text" in index.store.abilities
        found = []
        for variant in variants:
            given, not_resumed = self.given[variant.technique], ""
            if is_ready(given):
                found.append(ready_system(variant.name, given))
                continue
            if given is None:
                made = attempted(partial(_entry, registry, variant.entry, resources))
                configuration = resolved(registry, variant.entry, resources)
            else:
                made = made_of(given, variant, resources)
                configuration, not_resumed = described(given, made, variant, resources)
            found.append(
                System(
                    variant.name,
                    RegisteredTechnique(variant.name, made),
                    configuration | ({} if index is None else index.configuration),
                    index,
                    own_top_k="top_k" in variant.changes,
                    embeds="embedder" in self.wanted(variant) or variant.chunking.fit,
                    not_resumed=not_resumed,
                )
            )
        return found


def _entry(registry: TechniqueRegistry, name: str, resources: Mapping[str, Any]) -> Technique:
    if "library" not in resources and (router := _router_in(registry, name)):
        raise ConfigError(
            f"technique {router!r} chooses between the collections of a library, and a test set is one; compare it "
            "on the workspace's own library with --queries FILE (in Python, with read_library)"
        )
    return registry.get(name).technique


def _router_in(registry: TechniqueRegistry, name: str) -> str | None:
    """What chooses between collections, of an entry and all that it builds on."""
    for used in builds_on(registry, name):
        wanted = wanted_resources(registry.technique_class(used))
        if "targets" in wanted or wanted.get("library"):
            return used
    return None


def _settled(chunking: Chunking, workspace: Workspace) -> Chunking:
    """The chunking in figures, where it is left to the workspace."""
    if not chunking.ingested:
        return chunking
    reading = workspace.reading
    return Chunking(reading.chunk_size, reading.chunk_overlap, reading.fit)


def _models(workspace: Workspace, places: Places, wanted: set[str]) -> dict[str, Any]:
    """The models that are asked for and that the workspace has, recorded or replayed where that is asked."""
    if places.replay is not None:
        models = replaying(places.replay)
        if "embedder" in wanted and "embedder" not in models:
            raise EvaluationError(
                f"{str(places.replay)!r} has no answer of an embedder; record with --record FILE first"
            )
        return models
    names = [name for name in MODELS if name in wanted]
    parts = {name: part for name in names if (part := getattr(workspace, name, None)) is not None}
    return parts if places.record is None else recording(parts, places.record)
