"""What Ray adds: the rows of this process, whatever happens to workers, and errors that name the place."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry import Workspace, open_workspace
from ragistry.cli import main
from ragistry.engines.ray import AHEAD, RayEngine
from ragistry.errors import EngineError, ModelNotFoundError, WorkerLostError
from ragistry.library.ingest.report import IngestReport
from ragistry.testing.hashed import HashingEmbedder
from tests.engines.doubles import (
    Deadly,
    Unpicklable,
    die_of_a_word,
    fail_for_lack_of_a_model,
    slow,
)
from tests.readers.raw_pdf import one_page

ray = pytest.importorskip("ray", reason="ray has no wheel for this Python")


@contextmanager
def workspace_in(root: Path) -> Iterator[Workspace]:
    root.mkdir()
    with open_workspace(root, chunk_size=200, chunk_overlap=0, language="auto") as opened:
        opened.library.create_collection("notes", "Notes about everything")
        yield opened


def rows_of(workspace: Workspace) -> dict[str, Any]:
    """Everything that the store holds, except times."""
    documents = list(workspace.store.scan())
    vectors = workspace.store.vectors([one.id for one in documents])
    return {
        one.id: (one.content, one.metadata | {"ingested_at": 0.0}, vector.tolist())
        for one, vector in zip(documents, vectors, strict=True)
    }


def comparable(report: IngestReport) -> dict[str, Any]:
    lists = {name: getattr(report, name) for name in ("added", "updated", "skipped", "deleted", "vanished", "warnings")}
    failed = [(one.source, type(one.cause), one.error) for one in report.failed]
    return lists | {"failed": failed, "chunks": report.chunks, "embedded": report.embedded}


def write_notes(folder: Path) -> Path:
    folder.mkdir()
    for number in range(6):
        lines = (f"Note {number} says that item {part} of the list is done. " * 3 for part in range(3))
        (folder / f"note-{number}.md").write_text(f"# Note {number}\n\n" + "\n\n".join(lines))
    return folder


def check_ingest(engine: RayEngine, root: Path) -> None:
    """Rows and report are those of this process, although a worker is killed and has a wrong clock."""
    folder = write_notes(root / "documents")
    (folder / "german.txt").write_text("Der Tee wird mit heißem Wasser aufgegossen und zieht dann einige Minuten. " * 8)
    (folder / "copy.md").write_bytes((folder / "note-3.md").read_bytes())
    (folder / "empty.md").write_text("")
    (folder / "binary.txt").write_bytes(bytes(range(256)) * 8)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 and nothing more")
    (folder / "page.pdf").write_bytes(one_page("A page about the kettle"))
    with workspace_in(root / "here") as here, workspace_in(root / "there") as there:
        here.library.embedder, there.library.embedder = HashingEmbedder(), Deadly(root / "death")
        expected = here.library.ingest_folder(folder, "notes")
        before = time.time()
        report = there.library.ingest_folder(folder, "notes", engine=engine)
        assert (root / "death").exists()
        assert comparable(report) == comparable(expected)
        assert len(report.failed) == 2
        assert rows_of(there) == rows_of(here)
        times = {one.metadata["ingested_at"] for one in there.store.scan()}
        assert before <= min(times) <= max(times) <= time.time()


def check_command(engine: RayEngine, root: Path) -> None:
    """The command ingests with the model of the workers, whose vectors are those of this process."""
    folder, vectors = write_notes(root / "documents"), []
    for name in ("ray", "local"):
        (root / name).mkdir()
        words = ["ingest", folder, "--collection", "notes", "--create", "Notes", "--workspace", root / name]
        printed = TextIOWrapper(BytesIO())
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), suppress(SystemExit):
            patch.setattr(sys, "argv", ["ragistry", *map(str, words), "--engine", name, "--json"])
            main()
        assert json.loads(printed.buffer.getvalue())["added"] == [f"note-{number}.md" for number in range(6)]
        with open_workspace(root / name) as opened:
            vectors.append(opened.store.vectors(sorted(one.id for one in opened.store.scan())))
    np.testing.assert_allclose(*vectors, atol=1e-6)


def check_map(engine: RayEngine, root: Path) -> None:
    """Groups are read a little ahead; errors are raised here, and say on which node they arose; a death is a result."""
    taken: list[int] = []
    results = engine.map(list, ([taken.append(number) or number] for number in range(1_000)))
    assert [next(results) for _ in range(3)] == [[0], [1], [2]]
    assert len(taken) <= 3 + AHEAD * 2
    results.close()  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError):
        list(engine.map(lambda group: [1 // number for number in group], [[1], [0]]))
    with pytest.raises(EngineError, match=r"Unpicklable.*it holds a connection.*'local'"):
        list(engine.map(Unpicklable().embed, [["text"]]))
    with pytest.raises(ModelNotFoundError, match="on node "):
        list(engine.map(fail_for_lack_of_a_model, [["text"]]))
    [[tea, lost, rain]] = engine.map(die_of_a_word, [["tea", "venom", "rain"]])
    assert (tea, type(lost), rain) == ("tea", WorkerLostError, "rain")
    assert "died 2 times" in str(lost)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragistry.engines.ray.__version__", "9.9.9")
        with pytest.raises(EngineError, match=r"node .* has ragistry .*9\.9\.9"):
            list(engine.map(list, [[1]]))


KILLED_DRIVER = """
import os, signal, sys
from ragistry import open_workspace
from ragistry.engines.ray import RayEngine
from ragistry.testing.hashed import HashingEmbedder

root, folder, address = sys.argv[1:]

def progress(source, done, total):
    if done == 20:
        os.kill(os.getpid(), signal.SIGKILL)

with open_workspace(root, chunk_size=200, chunk_overlap=0, language="auto") as opened, RayEngine(address) as engine:
    opened.library.embedder = HashingEmbedder()
    opened.library.ingest_folder(folder, "notes", progress=progress, engine=engine)
"""


def check_killed_driver(engine: RayEngine, root: Path, address: str) -> None:
    """An ingest whose driver was killed is completed by the next one, which embeds the rest alone."""
    folder = root / "documents"
    folder.mkdir()
    for number in range(30):  # 600 chunks, of which the driver writes 256 or more at once
        lines = "\n\n".join(f"Note {number} says that item {part} is done. " * 4 for part in range(20))
        (folder / f"note-{number:02}.md").write_text(f"# Note {number}\n\n{lines}")
    with workspace_in(root / "here") as here, workspace_in(root / "there") as there:
        there.close()
        driver = [sys.executable, "-c", KILLED_DRIVER, root / "there", folder, address]
        killed = subprocess.run(driver, capture_output=True, text=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        with open_workspace(root / "there", chunk_size=200, chunk_overlap=0, language="auto") as again:
            here.library.embedder = again.library.embedder = HashingEmbedder()
            written = again.library.list_sources("notes")
            report = again.library.ingest_folder(folder, "notes", engine=engine)
            expected = here.library.ingest_folder(folder, "notes")
            assert 0 < len(written) < len(expected.added)
            assert (report.skipped, [*written, *report.added], report.failed) == (written, expected.added, [])
            assert report.embedded < expected.embedded
            assert rows_of(again) == rows_of(here)


def check_lost_node(engine: RayEngine, kill_node: Callable[[], None]) -> None:
    """Work of a node that is killed is done by the other one."""
    results = engine.map(slow, [[number] for number in range(12)])
    assert [next(results) for _ in range(4)] == [[number] for number in range(4)]
    kill_node()
    assert list(results) == [[number] for number in range(4, 12)]


def check_end(engine: RayEngine) -> None:
    """Results that were not taken start no cluster after the engine was closed."""
    results = engine.map(list, [[number] for number in range(100)])
    next(results)
    engine.close()
    results.close()  # type: ignore[attr-defined]
    assert not ray.is_initialized()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ray_does_what_this_process_would(
    tmp_path: Path, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test, so that one cluster is started, by one process of xdist. Its two nodes have one CPU each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    node = {"num_cpus": 1, "object_store_memory": 80_000_000}  # Ray asks for 75 MB at least
    health = {"health_check_period_ms": 300, "health_check_failure_threshold": 3}
    cluster = Cluster(True, head_node_args=node | {"include_dashboard": False, "_system_config": health})
    try:
        second = cluster.add_node(**node)
        cluster.wait_for_nodes()
        with RayEngine(cluster.address) as engine:
            for check in (check_ingest, check_command, check_map):
                (tmp_path / check.__name__).mkdir()
                with subtests.test(check.__name__):
                    check(engine, tmp_path / check.__name__)
            with subtests.test("killed driver"):
                check_killed_driver(engine, tmp_path, cluster.address)
            with subtests.test("lost node"):
                check_lost_node(engine, lambda: cluster.remove_node(second, allow_graceful=False))
            with subtests.test("end"):
                check_end(engine)
    finally:
        cluster.shutdown()
