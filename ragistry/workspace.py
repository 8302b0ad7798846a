"""A workspace: a folder with a configuration and its data, and every part built once, on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ragistry.config.collections import CollectionsFile
from ragistry.config.folder import ANSWERS, DERIVED, REPOSITORIES, folder_of, missing
from ragistry.config.models import read_models
from ragistry.config.problems import Problems
from ragistry.config.resolve import Resolved, resolve, store_entry
from ragistry.config.settings import CONFIG_FOLDER, DEFAULTS, is_there, text_of
from ragistry.errors import ConfigError, InvalidConfigError, RagistryError, SourceNotFoundError, StoreError
from ragistry.library.ingest.source import ReadOptions
from ragistry.library.search_methods import WorkspaceMethods
from ragistry.library.service import DocumentService
from ragistry.models.queries import close_part
from ragistry.models.registry import EmbedderSettings, Models, choose_embedder, chunking_of, names_of, uses_ollama
from ragistry.plugins import find_modules_in, resolve_object
from ragistry.protocols import Embedder, Generator, LibraryStore
from ragistry.readers.extracted import ExtractLimits
from ragistry.readers.formats import AddedReader, has_tesseract
from ragistry.stores.registry import StoreChoice, choose_store, open_store
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.text.languages import AUTO
from ragistry.types import EmbedderFingerprint, Where, html_table
from ragistry.utils.fingerprints import differences

if TYPE_CHECKING:
    from ragistry.library.remote.technique import ArchiveTargets
    from ragistry.library.repositories.repository import Repositories
    from ragistry.library.targets import TargetNames, WorkspaceTargets
    from ragistry.models.token_file import TokenEmbedder, TokenFile
    from ragistry.techniques.routing.route import Route

Part = TypeVar("Part")


def open_workspace(
    path: str | Path = ".", *, exclusive: bool = False, existing: bool = False, **settings: Any
) -> Workspace:
    """Open the workspace in a folder; without a ``config`` folder, the packaged defaults are used.

    ``exclusive``: keep the write lock while the workspace is open, as a server does. ``existing``: refuse a folder with
    neither configuration nor data, in which a library would otherwise begin. ``settings`` override the environment and
    the files (`ragistry.config.settings.Settings` lists them).
    Raises `InvalidConfigError` with every problem of the files, except that a mistake in an entry of techniques.yaml
    alone breaks that technique only; `SourceNotFoundError` if the folder does not exist, or with
    ``existing`` contains no workspace; and `ConfigError` if it cannot be opened.
    """
    root = Path(path)
    if not _is_folder(root):
        if root.exists():
            raise SourceNotFoundError(f"no folder, but a file: {str(path)!r}; name the folder of the workspace")
        raise SourceNotFoundError(f"no such folder: {str(path)!r}; make it, or run `ragistry init {path}`")
    find_modules_in(root.resolve())  # `use: "module:Class"` may name a file of the workspace
    problems, resources = Problems(), _Resources()
    resolved = resolve(root, settings, problems=problems)
    workspace = resources.workspace = Workspace(root, resolved, exclusive=exclusive)
    given: dict[str, Any] = {"ollama_host": workspace.settings.ollama_host, "runtime": workspace.settings.runtime}
    try:
        # Built now, so that every error of the configuration is reported when the workspace is opened.
        for part, needed in (("embedder", "embed_url"), ("reading", "chunk_size")):
            with problems.gather():
                if not problems.names([needed]):  # else an error would be about the default in its place
                    getattr(workspace, part)
        with problems.gather():
            workspace._store_choice = choose_store(store_entry(root, resolved), problems)
        with problems.gather():
            if workspace.settings.keep_token_vectors:
                given["token_file"] = _token_file(folder_of(root, workspace.settings.data_dir))
            workspace.models = resources.models = Models(read_models(root), **given)
        with problems.gather():
            registry = TechniqueRegistry.load(_techniques_file(root), resources, keep_broken=True)
            if problems.lines:
                problems.lines += [line for lines in registry.mistakes.values() for line in lines]
        problems.report()
        if existing and (problem := missing(root, workspace.settings)):
            raise SourceNotFoundError(problem)
        workspace.registry = registry
        registry.searches_words = "text" in workspace._store_choice.abilities
        registry.language = workspace.settings.language
        registry.embedder_of = workspace._recorded_embedder
        registry.check_agreement(workspace.settings.embed_model, workspace.reading.chunk_size)
    except BaseException:
        workspace.close()
        raise
    return workspace


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError as error:
        raise ConfigError(f"the folder {str(path)!r} cannot be opened: {error.strerror}; give another") from error


def _token_file(data: Path) -> TokenFile:
    from ragistry.models.token_file import TokenFile

    return TokenFile(data / DERIVED / "tokens.db")


def _techniques_file(root: Path) -> Path:
    path = root / CONFIG_FOLDER / "techniques.yaml"
    return path if is_there(path) else DEFAULTS / "techniques.yaml"


def _kept(build: Callable[[Workspace], Part]) -> Callable[[Workspace], Part]:
    """Build a part of a workspace on first use, and keep it until the workspace is closed."""

    @wraps(build)
    def part(workspace: Workspace) -> Part:
        return workspace._part(build.__name__, partial(build, workspace))

    return part


class Workspace(WorkspaceMethods):
    """The composition root, built by `open_workspace`. Close it, or use it in a ``with`` block.

    ``registry``: the techniques of ``config/techniques.yaml``. ``models``: the generators and rerankers of
    ``config/models.yaml``.
    """

    registry: TechniqueRegistry
    _store_choice: StoreChoice

    def __init__(self, root: Path, resolved: Resolved, *, exclusive: bool = False) -> None:
        self.root = root
        self.models = Models()
        self.exclusive = exclusive
        self.settings = resolved.settings
        self.origins = resolved.origins
        self._files = resolved.files
        self._parts: dict[str, Any] = {}
        self._lock = RLock()
        self._closed = False

    def __repr__(self) -> str:
        return f"Workspace({str(self.root)!r}, {len(self.registry.names())} techniques)"

    def _repr_html_(self) -> str:
        rows = [
            [row["name"], row["description"], f"{row['source_count']:,}", f"{row['chunk_count']:,}"]
            for row in self.library.list_collections()
        ]
        return html_table([f"Workspace {self.root}"], ["collection", "description", "sources", "chunks"], rows)

    @property
    @_kept
    def embedder(self) -> Embedder:
        """The embedder that ``embed_model`` names."""
        settings = self.settings
        try:
            return self._choose_embedder(settings.embed_model)
        except ConfigError as error:
            address = "ollama_host" if uses_ollama(settings.embed_model) else "embed_url"
            origin = self.origins[next((name for name in ("embed_model", "runtime") if name in str(error)), address)]
            raise InvalidConfigError(f"{origin}: {error}") from error

    @property
    @_kept
    def store(self) -> LibraryStore:
        """The store of chunks and vectors."""
        return self.open_store(self._store_choice)

    @property
    @_kept
    def library(self) -> DocumentService:
        """The collections, to ingest and search."""
        from ragistry.library.asked import FILE as QUESTIONS
        from ragistry.library.asked import QuestionLog
        from ragistry.models.token_file import TokenVectorKeeper

        collections = CollectionsFile(self.root, lambda name: self.target_names.used_by(name, but="collection"))
        folder = self.path_of(self.settings.data_dir)
        token_file = self._part("token_file", lambda: _token_file(folder))  # `close` closes parts
        keeper = TokenVectorKeeper(token_file, self._token_models() if self.settings.keep_token_vectors else ())
        return DocumentService(
            collections, self.store, self.embedder, self.registry, self.reading, self.settings.n_results,
            after_write=partial(keeper.follow, self.store) if self.settings.keep_token_vectors else keeper.discard,
            after_erase=partial(self._remove_answers, folder / ANSWERS), generator=self._default_generator,
            questions=QuestionLog(folder / QUESTIONS) if self.settings.log_questions else None,
        )  # fmt: skip

    @property
    @_kept
    def reading(self) -> ReadOptions:
        """How sources are read and cut."""
        settings = self.settings
        size, overlap = chunking_of(settings.embed_model)
        if settings.chunk_size != "auto":
            # a default overlap keeps its share of the chunk
            size, overlap = settings.chunk_size, settings.chunk_size * overlap // size
        if settings.chunk_overlap != "auto":
            overlap = settings.chunk_overlap
        if overlap >= size:
            raise InvalidConfigError(
                f"{self.origins['chunk_overlap']}: chunk_overlap: {overlap} is not below chunk_size {size} "
                f"({self.origins['chunk_size']}); make it smaller"
            )
        limits = settings.limits
        return ReadOptions(
            size,
            overlap,
            settings.chunk_size == "auto",
            settings.pdf_engine,
            ExtractLimits(limits.seconds, limits.pages, limits.megabytes * 1_000_000, limits.characters, limits.memory),
            settings.index_headings,
            settings.language,
            settings.language if settings.ocr == "auto" and has_tesseract() else "",
            readers={suffix: self._reader(suffix, name) for suffix, name in settings.readers.items()},
        )

    @property
    def folder(self) -> Path:
        """The folder for data that techniques derive from the store; created on the first write."""
        return self.path_of(self.settings.data_dir) / DERIVED

    @property
    @_kept
    def repositories(self) -> Repositories:
        """The documentation repositories, each in its own store."""
        from ragistry.library.repositories.repository import Repositories

        names = self.target_names
        return Repositories(names.repositories, self.embedder, self.reading, partial(names.used_by, but="repository"))

    @property
    @_kept
    def archives(self) -> ArchiveTargets:
        """The archives of vector_stores.yaml: collections of other Chroma servers."""
        targets: ArchiveTargets = resolve_object("ragistry.library.remote.technique:ArchiveTargets")(
            self.settings.archives
        )
        return targets

    @property
    @_kept
    def targets(self) -> WorkspaceTargets:
        """The targets of routing: collections, repositories, archives, and those passed to its ``add``."""
        from ragistry.library.targets import WorkspaceTargets

        targets = WorkspaceTargets(self.library, self.repositories, self.technique_over)
        targets.add(*(self.archives.targets() if self.settings.archives else ()))
        return targets

    @property
    @_kept
    def target_names(self) -> TargetNames:
        """The names of the collections, repositories and archives."""
        from ragistry.library.targets import TargetNames

        folder = self.path_of(self.settings.data_dir) / REPOSITORIES
        return TargetNames(CollectionsFile(self.root), folder, self.settings.archives)

    def technique(self, name: str) -> RegisteredTechnique:
        """Return a technique of techniques.yaml by its name. Raises `UnknownTechniqueError`.

        Its ``retrieve`` searches the whole store, including sources whose collection is no longer in documents.yaml;
        `search` is limited to the defined collections.
        """
        return self.registry.get(name)

    def build(self, entry: Mapping[str, Any], *, name: str = "built") -> RegisteredTechnique:
        """Build a technique from an entry in Python instead of techniques.yaml; see `TechniqueRegistry.build`.

        ``workspace.build({"use": "rerank", "base": {"use": "hybrid", "bases": ["bm25", "naive"]}})``. Like `technique`,
        it searches the whole store.
        """
        return self.registry.build(entry, name=name)

    def route(self, query: str, technique: str | None = None, where: Where | None = None) -> Route:
        """Explain which targets a router would search for a query, without a search.

        Args:
            query: The query.
            technique: Name of a routing technique; None for the first one.
            where: Condition on metadata.
        """
        from ragistry.techniques.routing.technique import routing_technique

        return routing_technique(self.registry, technique)[1].route(query, where)

    def close(self) -> None:
        """Close every opened part."""
        with self._lock:
            self._closed = True
            for part in (*self._parts.values(), self.models):
                close_part(part)
            self._parts.clear()

    def path_of(self, folder: str) -> Path:
        """Return a folder from the settings; relative paths are relative to the workspace. Raises `ConfigError`."""
        return folder_of(self.root, folder)

    def _part(self, name: str, build: Callable[[], Part]) -> Part:
        with self._lock:
            if self._closed:
                raise StoreError(f"the workspace {str(self.root)!r} is closed; open it again")
            if name not in self._parts:
                self._parts[name] = build()
            return cast(Part, self._parts[name])

    def embedder_named(self, name: str) -> Embedder:
        """Return another embedder, which `close` closes. ``name`` is a value of the setting ``embed_model``.

        Raises `ConfigError`.
        """
        return self._part(f"embedder {name}", partial(self._choose_embedder, name))

    def _choose_embedder(self, name: str) -> Embedder:
        settings = self.settings
        output = settings.embed_output if name == settings.embed_model else None
        values = EmbedderSettings(
            settings.embed_url, text_of(settings.embed_api_key), settings.ollama_host, self.root.resolve(),
            settings.embed_timeout, settings.runtime, self.exclusive, output,
        )  # fmt: skip
        return choose_embedder(name, values)

    def _recorded_embedder(self, recorded: EmbedderFingerprint) -> Embedder | None:
        """Return the embedder of that fingerprint if this workspace can name it, such as a folder in ``models``."""
        for name in names_of(recorded):
            with suppress(RagistryError):
                if not differences(recorded, (found := self.embedder_named(name)).fingerprint):
                    return found
        return None

    def open_store(self, choice: StoreChoice) -> LibraryStore:
        """Return a store with the data folder, language and name of this workspace. The caller closes it.

        Raises `StoreError`.
        """
        settings = self.settings
        return open_store(
            choice,
            self.path_of(settings.data_dir),
            language="english" if settings.language == AUTO else settings.language,  # language of chunks without one
            exclusive=self.exclusive,
            collection=settings.collection,
        )

    def technique_over(self, store: LibraryStore, name: str | None = None) -> RegisteredTechnique:
        """Return a technique of techniques.yaml over another store, such as that of a repository.

        ``name`` None: the default technique. Techniques that choose collections are replaced by their base, because
        there is only one place to search. Raises `UnknownTechniqueError`.
        """
        resources = _Resources()
        resources.models, resources.workspace = self.models, self
        resources.own = {"store": store, "library": None, "targets": None, "folder": None}
        registry = TechniqueRegistry.load(self.registry.file.path, resources, keep_broken=True)
        registry.searches_words = "text" in store.abilities
        registry.one_place, registry.language = True, self.registry.language
        return registry.get(registry.default if name is None else name)

    def _remove_answers(self, file: Path) -> None:
        """Remove the answers of comparisons, because any of them may have read what was erased."""
        for path in (file, file.with_name(f"{file.name}-journal")):
            path.unlink(missing_ok=True)

    def _token_models(self) -> list[TokenEmbedder]:
        """Return the models of the rerankers `maxsim`; without one, its default."""
        from ragistry.models.maxsim import MaxSimReranker

        rerankers = list(self.models.rerankers.values())
        found = [one.embedder for one in rerankers if isinstance(one, MaxSimReranker)]
        return found or [MaxSimReranker(model_runtime=self.settings.runtime).embedder]

    def _default_generator(self) -> Generator | None:
        generators = self.models.generators
        return None if generators.default is None else generators[generators.default]

    def _reader(self, suffix: str, name: str) -> AddedReader:
        file = self._files.get("documents.yaml")
        in_file = file is not None and self.origins["readers"].startswith(str(file.path))
        place = file.place(["readers", suffix]) if file is not None and in_file else self.origins["readers"]
        return AddedReader(name, place, str(self.root.resolve()))


class _Resources(Mapping[str, Any]):
    """The resources of a workspace for techniques, each built on first use.

    ``generator`` and ``reranker`` are for entries that name none. ``models``: None if models.yaml is invalid, so that
    names of models are not checked. ``own``: parts that differ from those of the workspace; None: no such part.
    """

    names = (
        "store",
        "embedder",
        "library",
        "targets",
        "folder",
        "generators",
        "rerankers",
        "encoders",
        "generator",
        "reranker",
    )

    def __init__(self) -> None:
        self.models: Models | None = None
        self.workspace: Workspace | None = None
        self.own: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        part: Any = None
        if name in self.own:
            part = self.own[name]
        elif name in ("generators", "rerankers", "encoders"):
            part = None if self.models is None else getattr(self.models, name)
        elif name in ("generator", "reranker"):
            by_name = None if self.models is None else getattr(self.models, f"{name}s")
            part = None if by_name is None or by_name.default is None else by_name[by_name.default]
        elif name in self.names:
            part = getattr(self.workspace, name)
        if part is None:  # no such part, or not configured
            raise KeyError(name)
        return part

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
