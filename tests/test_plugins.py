"""Files of two workspaces, and of a workspace and a package, may have one name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry.errors import ConfigError
from ragistry.plugins import modules_of, resolve_object
from tests.messages import refused


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """What a test imports is gone after it."""
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two folders on the path of Python, as those of two open workspaces are."""
    first, second = tmp_path.resolve() / "first", tmp_path.resolve() / "second"
    for folder in (first, second):
        folder.mkdir()
        monkeypatch.syspath_prepend(folder)
    return second, first  # the one that Python finds first


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def loaded(folder: Path, spec: str) -> object:
    with modules_of(folder):
        return resolve_object(spec)


def test_each_folder_has_its_own_module(folders: tuple[Path, Path]) -> None:
    for folder in folders:
        write(folder, "shelf_technique.py", f"class Mine: at = {folder.name!r}\n")
    first, second = (loaded(folder, "shelf_technique:Mine") for folder in folders)
    assert [first.at, second.at] == [folder.name for folder in folders]
    assert first.__module__ == "shelf_technique", "a name that is free is kept"
    assert [loaded(folder, "shelf_technique:Mine") for folder in folders] == [first, second], "each is made once"
    assert resolve_object("shelf_technique:Mine") is first


def test_a_package_of_a_folder_is_told_from_that_of_another(folders: tuple[Path, Path]) -> None:
    for folder in folders:
        write(folder, "shelf_package/__init__.py", "")
        write(folder, "shelf_package/search.py", "from .parts import at\nclass Mine:\n    at = at\n")
        write(folder, "shelf_package/parts.py", f"at = {folder.name!r}\n")
    assert [loaded(folder, "shelf_package.search:Mine").at for folder in folders] == [one.name for one in folders]
    with refused(ConfigError):
        loaded(folders[1], "shelf_package.serch:Mine")


@pytest.mark.parametrize("name", ["json", "pydantic"])
def test_a_file_may_have_the_name_of_an_installed_module(folders: tuple[Path, Path], name: str) -> None:
    write(folders[0], f"{name}.py", f"import {name}\nclass Mine:\n    theirs = {name}.__file__\n")
    mine = loaded(folders[0], f"{name}:Mine")
    assert Path(mine.theirs).parent != folders[0], "what the file itself imports by that name is the package"
    with pytest.raises(ConfigError, match=f"module '{name}' has no 'Mine'"):
        resolve_object(f"{name}:Mine")


def test_what_lies_beside_it_is_never_taken_from_another_workspace(folders: tuple[Path, Path]) -> None:
    for folder in folders:
        write(folder, "shelf_words.py", f"def at(): return {folder.name!r}\n")
        write(folder, "shelf_search.py", "from shelf_words import at\nclass Mine:\n    at = staticmethod(at)\n")
    assert loaded(folders[0], "shelf_search:Mine").at() == folders[0].name
    with refused(ConfigError) as told:
        loaded(folders[1], "shelf_search:Mine")
    assert all(str(folder / "shelf_words.py") in str(told.value) for folder in folders)


CONSTANTS = {
    "a module": {"shelf_search.py": "from shelf_words import AT\n", "shelf_words.py": "AT = 'HERE'\n"},
    "a module of a package": {
        "shelf_search.py": "from shelf_words.parts import AT\n",
        "shelf_words/__init__.py": "",
        "shelf_words/parts.py": "AT = 'HERE'\n",
    },
    "its own package": {
        "shelf_search/__init__.py": "",
        "shelf_search/parts.py": "AT = 'HERE'\n",
        "shelf_search/mine.py": "from shelf_search.parts import AT\n",
    },
    "a module that a module imports": {
        "shelf_search.py": "from shelf_HERE import AT\n",
        "shelf_HERE.py": "from shelf_words import AT\n",
        "shelf_words.py": "AT = 'HERE'\n",
    },
    "the package around it": {
        "shelf_HERE/__init__.py": "from shelf_words import AT\n",
        "shelf_HERE/search.py": "from . import AT\n",
        "shelf_words.py": "AT = 'HERE'\n",
    },
}
ASKED = {"its own package": "shelf_search.mine", "the package around it": "shelf_HERE.search"}


@pytest.mark.parametrize("beside", CONSTANTS)
def test_no_constant_is_taken_from_another_workspace(folders: tuple[Path, Path], beside: str) -> None:
    for folder in folders:
        for name, text in CONSTANTS[beside].items():
            write(folder, name.replace("HERE", folder.name), text.replace("HERE", folder.name))
    names = [f"{ASKED.get(beside, 'shelf_search')}:AT".replace("HERE", folder.name) for folder in folders]
    assert loaded(folders[0], names[0]) == folders[0].name
    with refused(ConfigError):
        loaded(folders[1], names[1])


def test_a_package_of_ragistry_in_a_folder_is_no_second_ragistry(tmp_path: Path) -> None:
    write(tmp_path, "ragistry/__init__.py", "")
    write(tmp_path, "ragistry/errors.py", "class ConfigError(Exception): pass\n")
    assert loaded(tmp_path.resolve(), "ragistry.errors:ConfigError") is ConfigError


def test_an_import_from_above_all_packages_that_its_file_expects_to_fail_does_no_harm(tmp_path: Path) -> None:
    text = "try:\n    from .. import above\nexcept ImportError:\n    above = None\n"
    write(tmp_path, "shelf_above/__init__.py", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        assert loaded(tmp_path.resolve(), "shelf_above:above") is None
