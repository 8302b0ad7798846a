"""A retriever reaches no more than what it is made of, or what it is allowed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import CollectionNotFoundError, ConfigError, InvalidLimitError, UnknownTechniqueError
from ragistry.tools.langchain import LibraryRetriever, library_retriever
from ragistry.tools.search_library import SearchLibraryTool
from tests.messages import refused

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


def test_a_retriever_of_a_tool_has_its_limit_technique_and_number(house):
    assert reached(library_retriever(SearchLibraryTool(house.library, allowed=["mba"]))) == {"mba"}
    assert reached(library_retriever(SearchLibraryTool(house.library))) == {"mba", "notes", "private"}
    retriever = library_retriever(SearchLibraryTool(house.library, technique="bm25", n=1))
    assert (retriever.technique, retriever.k) == ("bm25", 1)
    retriever = library_retriever(SearchLibraryTool(house.library, technique="bm25", n=1), "naive", top_k=2)
    assert (retriever.technique, retriever.k) == ("naive", 2)


def test_allowed_limits_what_is_searched_and_never_widens_it(house):
    for searched in (house, house.library):
        assert reached(library_retriever(searched, allowed=["mba", "notes"])) == {"mba", "notes"}
        assert reached(library_retriever(searched, collection="notes", allowed=["mba", "notes"])) == {"notes"}
        assert reached(library_retriever(searched, allowed=[])) == set()
    tool = SearchLibraryTool(house.library, allowed=["mba", "notes"])
    assert reached(library_retriever(tool, allowed=["mba"])) == {"mba"}
    with refused(CollectionNotFoundError):
        library_retriever(tool, allowed=["mba", "private"])


def test_a_copy_reaches_what_it_is_changed_to(house, workspace):
    retriever = library_retriever(house, allowed=["mba", "notes"])
    assert reached(retriever.model_copy(update={"allowed": frozenset({"mba"})})) == {"mba"}
    assert reached(retriever) == {"mba", "notes"}
    workspace.library.create_collection("theirs")
    workspace.library.ingest_text("Another password.", "a.txt", "theirs")
    assert reached(library_retriever(house).model_copy(update={"library": workspace.library})) == {"theirs"}
    with refused(CollectionNotFoundError, "private"):
        retriever.model_copy(update={"collection": "private"}).invoke("password")


def test_a_collection_out_of_reach_is_refused_at_once(house):
    for searched, options in (
        (house, {"allowed": ["mba"]}),
        (SearchLibraryTool(house.library, allowed=["mba"]), {}),
        (SearchLibraryTool(house.library, allowed=["mba", "private"]), {"allowed": ["mba"]}),
    ):
        with refused(CollectionNotFoundError):
            library_retriever(searched, collection="private", **options)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"collection": "nope"}, CollectionNotFoundError),
        ({"collection": 5}, CollectionNotFoundError),
        ({"technique": "naiv"}, UnknownTechniqueError),
        ({"top_k": 0}, InvalidLimitError),
        ({"top_k": 1_001}, InvalidLimitError),
        ({"top_k": "5"}, InvalidLimitError),
        ({"allowed": ["mbaa"]}, CollectionNotFoundError),
        ({"allowed": "mba"}, ConfigError),
    ],
)
def test_wrong_options_are_refused_at_once(house, options, error):
    [value] = options.values()
    for searched in (house, house.library, SearchLibraryTool(house.library)):
        with refused(error, value if not isinstance(value, list) else value[0]):
            library_retriever(searched, **options)


def test_what_cannot_be_searched_is_refused():
    for searched in (None, "mba", []):
        with refused(ConfigError, repr(searched)):
            library_retriever(searched)
