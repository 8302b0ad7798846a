"""What may stand after ``use:``: the entry points of the group ``ragistry.techniques``, or ``module:Class``.

The built-in techniques are entry points of this package: they come in by the same door as anybody's.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from ragistry.config.settings import CONFIG_FOLDER
from ragistry.errors import ConfigError
from ragistry.utils.own_modules import modules_of
from ragistry.utils.resolve import resolve_object
from ragistry.utils.suggest import did_you_mean

GROUP = "ragistry.techniques"


class BrokenPluginError(ConfigError):
    """An installed plugin cannot be loaded; what does not use it still works."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A technique class that somebody's distribution offers under a name."""

    name: str
    spec: str
    distribution: str


@cache
def offers() -> dict[str, Offer]:
    """Every name that is offered, in the order of the names; of two of the same name this package's own wins."""
    found = sorted(entry_points(group=GROUP), key=lambda point: (point.name, _owner(point) != "ragistry"))
    chosen: dict[str, Offer] = {}
    for point in found:
        chosen.setdefault(point.name, Offer(point.name, point.value, _owner(point)))
    return chosen


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "?"


def modules_beside(path: Path) -> AbstractContextManager[None]:
    """A block in which the files of the workspace that a techniques.yaml belongs to go before other modules."""
    folder = path.resolve().parent
    return modules_of(folder.parent if folder.name == CONFIG_FOLDER else None)


def find_class(use: str) -> type[Any]:
    """The class that ``use`` names.

    Raises `ConfigError` for an unknown name or a specification that does not lead to a class, and
    `BrokenPluginError` where an installed plugin fails when it is imported.
    """
    if ":" in use:
        return _a_class(use, resolve_object(use))
    offer = offers().get(use)
    if offer is None:
        raise ConfigError(
            f"unknown technique {use!r}{did_you_mean(use, offers())}; there are {', '.join(offers())}, "
            "or write 'module:Class'"
        )
    try:
        with modules_of(None):
            return _a_class(use, resolve_object(offer.spec))
    except ConfigError as error:
        raise BrokenPluginError(f"plugin {offer.name!r} of {offer.distribution!r} is broken: {error}") from error


def _a_class(use: str, found: Any) -> type[Any]:
    if not isinstance(found, type):
        raise ConfigError(f"{use!r} is no class but {found!r}; name a class with a method retrieve(query)")
    return found


def broken_plugins() -> dict[str, str]:
    """Every offered name that cannot be loaded, with the reason."""
    broken = {}
    for name in offers():
        try:
            find_class(name)
        except BrokenPluginError as error:
            broken[name] = str(error)
    return broken
