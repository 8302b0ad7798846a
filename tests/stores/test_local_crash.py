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
from tests.stores.crashes import SCENARIOS
from tests.stores.local_stores import (
    Truth,
    check,
    garble,
    held,
    moved,
    put,
    same,
    truth_of,
    vector_of,
    version_of,
)
from tests.stores.pages import pages_of
from tests.stores.scripts import ROOT

A, A2, B, C = version_of("a.md", 1), version_of("a.md", 2), version_of("b.md", 1), version_of("c.md", 1)
OTHER = [[chunk._replace(embedding=vector_of(f"other {chunk.text}")) for chunk in source] for source in (A, B)]
STATES: dict[str, list[Truth]] = {
    "create": [{}, truth_of(A)],
    "replace": [truth_of(A, B), truth_of(A2, B)],
    "add": [truth_of(A, B), truth_of(A, B, C)],
    "delete": [truth_of(A, B), truth_of(A)],
    "move": [truth_of(A, B), truth_of(moved(A, "d"), B)],
    "rename": [truth_of(A, B), truth_of(moved(A, "d"), moved(B, "d"))],
    "clear": [truth_of(A, B), {}],
    "reembed": [truth_of(A, B), truth_of(*OTHER)],
    "flush": [truth_of(A2, B)],
    "rebuild": [truth_of(A, B)],
    "repair": [truth_of(A, B)],
}
"""What the store may hold afterwards, in order."""


@pytest.fixture(scope="module")
def base(quick_folder: Path) -> Path:
    """A closed store with two sources and both indexes."""
    folder = quick_folder / "base"
    with closing(LocalStore(folder)) as store:
        put(store, A, B)
        check(store, truth_of(A, B))
    return folder


def crashed(scenario: str, base: Path, target: Path) -> list[tuple[Path, str]]:
    """The folder of each child, and the step before which it ended; the last one completed and has no step."""
    command = [sys.executable, "-m", "tests.stores.crashes", scenario, str(base), str(target)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    pairs = [line.split("\t") for line in ended.stdout.splitlines()]
    return [(Path(folder), step) for folder, step in pairs]


def equal(found: Truth, expected: Truth) -> bool:
    """Whether texts, metadata and directions of vectors are the same."""
    return same(found, expected) and all(
        np.dot(chunk.embedding, other.embedding) > 0.999 * np.linalg.norm(other.embedding)
        for name, chunks in found.items()
        for chunk, other in zip(chunks, expected[name], strict=True)
    )


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_crash_leaves_the_old_state_or_the_new(scenario: str, base: Path, quick_path: Path) -> None:
    if scenario == "repair":
        base = Path(shutil.copytree(base, quick_path / "damaged"))
        [page] = pages_of(base / "store.db", "chunks_by_hash")
        garble(base / "store.db", page.start, bytes(page.stop - page.start))
    children = crashed(scenario, base, quick_path)
    assert len(children) > 5
    assert children[-1][1] == ""
    seen = []
    for folder, step in children:
        with closing(LocalStore(folder)) as store:
            found = held(store)
            states = [number for number, truth in enumerate(STATES[scenario]) if equal(found, truth)]
            assert states, f"{step}: {sorted(found)}"
            seen += states
            if scenario == "repair":
                assert (store.verify() == []) is (store.repair().kept == "")
            check(store, STATES[scenario][states[0]])
            assert store.verify() == []
        shutil.rmtree(folder, ignore_errors=True)  # a thread of tantivy may still put a lock file there
    assert seen == sorted(seen)
    assert set(seen) == set(range(len(STATES[scenario])))
