"""The words of a query that no passage contains: of what is asked for, in what may be read, told to all who ask."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry import RemoteWorkspace, Workspace
from ragistry.answers.answer import Answerer
from ragistry.testing.hashed import HashingEmbedder
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.types import OUTSIDE, Document
from ragistry.utils.wording import no_passage
from tests.cli.conftest import Run, ragistry  # noqa: F401, the fixture


@pytest.fixture
def filled(workspace: Workspace | RemoteWorkspace) -> Workspace | RemoteWorkspace:
    workspace.library.create_collection("other")
    workspace.library.ingest_text("Green tea is steeped. Copies of it, by e-mail.", "tea", "notes")
    workspace.library.ingest_text("Bread is baked.", "bread", "other")
    return workspace


@pytest.mark.parametrize(
    ("workspace", "technique"),
    [("local", "bm25"), ("local", "naive"), ("local", "hybrid"), ("client", "hybrid"), ("postgres", "naive")],
    indirect=["workspace"],
)
def test_words_of_phrases_count_and_what_is_excluded_does_not(
    filled: Workspace | RemoteWorkspace, technique: str
) -> None:
    def unknown(query: str, **options: Any) -> tuple[str, ...]:
        return filled.search(query, technique, **options).unknown_words

    assert unknown("Where\u2019s it that green teas bake, who'd know?") == ("know",)
    assert unknown('tea, -"quince" "green medlar" or a (Hagemeyer)!') == ("medlar", "Hagemeyer")
    assert unknown("Is bread by email the Tea?", collection="notes") == ("bread",)
    assert unknown("茶 tea") == ()
    assert unknown("steeped", previous="quince") == ()
    assert filled.search_many(["medlar", "tea"])[0].unknown_words == ("medlar",)


def test_nothing_is_said_of_pages_from_elsewhere(filled: Workspace) -> None:
    class Web:
        def retrieve(self, query: str, *, top_k: int | None = None, where: Any = None) -> list[Document]:
            return [Document("A quince.", {OUTSIDE: True}, 1.0, "1")]

    assert filled.search("quince", Web()).unknown_words == ()


def test_the_model_and_people_are_told(
    filled: Workspace,
    ragistry: Run,  # noqa: F811
) -> None:
    class Reading:
        def __init__(self) -> None:
            self.prompts: list[str] = []

        def generate(self, prompt: str, *, schema: object = None) -> str:
            self.prompts.append(prompt)
            return "Green tea is steeped [1]."

    found = filled.search("quince tea", "bm25")
    reading = Reading()
    stream = Answerer(reading, HashingEmbedder(8)).stream(
        found.query, found.documents, unknown_words=found.unknown_words, previous="tea?"
    )
    assert stream.answer.unknown_words == ("quince",)
    asked = 'Question: quince tea (No passage contains "quince") (This follows the question: tea?)'
    assert asked in reading.prompts[0]
    root = filled.root
    filled.close()
    assert 'note: no passage contains "quince"\n' in ragistry("-w", root, "search", "quince tea").err
    assert 'note: no passage contains "quince"\n' in ragistry("-w", root, "ask", "quince tea").err
    assert ragistry("-w", root, "ask", "quince tea", "--json").json["unknown_words"] == ["quince"]


def test_a_model_with_tools_is_told(filled: Workspace) -> None:
    answer = SearchLibraryTool(filled.library).answer({"query": "quince tea"})
    assert '[Note: no passage contains "quince"]' in answer.text


def test_the_line_names_a_few_words() -> None:
    assert no_passage(()) == ""
    assert no_passage(("a",)) == 'no passage contains "a"'
    assert no_passage(("a", "b", "c\u202e")) == 'no passage contains "a" or "b" or "c"'
    assert (
        no_passage([str(n) for n in range(9)]) == 'no passage contains "0" or "1" or "2" or "3" or "4" or 4 more words'
    )
