"""What a query may be routed to: targets, what samples of them are read, and how their stores are searched together."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry import Workspace
from ragistry.errors import ConfigError, StoreError
from ragistry.library.remote.technique import archive_target
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.techniques.routing.route import Route
from ragistry.techniques.routing.samples import Samples
from ragistry.techniques.routing.target import Reachable, Target, library_targets, reachable, residual
from ragistry.techniques.routing.technique import CollectionRoutedTechnique, within_store
from ragistry.testing.ports import refused_port
from ragistry.trace import collect
from ragistry.types import Document, EmbeddedChunk, StageScore
from ragistry.utils.where import matches, normalise
from tests.messages import check_message, refused
from tests.techniques.doubles import Ready
from tests.techniques.topics import QUESTIONS, STRANGE, TEXTS, library, routed
from tests.tools.archive_servers import HEATING, ROOF

pytest_plugins = ["tests.tools.archive_fixture"]

SICILIAN = "which opening is the Sicilian defence?"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored is looked at again with every query."""
    monkeypatch.setattr("ragistry.techniques.routing.samples.PATIENCE", 0)


def over(opened: Workspace, *more: Target, repository: bool = False, **config: Any) -> CollectionRoutedTechnique:
    """A routed technique over the collections, the repository if asked for, and more targets."""

    def targets() -> list[Target]:
        return [*(opened.targets() if repository else library_targets(opened.library)), *more]

    parts = {"base": opened.technique("naive"), "store": opened.store, "embedder": opened.embedder}
    return CollectionRoutedTechnique(config, **parts, targets=targets)


def traced(technique: CollectionRoutedTechnique, query: str) -> tuple[Route, list[str]]:
    with collect() as trace:
        route = technique.route(query)
    return route, [stage.degraded for stage in trace.stages() if stage.degraded]


# Targets


VALUES = st.sampled_from(["a", "b", "c"])
LEAVES = st.one_of(
    st.builds(lambda key, value: {key: value}, st.sampled_from(["collection", "page", "tag"]), VALUES),
    st.builds(lambda key, value: {key: {"$ne": value}}, st.sampled_from(["collection", "page"]), VALUES),
    st.builds(lambda values: {"collection": {"$in": values}}, st.lists(VALUES, min_size=1)),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda join, parts: {join: parts}, st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(CONDITIONS, VALUES, VALUES, VALUES)
def test_what_is_left_of_a_condition_means_the_same(where, collection, page, tag):
    condition, facts = normalise(where), {"collection": collection}
    rest = residual(condition, facts)
    metadata = {"page": page, "tag": tag}
    expected = matches(condition, metadata | facts)
    assert (rest if isinstance(rest, bool) else matches(rest, metadata)) == expected


@pytest.mark.parametrize(
    ("where", "left"),
    [
        (None, ["a", "b", "c"]),
        ({"collection": "b"}, ["b"]),
        ({"collection": {"$in": ["a", "c", "x"]}}, ["a", "c"]),
        ({"collection": {"$nin": ["a"]}}, ["b", "c"]),
        ({"archive": "b"}, ["a", "b"]),  # what a chunk of another target says is for its search to decide
        ({"$and": [{"page": 3}, {"collection": "a"}]}, ["a"]),
        ({"$or": [{"page": 3}, {"collection": "a"}]}, ["a", "b", "c"]),
        ({"collection": "x"}, []),
    ],
)
def test_condition_limits_the_targets(where, left):
    targets = [Target("a"), Target("b", kind="repository"), Target("c", kind="archive")]
    items = reachable(targets, None if where is None else normalise(where))
    assert [item.target.name for item in items] == left


def test_two_targets_of_one_name_are_refused():
    with refused(ConfigError, "'a'"):
        reachable([Target("a"), Target("a", kind="archive")], None)


def test_target_that_shares_a_store_is_never_more_than_its_collection():
    shared = [Target("a"), Target("b", where={"page": 3})]
    items = reachable(shared, None)
    assert within_store(items[:1], None) == normalise({"collection": "a"})
    pair = reachable([Target("a"), Target("c")], None)
    assert within_store(pair, None) == normalise({"collection": {"$in": ["a", "c"]}})
    both = within_store(items, normalise({"tag": "x"}))
    assert matches(both, {"tag": "x", "collection": "b", "page": 3})
    for outside in ({"collection": "a"}, {"tag": "x", "collection": "b", "page": 4}, {"tag": "x", "collection": "c"}):
        assert not matches(both, outside)


# Repositories and archives


class Archive(Ready):
    """A technique that has one document."""

    def __init__(self, text: str, error: Exception | None = None) -> None:
        super().__init__([Document(text, {"layer": "paragraph"}, 0.5, "1", (StageScore("archive", "cosine", 0.5),))])
        self.error = error

    def retrieve(self, query: str, *, top_k: int | None = None, where: Any = None) -> list[Document]:
        if self.error:
            raise self.error
        return super().retrieve(query, top_k=top_k, where=where)


def test_archive_is_chosen_by_its_description_and_named_on_its_hits(opened):
    archive = Archive("Fischer won the championship.")
    technique = over(opened, Target("champions", "History of chess championships.", "archive", None, archive))
    assert technique.route(STRANGE).chosen == ("champions",)
    [hit] = technique.retrieve(STRANGE)
    assert hit.metadata == {"layer": "paragraph", "collection": "champions", "archive": "champions"}
    assert [asked["where"] for asked in archive.asked] == [None]


def test_several_stores_are_fused_by_rank_and_equal_ids_stay_apart(opened):
    targets = [Target(name, name, "archive", None, Archive(name)) for name in ("one", "two")]
    hits = over(opened, *targets, router="all").retrieve("bread", top_k=20)
    assert [hit.content for hit in hits if hit.id == "1"] == ["one", "two"]
    assert len(hits) == 2 + sum(map(len, TEXTS.values()))
    assert all(hit.scores[-1].kind == "rrf" for hit in hits)


def test_archive_that_is_down_is_named_and_the_others_are_searched(opened):
    down = Target("down", "nowhere", "archive", None, Archive("", error=StoreError("no answer")))
    technique = RegisteredTechnique("routed", over(opened, down, router="all"))
    with collect() as trace:
        assert technique.retrieve("bread")
    [said] = [stage.degraded for stage in trace.stages() if stage.degraded]
    check_message(said, "down")
    with refused(StoreError):
        technique.retrieve("bread", where={"collection": "down"})


def test_condition_reaches_an_archive_without_what_it_cannot_know(opened):
    archive = Archive("Fischer")
    technique = over(opened, Target("chess", "Chess.", "archive", {"layer": "paragraph"}, archive))
    assert technique.retrieve("chess", where={"collection": "chess"})
    assert [asked["where"] for asked in archive.asked] == [{"layer": {"$eq": "paragraph"}}]
    assert technique.retrieve("chess", where={"collection": "kitchen"})[0].metadata["collection"] == "kitchen"
    assert technique.retrieve("chess", where={"collection": "chess", "layer": "document"}) == [], "checked on return"


def test_words_divide_only_what_vectors_give_to_their_store(opened):
    archive = Target("chess", "History of chess championships.", "archive", None, Archive("Fischer"))
    route = over(opened, archive).route("tomato sauce, tomato seeds, chess")
    assert route.note == "by vectors and words"
    alone = over(opened, archive, evidence=["vectors"]).route("tomato sauce, tomato seeds, chess")
    assert alone.note == "by vectors"
    assert route.scores["chess"] == pytest.approx(alone.scores["chess"], rel=0.05), "only others may contend less"
    assert route.scores["chess"] >= alone.scores["chess"]
    assert sum(route.scores.values()) == pytest.approx(1)


@pytest.mark.parametrize("config", [{"router": "evidence"}, {"router": "embedding"}, {"evidence": ["words"]}])
def test_repository_is_chosen_by_what_it_holds(opened, config):
    technique = over(opened, repository=True, **config)
    assert technique.route(SICILIAN).chosen == ("notes",)
    assert technique.retrieve(SICILIAN)[0].metadata["repository"] == "notes"
    assert technique.route(QUESTIONS["kitchen"]).chosen == ("kitchen",)


def test_chroma_archive_is_chosen_by_what_it_holds(opened, servers):
    gone = servers.archive("Gone", description="History of chess championships.")
    gone = gone.model_copy(update={"chromadb_url": f"http://127.0.0.1:{refused_port()}"})
    archives = [
        archive_target(config, servers.settings())
        for config in (
            servers.archive("Cellar", HEATING, description="documents"),
            servers.archive("Attic", ROOF, description="documents"),
            gone,
        )
    ]
    technique = over(opened, *archives)
    route, said = traced(technique, "what is the boiler pressure of the heating?")
    assert route.chosen == ("Cellar",)
    check_message("; ".join(said), "Gone")
    assert technique.retrieve("what is the boiler pressure of the heating?")[0].metadata["archive"] == "Cellar"
    assert technique.route("the gutter leaks when it rains").chosen == ("Attic",)
    assert over(opened, *archives, evidence=["words"]).route("the gutter leaks").chosen == ("Attic",)
    assert over(opened, *archives, router="embedding").route("the gutter leaks when it rains").chosen == ("Attic",)
    route, said = traced(technique, STRANGE)
    assert (route.chosen, len(said)) == (("Gone",), 1), "known by its description only"
    for archive in archives:
        archive.technique.close()  # type: ignore[union-attr]


def test_only_the_layer_of_an_archive_is_sampled_once_there_is_one(opened, servers, impatient):
    config = servers.archive("Cellar").model_copy(update={"collection_name": f"c{uuid4().hex}"})
    target = archive_target(config, servers.settings())
    technique: Any = target.technique
    samples = Samples(opened.store, 8, words=True, seconds=0)
    with collect() as trace:
        assert samples.of([Reachable(target, None)]) == [None], "the collection does not exist yet"
    assert not trace.stages(), "no stage, so nobody is told"
    servers.fill(config.collection_name, HEATING)
    servers.fill(config.collection_name, ROOF, layer="summary")
    [sample] = samples.of([Reachable(target, None)])
    assert sample is not None
    assert len(sample.metadatas) == len(HEATING)
    assert {hit.content for hit in technique.sample(10)} == set(HEATING)
    assert len(technique.sample(2)) == 2
    assert technique.count() == len(HEATING) + len(ROOF)
    technique.close()


# Samples


def test_store_of_its_own_is_sampled_whoever_chose_the_ids(opened, store):
    [vector] = opened.embedder.embed(["The Sicilian defence answers the king's pawn."])
    store.add_documents([EmbeddedChunk("Sicilian defence", {"collection": "mine"}, vector)], ids=["chosen"])
    [found] = Samples(store, 5, opened.embedder, words=True).of([Reachable(Target("mine"), None)])
    assert found is not None
    assert (found.vectors.shape, len(found.words.terms)) == ((1, 384), 2)  # type: ignore[union-attr]
    own = NaiveRAGTechnique({}, store=store, embedder=opened.embedder)
    target = Target("openings", "", "repository", None, own, store)
    for router in ("evidence", "embedding"):
        technique = over(opened, target, router=router)
        assert technique.route(SICILIAN).chosen == ("openings",)
        assert {hit.metadata["repository"] for hit in technique.retrieve(SICILIAN)} == {"openings"}


def test_samples_are_read_again_only_after_a_change(opened, impatient):
    items = [Reachable(target, None) for target in library_targets(opened.library)]
    samples = Samples(opened.store, 3, opened.embedder, words=True, seconds=0)
    first = samples.of(items)
    assert [sample.vectors.shape for sample in first] == [(3, 384)] * 3  # type: ignore[union-attr]
    assert samples.of(items) is first
    opened.library.ingest_text("Slugs eat lettuce at night.", "garden-9.txt", "garden")
    again = samples.of(items)
    assert [one is other for one, other in zip(again, first, strict=True)] == [True, True, False], "only where it is"
    opened.library.delete_source("garden-9.txt", "garden")


def test_samples_of_many_targets_are_smaller_so_that_all_fit(opened, monkeypatch):
    monkeypatch.setattr("ragistry.techniques.routing.samples.KEPT_IN_ALL", 8)
    items = [Reachable(target, None) for target in library_targets(opened.library)]
    samples = Samples(opened.store, 4, opened.embedder)
    for least, within_reach, sizes in ((1, items, [2] * 3), (1, items[:2], [4] * 2), (3, [*items, *items], [3] * 6)):
        monkeypatch.setattr("ragistry.techniques.routing.samples.LEAST", least)
        assert [len(sample.metadatas) for sample in samples.of(within_reach)] == sizes  # type: ignore[union-attr]


class Counted:
    """A place that counts how often it is asked; ``answers`` is called before a sample is read."""

    def __init__(self, texts: list[str], answers: Callable[[], object] = lambda: None) -> None:
        self.texts, self.answers, self.samples = texts, answers, 0

    def count(self) -> int:
        return len(self.texts)

    def sample(self, size: int) -> list[Document]:
        self.samples += 1
        self.answers()
        return [Document(text, {"n": n}, 0.0, str(n)) for n, text in enumerate(self.texts[:size])]


def placed(place: Any, name: str = "notes") -> Reachable:
    """A target with this place, which no test searches."""
    return Reachable(Target(name, "", "archive", technique=Ready(), store=place), None)


def test_target_that_is_a_part_of_a_collection_gives_no_more_than_that_part(opened):
    base = opened.technique("bm25")
    [hit] = base.retrieve("tomatoes", top_k=1)
    part = Target(str(hit.metadata["collection"]), where={"source_file": {"$ne": hit.metadata["source_file"]}})
    rest = [target for target in library_targets(opened.library) if target.name != part.name]
    technique = CollectionRoutedTechnique(
        {"evidence": ["words"], "margin": 1.0}, base=base, store=opened.store, targets=lambda: [part, *rest]
    )
    found = technique.retrieve(hit.content, top_k=2)
    assert found
    assert hit.id not in [document.id for document in found]


def test_no_query_waits_for_what_another_thread_reads_again(opened, impatient):
    asked, answered = threading.Event(), threading.Event()
    place = Counted(["rosin the bow"])
    target = [placed(place)]
    samples = Samples(opened.store, 8, words=True, seconds=0)
    [first] = samples.of(target)
    place.texts, place.answers = ["rosin the bow", "tune the string"], lambda: asked.set() or answered.wait(60)
    with ThreadPoolExecutor(2) as workers:
        try:
            again = workers.submit(samples.of, target)
            assert asked.wait(60)
            assert workers.submit(samples.of, target).result(60) == [first]
        finally:
            answered.set()
        [second] = again.result(60)
    assert second is not None
    assert len(second.metadatas) == 2


def test_place_is_read_once_and_one_that_failed_slowly_again_after_a_minute(opened, monkeypatch):
    now = [1_000.0]
    monkeypatch.setattr("ragistry.techniques.routing.samples.monotonic", lambda: now[0])

    def fail() -> None:
        now[0] += 10
        raise StoreError("no answer")

    whole, broken = Counted(["rosin the bow"] * 50), Counted(["rosin the bow"], fail)
    targets = [placed(whole, "whole"), placed(broken, "broken")]
    samples = Samples(opened.store, 8, opened.embedder, words=True)
    for later, asked in ((0, 1), (59, 1), (2, 2)):
        now[0] += later
        [one, other] = samples.of(targets)
        assert other is None
        assert one is not None
        assert (len(one.metadatas), one.vectors.shape) == (8, (8, 384))  # type: ignore[union-attr]
        assert (whole.samples, broken.samples) == (1, asked)


def test_place_that_was_replaced_is_released(opened):
    samples = Samples(opened.store, 8, words=True)
    places = [Counted(["rosin the bow"]), Counted(["tune the string"])]
    for place in places:
        samples.of([placed(place)])
    gone = weakref.ref(places.pop(0))
    del place
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("router", ["evidence", "embedding"])
def test_chunks_that_wait_for_vectors_are_no_evidence_by_vectors(tmp_path: Path, router: str) -> None:
    """All chunks of ``garage`` wait, and all but one of ``garden``: zeros count as no neighbour."""
    with library(tmp_path) as opened:
        waiting = [*opened.library.sources("garage"), *opened.library.sources("garden")[1:]]
        for info in waiting:
            condition = {"$and": [{"collection": info.collection}, {"source_file": info.source_file}]}
            chunks = [EmbeddedChunk(one.content, one.metadata, None) for one in opened.store.scan(condition)]
            opened.store.replace_source(info.collection, info.source_file, chunks)
        technique = routed(opened, router=router)
        for name, question in QUESTIONS.items():
            assert technique.route(question).chosen == (name,)
        samples = technique.router.samples.of([Reachable(Target(name), None) for name in ("garage", "garden")])
        assert [None if one.vectors is None else len(one.vectors) for one in samples] == [None, 1]
        assert [len(one.metadatas) for one in samples] == [4, 4]
        within = samples[1].within({"source_file": {"$eq": "garden-3.txt"}})
        assert (within.vectors, len(within.metadatas)) == (None, 1)
