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
from ragistry.evaluation.data.checks import check_queries, contains_words, near_duplicates
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


def source(name: str, text: str, description: str = "") -> LibrarySource:
    return LibrarySource(name, description, text, [text])


def made(
    *sources: LibrarySource, limit: int | None = None, kinds: tuple[Kind, ...] = KINDS, per_document: int = 3
) -> dict[str, str]:
    """Query → the source that it must find."""
    candidates = known_items(sources, kinds, per_document=per_document)
    dataset = make_testset("mine", sources, candidates, limit=limit, per_document=per_document).dataset
    return {dataset.queries[query]: next(iter(found)) for query, found in dataset.qrels.items()}


def checked(dataset: Dataset) -> list[str]:
    """What a comparison remarks on the queries."""
    return check_queries(dataset, dataset.queries)


def test_what_becomes_a_query_is_taken_out_of_the_text_that_it_must_find():
    pond = source("pond.md", POND, "Wind brings the seeds of the willows in May")
    testset = make_testset("mine", [pond], known_items([pond], per_document=3), per_document=3)
    asked = set(testset.dataset.queries.values())
    assert asked == {FROGS, "Wind brings the seeds of the willows in May."}
    assert testset.left_out["the document still contains the words of the query"] == 1
    [document] = testset.dataset.corpus
    assert not any(query in document.text for query in asked)
    assert "Herons stand still." in document.text, "what is no query stays"
    assert {known["kind"] for known in testset.dataset.synthetic.values()} == {"sentence"}


def test_queries_that_fit_several_sources_are_left_out():
    one = source("one.md", "Clay and glaze.", "Who shaped the clay of the valley?")
    other = source("two.md", "Shards and clay.", "How shards are dated by their clay")
    assert list(made(one, other)) == ["Who shaped the clay of the valley?", "How shards are dated by their clay"]
    same = [source(f"{n}.md", f"Text {n}.", "Override every default value of settings") for n in range(9)]
    assert made(*same, one) == {"Who shaped the clay of the valley?": "one.md"}


def test_limits_draw_the_same_queries_every_time_and_few_of_each_source():
    colours = ("amber", "bronze", "copper", "denim", "ebony", "fuchsia")
    body = "\n\n".join(f"Walls of {colour} need a brush with {colour} bristles." for colour in colours)
    busy = source("busy.md", f"Start.\n\n{body}\n\nEnd.", "How painters of houses choose their tools")
    sources = [busy, source("pond.md", POND)]
    assert Counter(made(*sources).values()) == {"busy.md": 3, "pond.md": 2}
    assert next(iter(made(*sources))) == "How painters of houses choose their tools", "one of each kind first"
    assert len(made(*sources, limit=2)) == 2
    assert made(*sources, limit=2) == made(*sources, limit=2)
    assert Counter(made(*sources, per_document=1).values()) == {"busy.md": 1, "pond.md": 1}
    with refused(DatasetError):
        make_testset("mine", sources, known_items(sources), per_document=0)


@pytest.mark.parametrize(
    ("text", "description"),
    [("Green sencha brewing needs advice.", "Green sencha brewing needs advice"), ("# Rain", "Rain"), ("Short.", "")],
)
def test_reasons_are_listed_if_no_query_can_be_made(text, description):
    sources = [source("a.md", text, description)]
    with refused(DatasetError):
        make_testset("mine", sources, known_items(sources), per_document=3)


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
    assert len(made(*ours)) == 2


@pytest.mark.parametrize(("kinds", "count"), [(KINDS, 99), (("sentence",), 80)])
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
    assert not any(line.startswith(("given away", "duplicate", "near")) for line in checked(dataset))
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
    sources = [source("pond.md", text, description), source("tea.md", TEA, "How to brew tea for many guests")]
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
    assert checked(testset.dataset) == []


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
    assert checked(dataset) == [
        f"duplicate: same1 same2: {queries['same1']!r} and {queries['same2']!r} ask the same",
        f"near-duplicate: near near2: {queries['near']!r} and {queries['near2']!r} share 88% of their words",
        f"given away: copied: the document that {queries['copied']!r} must find contains it word for word",
    ]
    assert any("'alone'" in line for line in dataset.problems)
    assert any("'none'" in line for line in dataset.problems)
    many = Dataset("many", corpus, {f"q{n}": "noon rain" for n in range(4)}, {f"q{n}": {"rain": 1} for n in range(4)})
    assert check_queries(many, dict.fromkeys(many.queries, "(hidden)"))[2:] == [
        "duplicate: q1 q2: '(hidden)' and '(hidden)' ask the same",
        "duplicate: … and 3 more",
    ]


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
