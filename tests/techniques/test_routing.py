"""Routed retrieval over real collections: who is chosen, what is searched, and what never is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragistry import RetrievalResult, Workspace
from ragistry.errors import ConfigError, QueryError, StoreError, TechniqueError
from ragistry.models.registry import CachedQueries
from ragistry.stores.local import LocalStore
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.techniques.registry import RegisteredTechnique
from ragistry.techniques.routing.samples import Samples
from ragistry.techniques.routing.target import Reachable, Target, library_targets
from ragistry.techniques.routing.technique import CollectionRoutedTechnique
from ragistry.techniques.routing.words import Languages
from ragistry.trace import collect
from ragistry.types import Document, EmbeddedChunk, Stage, StageScore
from ragistry.utils.where import matches, normalise
from tests.techniques.topics import QUESTIONS, STRANGE, TEXTS, library, routed

SCORING = ("evidence", "embedding")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with library(tmp_path_factory.mktemp("routing")) as workspace:
        yield workspace


def route_stage(result: RetrievalResult) -> Stage:
    [stage] = [stage for stage in result.trace if stage.name == "route"]
    return stage


@pytest.mark.parametrize("router", SCORING)
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_goes_where_its_answer_is(opened: Workspace, router: str, name: str) -> None:
    technique = routed(opened, router=router)
    assert technique.route(QUESTIONS[name]).chosen == (name,)
    assert {hit.metadata["collection"] for hit in technique.retrieve(QUESTIONS[name], top_k=10)} == {name}


def test_words_alone_are_evidence_too(opened: Workspace) -> None:
    technique = routed(opened, base="bm25", evidence=["words"])
    for name, question in QUESTIONS.items():
        assert technique.route(question).chosen == (name,)
    nothing = technique.route("zzz")
    assert (nothing.rule, nothing.fit) == ("no evidence", 0)
    assert routed(opened, evidence=["words"], threshold=0.1).route("zzz").rule == "nothing fits"


def test_the_trace_says_where_a_query_went_and_why(opened: Workspace) -> None:
    stage = route_stage(opened.search(QUESTIONS["garage"], technique="routed"))
    assert stage.detail["router"] == "evidence"
    assert stage.detail["rule"] == "best"
    assert stage.detail["chosen"] == ["garage"]
    assert set(stage.detail["scores"]) == set(TEXTS)
    assert stage.detail["margin"] > 0.05
    assert 0 < stage.detail["fit"] <= 1


def test_nothing_is_searched_where_nothing_fits(opened: Workspace) -> None:
    technique = routed(opened, threshold=0.2)
    assert technique.route(STRANGE).rule == "nothing fits"
    assert technique.retrieve(STRANGE) == []
    assert technique.retrieve(QUESTIONS["garden"])


def test_a_small_margin_searches_several(opened: Workspace) -> None:
    technique = routed(opened, margin=0.9)
    route = technique.route("tomato")
    assert route.rule == "small margin"
    assert {"kitchen", "garden"} <= set(route.chosen)
    hits = technique.retrieve("tomato", top_k=20)
    assert {hit.metadata["collection"] for hit in hits} == set(route.chosen)
    assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.id))


def test_all_searches_every_collection(opened: Workspace) -> None:
    hits = routed(opened, router="all").retrieve("water", top_k=20)
    assert len(hits) == sum(map(len, TEXTS.values()))


def test_explicit_leaves_it_to_the_caller(opened: Workspace) -> None:
    technique = routed(opened, router="explicit")
    with pytest.raises(QueryError, match="no collection is named, .* one of 'garage', 'garden', 'kitchen'"):
        technique.retrieve("water")
    assert {hit.metadata["collection"] for hit in technique.retrieve("water", where={"collection": "garden"})} == {
        "garden"
    }
    two = technique.route("water", {"collection": {"$in": ["garden", "garage"]}})
    assert (two.rule, set(two.chosen)) == ("named", {"garden", "garage"})


def test_a_collection_that_is_named_is_searched_without_asking(opened: Workspace) -> None:
    result = opened.search(QUESTIONS["garage"], technique="routed", collection="kitchen")
    assert route_stage(result).detail["rule"] == "named"
    assert route_stage(result).model_calls == 0
    assert {hit.metadata["collection"] for hit in result.documents} == {"kitchen"}


def test_the_query_is_embedded_once(opened: Workspace) -> None:
    class Counting:
        def __init__(self) -> None:
            self.queries: list[str] = []
            self.fingerprint = opened.embedder.fingerprint

        def count_tokens(self, texts: Any) -> list[int]:
            return [len(text.split()) for text in texts]

        def embed(self, texts: Any, *, role: str = "document") -> Any:
            self.queries += texts if role == "query" else []
            return opened.embedder.embed(texts, role=role)  # type: ignore[arg-type]

    counting = Counting()
    shared = CachedQueries(counting)  # type: ignore[arg-type]
    base = NaiveRAGTechnique({}, store=opened.store, embedder=shared)
    technique = CollectionRoutedTechnique({}, base=base, store=opened.store, embedder=shared, library=opened.library)
    assert technique.retrieve("which oil does the engine need?")
    assert counting.queries == ["which oil does the engine need?"]


CONDITIONS = st.one_of(
    st.sampled_from(sorted(TEXTS)).map(lambda name: {"collection": name}),
    st.sampled_from(sorted(TEXTS)).map(lambda name: {"collection": {"$ne": name}}),
    st.lists(st.sampled_from([*sorted(TEXTS), "attic"]), min_size=1).map(lambda some: {"collection": {"$in": some}}),
    st.sampled_from(sorted(TEXTS)).map(lambda name: {"$or": [{"collection": name}, {"source_file": "garden-1.txt"}]}),
    st.sampled_from(sorted(TEXTS)).map(lambda name: {"source_file": f"{name}-2.txt"}),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([*QUESTIONS.values(), "garage", "collection: garage"]), CONDITIONS, st.sampled_from([0.0, 1.0]))
def test_no_question_gets_out_of_the_condition(
    opened: Workspace, question: str, where: Mapping[str, Any], margin: float
) -> None:
    condition = normalise(where)
    for router in (*SCORING, "all"):
        technique = routed(opened, router=router, margin=margin)
        route, hits = technique.route(question, where), technique.retrieve(question, top_k=20, where=where)
        assert all(matches(condition, hit.metadata) for hit in hits)
        assert {hit.metadata["collection"] for hit in hits} <= set(route.chosen) <= set(route.scores)
        if "source_file" not in str(where):
            assert all(matches(condition, {"collection": name}) for name in route.scores)


def test_what_a_caller_may_not_see_decides_nothing(opened: Workspace) -> None:
    hidden = {"source_file": {"$ne": "garage-1.txt"}}  # the only text on brakes
    for router in SCORING:
        technique = routed(opened, router=router)
        open_scores = technique.route(QUESTIONS["garage"]).scores
        assert technique.route(QUESTIONS["garage"], hidden).scores["garage"] < open_scores["garage"]


def test_an_empty_library_finds_nothing_and_says_so(tmp_path: Path) -> None:
    with library(tmp_path) as opened:
        technique = routed(opened)
        technique.targets = lambda: []
        assert technique.retrieve("bread") == []
        assert technique.route("bread").rule == "no targets"


def test_one_collection_is_searched_without_asking(tmp_path: Path) -> None:
    with library(tmp_path) as opened:
        technique = routed(opened, threshold=0.9)
        technique.targets = lambda: library_targets(opened.library)[:1]
        assert technique.route("bread").rule == "only target"
        assert technique.retrieve("bread")


@pytest.mark.parametrize("router", SCORING)
def test_collections_come_fill_and_vanish_while_it_runs(
    tmp_path: Path, router: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragistry.techniques.routing.samples.PATIENCE", 0)
    with library(tmp_path) as opened:
        technique = routed(opened, router=router)
        technique.router.samples.seconds = 0  # type: ignore[attr-defined]
        question = "who painted the ceiling of the chapel with frescoes?"
        opened.library.create_collection("art", "Painting, frescoes and sculpture.")
        assert technique.route(question).chosen != ("art",), "it is empty, whatever its description says"
        assert technique.route(question).scores["art"] == 0
        opened.library.ingest_text("Michelangelo painted frescoes on the ceiling of the chapel.", "art-0.txt", "art")
        assert technique.route(question).chosen == ("art",)
        technique.targets = lambda: [t for t in library_targets(opened.library) if t.name != "art"]
        assert "art" not in technique.route(question).scores
        assert all(hit.metadata["collection"] != "art" for hit in technique.retrieve(question, top_k=20))


def test_samples_are_read_again_only_after_a_change(opened: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragistry.techniques.routing.samples.PATIENCE", 0)
    items = [Reachable(target, None) for target in library_targets(opened.library)]
    samples = Samples(opened.store, 3, opened.embedder, words=True, seconds=0)
    first = samples.of(items)
    assert [sample.vectors.shape for sample in first] == [(3, 384)] * 3  # type: ignore[union-attr]
    assert samples.of(items) is first
    opened.library.ingest_text("Slugs eat lettuce at night.", "garden-9.txt", "garden")
    again = samples.of(items)
    assert [one is other for one, other in zip(again, first, strict=True)] == [True, True, False], "only where it is"
    opened.library.delete_source("garden-9.txt", "garden")


def test_samples_of_many_targets_are_smaller_so_that_all_fit(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragistry.techniques.routing.samples.KEPT_IN_ALL", 8)
    monkeypatch.setattr("ragistry.techniques.routing.samples.LEAST", 1)
    items = [Reachable(target, None) for target in library_targets(opened.library)]
    samples = Samples(opened.store, 4, opened.embedder)
    assert [len(sample.metadatas) for sample in samples.of(items)] == [2, 2, 2]  # type: ignore[union-attr]
    assert [len(sample.metadatas) for sample in samples.of(items[:1])] == [4]  # type: ignore[union-attr]
    monkeypatch.setattr("ragistry.techniques.routing.samples.LEAST", 3)
    assert [len(sample.metadatas) for sample in samples.of([*items[:1], *items])] == [3, 3, 3, 3]  # type: ignore[union-attr]


def test_chunks_whose_ids_somebody_chose_are_sampled_too(opened: Workspace, tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    [vector] = opened.embedder.embed(["bread"])
    store.add_documents([EmbeddedChunk("bread", {"collection": "mine"}, vector)], ids=["chosen"])
    [found] = Samples(store, 5, opened.embedder, words=True).of([Reachable(Target("mine"), None)])
    assert found is not None
    assert (found.vectors.shape, len(found.words.terms)) == ((1, 384), 1)  # type: ignore[union-attr]
    store.close()


def test_a_vector_that_is_no_number_is_told(opened: Workspace) -> None:
    class Broken:
        fingerprint = opened.embedder.fingerprint

        def count_tokens(self, texts: Any) -> list[int]:
            return [len(text.split()) for text in texts]

        def embed(self, texts: Any, *, role: str = "document") -> Any:
            return opened.embedder.embed(texts) * float("nan")

    technique = CollectionRoutedTechnique(
        {}, base=opened.technique("bm25"), store=opened.store, embedder=Broken(), library=opened.library
    )  # fmt: skip
    with pytest.raises(TechniqueError, match="is not a finite number; check its embedder"):
        technique.retrieve("bread")


def test_what_a_router_needs_and_does_not_have_is_named(opened: Workspace) -> None:
    base = opened.technique("naive")
    with pytest.raises(ConfigError, match="nothing to choose from"):
        CollectionRoutedTechnique({}, base=base)
    with pytest.raises(ConfigError, match="router 'llm' needs `generator`"):
        CollectionRoutedTechnique({"router": "llm"}, base=base, library=opened.library)
    with pytest.raises(ConfigError, match="router 'embedding' needs `embedder`"):
        CollectionRoutedTechnique({"router": "embedding"}, base=base, store=opened.store, library=opened.library)
    with pytest.raises(ConfigError, match="router"):
        CollectionRoutedTechnique({"router": "oracle"}, base=base, library=opened.library)


# Targets that are searched by a technique of their own: repositories and archives.


class Archive:
    """A technique that has one document and keeps the condition that it was asked with."""

    def __init__(self, text: str, id: str = "1", error: Exception | None = None) -> None:
        self.document = Document(text, {"layer": "paragraph"}, 0.5, id, (StageScore("archive", "cosine", 0.5),))
        self.error, self.asked = error, []

    def retrieve(self, query: str, *, top_k: int | None = None, where: Any = None) -> list[Document]:
        if self.error:
            raise self.error
        self.asked.append(where)
        return [self.document]


def with_archives(opened: Workspace, *archives: Target, **config: Any) -> CollectionRoutedTechnique:
    return CollectionRoutedTechnique(
        config, base=opened.technique("naive"), store=opened.store, embedder=opened.embedder,
        targets=lambda: [*library_targets(opened.library), *archives],
    )  # fmt: skip


def test_an_archive_is_chosen_by_its_description_and_named_on_its_hits(opened: Workspace) -> None:
    archive = Archive("Fischer won the championship.")
    technique = with_archives(opened, Target("chess", "History of chess championships.", "archive", None, archive))
    assert technique.route(STRANGE).chosen == ("chess",)
    [hit] = technique.retrieve(STRANGE)
    assert hit.metadata == {"layer": "paragraph", "collection": "chess", "archive": "chess"}
    assert archive.asked == [None]


def test_several_stores_are_fused_by_rank_and_equal_ids_stay_apart(opened: Workspace) -> None:
    targets = [Target(name, name, "archive", None, Archive(name)) for name in ("one", "two")]
    hits = with_archives(opened, *targets, router="all").retrieve("bread", top_k=20)
    assert [hit.content for hit in hits if hit.id == "1"] == ["one", "two"]
    assert len(hits) == 2 + sum(map(len, TEXTS.values()))
    assert all(hit.scores[-1].kind == "rrf" for hit in hits)


def test_an_archive_that_is_down_is_named_and_the_others_are_served(opened: Workspace) -> None:
    down = Target("down", "nowhere", "archive", None, Archive("", error=StoreError("no answer")))
    technique = RegisteredTechnique("routed", with_archives(opened, down, router="all"))
    with collect() as trace:
        assert technique.retrieve("bread")
    assert [stage.degraded for stage in trace.stages() if stage.degraded] == ["down was not searched: no answer"]
    with pytest.raises(StoreError, match="no answer"):
        technique.retrieve("bread", where={"collection": "down"})


def test_a_condition_reaches_an_archive_without_what_it_cannot_know(opened: Workspace) -> None:
    archive = Archive("Fischer")
    technique = with_archives(opened, Target("chess", "Chess.", "archive", {"layer": "paragraph"}, archive))
    assert technique.retrieve("chess", where={"collection": "chess"})
    assert archive.asked == [{"layer": {"$eq": "paragraph"}}]
    assert technique.retrieve("chess", where={"collection": "kitchen"})[0].metadata["collection"] == "kitchen"
    assert technique.retrieve("chess", where={"collection": "chess", "layer": "document"}) == [], "checked on return"


def test_a_repository_with_a_store_of_its_own_is_known_by_what_it_holds(opened: Workspace, tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    texts = ["Magnus Carlsen became world champion of chess.", "The Sicilian defence answers the king's pawn."]
    metadata = [{"collection": "x", "source_file": "c.md", "chunk_index": n, "source_hash": "1"} for n in range(2)]
    store.add_documents(
        [EmbeddedChunk(*row) for row in zip(texts, metadata, opened.embedder.embed(texts), strict=True)]
    )
    own = NaiveRAGTechnique({}, store=store, embedder=opened.embedder)
    target = Target("chess-notes", "", "repository", None, own, store)
    for router in SCORING:
        technique = with_archives(opened, target, router=router)
        assert technique.route("which opening is the Sicilian defence?").chosen == ("chess-notes",)
        hits = technique.retrieve("which opening is the Sicilian defence?")
        assert {hit.metadata["repository"] for hit in hits} == {"chess-notes"}
    store.close()


def test_a_search_by_words_in_a_chosen_collection_finds_what_its_base_finds_there(opened: Workspace) -> None:
    technique, base = routed(opened, base="bm25", evidence=["words"]), opened.technique("bm25")
    for name, question in QUESTIONS.items():
        for top_k in (1, 4, 50):
            hits = technique.retrieve(question, top_k=top_k)
            assert hits == base.retrieve(question, top_k=top_k, where={"collection": name})


def test_a_condition_leaves_the_languages_of_whole_samples_as_they_are(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    technique, made = routed(opened), []
    languages = Languages.of
    monkeypatch.setattr(Languages, "of", lambda parts, words: made.append(len(parts)) or languages(parts, words))
    for where in (None, {"source_file": {"$ne": "garden-0.txt"}}, None):
        technique.route(QUESTIONS["garden"], where)
    assert made == [3, 3], "one for all queries without a condition, one for the query with it"


def test_words_divide_only_what_vectors_give_to_their_store(opened: Workspace) -> None:
    archive = Target("chess", "History of chess championships.", "archive", None, Archive("Fischer"))
    technique = with_archives(opened, archive)
    route = technique.route("tomato sauce, tomato seeds, chess")
    assert route.note == "by vectors and words"
    alone = with_archives(opened, archive, evidence=["vectors"]).route("tomato sauce, tomato seeds, chess")
    assert route.scores["chess"] == pytest.approx(alone.scores["chess"], rel=0.05), "but for who contends no more"
    assert route.scores["chess"] >= alone.scores["chess"]
    assert sum(route.scores.values()) == pytest.approx(1)
