"""Archives whose servers hang, break or come back: the others are served, in time, and the failure is named."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic

import chromadb.api.client  # noqa: F401, its import is not to count in a time-out
import pytest

from ragistry.errors import QueryError, RagistryError
from ragistry.library.archive_calls import LateError, concurrently
from ragistry.testing.chroma_server import chroma_server
from ragistry.testing.openai_server import OpenAIServer
from ragistry.tools.archive_search import ArchiveSearch
from ragistry.tools.archives import ChromaRagConfig, create_archive_search_tool
from tests.tools.archive_servers import HEATING, ROOF, full_client

pytest_plugins = ["tests.tools.archive_fixture"]

QUERY = "expansion vessel of the heating"


@contextmanager
def silent_port():
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield listener.getsockname()[1]


def test_archives_that_hang_cost_one_time_out_together_and_the_others_are_served(servers):
    up = servers.archive("Maintenance", HEATING)
    with silent_port() as port:
        hanging = [
            up.model_copy(update={"name": f"H{n}", "chromadb_url": f"http://127.0.0.1:{port}"}) for n in range(6)
        ]
        config = ChromaRagConfig(archives=[*hanging[:3], up, *hanging[3:]])
        tool = create_archive_search_tool(config, servers.settings(query_timeout=3))
        for _ in range(2):
            start = monotonic()
            text = tool.invoke({"query": QUERY})
            assert monotonic() - start < 12  # one after the other would be 18
            assert f"   {HEATING[0]}" in text
            assert [f"Not searched: H{n}" in text for n in range(6)] == [True] * 6


def test_a_server_that_stands_still_and_then_restarts(servers, tmp_path):
    with chroma_server(tmp_path) as chroma:
        url = f"http://{chroma.host}:{chroma.port}"
        with full_client(url) as client:
            archive = replace(servers, chroma=url, client=client).archive("Plans", ROOF)
        config = ChromaRagConfig(archives=[archive, servers.archive("Maintenance", HEATING)])
        search = ArchiveSearch(config, servers.settings(query_timeout=3))
        assert search.search(QUERY).failed == ()
        chroma.process.send_signal(signal.SIGSTOP)
        os.waitpid(chroma.process.pid, os.WUNTRACED)
        start = monotonic()
        answer = search.search(QUERY)
        assert monotonic() - start < 12
        assert failed_and_found(answer) == (["Plans"], {"Maintenance"})
        chroma.process.send_signal(signal.SIGCONT)
    assert failed_and_found(search.search(QUERY)) == (["Plans"], {"Maintenance"})
    with chroma_server(tmp_path, chroma.port):
        assert failed_and_found(search.search(QUERY)) == ([], {"Plans", "Maintenance"})
    search.close()


def failed_and_found(answer):
    return [name for name, _ in answer.failed], {document.metadata["archive"] for document in answer.documents}


def test_an_embedding_service_that_hangs_is_given_up_and_another_serves(servers):
    up = servers.archive("Maintenance", HEATING)
    with silent_port() as port:
        hanging = up.model_copy(update={"name": "Plans", "tei_url": f"http://127.0.0.1:{port}"})
        config = ChromaRagConfig(archives=[hanging, up])
        tool = create_archive_search_tool(config, servers.settings(embed_timeout=3))
        start = monotonic()
        text = tool.invoke({"query": QUERY})
        assert monotonic() - start < 12
    assert f"   {HEATING[0]}" in text
    assert "Not searched: Plans" in text


def test_a_slow_model_holds_up_no_archive_of_another(servers):
    up = servers.archive("Maintenance", HEATING)
    with silent_port() as port:
        nowhere = f"http://127.0.0.1:{port}"
        config = ChromaRagConfig(archives=[
            up.model_copy(update={"name": "Plans", "tei_url": nowhere}),
            up.model_copy(update={"name": "Letters", "chromadb_url": nowhere}), up,
        ])  # fmt: skip
        search = ArchiveSearch(config, servers.settings(embed_timeout=4, query_timeout=4))
        start = monotonic()
        answer = search.search(QUERY)
        assert monotonic() - start < 7  # one after the other would be 8
    assert ([name for name, _ in answer.failed], answer.searched) == (["Plans", "Letters"], ("Maintenance",))
    search.close()


@pytest.mark.parametrize("place", [{"tenant": "nobody"}, {"database": "nothing"}])
@pytest.mark.parametrize(
    ("language", "reason"),
    [("en", "its tenant or database does not exist"), ("de", "seinen Mandanten oder seine Datenbank gibt es nicht")],
)
def test_a_tenant_or_database_that_does_not_exist_is_told_from_a_collection(servers, place, language, reason):
    lost = servers.archive("Plans", ROOF).model_copy(update=place)
    config = ChromaRagConfig(archives=[lost, servers.archive("Maintenance", HEATING)], language=language)
    text = create_archive_search_tool(config, servers.settings()).invoke({"query": QUERY})
    assert f"Plans ({reason})" in text
    assert f"   {HEATING[0]}" in text


@pytest.mark.parametrize("status", [500, 501, 503])
def test_an_archive_is_searched_where_its_server_embeds_and_tells_nothing_else(servers, status):
    with OpenAIServer(servers.tei.model, accent="llama.cpp") as plain:
        for path in ("/info", "/v1/models"):
            plain.fail_next(status, times=9, path=path)
        archive = servers.archive("Maintenance", HEATING, tei_url=plain.url)
        search = ArchiveSearch(ChromaRagConfig(archives=[archive]), servers.settings())
        answer = search.search(QUERY)
        search.close()
    assert (answer.searched, answer.failed) == (("Maintenance",), ())
    assert answer.documents[0].content == HEATING[0]


def test_threads_share_a_tool(servers):
    tool = create_archive_search_tool(
        ChromaRagConfig(archives=[servers.archive("A", HEATING), servers.archive("B", ROOF)]), servers.settings()
    )
    texts = concurrently({n: lambda: tool.invoke({"query": QUERY, "top_k": 6}) for n in range(8)}, 30).values
    assert len(texts) == 8
    assert len(set(texts.values())) == 1


def test_a_job_that_is_late_does_not_hold_up_the_others():
    release = threading.Event()
    start = monotonic()
    outcomes = concurrently({"late": release.wait, "soon": lambda: 7}, 0.3)
    release.set()
    assert monotonic() - start < 2
    assert outcomes.values == {"soon": 7}
    assert isinstance(outcomes.errors["late"], LateError)
    assert isinstance(outcomes.errors["late"], TimeoutError)


def test_an_error_of_ours_is_an_outcome_and_any_other_is_raised():
    def fail(error):
        raise error

    outcomes = concurrently({"ours": lambda: fail(QueryError("no")), "fine": lambda: 1}, 5)
    assert outcomes.values == {"fine": 1}
    assert isinstance(outcomes.errors["ours"], RagistryError)
    with pytest.raises(ZeroDivisionError):
        concurrently({"bug": lambda: 1 / 0}, 5)
    assert concurrently({}, 5).values == {}
