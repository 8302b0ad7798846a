"""Importing the package costs next to nothing, and every public name can be had."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ragistry

HEAVY = ("chromadb", "numpy", "onnxruntime", "tokenizers", "yaml", "ruamel", "pydantic", "httpx", "typer", "rich")


def loaded_after(statement: str, names: tuple[str, ...] = HEAVY) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*[name for name in {names!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_loads_nothing_heavy() -> None:
    assert loaded_after("import ragistry") == set()


def test_the_measurement_sees_what_is_loaded() -> None:
    assert loaded_after("import numpy") == {"numpy"}


def test_help_loads_no_model_and_no_store() -> None:
    code = """
import contextlib, io, sys
from ragistry.cli import main
sys.argv = ["ragistry", "--help"]
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
"""
    assert loaded_after(code, ("chromadb", "numpy", "onnxruntime", "ruamel", "httpx")) == set()


@pytest.mark.parametrize("name", ragistry.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(ragistry, name).__name__ == name


def test_public_names_are_sorted_and_unknown_ones_refused() -> None:
    assert sorted(ragistry.__all__) == ragistry.__all__
    assert set(ragistry.__all__) <= set(dir(ragistry))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ragistry.nothing
