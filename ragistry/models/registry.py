"""Build models by name: the embedder of ``embed_model``, and the models of models.yaml.

``use`` in models.yaml is a built-in name, an entry point of the groups ``ragistry.generators``, ``ragistry.rerankers``
and ``ragistry.encoders``, ``module:Class`` or ``module:function``. The class follows the protocol `Generator`,
`Reranker` or `SparseEncoder`; a function takes a prompt, or a query and texts. The other keys of an entry are arguments
of the constructor or function, checked when the file is loaded (`config.arguments`). All may also take these values of
the workspace: ``ollama_host``; ``token_file``, the file of token vectors (None without one); ``model_runtime``; and
``workspace_folder``.

``embed_model`` is ``NAME`` or ``NAME:REST``: a line of the table ``ragistry.embedders`` of `plugins.BUILT_IN`, or an
entry point of that group. REST is the argument ``model``. The class also gets those values of `EmbedderSettings` that
it has parameters for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import ValidationError

from ragistry.config.arguments import arguments_model, checked_arguments
from ragistry.config.models import ModelEntry
from ragistry.config.problems import Problems
from ragistry.errors import ConfigError, InvalidConfigError
from ragistry.models.adapt import ADAPTERS, as_embedder
from ragistry.models.known import KNOWN_MODELS, known_model
from ragistry.models.queries import QueryEmbedder, close_part
from ragistry.models.runtimes import Runtime
from ragistry.plugins import BUILT_IN, find_part, modules_of, offers, resolve_object
from ragistry.protocols import Embedder, Generator, Reranker, SparseEncoder
from ragistry.types import EmbedderFingerprint
from ragistry.utils.wording import did_you_mean

if TYPE_CHECKING:
    from ragistry.models.token_file import TokenFile

EMBEDDERS = "ragistry.embedders"
MINILM = "all-MiniLM-L6-v2"
GROUPS = {
    "generators": "ragistry.generators",
    "rerankers": "ragistry.rerankers",
    "encoders": "ragistry.encoders",
}
FIRST = {"generators": 1, "rerankers": 2, "encoders": 1}
"""Number of arguments of a function that come with each call."""
METHODS = {
    "generators": "generate(prompt, *, schema=None)",
    "rerankers": "rerank(query, texts)",
    "encoders": "encode(texts, *, role)",
}

Model = TypeVar("Model", Generator, Reranker, SparseEncoder)


def provider_of(name: str) -> tuple[str, str]:
    """Return the provider of a setting ``embed_model`` and the rest after it; provider "" for ``module:Class``.

    A known model without a provider is one of Ollama, also with owner and tag. Raises `ConfigError` for anything else.
    """
    provider, _, rest = name.partition(":")
    is_class = rest.isidentifier() and all(part.isidentifier() for part in provider.split("."))
    if provider in BUILT_IN[EMBEDDERS]:
        return provider, rest
    if known_model(name) is not None and "/" not in rest:  # a tag has no slash
        return "ollama", name
    is_known_class = is_class and rest[0].isupper() and find_spec(provider.partition(".")[0])
    if not is_known_class and provider in offers(EMBEDDERS):  # reads the files of all installed packages
        return provider, rest
    if is_class:
        return "", name
    known = [one for one in offers(EMBEDDERS) if one != MINILM]  # minilm by its full name
    suggestion = did_you_mean(provider, [*known, *KNOWN_MODELS])
    if not suggestion and (not rest or len(provider) == 1) and set(name) & set("./\\~"):
        suggestion = f"; a folder is written {f'folder:{name}'!r}"
    raise ConfigError(
        f"unknown embed_model {name!r}{suggestion}; use {', '.join(known)} (NAME or NAME:MODEL) or module:Class"
    )


def names_of(fingerprint: EmbedderFingerprint) -> list[str]:
    """Return values of ``embed_model`` that may name the embedder with this fingerprint."""
    model = fingerprint.model
    by_provider = {
        "embedded": ["minilm" if model == MINILM else "multilingual"],
        "folder": [f"folder:models/{model}", f"folder:{model}"],
        "ollama": [f"ollama:{model}"],
        "openai-compatible": ["tei", f"openai:{model}"],
    }
    return by_provider.get(fingerprint.provider, [])


def uses_ollama(name: str) -> bool:
    """Return whether a setting ``embed_model`` names a model of Ollama."""
    try:
        return provider_of(name)[0] == "ollama"
    except ConfigError:
        return False


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """The values of a workspace for its embedder, by the names of the parameters that take them.

    Attributes:
        url: Address of the server for ``tei`` and ``openai``.
        api_key: API key for that server.
        host: Address of Ollama.
        folder: Folder whose files are found before other modules, and to which paths are relative.
        load_timeout: Seconds for the first request to a server, which may load the model; None for 300.
        runtime: Runtime of ``minilm``, see `models.runtimes.runtime_for`.
        lasting: Whether this process embeds many queries, as a server does.
        output: Output of the graph of a model from a folder.
    """

    url: str | None = None
    api_key: str | None = None
    host: str | None = None
    folder: Path | None = None
    load_timeout: float | None = None
    runtime: Runtime = "auto"
    lasting: bool = False
    output: str | None = None


def choose_embedder(name: str, settings: EmbedderSettings = EmbedderSettings()) -> QueryEmbedder:
    """Build the embedder of a setting ``embed_model``; nothing is loaded or requested yet.

    Args:
        name: ``minilm``, ``multilingual`` or ``folder:PATH`` in this process; ``tei``, ``tei:MODEL`` or
            ``openai:MODEL`` on a server; ``ollama:MODEL`` or the name of a known model on Ollama; ``NAME`` or
            ``NAME:MODEL`` of an installed package; ``module:Class`` of a program, or a function that makes an embedder.
        settings: Values for it.

    Raises:
        ConfigError: The name is unknown, the address is missing, the class is not one of an embedder, or the runtime
            is not installed.
    """
    provider, model = provider_of(name)
    if provider:
        values = {"model": model, **asdict(settings)}
        embedder = _from_table(name, provider, {key: value for key, value in values.items() if value not in (None, "")})
    else:
        embedder = _own_embedder(name, settings.folder)
    return QueryEmbedder(embedder, restore=(_choose_once, (name, settings)))


@cache
def _choose_once(name: str, settings: EmbedderSettings) -> QueryEmbedder:
    return choose_embedder(name, settings)


def _from_table(name: str, provider: str, values: Mapping[str, Any]) -> Embedder:
    cls = find_part(provider, EMBEDDERS, "embedder")
    wanted = inspect.signature(cls).parameters
    required = {key for key, one in wanted.items() if one.default is one.empty and one.kind not in (one.VAR_KEYWORD,)}
    if "url" in required - values.keys():
        raise ConfigError(f"embed_model {name!r} needs the server's address; set embed_url: http://HOST:PORT")
    if "model" in wanted and "model" not in values and ("model" in required or provider in ("openai", "ollama")):
        raise ConfigError(f"embed_model {provider!r} needs a model; write {provider}:MODEL")
    if "model" in values and "model" not in wanted:
        raise ConfigError(f"embed_model {name!r}: {provider!r} has only one model; write {provider}")
    return as_embedder(cls(**{key: value for key, value in values.items() if key in wanted}))


def _own_embedder(name: str, folder: Path | None) -> Embedder:
    try:
        with modules_of(folder):
            found = resolve_object(name)
    except ConfigError as error:
        raise ConfigError(f"embed_model: {error}; a model of Ollama is written ollama:{name}") from error
    try:
        return as_embedder(found() if inspect.isroutine(found) or isinstance(found, type) else found)
    except ConfigError as error:
        raise ConfigError(f"embed_model {name!r}: {error}") from error
    except Exception as error:
        raise ConfigError(
            f"embed_model {name!r}: {type(error).__name__}: {error}; it is called without arguments, so name a class "
            "or function that needs none"
        ) from error


def chunking_of(name: str) -> tuple[int, int]:
    """Return suitable sizes of chunks and their overlap in characters: 1000 and 150 for unknown models."""
    provider, _, rest = name.partition(":")
    bare = rest if provider in ("ollama", "tei", "openai", "folder") else name
    model = known_model("multilingual-e5" if bare == "multilingual" else bare)
    return (1000, 150) if model is None else (model.chunk_size, model.chunk_overlap)


class Models:
    """The generators, rerankers and encoders of a workspace, by name. Classes and arguments are checked immediately.

    Raises `InvalidConfigError` with every problem of the entries.
    """

    def __init__(
        self,
        entries: Sequence[ModelEntry] = (),
        *,
        ollama_host: str | None = None,
        token_file: TokenFile | None = None,
        runtime: Runtime = "auto",
    ) -> None:
        problems = Problems()
        resources: dict[str, Any] = {"ollama_host": ollama_host, "token_file": token_file, "model_runtime": runtime}
        builders: dict[str, dict[str, Callable[[], Any]]] = {kind: {} for kind in GROUPS}
        for entry in entries:
            resources["workspace_folder"] = root = entry.file.path.resolve().parent.parent
            with modules_of(root):
                build = _checked(entry, resources, problems)
            if build is not None:
                builders[entry.kind][entry.name] = build
        problems.report()
        self.generators: ModelsByName[Generator] = ModelsByName(builders["generators"])
        self.rerankers: ModelsByName[Reranker] = ModelsByName(builders["rerankers"])
        self.encoders: ModelsByName[SparseEncoder] = ModelsByName(builders["encoders"])

    def close(self) -> None:
        """Close the connections of the models that were used."""
        for models in (self.generators, self.rerankers, self.encoders):
            models.close()


class ModelsByName(Mapping[str, Model], Generic[Model]):
    """Models by name, each built on first use and kept. Thread-safe."""

    def __init__(self, builders: Mapping[str, Callable[[], Model]]) -> None:
        self._builders: dict[str, Callable[[], Model]] = dict(builders)
        self._built: dict[str, Model] = {}
        self._lock = RLock()

    @property
    def default(self) -> str | None:
        """Name of the only model, or ``"default"``; None without models, or with several of other names."""
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
        return name in self._builders  # the inherited method would build the model

    def close(self) -> None:
        """Close the connections of the models that were built."""
        with self._lock:
            for model in self._built.values():
                close_part(model)


def _checked(entry: ModelEntry, resources: Mapping[str, Any], problems: Problems) -> Callable[[], Any] | None:
    """Return a function that builds the model of an entry; None if errors were added to ``problems``."""
    problems.lines += entry.unset
    kind, method = entry.kind.removesuffix("s"), METHODS[entry.kind]
    found = Problems()
    try:
        cls = find_part(entry.use, GROUPS[entry.kind], kind)
    except ConfigError as error:
        problems.add(entry.file, [*entry.keys, "use"], f"{entry.kind}.{entry.name}.use: {error}")
        return None
    is_function, skipped = inspect.isroutine(cls), set(resources)
    if is_function:
        skipped |= {"schema", *list(inspect.signature(cls).parameters)[: FIRST[entry.kind]]}
    elif not isinstance(cls, type) or not callable(getattr(cls, method.partition("(")[0], None)):
        message = f"{entry.kind}.{entry.name}.use: {entry.use!r} is not a {kind}; it has no method {method}"
        problems.add(entry.file, [*entry.keys, "use"], message)
        return None
    if entry.unset:
        return None
    model = arguments_model(cls, skipped)
    try:
        arguments = checked_arguments(model, entry.config)
    except ValidationError as error:
        found.add_validation(entry.file, entry.keys, model, error)
        problems.lines += map(entry.hide, found.lines)
        return None
    wanted = inspect.signature(cls).parameters
    return partial(_build, entry, cls, {name: resources[name] for name in resources if name in wanted} | arguments)


def _build(entry: ModelEntry, cls: Any, arguments: Mapping[str, Any]) -> Any:
    adapt = ADAPTERS[entry.kind.removesuffix("s")]
    try:
        if isinstance(cls, type):
            return adapt(cls(**arguments))
        return adapt(partial(cls, **arguments) if arguments else cls)
    except ConfigError as error:
        place = entry.file.place(entry.keys)
        raise InvalidConfigError(entry.hide(f"{place}: {entry.kind}.{entry.name}: {error}")) from error
