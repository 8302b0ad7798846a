"""Build the parts of a comparison: models, vectors, an index for each chunking, and the techniques over them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ragistry.chunking.breadcrumb import KEY as BREADCRUMB
from ragistry.chunking.breadcrumb import SENTENCE_AFTER, SENTENCE_BEFORE, TABLE_HEADER, breadcrumb
from ragistry.chunking.joined import Span, joined_text, spans
from ragistry.chunking.places import KEYS
from ragistry.config.folder import ANSWERS
from ragistry.config.settings import LOCAL
from ragistry.errors import ConfigError, EvaluationError, RagistryError, StoreError
from ragistry.evaluation.data.checks import contains_words
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.data.library import sources_in
from ragistry.evaluation.data.testsets import without
from ragistry.evaluation.systems.index import (
    FOLDER,
    Corpus,
    DatasetIndex,
    library_index,
    open_index,
    read_only_library,
)
from ragistry.evaluation.systems.recorded_answers import (
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
from ragistry.types import Chunk, Document, Progress
from ragistry.utils.wording import numbered
from ragistry.workspace import Workspace, open_workspace

EMBEDDER: Want = ("embedder", None)
Basis = tuple[Chunking, str | None]
"""How documents are cut, and the name of the embedder; None for that of the workspace."""


@dataclass
class Contenders:
    """What is compared on which test set: given, then built over an index for each basis.

    Attributes:
        objects: Technique → the object of a program; None: an entry of techniques.yaml.
        dataset: The test set.
        workspace: An open workspace, or its folder.
        cache: Folder of indexes.
        answers: File of answers; True: that of the workspace; False: none, so that all is asked anew.
        stack: Closes stores and the workspace.
        progress: Called while an index is built.
        wants: Name of a variant → the resources that it and its bases need.
        systems: The built systems, in the order of the variants.
        errors: Name of a variant that cannot be built → why.
        kept: The kept answers of models, if there are any.
        embedder: The first embedder, if one is used.
        default: The default technique of the workspace, if one is open.
    """

    objects: Mapping[str, Any]
    dataset: Dataset
    workspace: Workspace | str | Path | None
    cache: Path | None
    answers: Path | bool
    stack: ExitStack
    progress: Progress | None = None
    wants: dict[str, set[Want]] = field(default_factory=dict)
    systems: list[System] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)
    kept: AnswerStore | None = None
    embedder: RecordedEmbedder | None = None
    default: str | None = None

    def embedding(self, variants: Sequence[Variant]) -> set[str]:
        """Return the techniques that use vectors."""
        self._read(variants)
        return {one.technique for one in variants if EMBEDDER in self.wants.get(one.name, ())}

    def build(self, variants: Sequence[Variant]) -> None:
        """Build everything that is compared.

        Raises:
            EvaluationError, ConfigError, ModelError, StoreError: As in `compare`.
        """
        _check(self, variants)
        all_ready = all(is_ready(self.objects[one.technique]) for one in variants)
        home = self._opened() if not all_ready or self.workspace is not None else None
        if home is not None or self.answers is not True:
            file = self.answers
            if home is not None and file is True:
                file = home.path_of(home.settings.data_dir) / ANSWERS
            self.kept = AnswerStore(file if isinstance(file, Path) else self._temporary() / "answers.db")
        searched: dict[Basis, tuple[TechniqueRegistry, DatasetIndex | None]] = {}
        if not all_ready:
            variants, registry = self._read(variants)
            self.default = self._opened().registry.default
            searched = self._searched([one for one in variants if one.name in self.wants], registry)
        for one in (one for one in variants if one.name not in self.errors):
            given = self.objects[one.technique]
            try:
                if is_ready(given):
                    self.systems.append(ready_system(one.name, given, self.kept))
                else:
                    self.systems.append(self._system(one, *searched[one.chunking, one.embed_model]))
            except Exception as error:  # noqa: BLE001, third-party code: the report shows its exceptions
                self.errors[one.name] = error

    def _opened(self) -> Workspace:
        if not isinstance(self.workspace, Workspace):
            self.workspace = self.stack.enter_context(open_workspace(self.workspace or "."))
        return self.workspace

    def _read(self, variants: Sequence[Variant]) -> tuple[list[Variant], TechniqueRegistry]:
        """Make entries of the variants, and find out which resources each needs."""
        workspace = self._opened()
        read = workspace.reading
        sizes: dict[str, Any] = {"size": read.chunk_size, "overlap": read.chunk_overlap, "fit": read.fit}
        settled = [
            replace(one, chunking=replace(one.chunking, **sizes)) if one.chunking.ingested else one for one in variants
        ]
        registry, entered, wrong = with_contenders(workspace.registry, settled, self.objects)
        registry = registry.with_resources({})
        registry.searches_words = True
        self.errors = {one.name: wrong[one.entry] for one in entered if one.entry in wrong}
        self.wants = {}
        for one in entered:
            given = self.objects[one.technique]
            # Its indexes would not have the model that an entry or one of its bases states.
            is_named = one.embed_model is not None and (given is None or is_entry(given))
            for name in with_bases(registry, one.entry) if is_named else ():
                if stated := registry.entry(name).config.get("embedding_model"):
                    raise EvaluationError(
                        f"technique {name!r} has embedding_model: {stated!r}, so it cannot be compared with other "
                        "embedders; remove that key, or --embed-model (in Python, embed_models)"
                    )
            if not is_ready(given) and one.name not in self.errors:
                if _is_function(given):
                    wanted: set[Want] = {(name, None) for name in parameters_of(given)}
                elif not one.chunking.library and router_of(registry, one.entry):
                    wanted = set()  # it cannot be built
                else:
                    wanted = set[Want]().union(*(wants(registry, name) for name in with_bases(registry, one.entry)))
                self.wants[one.name] = wanted
        return entered, registry

    def _temporary(self) -> Path:
        return Path(self.stack.enter_context(TemporaryDirectory(prefix="ragistry-", ignore_cleanup_errors=True)))

    def _searched(
        self, variants: Sequence[Variant], registry: TechniqueRegistry
    ) -> dict[Basis, tuple[TechniqueRegistry, DatasetIndex | None]]:
        """Return a registry of techniques for each basis, and the index that they search, if one needs a store."""
        dataset, workspace, in_workspace = self.dataset, self._opened(), self.answers is True
        embedding = [one for one in variants if one.chunking.fit or EMBEDDER in self.wants[one.name]]
        embedders = {name: self._embedder(name) for name in sorted({one.embed_model for one in embedding}, key=str)}
        self.embedder = next(iter(embedders.values()), None)
        models = self._models(set[Want]().union(*(self.wants[one.name] for one in variants)))
        folder = self.cache or workspace.path_of(workspace.settings.data_dir) / FOLDER
        if not in_workspace:  # A file has every answer, or every question is asked anew: also those of the index.
            folder = self._temporary()
        language = _language(dataset, workspace.settings.language)
        found: dict[Basis, tuple[TechniqueRegistry, DatasetIndex | None]] = {}
        for basis in dict.fromkeys((one.chunking, one.embed_model) for one in variants):
            chunking, name = basis
            sharing = [one for one in variants if (one.chunking, one.embed_model) == basis]
            wanted = set[Want]().union(*(self.wants[one.name] for one in sharing))
            resources: dict[str, Any] = models | ({"embedder": embedders[name]} if name in embedders else {})
            index = None
            if chunking.library:
                if dataset.library != (home := str(workspace.root.resolve())):
                    raise EvaluationError(
                        f"the test set is the library of {dataset.library!r}, but the workspace is {home!r}; use the "
                        "same"
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
                index, store = open_index(corpus, folder, self.progress)
                self.stack.callback(store.close)
                index = replace(index, cost=replace(index.cost, embed_model=name or ""))
            if index is not None:
                resources["store"] = index.store
            own_registry = registry.with_resources(resources)
            own_registry.searches_words = index is not None and "text" in index.store.abilities
            own_registry.language = language
            found[basis] = own_registry, index
        return found

    def _embedder(self, name: str | None) -> RecordedEmbedder:
        """Return the embedder of a name, or that of the workspace, with kept answers."""
        workspace = self._opened()
        assert self.kept is not None
        try:
            live = workspace.embedder_named(name) if name else workspace.embedder
            return kept_embedder(self.kept, name or workspace.settings.embed_model, live)
        except RagistryError as error:
            if name is None:
                raise
            raise EvaluationError(f"cannot compare {name!r}: {error}") from error

    def _models(self, wanted: set[Want]) -> dict[str, Any]:
        """Return the other needed models of the workspace as resources whose answers are kept."""
        workspace = self._opened()
        assert self.kept is not None
        found: dict[str, Any] = {f"{kind}s": {} for kind in MODELS}
        for kind, name in sorted((want for want in wanted if want[0] in MODELS), key=str):
            given = model_in(workspace.registry.resources, (kind, name))
            if given is None:  # no such model is configured
                continue
            if name is None:
                found[kind] = kept(self.kept, given)
            else:
                found[f"{kind}s"][name] = kept(self.kept, given)
        return found | ({"encoders": workspace.models.encoders} if ("encoders", None) in wanted else {})

    def _system(self, variant: Variant, registry: TechniqueRegistry, index: DatasetIndex | None) -> System:
        """Build a technique over an index. Raises errors of its own code, and `ConfigError` if it cannot be one."""
        given, by_vectors = self.objects[variant.technique], EMBEDDER in self.wants[variant.name]
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
            made, search_top_k = entered, None if entered.sets_top_k else self._opened().settings.n_results
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


def _check(contenders: Contenders, variants: Sequence[Variant]) -> None:
    dataset = contenders.dataset
    for one in variants:
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


def _is_function(given: Any) -> bool:
    """Return whether a technique from a program is a function that makes one."""
    return not (given is None or is_entry(given) or isinstance(given, type))


# --- Chunks of the library for a synthetic test set ---
#
# A comparison on the workspace's own documents then searches the chunks that a search finds, with their headings and
# vectors. Only the words of queries are removed, from the text as `testset make` removed them, and from titles and
# headings.


HEADINGS = ("title", "section", "chapter", "sheet", "part")
"""Metadata with names that may be queries, besides ``heading_context``."""
CHUNK_KEYS = frozenset(
    {
        *(*HEADINGS, *KEYS, BREADCRUMB, TABLE_HEADER, SENTENCE_BEFORE, SENTENCE_AFTER),
        *("start", "end", "has_code", "language", "token_count"),
    }
)
"""Metadata of a chunk that a test set keeps; names, tags and descriptions may give an answer away."""


def library_chunks(dataset: Dataset, store: LibraryStore) -> dict[str, list[Chunk]]:
    """Return the chunks of each document that the library has in the version of the test set.

    Documents that were changed after the test set was made, and those of no library, are missing.

    Args:
        dataset: A test set. The result is empty if a program did not make its queries, and it is not a library.
        store: The store of the library.
    """
    if not dataset.synthetic and dataset.library is None:
        return {}
    texts = {one.id: one.text for one in dataset.corpus if not one.title}
    queries: defaultdict[str, list[str]] = defaultdict(list)  # that were made from each document
    cut_out: defaultdict[str, set[Span]] = defaultdict(set)  # the parts that were cut out for them
    for query in dataset.synthetic.keys() & dataset.judged.keys():
        for document, grade in dataset.qrels[query].items():
            if grade > 0:
                queries[document].append(dataset.queries[query])
                cut_out[document].update((start, end) for start, end in dataset.synthetic[query].get("cuts", ()))
    found = {}
    for name, chunks in sources_in(store):
        if name not in texts:
            continue
        whole, own, cuts = joined_text(chunks), queries[name], sorted(cut_out[name])
        known = spans(chunks)
        if without(whole, cuts) == texts[name] and (known or not cuts):
            found[name] = _chunks(chunks, known or [], cuts, own)
    return found


def _chunks(chunks: Sequence[Document], known: Sequence[Span], cuts: Sequence[Span], queries: list[str]) -> list[Chunk]:
    """Return the chunks without the queries; chunks that have no other text are dropped."""
    first, found = min(known)[0] if known else 0, list[Chunk]()
    for chunk, span in zip(chunks, known or [(0, 0)] * len(chunks), strict=True):
        text, metadata = chunk.content, _without_queries(chunk.metadata, queries)
        if cuts:
            start = span[0] - first
            inside = [(max(0, low - start), min(len(text), high - start)) for low, high in cuts]
            rest = without(text, [cut for cut in inside if cut[0] < cut[1]])
            start -= sum(min(high, start) - low for low, high in cuts if low < start)
            if rest != text:
                start += len(rest) - len(rest.lstrip())
                text = rest.strip()
            metadata |= {"start": first + start, "end": first + start + len(text)}
        if text:
            found.append(Chunk(text, metadata | {"chunk_index": len(found)}))
    return found


def _without_queries(metadata: Mapping[str, Any], queries: Sequence[str]) -> dict[str, Any]:
    """Return the metadata that a test set keeps, without titles and headings that contain the words of a query."""
    found = {key: value for key, value in metadata.items() if key in CHUNK_KEYS}
    lines = [*map(found.get, (*HEADINGS, "heading_context")), breadcrumb(found)]
    if not any(_gives_away(line, queries) for line in lines):
        return found
    headings = str(found.pop("heading_context", "")).split(" > ")
    kept = " > ".join(heading for heading in headings if not _gives_away(heading, queries))
    found = {key: value for key, value in found.items() if key not in HEADINGS or not _gives_away(value, queries)}
    if kept and not _gives_away(kept, queries):
        found["heading_context"] = kept
    line = breadcrumb(found) if found.pop(BREADCRUMB, None) else ""
    return found | ({BREADCRUMB: line} if line and not _gives_away(line, queries) else {})


def _gives_away(heading: Any, queries: Sequence[str]) -> bool:
    return isinstance(heading, str) and any(contains_words(query, heading) for query in queries)
