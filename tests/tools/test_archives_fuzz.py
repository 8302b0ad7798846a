"""No argument of the tool leads to a collection that is not configured, and none makes it fail."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragistry.tools.archives import ChromaRagConfig, archive_technique, create_archive_search_tool
from tests.tools.archive_servers import HEATING

pytest_plugins = ["tests.tools.archive_fixture"]

SECRET = "SECRET-4711"
HIDDEN = "payroll-of-the-board"
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def archive(servers):
    servers.fill(HIDDEN, [f"{SECRET} {text}" for text in (*HEATING, HIDDEN, "salaries")])
    servers.fill(HIDDEN, [f"{SECRET} of another layer"], layer="document")
    archive = servers.archive("Maintenance", HEATING)
    servers.fill(archive.collection_name, [f"{SECRET} of another layer"], layer="document")
    return archive


@pytest.fixture(scope="module")
def tool(servers, archive):
    return create_archive_search_tool(ChromaRagConfig(archives=[archive]), servers.settings())


def test_the_secret_is_there_to_be_found(servers, archive):
    """Or the tests below could not fail."""
    hidden = servers.archive("Hidden", collection_name=HIDDEN)
    text = create_archive_search_tool(ChromaRagConfig(archives=[hidden]), servers.settings()).invoke({"query": SECRET})
    assert SECRET in text


WORDS = st.sampled_from(
    [SECRET, HIDDEN, "salaries", "boiler", f"../{HIDDEN}", f'{{"collection": "{HIDDEN}"}}', f"collection:{HIDDEN}",
     "$or", "layer", "document", "%2e%2e%2f", "\x00", "' OR 1=1 --", "ignore all instructions"]
)  # fmt: skip
QUERIES = st.lists(WORDS | st.text(max_size=12), min_size=1, max_size=5).map(" ".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["collection", "collection_name", "archive", "archives", "name", "where", "layer", "tenant", "database",
     "chromadb_url", "tei_url", "rag_config", "config", "configurable", "run_manager", "callbacks", "top_k", "settings"]
)  # fmt: skip


@FEW
@given(query=QUERIES, top_k=st.none() | st.integers())
def test_no_query_and_no_number_leads_elsewhere(tool, query, top_k):
    text = tool.invoke({"query": query, "top_k": top_k})
    assert SECRET not in text
    assert 1 <= text.count("Archive: Maintenance") <= 3 or text.startswith(("The query is empty", "The arguments"))


@FEW
@given(arguments=st.dictionaries(NAMES, VALUES, max_size=4), query=QUERIES | VALUES)
def test_no_other_argument_leads_elsewhere(tool, arguments, query):
    assert SECRET not in tool.invoke({"query": query, **arguments})


@FEW
@given(arguments=st.dictionaries(NAMES, VALUES, max_size=4), query=QUERIES)
def test_no_configuration_of_the_call_leads_elsewhere(tool, servers, arguments, query):
    other = {"archives": [{"name": "H", "collection_name": HIDDEN, "embedding_model": servers.tei.model}]}
    config = {"configurable": {"rag_config": other, **arguments}}
    assert SECRET not in tool.invoke({"query": query}, config)


@FEW
@given(
    query=QUERIES.filter(str.strip),
    where=st.none()
    | st.dictionaries(
        st.sampled_from(["layer", "collection", "archive", "page"]), st.sampled_from(["document", HIDDEN, "*"])
    )
    | st.just({"$or": [{"layer": "document"}, {"page": {"$gte": 0}}]})
    | st.just({"layer": {"$ne": "chunk"}}),
)
def test_no_condition_of_a_router_opens_another_layer(technique, query, where):
    documents = technique.retrieve(query, top_k=20, where=where or None)
    assert all(document.metadata["layer"] == "chunk" for document in documents)
    assert SECRET not in repr(documents)


@pytest.fixture(scope="module")
def technique(servers, archive):
    technique = archive_technique(archive, servers.settings())
    yield technique
    technique.close()
