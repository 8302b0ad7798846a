"""Libraries on disk: one to be written to, and one with the real model and two collections whose words do not meet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry import Workspace, open_workspace
from ragistry.testing.hashed import HashingEmbedder
from tests.library.conftest import embedder  # noqa: F401, the fixture

TEA = "Steep green tea in water of eighty degrees for two minutes."
RAIN = "A cold front brings rain, and behind it the skies are clear."


@pytest.fixture
def workspace(embedder: HashingEmbedder, tmp_path: Path) -> Iterator[Workspace]:  # noqa: F811
    """An empty library, to be written to, without a model."""
    with open_workspace(tmp_path) as opened:
        yield opened


@pytest.fixture(scope="module")
def shelves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A library with the collections ``tea`` and ``weather``, only to be read."""
    with open_workspace(tmp_path_factory.mktemp("shelves")) as opened:
        library = opened.library
        library.create_collection("tea", "How tea is grown and brewed", "Tea books")
        library.create_collection("weather", "Forecasts and clouds")
        library.ingest_text(TEA, "green.txt", "tea")
        library.ingest_text(RAIN, "fronts.txt", "weather")
        yield opened


def documents_yaml(workspace: Workspace) -> Path:
    return workspace.root / "config" / "documents.yaml"
