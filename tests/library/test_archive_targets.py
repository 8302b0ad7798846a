"""Archives of vector_stores.yaml are chosen by routed techniques, like collections and repositories."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ragistry import open_workspace
from ragistry.errors import InvalidConfigError, ModelConnectionError
from ragistry.testing.ports import refused_port
from tests.cli.conftest import Run, ragistry  # noqa: F401, a fixture
from tests.messages import check_message, refused
from tests.tools.archive_servers import HEATING, ROOF, ArchiveServers

pytest_plugins = ["tests.tools.archive_fixture"]


def configure(root: Path, *archives: Any, router: str = "evidence") -> Path:
    """Name archives in the configuration of a workspace; JSON is YAML too."""
    (root / "config").mkdir(exist_ok=True)
    entries = [archive if isinstance(archive, dict) else archive.model_dump(exclude_none=True) for archive in archives]
    (root / "config" / "vector_stores.yaml").write_text(f"archives: {json.dumps(entries)}\n", encoding="utf-8")
    (root / "config" / "techniques.yaml").write_text(
        "default: bm25\ntechniques:\n  bm25: {use: bm25}\n  naive: {use: naive}\n"
        f"  routed: {{use: collection_routed, base: naive, router: {router}}}\n",
        encoding="utf-8",
    )
    return root


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, servers: ArchiveServers) -> Path:
    """A workspace with two archives and two collections; only to be read."""
    root = configure(
        tmp_path_factory.mktemp("made"),
        servers.archive("Cellar", HEATING, description="Heating and boiler"),
        servers.archive("Attic", ROOF, description="Roof and gutter"),
    )
    with open_workspace(root) as opened:
        opened.library.create_collection("tea", "How tea is brewed")
        opened.library.create_collection("weather", "Forecasts and clouds")
        opened.library.ingest_text("Steep green tea in water of eighty degrees.", "green.txt", "tea")
        opened.library.ingest_text("A cold front brings rain.", "fronts.txt", "weather")
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy of the workspace, to be changed."""
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)


def test_routed_search_finds_what_only_an_archive_has(made: Path) -> None:
    with open_workspace(made) as opened:
        assert [(target.name, target.kind, target.description) for target in opened.targets()] == [
            ("tea", "collection", "How tea is brewed"),
            ("weather", "collection", "Forecasts and clouds"),
            ("Cellar", "archive", "Heating and boiler"),
            ("Attic", "archive", "Roof and gutter"),
        ]
        best = opened.search(HEATING[1], technique="routed").documents[0]
        assert (best.metadata["archive"], best.content) == ("Cellar", HEATING[1])
        best = opened.search("how hot is the water for green tea", technique="routed").documents[0]
        assert best.metadata["source_file"] == "green.txt"
        limited = opened.search(HEATING[1], technique="routed", where={"collection": "tea"}).documents
        assert {document.metadata["collection"] for document in limited} == {"tea"}
        assert all("archive" not in document.metadata for document in opened.search(HEATING[1]).documents)


def test_commands_show_archives(ragistry: Run, root: Path) -> None:  # noqa: F811
    chosen = ragistry("route", ROOF[1], "--json").json
    assert (set(chosen["scores"]), "Attic" in chosen["chosen"]) == ({"tea", "weather", "Cellar", "Attic"}, True)
    found = ragistry("search", ROOF[1], "--technique", "routed", "--json").json
    assert ROOF[1] in [document["content"] for document in found["documents"]]
    state, detail = ragistry("doctor", "--json").findings["archive Attic"]
    assert (state, detail.partition(" answers ")[2]) == ("ok", "(1 passage found)")


def test_archive_that_is_down_does_not_stop_the_others(
    ragistry: Run,  # noqa: F811
    root: Path,
    servers: ArchiveServers,
) -> None:
    nowhere = f"http://127.0.0.1:{refused_port()}"
    up = servers.archive("Cellar", HEATING, description="Heating and boiler")
    gone = up.model_copy(update={"name": "Gone", "chromadb_url": nowhere})
    deaf = up.model_copy(update={"name": "Deaf", "tei_url": nowhere})
    configure(root, up, gone, deaf, router="all")
    with open_workspace(root) as opened:
        found = opened.search(HEATING[1], technique="routed")
        assert HEATING[1] in {document.content for document in found.documents}
        assert ["Gone" in " ".join(found.degraded), "Deaf" in " ".join(found.degraded)] == [True, True]
        with refused(ModelConnectionError, "'Deaf'"):
            opened.search(HEATING[1], technique="routed", where={"collection": "Deaf"})
    done = ragistry("doctor", "--json")
    states = [done.findings[f"archive {name}"][0] for name in ("Cellar", "Gone", "Deaf")]
    assert (done.code, states) == (1, ["ok", "failed", "failed"])


def test_archive_is_selected_by_a_condition_and_not_as_a_collection(ragistry: Run, root: Path) -> None:  # noqa: F811
    file = root / "config" / "techniques.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("evidence", "explicit"), encoding="utf-8")
    ragistry("search", "gutter", "--technique", "routed").refused(1, "'tea', 'weather'", "'Attic', 'Cellar'")
    said = ragistry("search", "gutter", "--collection", "Attic").err
    check_message(said, "'Attic'", "is an archive", "'routed'")
    words = ("--where", '{"collection": "Attic"}')
    found = ragistry("search", "gutter", "--technique", "routed", *words, "--json").json
    assert {document["metadata"]["archive"] for document in found["documents"]} == {"Attic"}


def test_headers_are_not_printed(ragistry: Run, tmp_path: Path) -> None:  # noqa: F811
    archive = {"name": "House", "collection_name": "house", "embedding_model": "m", "headers": {"x-key": "xyzzy"}}
    configure(tmp_path, archive)
    for words in (["config"], ["config", "--json"]):
        done = ragistry(*words)
        assert (done.code, "House" in done.out, "xyzzy" in done.out + done.err) == (0, True, False)


def test_nothing_of_archives_is_loaded_without_archives(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "vector_stores.yaml").write_text("archives:\n", encoding="utf-8")
    with open_workspace(tmp_path) as opened:
        assert (opened.settings.archives, opened.targets()) == ([], [])
        assert "archives" not in opened._parts


@pytest.mark.parametrize(
    ("entry", "line"), [("name: a\n    colection_name: rep", 3), ("{name: a, collection_name: rep}", 2)]
)
def test_invalid_entry_is_named_with_its_line(tmp_path: Path, entry: str, line: int) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "vector_stores.yaml").write_text(f"archives:\n  - {entry}\n", encoding="utf-8")
    with refused(InvalidConfigError, f"vector_stores.yaml:{line}: "):
        open_workspace(tmp_path)
