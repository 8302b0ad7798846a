"""A whole workspace over Postgres: ingest, search by every default technique, routing, a comparison, deleting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import InvalidConfigError, UnsupportedError
from ragistry.evaluation import compare, read_library
from ragistry.testing.postgres_server import PostgresServer, postgres_server
from tests.stores.scripts import run

TEXTS = {
    "tea": {"green.txt": "Steep green tea in water of eighty degrees.", "black.txt": "Black tea takes boiling water."},
    "garden": {"soil.txt": "Compost makes the soil of a garden loose."},
}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as running:
        yield running


@pytest.fixture
def root(tmp_path: Path, server: PostgresServer) -> Path:
    """A workspace with files to ingest, in a schema of its own."""
    (tmp_path / "config").mkdir()
    store = f"store: {{use: postgres, url: '{server.url}', timeout: 20}}"
    (tmp_path / "config" / "vector_stores.yaml").write_text(store, encoding="utf-8")
    (tmp_path / "config" / "documents.yaml").write_text(f"collection: {uuid4().hex}\n", encoding="utf-8")
    for collection, files in TEXTS.items():
        (tmp_path / collection).mkdir()
        for name, text in files.items():
            (tmp_path / collection / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with open_workspace(root) as opened:
        opened.library.create_collection("tea", "How tea is brewed")
        opened.library.create_collection("garden", "Soil, plants and weeds")
        for collection in TEXTS:
            opened.library.ingest_folder(root / collection, collection)
        yield opened


def where_found(workspace: Workspace, query: str, **options: str) -> tuple[str, str]:
    best = workspace.search(query, **options).documents[0].metadata
    return best["collection"], best["source_file"]


def test_every_default_technique_searches_it(workspace: Workspace) -> None:
    assert workspace.registry.default == "hybrid"
    for technique in workspace.registry.names():
        if not workspace.registry.missing_model(technique):
            found = where_found(workspace, "compost for the soil", technique=technique)
            assert found == ("garden", "soil.txt"), technique
    assert not workspace.search("compost").degraded


def test_ingest_updates_what_changed_and_deletes_what_is_gone(workspace: Workspace, root: Path) -> None:
    unchanged = workspace.library.ingest_folder(root / "tea", "tea")
    assert len(unchanged.skipped) == 2
    (root / "tea" / "green.txt").write_text("Matcha is whisked with a bamboo brush.", encoding="utf-8")
    changed = workspace.library.ingest_folder(root / "tea", "tea")
    assert [len(changed.updated), len(changed.skipped)] == [1, 1]
    assert where_found(workspace, "bamboo brush") == ("tea", "green.txt")
    assert workspace.library.delete_source("green.txt", "tea") == 1
    assert workspace.library.list_sources("tea") == ["black.txt"]
    assert workspace.library.move_source("black.txt", "tea", "garden") == 1
    assert workspace.library.rename_collection("garden", "plot") == 2
    assert where_found(workspace, "boiling water", collection="plot") == ("plot", "black.txt")
    assert workspace.library.delete_collection("plot") == 2
    assert workspace.library.count() == 0


def test_two_workspaces_write_and_read_at_once(workspace: Workspace, root: Path) -> None:
    with open_workspace(root) as other:
        other.library.ingest_text("Oolong is half oxidised.", "oolong.txt", "tea")
        assert where_found(workspace, "oolong") == ("tea", "oolong.txt")
        workspace.library.ingest_text("Mulch keeps the weeds away.", "mulch.txt", "garden")
        assert where_found(other, "weeds and mulch", technique="bm25") == ("garden", "mulch.txt")


def test_techniques_are_compared_on_the_library(workspace: Workspace, root: Path) -> None:
    queries = [("green tea", "green.txt"), ("boiling black tea", "black.txt"), ("compost", "soil.txt")]
    lines = [json.dumps({"text": text, "sources": [source]}) for text, source in queries]
    (root / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
    dataset = read_library(workspace, root / "queries.jsonl")
    found = compare(["naive", "hybrid"], dataset, ["RR@10"], workspace=workspace).to_json()
    assert found["techniques"]["hybrid"]["measures"]["RR@10"]["mean"] == 1.0


def test_what_the_server_looks_after_is_not_supported(workspace: Workspace) -> None:
    for call in (workspace.store.verify, workspace.store.repair):
        with pytest.raises(UnsupportedError, match="the server maintains this store"):
            call()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("store: {use: postgres}", "1: store.url: is missing"),
        ("store:\n  use: postgres\n  url: 'postgresql://a:hush@b'\n  conections: 3", "4: store.conections: unknown"),
        ("store:\n  use: postgres\n  url: 'postgresql://a:hush@b'\n  timeout: 0", "4: store.timeout: .* got 0"),
    ],
)
def test_a_bad_entry_is_refused_with_its_line(root: Path, entry: str, said: str) -> None:
    (root / "config" / "vector_stores.yaml").write_text(entry, encoding="utf-8")
    with pytest.raises(InvalidConfigError, match=f"vector_stores.yaml:{said}") as caught:
        open_workspace(root)
    assert "hush" not in str(caught.value)


WITHOUT_PSYCOPG = """
import sys
sys.modules["psycopg"] = None
import ragistry
try:
    ragistry.open_workspace(sys.argv[1])
except ragistry.errors.RagistryError as error:
    print(error)
"""


def test_without_the_extra_it_says_what_to_install(root: Path) -> None:
    assert "pip install 'ragistry[postgres]'" in run(WITHOUT_PSYCOPG, root)
