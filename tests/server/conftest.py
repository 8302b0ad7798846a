"""A server over a real workspace, asked in this process."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from starlette.testclient import TestClient

from ragistry import Workspace, open_workspace
from ragistry.server.app import create_app
from ragistry.server.gate import ServerLimits

HERE = "http://127.0.0.1:8000"


def fill(workspace: Workspace) -> None:
    library = workspace.library
    library.create_collection("tea", "How tea is brewed", "Tea books")
    library.create_collection("weather", "Forecasts")
    library.ingest_text("Steep green tea in water of eighty degrees.", "leaves/green.txt", "tea")
    library.ingest_text("A cold front brings rain and then clear skies.", "fronts.txt", "weather")


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a workspace that is filled and closed, to be copied."""
    folder = tmp_path_factory.mktemp("filled")
    with open_workspace(folder) as opened:
        fill(opened)
    return folder


@pytest.fixture
def filled_copy(filled: Path, tmp_path: Path) -> Path:
    """The folder of a workspace that is filled and closed."""
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def workspace(filled_copy: Path) -> Iterator[Workspace]:
    with open_workspace(filled_copy) as opened:
        yield opened


@contextmanager
def serving(workspace: Workspace, limits: ServerLimits | None = None, **options: Any) -> Iterator[TestClient]:
    app = create_app(workspace, limits, **options)
    with TestClient(app, base_url=HERE, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def client(workspace: Workspace) -> Iterator[TestClient]:
    with serving(workspace) as opened:
        yield opened


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def ended(client: TestClient, job: dict[str, Any], headers: dict[str, str] | None = None) -> Any:
    """The job when it has ended."""
    until = time.monotonic() + 60
    while job["state"] in ("waiting", "running") and time.monotonic() < until:
        time.sleep(0.02)
        answer = client.get(f"/v1/jobs/{job['id']}", headers=headers)
        assert answer.status_code == 200, answer.text
        job = answer.json()
    return job
