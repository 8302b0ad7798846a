"""The command ``ragistry technique new``, which creates a package with a technique."""

from __future__ import annotations

import keyword
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from ragistry.cli.options import DebugOption, JsonOption
from ragistry.cli.options import path as given_path
from ragistry.cli.output import console, print_json

app = typer.Typer(invoke_without_command=True)


@app.callback()
def technique(context: typer.Context) -> None:
    """Write your own technique; `ragistry techniques` lists the existing ones."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the technique and of its module, such as newest_first.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="New folder for the package (default: NAME).", parser=given_path),
    ] = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Create a package with a working technique to change: its entry, its tests, its entry point.

    The folder is a workspace, so that you can try the technique before you install it.
    """
    from ragistry import __version__
    from ragistry.errors import ConfigError

    folder = Path(name) if out is None else out
    check_name(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{str(folder)!r} exists and is not empty; give a new folder with --out FOLDER")
    words = {
        "name": name,
        "Class": "".join(part.capitalize() for part in name.split("_")),
        "project": name.replace("_", "-"),
        "version": __version__,
    }
    written = []
    for file, text in FILES.items():
        path = folder / Template(file).substitute(words)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(text).substitute(words), encoding="utf-8")
        written.append(str(path))
    if as_json:
        print_json({"name": name, "class": words["Class"], "written": written})
        return
    for line in written:
        console().print(f"wrote {line}")
    console().print(f"next: cd {shlex.quote(str(folder))} && python -m pytest")


def check_name(name: str) -> None:
    """Raise `ConfigError` if a name is invalid, or already the name of a technique or module."""
    from ragistry.errors import ConfigError
    from ragistry.techniques.checks import AUTO
    from ragistry.techniques.classes import offers

    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a Python module; use letters a to z, digits and single underscores, "
            "such as 'newest_first'"
        )
    offer = offers().get(name)
    if offer is not None or name == AUTO:
        owner = "ragistry" if offer is None else offer.distribution
        raise ConfigError(f"{name!r} is already a technique of {owner!r}; choose another name")
    if name in sys.stdlib_module_names or name == "ragistry":
        raise ConfigError(
            f"{name!r} is a module of {'Ragistry' if name == 'ragistry' else 'Python'}; choose another name"
        )
    found = find_spec(name)
    if found is not None and found.origin is not None:
        raise ConfigError(f"a module {name!r} already exists in {found.origin!r}; choose another name")


PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "$project"
version = "0.1.0"
description = "A retrieval technique for Ragistry."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["ragistry>=$version"]

[project.optional-dependencies]
dev = ["pytest>=9.0"]

[project.entry-points."ragistry.techniques"]
$name = "$name:$Class"

[tool.hatch.build]
only-include = ["$name.py"] # what you ingest here is not published

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]
"""

TECHNIQUE = '''\
"""A retrieval technique for Ragistry."""

from pydantic import BaseModel, Field


class $Class:
    """Relative cut: drops results of the base that score far below the best one."""

    class Config(BaseModel, extra="forbid"):
        share: float = Field(default=0.5, ge=0, le=1, description="drop results below this share of the best score")

    def __init__(self, config: Config, *, base):
        self.config = config
        self.base = base

    def retrieve(self, query, *, top_k=None, where=None):
        found = self.base.retrieve(query, top_k=top_k, where=where)
        return [document for document in found if document.score >= self.config.share * found[0].score]
'''

ENTRIES = """\
# Techniques of this workspace; `ragistry techniques` lists them.

techniques:
  naive: {use: naive} # the base of $name
  $name: {use: "$name:$Class", base: naive, share: 0.5}
"""

TESTS = '''\
"""Tests of the technique: the conformance suite, and its own behaviour."""

import shutil
from pathlib import Path

import pytest
from ragistry import Document, open_workspace
from ragistry.testing.techniques import TechniqueConformance

from $name import $Class


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A copy of this folder's configuration, with six short texts in two collections."""
    root = tmp_path_factory.mktemp("workspace")
    shutil.copytree(Path(__file__).parents[1] / "config", root / "config")
    with open_workspace(root) as opened:
        for collection in ("wiki", "garden"):
            opened.library.create_collection(collection)
            for number in range(3):
                text = f"How to restore a backup: note {number} of the {collection}."
                opened.library.ingest_text(text, f"{number}.txt", collection)
        yield opened


class TestConformance(TechniqueConformance):
    query = "how do I restore a backup?"

    @pytest.fixture
    def technique(self, workspace):
        return workspace.technique("$name")


class Base:
    """Returns the same three documents for every query."""

    def retrieve(self, query, **options):
        return [Document(name, {}, score, id=name) for name, score in (("a", 0.8), ("b", 0.4), ("c", 0.3))]


def test_results_below_a_share_of_the_best_score_are_dropped():
    found = $Class($Class.Config(share=0.5), base=Base()).retrieve("backup")
    assert [document.id for document in found] == ["a", "b"]


def test_config_techniques_yaml_has_the_technique(workspace):
    assert workspace.search("how do I restore a backup?", technique="$name").documents
'''

README = """\
# $name

A retrieval technique for Ragistry: the class `$Class` in `$name.py`. `config/techniques.yaml` configures it for this
folder; `tests/test_$name.py` runs the conformance suite of techniques.

```sh
python -m pip install --editable '.[dev]'
python -m pytest
ragistry compare --dataset TESTSET -t naive -t $name
```

The first command makes `use: $name` known in every workspace. The last one shows whether the technique is better than
its base. TESTSET is a folder in BEIR's layout; `ragistry testset make TESTSET --from DOCUMENTS` makes one from
your own documents.
"""

FILES = {
    "pyproject.toml": PYPROJECT,
    "$name.py": TECHNIQUE,
    "config/techniques.yaml": ENTRIES,
    "tests/test_$name.py": TESTS,
    "README.md": README,
}
"""The package by the paths of its files; $name, $Class, $project and $version are filled in."""
