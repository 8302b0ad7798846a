"""The tool `search_archives` against a real Chroma server and a loopback server of embeddings."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings

from ragistry.errors import ConfigError
from ragistry.testing.chroma_server import free_port
from ragistry.testing.hashed import hashed_embedding
from ragistry.testing.openai_server import OpenAIServer
from ragistry.tools.archive_search import ArchiveSearch
from ragistry.tools.archives import ChromaRagConfig, create_archive_search_tool
from tests.tools.archive_servers import HEATING, MODEL, ROOF, full_client

pytest_plugins = ["tests.tools.archive_fixture"]

QUERY = "expansion vessel of the heating"


def tool_of(servers, *archives, language=None, **settings):
    config = ChromaRagConfig(archives=list(archives), language=language)
    return create_archive_search_tool(config, servers.settings(**settings))


def found(servers, *archives, query=QUERY, top_k=20, **settings):
    search = ArchiveSearch(ChromaRagConfig(archives=list(archives)), servers.settings(**settings))
    try:
        return search.search(query, top_k)
    finally:
        search.close()


def test_create_tool_no_archives():
    assert create_archive_search_tool(ChromaRagConfig(archives=[])) is None
    assert create_archive_search_tool(None) is None


def test_create_tool_with_archives(servers):
    tool = tool_of(servers, servers.archive("Maintenance", description="Reports of\nthe caretaker"))
    assert tool.name == "search_archives"
    assert "- Maintenance: Reports of the caretaker" in tool.description
    schema = tool.tool_call_schema.model_json_schema()
    assert set(schema["properties"]) == {"query", "top_k"}
    assert schema["required"] == ["query"]
    assert schema["properties"]["top_k"]["default"] == 5


def test_the_default_number_in_the_schema_is_the_environments(servers):
    schema = tool_of(servers, servers.archive("A"), top_k=9).tool_call_schema.model_json_schema()
    assert schema["properties"]["top_k"]["default"] == 9


def test_search_archives_returns_formatted(servers):
    text = tool_of(servers, servers.archive("Maintenance", HEATING)).invoke({"query": QUERY, "top_k": 1})
    assert text.splitlines()[0].startswith("Passages found: 1.")
    assert "[1] Archive: Maintenance | Source: chunks.pdf | Page: 1 | Score: 0." in text
    assert "(cosine)" in text
    assert text.endswith(f"\n   {HEATING[0]}")


def test_search_archives_in_german(servers):
    archive = servers.archive("Wartung", HEATING)
    text = tool_of(servers, archive, language="de").invoke({"query": QUERY, "top_k": 1})
    assert text.startswith("Gefundene Textstellen: 1.")
    assert "[1] Archiv: Wartung | Quelle: chunks.pdf | Seite: 1 | Ähnlichkeit: 0." in text
    assert tool_of(servers, archive, language="de").invoke({"query": " "}).startswith("Die Suchanfrage ist leer")
    assert tool_of(servers, archive).invoke({"query": " "}).startswith("The query is empty")
    broken = tool_of(servers, archive).invoke({"query": "tea \ud83d"})
    assert broken.startswith("The arguments do not fit: query: Input should be a valid string")


def test_search_archives_chromadb_unreachable(servers, caplog):
    down = servers.archive("Plans").model_copy(update={"chromadb_url": f"http://127.0.0.1:{free_port()}"})
    up = servers.archive("Maintenance", HEATING)
    with caplog.at_level(logging.WARNING):
        text = tool_of(servers, down, up).invoke({"query": QUERY})
    assert f"   {HEATING[0]}" in text
    assert text.endswith("Not searched: Plans (ChromaDB cannot be reached)")
    assert "http://" not in text
    assert down.chromadb_url in caplog.text
    alone = tool_of(servers, down, language="de").invoke({"query": QUERY})
    assert alone == "Nicht durchsucht: Plans (ChromaDB ist nicht erreichbar)"


@pytest.mark.parametrize(("asked", "given"), [(1, 1), (7, 7), (20, 20), (0, 1), (-5, 1), (21, 20), (10**9, 20)])
def test_search_archives_respects_top_k_bounds(servers, numbered, asked, given):
    for archives in (numbered[:1], numbered):  # from one, and in all
        documents = found(servers, *archives, query="report number", top_k=asked).documents
        assert len(documents) == given
        assert {document.metadata["archive"] for document in documents} <= {archive.name for archive in archives}


@pytest.fixture(scope="module")
def numbered(servers):
    return [
        servers.archive("First", [f"report number {n}" for n in range(25)]),
        servers.archive("Second", [f"report number {n}" for n in range(100, 125)]),
    ]


def test_a_null_top_k_means_the_default(servers, numbered):
    text = tool_of(servers, *numbered).invoke({"query": "report number", "top_k": None})
    assert text.startswith("Passages found: 5.")


def test_the_artifact_holds_the_documents(servers):
    call = {"type": "tool_call", "id": "1", "name": "search_archives", "args": {"query": QUERY}}
    message = tool_of(servers, servers.archive("Maintenance", HEATING)).invoke(call)
    assert message.content.startswith("Passages found: 3.")
    best = message.artifact[0]
    assert best.page_content == HEATING[0]
    assert best.metadata.pop("score") > message.artifact[1].metadata["score"]
    assert best.metadata == {"layer": "chunk", "source": "chunks.pdf", "page": 1, "archive": "Maintenance"}
    assert best.id


def test_an_agent_without_threads_of_its_own_may_wait_for_the_tool(servers):
    tool = tool_of(servers, servers.archive("Maintenance", HEATING))
    assert f"   {HEATING[0]}" in asyncio.run(tool.ainvoke({"query": QUERY}))


# Layers


def test_only_the_layer_is_searched(servers):
    archive = servers.archive("Maintenance", HEATING)
    servers.fill(archive.collection_name, [QUERY], layer="document")
    assert [d.metadata["layer"] for d in found(servers, archive).documents] == ["chunk"] * 3
    assert [d.content for d in found(servers, archive, layer="document").documents] == [QUERY]
    own = archive.model_copy(update={"layer": "document"})
    assert [d.content for d in found(servers, own).documents] == [QUERY]
    assert len(found(servers, archive, layer="*").documents) == 4


def test_a_layer_that_nothing_has_finds_nothing(servers):
    archive = servers.archive("Maintenance", HEATING)
    text = tool_of(servers, archive, layer="page").invoke({"query": QUERY})
    assert text == "No passages found in: Maintenance."


# Merging


def test_one_model_and_space_are_merged_by_distance(servers):
    # Every passage of the first is nearer than any of the second.
    near = servers.archive("Near", ["heating vessel", "heating vessel expansion", "the heating vessel"])
    far = servers.archive("Far", ROOF)
    documents = found(servers, far, near, query="heating vessel").documents
    assert [d.metadata["archive"] for d in documents] == ["Near"] * 3 + ["Far"] * 3
    assert [d.score for d in documents] == sorted((d.score for d in documents), reverse=True)


def test_the_query_is_embedded_once_for_all_archives_of_a_model(servers):
    archives = [servers.archive("First", HEATING), servers.archive("Second", ROOF)]
    query = "a query that nobody else asks"
    found(servers, *archives, query=query)
    assert servers.tei.asked("/v1/embeddings").count({"model": MODEL, "input": [query]}) == 1


@pytest.mark.parametrize("spaces", [("cosine", "cosine"), ("cosine", "l2")])
def test_a_text_that_two_archives_have_comes_once(servers, spaces):
    archives = [servers.archive(f"A{i}", HEATING, space=space) for i, space in enumerate(spaces)]
    documents = found(servers, *archives).documents
    assert sorted(d.content for d in documents) == sorted(HEATING)
    assert len({d.id for d in documents}) == 3


def test_equal_ids_of_different_texts_are_kept_apart(servers):
    answer = found(servers, servers.archive("A", HEATING), servers.archive("B", ROOF, space="l2"))
    assert len(answer.documents) == 6


@pytest.mark.parametrize("space", ["cosine", "l2", "ip"])
def test_the_score_follows_the_space(servers, space):
    text = "expansion vessel of the heating system"
    [document] = found(servers, servers.archive("A", [text], space=space)).documents
    a, b = (np.array(hashed_embedding(t, servers.tei.dimension)) for t in (QUERY, text))
    expected = {"cosine": a @ b, "ip": a @ b, "l2": 1 / (1 + ((a - b) ** 2).sum())}[space]
    assert document.score == pytest.approx(expected, abs=1e-5)
    assert document.scores[0].kind == space


def test_a_row_without_text_is_left_out(servers):
    archive = servers.archive("Maintenance", HEATING)
    rows = servers.client.get_collection(archive.collection_name, embedding_function=None)
    rows.add(ids=["bare"], embeddings=[[1.0] * servers.tei.dimension], metadatas=[{"layer": "chunk"}])
    assert sorted(d.content for d in found(servers, archive).documents) == sorted(HEATING)


# What goes wrong


def failures(answer):
    return {name: type(error).__name__ for name, error in answer.failed}


def test_a_collection_that_is_not_there_is_named(servers):
    gone = servers.archive("Plans").model_copy(update={"collection_name": "not-there"})
    answer = found(servers, gone, servers.archive("Maintenance", HEATING))
    assert failures(answer) == {"Plans": "CollectionNotFoundError"}
    assert len(answer.documents) == 3
    assert "its collection does not exist" in tool_of(servers, gone).invoke({"query": QUERY})


def test_the_dimension_is_checked_on_the_first_query(servers):
    with OpenAIServer("BAAI/bge-m3", dimension=16) as other:
        archive = servers.archive("Plans", ROOF).model_copy(
            update={"embedding_model": "BAAI/bge-m3", "tei_url": other.url}
        )
        answer = found(servers, archive, servers.archive("Maintenance", HEATING))
    assert failures(answer) == {"Plans": "EmbeddingMismatchError"}
    assert "its vectors have 64 numbers, those of 'BAAI/bge-m3' have 16" in str(answer.failed[0][1])
    assert len(answer.documents) == 3


def test_an_embedding_service_that_is_down_is_named(servers):
    down = servers.archive("Plans", ROOF).model_copy(update={"tei_url": f"http://127.0.0.1:{free_port()}"})
    text = tool_of(servers, down, servers.archive("Maintenance", HEATING)).invoke({"query": QUERY})
    assert f"   {HEATING[0]}" in text
    assert text.endswith("Not searched: Plans (the embedding service cannot be reached)")
    assert tool_of(servers, down).invoke({"query": QUERY}).startswith("Not searched: Plans")


def test_an_embedding_service_that_serves_another_model_is_named(servers):
    archive = servers.archive("Plans", ROOF, embedding_model="intfloat/e5-small-v2")
    text = tool_of(servers, archive).invoke({"query": QUERY})
    assert text == "Not searched: Plans (the embedding service has another model)"


@pytest.mark.parametrize("failure", [500, 429, "garbage", "nan"])
def test_an_embedding_service_that_fails_serves_again_later(servers, failure):
    tool = tool_of(servers, servers.archive("Maintenance", HEATING))
    servers.tei.fail_next(failure, path="/v1/embeddings")
    assert tool.invoke({"query": QUERY}) == "Not searched: Maintenance (the query could not be embedded)"
    assert f"   {HEATING[0]}" in tool.invoke({"query": QUERY})


def test_arguments_that_do_not_fit_are_told_to_the_model(servers):
    tool = tool_of(servers, servers.archive("Maintenance", HEATING))
    assert tool.invoke({"query": QUERY, "collection_name": "x"}).startswith("The arguments do not fit: collection_name")
    assert tool.invoke({"top_k": 3}).startswith("The arguments do not fit: query")
    assert tool.invoke({"query": QUERY, "top_k": "many"}).startswith("The arguments do not fit: top_k")
    assert tool.invoke({"query": "x" * 20_000}).startswith("The arguments do not fit: query")


def test_langchain_that_is_not_installed_is_named(servers, monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_core.callbacks", None)
    monkeypatch.delitem(sys.modules, "ragistry.tools.langchain", raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'ragistry\[langchain\]'"):
        tool_of(servers, servers.archive("Maintenance"))


# Clients


def test_clients_are_made_on_first_use_kept_and_shared(servers):
    archives = [servers.archive("Maintenance", HEATING), servers.archive("Plans", ROOF)]
    before = servers.tei.connections
    search = ArchiveSearch(ChromaRagConfig(archives=archives), servers.settings())
    assert search.clients._kept == {}
    assert servers.tei.connections == before
    search.search(QUERY)
    [kept] = search.clients._kept.values()
    connection = kept.connection
    search.search("another")
    assert kept.connection is connection
    assert servers.tei.connections == before + 1
    search.close()


def test_a_tool_that_is_forgotten_closes_its_connections(servers):
    tool = tool_of(servers, servers.archive("Maintenance", HEATING))
    tool.invoke({"query": QUERY})
    search = next(cell.cell_contents for cell in tool.func.__closure__ if isinstance(cell.cell_contents, ArchiveSearch))
    [session] = {kept.connection.client._server._session for kept in search.clients._kept.values()}
    del tool
    gc.collect()
    assert session.is_closed


def test_a_copy_of_a_tool_goes_on_when_the_tool_is_forgotten(servers):
    tool = tool_of(servers, servers.archive("Maintenance", HEATING))
    tool.invoke({"query": QUERY})
    copy = tool.model_copy(update={"name": "other"})
    del tool
    gc.collect()
    assert HEATING[0] in copy.invoke({"query": QUERY})


def test_a_collection_that_was_filled_anew_is_found_again(servers):
    archive = servers.archive("Maintenance", ROOF)
    search = ArchiveSearch(ChromaRagConfig(archives=[archive]), servers.settings())
    assert len(search.search(QUERY).documents) == 3
    servers.client.delete_collection(archive.collection_name)
    servers.fill(archive.collection_name, HEATING)
    assert search.search(QUERY).documents[0].content == HEATING[0]
    search.close()


def test_tenants_and_databases_are_kept_apart(servers):
    host, port = servers.chroma.removeprefix("http://").split(":")
    admin = chromadb.AdminClient(
        Settings(
            chroma_api_impl="chromadb.api.fastapi.FastAPI", chroma_server_host=host, chroma_server_http_port=int(port)
        )
    )
    admin.create_tenant("acme")
    admin.create_database("books", tenant="acme")
    admin._server._session.close()
    ours = servers.archive("Ours", HEATING)
    with full_client(servers.chroma, tenant="acme", database="books") as client:
        servers.fill(ours.collection_name, ROOF, client=client)
    theirs = ours.model_copy(update={"name": "Theirs", "tenant": "acme", "database": "books"})
    assert {d.content for d in found(servers, theirs).documents} == set(ROOF)
    assert {d.content for d in found(servers, ours).documents} == set(HEATING)
    assert {d.content for d in found(servers, ours, tenant="acme", database="books").documents} == set(ROOF)
    nobody = found(servers, ours.model_copy(update={"tenant": "nobody"}))
    assert nobody.documents == []
    assert [name for name, _ in nobody.failed] == ["Ours"]


def test_a_collection_with_an_embedding_function_on_record_needs_none(servers):
    """As ChromaDB's own client makes one by default; the slim client could not run it."""
    rows = servers.client.create_collection("with-default-function")
    rows.add(
        ids=["1"], documents=[HEATING[0]], metadatas=[{"layer": "chunk"}],
        embeddings=[hashed_embedding(HEATING[0], servers.tei.dimension)],
    )  # fmt: skip
    archive = servers.archive("Default").model_copy(update={"collection_name": "with-default-function"})
    [document] = found(servers, archive).documents
    assert document.scores[0].kind == "l2"
