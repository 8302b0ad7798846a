"""Importing the package costs next to nothing, and every public name can be had."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ragistry

HEAVY = ("chromadb", "numpy", "onnxruntime", "tokenizers", "yaml", "pydantic", "httpx", "typer", "rich")
HELP = """
import contextlib, io, sys
from ragistry.cli import main
sys.argv = ["ragistry", "--help"]
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
"""
REGISTRY = """
from ragistry.config.settings import DEFAULTS
from ragistry.techniques.registry import TechniqueRegistry
TechniqueRegistry.load(DEFAULTS / "techniques.yaml")
"""
SEARCH = """
import sys, tempfile
from ragistry import open_workspace
with tempfile.TemporaryDirectory() as folder:
    with open_workspace(folder) as workspace:
        workspace.library.create_collection("notes")
        workspace.library.ingest_text("Drain the pump.", "pump.txt", "notes")
    for name in [name for name in sys.modules if name.startswith("filelock")]:
        del sys.modules[name]
    with open_workspace(folder) as workspace:
        assert workspace.search("pump", technique="bm25").documents
"""


@pytest.mark.parametrize(
    ("statement", "names", "loaded"),
    [
        ("import ragistry", HEAVY, set()),
        ("import numpy", HEAVY, {"numpy"}),  # the measurement sees what is loaded
        (REGISTRY, ("pocketflow", "ragistry.techniques.graph"), set()),
        (HELP, ("chromadb", "numpy", "onnxruntime", "yaml", "pydantic", "httpx", "rich", "filelock"), set()),
        (SEARCH, ("filelock",), set()),
    ],
    ids=["package", "numpy", "techniques", "help", "search"],
)
def test_import_loads_nothing_heavy(statement: str, names: tuple[str, ...], loaded: set[str]) -> None:
    code = f"{statement}\nimport sys\nprint(*[name for name in {names!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == loaded


def test_public_names_are_sorted_and_unknown_ones_refused() -> None:
    assert sorted(ragistry.__all__) == ragistry.__all__
    assert {getattr(ragistry, name).__name__ for name in ragistry.__all__} == set(ragistry.__all__)
    assert set(ragistry.__all__) <= set(dir(ragistry))
    with pytest.raises(AttributeError, match="nothing"):
        _ = ragistry.nothing
