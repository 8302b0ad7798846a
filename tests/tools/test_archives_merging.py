"""Archives of several spaces and models as one ranking: copies are no votes, and cosines are compared where known."""

from __future__ import annotations

import pytest

from ragistry.library.archive_technique import archive_technique
from ragistry.testing.hashed import hashed_embedding
from ragistry.testing.openai_server import OpenAIServer
from ragistry.tools.archive_search import ArchiveSearch
from ragistry.tools.archive_text import answer_text
from ragistry.tools.archives import ChromaRagConfig
from tests.tools.archive_servers import HEATING, ROOF

pytest_plugins = ["tests.tools.archive_fixture"]

EXACT = "expansion vessel of the heating"
ALIKE = "the expansion of the heating"
OTHER = "the chimney sweep"


def found(servers, *archives, query=EXACT, top_k=20):
    search = ArchiveSearch(ChromaRagConfig(archives=list(archives)), servers.settings())
    try:
        return search.search(query, top_k)
    finally:
        search.close()


def stretch(servers, archive, texts, factor):
    """Give the vectors of an archive another length."""
    rows = servers.client.get_collection(archive.collection_name, embedding_function=None)
    vectors = [[factor * x for x in hashed_embedding(text, servers.tei.dimension)] for text in texts]
    rows.update(ids=[f"chunk-{index}" for index in range(len(texts))], embeddings=vectors)


def test_the_spaces_of_one_model_are_merged_by_cosine(servers):
    archives = [
        servers.archive("Squared", [EXACT, OTHER], space="l2"),
        servers.archive("Cosine", [ALIKE, OTHER, *ROOF]),
        servers.archive("Inner", [ALIKE, OTHER, *HEATING], space="ip"),
    ]
    documents = found(servers, *archives).documents
    assert [d.content for d in documents[:2]] == [EXACT, ALIKE]
    assert {d.scores[-1].kind for d in documents} == {"cosine"}
    assert [d.score for d in documents] == sorted((d.score for d in documents), reverse=True)
    assert documents[0].score == pytest.approx(1)


def test_the_headings_show_what_was_ranked_by(servers):
    answer = found(servers, servers.archive("A", [EXACT], space="l2"), servers.archive("B", [ALIKE]))
    assert answer_text(answer, "en").count("(cosine)") == 2


def test_archives_without_unit_vectors_are_merged_by_rank(servers):
    cosine = servers.archive("Cosine", [ALIKE, OTHER])
    squared = servers.archive("Squared", [EXACT, ROOF[0]], space="l2")
    stretch(servers, squared, [EXACT, ROOF[0]], 3.0)
    documents = found(servers, cosine, squared).documents
    assert [{d.metadata["archive"] for d in pair} for pair in (documents[:2], documents[2:])] == [
        {"Cosine", "Squared"}
    ] * 2
    assert [d.score for d in documents] == pytest.approx([1 / 61, 1 / 61, 1 / 62, 1 / 62])
    assert {d.scores[0].kind for d in documents} == {"cosine", "l2"}
    assert {d.scores[-1].kind for d in documents} == {"rrf"}


@pytest.fixture
def other_model(servers):
    with OpenAIServer("BAAI/bge-m3", dimension=16) as tei:
        yield type(servers)(servers.chroma, tei, servers.client)


def test_two_models_are_merged_by_rank(servers, other_model):
    answer = found(servers, servers.archive("First", HEATING), other_model.archive("Second", ROOF))
    assert answer.failed == ()
    assert {d.scores[-1].kind for d in answer.documents} == {"rrf"}
    assert {d.metadata["archive"] for d in answer.documents[:2]} == {"First", "Second"}


def test_a_copy_in_another_archive_is_no_vote(servers, other_model):
    # Second in both rankings; two votes would put it before the first of each.
    first, second = servers.archive("First", [EXACT, ALIKE]), other_model.archive("Second", [f"{EXACT}!", ALIKE])
    documents = found(servers, first, second).documents
    assert [d.content for d in documents][2:] == [ALIKE]
    assert documents[2].score == pytest.approx(1 / 62)


def test_a_copy_has_its_best_rank(servers, other_model):
    first, second = servers.archive("First", [EXACT]), other_model.archive("Second", [f"{EXACT}!", EXACT, OTHER])
    best = next(d for d in found(servers, first, second).documents if d.content == EXACT)
    assert best.score == pytest.approx(1 / 61)
    assert best.metadata["archive"] == "First"


def test_copies_in_an_archive_crowd_nothing_out(servers):
    archive = servers.archive("Copied", [EXACT] * 30 + [" "] * 30 + [ALIKE, OTHER])
    for top_k in (3, 5):
        documents = found(servers, archive, top_k=top_k).documents
        assert [document.content for document in documents] == [EXACT, ALIKE, OTHER]
    routed = archive_technique(archive, servers.settings())
    try:
        assert [document.content for document in routed.retrieve(EXACT, top_k=2)] == [EXACT, ALIKE]
    finally:
        routed.close()
