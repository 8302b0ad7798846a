"""Select and open the store of a library by `store: {use: …}` in vector_stores.yaml.

``use`` names a built-in store, an entry point of the group ``ragistry.stores``, or ``module:Class``. The class follows
the protocol `LibraryStore`. The other keys of the entry are arguments of its constructor, checked when the file is
loaded (`config.arguments`). The constructor may also take these values of the workspace: ``folder`` (of its data),
``language``, ``exclusive``, ``collection``.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from ragistry.config.arguments import arguments_model, checked_arguments
from ragistry.config.problems import Problems, dotted, explain
from ragistry.config.resolve import StoreEntry
from ragistry.errors import ConfigError, InvalidConfigError, RagistryError, StoreError
from ragistry.plugins import find_class
from ragistry.protocols import FitStore, LibraryStore, ReembedStore, WordsFirstStore

if TYPE_CHECKING:
    from ragistry.stores.local import LocalStore

GROUP = "ragistry.stores"
PROTOCOLS = {"reembed": ReembedStore, "words_first": WordsFirstStore, "fit": FitStore}
"""The protocols of those abilities that need more methods."""
RESOURCES = ("folder", "language", "exclusive", "collection")


@dataclass(frozen=True, slots=True)
class StoreChoice:
    """The class of a store and the checked arguments of its constructor, not yet opened."""

    use: str
    cls: type[Any]
    config: dict[str, Any]

    @property
    def abilities(self) -> frozenset[str]:
        """The optional abilities of the store."""
        return cast("frozenset[str]", self.cls.abilities)


def choose_store(entry: StoreEntry, problems: Problems) -> StoreChoice:
    """Find the class of the entry and check its configuration.

    Args:
        entry: The entry.
        problems: Receives every error of the configuration, except for values that it names already.

    Raises:
        InvalidConfigError: There is no such class, or it is not one of a store.
    """
    place = entry.places.get("use", "default")
    try:
        cls = find_class(entry.use, GROUP, "store")
    except ConfigError as error:
        raise InvalidConfigError(f"{place}: store.use: {error}") from error
    abilities: Any = getattr(cls, "abilities", None)
    has_abilities = isinstance(abilities, frozenset)
    protocols = [
        LibraryStore,
        *(PROTOCOLS[one] for one in sorted(PROTOCOLS.keys() & (abilities if has_abilities else ()))),
    ]
    needed = {name for protocol in protocols for name in dir(protocol) if not name.startswith("_")} - {"abilities"}
    missing = sorted(name for name in needed if not callable(getattr(cls, name, None)))
    if not has_abilities:
        missing.append("abilities (a frozenset, on the class)")
    if missing:
        raise InvalidConfigError(
            f"{place}: store.use: {entry.use!r} is not a library store; its class lacks {', '.join(missing)}; "
            f"see {', '.join(one.__name__ for one in protocols)} in ragistry.protocols, or subclass a store to wrap it"
        )
    return StoreChoice(entry.use, cls, _checked_config(entry, cls, place, problems))


def _checked_config(entry: StoreEntry, cls: type[Any], place: str, problems: Problems) -> dict[str, Any]:
    model = arguments_model(cls, RESOURCES)
    try:
        return checked_arguments(model, entry.config)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            key = str(item["loc"][0]) if item["loc"] else "use"
            where, keys = entry.places.get(key, place), ["store", *item["loc"]]
            if not problems.names(keys):
                problems.lines.append(f"{where}: {dotted(keys)}: {explain(item, model)}")
        return {}


def open_store(
    choice: StoreChoice,
    folder: Path,
    *,
    language: str = "english",
    exclusive: bool = False,
    collection: str = "documents",
) -> LibraryStore:
    """Open the store; ``folder``: the data folder of the workspace. Raises `StoreError`."""
    resources = {"folder": folder, "language": language, "exclusive": exclusive, "collection": collection}
    wanted: set[str] = set()
    for cls in choice.cls.__mro__:
        if "__init__" in (layer := vars(cls)):
            parameters = inspect.signature(layer["__init__"]).parameters
            wanted.update(parameters)
            if all(one.kind is not one.VAR_KEYWORD for one in parameters.values()):  # it passes nothing on
                break
    try:
        store = choice.cls(**{name: value for name, value in resources.items() if name in wanted} | choice.config)
    except RagistryError:
        raise
    except OSError as error:
        raise StoreError(
            f"the store {choice.use!r} in {str(folder)!r} cannot be opened: {error.strerror or error}; make the folder "
            "readable and writable, or name another in data_dir"
        ) from error
    return cast("LibraryStore", store)


def open_local(
    folder: Path, *, language: str = "english", exclusive: bool = False, exact_below: int = 10_000
) -> LocalStore:
    """Open a local store in a folder, for a documentation repository or the index of a comparison."""
    from ragistry.stores.local import LocalStore

    return LocalStore(folder, exclusive=exclusive, language=language, exact_below=exact_below)


def local_exists(folder: Path) -> bool:
    """Return whether the folder contains a local store."""
    from ragistry.stores.local import LocalStore

    return LocalStore.exists(folder)
