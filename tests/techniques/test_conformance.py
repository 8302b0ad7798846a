"""Every technique of the registry goes through the suite by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from ragistry import TechniqueRegistry, Workspace, open_workspace
from ragistry.config.settings import DEFAULTS
from ragistry.techniques.classes import offers
from ragistry.techniques.registry import RegisteredTechnique
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.techniques import TechniqueConformance

MORE = """
  alias: {use: naive_rag, top_k: 7}
  sparse: {use: learned_sparse, encoder: "ragistry.testing.sparse:WordCounts"}
  flow:
    use: pipeline
    steps:
      first: {technique: naive, on: {found: END, empty: wide}}
      wide: {technique: mmr, top_k: 20}
"""
TECHNIQUES = (DEFAULTS / "techniques.yaml").read_text(encoding="utf-8") + MORE


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("conformance")
    (root / "config").mkdir()
    (root / "config" / "techniques.yaml").write_text(TECHNIQUES, encoding="utf-8")
    with OllamaServer() as server:  # it answers with the simplest thing that a schema accepts
        entry = f"generators: {{simple: {{use: ollama, model: llama3.2, url: '{server.url}'}}}}"
        models = (DEFAULTS / "models.yaml").read_text(encoding="utf-8").replace("generators: {}", entry)
        (root / "config" / "models.yaml").write_text(models, encoding="utf-8")
        with open_workspace(root) as opened:
            fill(opened)
            yield opened


def fill(workspace: Workspace) -> None:
    for collection, topic in (("handbook", "backup"), ("garden", "soil"), ("manuals", "battery")):
        workspace.library.create_collection(collection)
        for number in range(4):
            text = f"To restore a {topic} of kind {number}, wait {number + 2} days and look at the {topic} again."
            workspace.library.ingest_text(text, f"{topic}-{number}.txt", collection)


def names(root: Path) -> list[str]:
    path = root / "techniques.yaml"
    path.write_text(TECHNIQUES, encoding="utf-8")
    return TechniqueRegistry.load(path).names()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            metafunc.parametrize("name", names(Path(folder)))


class TestEveryEntry(TechniqueConformance):
    # One that cuts across collections: what searches only the collection that fits must find both sorts of documents.
    where: ClassVar = {"$or": [{"source_file": "backup-1.txt"}, {"collection": "garden"}]}

    @pytest.fixture
    def technique(self, workspace: Workspace, name: str) -> RegisteredTechnique:
        return workspace.technique(name)


def test_every_built_in_technique_is_among_the_entries(workspace: Workspace) -> None:
    built_in = {name for name, offer in offers().items() if offer.distribution == "ragistry"}
    assert {workspace.registry.entry(name).use for name in workspace.registry.names()} | {"naive_rag"} == built_in
