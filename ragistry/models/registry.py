"""Build models by name: the embedder of ``embed_model``, and the generators and rerankers of models.yaml.

``use`` in models.yaml is a name of the entry point groups ``ragistry.generators`` and ``ragistry.rerankers`` (which
also contain the built-in ones), or ``module:Class``. The class follows the protocol `Generator` or `Reranker`. The
other keys of an entry are arguments of its constructor, checked when the file is loaded against the annotations or a
nested pydantic model ``Config``. The constructor may also take these values of the workspace: ``ollama_host``, and
``token_file``, the file of token vectors (None without one).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from ragistry.config.models import ModelEntry
from ragistry.config.problems import Problems
from ragistry.errors import ConfigError, InvalidConfigError
from ragistry.models.batching import BatchedQueries
from ragistry.models.known import KNOWN_MODELS, known_model
from ragistry.protocols import Embedder, Generator, Reranker
from ragistry.trace import span
from ragistry.types import EmbedderFingerprint, Role
from ragistry.utils.plugins import find_class, modules_of
from ragistry.utils.wording import did_you_mean

if TYPE_CHECKING:
    from ragistry.models.token_file import TokenFile
    from ragistry.protocols import Vectors

MINILM = ("minilm", "all-MiniLM-L6-v2")
MULTILINGUAL = "multilingual"
SERVERS = ("tei", "openai")
QUERIES_KEPT = 256
GROUPS = {"generators": "ragistry.generators", "rerankers": "ragistry.rerankers"}
METHODS = {"generators": "generate(prompt, *, schema=None)", "rerankers": "rerank(query, texts)"}

Model = TypeVar("Model", Generator, Reranker)


def uses_ollama(name: str) -> bool:
    """Whether a setting ``embed_model`` means a model of Ollama."""
    return name not in (*MINILM, MULTILINGUAL) and name.partition(":")[0] not in SERVERS


def choose_embedder(
    name: str, *, url: str | None = None, api_key: str | None = None, ollama_host: str | None = None
) -> CachedQueries:
    """Build the embedder of a setting ``embed_model``; nothing is loaded or requested yet.

    ``minilm`` and ``multilingual`` run in this process; a known model's name or ``ollama:MODEL`` is Ollama's; ``tei``,
    ``tei:MODEL`` and ``openai:MODEL`` are at ``url`` and get ``api_key``. Raises `ConfigError` for any other name.
    """
    provider, _, model = name.partition(":")
    embedder: Embedder
    if name in MINILM:
        from ragistry.models.minilm import MiniLMEmbedder

        embedder = MiniLMEmbedder()
    elif name == MULTILINGUAL:
        from ragistry.models.multilingual import MultilingualEmbedder

        embedder = MultilingualEmbedder()
    elif provider in SERVERS:
        from ragistry.models.openai import OpenAICompatibleEmbedder

        if not url:
            raise ConfigError(f"embed_model {name!r} needs the server's address; set embed_url: http://HOST:PORT")
        if provider == "openai" and not model:
            raise ConfigError("embed_model 'openai' needs a model; write openai:MODEL")
        embedder = OpenAICompatibleEmbedder(model or None, url=url, api_key=api_key)
    elif (provider == "ollama" and model) or known_model(name) is not None:
        from ragistry.ollama.embedder import OllamaEmbedder

        embedder = OllamaEmbedder(model if provider == "ollama" else name, host=ollama_host)
    else:
        known = [*MINILM, MULTILINGUAL, *SERVERS, *KNOWN_MODELS]
        raise ConfigError(
            f"unknown embed_model {name!r}{did_you_mean(name, known)}; there are minilm, {MULTILINGUAL}, tei, "
            f"openai:MODEL, {', '.join(model for model in KNOWN_MODELS if model not in MINILM)}, and ollama:MODEL for "
            "any other model of Ollama"
        )
    return CachedQueries(BatchedQueries(embedder), chosen_by=(name, url, api_key, ollama_host))


def chunking_of(name: str) -> tuple[int, int]:
    """Suitable size of chunks and of their overlap in characters: 1000 and 150 for unknown models."""
    bare = name.partition(":")[2] if name.startswith(("ollama:", "tei:", "openai:")) else name
    model = known_model("multilingual-e5" if bare == MULTILINGUAL else bare)
    return (1000, 150) if model is None else (model.chunk_size, model.chunk_overlap)


class CachedQueries:
    """An embedder that caches the last queries, so that several techniques embed a query once. Thread-safe.

    ``chosen_by``: the arguments of `choose_embedder`. It is pickled as these, so that a worker process loads the model
    only once.
    """

    def __init__(self, embedder: Embedder, *, chosen_by: tuple[str | None, ...] = ()) -> None:
        self.embedder = embedder
        self._chosen_by = chosen_by
        self._query = lru_cache(QUERIES_KEPT)(partial(_query, embedder))

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self.embedder.fingerprint

    @span("ragistry.embed")
    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        if role != "query" or len(texts) != 1:
            return self.embedder.embed(texts, role=role)
        return self._query(texts[0])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self.embedder.count_tokens(texts)

    def observe_batches(self, observe: Callable[[int], object]) -> None:
        """Call ``observe`` with the number of queries in each call of the model."""
        if isinstance(self.embedder, BatchedQueries):
            self.embedder.observe = observe

    def close(self) -> None:
        """Close the embedder's connections, if it has any."""
        _close(self.embedder)

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._chosen_by:
            return CachedQueries, (self.embedder,)
        return _chosen_once, self._chosen_by


@cache
def _chosen_once(name: str, url: str | None, api_key: str | None, ollama_host: str | None) -> CachedQueries:
    return choose_embedder(name, url=url, api_key=api_key, ollama_host=ollama_host)


def _query(embedder: Embedder, text: str) -> Vectors:
    vectors = embedder.embed([text], role="query")
    vectors.flags.writeable = False
    return vectors


class Models:
    """The generators and rerankers of a workspace, by name. Classes and arguments are checked immediately.

    Raises `InvalidConfigError` with every problem of the entries.
    """

    def __init__(
        self,
        entries: Sequence[ModelEntry] = (),
        *,
        ollama_host: str | None = None,
        token_file: TokenFile | None = None,
    ) -> None:
        problems, given = Problems(), {"ollama_host": ollama_host, "token_file": token_file}
        made: dict[str, dict[str, Callable[[], Any]]] = {kind: {} for kind in GROUPS}
        for entry in entries:
            with modules_of(entry.file.path.resolve().parent.parent):  # the folder of the workspace
                build = _checked(entry, given, problems)
            if build is not None:
                made[entry.kind][entry.name] = build
        problems.report()
        self.generators: ModelsByName[Generator] = ModelsByName(made["generators"])
        self.rerankers: ModelsByName[Reranker] = ModelsByName(made["rerankers"])

    def close(self) -> None:
        """Close the connections of the models that were used."""
        self.generators.close()
        self.rerankers.close()


class ModelsByName(Mapping[str, Model], Generic[Model]):
    """Models by name, each built on first use and kept. Thread-safe."""

    def __init__(self, builders: Mapping[str, Callable[[], Model]]) -> None:
        self._builders: dict[str, Callable[[], Model]] = dict(builders)
        self._built: dict[str, Model] = {}
        self._lock = RLock()

    @property
    def default(self) -> str | None:
        """The name of the only model, or ``"default"``; None without models, or with several of other names."""
        return "default" if "default" in self._builders else next(iter(self), None) if len(self) == 1 else None

    def __getitem__(self, name: str) -> Model:
        with self._lock:
            if name not in self._built:
                self._built[name] = self._builders[name]()
            return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._builders)

    def __len__(self) -> int:
        return len(self._builders)

    def __contains__(self, name: object) -> bool:
        return name in self._builders  # that of `Mapping` would build it

    def close(self) -> None:
        """Close the connections of those that were built."""
        with self._lock:
            for model in self._built.values():
                _close(model)


def _close(model: object) -> None:
    close = getattr(model, "close", None)
    if callable(close):
        close()


def _checked(entry: ModelEntry, given: Mapping[str, Any], problems: Problems) -> Callable[[], Any] | None:
    """The function that builds the model of an entry; None if the entry has errors, which are added to ``problems``."""
    problems.lines += entry.unset
    kind, method = entry.kind.removesuffix("s"), METHODS[entry.kind]
    found = Problems()
    try:
        cls = find_class(entry.use, GROUPS[entry.kind], kind)
    except ConfigError as error:
        problems.add(entry.file, [*entry.keys, "use"], f"{entry.kind}.{entry.name}.use: {error}")
        return None
    if not callable(getattr(cls, method.partition("(")[0], None)):
        said = f"{entry.kind}.{entry.name}.use: {entry.use!r} is not a {kind}; it has no method {method}"
        problems.add(entry.file, [*entry.keys, "use"], said)
        return None
    if entry.unset:
        return None
    model = _arguments(cls, given)
    try:
        parsed = model.model_validate(entry.config)
    except ValidationError as error:
        found.add_validation(entry.file, entry.keys, model, error)
        problems.lines += map(entry.hide, found.lines)
        return None
    arguments = {name: getattr(parsed, name) for name in parsed.model_fields_set}
    wanted = inspect.signature(cls).parameters
    return partial(_build, entry, cls, {name: given[name] for name in given if name in wanted} | arguments)


def _arguments(cls: type[Any], given: Collection[str]) -> type[BaseModel]:
    """A pydantic model of the arguments that an entry may set."""
    own = getattr(cls, "Config", None)
    if isinstance(own, type) and issubclass(own, BaseModel):
        return own
    try:
        hints = get_type_hints(cls.__init__, include_extras=True)
    except (NameError, TypeError):  # names imported only for type checkers
        hints = {}
    parameters = inspect.signature(cls).parameters.values()
    fields: dict[str, Any] = {
        p.name: (hints.get(p.name, Any), ... if p.default is p.empty else p.default)
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in given
    }
    extra = any(p.kind is p.VAR_KEYWORD for p in parameters)
    config = ConfigDict(extra="allow" if extra else "forbid", arbitrary_types_allowed=True, protected_namespaces=())
    return create_model(cls.__name__, __config__=config, **fields)


def _build(entry: ModelEntry, cls: type[Any], arguments: Mapping[str, Any]) -> Any:
    try:
        return cls(**arguments)
    except ConfigError as error:
        place = entry.file.place(entry.keys)
        raise InvalidConfigError(entry.hide(f"{place}: {entry.kind}.{entry.name}: {error}")) from error
