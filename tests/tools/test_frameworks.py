"""The library in the words of LlamaIndex and Haystack, over a real workspace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import InvalidLimitError
from tests.serving import served

TEXTS = {"tea": "Steep green tea for two minutes.", "weather": "A cold front brings rain."}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with open_workspace(tmp_path_factory.mktemp("house")) as workspace:
        for collection, text in TEXTS.items():
            workspace.library.create_collection(collection, f"All about {collection}")
            workspace.library.ingest_text(text, f"{collection}.txt", collection, metadata={"year": 2026})
        yield workspace


@pytest.mark.parametrize("door", ["library", "client"])
def test_llamaindex_retriever_finds_what_the_library_finds(house: Workspace, door: str) -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from ragistry import connect
    from ragistry.tools.llamaindex import LibraryRetriever

    expected = house.library.search("rain", n=2, technique="naive").documents
    if door == "library":
        nodes = LibraryRetriever(house.library, "naive", top_k=2).retrieve("rain")
    else:
        with served(house) as address, connect(address) as remote:
            nodes = LibraryRetriever(remote.library, "naive", top_k=2).retrieve("rain")
    assert [(one.node_id, one.text) for one in nodes] == [(one.id, one.content) for one in expected]
    assert [one.score for one in nodes] == pytest.approx([one.score for one in expected])
    assert nodes[0].metadata["source_file"] == "weather.txt"
    assert [one.text for one in LibraryRetriever(house.library, collection="tea").retrieve("rain")] == [TEXTS["tea"]]
    assert LibraryRetriever(house.library, where={"year": 1999}).retrieve("rain") == []
    with pytest.raises(InvalidLimitError):
        LibraryRetriever(house.library, top_k=0)


def test_haystack_component_runs_in_a_pipeline_that_is_saved(house: Workspace) -> None:
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from ragistry.tools.haystack import LibraryRetriever

    retriever = LibraryRetriever(str(house.root), "naive", top_k=2)
    pipeline = haystack.Pipeline()
    pipeline.add_component("retriever", retriever)
    restored = haystack.Pipeline.loads(pipeline.dumps(), allowed_modules=["ragistry.tools.haystack"])
    expected = house.library.search("rain", n=2, technique="naive").documents

    def run(**options: Any) -> list[Any]:
        found: list[Any] = restored.run({"retriever": {"query": "rain", **options}})["retriever"]["documents"]
        return found

    assert [(one.id, one.content) for one in run()] == [(one.id, one.content) for one in expected]
    assert [one.meta["source_file"] for one in run(top_k=1)] == ["weather.txt"]
    assert run(where={"year": 1999}) == []
    restored.get_component("retriever").close()
    assert len(run()) == 2
    restored.get_component("retriever").close()
    with pytest.raises(InvalidLimitError):
        LibraryRetriever(str(house.root), top_k=0)
    with pytest.raises(Exception, match="nowhere"):
        LibraryRetriever(str(Path(house.root) / "nowhere")).run("rain")
