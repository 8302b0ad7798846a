"""Archives that vector_stores.yaml names are chosen by routed techniques, as collections and repositories are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragistry import open_workspace
from ragistry.errors import InvalidConfigError, ModelConnectionError
from ragistry.testing.chroma_server import free_port
from tests.cli.conftest import Done, ragistry  # noqa: F401, a fixture
from tests.tools.archive_servers import HEATING, ROOF, ArchiveServers

pytest_plugins = ["tests.tools.archive_fixture"]

Run = Callable[..., Done]


def write(root: Path, *archives: Any, router: str = "evidence") -> Path:
    """A workspace whose configuration names archives; JSON is YAML too."""
    (root / "config").mkdir(exist_ok=True)
    entries = [archive if isinstance(archive, dict) else archive.model_dump(exclude_none=True) for archive in archives]
    (root / "config" / "vector_stores.yaml").write_text(f"archives: {json.dumps(entries)}\n", encoding="utf-8")
    (root / "config" / "techniques.yaml").write_text(
        f"default: bm25\ntechniques:\n  bm25: {{use: bm25}}\n  naive: {{use: naive}}\n"
        f"  routed: {{use: collection_routed, base: naive, router: {router}}}\n",
        encoding="utf-8",
    )
    return root


@pytest.fixture
def root(tmp_path: Path, servers: ArchiveServers) -> Path:
    """Two archives and two collections."""
    write(
        tmp_path,
        servers.archive("Cellar", HEATING, description="Heating and boiler"),
        servers.archive("Attic", ROOF, description="Roof and gutter"),
    )
    with open_workspace(tmp_path) as opened:
        opened.library.create_collection("tea", "How tea is brewed")
        opened.library.create_collection("weather", "Forecasts and clouds")
        opened.library.ingest_text("Steep green tea in water of eighty degrees.", "green.txt", "tea")
        opened.library.ingest_text("A cold front brings rain.", "fronts.txt", "weather")
    return tmp_path


def test_they_are_targets_beside_the_collections(root: Path) -> None:
    with open_workspace(root) as opened:
        assert [(target.name, target.kind, target.description) for target in opened.targets()] == [
            ("tea", "collection", "How tea is brewed"),
            ("weather", "collection", "Forecasts and clouds"),
            ("Cellar", "archive", "Heating and boiler"),
            ("Attic", "archive", "Roof and gutter"),
        ]


def test_a_routed_search_finds_what_only_an_archive_has(root: Path) -> None:
    with open_workspace(root) as opened:
        best = opened.search(HEATING[1], technique="routed").documents[0]
        assert (best.metadata["archive"], best.content) == ("Cellar", HEATING[1])
        best = opened.search("how hot is the water for green tea", technique="routed").documents[0]
        assert best.metadata["source_file"] == "green.txt"
        limited = opened.search(HEATING[1], technique="routed", where={"collection": "tea"}).documents
        assert {document.metadata["collection"] for document in limited} == {"tea"}
        assert all("archive" not in document.metadata for document in opened.search(HEATING[1]).documents)


def test_the_command_line_routes_to_them(ragistry: Run, root: Path) -> None:  # noqa: F811
    chosen = ragistry("route", ROOF[1], "--json").json
    assert set(chosen["scores"]) == {"tea", "weather", "Cellar", "Attic"}
    assert "Attic" in chosen["chosen"]
    found = ragistry("search", ROOF[1], "--technique", "routed", "--json").json
    assert ROOF[1] in [document["content"] for document in found["documents"]]
    findings = {finding["name"]: finding for finding in ragistry("doctor", "--json").json["findings"]}
    assert findings["archive Attic"]["state"] == "ok"
    assert findings["archive Attic"]["detail"].endswith("answers (1 passage found)")


def test_one_that_is_down_does_not_stop_the_others(root: Path, servers: ArchiveServers, ragistry: Run) -> None:  # noqa: F811
    gone = servers.archive("Gone").model_copy(update={"chromadb_url": f"http://127.0.0.1:{free_port()}"})
    write(root, servers.archive("Cellar", HEATING, description="Heating and boiler"), gone, router="all")
    with open_workspace(root) as opened:
        found = opened.search(HEATING[1], technique="routed")
        assert HEATING[1] in {document.content for document in found.documents}
        assert any("Gone" in reason for reason in found.degraded)
    done = ragistry("doctor", "--json")
    findings = {finding["name"]: finding["state"] for finding in done.json["findings"]}
    assert (done.code, findings["archive Gone"], findings["archive Cellar"]) == (1, "failed", "ok")


def test_an_archive_whose_model_cannot_be_reached_is_named(root: Path, servers: ArchiveServers) -> None:
    gone = servers.archive("Gone", HEATING).model_copy(update={"tei_url": f"http://127.0.0.1:{free_port()}"})
    write(root, gone, router="all")
    with (
        open_workspace(root) as opened,
        pytest.raises(ModelConnectionError, match="^archive 'Gone', .* cannot be reached"),
    ):
        opened.search(HEATING[1], technique="routed", where={"collection": "Gone"})


def test_an_archive_is_named_by_a_condition_and_by_no_collection(ragistry: Run, root: Path) -> None:  # noqa: F811
    file = root / "config" / "techniques.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("evidence", "explicit"), encoding="utf-8")
    said = ragistry("search", "gutter", "--technique", "routed").err
    assert "one of 'tea', 'weather' as its `collection`, or 'Attic', 'Cellar' as where={'collection': NAME}" in said
    said = ragistry("search", "gutter", "--collection", "Attic").err
    assert said.startswith("error: 'Attic' is an archive, no collection; search it with `--technique routed --where '{")
    words = said.partition("--where '")[2].partition("'")[0]
    found = ragistry("search", "gutter", "--technique", "routed", "--where", words, "--json").json
    assert {document["metadata"]["archive"] for document in found["documents"]} == {"Attic"}


def test_what_is_sent_to_a_proxy_is_not_printed(ragistry: Run, tmp_path: Path) -> None:  # noqa: F811
    archive = {"name": "House", "collection_name": "house", "embedding_model": "m", "headers": {"x-key": "xyzzy"}}
    write(tmp_path, archive)
    for words in (["config"], ["config", "--json"]):
        done = ragistry(*words)
        assert (done.code, "House" in done.out, "xyzzy" in done.out + done.err) == (0, True, False)


def test_nothing_of_archives_is_loaded_where_there_are_none(tmp_path: Path) -> None:
    with open_workspace(tmp_path) as opened:
        opened.library.create_collection("tea", "How tea is brewed")
        assert [target.name for target in opened.targets()] == ["tea"]
        assert "archives" not in opened._parts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("archivs: []\n", "vector_stores.yaml:1: archivs: unknown setting 'archivs'; did you mean 'archives'"),
        (
            "archives:\n  - name: a\n    colection_name: rep\n    embedding_model: m\n",
            "vector_stores.yaml:3: archives.0.colection_name: unknown setting 'colection_name'; "
            "did you mean 'collection_name'",
        ),
        (
            "archives:\n  - name: a\n    collection_name: rep\n",
            "vector_stores.yaml:2: archives.0.embedding_model: is mi",
        ),
        (
            "archives:\n  - {name: a, collection_name: rep, embedding_model: m, chromadb_url: localhost}\n",
            "vector_stores.yaml:2: archives.0.chromadb_url: the address 'localhost' has no scheme; write http://",
        ),
        (
            "archives:\n  - &a {name: a, collection_name: rep, embedding_model: m}\n  - *a\n",
            "vector_stores.yaml:1: archives: archive 'a' stands here twice; names must differ",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "vector_stores.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidConfigError) as caught:
        open_workspace(tmp_path)
    assert said in str(caught.value)


def test_an_empty_key_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "vector_stores.yaml").write_text("archives:\n", encoding="utf-8")
    with open_workspace(tmp_path) as opened:
        assert opened.settings.archives == []
