"""A retriever reaches no more than what it is made of, or what it is allowed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import CollectionNotFoundError, ConfigError, InvalidLimitError, UnknownTechniqueError
from ragistry.tools.langchain import LibraryRetriever, library_retriever
from ragistry.tools.search_library import SearchLibraryTool

SECRET = "The password is swordfish."


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with open_workspace(tmp_path_factory.mktemp("house")) as workspace:
        for name, text in (("mba", "Cash is king."), ("notes", "Notes on passwords."), ("private", SECRET)):
            workspace.library.create_collection(name)
            workspace.library.ingest_text(text, f"{name}.txt", name)
        yield workspace


def reached(retriever: LibraryRetriever) -> set[str]:
    return {document.metadata["collection"] for document in retriever.invoke("password swordfish", None, k=50)}


def test_a_retriever_of_a_limited_tool_has_its_limit(house):
    assert reached(library_retriever(SearchLibraryTool(house.library, allowed=["mba"]))) == {"mba"}
    assert reached(library_retriever(SearchLibraryTool(house.library))) == {"mba", "notes", "private"}


def test_a_retriever_of_a_tool_has_its_technique_and_number(house):
    retriever = library_retriever(SearchLibraryTool(house.library, technique="bm25", n=1))
    assert (retriever.technique, retriever.k) == ("bm25", 1)
    retriever = library_retriever(SearchLibraryTool(house.library, technique="bm25", n=1), "naive", top_k=2)
    assert (retriever.technique, retriever.k) == ("naive", 2)


def test_allowed_limits_a_workspace_and_its_library(house):
    for searched in (house, house.library):
        assert reached(library_retriever(searched, allowed=["mba", "notes"])) == {"mba", "notes"}
        assert reached(library_retriever(searched, collection="notes", allowed=["mba", "notes"])) == {"notes"}
        assert reached(library_retriever(searched, allowed=[])) == set()


def test_allowed_makes_the_limit_of_a_tool_narrower_and_never_wider(house):
    tool = SearchLibraryTool(house.library, allowed=["mba", "notes"])
    assert reached(library_retriever(tool, allowed=["mba"])) == {"mba"}
    with pytest.raises(CollectionNotFoundError, match="no collection 'private'; there are 'mba', 'notes'$"):
        library_retriever(tool, allowed=["mba", "private"])


def test_a_copy_that_is_allowed_less_reaches_less(house):
    retriever = library_retriever(house, allowed=["mba", "notes"])
    assert reached(retriever) == {"mba", "notes"}
    assert reached(retriever.model_copy(update={"allowed": frozenset({"mba"})})) == {"mba"}
    assert reached(retriever) == {"mba", "notes"}


def test_a_copy_of_another_library_reaches_that_one(house, tmp_path):
    retriever = library_retriever(house)
    assert reached(retriever) == {"mba", "notes", "private"}
    with open_workspace(tmp_path) as other:
        other.library.create_collection("theirs")
        other.library.ingest_text("Another password.", "a.txt", "theirs")
        assert reached(retriever.model_copy(update={"library": other.library})) == {"theirs"}


def test_a_collection_that_is_not_allowed_is_not_found(house):
    retriever = library_retriever(house, allowed=["mba"]).model_copy(update={"collection": "private"})
    with pytest.raises(CollectionNotFoundError, match="no collection 'private'; there are 'mba'$"):
        retriever.invoke("password")


def test_a_collection_that_is_not_in_reach_is_told_at_once(house):
    for searched, options in (
        (house, {"allowed": ["mba"]}),
        (SearchLibraryTool(house.library, allowed=["mba"]), {}),
        (SearchLibraryTool(house.library, allowed=["mba", "private"]), {"allowed": ["mba"]}),
    ):
        with pytest.raises(CollectionNotFoundError, match="no collection 'private'; there are 'mba'$"):
            library_retriever(searched, collection="private", **options)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"collection": "nope"}, CollectionNotFoundError, "no collection 'nope'; there are 'mba', 'notes', 'private'"),
        ({"collection": 5}, CollectionNotFoundError, "collection must be text, got 5"),
        ({"technique": "naiv"}, UnknownTechniqueError, "did you mean 'naive'"),
        ({"technique": ["naive"]}, UnknownTechniqueError, "technique must be text"),
        ({"top_k": 0}, InvalidLimitError, "top_k must be a whole number from 1 to 1,000, got 0"),
        ({"top_k": 1_001}, InvalidLimitError, "got 1001"),
        ({"top_k": "5"}, InvalidLimitError, "got '5'"),
    ],
)
def test_what_no_search_could_use_is_told_at_once(house, options, error, said):
    for searched in (house, house.library, SearchLibraryTool(house.library)):
        with pytest.raises(error, match=said):
            library_retriever(searched, **options)


def test_an_allowed_name_that_is_not_there_is_told_at_once(house):
    with pytest.raises(CollectionNotFoundError, match="no collection 'mbaa'; did you mean 'mba'"):
        library_retriever(house, allowed=["mbaa"])
    with pytest.raises(ConfigError, match=r"write \['mba'\]"):
        library_retriever(house, allowed="mba")


@pytest.mark.parametrize("searched", [None, "mba", object()])
def test_what_cannot_be_searched_is_refused(searched):
    with pytest.raises(ConfigError, match="cannot be searched; give a Workspace, its library, or a SearchLibraryTool"):
        library_retriever(searched)
