"""A routed search chooses among the collections, the repositories and the archives of a workspace alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import CollectionAlreadyExistsError, CollectionNotFoundError, ConfigError, StoreCorruptError
from ragistry.mcp import tools
from ragistry.techniques.routing.target import Target
from ragistry.tools.archives import archive_target
from ragistry.tools.search_library import SearchLibraryTool
from tests.library.git_trees import commit
from tests.tools.archive_servers import HEATING, ArchiveServers

pytest_plugins = ["tests.tools.archive_fixture"]

PAGES = {
    "_index.md": "---\ntitle: Widget\ndescription: How to install and run the Widget server.\n---\nIt turns wheels.\n",
    "install.md": "# Install\n\nThe widget server needs a kernel of version six and two gigabytes of memory.\n",
}
KERNEL = "which kernel does the widget server need"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "widget"
    folder.mkdir()
    commit(folder, PAGES)
    return folder


@pytest.fixture
def workspace(tmp_path: Path, clone: Path) -> Iterator[Workspace]:
    """Two collections, and a repository."""
    with open_workspace(tmp_path) as opened:
        opened.library.create_collection("tea", "How tea is brewed")
        opened.library.create_collection("weather", "Forecasts and clouds")
        opened.library.ingest_text("Steep green tea in water of eighty degrees.", "green.txt", "tea")
        opened.library.ingest_text("A cold front brings rain.", "fronts.txt", "weather")
        opened.repositories.add(clone)
        yield opened


def test_collections_and_repositories_are_targets_with_their_descriptions(workspace: Workspace) -> None:
    assert [(target.name, target.kind, target.description) for target in workspace.targets()] == [
        ("tea", "collection", "How tea is brewed"),
        ("weather", "collection", "Forecasts and clouds"),
        ("widget", "repository", "Widget: How to install and run the Widget server."),
    ]


def test_a_routed_search_finds_in_a_repository_and_in_a_collection(workspace: Workspace) -> None:
    best = workspace.search(KERNEL, technique="routed").documents[0]
    assert (best.metadata["file_path"], best.metadata["collection"]) == ("install.md", "widget")
    best = workspace.search("how hot is the water for green tea", technique="routed").documents[0]
    assert best.metadata["source_file"] == "green.txt"
    assert workspace.search(KERNEL).documents[0].metadata["collection"] != "widget", "only a routed search goes there"


def test_a_limit_to_collections_keeps_a_repository_out(workspace: Workspace) -> None:
    found = workspace.search(KERNEL, technique="routed", where={"collection": {"$in": ["tea", "weather"]}}).documents
    assert {document.metadata["collection"] for document in found} <= {"tea", "weather"}
    answer = SearchLibraryTool(workspace.library, allowed=["tea"], technique="routed").answer({"query": KERNEL})
    assert {document.metadata["collection"] for document in answer.documents} == {"tea"}
    for name in ("widget", "nothing"):
        with pytest.raises(CollectionNotFoundError, match=f"no collection '{name}'"):
            workspace.search(KERNEL, technique="routed", collection=name)


def test_a_rename_that_was_interrupted_hides_nothing_from_a_routed_search(workspace: Workspace) -> None:
    workspace.library.collections.begin_rename("tea", "leaves")
    for collection in ("leaves", None):
        best = workspace.search("how hot is the water for green tea", "routed", collection).documents[0]
        assert (best.metadata["source_file"], best.metadata["collection"]) == ("green.txt", "leaves")
    workspace.library.ingest_text("Black tea is boiled.", "black.txt", "leaves")
    assert workspace.targets()[0] == Target("leaves", "How tea is brewed"), "whoever writes completes it"


def test_an_update_and_a_removal_are_seen_by_the_next_search(workspace: Workspace, clone: Path) -> None:
    workspace.search(KERNEL, technique="routed")
    commit(clone, {"install.md": "# Install\n\nThe widget server needs a kernel of version nine.\n"})
    workspace.repositories.update("widget")
    assert "version nine" in workspace.search(KERNEL, technique="routed").documents[0].content
    workspace.repositories.remove("widget")
    assert [target.name for target in workspace.targets()] == ["tea", "weather"]


def test_a_damaged_repository_is_named_and_the_others_are_served(workspace: Workspace) -> None:
    (workspace.repositories.root / "broken.json").write_text("{", encoding="utf-8")
    found = workspace.search(KERNEL, technique="routed")
    assert found.documents[0].metadata["collection"] == "widget"
    [said] = found.degraded
    assert said.startswith("broken is known by its description only: ")
    assert "broken.json' is damaged" in said
    assert workspace.targets()[2] == workspace.targets()[2], "routers keep what they know of a target that is the same"
    with pytest.raises(StoreCorruptError, match=r"broken.json' is damaged"):
        workspace.technique("routed").retrieve(KERNEL, where={"collection": "broken"})


def test_who_may_not_search_a_damaged_repository_is_not_told_of_it(workspace: Workspace) -> None:
    (workspace.repositories.root / "broken.json").write_text("{", encoding="utf-8")
    for where in ({"collection": "tea"}, {"collection": {"$in": ["tea", "widget"]}}):
        assert workspace.search(KERNEL, technique="routed", where=where).degraded == ()


def test_a_repository_whose_store_is_damaged_is_told_of_to_those_alone_who_may_search_it(workspace: Workspace) -> None:
    entry = workspace.repositories.root / "widget.json"
    record = json.loads(entry.read_text(encoding="utf-8"))
    workspace.targets.close()
    (workspace.repositories.root / record["folder"] / "store.db").write_bytes(b"no database" * 1_000)
    found = workspace.search("green tea", technique="routed")
    assert found.documents[0].metadata["source_file"] == "green.txt"
    assert any(said.startswith("widget ") for said in found.degraded)
    assert workspace.search("green tea", "routed", where={"collection": {"$in": ["tea", "weather"]}}).degraded == ()


def test_a_repository_and_a_collection_of_one_name_are_refused(workspace: Workspace) -> None:
    with pytest.raises(CollectionAlreadyExistsError, match="there is a repository 'widget'"):
        workspace.library.create_collection("widget")
    workspace.library.collections.path.write_text("collections: [{name: widget}]\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="two targets are called 'widget'; rename"):
        workspace.search(KERNEL, technique="routed")


def test_a_closed_workspace_holds_no_file_of_a_repository(workspace: Workspace) -> None:
    workspace.search(KERNEL, technique="routed")
    targets = workspace.targets
    assert targets._kept
    workspace.close()
    assert not targets._kept


def test_a_technique_over_a_repository_is_what_a_routed_one_stands_on(workspace: Workspace) -> None:
    assert workspace.technique_over(workspace.store).name == "hybrid"
    assert workspace.technique_over(workspace.store, "routed").name == "hybrid"
    assert workspace.technique_over(workspace.store, "bm25").name == "bm25"


OVER_ROUTED = """default: {default}
techniques:
  naive: {{use: naive}}
  routed: {{use: collection_routed, base: naive, router: all}}
  diverse: {{use: mmr, base: routed}}
  wide: {{use: sentence_window, base: routed}}
  parents: {{use: parent_document, base: routed}}
  fused: {{use: hybrid, bases: [naive, routed]}}
  steps: {{use: pipeline, steps: {{only: {{technique: routed}}}}}}
"""


@pytest.mark.parametrize("default", ["routed", "diverse", "wide", "parents", "fused", "steps"])
def test_a_default_that_stands_on_a_routed_one_searches_everywhere(workspace: Workspace, default: str) -> None:
    (workspace.root / "config" / "techniques.yaml").write_text(OVER_ROUTED.format(default=default), encoding="utf-8")
    workspace.library.collections.begin_rename("tea", "leaves")
    with open_workspace(workspace.root) as opened:
        for technique in (None, "routed", "diverse"):
            found = opened.search(KERNEL, technique, top_k=10)
            assert {document.metadata["collection"] for document in found.documents} == {"leaves", "weather", "widget"}
            assert found.degraded == ()
        assert opened.technique_over(opened.store).retrieve(KERNEL)


def test_diversity_over_collections_and_repositories_has_all_that_the_base_found(workspace: Workspace) -> None:
    (workspace.root / "config" / "techniques.yaml").write_text(OVER_ROUTED.format(default="naive"), encoding="utf-8")
    with open_workspace(workspace.root) as opened:
        base, diverse = (opened.search(KERNEL, name, top_k=10).documents for name in ("routed", "diverse"))
    assert {document.id for document in diverse} == {document.id for document in base}
    assert diverse[0].metadata["file_path"] == "install.md", "what is nearest comes first, wherever it lies"


def test_an_archive_that_a_program_adds_is_a_target_too(workspace: Workspace, servers: ArchiveServers) -> None:
    target = archive_target(
        servers.archive("House", HEATING, description="Heating and boiler of the house"), servers.settings()
    )
    workspace.targets.add(target)
    assert workspace.targets()[-1] == target
    best = workspace.search(HEATING[1], technique="routed").documents[0]
    assert (best.metadata["archive"], best.content) == ("House", HEATING[1])
    target.technique.close()  # type: ignore[union-attr]


def test_what_a_connector_finds_it_can_also_fetch(workspace: Workspace) -> None:
    tool = SearchLibraryTool(workspace.library, technique="routed")
    assert {document.metadata["collection"] for document in tool.answer({"query": KERNEL}).documents} == {"widget"}
    found = tools._search(tool, {"query": KERNEL})["results"]
    assert found
    for result in found:
        assert tools._fetch(tool, {"id": result["id"]})["text"]
