"""Import the Python files of a workspace, even if other modules have the same names.

Python keeps one module per name. If another workspace of this process, or an installed package, uses the name, the file
is imported inside a package that is unique to its folder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from ragistry.errors import ConfigError
from ragistry.utils.imports import imported

PREFIX = "_workspace_"
"""Prefix of the package names, before a digest of the folder."""

_folder: ContextVar[Path | None] = ContextVar("folder whose files go before others", default=None)
_known: set[Path] = set()


@contextmanager
def modules_of(folder: Path | None) -> Iterator[None]:
    """In this block and thread, files of ``folder`` are found before all other modules; None: no folder."""
    if folder is not None:
        _known.add(folder)
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def importable(name: str) -> str:
    """The name under which to import a module: its own, or one inside the package of the folder."""
    folder, first = _folder.get(), name.partition(".")[0]
    own = _file(folder, first)
    if folder is None or own is None or own == _found(first):
        return name
    return f"{_package(folder)}.{name}"


def written(name: str) -> str:
    """The argument of `importable` for its result."""
    return name.partition(".")[2] if name.startswith(PREFIX) else name


def check_imported(module: ModuleType) -> None:
    """Raise `ConfigError` if a module would import a file of another workspace instead of one in its folder.

    Checks its import statements, and recursively those of imported files of the folder.
    """
    folder = _folder.get()
    if folder is None or folder not in Path(getattr(module, "__file__", None) or "").resolve().parents:
        return
    waiting, seen = [module.__name__], set()
    while waiting:
        name = waiting.pop()
        path = _file(folder, written(name))
        if name in seen or path is None:
            continue
        seen.add(name)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        names = {choice for choices in imported(path.read_bytes(), package) for choice in choices}
        waiting += [package, *(one for one in sorted(names) if _is_own(folder, one, path))]


def _is_own(folder: Path, name: str, path: Path) -> bool:
    """Whether an import of the file at ``path`` is a file of the folder; `ConfigError` if it is shadowed."""
    first = name.partition(".")[0]
    own = _file(folder, first)
    used = _found(first) if own else None
    if used and own != used and used in {_file(known, first) for known in _known}:
        raise ConfigError(
            f"{path} imports {first!r}, and gets {str(used)!r} of another workspace; rename "
            f"{str(own)!r}, for Python keeps one module of a name"
        )
    return name.startswith(PREFIX) or (own is not None and own == used)


def _file(folder: Path | None, name: str) -> Path | None:
    """The file of a module or package in the folder; never one of Ragistry itself."""
    first, *rest = name.split(".")
    if folder is None or first in ("", "ragistry"):
        return None
    place = folder.joinpath(first, *rest)
    return next((file for file in (place.with_name(f"{place.name}.py"), place / "__init__.py") if file.is_file()), None)


def _found(first: str) -> Path | None:
    """The file that Python has loaded, or would load, for a name."""
    try:
        spec = find_spec(first)
    except (ImportError, ValueError):  # a module created by code
        return None
    return Path(spec.origin).resolve() if spec is not None and spec.origin else None


def _package(folder: Path) -> str:
    """The name of a package whose modules are the files of the folder."""
    name = f"{PREFIX}{sha256(str(folder).encode()).hexdigest()[:16]}"
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules.setdefault(name, package)
    return name
