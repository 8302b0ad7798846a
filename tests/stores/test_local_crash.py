"""A process that ends at any step of a write leaves each source old or new, and everything is found."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragistry.stores.local import LocalStore
from tests.conftest import full_run
from tests.stores.crashes import A2, SCENARIOS, WRITES, A, B
from tests.stores.local_stores import Truth, check, garble, held, put, same, truth_of
from tests.stores.pages import pages_of
from tests.stores.scripts import ROOT

STATES: dict[str, list[Truth]] = {
    "create": [{}, truth_of(A)],
    **{name: [truth_of(A, B), after] for name, (_, after) in WRITES.items()},
    "flush": [truth_of(A2, B)],
    "rebuild": [truth_of(A, B)],
    "repair": [truth_of(A, B)],
}
"""What the store may hold afterwards, in order."""


@pytest.fixture(scope="module")
def crashed(module_path: Path) -> dict[str, list[tuple[Path, str]]]:
    """By scenario, the folder of each child, and the step before which it ended; the last one has completed."""
    base = module_path / "base"
    with closing(LocalStore(base)) as store:  # with both indexes
        put(store, A, B)
        check(store, truth_of(A, B))
    damaged = Path(shutil.copytree(base, module_path / "damaged"))
    [page] = pages_of(damaged / "store.db", "chunks_by_hash")
    garble(damaged / "store.db", page.start, bytes(page.stop - page.start))
    command = [sys.executable, "-m", "tests.stores.crashes", base, module_path, "0" if full_run() else "4"]
    ended = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    children: dict[str, list[tuple[Path, str]]] = {scenario: [] for scenario in SCENARIOS}
    for scenario, folder, step in (line.split("\t") for line in ended.stdout.splitlines()):
        children[scenario].append((Path(folder), step))
    return children


def equal(found: Truth, expected: Truth) -> bool:
    """Whether texts, metadata and directions of vectors are the same."""
    return same(found, expected) and all(
        np.dot(chunk.embedding, other.embedding) > 0.999 * np.linalg.norm(other.embedding)
        for name, chunks in found.items()
        for chunk, other in zip(chunks, expected[name], strict=True)
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_crash_leaves_the_old_state_or_the_new(scenario: str, crashed: dict[str, list[tuple[Path, str]]]) -> None:
    children = crashed[scenario]
    assert len(children) > 4
    seen = []
    for folder, step in children:
        with closing(LocalStore(folder)) as store:
            found = held(store)
            states = [number for number, truth in enumerate(STATES[scenario]) if equal(found, truth)]
            assert states, f"{step}: {sorted(found)}"
            seen += states
            if scenario == "repair":
                assert (store.verify() == []) is (store.repair().kept == "")
            assert store.verify() == [], step
            check(store, STATES[scenario][states[0]])
    assert seen == sorted(seen)
    assert set(seen) == set(range(len(STATES[scenario])))
