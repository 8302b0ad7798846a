"""Test sets from one's own documents: what is asked, what is left out, what is taken out of the text."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from ragistry.errors import DatasetError
from ragistry.evaluation import Dataset, Text, read_beir, write_beir
from ragistry.evaluation.data.checks import check_testset, contains_words, near_duplicates, remarks
from ragistry.evaluation.data.library import LibrarySource, folder_sources, library_sources
from ragistry.evaluation.data.testsets import KINDS, Kind, ask_questions, known_items, make_testset
from ragistry.text.analysis import query_terms
from tests.evaluation.small_sets import hashed_workspace
from tests.messages import refused

TEA = """\
# Brewing green tea

Leaves turn bitter where they are brewed in boiling water. Eighty degrees are enough.

## Choosing a fitting kettle

One with a thermometer. A kettle of iron keeps the warmth.

## Example: a Sunday morning kettle

Half past nine.
"""
RAIN = "# Rain\n\nIt falls in the afternoon, when the water of the morning has risen.\n"


def source(name: str, text: str, title: str = "", description: str = "") -> LibrarySource:
    return LibrarySource(name, title, description, text, [text])


NAMES = ("description", "title", "heading")


def made(
    *sources: LibrarySource, limit: int | None = None, kinds: tuple[Kind, ...] = NAMES, per_document: int = 3
) -> dict[str, str]:
    """Query → the source that it must find."""
    candidates = known_items(sources, kinds, per_document=per_document)
    dataset = make_testset("mine", sources, candidates, limit=limit, per_document=per_document).dataset
    return {dataset.queries[query]: next(iter(found)) for query, found in dataset.qrels.items()}


def test_titles_headings_and_descriptions_become_queries():
    tea = source("tea.md", TEA, "Brewing green tea", "How to keep `sencha` from [turning sour](x.md) in water.")
    assert made(tea, source("rain.md", RAIN, "Rain")) == {
        "How to keep sencha from turning sour in water.": "tea.md",
        "Brewing green tea": "tea.md",
        "Choosing a fitting kettle": "tea.md",
    }


def test_what_becomes_a_query_is_taken_out_of_the_text_that_it_must_find():
    tea = source("tea.md", TEA, "Brewing green tea", "Leaves turn bitter where they are brewed")
    testset = make_testset("mine", [tea], known_items([tea], NAMES), per_document=3)
    assert list(testset.dataset.queries.values()) == ["Brewing green tea", "Choosing a fitting kettle"]
    assert testset.left_out["the document still contains the words of the query"] == 1
    [document] = testset.dataset.corpus
    assert not any(word in document.title + document.text for word in ("Brewing", "Choosing"))
    assert "Example: a Sunday morning kettle" in document.text, "what is no query stays"
    assert "Leaves turn bitter" in document.text
    assert [known["kind"] for known in testset.dataset.synthetic.values()] == ["title", "heading"]


def test_queries_that_fit_several_sources_are_left_out():
    one = source("one.md", "Clay and glaze.", "Potters of the valley", "Who shaped the clay of the valley?")
    other = source("two.md", "Shards and clay.", "The potters of a valley", "How shards are dated by their clay")
    assert list(made(one, other)) == ["Who shaped the clay of the valley?", "How shards are dated by their clay"]
    text = "# S{n}\n\nDefault values override.\n\n## Override every default value\n\nMore"
    sources = [source(f"{n}.md", text.format(n=n)) for n in range(9)]
    sources[0] = source("0.md", sources[0].text.replace("More", "More.\n\n## Tune the zither by override\n\nA zither."))
    assert made(*sources) == {"Tune the zither by override": "0.md"}, "any of them may have the other heading"


def test_query_in_other_words_than_its_text_is_kept_and_remarked():
    dogs = source("dogs.md", "# Canine obedience\n\nTeach a puppy to sit with small treats.\n", "Canine obedience")
    testset = make_testset("mine", [dogs], known_items([dogs], NAMES))
    assert testset.dataset.queries == {"t1": "Canine obedience"}
    assert check_testset(testset.dataset) == []
    [remark] = remarks(testset.dataset)
    assert remark.message == "'Canine obedience' shares no word with its relevant documents"


def test_limits_draw_the_same_queries_every_time_and_few_of_each_source():
    colours = ("amber", "bronze", "copper", "denim", "ebony", "fuchsia")
    body = "\n\n".join(f"## Painting {colour} walls properly\n\nUse a brush." for colour in colours)
    busy = source("busy.md", f"# House painting guide\n\nIt.\n\n{body}\n", "House painting guide")
    sources = [busy, source("tea.md", TEA)]
    assert Counter(made(*sources).values()) == {"busy.md": 3, "tea.md": 2}
    assert next(iter(made(*sources))) == "House painting guide", "one of each kind first"
    assert len(made(*sources, limit=2)) == 2
    assert made(*sources, limit=2) == made(*sources, limit=2)
    assert Counter(made(*sources, per_document=1).values()) == {"busy.md": 1, "tea.md": 1}
    with refused(DatasetError):
        make_testset("mine", sources, known_items(sources), per_document=0)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Green sencha brewing\n\n## Sencha kettle brewing advice\n", "Green sencha brewing"),
        (RAIN, "Rain"),
        ("No heading at all.", ""),
    ],
)
def test_reasons_are_listed_if_no_query_can_be_made(text, title):
    sources = [source("a.md", text, title)]
    with refused(DatasetError):
        make_testset("mine", sources, known_items(sources, NAMES), per_document=3)


def test_library_and_a_folder_give_the_same_queries(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    front = "---\ntitle: Brewing green tea\ndescription: How to keep sencha from turning sour in water.\n---\n"
    (folder / "tea.md").write_text(front + TEA)
    (folder / "rain.md").write_text(RAIN)
    with hashed_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes")
        workspace.library.ingest_folder(folder, "notes")
        ours = library_sources(workspace, "notes")
        assert library_sources(workspace, "other") == []
    theirs = folder_sources(folder)
    assert [known.id for known in ours] == ["notes/rain.md", "notes/tea.md"]
    assert {query: f"notes/{name}" for query, name in made(*theirs).items()} == made(*ours)
    assert len(made(*ours)) == 3


@pytest.mark.parametrize(("kinds", "count"), [(KINDS, 99), (NAMES, 90), (("sentence",), 80)])
def test_queries_of_real_documentation_do_not_give_their_pages_away(data, tmp_path, kinds, count):
    sources = folder_sources(data / "docs-hugo")
    testset = make_testset("hugo", sources, known_items(sources, kinds), limit=200)
    write_beir(testset.dataset, tmp_path)
    dataset = read_beir(tmp_path)
    assert dataset.content_hash() == testset.dataset.content_hash()
    assert len(dataset.judged) >= count
    for query, text in dataset.judged.items():
        [relevant] = dataset.qrels[query]
        assert not contains_words(text, dataset.texts[relevant])
    assert check_testset(dataset) == []
    assert {known["kind"] for known in dataset.synthetic.values()} <= {*kinds}


FROGS = "Frogs lay their eggs in the shallow water near the reeds."
POND = f"A pond needs a shore. {FROGS} Wind brings the seeds of the willows in May. Herons stand still."
LONG = " ".join(f"word{number}" for number in range(24))


@pytest.mark.parametrize(
    ("text", "description", "asked"),
    [
        (POND, "What lives at the shore of a pond in spring", {"What lives at the shore of a pond in spring"}),
        (
            POND,
            "",
            {
                "Frogs lay their eggs in the shallow water near the reeds.",
                "Wind brings the seeds of the willows in May.",
            },
        ),
        (POND, "Ponds", {FROGS}),
        (
            "Where do the frogs go in winter? Into the mud, says Ann, and stay there.",
            "",
            {"Where do the frogs go in winter?"},
        ),
        (LONG, "", {" ".join(LONG.split()[8:16])}),
        ("# Ponds and their inhabitants over the year\n\nOnly this short line.", "", None),
        (POND.replace("Wind", "```\nrun the quick command in the shell.\n```\n\nWind"), "", None),
    ],
)
def test_a_document_is_asked_for_by_its_description_else_by_a_sentence_that_is_cut_out(text, description, asked):
    sources = [source("pond.md", text, "", description), source("tea.md", TEA, "", "How to brew tea for many guests")]
    testset = make_testset("mine", sources, known_items(sources)).dataset
    found = [testset.queries[query] for query, grades in testset.qrels.items() if "pond.md" in grades]
    assert len(found) <= 1
    if asked is not None:
        assert set(found) <= asked
        assert found
    for query in found:
        assert not query.startswith(("#", "`", "run the quick"))
        assert query not in testset.texts["pond.md"]


def test_the_first_documentation_comment_of_a_program_is_its_description():
    code = '"""Count the words of a file and print the most frequent ones."""\n\nimport sys\n\nprint(sys.argv)\n'
    java = "/**\n * Sort the rows of a table by one\n * of its columns.\n */\nclass Sorter { int rows = 3; }\n"
    found = made(source("words.py", code), source("Sorter.java", java), kinds=KINDS)
    assert found == {
        "Count the words of a file and print the most frequent ones.": "words.py",
        "Sort the rows of a table by one of its columns.": "Sorter.java",
    }


class Scripted:
    """A generator whose every question and verdict the test decides."""

    def __init__(self, question: str, answered: bool = True, quote: str = "Eighty degrees are enough") -> None:
        self.said = {"Question": {"question": question}, "Verdict": {"answered": answered, "quote": quote}}

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        assert schema is not None
        assert TEA.strip() in prompt, "it is shown the passage"
        return json.dumps(self.said[schema.__name__])


ASKED = "How hot should the kettle be for sencha?"


def test_question_is_kept_where_its_chunk_answers_it():
    sources, left_out = [source("tea.md", TEA), source("rain.md", RAIN)], Counter[str]()
    asked = list(ask_questions(sources, Scripted(ASKED), 5, left_out))
    testset = make_testset("mine", sources, asked, model="scripted", seed=4, left_out=left_out)
    assert testset.dataset.qrels == {"q1": {"tea.md": 1}}
    assert testset.dataset.synthetic == {"q1": {"kind": "question", "seed": 4, "model": "scripted"}}
    assert testset.left_out == {"the passage has fewer than 200 characters": 1}
    assert remarks(testset.dataset) == []


@pytest.mark.parametrize(
    ("generator", "reason"),
    [
        *((Scripted(ASKED, said, quote), "the passage does not answer the question") for said, quote in (
            (False, "Eighty degrees are enough"), (True, "Ninety degrees are needed"), (True, ""),
        )),
        (Scripted("Is it true that leaves turn bitter where they are brewed?"), "the question copies the passage"),
        (Scripted(""), "the generator failed"),
    ],
)  # fmt: skip
def test_question_that_cannot_be_used_is_left_out_with_its_reason(generator, reason):
    left_out = Counter[str]()
    assert list(ask_questions([source("tea.md", TEA)], generator, 5, left_out)) == []
    assert left_out == {reason: 1}


def test_check_finds_what_is_wrong_with_a_test_set():
    corpus = [Text("tea", "", "Steep the leaves in hot water for a minute."), Text("rain", "", "It falls at noon.")]
    queries = {
        "same1": "how long do leaves steep", "same2": "How long do leaves steep?",
        "near": "how long do the leaves steep in hot water", "near2": "how long do the leaves steep in hot cold water",
        "copied": "steep the leaves in hot water", "none": "falling at noon", "ok": "noon",
    }  # fmt: skip
    qrels = {query: {"tea": 1} for query in queries} | {"none": {"rain": 0}, "ok": {"rain": 1}}
    dataset = Dataset("bad", corpus, {**queries, "alone": "painting with oil"}, qrels)
    found = {(finding.kind, finding.queries) for finding in check_testset(dataset)}
    assert found - {(finding.kind, finding.queries) for finding in check_testset(dataset, elsewhere={"alone"})} == {
        ("not judged", ("alone",))
    }
    assert found == {
        ("duplicate", ("same1", "same2")),
        ("near-duplicate", ("near", "near2")),
        ("not judged", ("alone",)),
        ("unanswerable", ("none",)),
        ("given away", ("copied",)),
    }
    assert remarks(dataset) == [], "what finds nothing, or is not judged, is told once"


VOCABULARY = ("tea", "rain", "kettle", "water", "steep", "leaf", "noon", "green")
words = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=8)


@settings(max_examples=30, deadline=None)
@given(st.lists(words.map(" ".join), max_size=12))
def test_near_duplicates_are_those_that_comparing_all_pairs_finds(texts):
    terms = [set(query_terms(text)) for text in texts]
    slow = {
        (first, second): len(terms[first] & terms[second]) / len(terms[first] | terms[second])
        for second in range(len(texts))
        for first in range(second)
    }
    found = {(first, second): shared for first, second, shared in near_duplicates(texts)}
    assert found == {pair: shared for pair, shared in slow.items() if shared >= 0.8}
