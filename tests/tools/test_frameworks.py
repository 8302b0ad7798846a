"""The recipes of docs/howto/frameworks.md, with the frameworks themselves, over a real workspace."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragistry import Workspace
from ragistry.errors import CollectionNotFoundError, InvalidLimitError, RagistryError, UnknownTechniqueError
from tests.pages import blocks

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "frameworks.md"
TEXTS = {"tea": "Steep green tea for two minutes.", "weather": "A cold front brings rain."}
RECIPES = {
    "llamaindex_retriever": "llama_index.core",
    "haystack_retriever": "haystack",
    "langchain_store": "langchain_core",
}


@pytest.fixture
def house(workspace: Workspace) -> Workspace:
    for collection, text in TEXTS.items():
        workspace.library.create_collection(collection, f"All about {collection}")
        workspace.library.ingest_text(text, f"{collection}.txt", collection, metadata={"year": 2026})
    return workspace


@pytest.fixture(params=RECIPES)
def recipe(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of a recipe, written to a folder as the page says."""
    name = request.param
    pytest.importorskip(RECIPES[name], reason=f"{RECIPES[name]} is not installed")
    [text] = [block.text for block in blocks(PAGE) if block.title == f"{name}.py"]
    assert sum(bool(line.strip()) for line in text.splitlines()) <= 40
    (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(name)
    del sys.modules[name]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, recipe: Any) -> Iterator[None]:
    """Close the workspaces that a recipe opens."""
    made: list[Workspace] = []
    opening = recipe.open_workspace

    def opens(*args: Any, **options: Any) -> Workspace:
        made.append(opening(*args, **options))
        return made[-1]

    monkeypatch.setattr(recipe, "open_workspace", opens)
    yield
    for workspace in made:
        workspace.close()


def component_of(recipe: Any) -> Any:
    return next(cls for name, cls in vars(recipe).items() if name.startswith("Library"))


def test_unknown_names_are_refused_when_it_is_made(house: Workspace, recipe: Any) -> None:
    cls = component_of(recipe)
    for options, error in (
        ({"collection": "tea", "technique": "nothing"}, UnknownTechniqueError),
        ({"collection": "nowhere"}, CollectionNotFoundError),
        ({"collection": "tea", "top_k": 0}, InvalidLimitError),
    ):
        if "top_k" not in options or recipe.__name__ != "langchain_store":
            with pytest.raises(error):
                cls(house, **options)
    with pytest.raises(RagistryError, match="nowhere"):
        cls(str(Path(house.root) / "nowhere"), collection="tea")


@pytest.mark.usefixtures("opened")
def test_it_finds_what_the_library_finds_and_shows_a_model_the_place(house: Workspace, recipe: Any) -> None:
    expected = house.search("rain", "naive", "weather", 2).documents
    for searched in (house, str(house.root)):
        cls = component_of(recipe)
        if recipe.__name__ == "langchain_store":
            store = cls(searched, "weather", "naive")
            both = [store.similarity_search("rain", 2), asyncio.run(store.asimilarity_search("rain", 2))]
            shown = [[f"{one.page_content} {one.metadata}" for one in found] for found in both]
            scores = [[one.metadata["score"] for one in found] for found in both]
        elif recipe.__name__ == "haystack_retriever":
            retriever = cls(searched, "naive", "weather", 2)
            both = [retriever.run("rain")["documents"], asyncio.run(retriever.run_async("rain"))["documents"]]
            shown = [[f"{one.content} {one.meta}" for one in found] for found in both]
            scores = [[one.score for one in found] for found in both]
        else:
            retriever = cls(searched, "naive", "weather", 2)
            both = [retriever.retrieve("rain"), asyncio.run(retriever.aretrieve("rain"))]
            shown = [[one.node.get_content("llm") for one in found] for found in both]
            scores = [[one.score for one in found] for found in both]
        for texts, values in zip(shown, scores, strict=True):
            assert values == pytest.approx([one.score for one in expected])
            assert all(one.content in text for one, text in zip(expected, texts, strict=True))
            assert "weather.txt" in texts[0]
            hidden = {str(value) for key, value in expected[0].metadata.items() if key.endswith(("_hash", "_path"))}
            assert not [value for value in hidden for text in texts if value and value in text]
            assert str(house.root) not in "".join(texts)


def test_searches_do_not_block_the_event_loop(house: Workspace, recipe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search waits for an event that only the event loop sets."""
    cls = component_of(recipe)
    made = cls(house, collection="weather")
    search = type(house.library).run_search

    async def run() -> None:
        loop, released = asyncio.get_running_loop(), asyncio.Event()

        def waiting(*args: Any) -> Any:
            asyncio.run_coroutine_threadsafe(_set(released), loop).result(10)
            return search(*args)

        monkeypatch.setattr(type(house.library), "run_search", waiting)
        method = next(
            getattr(made, name) for name in ("aretrieve", "run_async", "asimilarity_search") if hasattr(made, name)
        )
        await method("rain")
        assert released.is_set()

    asyncio.run(run())


async def _set(event: asyncio.Event) -> None:
    event.set()


@pytest.mark.usefixtures("opened")
def test_haystack_pipeline_is_saved_and_a_run_has_its_own_condition(house: Workspace, recipe: Any) -> None:
    if recipe.__name__ != "haystack_retriever":
        pytest.skip("of Haystack")
    import haystack

    pipeline = haystack.Pipeline()
    pipeline.add_component("retriever", recipe.LibraryRetriever(str(house.root), "naive", top_k=2))
    restored = haystack.Pipeline.loads(pipeline.dumps(), allowed_modules=[recipe.__name__])

    def run(**options: Any) -> list[Any]:
        found: list[Any] = restored.run({"retriever": {"query": "rain", **options}})["retriever"]["documents"]
        return found

    assert [one.content for one in run()] == [TEXTS["weather"], TEXTS["tea"]]
    assert [one.meta["source"] for one in run(top_k=1)] == ["weather.txt"]
    assert run(where={"year": 1999}) == []


def test_documents_of_a_vector_store_are_sources(house: Workspace, recipe: Any) -> None:
    if recipe.__name__ != "langchain_store":
        pytest.skip("of LangChain")
    from langchain_core.documents import Document

    store = recipe.LibraryVectorStore(house, "tea")
    assert store.add_documents([Document("A pot of mint.", metadata={"year": 1999}, id="mint")]) == ["mint"]
    [found] = store.similarity_search("mint", 3, filter={"year": 1999})
    assert (found.id, found.page_content, found.metadata["year"]) == ("mint", "A pot of mint.", 1999)
    store.delete(["mint"])
    assert "mint" not in house.library.list_sources("tea")
    made = recipe.LibraryVectorStore.from_texts(["a boat"], None, workspace=house, collection="tea", ids=["7"])
    assert made.similarity_search("boat", 1)[0].id == "7"
