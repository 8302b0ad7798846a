"""The code that a technique is made of, as a hash: answers of other code are not its own."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ragistry.utils.imports import imported
from ragistry.utils.own_modules import written

INSTALLED = {"site-packages", "dist-packages"}


def code_of(made: Any) -> str | None:
    """SHA-256, hexadecimal, of the file of a class or function, and of all that decides with it what it does.

    These are the files of its base classes, and what any of the files imports of its own package; of its own folder
    where it is in no package. Of base classes that other installed packages have, it is their own files alone. None
    where there is no such file, as for what was typed at a prompt.
    """
    kinds = made.__mro__ if isinstance(made, type) else (made,)
    own, *others = dict.fromkeys(_imported_as(kind.__module__) for kind in kinds)
    found: dict[str, bytes] = {}
    for name in (own, *others):
        home = _home(name)
        if home is not None:
            _read(home, written(name), found, follow=not home.installed or home.first == own.partition(".")[0])
    if written(own) not in found:
        return None
    digest = sha256()
    for name in sorted(found):
        digest.update(f"{name} {len(found[name])}\n".encode() + found[name])
    return digest.hexdigest()


class _Home(NamedTuple):
    """The folder that names are looked up in, and the only first name that counts there, unless it is ``open``."""

    folder: Path
    first: str
    open: bool

    @property
    def installed(self) -> bool:
        return not INSTALLED.isdisjoint(self.folder.parts)


def _imported_as(name: str) -> str:
    """The name of a module under which others import it, where ``python -m`` runs it as ``__main__``."""
    spec = getattr(sys.modules.get(name), "__spec__", None) if name == "__main__" else None
    return name if spec is None else str(spec.name)


def _home(name: str) -> _Home | None:
    module = sys.modules["__main__"] if name == _imported_as("__main__") else sys.modules.get(name)
    file, (first, *rest) = getattr(module, "__file__", None), written(name).split(".")
    if file is None or name.partition(".")[0] in sys.stdlib_module_names:
        return None
    path = Path(file).resolve()
    above = len(rest) + (path.name == "__init__.py")
    folder = path.parents[above]
    return _Home(folder, first, open=not above and INSTALLED.isdisjoint(folder.parts))


def _read(home: _Home, name: str, found: dict[str, bytes], *, follow: bool) -> None:
    """Add the file of a module and, to ``follow``, of what it imports, and so on."""
    waiting = [name]
    while waiting:
        name = waiting.pop()
        path = Path(str(sys.modules[name].__file__)) if name == "__main__" else _file(home, name)
        if name in found or path is None or path.suffix != ".py":
            continue
        found[name] = path.read_bytes()
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for choices in imported(found[name], package) if follow else ():
            waiting += [choice for choice in choices if _file(home, choice)][:1]


def _file(home: _Home, name: str) -> Path | None:
    if not home.open and home.first != name.partition(".")[0]:
        return None
    path = home.folder.joinpath(*name.split("."))
    return next((file for file in (path.with_name(f"{path.name}.py"), path / "__init__.py") if file.is_file()), None)
