"""Build models by name: the embedder of ``embed_model``, and the generators and rerankers of models.yaml.

``use`` in models.yaml is a built-in name, an entry point of the groups ``ragistry.generators`` and
``ragistry.rerankers``, ``module:Class`` or ``module:function``. The class follows the protocol `Generator` or
`Reranker`; a function takes a prompt, or a query and texts. The other keys of an entry are arguments of the constructor
or function, checked when the file is loaded (`config.arguments`). Both may also take these values of the workspace:
``ollama_host``; ``token_file``, the file of token vectors (None without one); and ``model_runtime``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
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
from ragistry.models.queries import QueryEmbedder
from ragistry.models.runtimes import Runtime
from ragistry.plugins import find_part, modules_of, resolve_object
from ragistry.protocols import Embedder, Generator, Reranker
from ragistry.utils.wording import did_you_mean

if TYPE_CHECKING:
    from ragistry.models.token_file import TokenFile

MINILM = ("minilm", "all-MiniLM-L6-v2")
MULTILINGUAL = "multilingual"
SERVERS = ("tei", "openai")
GROUPS = {"generators": "ragistry.generators", "rerankers": "ragistry.rerankers"}
FIRST = {"generators": 1, "rerankers": 2}
"""Number of arguments of a function that come with each call."""
METHODS = {"generators": "generate(prompt, *, schema=None)", "rerankers": "rerank(query, texts)"}

Model = TypeVar("Model", Generator, Reranker)


def uses_ollama(name: str) -> bool:
    """Return whether a setting ``embed_model`` names a model of Ollama."""
    return name not in (*MINILM, MULTILINGUAL) and name.partition(":")[0] not in SERVERS and not names_class(name)


def names_class(name: str) -> bool:
    """Return whether a setting ``embed_model`` names a class or function of a program, as ``module:Class``."""
    module, colon, attribute = name.partition(":")
    if not colon or module in ("ollama", *SERVERS) or known_model(name) is not None:
        return False
    return attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))


def choose_embedder(
    name: str,
    *,
    url: str | None = None,
    api_key: str | None = None,
    ollama_host: str | None = None,
    folder: Path | None = None,
    timeout: float | None = None,
    runtime: Runtime = "auto",
    lasting: bool = False,
) -> QueryEmbedder:
    """Build the embedder of a setting ``embed_model``; nothing is loaded or requested yet.

    Args:
        name: ``minilm`` or ``multilingual`` in this process; ``tei``, ``tei:MODEL`` or ``openai:MODEL`` on a server;
            ``ollama:MODEL`` or the name of a known model on Ollama; ``module:Class`` of a program, or a function that
            makes an embedder.
        url: Address of the server for ``tei`` and ``openai``.
        api_key: API key for that server.
        ollama_host: Address of Ollama.
        folder: Folder whose files are found before other modules.
        timeout: Seconds for the first request to a server, which may load the model; None for 300.
        runtime: Runtime of ``minilm``, see `models.runtimes.runtime_for`.
        lasting: Whether this process embeds many queries, as a server does.

    Raises:
        ConfigError: The name is unknown, the address is missing, the class is not one of an embedder, or the runtime
            is not installed.
    """
    provider, _, model = name.partition(":")
    embedder: Embedder
    if name in MINILM:
        from ragistry.models.minilm import MiniLMEmbedder

        embedder = MiniLMEmbedder(runtime=runtime, lasting=lasting)
    elif name == MULTILINGUAL:
        from ragistry.models.multilingual import MultilingualEmbedder

        embedder = MultilingualEmbedder()
    elif provider in SERVERS:
        from ragistry.models.openai import OpenAICompatibleEmbedder

        if not url:
            raise ConfigError(f"embed_model {name!r} needs the server's address; set embed_url: http://HOST:PORT")
        if provider == "openai" and not model:
            raise ConfigError("embed_model 'openai' needs a model; write openai:MODEL")
        embedder = OpenAICompatibleEmbedder(model or None, url=url, api_key=api_key, load_timeout=timeout)
    elif (provider == "ollama" and model) or known_model(name) is not None:
        from ragistry.models.http import LOAD_SECONDS
        from ragistry.ollama.embedder import OllamaEmbedder

        model = model if provider == "ollama" else name
        embedder = OllamaEmbedder(model, host=ollama_host, load_timeout=timeout or LOAD_SECONDS)
    elif names_class(name):
        embedder = _own_embedder(name, folder)
    else:
        known = [*MINILM, MULTILINGUAL, *SERVERS, *KNOWN_MODELS]
        raise ConfigError(
            f"unknown embed_model {name!r}{did_you_mean(name, known)}; use minilm, {MULTILINGUAL}, tei, openai:MODEL, "
            "ollama:MODEL such as ollama:nomic-embed-text, or module:Class for a class of your own"
        )
    options = (name, url, api_key, ollama_host, folder, timeout, runtime, lasting)
    return QueryEmbedder(embedder, restore=(_choose_once, options))


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
    bare = name.partition(":")[2] if name.startswith(("ollama:", "tei:", "openai:")) else name
    model = known_model("multilingual-e5" if bare == MULTILINGUAL else bare)
    return (1000, 150) if model is None else (model.chunk_size, model.chunk_overlap)


@cache
def _choose_once(
    name: str,
    url: str | None,
    api_key: str | None,
    ollama_host: str | None,
    folder: Path | None,
    timeout: float | None,
    runtime: Runtime,
    lasting: bool,
) -> QueryEmbedder:
    return choose_embedder(
        name, url=url, api_key=api_key, ollama_host=ollama_host, folder=folder, timeout=timeout, runtime=runtime,
        lasting=lasting,
    )  # fmt: skip


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
        runtime: Runtime = "auto",
    ) -> None:
        problems = Problems()
        resources = {"ollama_host": ollama_host, "token_file": token_file, "model_runtime": runtime}
        builders: dict[str, dict[str, Callable[[], Any]]] = {kind: {} for kind in GROUPS}
        for entry in entries:
            with modules_of(entry.file.path.resolve().parent.parent):  # the folder of the workspace
                build = _checked(entry, resources, problems)
            if build is not None:
                builders[entry.kind][entry.name] = build
        problems.report()
        self.generators: ModelsByName[Generator] = ModelsByName(builders["generators"])
        self.rerankers: ModelsByName[Reranker] = ModelsByName(builders["rerankers"])

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
                _close(model)


def _close(model: object) -> None:
    close = getattr(model, "close", None)
    if callable(close):
        close()


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
