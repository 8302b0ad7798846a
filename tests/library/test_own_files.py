"""No file that this program writes is ingested or sent, by any door."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry import RemoteWorkspace, Workspace, connect, open_workspace
from ragistry.errors import SourceError
from ragistry.library.ingest.folder import list_folder
from ragistry.library.ingest.own_files import is_own_file
from ragistry.server.app import saved_jobs
from ragistry.web.jobs import PageJobs
from tests.conftest import Corpus
from tests.library.shelf import Shelf, step
from tests.serving import served

OWN = {
    "config/documents.yaml": "n_results: 5\ncollections: []\n",
    "config/models.yaml": "generators:\n  writer: {use: ollama, model: m, api_key: sk-secret}\n",
    "config/vector_stores.yaml": "# nothing is set\n",
    "config/techniques.yaml": "techniques:\n  naive: {use: naive}\n",
    "config/tokens.yaml": "tokens:\n  - {name: ann, hash: 0123abcd}\n",
    "config/schemas/models.schema.json": "{}",
}
FOREIGN = {
    "notes.md": "Green tea is steeped.",
    "models.yaml": "generators: the file of a reader",
    "config/notes.yaml": "tea: green",
    "deep/config/models.yaml": "resnet: {layers: 50}\n",
    "schemas/models.schema.json": '{"type": "object"}',
}


@pytest.mark.parametrize("where", ["", "deep/er/"])
def test_configuration_is_recognised_in_any_folder(corpus: Corpus, where: str) -> None:
    folder = corpus({where + name: text for name, text in OWN.items()} | FOREIGN)
    assert {name for name in OWN if is_own_file(folder / where / name)} == {*OWN}
    listing = list_folder(folder)
    assert {file.source_file for file in listing.files} == {*FOREIGN}
    assert {path.relative_to(folder).as_posix() for path in listing.own} == {where + name for name in OWN}


def test_configuration_alone_is_refused_also_through_a_link(shelf: Shelf) -> None:
    shelf.play(
        step(OWN, "config/models.yaml", refused=SourceError),
        step({"notes.yaml": Path("config/models.yaml")}, refused=SourceError),
    )


def test_data_folder_brings_in_nothing_of_this_program(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("Green tea.")
    with open_workspace(tmp_path, data_dir="data", keep_token_vectors=True) as workspace:
        workspace.library.create_collection("notes")
        workspace.library.ingest_text("Rain falls.", "rain.txt", "notes")
        for folder in ("jobs/1/files", "uploads/1", "evaluation/reports", "repositories/r", "derived"):
            (tmp_path / "data" / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / "data" / folder / "page.md").write_text("A page of another user.")
        assert workspace.library.ingest_folder(tmp_path, "notes").added == ["mine.md"]


@pytest.mark.parametrize("door", ["here", "client", "page"])
def test_no_door_reads_configuration(tmp_path: Path, corpus: Corpus, door: str) -> None:
    folder = corpus(OWN | FOREIGN)
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes")
        if door == "client":
            with served(workspace) as url, connect(url) as remote:
                _ingest(remote, folder)
        elif door == "page":
            saved = saved_jobs(workspace)
            job = PageJobs(workspace, saved).ingest("notes", [folder], "documents")
            saved.close(finish=True)
            assert job.state == "done"
        else:
            _ingest(workspace, folder)
        assert workspace.library.list_sources("notes") == sorted(FOREIGN)
        texts = "".join(document.content for document in workspace.store.scan())
    assert "sk-secret" not in texts
    assert "0123abcd" not in texts


def _ingest(workspace: Workspace | RemoteWorkspace, folder: Path) -> None:
    report = workspace.library.ingest_folder(folder, "notes")
    assert sorted(report.added) == sorted(FOREIGN)
