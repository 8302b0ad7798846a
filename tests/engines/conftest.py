"""A Ray cluster on this machine, one for a module, its nodes processes; and ingests to compare."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragistry import Workspace, open_workspace
from ragistry.engines.ray import RayEngine
from ragistry.library.report import IngestReport
from ragistry.protocols import Engine
from tests.engines.doubles import Hashing

MEMORY = 80_000_000
"""Bytes of the object store of a node; Ray asks for 75 MB at least."""


class Nodes:
    """A cluster whose head runs no tasks, and the nodes that a test asks for."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        head = {
            "num_cpus": 0,
            "include_dashboard": False,
            "object_store_memory": MEMORY,
            "_system_config": {"health_check_period_ms": 300, "health_check_failure_threshold": 3},
        }
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.added: list[tuple[Any, dict[str, str]]] = []

    def use(self, count: int = 2, **environment: str) -> None:
        """See that there are so many nodes of one CPU, with these variables, and no others."""
        for node, other in list(self.added):
            if other != environment or len(self.added) > count:
                self.remove(node)
        while len(self.added) < count:
            node = self.cluster.add_node(num_cpus=1, object_store_memory=MEMORY, env_vars=environment)
            self.added.append((node, environment))
        self.cluster.wait_for_nodes()  # a killed node counts among the CPUs until its death is noticed

    def remove(self, node: Any) -> None:
        """Kill a node with all its processes."""
        self.cluster.remove_node(node, allow_graceful=False)
        self.added = [(one, environment) for one, environment in self.added if one is not node]

    def engine(self) -> RayEngine:
        return RayEngine(self.cluster.address)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    logging.getLogger("ray").setLevel(logging.ERROR)
    nodes = Nodes()
    yield nodes
    nodes.cluster.shutdown()


@pytest.fixture
def nodes(cluster: Nodes) -> Nodes:
    """Two nodes that can do all that is asked."""
    cluster.use(2)
    return cluster


@pytest.fixture
def engine(nodes: Nodes) -> Iterator[RayEngine]:
    with nodes.engine() as opened:
        yield opened


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "workspace").mkdir()
    with open_workspace(tmp_path / "workspace", chunk_size=200, chunk_overlap=0, language="auto") as opened:
        opened.library.create_collection("notes", "Notes about everything")
        yield opened


def write_notes(folder: Path, count: int = 12, *, paragraphs: int = 3) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        lines = (f"Note {number} says that item {part} of the list is done. " * 3 for part in range(paragraphs))
        (folder / f"note-{number:02}.md").write_text(f"# Note {number}\n\n" + "\n\n".join(lines))
    return folder


def ingest(workspace: Workspace, folder: Path, engine: Engine | None, embedder: Any = None) -> IngestReport:
    workspace.library.embedder = embedder or Hashing()
    return workspace.library.ingest_folder(folder, "notes", engine=engine)


def stored(workspace: Workspace) -> dict[str, tuple[str, dict[str, Any], list[float]]]:
    """Everything that the store holds, but for times."""
    documents = list(workspace.store.scan({"collection": "notes"}))
    vectors = workspace.store.vectors([one.id for one in documents])
    return {
        one.id: (
            one.content,
            {key: one.metadata[key] for key in one.metadata.keys() - {"ingested_at"}},
            vector.tolist(),
        )
        for one, vector in zip(documents, vectors, strict=True)
    }


def ingested_here(folder: Path, home: Path) -> tuple[IngestReport, dict[str, Any]]:
    """The report and the rows of the same folder without an engine."""
    home.mkdir()
    with open_workspace(home, chunk_size=200, chunk_overlap=0, language="auto") as opened:
        opened.library.create_collection("notes", "Notes about everything")
        return ingest(opened, folder, None), stored(opened)
