"""A routed search chooses among the collections, the repositories and the archives of a workspace alike."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import CollectionAlreadyExistsError, CollectionNotFoundError, ConfigError, StoreCorruptError
from ragistry.techniques.routing.target import Target
from ragistry.tools.search_library import SearchLibraryTool
from tests.library.git_trees import commit
from tests.messages import check_message, refused

PAGES = {
    "_index.md": "---\ntitle: Widget\ndescription: How to install and run the Widget server.\n---\nIt turns wheels.\n",
    "install.md": "# Install\n\nThe widget server needs a kernel of version six and two gigabytes of memory.\n",
}
KERNEL = "which kernel does the widget server need"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two collections and a repository, whose clone lies beside it."""
    place = tmp_path_factory.mktemp("targets")
    (root := place / "workspace").mkdir()
    (clone := place / "widget").mkdir()
    commit(clone, PAGES)
    with open_workspace(root) as opened:
        opened.library.create_collection("tea", "How tea is brewed")
        opened.library.create_collection("weather", "Forecasts and clouds")
        opened.library.ingest_text("Steep green tea in water of eighty degrees.", "green.txt", "tea")
        opened.library.ingest_text("A cold front brings rain.", "fronts.txt", "weather")
        opened.repositories.add(clone)
    return root


@pytest.fixture
def workspace(filled: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A copy of the filled workspace."""
    with open_workspace(shutil.copytree(filled, tmp_path / "workspace")) as opened:
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
        with refused(CollectionNotFoundError, f"'{name}'"):
            workspace.search(KERNEL, technique="routed", collection=name)


def test_a_rename_that_was_interrupted_hides_nothing_from_a_routed_search(workspace: Workspace) -> None:
    workspace.library.collections.begin_rename("tea", "leaves")
    for collection in ("leaves", None):
        best = workspace.search("how hot is the water for green tea", "routed", collection).documents[0]
        assert (best.metadata["source_file"], best.metadata["collection"]) == ("green.txt", "leaves")
    workspace.library.ingest_text("Black tea is boiled.", "black.txt", "leaves")
    assert workspace.targets()[0] == Target("leaves", "How tea is brewed"), "whoever writes completes it"


def test_an_update_and_a_removal_are_seen_by_the_next_search(workspace: Workspace, filled: Path) -> None:
    workspace.search(KERNEL, technique="routed")
    commit(filled.parent / "widget", {"install.md": "# Install\n\nThe widget server needs a kernel of version nine.\n"})
    workspace.repositories.update("widget")
    assert "version nine" in workspace.search(KERNEL, technique="routed").documents[0].content
    workspace.repositories.remove("widget")
    assert [target.name for target in workspace.targets()] == ["tea", "weather"]


ONLY_TEA = ({"collection": "tea"}, {"collection": {"$in": ["tea", "weather"]}})


def test_a_damaged_repository_is_named_to_those_who_may_search_it(workspace: Workspace) -> None:
    (workspace.repositories.root / "broken.json").write_text("{", encoding="utf-8")
    found = workspace.search(KERNEL, technique="routed")
    assert found.documents[0].metadata["collection"] == "widget"
    check_message("; ".join(found.degraded), "broken.json")
    assert workspace.targets()[2] == workspace.targets()[2], "routers keep what they know of a target that is the same"
    with refused(StoreCorruptError, "broken.json"):
        workspace.technique("routed").retrieve(KERNEL, where={"collection": "broken"})
    for where in (*ONLY_TEA, {"collection": {"$in": ["tea", "widget"]}}):
        assert workspace.search(KERNEL, technique="routed", where=where).degraded == ()


def test_a_repository_with_a_damaged_store_is_named_to_those_who_may_search_it(workspace: Workspace) -> None:
    record = json.loads((workspace.repositories.root / "widget.json").read_text(encoding="utf-8"))
    workspace.targets.close()
    (workspace.repositories.root / record["folder"] / "store.db").write_bytes(b"no database" * 1_000)
    found = workspace.search("green tea", technique="routed")
    assert found.documents[0].metadata["source_file"] == "green.txt"
    assert any(message.startswith("widget ") for message in found.degraded)
    for where in ONLY_TEA:
        assert workspace.search("green tea", "routed", where=where).degraded == ()


def test_a_repository_and_a_collection_of_one_name_are_refused(workspace: Workspace) -> None:
    with refused(CollectionAlreadyExistsError, "widget"):
        workspace.library.create_collection("widget")
    workspace.library.collections.path.write_text("collections: [{name: widget}]\n", encoding="utf-8")
    with refused(ConfigError, "widget"):
        workspace.search(KERNEL, technique="routed")


def test_a_technique_over_a_repository_is_what_a_routed_one_stands_on(workspace: Workspace) -> None:
    assert workspace.technique_over(workspace.store).name == "hybrid"
    assert workspace.technique_over(workspace.store, "routed").name == "hybrid"
    assert workspace.technique_over(workspace.store, "bm25").name == "bm25"


OVER_ROUTED = """default: {default}
techniques:
  naive: {{use: naive}}
  routed: {{use: collection_routed, base: naive, router: all}}
  diverse: {{use: newest, base: routed}}
  parents: {{use: parent_document, base: routed}}
  fused: {{use: hybrid, bases: [naive, routed]}}
  steps: {{use: pipeline, steps: {{only: {{technique: routed}}}}}}
"""


@pytest.mark.parametrize("default", ["naive", "routed", "diverse", "parents", "fused", "steps"])
def test_a_technique_that_stands_on_a_routed_one_searches_everywhere(workspace: Workspace, default: str) -> None:
    (workspace.root / "config" / "techniques.yaml").write_text(OVER_ROUTED.format(default=default), encoding="utf-8")
    workspace.library.collections.begin_rename("tea", "leaves")
    with open_workspace(workspace.root) as opened:
        results = [opened.search(KERNEL, technique, top_k=10) for technique in (None, "routed", "diverse")]
        for found in results[default == "naive" :]:
            assert {document.metadata["collection"] for document in found.documents} == {"leaves", "weather", "widget"}
            assert found.degraded == ()
        assert {document.id for document in results[1].documents} == {document.id for document in results[2].documents}
        assert results[2].documents[0].metadata["file_path"] == "install.md", "what is nearest comes first"
        assert opened.technique_over(opened.store).retrieve(KERNEL)
