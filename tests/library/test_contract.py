"""The storage contract: its seven operations, what they refuse, metadata, and embedding with retries."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragistry.errors import (
    ChromaDBConnectionError,
    CollectionAlreadyExistsError,
    CollectionNotFoundError,
    ConfigError,
    DuplicateChunkIDError,
    EmbeddingGenerationError,
    EmbeddingMismatchError,
    EmptyQueryError,
    InvalidChunkError,
    InvalidCollectionNameError,
    InvalidFilterError,
    InvalidLimitError,
    ModelConnectionError,
    ModelNotFoundError,
    QueryError,
    StoreCorruptError,
)
from ragistry.library.contract import (
    Collection,
    DocumentChunk,
    add_chunks,
    create_collection,
    delete_collection,
    get_collection,
    list_collections,
    search_chunks,
    update_collection_metadata,
)
from ragistry.library.contract.embedding import AT_ONCE
from ragistry.library.repositories.repository import RepositoryTechnique
from ragistry.models.http import Patience
from ragistry.models.openai import OpenAICompatibleEmbedder
from ragistry.techniques.bm25 import BM25Technique
from ragistry.testing.hashed import HashingEmbedder
from ragistry.testing.loopback import Failure, Planned
from ragistry.testing.openai_server import OpenAIServer
from ragistry.testing.ports import refused_port
from ragistry.testing.wire import Request
from tests.messages import check_message, refused

ISTIO = {
    "repository_url": "https://github.com/istio/istio.io",
    "last_updated": "2025-09-30T14:32:01Z",
    "commit_hash": "a" * 40,
    "total_documents": 2,
    "total_chunks": 3,
}
NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def chunk(chunk_id: Any = "id1", content: str = "text1", **others: Any) -> DocumentChunk:
    """A chunk; keyword arguments replace its fields."""
    known = {"repository_name": "istio-docs", "heading_context": "Installation", "chunk_index": 0, "token_count": 3}
    return DocumentChunk(**{"chunk_id": chunk_id, "content": content, "file_path": "docs/setup.md", **known, **others})


def chunks(*texts: str) -> list[DocumentChunk]:
    return [chunk(text, text) for text in texts]


def create(metadata: Any = ISTIO, embedder: Any = None) -> Collection:
    return create_collection("istio-docs", metadata, embedder=embedder or HashingEmbedder())


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """A collection with the chunk ``id1``."""
    with create_collection("docs", {}, path=tmp_path_factory.mktemp("store"), embedder=HashingEmbedder()) as made:
        add_chunks(made, [chunk()])
        yield made


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """Three chunks of two repositories, embedded by the default model; only to be read."""
    with create_collection("guide", ISTIO, path=tmp_path_factory.mktemp("guide")) as made:
        add_chunks(
            made,
            [
                chunk("install", "To install Kubernetes, first make a cluster.", metadata={"has_code": True}),
                chunk("route", "Traffic routing sends requests to services.", metadata={"section": "Routing"}),
                chunk("other", "Certificates are renewed every day.", repository_name="hugo-docs", file_path="tls.md"),
            ],
        )
        yield made


# The seven operations


def test_create_collection_success(tmp_path: Path) -> None:
    collection = create_collection("istio-docs", ISTIO)
    assert (collection.name, collection.metadata, collection.count()) == ("istio-docs", ISTIO, 0)
    assert (tmp_path / "chroma_data").is_dir()
    with create_collection("docs", {}, path=tmp_path / "elsewhere", embedder=HashingEmbedder()) as other:
        add_chunks(other, [chunk()])
    assert [(info.name, info.chunk_count) for info in list_collections(path=tmp_path / "elsewhere")] == [("docs", 1)]
    assert [info.name for info in list_collections()] == ["istio-docs"]


@pytest.mark.parametrize("name", ["Invalid_Name!", "", "a" * 64, "a/b", "..", "a\n", "ä", None])
def test_create_collection_invalid_name(name: Any, tmp_path: Path) -> None:
    with refused(InvalidCollectionNameError):
        create_collection(name, {})
    assert list(tmp_path.iterdir()) == []
    assert create_collection("a" * 63, {}).name == "a" * 63


def test_create_collection_idempotent() -> None:
    create({"commit_hash": "abc123"})
    collection = create({"commit_hash": "def456"})
    assert collection.metadata == get_collection("istio-docs").metadata == {"commit_hash": "def456"}
    with refused(CollectionAlreadyExistsError, "'istio-docs'"):
        create_collection("istio-docs", {}, recreate=False)
    assert get_collection("istio-docs").metadata == {"commit_hash": "def456"}


def test_add_chunks_success() -> None:
    collection = create()
    assert add_chunks(collection, [chunk("id1", "text1"), chunk("id2", "text2")]) == 2
    assert collection.count() == 2
    assert add_chunks(collection, []) == 0


def test_add_chunks_batching() -> None:
    embedder = HashingEmbedder()
    collection = create(embedder=embedder)
    assert add_chunks(collection, chunks(*(f"text {number}" for number in range(250))), batch_size=100) == 250
    assert (collection.count(), embedder.calls) == (250, 3)


def test_add_chunks_duplicate_id(caplog: pytest.LogCaptureFixture) -> None:
    collection = create()
    add_chunks(collection, [chunk("duplicate", "first")])
    for given_chunks in ([chunk("duplicate"), chunk("id2")], [chunk("id3"), chunk("id3")]):
        with refused(DuplicateChunkIDError):
            add_chunks(collection, given_chunks)
    assert collection.count() == 1, "all or nothing"
    again = [chunk("duplicate", "second"), chunk("id2"), chunk("id2", "later")]
    assert add_chunks(collection, again, on_duplicate="skip") == 1
    assert caplog.text.count("was left out") == 2
    assert search_chunks(collection, "first").matches[0].content == "first"
    assert add_chunks(collection, again, on_duplicate="upsert") == 2
    assert {match.content for match in search_chunks(collection, "second").matches} == {"second", "later"}


def test_add_chunks_empty_content(caplog: pytest.LogCaptureFixture) -> None:
    collection = create()
    for content in ("", " \n"):
        with pytest.raises(ValueError, match="id1"):
            add_chunks(collection, [chunk("id1", content)])
    assert collection.count() == 0
    assert add_chunks(collection, [chunk("id1", ""), chunk("id2")], on_empty="skip") == 1
    check_message(caplog.messages[-1], "'id1'")


def test_search_finds_results(guide: Collection) -> None:
    result = search_chunks(guide, "install kubernetes")
    assert (result.query, result.total_results, result.matches[0].chunk_id) == ("install kubernetes", 3, "install")
    scores = [match.score for match in result.matches]
    assert 1 >= scores[0] > scores[1] > scores[2] >= 0
    assert [document.id for document in result.documents] == [match.chunk_id for match in result.matches]
    assert result.search_time_ms > 0


def test_search_with_limit(guide: Collection) -> None:
    assert [len(search_chunks(guide, "setup", limit=limit).matches) for limit in (2, 100)] == [2, 3]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({"repository": "istio-docs"}, {"install", "route"}),
        ({"has_code": True}, {"install"}),
        ({"$and": [{"repository": "istio-docs"}, {"section": "Routing"}]}, {"route"}),
        ({"tags": {"$not_contains": "setup"}}, {"install", "route", "other"}),  # as ChromaDB, also without the key
    ],
)
def test_search_with_where_filter(guide: Collection, where: Any, found: set[str]) -> None:
    result = search_chunks(guide, "routing", where=where)
    assert {match.chunk_id for match in result.matches} == found
    assert {match.repository for match in result.matches} <= {"istio-docs", "hugo-docs"}


def test_search_no_results(guide: Collection) -> None:
    result = search_chunks(guide, "xyzabc nonexistent", min_score=0.6)
    assert (result.total_results, result.matches) == (0, [])
    exact = "To install Kubernetes, first make a cluster."
    assert search_chunks(guide, exact, min_score=0.99).total_results == 1
    assert search_chunks(create(), "anything").matches == []


def test_get_collection_exists() -> None:
    create()
    collection = get_collection("istio-docs")
    assert (collection.name, collection.metadata) == ("istio-docs", ISTIO)


def test_get_collection_not_found() -> None:
    for name in ("nonexistent", "istio-doc"):
        with refused(CollectionNotFoundError, repr(name)):
            get_collection(name)
        create()


def test_list_collections_multiple() -> None:
    add_chunks(create(), chunks("one", "two"))
    create_collection("hugo-docs", {"commit_hash": "abc"})
    assert [(info.name, info.chunk_count, info.metadata) for info in list_collections()] == [
        ("hugo-docs", 0, {"commit_hash": "abc"}),
        ("istio-docs", 2, ISTIO),
    ]


def test_list_collections_empty(tmp_path: Path) -> None:
    assert list_collections() == []
    assert list(tmp_path.iterdir()) == [], "a list makes no folder"


def test_delete_collection_success(tmp_path: Path) -> None:
    collection = create()
    add_chunks(collection, chunks("one", "two"))
    create_collection("istio-docs-2", {})
    assert delete_collection("istio-docs") == 2
    for use in (
        collection.count,
        lambda: search_chunks(collection, "one"),
        lambda: add_chunks(collection, chunks("3")),
    ):
        with pytest.raises(CollectionNotFoundError):
            use()
    assert list((tmp_path / "chroma_data").glob("istio-docs@*")) == [], "its text is gone from the disk"
    assert [info.name for info in list_collections()] == ["istio-docs-2"]


def test_delete_collection_not_found(tmp_path: Path) -> None:
    with pytest.raises(CollectionNotFoundError):
        delete_collection("nonexistent")
    assert list(tmp_path.iterdir()) == []


def test_update_metadata() -> None:
    collection = create({"commit_hash": "abc123", "total_chunks": 7})
    update_collection_metadata(collection, {"commit_hash": "def456"})
    updated = get_collection("istio-docs").metadata
    assert (updated["commit_hash"], updated["total_chunks"]) == ("def456", 7)
    assert updated["last_updated"].endswith("Z")
    update_collection_metadata(collection, {"last_updated": "2025-09-30T14:32:01Z"})
    assert collection.metadata["last_updated"] == "2025-09-30T14:32:01Z"


# What is refused


Case = tuple[type[Exception], Callable[[Collection, Any], object], list[Any]]
ARGUMENTS: dict[str, Case] = {
    "batch_size": (InvalidLimitError, lambda c, v: add_chunks(c, chunks("a"), batch_size=v), [0, 1_001, True, 1.5]),
    "on_duplicate": (ConfigError, lambda c, v: add_chunks(c, chunks("a"), on_duplicate=v), ["ignore"]),
    "on_empty": (ConfigError, lambda c, v: add_chunks(c, chunks("a"), on_empty=v), ["upsert"]),
    "on_error": (ConfigError, lambda c, v: add_chunks(c, chunks("a"), on_error=v), ["ignore"]),
    "query": (EmptyQueryError, lambda c, v: search_chunks(c, v), ["", "  \n"]),
    "limit": (InvalidLimitError, lambda c, v: search_chunks(c, "setup", v), [0, 101, True, 2.0]),
    "where": (InvalidFilterError, lambda c, v: search_chunks(c, "a", where=v), [{"section": {"$like": "R"}}]),
    "min_score": (QueryError, lambda c, v: search_chunks(c, "a", min_score=v), [-0.1, 1.1, NAN]),
    "new metadata": (
        ConfigError,
        lambda c, v: create_collection("docs", v),
        [{"at": object()}, {1: "one"}, {"share": NAN}, {"repository_url": "\ud800"}],
    ),
    "updated metadata": (ConfigError, update_collection_metadata, [{"share": NAN}]),
    "create path": (ChromaDBConnectionError, lambda c, v: create_collection("docs", {}, path=v), ["a\0b", "\ud800"]),
    "get path": (ChromaDBConnectionError, lambda c, v: get_collection("docs", path=v), ["\ud800"]),
    "list path": (ChromaDBConnectionError, lambda c, v: list_collections(path=v), ["a\0b"]),
    "delete path": (ChromaDBConnectionError, lambda c, v: delete_collection("docs", path=v), ["a\0b"]),
    "field": (
        InvalidChunkError,
        lambda c, v: add_chunks(c, [chunk("first"), replace(chunk("other"), **{v[0]: v[1]})]),
        [
            ("chunk_index", -1), ("token_count", -3), ("heading_context", "\ud800"),
            ("file_path", "docs\0.md"), ("file_path", "/etc/a.md"), ("file_path", "C:\\docs\\a.md"),
        ],
    ),
    "metadata": (
        InvalidChunkError,
        lambda c, v: add_chunks(c, [chunk("other", metadata=v)]),
        [
            {"repository": "other"}, {"file_path": "b.md"}, {"heading_context": None}, {"chunk_index": False},
            {"token_count": 3.0}, {"share": NAN}, {"shares": [[INF]]}, {"by_number": {1: "one"}},
            {"deep": [{"by_number": {2: "two"}}]}, {"at": object()}, {"nested": {"at": object()}},
            {"half": {"a": "\ud800"}}, {"\ud800": 1}, {1: "one"}, {"long": "x" * 1_000_001},
            {"one": ["x" * 600_000, 1], "two": ["y" * 600_000, 1]}, {"pairs": [(1, 2)]},
        ],
    ),
    "metadata after an empty chunk": (
        InvalidChunkError,
        lambda c, v: add_chunks(c, [chunk("empty", " "), chunk("third", metadata=v)], on_empty="skip"),
        [{"a": NAN}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_invalid_argument_is_refused(collection: Collection, tmp_path: Path, name: str) -> None:
    error, call, values = ARGUMENTS[name]
    for value in values:
        with refused(error):
            call(collection, value)
    assert collection.count() == 1
    assert list(tmp_path.iterdir()) == []


def test_every_invalid_chunk_is_named_before_anything_is_embedded() -> None:
    embedder = HashingEmbedder()
    collection = create(embedder=embedder)
    with refused(InvalidChunkError, "chunk 'id1' metadata 'at'", "chunk 'id2' metadata 'x'"):
        add_chunks(collection, [chunk("id1", metadata={"at": object()}), chunk("id2", metadata={"x": INF})])
    with refused(InvalidChunkError, "chunk '' has the id ''", "chunk 'id2'"):
        add_chunks(collection, [chunk(""), chunk("id2", "\ud800")])
    assert (collection.count(), embedder.calls) == (0, 0)


def test_folder_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chroma_data").write_text("a file", encoding="utf-8")
    for use in (lambda: create_collection("docs", {}), lambda: get_collection("docs"), list_collections):
        with refused(ChromaDBConnectionError, "chroma_data"):
            use()  # type: ignore[operator]
    with refused(ChromaDBConnectionError, "/proc/x"):  # where even root can make no folder
        create_collection("docs", {}, path="/proc/x")


def test_record_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    create()
    record = tmp_path / "chroma_data" / "istio-docs.json"
    record.write_text(json.dumps({"folder": "../../etc", "metadata": {}}), encoding="utf-8")
    with refused(StoreCorruptError, "../../etc"):
        get_collection("istio-docs")


def test_collection_of_another_embedder_is_refused() -> None:
    add_chunks(create(), chunks("text"))
    other = get_collection("istio-docs", embedder=HashingEmbedder(model="other"))
    for use in (lambda: search_chunks(other, "text"), lambda: add_chunks(other, chunks("more"))):
        with pytest.raises(EmbeddingMismatchError):
            use()
    assert other.count() == 1


# Metadata


def stored(collection: Collection, metadata: Any) -> Any:
    """The chunk ``id1`` with these metadata, as a search returns it."""
    add_chunks(collection, [chunk(metadata=metadata)], on_duplicate="upsert")
    [match] = search_chunks(collection, "text").matches
    return match


KEYS = st.text(max_size=5) | st.sampled_from(
    ["type", "collection", "source_file", "processed_at", "in_json", "json_keys", "page", "section", "has_code"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=4))
@example({"tags": ["installation", "setup"], "has_code": True, "weight": 2.5, "nested": {"a": [1, "b"]}})
@example({"in_json": "[", "nested": {"a": [1, "b", None]}})
@example({"type": None, "source_file": [], "collection": {"a": 1}, "processed_at": None})
@example({"tags": [], "title": None, "nothing": {}})
@example({"mixed": [1, "a"], "rows": [[1], [2]], "many": list(range(2_000))})
@example({"large": 2**70, "small": -(2**64), "edge": 2**63 - 1, "both": [2**70]})
@example({"#hash": 1, "$dollar": "x", "ragistry:own": True, "chroma:document": None, "": 2.5, "k" * 300: 1})
@example({"repository": "istio-docs", "file_path": "docs/setup.md", "chunk_index": 0, "token_count": 3})
def test_metadata_are_returned_as_given(collection: Collection, metadata: dict[str, Any]) -> None:
    match = stored(collection, metadata)
    assert repr({key: match.metadata[key] for key in metadata}) == repr(metadata)
    assert (match.file_path, match.repository, match.heading_context) == ("docs/setup.md", "istio-docs", "Installation")
    assert match.metadata["token_count"] == 3
    assert "processed_at" in metadata or match.metadata["processed_at"].endswith("Z")
    assert "in_json" not in match.metadata or "in_json" in metadata


def test_conditions_find_the_given_metadata(collection: Collection) -> None:
    values = {"type": "guide", "source_file": "s.md", "collection": "c", "tags": [], "title": None, "of": ["a", "b"]}
    assert stored(collection, values).metadata["type"] == "guide"
    for key in ("type", "source_file", "collection"):
        assert search_chunks(collection, "text", where={key: values[key]}).total_results == 1
        assert search_chunks(collection, "text", where={key: "other"}).total_results == 0
    assert search_chunks(collection, "text", where={"title": "null"}).total_results == 0
    assert search_chunks(collection, "text", where={"tags": {"$ne": "[]"}}).total_results == 1
    assert search_chunks(collection, "text", where={"of": {"$contains": "b"}}).total_results == 1


def test_technique_returns_only_metadata_that_stores_support(collection: Collection) -> None:
    stored(collection, {"nested": {"a": 1}, "page": 3})
    technique = RepositoryTechnique(collection, lambda store: BM25Technique({}, store=store))  # type: ignore[arg-type]
    [found] = technique.retrieve("text1")
    assert found.metadata["page"] == 3
    assert found.metadata.keys().isdisjoint({"nested", "in_json"})


def test_fields_may_be_empty_and_paths_may_have_any_characters() -> None:
    collection = create()
    paths = ["", "a\\b.md", "docs/C: drive.md", "ä/ö ü.md"]
    assert add_chunks(collection, [DocumentChunk(path or "0", "text", path, "", "", 0, 0) for path in paths]) == 4
    assert {match.file_path for match in search_chunks(collection, "text").matches} == set(paths)


# Embedding


def test_batches_are_embedded_in_parallel_and_stay_in_order() -> None:
    meeting = threading.Barrier(AT_ONCE, timeout=30)
    embedder = HashingEmbedder(check=lambda texts: meeting.wait() if len(texts) > 1 else None)
    collection = create(embedder=embedder)
    texts = [f"the tea of part {number}" for number in range(5 * AT_ONCE)]
    assert add_chunks(collection, chunks(*texts), batch_size=5) == len(texts)
    for text in (texts[0], texts[7], texts[19]):
        best = search_chunks(collection, text, 1).matches[0]
        assert (best.chunk_id, best.score) == (text, pytest.approx(1.0, abs=1e-5))


def test_failed_batch_stops_the_others_and_nothing_is_written() -> None:
    has_failed, never = threading.Event(), threading.Event()

    def check(texts: Sequence[str]) -> None:
        if "poison" in texts:
            has_failed.set()
            raise EmbeddingGenerationError("cannot embed")
        assert has_failed.wait(30)
        never.wait(0.02)  # leaves the thread that writes time to see the failure

    embedder = HashingEmbedder(check=check)
    collection = create(embedder=embedder)
    with refused(EmbeddingGenerationError):
        add_chunks(collection, chunks("poison", *map(str, range(400))), batch_size=1)
    assert (collection.count(), embedder.calls < 400) == (0, True)


class TheirEmbedder(HashingEmbedder):
    """An embedder that is not one of the package's, which retry by themselves."""


@pytest.mark.parametrize(
    ("error", "failures", "calls"),
    [
        (EmbeddingGenerationError("overloaded"), 2, 3),
        (TimeoutError("late"), 2, 3),
        (EmbeddingGenerationError("overloaded"), 9, 3),
        (ModelConnectionError("no server"), 9, 1),
    ],
)
def test_temporary_error_of_a_foreign_embedder_is_retried(error: Exception, failures: int, calls: int) -> None:
    def check(texts: Sequence[str]) -> None:
        if embedder.calls <= failures:
            raise error

    embedder = TheirEmbedder(check=check)
    collection = create(embedder=embedder)
    with nullcontext() if failures < 3 else refused(EmbeddingGenerationError, str(error)):
        assert add_chunks(collection, chunks("text")) == 1
    assert embedder.calls == calls


class OddServer(OpenAIServer):
    """Fails in one way whenever a text has "odd" in it, or another text in its place."""

    failure: Failure = 400
    odd = "odd"

    def _note(self, request: Request) -> Planned | None:
        plan = super()._note(request)
        is_odd = request.path == "/v1/embeddings" and any(self.odd in text for text in request.body["input"])
        return Planned(self.failure, None, {}) if is_odd else plan


@pytest.fixture
def server() -> Iterator[OddServer]:
    with OddServer("m") as server:
        yield server


Connect = Callable[..., Collection]


@pytest.fixture
def connected(server: OddServer) -> Iterator[Connect]:
    """Make a collection whose texts the server embeds."""
    with ExitStack() as stack:

        def make(model: str = "m", url: str = server.url, attempts: int = 1) -> Collection:
            embedder = OpenAICompatibleEmbedder(model, url=url, patience=Patience(0.4, attempts=attempts))
            return create(embedder=stack.enter_context(closing(embedder)))

        yield make


@pytest.mark.parametrize(
    ("failure", "requests"), [(404, 1), ("garbage", 1), ("nan", 1), (503, 2), ("drop", 2), ("hang", 2)]
)
def test_chunk_that_cannot_be_embedded_is_named_or_skipped(
    server: OddServer, connected: Connect, caplog: pytest.LogCaptureFixture, failure: Failure, requests: int
) -> None:
    server.failure = failure
    collection = connected(attempts=2)
    with pytest.raises(EmbeddingGenerationError):
        add_chunks(collection, chunks("even", "odd", "round"))
    assert collection.count() == 0
    with caplog.at_level(logging.ERROR):
        assert add_chunks(collection, chunks("even", "odd", "round"), on_error="skip") == 2
    assert "chunk 'odd' cannot be embedded" in caplog.text
    asked = [body["input"] for body in server.asked("/v1/embeddings")]
    assert asked.count(["odd"]) == requests, "the embedder alone decides about retries"
    assert {match.content for match in search_chunks(collection, "anything").matches} == {"even", "round"}
    assert add_chunks(collection, chunks("odd too"), on_error="skip") == 0


def test_server_that_fails_for_a_plain_word_too_is_given_up(
    server: OddServer, connected: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    server.failure, server.odd = "hang", ""
    with refused(EmbeddingGenerationError):
        add_chunks(connected(), chunks(*map(str, range(50))), on_error="skip")
    assert "was left out" not in caplog.text
    assert len(server.asked("/v1/embeddings")) == 2


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("cause", [ModelConnectionError, ModelNotFoundError])
def test_missing_server_or_model_is_no_fault_of_a_chunk(
    connected: Connect, cause: type[Exception], on_error: Any
) -> None:
    missing = {"model": "other"} if cause is ModelNotFoundError else {"url": f"http://127.0.0.1:{refused_port()}"}
    with refused(EmbeddingGenerationError) as caught:
        add_chunks(connected(**missing), chunks("even", "round"), on_error=on_error)
    assert isinstance(caught.value.__cause__, cause)
