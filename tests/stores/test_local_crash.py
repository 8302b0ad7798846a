"""A process that ends at any step of a write leaves each source wholly in its old or wholly in its new version."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ragistry.stores.local import LocalStore
from tests.stores.crashes import SCENARIOS, open_store
from tests.stores.local_stores import Truth, check, check_searches, held, moved, put, same, truth_of, version_of
from tests.stores.scripts import ROOT

A, A2, B = version_of("a.md", 1), version_of("a.md", 2), version_of("b.md", 1)
STATES: dict[str, list[Truth]] = {
    "create": [{}, truth_of(A)],
    "replace": [truth_of(A, B), truth_of(A2, B)],
    "delete": [truth_of(A, B), truth_of(A)],
    "move": [truth_of(A, B), truth_of(moved(A, "d"), B)],
    "clear": [truth_of(A, B), {}],
    "rebuild": [truth_of(A, B)],
    "catch_up_vectors": [truth_of(A2, B)],
    "rebuild_vectors": [truth_of(A, B)],
}
"""What may be there afterwards, in the order in which it comes to be."""


@pytest.fixture(scope="module")
def base(quick_folder: Path) -> Path:
    """A closed store with two sources and both indexes."""
    folder = quick_folder / "base"
    with closing(LocalStore(folder, exclusive=True, graph_above=0)) as store:
        put(store, A)
        put(store, B)
        check(store, truth_of(A, B))
    return folder


def crashed(scenario: str, base: Path, target: Path) -> list[tuple[Path, str]]:
    """The folder of each child that ended at a step, and the step; the last got through and has none."""
    command = [sys.executable, "-m", "tests.stores.crashes", scenario, str(base), str(target)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    pairs = [line.split("\t") for line in ended.stdout.splitlines()]
    return [(Path(folder), step) for folder, step in pairs]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_source_is_wholly_old_or_wholly_new(scenario: str, base: Path, quick_path: Path) -> None:
    children = crashed(scenario, base, quick_path)
    seen = []
    for folder, step in children:
        with closing(open_store(scenario, folder)) as store:
            found = held(store)
            states = [number for number, truth in enumerate(STATES[scenario]) if same(found, truth)]
            assert states, f"{step}: {sorted(found)}"
            seen += states
            truth = STATES[scenario][states[0]]
            check_searches(store, truth)
            # Reading all of ChromaDB's files takes long: for the steps of its index, once will do.
            assert (scenario.endswith("vectors") and step) or store.verify() == []
        shutil.rmtree(folder)
    assert seen == sorted(seen)
    assert set(seen) == set(range(len(STATES[scenario])))
    assert children[-1][1] == ""
