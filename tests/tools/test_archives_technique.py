"""An archive as a target of a router: a technique like any other."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from time import monotonic

import pytest

from ragistry.errors import ChromaDBConnectionError, EmptyQueryError, InvalidLimitError, ModelConnectionError
from ragistry.protocols import Technique
from ragistry.techniques.routing.technique import CollectionRoutedTechnique
from ragistry.testing.chroma_server import free_port
from ragistry.testing.techniques import TechniqueConformance
from ragistry.tools.archives import archive_target, archive_technique
from ragistry.trace import collect, stage
from tests.tools.archive_servers import HEATING, ROOF

pytest_plugins = ["tests.tools.archive_fixture"]


@pytest.fixture(scope="module", params=["cosine", "l2", "ip"])
def archive(request, servers):
    texts = [*HEATING, *ROOF, *(f"the heating, part {number}" for number in range(25))]
    return servers.archive("House", texts, description="Reports on the house", space=request.param)


@pytest.fixture
def technique(archive, servers):
    technique = archive_technique(archive, servers.settings())
    yield technique
    technique.close()


class TestConformance(TechniqueConformance):
    query = "the expansion vessel of the heating"
    where = {"page": {"$lte": 3}}  # noqa: RUF012

    @pytest.fixture
    def technique(self, archive, servers):
        technique = archive_technique(archive, servers.settings())
        yield technique
        technique.close()


def test_a_router_sees_its_name_and_what_is_in_it(technique):
    assert isinstance(technique, Technique)
    assert (technique.name, technique.description) == ("House", "Reports on the house")


def test_documents_name_their_archive_and_keep_their_ids(technique):
    best = technique.retrieve(HEATING[0])[0]
    assert (best.content, best.id, best.metadata["archive"]) == (HEATING[0], "chunk-0", "House")


def test_the_number_is_clamped_as_in_the_tool(technique):
    assert len(technique.retrieve("heating")) == 5
    assert len(technique.retrieve("heating", top_k=1000)) == 20
    with pytest.raises(InvalidLimitError):
        technique.retrieve("heating", top_k=0)


@pytest.mark.parametrize(
    ("where", "pages"),
    [
        ({"page": 2}, {2}),
        ({"page": {"$in": [1, 3]}}, {1, 3}),
        ({"source": {"$gte": "chunks"}, "page": {"$lt": 3}}, {1, 2}),  # the order of text, which ChromaDB lacks
        ({"source": {"$gt": "z"}}, set()),
    ],
)
def test_a_condition_is_met_within_the_layer(technique, where, pages):
    assert {document.metadata["page"] for document in technique.retrieve("heating", top_k=20, where=where)} == pages


def test_failures_are_raised_for_the_router_to_decide(archive, servers):
    nowhere = f"http://127.0.0.1:{free_port()}"
    for change, error in (
        ({"chromadb_url": nowhere}, ChromaDBConnectionError),
        ({"tei_url": nowhere}, ModelConnectionError),
    ):
        technique = archive_technique(archive.model_copy(update=change), servers.settings())
        with pytest.raises(error):
            technique.retrieve("heating")
        technique.close()


@contextmanager
def trickling():
    """The address of a server that sends a byte now and then, and so never lets a time-out of a read run out."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:

        def trickle(connection):
            with suppress(OSError), connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not over.wait(0.05):
                    connection.sendall(b" ")

        def accept():
            with suppress(OSError):
                while True:
                    threading.Thread(target=trickle, args=(listener.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        over.set()
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("router", ["all", "evidence"])
def test_an_archive_that_trickles_costs_a_routed_search_no_more_than_its_time(servers, router):
    house = servers.archive("House", HEATING, description="heating")
    with trickling() as slow, ExitStack() as stack:
        roofs = house.model_copy(update={"name": "Roofs", "chromadb_url": slow, "description": "roof"})
        settings = servers.settings(query_timeout=1, embed_timeout=3)
        targets = [archive_target(archive, settings) for archive in (house, roofs)]
        for target in targets:
            stack.callback(target.technique.close)
        store, embedder = targets[0].technique, targets[0].technique._embedder
        routed = CollectionRoutedTechnique(
            {"router": router, "margin": 1.0}, base=store, store=store, embedder=embedder, targets=lambda: targets
        )
        start = monotonic()
        with collect() as trace, stage("routed"):
            found = routed.retrieve(HEATING[0])
        assert monotonic() - start < 6
        assert found[0].content == HEATING[0]
        assert any("Roofs was not searched" in each.degraded for each in trace.stages())
        with pytest.raises(ChromaDBConnectionError, match=r"no answer within 1 s|does not answer"):
            targets[1].technique.count()


def test_an_embedding_service_that_trickles_is_given_up(servers):
    with trickling() as slow:
        archive = servers.archive("House", HEATING).model_copy(update={"tei_url": slow})
        technique = archive_technique(archive, servers.settings(embed_timeout=0.5))
        with pytest.raises(ModelConnectionError, match=r"archive 'House'.*its embedding service gave no answer within"):
            technique.retrieve("heating")
        technique.close()


def test_the_end_of_a_process_waits_for_no_archive():
    script = (
        "import threading; from ragistry.library.archive_calls import concurrently\n"
        "print(len(concurrently({1: threading.Event().wait}, 0.1).errors))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "1\n"


def test_an_empty_query_is_refused(technique):
    with pytest.raises(EmptyQueryError):
        technique.retrieve(" ")


def test_a_router_searches_archives_and_keeps_to_those_that_a_caller_may_see(servers):
    targets = [
        archive_target(servers.archive(name, texts, description=description), servers.settings())
        for name, texts, description in (("Cellar", HEATING, "heating and boiler"), ("Attic", ROOF, "roof and gutter"))
    ]
    routed = CollectionRoutedTechnique(
        {"router": "all"}, base=targets[0].technique, embedder=None, targets=lambda: targets
    )
    everywhere = routed.retrieve("the roof", top_k=6)
    assert {document.metadata["archive"] for document in everywhere} == {"Cellar", "Attic"}
    within = routed.retrieve("the roof", top_k=6, where={"archive": "Cellar"})
    assert {document.content for document in within} == set(HEATING)
    for target in targets:
        target.technique.close()
