"""Arguments of a wrong type: every method of a library tells which, its value, and what to give."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import RagistryError, SourceError
from ragistry.library.service import DocumentService
from ragistry.utils.shown import shown

WRONG: tuple[Any, ...] = (5, 2.5, b"x", [5], {"a": 1}, object())
RIGHT: dict[str, Any] = {
    "path": ".", "paths": ["."], "text": "Tea.", "source": "tea.txt", "sources": ["tea.txt"], "query": "tea",
    "collection": "notes", "name": "notes", "new_name": "shelf", "from_col": "notes", "to_col": "econ",
    "where": {"page": 1}, "n": 3, "technique": "bm25", "description": "D", "display_name": "D", "progress": None,
    "prune": False, "follow_links": False, "replace": False, "overwrite": False, "engine": None, "on_piece": None,
    "allow_private": False, "changed": None,
}  # fmt: skip
METHODS = [
    name for name, _ in inspect.getmembers(DocumentService, inspect.isfunction) if not name.startswith("_")
]  # fmt: skip
ARGUMENTS = [
    (method, argument)
    for method in METHODS
    for argument in inspect.signature(getattr(DocumentService, method)).parameters
    if argument != "self"
]
FITTING = {"n": (5,), "where": ({"a": 1},)}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with open_workspace(tmp_path_factory.mktemp("given")) as opened:
        for name in ("notes", "econ"):
            opened.library.create_collection(name, "Described")
        opened.library.ingest_text("Tea is steeped.", "tea.txt", "notes")
        yield opened


@pytest.mark.parametrize(("method", "argument"), ARGUMENTS)
def test_a_wrong_type_is_told_by_the_arguments_name_its_value_and_a_remedy(
    filled: Workspace, method: str, argument: str
) -> None:
    names = inspect.signature(getattr(DocumentService, method)).parameters
    right = {name: RIGHT[name] for name in names if name != "self"}
    for value in WRONG:
        if value in FITTING.get(argument, ()):
            continue
        with pytest.raises(RagistryError) as refused:
            getattr(filled.library, method)(**right | {argument: value})
        said = str(refused.value)
        assert said.startswith("top_k must be " if argument == "n" else f"{argument} must be ")
        assert shown(value) in said
        assert len(said.splitlines()) == 1
        assert len(said.split("; ")) > 1 or argument == "n"
    assert filled.library.list_sources("notes") == ["tea.txt"], "nothing was changed"


@pytest.mark.parametrize("argument", ["source", "collection", "name", "from_col", "query", "text", "path", "replace"])
def test_none_is_nothing_where_something_is_asked_for(filled: Workspace, argument: str) -> None:
    asking = [
        (method, name)
        for method, name in ARGUMENTS
        if name == argument and inspect.signature(getattr(DocumentService, method)).parameters[name].default is not None
    ]
    assert asking
    for method, name in asking:
        names = inspect.signature(getattr(DocumentService, method)).parameters
        right = {name: RIGHT[name] for name in names if name != "self"}
        with pytest.raises(RagistryError, match=f"{name} must be .*, got None; "):
            getattr(filled.library, method)(**right | {name: None})


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
def test_what_cannot_be_a_path_is_told(filled: Workspace, path: str) -> None:
    for call in (filled.library.ingest_file, filled.library.ingest_folder):
        with pytest.raises(SourceError, match="path must be the path of a file"):
            call(path, "notes")
    with pytest.raises(SourceError, match="paths must be a list"):
        filled.library.ingest_paths([path], "notes")


def test_one_name_is_not_a_list_of_letters(filled: Workspace) -> None:
    with pytest.raises(SourceError, match=r"sources must be a list of text, got 'tea.txt'; .*\['a.md'\]"):
        filled.library.delete_sources("tea.txt", "notes")
    with pytest.raises(SourceError, match=r"paths must be a list, .*got 'tea.txt'; write \[path\]"):
        filled.library.ingest_paths("tea.txt", "notes")


def test_a_path_may_be_anything_that_names_a_file(filled: Workspace, tmp_path: Path) -> None:
    class Named:
        def __fspath__(self) -> str:
            return str(tmp_path / "milk.txt")

    (tmp_path / "milk.txt").write_text("Milk.", encoding="utf-8")
    assert filled.library.ingest_file(Named(), "econ") == 1
