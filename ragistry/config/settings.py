"""Every setting with its value and where the value came from: argument > environment > file > default."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from ragistry.config.archive_settings import Seconds, Segment
from ragistry.config.archives import Archives
from ragistry.config.files import DocumentsFile, ExtractionLimits, Language, Overlap, Size, Strict, VectorStoresFile
from ragistry.config.keys import Key
from ragistry.config.numbers import Whole
from ragistry.config.problems import Problems, explain
from ragistry.config.yaml_file import YamlFile, read_yaml
from ragistry.errors import InvalidConfigError
from ragistry.utils.shown import shown
from ragistry.utils.suggest import did_you_mean
from ragistry.utils.urls import public_url

log = logging.getLogger(__name__)

CONFIG_FOLDER = "config"
LOCAL, CHROMA = "local", "chroma"
"""The stores that a setting can mean without ``store:``."""
DEFAULTS = Path(__file__).parent / "defaults"
FILES: dict[str, type[Strict]] = {"documents.yaml": DocumentsFile, "vector_stores.yaml": VectorStoresFile}


class Settings(Strict):
    """The resolved settings of a workspace. Relative paths are relative to the workspace's folder."""

    data_dir: str = Field(default=".ragistry", description="folder of everything that is stored")
    embed_model: str = Field(default="minilm", description="minilm, a model of Ollama, tei, or openai:MODEL")
    embed_url: str | None = Field(default=None, description="address of a TEI or OpenAI-compatible server")
    embed_api_key: Key | None = Field(default=None, description="sent to that server as `Authorization: Bearer`")
    ollama_host: str | None = Field(default=None, description="address of Ollama")
    generate_model: str | None = Field(default=None, description="a model of Ollama, for techniques that ask one")
    rerank_url: str | None = Field(default=None, description="address of a TEI server with a reranker")
    rerank_api_key: Key | None = Field(default=None, description="sent to that server as `Authorization: Bearer`")
    chunk_size: Size = "auto"
    chunk_overlap: Overlap = "auto"
    n_results: Whole = Field(default=5, ge=1, le=1_000)
    language: Language = Field(default="english", description="of the words of the documents; none: no stemming")
    pdf_engine: Literal["pypdfium2", "pypdf"] = "pypdfium2"
    limits: ExtractionLimits = ExtractionLimits()
    store: str = Field(default=LOCAL, description="local, chroma, the name of an installed store, or module:Class")
    collection: str = Field(
        default="collective.documents", description="name of the Chroma collection that holds the library"
    )
    chroma_path: str | None = Field(
        default=None, min_length=1, description="folder of a ChromaDB database; default for chroma: data_dir/chroma"
    )
    chroma_host: str | None = Field(
        default=None, min_length=1, description="a ChromaDB server: a name, an address or a URL"
    )
    chroma_port: Whole = Field(default=8000, ge=1, le=65_535)
    chroma_ssl: bool = False
    chroma_api_key: Key | None = None
    chroma_tenant: Segment = "default_tenant"
    chroma_database: Segment = "default_database"
    chroma_timeout: Seconds = 30
    archives: Archives = Field(default=[], description="collections of other Chroma servers, to route queries to")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a setting may come from besides an argument: variables, then keys of files, the first that is set."""

    variables: tuple[str, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()


PREFIX = "RAGISTRY_"
BESIDES = ("workspace", "debug", "mcp_token", "data", "bench_cache")
"""What variables with the prefix decide besides the settings: of commands, of the tests and benchmarks."""


def _own(name: str, *keys: tuple[str, ...], also: tuple[str, ...] = ()) -> Source:
    return Source((f"{PREFIX}{name.upper()}", *also), keys)


_DOCUMENTS = "documents.yaml"
_STORE = ("vector_stores.yaml", "store")
_CHROMA = ("vector_stores.yaml", "chromadb")
SOURCES: dict[str, Source] = {
    "store": _own("store", (*_STORE, "use")),  # first: it decides whose the other keys of that section are
    "data_dir": _own("data_dir"),
    "embed_model": _own("embed_model", (_DOCUMENTS, "embed_model")),
    "embed_url": _own("embed_url", (_DOCUMENTS, "embed_url"), also=("DOCPROC_TEI_EMBEDDINGS_URL",)),
    "embed_api_key": _own("embed_api_key"),
    "ollama_host": _own("ollama_host", also=("OLLAMA_HOST",)),
    "generate_model": _own("generate_model", (_DOCUMENTS, "generate_model")),
    "rerank_url": _own("rerank_url", (_DOCUMENTS, "rerank_url")),
    "rerank_api_key": _own("rerank_api_key"),
    "chunk_size": _own("chunk_size", (_DOCUMENTS, "chunk_size")),
    "chunk_overlap": _own("chunk_overlap", (_DOCUMENTS, "chunk_overlap")),
    "n_results": _own("n_results", (_DOCUMENTS, "n_results")),
    "language": _own("language", (_DOCUMENTS, "language")),
    "pdf_engine": _own("pdf_engine", (_DOCUMENTS, "pdf_engine")),
    "limits": Source((), ((_DOCUMENTS, "limits"),)),
    "collection": _own("collection", (_DOCUMENTS, "collection"), (*_CHROMA, "collection_name")),
    "chroma_path": _own(
        "chroma_path",
        (_DOCUMENTS, "chroma_path"),
        (*_STORE, "path"),
        (*_STORE, "persist_directory"),
        (*_CHROMA, "persist_directory"),
    ),
    "chroma_host": _own("chroma_host", (*_STORE, "host"), (*_CHROMA, "host"), also=("CHROMA_HOST",)),
    "chroma_port": _own("chroma_port", (*_STORE, "port"), (*_CHROMA, "port"), also=("CHROMA_PORT",)),
    "chroma_ssl": _own("chroma_ssl", (*_STORE, "ssl"), (*_CHROMA, "ssl")),
    "chroma_api_key": _own("chroma_api_key", also=("CHROMA_API_KEY",)),
    "chroma_tenant": _own("chroma_tenant", (*_STORE, "tenant"), (*_CHROMA, "tenant"), also=("CHROMA_TENANT",)),
    "chroma_database": _own(
        "chroma_database", (*_STORE, "database"), (*_CHROMA, "database"), also=("CHROMA_DATABASE",)
    ),
    "chroma_timeout": _own("chroma_timeout", (*_STORE, "timeout"), (*_CHROMA, "timeout")),
    "archives": Source((), (("vector_stores.yaml", "archives"),)),
}


@dataclass(frozen=True, slots=True)
class Resolved:
    """The settings, the place that decided each, and the files that were read, by name."""

    settings: Settings
    origins: dict[str, str]
    files: dict[str, YamlFile]


def resolve(
    root: Path, arguments: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
) -> Resolved:
    """Read the workspace's files and variables. Raises `InvalidConfigError` with everything that is wrong."""
    problems = Problems()
    files = {name: file for name in FILES if (file := _read(root / CONFIG_FOLDER / name, problems)) is not None}
    for name, file in files.items():
        check_topic(file, problems)
        try:
            FILES[name].model_validate(file.data)
        except ValidationError as error:
            problems.add_validation(file, [], FILES[name], error)
    environ = os.environ if environ is None else environ
    found = _found(files, arguments or {}, environ, problems)
    problems.report()
    for said in unknown_variables(environ):
        log.warning("%s", said)
    try:
        settings = Settings.model_validate({name: value for name, (value, _) in found.items()})
    except ValidationError as error:
        for item in error.errors(include_url=False):
            name = str(item["loc"][0])
            origin = found[name][1] if name in found else "argument"
            problems.lines.append(f"{origin}: {name}: {explain(item, Settings)}")
    problems.report()
    return Resolved(settings, {name: found[name][1] if name in found else "default" for name in SOURCES}, files)


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """A line for each variable that has our prefix and decides nothing."""
    known = [name.upper() for name in (*BESIDES, *SOURCES) if name in BESIDES or SOURCES[name].variables]
    names = [variable.removeprefix(PREFIX) for variable in sorted(environ) if variable.startswith(PREFIX)]
    return [f"environment {PREFIX}{name} does nothing: {_remedy(name, known)}" for name in names if name not in known]


def _remedy(name: str, known: list[str]) -> str:
    source = SOURCES.get(name.lower())
    if source is None or source.variables:
        return f"there is no {name!r}{did_you_mean(name, known) or '; `ragistry config` lists the settings'}"
    [(file, *keys)] = source.keys
    return f"set {'.'.join(keys)} in {CONFIG_FOLDER}/{file}"


def check_topic(file: YamlFile, problems: Problems) -> None:
    """Say of a key that documents.yaml once had what took its place."""
    if "topic" in file.data:
        topic = file.data.pop("topic")
        problems.add(
            file, ["topic"], f"topic: {topic!r} is no longer used; describe each collection under 'collections': "
            "- {name: …, description: …}"
        )  # fmt: skip


def _read(path: Path, problems: Problems) -> YamlFile | None:
    try:
        return read_yaml(path) if is_there(path) else None
    except InvalidConfigError as error:
        problems.lines.append(str(error))
        return None


def is_there(path: Path) -> bool:
    """Whether there is such a file. Raises `InvalidConfigError` where the system does not let us look."""
    try:
        return path.exists()
    except OSError as error:
        raise InvalidConfigError(f"{path}: cannot be read: {error.strerror}; make its folder readable") from error


def _found(
    files: Mapping[str, YamlFile], arguments: Mapping[str, Any], environ: Mapping[str, str], problems: Problems
) -> dict[str, tuple[Any, str]]:
    """What is set, and where. Two files may set the same thing, but not to different values."""
    found = {name: (value, "argument") for name, value in arguments.items() if value is not None}
    for name, source in SOURCES.items():
        places = list(_places(name, files, found))
        for file, keys, value in places[1:]:
            first, first_keys, other = places[0]
            if str(value) != str(other):
                problems.add(
                    file, keys, f"{keys[-1]}: {_shown(name, value)}, but {first.place(first_keys)} says "
                    f"{_shown(name, other)} ({name}); keep one of the two",
                )  # fmt: skip
        if name in found:
            continue
        variable = next((variable for variable in source.variables if environ.get(variable, "").strip()), None)
        if variable is not None:
            found[name] = (environ[variable], f"environment {variable}")
        elif places:
            file, keys, value = places[0]
            found[name] = (value, file.place(keys))
    _choose_store(found, problems)
    return found


def _places(
    name: str, files: Mapping[str, YamlFile], found: Mapping[str, tuple[Any, str]]
) -> Iterator[tuple[YamlFile, list[str], Any]]:
    """Where the files set something. The other keys of ``store:`` are ours only if the store is, and stays, chroma."""
    for file, *keys in SOURCES[name].keys:
        if file not in files:
            continue
        if (file, *keys[:-1]) == _STORE and keys[-1] != "use":
            chosen = found.get("store", ("",))[0]
            if not _value(files[file], ["store", "use"]) == chosen == CHROMA:
                continue
        value = _value(files[file], keys)
        if value is not None:
            yield files[file], keys, value


def _value(file: YamlFile, keys: list[str]) -> Any:
    node: Any = file.data
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def _choose_store(found: dict[str, tuple[Any, str]], problems: Problems) -> None:
    """A folder or a host of ChromaDB selects its store where ``store:`` does not, and must not contradict it."""
    selecting = [(name, *found[name]) for name in ("chroma_path", "chroma_host") if name in found]
    if len(selecting) == 2:
        (_, path, path_place), (_, host, host_place) = selecting
        problems.lines.append(
            f"{host_place}: chroma_host: {_shown('chroma_host', host)}, but {path_place} says chroma_path {path!r}; "
            "a ChromaDB is a folder or a server, so remove one of the two"
        )
    if "store" not in found and selecting:
        found["store"] = (CHROMA, selecting[0][2])
    use, origin = found.get("store", (LOCAL, "default"))
    for name, value, place in selecting:
        if use != CHROMA:
            problems.lines.append(
                f"{place}: {name}: {_shown(name, value)} selects the store 'chroma', but {origin} says {use!r} "
                "(store); remove one of the two"
            )


def _shown(name: str, value: Any) -> str:
    return shown(public_url(value) if name.endswith(("_host", "_url")) and isinstance(value, str) else value)
