"""A library outlives its program: those that earlier versions made are opened, searched and written to."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import pytest

from ragistry import Workspace, open_workspace
from ragistry.evaluation import Comparison
from ragistry.types import RetrievalResult

MADE = sorted((Path(__file__).parents[2] / "fixtures" / "libraries").glob("*.zip"))


@pytest.fixture(params=MADE, ids=lambda path: path.stem)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The workspace of an earlier version."""
    with ZipFile(request.param) as packed:
        packed.extractall(tmp_path)
    return tmp_path


def names(result: RetrievalResult) -> list[str]:
    return [document.metadata["source_file"] for document in result.documents]


def own_metadata(workspace: Workspace) -> dict[str, object]:
    return {
        info.source_file: {key: value for key, value in info.metadata.items() if key != "modified"}
        for info in workspace.library.sources("notes")
    }


def test_sources_are_found_by_words_vectors_and_their_metadata(folder: Path) -> None:
    with open_workspace(folder) as workspace:
        for technique in ("naive", "bm25", "hybrid"):
            assert names(workspace.search("how hot is the water for green tea?", technique))[0] == "green.md"
        for where in ({"client": "acme"}, {"year": {"$gte": 2024}}, {"grade": 2}, {"tested": True}):
            assert len(names(workspace.search("tea", "naive", where=where))) == 1
        assert names(workspace.search("acme", "bm25")) == ["black.txt"]  # its client
        assert workspace.store.verify() == []
        assert [one.name for one in workspace.repositories.infos()] == ["teapots"]
        found = workspace.search("a teapot of clay keeps its taste", "routed").documents[0]
        assert (found.metadata["repository"], found.metadata["file_path"]) == ("teapots", "index.md")


def test_a_begun_rename_is_complete_for_searches_and_is_finished_by_a_write(folder: Path) -> None:
    with open_workspace(folder) as workspace:
        assert sorted(names(workspace.search("teapot kettle", collection="kitchen"))) == ["kettle", "teapot"]
        workspace.library.ingest_text("Rooibos is no tea.", "rooibos", "notes")
        assert sorted(info.source_file for info in workspace.library.sources("kitchen")) == ["kettle", "teapot"]
        assert workspace.store.count({"collection": "archive"}) == 0


def test_an_unchanged_folder_is_ingested_without_the_model_and_keeps_metadata(folder: Path) -> None:
    with open_workspace(folder) as workspace:
        before = own_metadata(workspace)
        report = workspace.library.ingest_folder(folder / "files", "notes")
        assert (report.added, report.failed, report.embedded) == ([], [], 0)
        assert own_metadata(workspace) == before
        again = f"{len(report.updated)} files were updated without"  # the readers may have another version
        assert all(warning.startswith(again) for warning in report.warnings)
        second = workspace.library.ingest_folder(folder / "files", "notes")
        assert (second.updated, second.warnings, second.skipped) == ([], [], ["black.txt", "green.md"])


def test_jobs_reports_and_token_vectors_are_read(folder: Path) -> None:
    [job] = [json.loads(path.read_text("utf-8")) for path in (folder / ".ragistry" / "jobs").glob("*/job.json")]
    assert job["state"] == "done"
    from starlette.testclient import TestClient

    from ragistry.server.app import create_app

    with open_workspace(folder) as workspace:
        with TestClient(create_app(workspace), base_url="http://127.0.0.1") as client:
            assert [one["id"] for one in client.get("/v1/jobs").json()["jobs"]] == [job["id"]]
        result = workspace.search("green tea", {"use": "rerank", "base": "hybrid", "reranker": "maxsim"})
        [maxsim] = [stage for stage in result.trace if stage.model_calls and stage.name != "embed"]
        assert maxsim.tokens < 20, "only the query is encoded"
    [report] = (folder / ".ragistry" / "evaluation" / "reports").glob("*.json")
    comparison = Comparison.from_json(report)
    assert set(comparison.techniques) == {"naive", "bm25"}
    assert comparison.verdict.sentence
