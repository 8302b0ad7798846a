"""Compose techniques in a program: from entries, from objects, and without any file."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from pocketflow import Node

from ragistry import Workspace, open_workspace
from ragistry.errors import ConfigError, InvalidConfigError, TechniqueError
from ragistry.evaluation import Dataset, Text, compare
from ragistry.pipelines import END, PipelineBuilder
from ragistry.techniques.bm25 import BM25Technique
from ragistry.types import Document
from tests.messages import check_message, refused
from tests.techniques.doubles import Ready, degraded, ids, scored, traced
from tests.techniques.plugins import Shout

TEXTS = {"tea": "Green tea is steeped.", "rain": "A cold front brings rain.", "backup": "Restore a backup."}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with open_workspace(tmp_path_factory.mktemp("built")) as opened:
        for name, text in TEXTS.items():
            opened.library.create_collection(name)
            opened.library.ingest_text(text, f"{name}.txt", name)
        yield opened


def found(technique, query="restore backup", **options):
    return [document.metadata.get("source_file") for document in technique.retrieve(query, **options)]


@pytest.mark.parametrize(
    ("entry", "stages"),
    [
        ({"use": "bm25"}, ["built", "search"]),
        ({"use": "hybrid", "bases": ["bm25", {"use": "naive", "top_k": 20}]},
         ["built", "bm25", "search", "built.bases[1]", "embed", "search", "fuse"]),
        ({"use": Shout, "base": {"use": Shout, "base": "bm25"}}, ["built", "built.base", "bm25", "search"]),
        ({"use": "pipeline", "steps": {"only": {"technique": {"use": "bm25"}}}},
         ["built", "only", "built.only", "search"]),
        ({"use": "hybrid", "bases": [Ready(scored(a=1.0)), "bm25"]},
         ["built", "built.bases[0]", "bm25", "search", "fuse"]),
    ],
)  # fmt: skip
def test_entry_in_python_is_built_as_one_of_the_file(workspace, entry, stages):
    technique = workspace.build(entry)
    documents, trace = traced(technique, "backup")
    assert [stage.name for stage in trace] == stages
    assert documents
    assert "built" not in workspace.registry.names()


def test_models_of_an_entry_may_be_functions(workspace):
    entry = {
        "use": "rerank",
        "weight": 1,
        "base": "bm25",
        "reranker": lambda query, texts: [-len(text) for text in texts],
    }
    documents, trace = traced(workspace.build(entry), "tea rain backup")
    assert [document.metadata["collection"] for document in documents] == ["backup", "tea", "rain"]
    assert sum(stage.model_calls for stage in trace) == 1
    hyde = workspace.build({"use": "hyde", "generator": lambda prompt: "Green tea is steeped."})
    assert hyde.retrieve("drinks")[0].metadata["collection"] == "tea"
    for wrong in ({"use": "bm25", "generator": len}, {**entry, "reranker": lambda query: []}, {**entry, "reranker": 5}):
        with refused(ConfigError, "built"):
            workspace.build(wrong)


def test_name_is_that_of_the_trace_and_can_be_used_again(workspace):
    one, two = (workspace.build({"use": "bm25", "top_k": number}, name="mine") for number in (1, 2))
    assert (one.name, one.sets_top_k, two.technique.config.top_k) == ("mine", True, 2)
    step = PipelineBuilder().step("search", one, on=END).build()
    assert found(step) == ["backup.txt"]


class Web(Node):
    """Adds a page of the web."""

    actions = frozenset({"default"})

    def post(self, shared, prepared, done):
        shared["documents"] = [Document("A page.", {}, score=1.0, id="web")]


def test_step_may_be_a_node_by_its_class(workspace):
    entry = {
        "use": "pipeline",
        "steps": {"search": {"technique": {"use": "naive", "min_score": 0.9}, "on": {"found": END, "empty": "web"}}},
    }
    entry["steps"]["web"] = {"node": Web}
    assert ids(workspace.search("the population of Iceland", entry, "tea").documents) == ["web"]

    class Local(Web):
        pass

    entry["steps"]["web"] = {"node": Local}
    with refused(ConfigError, "built.web", "Local"):
        workspace.build(entry)


ROUTED = {"use": "collection_routed", "base": "naive", "router": "all", "techniques": {"tea": "bm25", "rain": "bm25"}}


@pytest.mark.parametrize(
    ("kind", "entry", "named"),
    [
        (InvalidConfigError, {"use": "bm25", "tpo_k": 3}, "built.tpo_k"),
        (InvalidConfigError, {"use": "hybird"}, "'hybrid'"),
        (InvalidConfigError, {"use": "hybrid", "bases": ["bm25", "naiv"]}, "'naive'"),
        (
            InvalidConfigError,
            {"use": "hybrid", "bases": ["bm25", {"use": "naive", "top_k": 0}]},
            "built.bases[1].top_k",
        ),
        (InvalidConfigError, {"use": "hybrid"}, "bases"),
        (InvalidConfigError, {"use": "newest", "base": "bm25", "generator": "writer"}, "generator"),
        (InvalidConfigError, {**ROUTED, "techniques": {"tea": "bm52"}}, "'bm25'"),
        (InvalidConfigError, {**ROUTED, "techniques": {"tea": 5}}, "techniques.tea"),
        (InvalidConfigError, {**ROUTED, "techniques": ["bm25"]}, "techniques"),
        (ConfigError, {"use": "hybrid", "bases": ["bm25", 5]}, "built.bases[1] is 5"),
        (ConfigError, {"use": Shout, "base": Shout}, "{'use': CLASS}"),
        (ConfigError, {"use": Shout, "base": len}, "retrieve"),
        (ConfigError, {"use": Shout, "base": SimpleNamespace(invoke=len)}, "as_technique"),
        (ConfigError, {"use": Shout, "base": [Ready()]}, "built.base"),
        (ConfigError, {"use": Shout, "base": None}, "built.base is None"),
        (ConfigError, "hybrid", "{'use': 'hybrid'}"),
        (ConfigError, ["bm25", "naive"], "['bm25', 'naive']"),
    ],
)
def test_mistakes_in_an_entry_are_named_with_their_place(workspace, kind, entry, named):
    with refused(kind, named):
        workspace.build(entry)


ENTRY = {"use": "hybrid", "bases": ["bm25", {"use": "naive", "top_k": 20}], "top_k": 2}


def test_search_takes_a_name_an_entry_and_an_object(workspace):
    built = workspace.build(ENTRY)
    for technique in (built, ENTRY, {"use": Shout, "base": built}):
        for result in (
            workspace.search("restore backup", technique, "backup"),
            workspace.library.search("restore backup", "backup", technique=technique),
        ):
            assert [document.metadata["collection"] for document in result.documents] == ["backup"]
    assert len(workspace.search("restore the backup of tea and rain", built).documents) == 2, "its own top_k"
    result = workspace.search("tea", Ready(scored(a=1.0)))
    assert (ids(result.documents), result.trace[0].name) == (["a"], "Ready")
    with refused(TechniqueError, "'a'"):
        workspace.search("tea", Ready(scored(a=1.0)), "tea")
    for wrong in (Shout, len, 5, {"use": "bm52"}):
        with refused(ConfigError):
            workspace.search("tea", wrong)


def test_comparison_builds_entries_over_its_own_index(workspace, tmp_path):
    corpus = [Text(f"d-{name}", "", text) for name, text in TEXTS.items()]
    texts = {"q1": "green tea", "q2": "cold rain"}
    dataset = Dataset("two", corpus, texts, {"q1": {"d-tea": 1}, "q2": {"d-rain": 1}})
    rerank = {"use": "rerank", "base": "bm25", "reranker": lambda query, texts: [-len(text) for text in texts]}
    compared = {
        "built": workspace.build(ENTRY),
        "entry": ENTRY,
        "above": {"use": Shout, "base": workspace.build({"use": Shout, "base": "bm25"}, name="shout")},
        "own model": rerank,
        "words": "bm25",
        "same": workspace.technique("bm25"),
        "bm25": "bm25",
        "naive": None,
    }
    options = {"workspace": workspace, "cache": tmp_path, "progress": False}
    result = compare(compared, dataset, ["RR@10"], grid={"entry.top_k": [1, 3]}, **options)
    assert result.failures == {}
    assert list(result.techniques) == ["built", "entry[top_k=1]", "entry[top_k=3]", *list(compared)[2:]]
    assert {ranking[query][0][0] for ranking in result.runs.values() for query in ("q1",)} == {"d-tea"}
    assert result.runs["words"] == result.runs["same"] == result.runs["bm25"]


def test_name_of_the_file_may_be_used_again_and_means_the_file_inside_the_entry(workspace):
    built = workspace.build({"use": Shout, "base": {"use": "hybrid", "bases": ["bm25", "naive"]}}, name="bm25")
    documents, trace = traced(built, "backup")
    assert [stage.name for stage in trace if stage.depth == 0] == ["bm25"]
    assert documents[0].metadata["collection"] == "backup"
    assert type(workspace.technique("bm25").technique) is BM25Technique
    again = workspace.build({"use": Shout, "base": "bm25"}, name="bm25")
    assert [stage.name for stage in traced(again, "backup")[1]] == ["bm25", "bm25", "search"]


def test_collection_is_searched_by_its_own_technique(workspace):
    technique = workspace.build(ROUTED)
    documents, stages = traced(technique, "green tea and cold rain", top_k=10)
    assert sorted(document.metadata["collection"] for document in documents) == ["backup", "rain", "tea"]
    assert [stage.name for stage in stages].count("bm25") == 1, "collections of one technique are searched together"
    kinds = {document.metadata["collection"]: document.scores[0].kind for document in documents}
    assert kinds == {"tea": "bm25", "rain": "bm25", "backup": "cosine"}
    unknown = workspace.build({**ROUTED, "techniques": {"teas": "bm25"}})
    check_message(degraded(traced(unknown, "green tea")[1]), "'teas'", "'tea'")
    documents, stages = traced(technique, "green tea", where={"collection": "tea"})
    assert {stage.name for stage in stages} == {"built", "route", "bm25", "search"}
    assert [document.metadata["collection"] for document in documents] == ["tea"]


@pytest.mark.parametrize(
    "entry",
    [
        {"use": "naive"},
        {"use": "hybrid", "bases": ["naive", "bm25"]},
        {"use": "rerank", "base": {"use": "hybrid", "bases": ["naive", "bm25"], "fusion": "rrf"}},
        {"use": "parent_document", "base": "naive"},
        {"use": "newest", "base": "hybrid"},
    ],
)
def test_min_score_leaves_out_results_with_a_lower_score(entry, workspace):
    query = "Restore a backup."
    score = {one.metadata["source_file"]: one.score for one in workspace.build(entry).retrieve(query, top_k=3)}
    assert len(score) == 3
    for least in sorted(score.values()):
        reached = {name for name, value in score.items() if value >= least}
        bounded = {**entry, "min_score": least}
        assert set(found(workspace.build(bounded), query, top_k=3)) == reached
        fused = workspace.build({"use": "hybrid", "bases": [bounded]})
        assert set(found(fused, query, top_k=3)) == reached, "as a base, too"
