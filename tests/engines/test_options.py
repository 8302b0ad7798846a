"""Engines without a cluster: what is said where Ray cannot be used, and what every engine relies on."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest
import stamina

from ragistry import Workspace
from ragistry.cli import main
from ragistry.engines.ray import RayEngine
from ragistry.errors import ChromaDBConnectionError, ConfigError, EngineError, EvaluationError
from ragistry.evaluation import compare
from ragistry.models.registry import choose_embedder
from ragistry.testing.chroma_server import free_port
from tests.engines.conftest import ingest, ingested_here, stored, write_notes
from tests.evaluation.small_sets import topics


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"run pip install 'ragistry\[ray\]'"):
        RayEngine()


def test_cluster_that_does_not_answer_is_refused_at_once() -> None:
    pytest.importorskip("ray", reason="ray has no wheel for this Python")
    with pytest.raises(EngineError, match="cannot be used: .*refused; check the address"):
        RayEngine(f"127.0.0.1:{free_port()}")


@pytest.mark.parametrize("command", [["ingest", "docs"], ["compare", "--dataset", "docs"]])
def test_address_without_the_engine_is_refused(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_notes(tmp_path / "docs", 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ragistry", *command, "--ray-address", "auto"])
    with pytest.raises(SystemExit):
        main()
    assert "--ray-address does nothing without --engine ray" in capsys.readouterr().err


def test_embedder_is_loaded_once_however_often_it_is_sent() -> None:
    sent = pickle.dumps(choose_embedder("minilm"))
    assert pickle.loads(sent) is pickle.loads(sent)


def test_store_that_throttles_is_asked_again(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, refused = write_notes(tmp_path / "docs", 3), []
    write = workspace.store.replace_source

    def busy(collection: str, source_file: str, chunks: object) -> None:
        if refused.count(source_file) < 2:
            refused.append(source_file)
            raise ChromaDBConnectionError("answered 429: 'too many requests'; try again later")
        write(collection, source_file, chunks)  # type: ignore[arg-type]

    monkeypatch.setattr(workspace.store, "replace_source", busy)
    with stamina.set_testing(True, attempts=5):
        report = ingest(workspace, folder, None)
    assert (len(report.added), len(refused)) == (3, 6)
    assert stored(workspace) == ingested_here(folder, tmp_path / "here")[1]


def test_store_that_stays_away_ends_the_ingest(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise ChromaDBConnectionError("answered 503; try again later")

    monkeypatch.setattr(workspace.store, "replace_source", away)
    with stamina.set_testing(True, attempts=2), pytest.raises(ChromaDBConnectionError, match="503"):
        ingest(workspace, write_notes(tmp_path / "docs", 3), None)


def test_name_in_place_of_an_engine_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="engine must be an engine, such as RayEngine\\(\\), got 'ray'"):
        ingest(workspace, write_notes(tmp_path / "docs", 1), "ray")
    with pytest.raises(EvaluationError, match="the engine is 'ray'; give one such as"):
        compare(["bm25"], topics(), workspace=workspace, engine="ray")  # type: ignore[arg-type]
