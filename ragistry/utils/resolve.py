"""Import the class or function that ``"module:attr"`` in a configuration file names."""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from ragistry.errors import ConfigError
from ragistry.utils.own_modules import check_imported, importable, written
from ragistry.utils.suggest import did_you_mean, listed


def resolve_object(spec: str) -> Any:
    """Import ``"package.module:attr"`` and return the attribute; see `modules_of` for the files of a workspace.

    Raises `ConfigError` with the cause: wrong form, missing module, a missing dependency of the module, an error during
    its import, or a missing attribute.
    """
    module_name, attribute = _split(spec)
    module = _import(spec, module_name)
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        public = [name for name in vars(module) if not name.startswith("_")]
        suggestion = did_you_mean(attribute, public) or f"; it has {listed(public)}"
        raise ConfigError(f"cannot load {spec!r}: module {module_name!r} has no {attribute!r}{suggestion}") from error


def _split(spec: str) -> tuple[str, str]:
    module, _, attribute = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if not attribute.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"cannot load {spec!r}: write 'module:attribute', such as 'mypackage.search:MyTechnique'")
    return module, attribute


def _import(spec: str, name: str) -> ModuleType:
    full = importable(name)
    try:
        module = import_module(full)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{full}.".startswith(f"{error.name}."):
            raise ConfigError(f"cannot load {spec!r}: {_missing(error.name)}") from error
        raise ConfigError(
            f"cannot load {spec!r}: module {name!r} needs {error.name!r}, which is not installed; "
            f"install the package that provides {error.name!r}"
        ) from error
    except Exception as error:
        raise ConfigError(
            f"cannot load {spec!r}: module {name!r} fails on import with {type(error).__name__}: {error}; "
            f"see it alone with: python -c 'import {name}'"
        ) from error
    check_imported(module)
    return module


def _missing(name: str) -> str:
    """The remedy for a missing module; if its package was found, lists the package's modules."""
    parent, _, last = name.rpartition(".")
    if not parent:
        return f"no module {name!r}; install its package, or put {name}.py on the Python path"
    siblings = [module.name for module in iter_modules(getattr(sys.modules.get(parent), "__path__", []))]
    suggestion = did_you_mean(last, siblings) or f"; its modules: {listed(siblings)}"
    return f"package {written(parent)!r} has no module {last!r}{suggestion}"
