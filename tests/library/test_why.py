"""Why a search does not return a passage: six causes, each with its own first words, and what would return it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ragistry import Workspace
from ragistry.errors import QueryError
from ragistry.library.why import Explanation, explain
from ragistry.types import SearchRequest
from tests.conftest import Corpus, everywhere
from tests.messages import refused

TEA = "Steep green tea for two minutes in water of eighty degrees."
COFFEE = "Grind coffee beans coarsely for a French press."
BACKUP = "A backup of the database runs every night at two."
Why = Callable[..., Explanation]


@pytest.fixture
def why(workspace: Workspace) -> Why:
    """Explain a search of a library with three sources of ``notes`` and one of ``work``."""
    library = workspace.library
    library.create_collection("work", "Servers and databases")
    for name, text in {"tea.md": TEA, "coffee.md": COFFEE}.items():
        library.ingest_text(text, name, "notes", metadata={"year": 2020})
    library.ingest_text(BACKUP, "backup.md", "work")

    def run(query: str, expected: str, **options: object) -> Explanation:
        return explain(library, SearchRequest(query, **options), expected)  # type: ignore[arg-type]

    return run


@pytest.mark.parametrize(
    ("query", "expected", "options", "cause", "said", "remedy"),
    [
        ("green tea", "tea.md", {}, "found", "found: result 1 of", ""),
        ("green tea", "teas.md", {}, "not ingested", "did you mean 'tea.md'?", "ragistry sources list"),
        ("backup", "backup.md", {"collection": "notes"}, "filtered", "in 'work'", "--collection work"),
        ("tea", "tea.md", {"where": {"year": {"$gt": 2024}}}, "filtered", "'year'", "year: 2020"),
        ('"coffee beans"', "tea.md", {}, "filtered", "phrase 'coffee beans'", "quotation marks"),
        ('water -"green"', "tea.md", {}, "filtered", "excludes 'green'", "remove the exclusion"),
        ("espresso machine", "tea.md", {"top_k": 1}, "no words", "no chunk of 'tea.md'", "words of the passage"),
        ("water for coffee beans", "tea.md", {"top_k": 1}, "ranked low", "rank 2", "--top-k 2"),
        ("press for tea", "tea.md", {"top_k": 1, "technique": "bm25"}, "ranked low", "rank 2 in bm25", "--top-k 2"),
    ],
)  # fmt: skip
def test_each_cause_has_its_first_words_and_remedy(
    why: Why, query: str, expected: str, options: dict[str, object], cause: str, said: str, remedy: str
) -> None:
    found = why(query, expected, **options)
    assert found.cause == cause, found
    first = {"ranked low": "ranked too low"}.get(cause, cause)
    assert found.message.startswith(f"{first}:"), found
    assert said in found.message, found
    assert remedy in " ".join(found.remedies), found


def test_refused_file_is_named_with_its_reason(why: Why, corpus: Corpus) -> None:
    folder = corpus({"broken.pdf": b"%PDF-1.7 nothing", "fine.md": "A fine text."})
    refused = why("anything", str(folder / "broken.pdf"))
    assert (refused.cause, refused.message.partition(": ")[2][:28]) == ("not ingested", "the file exists but is refus")
    absent = why("anything", str(folder / "fine.md"))
    assert "exists, but the library has no source" in absent.message
    assert absent.remedies == (f"ragistry ingest {folder / 'fine.md'}",)


def test_copy_is_found_under_the_result_with_its_text(why: Why, workspace: Workspace) -> None:
    workspace.library.ingest_text(TEA, "again.md", "notes", metadata={"year": 2020})
    found = [why("green tea", name, top_k=1) for name in ("tea.md", "again.md")]
    assert {one.cause for one in found} == {"found", "folded"}
    assert "identical text" in next(one.message for one in found if one.cause == "folded")


def test_router_that_chose_another_collection_is_named(why: Why, workspace: Workspace) -> None:
    entry = {"use": "collection_routed", "base": "naive", "margin": 0.0, "most": 1}
    found = explain(workspace.library, SearchRequest("green tea in hot water", entry), "backup.md")
    assert found.cause == "not routed", found
    assert "chose 'notes', not 'work'" in found.message
    assert "--collection work" in found.remedies[0]


def test_ranks_name_the_technique_and_its_bases(why: Why) -> None:
    found = why("water for coffee beans", "tea.md", technique="hybrid", top_k=1)
    assert [one.technique for one in found.ranks] == ["hybrid", "naive", "bm25"]
    assert all(one.rank == 2 and one.score is not None for one in found.ranks), found.ranks


GUIDE = {"guide.md": f"# First part\n{TEA}\n## Second part\n{COFFEE}\n", "coffee/in/press.md": f"# Press\n{COFFEE}\n"}


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        *((f"guide.md:{place}", "") for place in ("2", "line 3", "Second part", "section=Second part")),
        *((name, "") for name in ("press.md", "in/press.md", "press.md:2")),
        *((f"guide.md:{place}", "has no place") for place in ("99", "page 3", "line 0", "sheet Budget", "Secnd part")),
        ("_index.md", "a/_index.md"),
        (" ", "is empty"),
    ],
)
def test_a_passage_is_named_by_the_end_of_its_path_and_a_place(
    why: Why, workspace: Workspace, corpus: Corpus, expected: str, said: str
) -> None:
    more = {"tea/espress.md": TEA, "a/_index.md": TEA, "b/_index.md": BACKUP}
    workspace.library.ingest_folder(corpus(GUIDE | more), "notes")
    if said:
        with refused(QueryError, said):
            why("coffee press", expected)
    else:
        assert why("coffee press", expected).cause in ("found", "folded")


@everywhere
def test_local_stores_explain(workspace: Workspace, request: pytest.FixtureRequest) -> None:
    if "client" in request.node.name:
        pytest.skip("a client has no store")
    workspace.library.ingest_text(TEA, "tea.md", "notes")
    found = explain(workspace.library, SearchRequest("green tea", "naive", where={"year": 3}), "tea.md")
    assert found.cause == "filtered"
    found = explain(workspace.library, SearchRequest("green tea", "naive"), "tea.md")
    assert found.cause == "found"
