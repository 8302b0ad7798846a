"""Routed retrieval over real collections: how targets are scored, who is chosen, and what is never searched."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ragistry.errors import ConfigError, QueryError, TechniqueError
from ragistry.techniques.routing.route import decide
from ragistry.techniques.routing.target import Target
from ragistry.techniques.routing.technique import CollectionRoutedTechnique
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import RetrievalResult, Stage
from ragistry.utils.where import matches, normalise
from tests.messages import refused
from tests.techniques.topics import QUESTIONS, STRANGE, TEXTS, routed

SCORING = ("evidence", "embedding")


def route_stage(result: RetrievalResult) -> Stage:
    [stage] = [stage for stage in result.trace if stage.name == "route"]
    return stage


def collections_of(hits: Any) -> set[str]:
    return {hit.metadata["collection"] for hit in hits}


@pytest.mark.parametrize("router", SCORING)
def test_question_goes_where_its_answer_is(opened, router):
    technique = routed(opened, router=router)
    for name, question in QUESTIONS.items():
        assert technique.route(question).chosen == (name,)
        assert collections_of(technique.retrieve(question, top_k=10)) == {name}


def test_words_alone_are_evidence_too(opened):
    technique, base = routed(opened, base="bm25", evidence=["words"]), opened.technique("bm25")
    for name, question in QUESTIONS.items():
        assert technique.route(question).chosen == (name,)
        for top_k in (1, 50):
            hits = technique.retrieve(question, top_k=top_k)
            assert hits == base.retrieve(question, top_k=top_k, where={"collection": name})
    nothing = technique.route("zzz")
    assert (nothing.rule, nothing.fit, nothing.note) == ("no evidence", 0, "by words")
    assert routed(opened, evidence=["words"], threshold=0.1).route("zzz").rule == "nothing fits"


def test_trace_says_where_a_query_went_and_why(opened):
    result = opened.search(QUESTIONS["garage"], technique="routed")
    assert sum(stage.model_calls for stage in result.trace) <= 1, "the query is embedded once"
    detail = route_stage(result).detail
    assert (detail["router"], detail["rule"], detail["chosen"]) == ("evidence", "best", ["garage"])
    assert set(detail["scores"]) == {*TEXTS, "notes"}
    assert detail["margin"] > 0.05
    assert 0 < detail["fit"] <= 1
    named = opened.search(QUESTIONS["garage"], technique="routed", collection="kitchen")
    assert route_stage(named).detail["rule"] == "only target"
    assert route_stage(named).model_calls == 0, "a collection that is named is searched without asking"
    assert collections_of(named.documents) == {"kitchen"}


def test_nothing_is_searched_where_nothing_fits(opened):
    technique = routed(opened, threshold=0.2)
    assert technique.route(STRANGE).rule == "nothing fits"
    assert technique.retrieve(STRANGE) == []
    assert technique.retrieve(QUESTIONS["garden"])


def test_small_margin_searches_several(opened):
    technique = routed(opened, margin=0.9)
    route = technique.route("tomato")
    assert route.rule == "small margin"
    assert {"kitchen", "garden"} <= set(route.chosen)
    hits = technique.retrieve("tomato", top_k=20)
    assert collections_of(hits) == set(route.chosen)


def test_routers_that_ignore_the_query(opened):
    assert len(routed(opened, router="all").retrieve("water", top_k=20)) == sum(map(len, TEXTS.values()))
    technique = routed(opened, router="explicit")
    with refused(QueryError, "garage"):
        technique.retrieve("water")
    assert collections_of(technique.retrieve("water", where={"collection": "garden"})) == {"garden"}
    two = technique.route("water", {"collection": {"$in": ["garden", "garage"]}})
    assert (two.rule, set(two.chosen)) == ("named", {"garden", "garage"})


def test_no_target_and_a_single_one_need_no_router(opened):
    technique = routed(opened, threshold=0.9)
    for targets, rule, found in (([], "no targets", 0), ([Target("kitchen")], "only target", 4)):
        technique.targets = lambda targets=targets: targets
        assert technique.route("bread").rule == rule
        assert len(technique.retrieve("bread")) == found


CONDITIONS = st.one_of(
    st.sampled_from(sorted(TEXTS)).map(lambda name: {"collection": name}),
    st.sampled_from(sorted(TEXTS)).map(lambda name: {"collection": {"$ne": name}}),
    st.lists(st.sampled_from([*sorted(TEXTS), "attic"]), min_size=1).map(lambda some: {"collection": {"$in": some}}),
    st.sampled_from(sorted(TEXTS)).map(lambda name: {"$or": [{"collection": name}, {"source_file": "garden-1.txt"}]}),
    st.sampled_from(sorted(TEXTS)).map(lambda name: {"source_file": f"{name}-2.txt"}),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([*QUESTIONS.values(), "garage", "collection: garage"]), CONDITIONS, st.sampled_from([0.0, 1.0]))
def test_no_question_gets_out_of_the_condition(opened, question, where, margin):
    condition = normalise(where)
    for router in (*SCORING, "all"):
        technique = routed(opened, router=router, margin=margin)
        route, hits = technique.route(question, where), technique.retrieve(question, top_k=20, where=where)
        assert all(matches(condition, hit.metadata) for hit in hits)
        assert collections_of(hits) <= set(route.chosen) <= set(route.scores)
        if "source_file" not in str(where):
            assert all(matches(condition, {"collection": name}) for name in route.scores)


def test_what_a_caller_may_not_see_decides_nothing(opened):
    hidden = {"source_file": {"$ne": "garage-1.txt"}}  # the only text on brakes
    for router in SCORING:
        technique = routed(opened, router=router)
        open_scores = technique.route(QUESTIONS["garage"]).scores
        assert technique.route(QUESTIONS["garage"], hidden).scores["garage"] < open_scores["garage"]


def test_collections_come_fill_and_vanish_while_it_runs(opened, monkeypatch):
    monkeypatch.setattr("ragistry.techniques.routing.samples.PATIENCE", 0)
    library, question = opened.library, "who painted the ceiling of the chapel with frescoes?"
    techniques = [routed(opened, router=router) for router in SCORING]
    library.create_collection("art", "Painting, frescoes and sculpture.")
    for technique in techniques:
        technique.router.samples.seconds = 0  # type: ignore[attr-defined]
        assert technique.route(question).chosen != ("art",), "it is empty, whatever its description says"
        assert technique.route(question).scores["art"] == 0
    library.ingest_text("Michelangelo painted frescoes on the ceiling of the chapel.", "art-0.txt", "art")
    assert [technique.route(question).chosen for technique in techniques] == [("art",)] * 2
    library.delete_collection("art")
    for technique in techniques:
        assert "art" not in technique.route(question).scores
        assert "art" not in collections_of(technique.retrieve(question, top_k=20))


def test_vector_that_is_not_a_number_is_an_error(opened):
    class Broken(HashingEmbedder):
        def embed(self, texts: Any, *, role: Any = "document") -> Any:
            return super().embed(texts, role=role) * float("nan")

    technique = CollectionRoutedTechnique(
        {}, base=opened.technique("bm25"), store=opened.store, embedder=Broken(384), library=opened.library
    )
    with refused(TechniqueError, "'evidence'"):
        technique.retrieve("bread")


@pytest.mark.parametrize(
    ("config", "given"),
    [
        ({}, ()),
        ({"router": "llm"}, ("library",)),
        ({"router": "embedding"}, ("store", "library")),
        ({"router": "oracle"}, ("library",)),
    ],
)
def test_what_a_router_lacks_is_named(opened, config, given):
    with refused(ConfigError):
        CollectionRoutedTechnique(
            config, base=opened.technique("naive"), **{one: getattr(opened, one) for one in given}
        )


# From scores to a decision


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_score_that_is_not_a_number_is_an_error(bad):
    with refused(TechniqueError, "'b'"):
        decide("embedding", {"a": 0.5, "b": bad}, 0.5)
    with refused(TechniqueError, "'fit'"):
        decide("embedding", {"a": 0.5, "b": 0.2}, bad)


SHARES = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1), min_size=2)


@settings(max_examples=100, deadline=None)
@example({"a": 0.1, "b": 0.7, "c": 0.2}, 0.3, 0.2, 0.3, 3)
@example({"a": 0.25, "b": 0.3, "c": 0.22, "d": 0.21, "e": 0.02}, 1.0, 0.1, 0.0, 3)
@example({"b": 0.0, "a": 0.0}, 0.0, 0.1, 0.0, 1)
@given(SHARES, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.integers(1, 4))
def test_decision_is_its_definition(scores, fit, margin, threshold, most):
    ordered = sorted(scores, key=lambda name: (-scores[name], name))
    near = [name for name in ordered if scores[ordered[0]] - scores[name] < margin] or ordered[:1]
    if fit < threshold:
        expected = ("nothing fits", [])
    elif not any(scores.values()):
        expected = ("no evidence", ordered)
    else:
        expected = ("best" if len(near) == 1 else "small margin", near[:most])
    route = decide("evidence", scores, fit, margin=margin, threshold=threshold, most=most)
    assert (route.rule, list(route.chosen), list(route.scores)) == (*expected, ordered)
    assert (route.margin, route.fit) == (scores[ordered[0]] - scores[ordered[1]], fit)
