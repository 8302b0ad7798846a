"""Requests to the servers of archives: embedding a query, and servers that fail, hang, restart or lack something."""

from __future__ import annotations

import logging
import threading
from contextlib import closing
from dataclasses import replace
from uuid import uuid4

import chromadb
import chromadb.api.client
import numpy as np
import pytest
from chromadb.config import Settings

from ragistry.errors import (
    ChromaDBConnectionError,
    EmbeddingGenerationError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
    QueryError,
    RagistryError,
)
from ragistry.library.remote.clients import LateError, concurrently
from ragistry.testing.hashed import hashed_embedding
from ragistry.testing.openai_server import OpenAIServer
from ragistry.testing.ports import refused_port
from ragistry.tools.archive_search import ArchiveSearch
from ragistry.tools.archives import ChromaRagConfig, archive_technique, embed_query
from tests.chroma_server import chroma_server
from tests.messages import check_message, refused
from tests.tools.archive_servers import HEATING, MODEL, QUERY, ROOF, full_client

pytest_plugins = ["tests.tools.archive_fixture"]


@pytest.fixture
def tei():
    with OpenAIServer(MODEL) as server:
        yield server


def failures(answer):
    return {name: type(error).__name__ for name, error in answer.failed}


# A query as a vector


def test_embed_query_success(tei):
    vector = embed_query("the boiler", MODEL, tei.url, 5.0)
    assert tei.asked("/v1/embeddings") == [{"model": MODEL, "input": ["the boiler"]}], "one request, without a probe"
    assert all(isinstance(value, float) for value in vector)
    np.testing.assert_allclose(vector, hashed_embedding("the boiler", tei.dimension), atol=1e-6)


def test_embed_query_tei_unreachable(tei, monkeypatch):
    with refused(ModelConnectionError):
        embed_query("the boiler", MODEL, f"http://127.0.0.1:{refused_port()}", 5.0)
    monkeypatch.setenv("RAG_EMBED_TIMEOUT_SECONDS", "0.3")
    tei.fail_next("hang", times=9)
    with refused(ModelConnectionError):
        embed_query("the boiler", MODEL, tei.url)


def test_embed_query_env_fallback(tei, monkeypatch):
    monkeypatch.setenv("DOCPROC_TEI_EMBEDDINGS_URL", tei.url)
    assert len(embed_query("the boiler", MODEL)) == tei.dimension
    with OpenAIServer("intfloat/e5-small-v2", dimension=8) as other:
        assert len(embed_query("the boiler", "intfloat/e5-small-v2", other.url)) == 8
        assert other.asked("/v1/embeddings")[0]["input"] == ["the boiler"], "without the prefix of the model"
    with refused(ModelNotFoundError, MODEL):
        embed_query("the boiler", "intfloat/e5-small-v2", tei.url)


@pytest.mark.parametrize("status", [500, 501])
def test_server_that_does_not_tell_its_model_is_asked_all_the_same(tei, status):
    for path in ("/info", "/v1/models"):
        tei.fail_next(status, path=path)
    assert len(embed_query("the boiler", MODEL, tei.url)) == tei.dimension
    assert len(tei.asked("/v1/embeddings")) == 1


@pytest.mark.parametrize(
    ("failure", "error"),
    [(503, ModelError), ("garbage", ModelError), ("drop", ModelError), ("nan", EmbeddingGenerationError)],
)
def test_failure_of_the_server_is_an_error_of_ours(servers, tei, failure, error):
    tei.fail_next(failure, 2, path="/v1/embeddings")
    with pytest.raises(error):
        embed_query("the boiler", MODEL, tei.url)
    archive = servers.archive("Maintenance", HEATING, tei_url=tei.url)
    with closing(ArchiveSearch(ChromaRagConfig(archives=[archive]), servers.settings())) as search:
        assert search.search(QUERY).documents == []
        assert search.search(QUERY).documents[0].content == HEATING[0], "later it serves again"


# Calls in parallel


def test_late_call_does_not_delay_the_others():
    release = threading.Event()
    outcomes = concurrently({"late": release.wait, "soon": lambda: 7}, 0.3)
    assert (outcomes.values, isinstance(outcomes.errors["late"], LateError)) == ({"soon": 7}, True)
    assert isinstance(outcomes.errors["late"], TimeoutError)
    assert [thread.daemon for thread in threading.enumerate() if thread.name == "archive"] == [True]
    release.set()


def test_error_of_ours_is_an_outcome_and_any_other_is_raised():
    def fail(error):
        raise error

    outcomes = concurrently({"ours": lambda: fail(QueryError("no")), "fine": lambda: 1}, 5)
    assert outcomes.values == {"fine": 1}
    assert isinstance(outcomes.errors["ours"], RagistryError)
    with pytest.raises(ZeroDivisionError):
        concurrently({"bug": lambda: 1 / 0}, 5)
    assert concurrently({}, 5).values == {}


class Meeting(OpenAIServer):
    """Answers a request only after requests of all others of the barrier have arrived."""

    barrier = None

    def answer(self, request, flaw):
        if request.path != "/info":
            self.barrier.wait()
        return super().answer(request, flaw)


def test_archives_and_models_are_asked_in_parallel(servers):
    together = threading.Barrier(3, timeout=30)
    with Meeting(MODEL) as chroma, Meeting(MODEL) as one, Meeting("other", dimension=servers.tei.dimension) as two:
        chroma.barrier, one.barrier = together, threading.Barrier(2, timeout=30)
        two.barrier = one.barrier
        up = servers.archive("First", HEATING, tei_url=one.url)
        other = up.model_copy(update={"name": "Second", "embedding_model": "other", "tei_url": two.url})
        assert servers.search(up, other, embed_timeout=60).searched == ("First", "Second")
        broken = [
            up.model_copy(update={"name": name, "tei_url": None, "chromadb_url": chroma.url, "database": name})
            for name in ("A", "B", "C")
        ]
        answer = servers.search(*broken, up.model_copy(update={"tei_url": None}), query_timeout=60)
    assert not together.broken
    assert (answer.searched, [name for name, _ in answer.failed]) == (("First",), ["A", "B", "C"])


def test_query_is_embedded_once_for_all_archives_of_a_model(servers, tei):
    archives = [servers.archive(name, HEATING, tei_url=tei.url) for name in ("First", "Second")]
    with closing(ArchiveSearch(ChromaRagConfig(archives=archives), servers.settings())) as search:
        assert (search.clients._kept, tei.connections) == ({}, 0), "connected to on first use"
        assert search.search(QUERY).searched == ("First", "Second")
        assert tei.asked("/v1/embeddings") == [{"model": MODEL, "input": [QUERY]}]
        [kept] = search.clients._kept.values()
        connection = kept.connection
        search.search("another")
        assert (kept.connection is connection, tei.connections) == (True, 1)


def test_threads_share_a_tool(servers):
    tool = servers.tool(servers.archive("A", HEATING), servers.archive("B", ROOF))
    texts = concurrently({n: lambda: tool.invoke({"query": QUERY, "top_k": 6}) for n in range(4)}, 30).values
    assert (len(texts), len(set(texts.values()))) == (4, 1)


# Servers that fail


@pytest.mark.slow
@pytest.mark.parametrize("failure", ["hang", "drip"])
def test_server_that_does_not_answer_in_time_is_given_up_and_the_others_are_searched(servers, tei, failure):
    up = servers.archive("Maintenance", HEATING)
    plans = up.model_copy(update={"name": "Plans", "chromadb_url": tei.url})
    letters = up.model_copy(update={"name": "Letters", "tei_url": tei.url})
    tei.fail_next(failure, 99)
    answer = servers.search(plans, letters, up, query_timeout=3, embed_timeout=3)
    assert (answer.searched, [name for name, _ in answer.failed]) == (("Maintenance",), ["Plans", "Letters"])
    for archive, error in ((plans, ChromaDBConnectionError), (letters, ModelConnectionError)):
        short = {"query_timeout" if archive is plans else "embed_timeout": 0.3}
        with closing(archive_technique(archive, servers.settings(**short))) as technique:
            with pytest.raises(error):
                technique.retrieve("heating")
            if archive is plans:
                with pytest.raises(error):
                    technique.count()


def test_server_that_restarts_is_searched_again(servers, tmp_path):
    with chroma_server(tmp_path) as chroma:
        url = f"http://{chroma.host}:{chroma.port}"
        with full_client(url) as client:
            archive = replace(servers, chroma=url, client=client).archive("Plans", ROOF)
        config = ChromaRagConfig(archives=[archive, servers.archive("Maintenance", HEATING)])
        search = ArchiveSearch(config, servers.settings())
        assert search.search(QUERY).searched == ("Plans", "Maintenance")
    assert search.search(QUERY).searched == ("Maintenance",)
    with chroma_server(tmp_path, chroma.port):
        assert search.search(QUERY).searched == ("Plans", "Maintenance")
        search.close()


def test_search_archives_chromadb_unreachable(servers, caplog):
    nowhere = f"http://127.0.0.1:{refused_port()}"
    up = servers.archive("Maintenance", HEATING)
    down = up.model_copy(update={"name": "Plans", "chromadb_url": nowhere})
    deaf = up.model_copy(update={"name": "Letters", "tei_url": nowhere})
    with caplog.at_level(logging.WARNING):
        found, _, reasons = servers.tool(down, up, deaf).invoke({"query": QUERY}).partition("\n\nNot searched: ")
    assert f"   {HEATING[0]}" in found
    check_message(" ".join(reasons.splitlines()), "Plans", "Letters")
    assert "http://" not in reasons
    assert nowhere in caplog.text
    check_message(servers.tool(down, language="de").invoke({"query": QUERY}), "Plans")


def test_missing_parts_of_an_archive_are_named(servers):
    up = servers.archive("Maintenance", HEATING)
    with OpenAIServer("BAAI/bge-m3", dimension=16) as other:
        changes = {
            "No collection": {"collection_name": "not-there"},
            "No tenant": {"tenant": "nobody"},
            "No database": {"database": "nothing"},
            "No model": {"embedding_model": "intfloat/e5-small-v2"},
            "Other dimension": {"embedding_model": "BAAI/bge-m3", "tei_url": other.url},
        }
        archives = [up.model_copy(update={"name": name, **change}) for name, change in changes.items()]
        answer = servers.search(*archives, up)
        assert failures(answer) == {
            "No collection": "CollectionNotFoundError",
            "No tenant": "DatabaseNotFoundError",
            "No database": "DatabaseNotFoundError",
            "No model": "ModelNotFoundError",
            "Other dimension": "EmbeddingMismatchError",
        }
        assert (answer.searched, len(answer.documents)) == (("Maintenance",), 3)
        check_message(str(dict(answer.failed)["Other dimension"]), "64", "'BAAI/bge-m3'", "16")
        for language in ("en", "de"):
            text = servers.tool(*archives, language=language).invoke({"query": QUERY})
            check_message(" ".join(text.splitlines()), *changes)
    for archive in (archives[0], archives[3]):
        with (
            closing(archive_technique(archive, servers.settings())) as technique,
            refused(type(dict(answer.failed)[archive.name]), archive.name),
        ):
            technique.retrieve("heating")


def test_collection_that_was_filled_again_is_found(servers):
    archive = servers.archive("Maintenance", ROOF)
    with closing(ArchiveSearch(ChromaRagConfig(archives=[archive]), servers.settings())) as search:
        assert len(search.search(QUERY).documents) == 3
        servers.client.delete_collection(archive.collection_name)
        servers.fill(archive.collection_name, HEATING)
        assert search.search(QUERY).documents[0].content == HEATING[0]


def test_tenants_and_databases_are_kept_apart(servers):
    host, port = servers.chroma.removeprefix("http://").split(":")
    admin = chromadb.AdminClient(
        Settings(
            chroma_api_impl="chromadb.api.fastapi.FastAPI", chroma_server_host=host, chroma_server_http_port=int(port)
        )
    )
    tenant = f"t{uuid4().hex}"  # other tests of this process use the same server
    admin.create_tenant(tenant)
    admin.create_database("books", tenant=tenant)
    admin._server._session.close()
    ours, place = servers.archive("Ours", HEATING), {"tenant": tenant, "database": "books"}
    with full_client(servers.chroma, **place) as client:
        servers.fill(ours.collection_name, ROOF, client=client)
    theirs = ours.model_copy(update={"name": "Theirs", **place})
    assert {d.content for d in servers.search(theirs).documents} == set(ROOF)
    assert {d.content for d in servers.search(ours).documents} == set(HEATING)
    assert {d.content for d in servers.search(ours, **place).documents} == set(ROOF)
