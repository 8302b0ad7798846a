"""A file of a workspace is the module of its name, or is to be renamed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragistry.errors import ConfigError
from ragistry.plugins import digest_of, modules_of, resolve_object
from tests.messages import refused


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


def digest(folder: Path, spec: str) -> str:
    with modules_of(folder):
        return digest_of(spec)


def test_a_file_of_another_workspace_is_never_taken_for_one_of_this(folders: tuple[Path, Path]) -> None:
    for folder in folders:
        write(folder, "shelf_technique.py", f"class Mine: at = {folder.name!r}\n")
        write(folder, "shelf_package/__init__.py", "")
        write(folder, "shelf_package/parts.py", f"AT = {folder.name!r}\n")
    first, second = folders
    for spec in ("shelf_technique:Mine", "shelf_package.parts:AT"):
        found = loaded(first, spec)
        assert getattr(found, "at", found) == first.name
        for load in (lambda spec=spec: loaded(second, spec), lambda spec=spec: digest(second, spec)):
            with refused(ConfigError, str(first / spec.partition(".")[0].partition(":")[0]), str(second)):
                load()
        assert loaded(first, spec) is found, "it is made once"


def test_a_file_with_the_name_of_an_installed_module_is_to_be_renamed(folders: tuple[Path, Path]) -> None:
    for name in ("json", "pydantic", "sys"):
        write(folders[0], f"{name}.py", "class Mine: pass\n")
        with pytest.raises(ConfigError, match=f"rename '{folders[0]}/{name}.py'"):
            loaded(folders[0], f"{name}:Mine")
    assert loaded(folders[1], "json:dumps") is json.dumps, "another folder may name the module"


def test_a_package_of_ragistry_in_a_folder_is_no_second_ragistry(tmp_path: Path) -> None:
    write(tmp_path, "ragistry/__init__.py", "")
    write(tmp_path, "ragistry/errors.py", "class ConfigError(Exception): pass\n")
    assert loaded(tmp_path.resolve(), "ragistry.errors:ConfigError") is ConfigError
