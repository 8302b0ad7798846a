"""Every technique of the registry goes through the suite by itself."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ragistry import TechniqueRegistry, Workspace, open_workspace
from ragistry.config.settings import DEFAULTS
from ragistry.errors import QueryError
from ragistry.techniques.classes import offers
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.techniques import TechniqueConformance

MORE = """
  alias: {use: naive_rag, top_k: 7}
  sparse: {use: learned_sparse, encoder: "ragistry.testing.sparse:WordCounts"}
  by_rank: {use: hybrid, bases: [naive, bm25], fusion: rrf}
  by_score: {use: hybrid, bases: [naive, bm25], fusion: min_max, weights: [2, 1]}
  parents: {use: parent_document, base: naive, max_characters: 600}
  small: {use: hybrid, bases: [naive, bm25], fetch: 3}
  rest: {use: rerank, base: small, fetch: 3}
  walk: {use: graph, base: small, fetch: 3}
  latest: {use: newest, base: small, fetch: 2}
  variants: {use: multi_query, base: auto, n: 3, fetch: 3}
  flow:
    use: pipeline
    steps:
      first: {technique: naive, on: {found: END, empty: wide}}
      wide: {technique: parents, top_k: 20}
"""
TECHNIQUES = (DEFAULTS / "techniques.yaml").read_text(encoding="utf-8") + MORE

WRONG: list[tuple[Any, dict[str, Any]]] = [
    *((query, {}) for query in ("", " \n\u2003", None, 7, ["backup"], b"backup", "half: \ud83d")),
    *(("backup", {"top_k": top_k}) for top_k in (0, -1, 1001, 2.0, True, "3")),
    *(("backup", {"where": where}) for where in ({}, {"page": {"$around": 3}}, "page = 3")),
]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("conformance")
    (root / "config").mkdir()
    (root / "config" / "techniques.yaml").write_text(TECHNIQUES, encoding="utf-8")
    with OllamaServer() as server:  # it answers with the simplest thing that a schema accepts
        entry = f"generators: {{simple: {{use: ollama, model: llama3.2, url: '{server.url}'}}}}"
        models = (DEFAULTS / "models.yaml").read_text(encoding="utf-8").replace("generators:\n", f"{entry}\n")
        (root / "config" / "models.yaml").write_text(models, encoding="utf-8")
        with open_workspace(root, chunk_size=150, chunk_overlap=30) as opened:
            fill(opened)
            yield opened


def fill(workspace: Workspace) -> None:
    """Three collections of four sources; the last source of each has several chunks."""
    for collection, topic in (("handbook", "backup"), ("garden", "soil"), ("manuals", "battery")):
        workspace.library.create_collection(collection)
        for number in range(4):
            text = " ".join(
                f"To restore a {topic} of kind {number}, wait {days} days and look at the {topic} again."
                for days in range(number + 2, 12 if number == 3 else number + 3)
            )
            workspace.library.ingest_text(text, f"{topic}-{number}.txt", collection)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "techniques.yaml"
            path.write_text(TECHNIQUES, encoding="utf-8")
            metafunc.parametrize("name", TechniqueRegistry.load(path).names())


class TestEveryEntry(TechniqueConformance):
    # One that cuts across collections: what searches only the collection that fits must find both sorts of documents.
    where: ClassVar = {"$or": [{"source_file": "backup-1.txt"}, {"collection": "garden"}]}

    @pytest.fixture
    def technique(self, workspace: Workspace, name: str) -> RegisteredTechnique:
        return workspace.technique(name)

    def test_says_which_stage_gave_which_score(self, technique):
        for document in technique.technique.retrieve(self.query, top_k=3):
            assert document.scores[-1].value == document.score

    def test_refuses_without_the_registry_what_it_refuses_with_it(self, technique):
        for query, options in WRONG:
            errors = []
            for one in (technique, technique.technique):
                with pytest.raises(QueryError) as caught:
                    one.retrieve(query, **options)
                errors.append((type(caught.value), str(caught.value)))
            assert errors[0] == errors[1]

    def test_returns_as_many_as_configured(self, technique, workspace):
        found = technique.retrieve(self.query, top_k=1000)
        configured = workspace.registry.entry(technique.name).config.get("top_k", 5)
        assert technique.name == "flow" or len(technique.retrieve(self.query)) == min(len(found), configured)


def test_every_built_in_technique_is_among_the_entries(workspace):
    built_in = {name for name, offer in offers().items() if offer.distribution == "ragistry"}
    assert {workspace.registry.entry(name).use for name in workspace.registry.names()} | {"naive_rag"} == built_in


@pytest.mark.parametrize(
    ("searched_with", "stages"),
    [
        ("by_score", ["by_score", "naive", "embed", "search", "bm25", "search", "fuse"]),
        ("parents", ["parents", "naive", "embed", "search", "widen"]),
    ],
)
def test_trace_shows_bases_before_what_is_made_of_them(workspace, searched_with, stages):
    result = workspace.search(f"restore a backup by {searched_with}", searched_with, top_k=2)
    assert [stage.name for stage in result.trace] == stages
    assert result.trace[-1].documents_out == len(result.documents) == 2
    assert result.trace[-1].documents_in > 2
    assert sum(stage.model_calls for stage in result.trace) == 1, "the query is embedded once"
