"""A search withholds nothing: only identical texts are folded, and the result lists all their places."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragistry import RemoteWorkspace, Workspace
from ragistry.protocols import Generator, Technique
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.types import Document, Where
from tests.conftest import everywhere

Either = Workspace | RemoteWorkspace
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")
RULE = "No music is played in the house after ten o'clock in the evening."


def statement(month: str) -> str:
    """One of several texts that differ in a word and a number."""
    return (
        f"# Rent statement\n\nStatement for the flat at 14 Quay Street, second floor left.\nMonth: {month} 2025. "
        f"Rent received: {450 if month == 'July' else 900} euros. Service charges received: 210 euros.\n"
        "The balance is carried forward to the next statement. Please report differences within fourteen days."
    )


@everywhere
def test_records_of_one_form_are_all_found(workspace: Either) -> None:
    texts = {f"{month}.md": statement(month) for month in MONTHS}
    texts["a number.md"] = texts["July.md"].replace("450", "460")
    texts["a name.md"] = texts["July.md"].replace("Quay", "Abbey")
    for name, text in texts.items():
        workspace.library.ingest_text(text, name, "notes")
    found = workspace.search("in which month was less rent paid?", top_k=len(texts))
    assert {document.metadata["source_file"] for document in found.documents} == {*texts}
    assert found.degraded == ()


@everywhere
def test_identical_texts_are_one_result_with_all_places(workspace: Either) -> None:
    workspace.library.create_collection("flats")
    for number in range(7):
        workspace.library.ingest_text(RULE.replace(" ", "  " if number % 2 else " "), f"{number}.txt", "notes")
    workspace.library.ingest_text(RULE, "other.txt", "flats")
    workspace.library.ingest_text("Music is allowed in the garden.", "garden.txt", "notes")
    workspace.library.ingest_text("The evening concert has music by Bach.", "concert.txt", "notes")
    found = workspace.search("music in the house in the evening", top_k=3).documents
    assert [document.metadata.get("copies") for document in found] == [7, None, None], "other texts fill the places"
    names = {f"notes: {number}.txt, line 1" for number in range(7)} | {"flats: other.txt, line 1"}
    own = {"collection": found[0].metadata["collection"], "source": found[0].metadata["source_file"]}
    assert set(found[0].metadata["copy_places"]) == names - {"{collection}: {source}, line 1".format(**own)}
    within = workspace.search("music in the house", collection="flats").documents
    assert [document.metadata.get("copies") for document in within] == [None], "other collections are not named"
    limited = workspace.search("music in the house", where={"source_file": {"$in": ["1.txt", "2.txt"]}}).documents
    assert [document.metadata["copies"] for document in limited] == [1]


def test_places_beyond_the_retrieved_ones_are_listed(workspace: Workspace) -> None:
    for number in range(30):
        workspace.library.ingest_text(f"# Contract {'abc'[number % 3] * 9}\n\n{RULE}", f"{number}.md", "notes")
        workspace.library.ingest_text(RULE, f"{number}.txt", "notes")
    [found] = workspace.search("music in the house", "bm25", top_k=2, where={"source_file": {"$ne": "x"}}).documents[:1]
    assert found.metadata["copies"] in (9, 29)


def test_techniques_return_every_passage_and_the_tool_names_the_places(workspace: Workspace) -> None:
    for name in ("a", "b"):
        workspace.library.ingest_text(RULE, name, "notes")
    assert len(workspace.technique("hybrid").retrieve("music")) == 2
    assert "[1 copy: notes: " in SearchLibraryTool(workspace.library).handle({"query": "music"})


class Elsewhere:
    """A technique that returns texts of its own, and fewer if it is asked for more than four."""

    def __init__(self, texts: Sequence[str], most: int = 5) -> None:
        self.texts, self.most = texts, most

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        texts = self.texts[: self.most if top_k is not None and top_k > 4 else 5]
        return [Document(text, {}, -n, f"id{n}") for n, text in enumerate(texts)][:top_k]


TWICE = ["one  text", " one text\n", "another text", "😀 😀", "😀\n😀"]


@pytest.mark.parametrize(
    ("technique", "top_k", "ids"),
    [
        *((Elsewhere(TWICE), top_k, ["id0", "id2", "id3"][:top_k]) for top_k in (None, 2, 1)),
        *((Elsewhere("aabcd", most), 4, ["id0", "id2", "id3"]) for most in (0, 1, 2)),
        (Elsewhere("aabcd"), 4, ["id0", "id2", "id3", "id4"]),
    ],
)
def test_documents_without_sources_are_folded_under_their_ids(
    workspace: Workspace, technique: Elsewhere, top_k: int | None, ids: list[str]
) -> None:
    found = workspace.search("text", technique=technique, top_k=top_k).documents
    assert [document.id for document in found] == ids
    assert found[0].metadata.get("copy_places", ["id1"]) == ["id1"]
    assert "copy_places" in found[0].metadata or top_k == 1


@everywhere
@pytest.mark.parametrize("own", [{"weight": 9.7}, {"date": "2024-05-01"}, {"tags": ["b", "a"]}, {"title": "Rule"}, {}])
def test_texts_with_other_metadata_are_results_of_their_own(workspace: Either, own: dict[str, Any]) -> None:
    first = {"weight": 10.0, "date": "2023-05-01", "tags": ["a", "b"], "title": "Rules"}
    for name, metadata in (("a", first), ("b", first | own), ("c", first)):
        workspace.library.ingest_text(RULE, name, "notes", metadata=metadata)
    found = workspace.search("music", where={"weight": {"$gte": 9.5}}).documents
    assert sorted(one.metadata.get("copies", 0) for one in found) == ([0, 1] if own else [2])


def test_copies_of_a_file_are_folded_whatever_their_times(workspace: Workspace, tmp_path: Path) -> None:
    for number in range(3):
        path = tmp_path / "files" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(RULE, "utf-8")
        os.utime(path, (number * 10**8,) * 2)
    workspace.library.ingest_folder(tmp_path / "files", "notes")
    [found] = workspace.search("music").documents
    assert found.metadata["copies"] == 2


class Grader:
    """A technique from elsewhere that keeps its generator where nobody looks for one."""

    def __init__(self, config: object, *, base: Technique, generator: Generator) -> None:
        self.base, self.llm = base, generator

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        found = self.base.retrieve(query, top_k=20, where=where)
        self.llm.generate("\n".join(f"[{number}] {one.content}" for number, one in enumerate(found)))
        return found[:top_k]


class Counting:
    """A generator and a reranker that count what they are asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def generate(self, prompt: str, *, schema: type | None = None) -> str:
        self.asked.append(prompt.count("\n["))
        answers = {
            "Queries": '{"queries": ["winter", "pumps in frost"]}',
            "FollowUp": '{"answer": "no", "follow_up": "frost"}',
        }
        return answers.get(schema.__name__, "none") if schema else "Drain pumps before winter."

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked.append(len(texts))
        return [float(len(text)) for text in texts]


MODEL = Counting()
ASKING: dict[str, dict[str, Any]] = {
    name: {"use": name, "base": "hybrid", "generator": MODEL}
    for name in ("multi_query", "llm_rerank", "decompose", "corrective", "contextual_compression")
}
ASKING["hyde"] = {"use": "hyde", "generator": MODEL}
ASKING["rerank"] = {"use": "rerank", "base": "hybrid", "reranker": MODEL}
ASKING["own"] = {"use": Grader, "base": "naive", "generator": MODEL}
ASKING["wide"] = {"use": "parent_document", "base": ASKING["rerank"]}
ASKING |= {f"newest {name}": {"use": "newest", "base": ASKING[name]} for name in ASKING}
ASKING["pipeline"] = {"use": "pipeline", "steps": {"only": {"technique": ASKING["llm_rerank"]}}}


def test_a_model_is_asked_as_if_there_were_no_copies(workspace: Workspace) -> None:
    for number in range(60):
        workspace.library.ingest_text(
            f"Drain pump {number} before frost, for {number * 7} minutes.", f"{number}.txt", "notes"
        )

    def asked(name: str, previous: str | None) -> tuple[list[int], int]:
        MODEL.asked.clear()
        found = workspace.search("drain pump 0", ASKING[name], top_k=5, previous=previous)
        return [*MODEL.asked], len(found.documents)

    calls = [(name, previous) for name in ASKING for previous in (None, "what about frost?")]
    alone = {call: asked(*call) for call in calls}
    for name, previous in calls:  # the order in which threads ask differs
        own, over = alone[name, previous], alone.get((f"newest {name}", previous))
        assert over is None or (sorted(over[0]), over[1]) == (sorted(own[0]), own[1]), name
    assert all(asked for asked, _ in alone.values())
    copies = 0
    for more in (1, 1, 58):
        for _ in range(more):
            text = "Drain pump 0 before frost, for 0 minutes.".replace(" ", " " * (1 + copies % 2))
            workspace.library.ingest_text(text, f"copy {copies}", "notes")
            copies += 1
        assert {call: asked(*call) for call in calls} == alone
        for name in ("naive", "bm25", "hybrid", *ASKING):
            found = workspace.search("drain pump 0", ASKING.get(name, name), top_k=30).documents
            assert {one.metadata["copies"] for one in found if "copies" in one.metadata} <= {copies}, name
            assert sum(len(one.metadata.get("copy_places", ())) for one in found) in (0, copies), name
    reranked = workspace.build(ASKING["rerank"])
    MODEL.asked.clear()
    assert len({one.content for one in reranked.retrieve("drain pump 0", top_k=50)}) < 50, "no search of a library"
