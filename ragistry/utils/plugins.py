"""Find the class after ``use:``: a name registered by an installed package (an entry point), or ``module:Class``.

The built-in techniques and stores are entry points of this package too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ragistry.errors import ConfigError
from ragistry.utils.own_modules import modules_of
from ragistry.utils.resolve import resolve_object
from ragistry.utils.suggest import did_you_mean


class BrokenPluginError(ConfigError):
    """An installed plugin cannot be loaded; everything else still works."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A class registered under a name by an installed package."""

    name: str
    spec: str
    distribution: str


@cache
def offers(group: str) -> dict[str, Offer]:
    """Every name of an entry point group, in order; for duplicates, this package's own wins."""
    found = sorted(entry_points(group=group), key=lambda point: (point.name, _owner(point) != "ragistry"))
    chosen: dict[str, Offer] = {}
    for point in found:
        chosen.setdefault(point.name, Offer(point.name, point.value, _owner(point)))
    return chosen


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "?"


def find_class(use: str, group: str, kind: str) -> type[Any]:
    """The class that ``use`` names; ``kind``: its name in messages.

    Raises `ConfigError` for an unknown name or a specification that does not lead to a class, and
    `BrokenPluginError` if an installed plugin fails when it is imported.
    """
    if ":" in use:
        return _a_class(use, kind, resolve_object(use))
    offer = offers(group).get(use)
    if offer is None:
        known = offers(group)
        raise ConfigError(
            f"unknown {kind} {use!r}{did_you_mean(use, known)}; there are {', '.join(known) or 'none'}, "
            "or write 'module:Class'"
        )
    try:
        with modules_of(None):
            return _a_class(use, kind, resolve_object(offer.spec))
    except ConfigError as error:
        raise BrokenPluginError(f"plugin {offer.name!r} of {offer.distribution!r} is broken: {error}") from error


def _a_class(use: str, kind: str, found: Any) -> type[Any]:
    if not isinstance(found, type):
        raise ConfigError(f"{use!r} is not a class but {found!r}; it must name the class of a {kind}")
    return found
