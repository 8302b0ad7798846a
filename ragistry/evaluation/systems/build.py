"""Build the parts of a comparison: models, vectors, an index for each chunking, and the techniques over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from ragistry.config.folder import ANSWERS
from ragistry.config.settings import LOCAL
from ragistry.errors import ConfigError, EvaluationError, RagistryError, StoreError
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.systems.index import (
    FOLDER,
    Corpus,
    DatasetIndex,
    library_index,
    open_index,
)
from ragistry.evaluation.systems.library_chunks import library_chunks
from ragistry.evaluation.systems.read_only import read_only_library
from ragistry.evaluation.systems.recorded_answers import (
    KINDS,
    AnswerStore,
    RecordedEmbedder,
    kept,
    kept_embedder,
    model_of,
)
from ragistry.evaluation.systems.systems import (
    System,
    Want,
    is_entry,
    is_ready,
    model_in,
    own_top_k,
    parameters_of,
    ready_system,
    resolve,
    router_of,
    wants,
    with_bases,
    with_contenders,
)
from ragistry.evaluation.systems.variants import EMBED_MODEL, Chunking, Variant
from ragistry.protocols import LibraryStore
from ragistry.stores.local.database import FILE as STORE_FILE
from ragistry.techniques.classes import MODELS, resources_for, wanted_resources
from ragistry.techniques.registered import registered
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.text.detection import detect_language
from ragistry.text.languages import AUTO, analysis_language
from ragistry.types import Progress
from ragistry.utils.wording import numbered
from ragistry.workspace import Workspace, open_workspace

EMBEDDER: Want = ("embedder", None)
Basis = tuple[Chunking, str | None]
"""How documents are cut, and the name of the embedder; None for that of the workspace."""
Searchable = dict[Basis, tuple[TechniqueRegistry, DatasetIndex | None]]
"""Basis → the registry of techniques over its index; no index if no technique needs a store."""


@dataclass(frozen=True, slots=True)
class Contenders:
    """What is compared on which test set, and where the answers of models and the indexes are.

    Attributes:
        variants: The columns of the comparison.
        objects: Technique → the object of a program; None: an entry of techniques.yaml.
        dataset: The test set.
        workspace: An open workspace, or its folder.
        cache: Folder of indexes.
        answers: File of answers; True: that of the workspace; False: none, so that all is asked anew.
    """

    variants: Sequence[Variant]
    objects: Mapping[str, Any]
    dataset: Dataset
    workspace: Workspace | str | Path | None = None
    cache: Path | None = None
    answers: Path | bool = True


class Built(NamedTuple):
    """The systems in order, failures with their reasons; the embedder, default technique and answers, if any."""

    systems: list[System]
    errors: dict[str, Exception]
    embedder: RecordedEmbedder | None
    default: str | None
    answers: AnswerStore | None


class Entries(NamedTuple):
    """The contenders as entries of a registry, the resources that each needs, and the errors of those without entry."""

    variants: list[Variant]
    registry: TechniqueRegistry
    wants: dict[str, set[Want]]
    errors: dict[str, Exception]


def build_systems(stack: ExitStack, contenders: Contenders, progress: Progress | None = None) -> Built:
    """Build everything that is compared.

    Args:
        stack: Closes stores and the workspace.
        contenders: What is compared.
        progress: Called while an index is built.

    Raises:
        EvaluationError, ConfigError, ModelError, StoreError: As in `compare`.
    """
    _check(contenders)
    variants, objects, n_results = contenders.variants, contenders.objects, 0
    searchable: Searchable = {}
    wants: dict[str, set[Want]] = {}
    errors: dict[str, Exception] = {}
    embedder = default = answers = None
    workspace, all_ready = contenders.workspace, all(is_ready(objects[one.technique]) for one in variants)
    if not (isinstance(workspace, Workspace) or (workspace is None and all_ready)):
        workspace = stack.enter_context(open_workspace(workspace or "."))
    if isinstance(workspace, Workspace) or contenders.answers is not True:
        answers = AnswerStore(_answers_file(stack, contenders, workspace))
    if not all_ready:
        assert isinstance(workspace, Workspace)
        assert answers is not None
        entries = read_contenders(contenders, workspace)
        variants, _, wants, errors = entries
        n_results, default = workspace.settings.n_results, workspace.registry.default
        searchable, embedder = _open_indexes(stack, contenders, entries, workspace, answers, progress)
    built = Built([], errors, embedder, default, answers)
    for one in (one for one in variants if one.name not in errors):
        try:
            if is_ready(objects[one.technique]):
                built.systems.append(ready_system(one.name, objects[one.technique], answers))
            else:
                by_vectors = EMBEDDER in wants[one.name]
                searched, technique = searchable[one.chunking, one.embed_model], objects[one.technique]
                built.systems.append(_system(*searched, one, technique, by_vectors=by_vectors, n_results=n_results))
        except Exception as error:  # noqa: BLE001, third-party code: the report shows its exceptions
            built.errors[one.name] = error
    return built


def read_contenders(contenders: Contenders, workspace: Workspace) -> Entries:
    """Make entries of the contenders, and find out which resources each needs."""
    objects = contenders.objects
    settled = [replace(one, chunking=_settled(one.chunking, workspace)) for one in contenders.variants]
    registry, variants, wrong = with_contenders(workspace.registry, settled, objects)
    registry = registry.with_resources({})
    registry.searches_words = True
    errors = {one.name: wrong[one.entry] for one in variants if one.entry in wrong}
    wants = {}
    for one in variants:
        given = objects[one.technique]
        if one.embed_model is not None and (given is None or is_entry(given)):
            _check_states_no_model(registry, one)
        if not is_ready(given) and one.name not in errors:
            wants[one.name] = _wanted(registry, one, given)
    return Entries(variants, registry, wants, errors)


def _answers_file(stack: ExitStack, contenders: Contenders, workspace: Workspace | None) -> Path:
    if isinstance(contenders.answers, Path):
        return contenders.answers
    if workspace is not None and contenders.answers:
        return workspace.path_of(workspace.settings.data_dir) / ANSWERS
    return _temporary(stack) / "answers.db"


def _temporary(stack: ExitStack) -> Path:
    return Path(stack.enter_context(TemporaryDirectory(prefix="ragistry-", ignore_cleanup_errors=True)))


def _open_indexes(
    stack: ExitStack,
    contenders: Contenders,
    entries: Entries,
    workspace: Workspace,
    answers: AnswerStore,
    progress: Progress | None,
) -> tuple[Searchable, RecordedEmbedder | None]:
    """Open the index of each basis; return it with its registry of techniques, and the first embedder."""
    dataset, in_workspace = contenders.dataset, contenders.answers is True
    unready = [one for one in entries.variants if one.name in entries.wants]
    wanted_models = set[Want]()
    for one in unready:
        needed = entries.wants[one.name] | ({EMBEDDER} if one.chunking.fit else set())
        wanted_models |= {("embedder", one.embed_model) if want == EMBEDDER else want for want in needed}
    models = _models(workspace, wanted_models, answers)
    embedders: dict[str | None, Any] = models.pop("embedders")
    if "embedder" in models:
        embedders[None] = models.pop("embedder")
    folder = contenders.cache or workspace.path_of(workspace.settings.data_dir) / FOLDER
    if not in_workspace:  # A file has every answer, or every question is asked anew: also those of the index.
        folder = _temporary(stack)
    language = _language(dataset, workspace.settings.language)
    found: Searchable = {}
    for basis in dict.fromkeys((one.chunking, one.embed_model) for one in unready):
        chunking, name = basis
        sharing = [one for one in unready if (one.chunking, one.embed_model) == basis]
        wanted = set[Want]().union(*(entries.wants[one.name] for one in sharing))
        resources: dict[str, Any] = models | ({"embedder": embedders[name]} if name in embedders else {})
        index = None
        if chunking.library:
            if dataset.library != (home := str(workspace.root.resolve())):
                raise EvaluationError(
                    f"the test set is the library of {dataset.library!r}, but the workspace is {home!r}; use the same"
                )
            index = library_index(dataset, workspace)
            resources["library"] = read_only_library(workspace.library)
        elif "store" in {name for name, _ in wanted}:
            vectors = embedders[name] if EMBEDDER in wanted else None
            counter = embedders[name] if chunking.fit else None
            library = _library(workspace)
            known = library if vectors is not None and in_workspace else None
            own = library_chunks(dataset, library) if chunking.ingested and library is not None else {}
            corpus = Corpus(dataset, chunking, vectors, counter, language, known, own)
            index, store = open_index(corpus, folder, progress)
            stack.callback(store.close)
            index = replace(index, cost=replace(index.cost, embed_model=name or ""))
        if index is not None:
            resources["store"] = index.store
        registry = entries.registry.with_resources(resources)
        registry.searches_words = index is not None and "text" in index.store.abilities
        registry.language = language
        found[basis] = registry, index
    return found, next(iter(embedders.values()), None)


def _library(workspace: Workspace) -> LibraryStore | None:
    """Return the store of the workspace; None if it has none yet, or one that cannot be opened."""
    settings = workspace.settings
    if settings.store == LOCAL and not (workspace.path_of(settings.data_dir) / STORE_FILE).is_file():
        return None
    try:
        return workspace.store
    except StoreError:
        return None


def _language(dataset: Dataset, setting: str) -> str:
    """Return the analysis of words; for ``auto``, that of the detected language of the corpus."""
    if setting != AUTO:
        return setting
    detected = detect_language([document.whole for document in dataset.corpus])
    return "english" if detected is None else analysis_language(detected.language)


def _check(contenders: Contenders) -> None:
    dataset = contenders.dataset
    for one in contenders.variants:
        technique = contenders.objects[one.technique]
        if not (technique is None or is_entry(technique) or is_ready(technique) or callable(technique)):
            raise EvaluationError(
                f"technique {one.technique!r} is {technique!r:.80}; it must be a name of techniques.yaml, an entry "
                "such as {'use': 'bm25'}, an object with retrieve(query), a class or function that makes one, or a run"
            )
        if one.changes and not (technique is None or is_entry(technique) or isinstance(technique, type)):
            raise EvaluationError(
                f"the grid changes {one.technique!r}, which is not a class; pass its class or an entry"
            )
        if one.chunking.library and dataset.library is None:
            raise EvaluationError(
                f"chunk size 'library' searches the library of the workspace, but the test set {dataset.name!r} has "
                "other documents; use --queries FILE (in Python, read_library), or a chunk size such as 'document'"
            )
        if one.chunking.library and dataset.synthetic:
            raise EvaluationError(
                f"chunk size 'library' shows names and titles, which may give away the answers of the "
                f"{numbered(len(dataset.synthetic), '[query|queries]')} that a program made; leave out --chunk-size "
                "(in Python, chunk_size), so that an index with hidden names is searched"
            )


def _check_states_no_model(registry: TechniqueRegistry, variant: Variant) -> None:
    """Raise `EvaluationError` if an entry or one of its bases states a model, which its indexes would not have."""
    for name in with_bases(registry, variant.entry):
        if stated := registry.entry(name).config.get("embedding_model"):
            raise EvaluationError(
                f"technique {name!r} has embedding_model: {stated!r}, so it cannot be compared with other embedders; "
                "remove that key, or --embed-model (in Python, embed_models)"
            )


def embedding_techniques(contenders: Contenders, workspace: Workspace) -> set[str]:
    """Return the techniques of the variants that use vectors."""
    wants = read_contenders(contenders, workspace).wants
    return {one.technique for one in contenders.variants if EMBEDDER in wants.get(one.name, ())}


def _settled(chunking: Chunking, workspace: Workspace) -> Chunking:
    """Fill in the values of the workspace."""
    reading = workspace.reading
    if not chunking.ingested:
        return chunking
    return replace(chunking, size=reading.chunk_size, overlap=reading.chunk_overlap, fit=reading.fit)


def _wanted(registry: TechniqueRegistry, variant: Variant, given: Any) -> set[Want]:
    """Return the resources that a variant and its bases need; none if it cannot be built."""
    if _is_function(given):
        return {(name, None) for name in parameters_of(given)}
    if not variant.chunking.library and router_of(registry, variant.entry):
        return set()
    return set[Want]().union(*(wants(registry, name) for name in with_bases(registry, variant.entry)))


def _is_function(given: Any) -> bool:
    """Return whether a technique from a program is a function that makes one."""
    return not (given is None or is_entry(given) or isinstance(given, type))


def _models(workspace: Workspace, wanted: set[Want], answers: AnswerStore) -> dict[str, Any]:
    """Return the needed models of the workspace as resources whose answers are kept."""
    found: dict[str, Any] = {f"{kind}s": {} for kind in ("embedder", *MODELS)}
    for kind, name in sorted((want for want in wanted if want[0] in KINDS), key=str):
        if kind == "embedder":
            try:
                live = workspace.embedder_named(name) if name else workspace.embedder
                model: Any = kept_embedder(answers, name or workspace.settings.embed_model, live)
            except RagistryError as error:
                if name is None:
                    raise
                raise EvaluationError(f"cannot compare {name!r}: {error}") from error
        else:
            given = model_in(workspace.registry.resources, (kind, name))
            if given is None:  # no such model is configured
                continue
            model = kept(answers, given)
        if name is None:
            found[kind] = model
        else:
            found[f"{kind}s"][name] = model
    return found | ({"encoders": workspace.models.encoders} if ("encoders", None) in wanted else {})


def _system(
    registry: TechniqueRegistry,
    index: DatasetIndex | None,
    variant: Variant,
    given: Any,
    *,
    by_vectors: bool,
    n_results: int,
) -> System:
    """Build a technique over an index. Raises errors of its own code, and `ConfigError` if it is not a technique."""
    search_top_k: int | None
    if _is_function(given):
        user, wanted = f"technique {variant.technique!r}", wanted_resources(given, 0)
        made = given(**resources_for(user, wanted, {}, registry.resources, {}))
        search_top_k = own_top_k(registered(variant.name, made).technique)
        configuration: dict[str, Any] = {"use": getattr(given, "__qualname__", "a callable object")}
    elif not variant.chunking.library and (router := router_of(registry, variant.entry)):
        raise ConfigError(
            f"technique {router!r} chooses between collections, and a test set is a single one; compare it on the "
            "library of the workspace with --queries FILE (in Python, read_library)"
        )
    else:
        entered = registry.get(variant.entry)
        made, search_top_k = entered, None if entered.sets_top_k else n_results
        configuration = resolve(registry, variant.entry)
    embeds = variant.chunking.fit or by_vectors
    if embeds and variant.embed_model is not None:
        # A technique without vectors may search chunks that were cut to the limit of a model.
        configuration |= {EMBED_MODEL if by_vectors else "fitted_to": model_of(registry.resources["embedder"])}
    return System(
        variant.name,
        registered(variant.name, made),  # An entry keeps its phrases and exclusions, as in a search.
        configuration | ({} if index is None else index.configuration),
        index,
        own_top_k="top_k" in variant.changes,
        search_top_k=search_top_k,
    )
