"""Find the class that ``use:`` names: one of this package, an entry point of another, or ``module:Class``.

`BUILT_IN` has the classes of this package. Installed packages are searched only for a name that it lacks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from ragistry.errors import ConfigError
from ragistry.utils.wording import did_you_mean, listed

READERS = "ragistry.readers"
BUILT_IN: dict[str, dict[str, str]] = {
    "ragistry.techniques": {
        "bm25": "ragistry.techniques.bm25:BM25Technique",
        "collection_routed": "ragistry.techniques.routing.technique:CollectionRoutedTechnique",
        "contextual_compression": "ragistry.techniques.contextual_compression:ContextualCompressionTechnique",
        "corrective": "ragistry.techniques.corrective:CorrectiveTechnique",
        "decompose": "ragistry.techniques.decompose:DecomposeTechnique",
        "graph": "ragistry.techniques.graph:GraphTechnique",
        "hybrid": "ragistry.techniques.hybrid:HybridTechnique",
        "hyde": "ragistry.techniques.hyde:HyDETechnique",
        "learned_sparse": "ragistry.techniques.learned_sparse:LearnedSparseTechnique",
        "llm_rerank": "ragistry.techniques.llm_rerank:LLMRerankTechnique",
        "multi_query": "ragistry.techniques.multi_query:MultiQueryTechnique",
        "naive": "ragistry.techniques.naive:NaiveRAGTechnique",
        "naive_rag": "ragistry.techniques.naive:NaiveRAGTechnique",
        "newest": "ragistry.techniques.newest:NewestTechnique",
        "parent_document": "ragistry.techniques.parent_document:ParentDocumentTechnique",
        "pipeline": "ragistry.pipelines.technique:PipelineTechnique",
        "rerank": "ragistry.techniques.rerank:RerankTechnique",
    },
    "ragistry.embedders": {
        "all-MiniLM-L6-v2": "ragistry.models.minilm:MiniLMEmbedder",
        "folder": "ragistry.models.folder:FolderEmbedder",
        "minilm": "ragistry.models.minilm:MiniLMEmbedder",
        "multilingual": "ragistry.models.multilingual:MultilingualEmbedder",
        "ollama": "ragistry.ollama.embedder:OllamaEmbedder",
        "openai": "ragistry.models.openai:OpenAICompatibleEmbedder",
        "tei": "ragistry.models.openai:OpenAICompatibleEmbedder",
    },
    "ragistry.encoders": {"folder": "ragistry.models.folder:FolderEncoder"},
    "ragistry.generators": {
        "ollama": "ragistry.ollama.generator:OllamaGenerator",
        "openai": "ragistry.models.openai:OpenAIGenerator",
    },
    "ragistry.rerankers": {
        "folder": "ragistry.models.folder:FolderReranker",
        "maxsim": "ragistry.models.maxsim:MaxSimReranker",
        "openai": "ragistry.models.openai:OpenAIReranker",
        "tei": "ragistry.models.tei:TEIReranker",
    },
    READERS: {},  # `readers.extract` and `readers.by_format` have those of this package
    "ragistry.stores": {
        "chroma": "ragistry.stores.chroma:ChromaStore",
        "local": "ragistry.stores.local:LocalStore",
        "postgres": "ragistry.stores.postgres:PostgresStore",
    },
}
"""The classes of this package by group and name, in the form of entry points."""

DOORS = {
    "server": ("ragistry.server.app", "server"),
    "page": ("ragistry.web.app", "ui"),
    "MCP server": ("ragistry.mcp.http", "mcp"),
}
"""What the commands serve: its module, and the extra of its packages."""


class BrokenPluginError(ConfigError):
    """An installed plugin cannot be loaded; everything else still works."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A class registered under a name by an installed package."""

    name: str
    spec: str
    distribution: str
    version: str = ""


def load_door(name: str) -> Any:
    """Import what a command serves, by its name in `DOORS`.

    Raises:
        ConfigError: It cannot be imported; the message has the command that installs its packages.
    """
    module, extra = DOORS[name]
    try:
        return import_module(module)
    except ImportError as error:
        from ragistry.utils.installation import install_command

        raise ConfigError(f"the {name} needs {error.name or module!r}; run: {install_command(extra)}") from error


@cache
def offers(group: str) -> dict[str, Offer]:
    """Return what this package and others offer in a group, by name; of duplicates, this package's own wins."""
    points = [
        (point.name, point.value, *((point.dist.name, point.dist.version) if point.dist else ("?", "")))
        for point in _entry_points().select(group=group)
    ]
    own = ((name, spec, "ragistry", "") for name, spec in BUILT_IN[group].items())
    found = {point[0]: Offer(*point) for point in (*sorted(points, reverse=True), *own)}
    return dict(sorted(found.items()))


@cache
def _entry_points() -> Any:  # the type differs between versions of Python
    """Return all entry points; each call of the library reads a file of every installed package."""
    from importlib.metadata import entry_points

    return entry_points()


def find_class(use: str, group: str, kind: str) -> type[Any]:
    """Find the class that ``use`` names; see `find_part`."""
    found = find_part(use, group, kind)
    if not isinstance(found, type):
        raise ConfigError(f"{use!r} is not a class but {found!r}; it must name the class of a {kind}")
    return found


def find_part(use: str, group: str, kind: str) -> Any:
    """Find the class, function or object that ``use`` names.

    Args:
        use: Name of a built-in class or of an entry point, or ``module:Class``.
        group: Group of entry points.
        kind: Kind of the class in messages.

    Raises:
        ConfigError: The name is unknown, or nothing has it.
        BrokenPluginError: An installed plugin fails on import.
    """
    if ":" in use:
        return resolve_object(use)
    if spec := BUILT_IN[group].get(use):
        return resolve_object(spec)
    offer = find_offer(use, group, kind)
    try:
        with modules_of(None):
            return resolve_object(offer.spec)
    except ConfigError as error:
        raise BrokenPluginError(f"plugin {offer.name!r} of {offer.distribution!r} is broken: {error}") from error


def find_offer(use: str, group: str, kind: str) -> Offer:
    """Find the entry point with a name. Raises `ConfigError` if there is none."""
    known = offers(group)
    if use not in known:
        raise ConfigError(
            f"unknown {kind} {use!r}{did_you_mean(use, known)}; there are {', '.join(known) or 'none'}, "
            f"or write 'module:{'function' if group == READERS else 'Class'}'"
        )
    return known[use]


def digest_of(spec: str) -> str:
    """Return a digest of the file of ``module:attribute``, which is not imported; empty if there is no such file.

    Raises `ConfigError` if the form is wrong, or no such module is found.
    """
    name, _ = _split(spec)
    found = _place(spec, name)
    if found is None:
        raise ConfigError(f"cannot load {spec!r}: {_missing(name.partition('.')[0])}")
    file = _file(found.parents[1 if found.name == "__init__.py" else 0], name)
    return sha256(file.read_bytes()).hexdigest()[:16] if file else ""


def resolve_object(spec: str) -> Any:
    """Import ``"package.module:attr"`` and return the attribute; see `modules_of` for the files of a workspace.

    Raises `ConfigError` with the cause: wrong form, missing module, a file of the workspace with the name of another
    module, a missing dependency of the module, an error during its import, or a missing attribute.
    """
    name, attribute = _split(spec)
    if _folder.get() is not None:
        _place(spec, name)
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise ConfigError(f"cannot load {spec!r}: {_missing(error.name)}") from error
        raise ConfigError(
            f"cannot load {spec!r}: module {name!r} needs {error.name!r}, which is not installed; "
            f"install the package that provides {error.name!r}"
        ) from error
    except ConfigError:  # it names what to install
        raise
    except Exception as error:
        raise ConfigError(
            f"cannot load {spec!r}: module {name!r} fails on import with {type(error).__name__}: {error}; "
            f"see it alone with: python -c 'import {name}'"
        ) from error
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        public = [name for name in vars(module) if not name.startswith("_")]
        suggestion = did_you_mean(attribute, public) or f"; it has {listed(public)}"
        raise ConfigError(f"cannot load {spec!r}: module {name!r} has no {attribute!r}{suggestion}") from error


def _split(spec: str) -> tuple[str, str]:
    module, _, attribute = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if not attribute.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"cannot load {spec!r}: write 'module:attribute', such as 'mypackage.search:MyTechnique'")
    return module, attribute


def _missing(name: str) -> str:
    """Describe a missing module; if its package was found, list the package's modules."""
    parent, _, last = name.rpartition(".")
    if not parent:
        return f"no module {name!r}; install its package, or put {name}.py on the Python path"
    siblings = [module.name for module in iter_modules(getattr(sys.modules.get(parent), "__path__", []))]
    suggestion = did_you_mean(last, siblings) or f"; its modules: {listed(siblings)}"
    return f"package {parent!r} has no module {last!r}{suggestion}"


_folder: ContextVar[Path | None] = ContextVar("folder whose files are named", default=None)


def find_modules_in(folder: Path) -> None:
    """Let Python find modules in a folder, after all others."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


@contextmanager
def modules_of(folder: Path | None) -> Iterator[None]:
    """Let names in this block and thread be those of files of ``folder``, if it has them; None: no folder."""
    if folder is not None:
        find_modules_in(folder)
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def _place(spec: str, name: str) -> Path | None:
    """Return the file of the first part of a module's name; None if there is no such module.

    Raises `ConfigError` if a file of the folder has the name of another module: Python keeps one module per name.
    """
    first = name.partition(".")[0]
    own, found = _file(_folder.get(), first), _found(first)
    if own is not None and own.resolve() != found:
        place = f"at {str(found)!r}" if found else "that is loaded"
        raise ConfigError(f"cannot load {spec!r}: Python takes {first!r} for the module {place}; rename {str(own)!r}")
    return found


def _file(folder: Path | None, name: str) -> Path | None:
    """Return the file of a module or package in the folder; never one of Ragistry itself."""
    first, *rest = name.split(".")
    if folder is None or first in ("", "ragistry"):
        return None
    place = folder.joinpath(first, *rest)
    return next((file for file in (place.with_name(f"{place.name}.py"), place / "__init__.py") if file.is_file()), None)


def _found(first: str) -> Path | None:
    """Return the file that Python has loaded, or would load, for a name."""
    try:
        spec = find_spec(first)
    except (ImportError, ValueError):  # a module created by code
        return None
    return Path(spec.origin).resolve() if spec is not None and spec.origin else None
