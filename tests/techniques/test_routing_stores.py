"""Repositories and archives are known by what they hold; where that cannot be read, by what is said of them."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ragistry import Workspace
from ragistry.errors import StoreError
from ragistry.library.archive_technique import archive_target
from ragistry.techniques.routing.route import Route
from ragistry.techniques.routing.samples import Samples
from ragistry.techniques.routing.target import Reachable, Target, library_targets
from ragistry.techniques.routing.technique import CollectionRoutedTechnique
from ragistry.testing.chroma_server import chroma_server, free_port
from ragistry.trace import collect
from ragistry.types import Document
from tests.library.git_trees import commit
from tests.techniques.topics import library, routed
from tests.tools.archive_servers import HEATING, ROOF, ArchiveServers, full_client

pytest_plugins = ["tests.tools.archive_fixture"]

PAGES = {
    "chess.md": "# Openings\n\nThe Sicilian defence answers the king's pawn with the pawn of the queen's bishop.\n",
    "clock.md": "# Clocks\n\nA player whose clock has run out has lost the game of chess.\n",
}
SICILIAN = "which opening is the Sicilian defence?"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Three collections, and a repository whose description says nothing."""
    clone = tmp_path_factory.mktemp("clones") / "notes"
    clone.mkdir()
    commit(clone, PAGES)
    with library(tmp_path_factory.mktemp("stores")) as workspace:
        workspace.repositories.add(clone, description="various")
        yield workspace


def over(opened: Workspace, *more: Target, base: str = "naive", **config: Any) -> CollectionRoutedTechnique:
    return CollectionRoutedTechnique(
        config, base=opened.technique(base), store=opened.store, embedder=opened.embedder,
        targets=lambda: [*opened.targets(), *more],
    )  # fmt: skip


def traced(technique: CollectionRoutedTechnique, query: str) -> tuple[Route, list[str]]:
    with collect() as trace:
        route = technique.route(query)
    return route, [stage.degraded for stage in trace.stages() if stage.degraded]


@pytest.mark.parametrize("config", [{"router": "evidence"}, {"router": "embedding"}, {"evidence": ["words"]}])
def test_a_repository_is_chosen_by_what_it_holds(opened: Workspace, config: dict[str, Any]) -> None:
    technique = over(opened, **config)
    assert technique.route(SICILIAN).chosen == ("notes",)
    assert technique.retrieve(SICILIAN)[0].metadata["repository"] == "notes"
    assert technique.route("how long must bread dough rise?").chosen == ("kitchen",)


def test_an_update_of_a_repository_is_known_to_routers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragistry.techniques.routing.samples.PATIENCE", 0)
    clone = tmp_path / "notes"
    clone.mkdir()
    commit(clone, PAGES)
    (tmp_path / "workspace").mkdir()
    with library(tmp_path / "workspace") as opened:
        opened.repositories.add(clone, description="various")
        technique = over(opened)
        technique.router.samples.seconds = 0  # type: ignore[attr-defined]
        violin = "how is the bow of a violin rosined?"
        assert technique.route(violin).chosen != ("notes",)
        commit(clone, {"violin.md": "# Violin\n\nRosin the bow of the violin before you play.\n"})
        opened.repositories.update("notes")
        assert technique.route(violin).chosen == ("notes",)
        assert "violin" in technique.retrieve(violin)[0].content


def test_a_chroma_archive_is_chosen_by_what_it_holds(opened: Workspace, servers: ArchiveServers) -> None:
    archives = [
        archive_target(servers.archive(name, texts, description="documents"), servers.settings())
        for name, texts in (("Cellar", HEATING), ("Attic", ROOF))
    ]
    technique = over(opened, *archives)
    route, said = traced(technique, "what is the boiler pressure of the heating?")
    assert (route.chosen, said) == (("Cellar",), [])
    assert technique.retrieve("what is the boiler pressure of the heating?")[0].metadata["archive"] == "Cellar"
    assert technique.route("the gutter leaks when it rains").chosen == ("Attic",)
    assert over(opened, *archives, evidence=["words"]).route("the gutter leaks").chosen == ("Attic",)
    assert over(opened, *archives, router="embedding").route("the gutter leaks when it rains").chosen == ("Attic",)
    for archive in archives:
        archive.technique.close()  # type: ignore[union-attr]


def test_only_the_layer_of_an_archive_is_sampled(servers: ArchiveServers) -> None:
    config = servers.archive("Cellar", HEATING)
    servers.fill(config.collection_name, ROOF, layer="summary")
    technique = archive_target(config, servers.settings()).technique
    assert {hit.content for hit in technique.sample(10)} == set(HEATING)  # type: ignore[union-attr]
    assert len(technique.sample(2)) == 2  # type: ignore[union-attr]
    assert technique.count() == len(HEATING) + len(ROOF)  # type: ignore[union-attr]
    technique.close()  # type: ignore[union-attr]


def test_an_archive_that_is_down_is_known_by_its_description_and_that_is_said(
    opened: Workspace, servers: ArchiveServers
) -> None:
    config = servers.archive("Gone", description="History of chess championships.")
    config = config.model_copy(update={"chromadb_url": f"http://127.0.0.1:{free_port()}"})
    target = archive_target(config, servers.settings())
    technique = CollectionRoutedTechnique(
        {}, base=opened.technique("naive"), store=opened.store, embedder=opened.embedder,
        targets=lambda: [*library_targets(opened.library), target],
    )  # fmt: skip
    route, said = traced(technique, "who won the chess championship of 1972?")
    assert route.chosen == ("Gone",)
    assert len(said) == 1
    assert said[0].startswith("Gone is known by its description only: ")
    route, said = traced(technique, "how long must bread dough rise?")
    assert route.chosen == ("kitchen",)
    assert len(said) == 1
    target.technique.close()  # type: ignore[union-attr]


def test_an_archive_that_comes_up_is_read_then(
    tmp_path: Path, opened: Workspace, servers: ArchiveServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragistry.techniques.routing.samples.PATIENCE", 0)
    with chroma_server(tmp_path) as chroma:
        url = f"http://{chroma.host}:{chroma.port}"
        config = servers.archive("Late").model_copy(update={"chromadb_url": url, "collection_name": "late"})
        target = archive_target(config, servers.settings())
        samples = Samples(opened.store, 8, words=True, seconds=0)
        with collect() as trace:
            assert samples.of([Reachable(target, None)]) == [None]
        assert not trace.stages(), "no stage, nobody to tell"
        with full_client(url) as client:
            servers.fill("late", ROOF, client=client)
        [sample] = samples.of([Reachable(target, None)])
        assert sample is not None
        assert len(sample.metadatas) == len(ROOF)
        target.technique.close()  # type: ignore[union-attr]


class Counted:
    """A place that counts how often it is asked."""

    def __init__(self, texts: list[str], error: StoreError | None = None) -> None:
        self.texts, self.error, self.counts, self.samples = texts, error, 0, 0

    def count(self) -> int:
        self.counts += 1
        if self.error:
            raise self.error
        return len(self.texts)

    def sample(self, size: int) -> list[Document]:
        self.samples += 1
        return [Document(text, {"n": n}, 0.0, str(n)) for n, text in enumerate(self.texts[:size])]


def test_a_place_is_read_once_and_what_fails_is_not_asked_again_at_once(opened: Workspace) -> None:
    whole, broken = Counted(["rosin the bow"] * 50), Counted([], StoreError("no answer"))
    targets = [
        Reachable(Target(name, "", "archive", technique=opened.technique("bm25"), store=place), None)
        for name, place in (("whole", whole), ("broken", broken))
    ]
    samples = Samples(opened.store, 8, opened.embedder, words=True, seconds=60)
    for _ in range(3):
        [one, other] = samples.of(targets)
        assert other is None
        assert one is not None
        assert (len(one.metadatas), one.vectors.shape) == (8, (8, 384))  # type: ignore[union-attr]
    assert (whole.counts, whole.samples, broken.counts) == (1, 1, 1)


def test_words_alone_route_over_a_store_that_cannot_be_searched_by_words(opened: Workspace) -> None:
    technique = routed(opened, evidence=["words"])
    held = {"kitchen": ["bread dough rises"], "garage": ["brake pads"], "garden": ["roses"]}
    base = opened.technique("bm25")
    own = [Target(name, "", "archive", technique=base, store=Counted(texts)) for name, texts in held.items()]
    technique.targets = lambda: own
    assert technique.route("how long must bread dough rise?").chosen == ("kitchen",)


def test_a_target_that_is_a_part_of_a_collection_gives_no_more_than_that_part(opened: Workspace) -> None:
    base, other = opened.technique("bm25"), [target for target in opened.targets() if target.technique is None]
    query = next(hit.content for hit in base.retrieve("tomatoes", top_k=1))
    hit = base.retrieve(query, top_k=1)[0]
    part = Target(str(hit.metadata["collection"]), where={"source_file": {"$ne": hit.metadata["source_file"]}})
    rest = [target for target in other if target.name != part.name]
    technique = CollectionRoutedTechnique(
        {"evidence": ["words"], "margin": 1.0}, base=base, store=opened.store, targets=lambda: [part, *rest]
    )
    found = technique.retrieve(query, top_k=2)
    assert found
    assert hit.id not in [document.id for document in found]


class Slow(Counted):
    """One whose sample takes as long as the test likes, from the second on."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__(texts)
        self.asked, self.answered = threading.Event(), threading.Event()

    def sample(self, size: int) -> list[Document]:
        if self.samples:
            self.asked.set()
            assert self.answered.wait(20)
        return super().sample(size)


def test_nobody_waits_for_what_another_thread_reads_anew(opened: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragistry.techniques.routing.samples.PATIENCE", 0)
    place = Slow(["rosin the bow"])
    target = [Reachable(Target("slow", "", "archive", technique=opened.technique("bm25"), store=place), None)]
    samples = Samples(opened.store, 8, words=True, seconds=0)
    [first] = samples.of(target)
    place.texts = ["rosin the bow", "tune the string"]
    with ThreadPoolExecutor(2) as workers:
        try:
            anew = workers.submit(samples.of, target)
            assert place.asked.wait(20)
            assert workers.submit(samples.of, target).result(20) == [first]
        finally:
            place.answered.set()
        [second] = anew.result(20)
    assert second is not None
    assert len(second.metadatas) == 2


def test_a_sample_that_fails_slowly_is_not_asked_for_again_soon_nor_never(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000.0]
    monkeypatch.setattr("ragistry.techniques.routing.samples.monotonic", lambda: now[0])

    class Failing(Counted):
        def sample(self, size: int) -> list[Document]:
            self.samples += 1
            now[0] += 10
            raise StoreError(f"no answer, not even {size}")

    place = Failing(["rosin the bow"])
    target = [Reachable(Target("failing", "", "archive", technique=opened.technique("bm25"), store=place), None)]
    samples = Samples(opened.store, 8, words=True)
    for later, asked in ((0, 1), (59, 1), (2, 2)):
        now[0] += later
        assert samples.of(target) == [None]
        assert place.samples == asked


def test_a_place_that_another_took_the_place_of_is_let_go(opened: Workspace) -> None:
    samples = Samples(opened.store, 8, words=True)
    technique = opened.technique("bm25")
    places = [Counted(["rosin the bow"]), Counted(["tune the string"])]
    for place in places:
        samples.of([Reachable(Target("notes", "", "repository", technique=technique, store=place), None)])
    gone = weakref.ref(places.pop(0))
    del place
    gc.collect()
    assert gone() is None


def test_a_repository_that_is_open_is_not_read_again_from_its_record(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.targets()
    read: list[str] = []
    monkeypatch.setattr("ragistry.library.contract_collection.read_entry", lambda root, name: read.append(name))
    [notes] = [target for target in opened.targets() if target.name == "notes"]
    assert notes.store is not None
    assert read == []
