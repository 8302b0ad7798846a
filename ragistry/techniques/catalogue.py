"""The techniques that a name in techniques.yaml can mean: see `utils.plugins`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ragistry.config.settings import CONFIG_FOLDER
from ragistry.utils import plugins
from ragistry.utils.own_modules import modules_of
from ragistry.utils.plugins import BrokenPluginError, Offer

GROUP = "ragistry.techniques"


def offers() -> dict[str, Offer]:
    """Every technique that an installed package offers, by name."""
    return plugins.offers(GROUP)


def modules_beside(path: Path) -> AbstractContextManager[None]:
    """A block in which the files of the workspace that a techniques.yaml belongs to go before other modules."""
    folder = path.resolve().parent
    return modules_of(folder.parent if folder.name == CONFIG_FOLDER else None)


def find_class(use: str) -> type[Any]:
    """The class that ``use`` names. Raises `ConfigError`, and `BrokenPluginError` for an installed plugin."""
    return plugins.find_class(use, GROUP, "technique")


def broken_plugins() -> dict[str, str]:
    """Every offered name that cannot be loaded, with the reason."""
    broken = {}
    for name in offers():
        try:
            find_class(name)
        except BrokenPluginError as error:
            broken[name] = str(error)
    return broken
