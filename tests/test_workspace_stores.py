"""Which store a workspace opens, and the whole library on a ChromaDB of either kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry import Workspace, open_workspace
from ragistry.config.resolve import resolve
from ragistry.errors import ConfigError, InvalidConfigError, StoreLockedError
from ragistry.evaluation import compare, read_library
from ragistry.testing.chroma_server import ChromaServer, chroma_server

OWN_STORE = "examples.own_store:DictStore"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    with chroma_server(tmp_path_factory.mktemp("server")) as running:
        yield running


def write(root: Path, stores: str = "", documents: str = "") -> Path:
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "vector_stores.yaml").write_text(stores, encoding="utf-8")
    (root / "config" / "documents.yaml").write_text(documents, encoding="utf-8")
    return root


def engine(workspace: Workspace) -> tuple[str, str]:
    """The class of the store, and the technique that is the default with it."""
    return type(workspace.store).__name__, workspace.registry.default


# Which one


@pytest.mark.parametrize(
    ("stores", "documents", "folder"),
    [
        ("store: {use: chroma}", "", ".ragistry/chroma"),
        ("store: {use: chroma, path: vectors}", "", "vectors"),
        ("store: {use: chroma, persist_directory: vectors}", "", "vectors"),
        ("chromadb: {persist_directory: vectors}", "", "vectors"),
        ("", "chroma_path: vectors", "vectors"),
        ("store: {use: chroma}", "chroma_path: vectors", "vectors"),
        ("chromadb: {persist_directory: vectors}", "chroma_path: vectors", "vectors"),
    ],
)
def test_a_chroma_folder_is_selected_in_every_file(tmp_path: Path, stores: str, documents: str, folder: str) -> None:
    with open_workspace(write(tmp_path, stores, documents)) as workspace:
        assert engine(workspace) == ("ChromaStore", "naive")
    assert (tmp_path / folder / "chroma.sqlite3").is_file()
    assert not (tmp_path / ".ragistry" / "store.db").exists()


def test_a_chroma_folder_is_selected_by_a_variable_or_an_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_workspace(tmp_path, chroma_path="one") as workspace:
        assert (engine(workspace)[0], workspace.origins["store"]) == ("ChromaStore", "argument")
    monkeypatch.setenv("RAGISTRY_CHROMA_PATH", "two")
    with open_workspace(tmp_path) as workspace:
        assert engine(workspace)[0] == "ChromaStore"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


@pytest.mark.parametrize(
    "stores",
    ["store: {{use: chroma, host: {host}, port: {port}}}", "chromadb: {{host: 'http://{host}:{port}'}}", ""],
    ids=["store", "chromadb", "environment"],
)
def test_a_chroma_server_is_selected_in_a_file_or_by_variables(
    tmp_path: Path, server: ChromaServer, monkeypatch: pytest.MonkeyPatch, stores: str
) -> None:
    if not stores:
        monkeypatch.setenv("CHROMA_HOST", server.host)
        monkeypatch.setenv("CHROMA_PORT", str(server.port))
    with open_workspace(write(tmp_path, stores.format(host=server.host, port=server.port))) as workspace:
        assert engine(workspace) == ("ChromaStore", "naive")
    assert not (tmp_path / ".ragistry").exists()


def test_the_local_store_is_the_default_and_takes_its_own_settings(tmp_path: Path) -> None:
    with open_workspace(tmp_path) as workspace:
        assert engine(workspace) == ("LocalStore", "hybrid")
    with open_workspace(write(tmp_path, "store: {use: local, lock_timeout: 0.1}")) as workspace:
        assert engine(workspace) == ("LocalStore", "hybrid")


def test_a_store_of_a_users_own_is_named_by_its_class(tmp_path: Path) -> None:
    with open_workspace(write(tmp_path, f"store: {{use: '{OWN_STORE}'}}")) as workspace:
        assert engine(workspace) == ("DictStore", "naive")
        workspace.library.create_collection("notes")
        workspace.library.ingest_text("Green tea is steeped.", "tea.txt", "notes")
        assert workspace.search("tea").documents[0].metadata["source_file"] == "tea.txt"


def test_a_store_gets_what_its_constructor_asks_for(tmp_path: Path) -> None:
    (tmp_path / "asking_store.py").write_text(
        "from examples.own_store import DictStore\n\n\nclass Asking(DictStore):\n"
        "    def __init__(self, *, folder, language, exclusive, collection, colour, size=3):\n"
        "        super().__init__()\n"
        "        self.given = folder.name, language, exclusive, collection, colour, size\n",
        encoding="utf-8",
    )
    write(tmp_path, "store:\n  use: asking_store:Asking\n  colour: red\n", "language: german\ncollection: mine\n")
    with open_workspace(tmp_path, exclusive=True, data_dir="data") as workspace:
        assert vars(workspace.store)["given"] == ("data", "german", True, "mine", "red", 3)
    write(tmp_path, "store:\n  use: asking_store:Asking\n  colur: red\n")
    with pytest.raises(InvalidConfigError) as caught:
        open_workspace(tmp_path)
    assert "vector_stores.yaml:3: store.colur: unknown setting 'colur'; did you mean 'colour'?" in str(caught.value)
    assert "vector_stores.yaml:2: store.colour: is missing" in str(caught.value)


@pytest.mark.parametrize(
    ("stores", "said"),
    [
        ("store: local", "1: store: must be a mapping such as {use: local}, got 'local'"),
        ("store: {path: x}", "1: store.use: is missing"),
        ("store: {use: chrma}", "1: store.use: unknown store 'chrma'; did you mean 'chroma'.*there are chroma, local"),
        ("store: {use: 'ragistry.types:Document'}", "1: store.use: .* is not a store .* lacks add_documents"),
        ("store: {use: 'nowhere:Store'}", "1: store.use: cannot load 'nowhere:Store': no module 'nowhere'"),
        ("store:\n  use: chroma\n  pth: x", "3: store.pth: unknown setting 'pth'; did you mean 'path'"),
        ("store:\n  use: chroma\n  port: 70000", "3: chroma_port: .* got 70000"),
        ("store:\n  use: chroma\n  batch_size: 0", "3: store.batch_size: .* got 0"),
        ("store: {use: local, path: x}", "1: store.path: unknown setting 'path'; there are lock_timeout"),
        ("store: {use: chroma, path: ''}", "1: chroma_path: .* at least 1 character"),
    ],
)  # fmt: skip
def test_a_bad_choice_is_refused_with_its_line(tmp_path: Path, stores: str, said: str) -> None:
    with pytest.raises(InvalidConfigError, match=f"vector_stores.yaml:{said}"):
        open_workspace(write(tmp_path, stores))


@pytest.mark.parametrize(
    ("stores", "documents", "said"),
    [
        (
            "store: {use: local}", "chroma_path: x",
            r"documents.yaml:1: chroma_path: 'x' selects the store 'chroma', but .*vector_stores.yaml:1 says 'local'",
        ),
        (
            "store: {use: local}\nchromadb: {host: 'user:hush@there'}", "",
            r"vector_stores.yaml:2: chroma_host: 'there' selects the store 'chroma', but .*:1 says 'local'",
        ),
        (
            "store: {use: chroma, path: x}\nchromadb: {persist_directory: y}", "",
            r"vector_stores.yaml:2: persist_directory: 'y', but .*vector_stores.yaml:1 says 'x' .*keep one",
        ),
        (
            "chromadb: {host: there}", "chroma_path: x",
            r"vector_stores.yaml:1: chroma_host: 'there', but .*documents.yaml:1 says chroma_path 'x'.*remove one",
        ),
    ],
)  # fmt: skip
def test_places_that_contradict_each_other_are_both_named(
    tmp_path: Path, stores: str, documents: str, said: str
) -> None:
    with pytest.raises(InvalidConfigError, match=said) as caught:
        open_workspace(write(tmp_path, stores, documents))
    assert "hush" not in str(caught.value)


def test_a_variable_overrides_the_store_of_a_file_and_all_that_belongs_to_it(tmp_path: Path) -> None:
    write(tmp_path, "store: {use: chroma, host: there, port: 9}")
    settings = resolve(tmp_path, environ={}).settings
    assert (settings.store, settings.chroma_host, settings.chroma_port) == ("chroma", "there", 9)
    settings = resolve(tmp_path, environ={"RAGISTRY_STORE": "local"}).settings
    assert (settings.store, settings.chroma_host, settings.chroma_port) == ("local", None, 8000)
    resolved = resolve(tmp_path, environ={"CHROMA_HOST": "elsewhere"})
    assert (resolved.settings.chroma_host, resolved.origins["chroma_host"]) == ("elsewhere", "environment CHROMA_HOST")


# The whole library


@pytest.fixture(params=["embedded", "served"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path, server: ChromaServer) -> Iterator[Workspace]:
    place = "" if request.param == "embedded" else f", host: {server.host}, port: {server.port}"
    write(tmp_path, f"store: {{use: chroma{place}}}", f"collection: c-{tmp_path.name}\n")
    with open_workspace(tmp_path) as opened:
        opened.library.create_collection("tea", "How tea is brewed")
        opened.library.create_collection("garden", "Soil, plants and weeds")
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "green.txt").write_text("Steep green tea in water of eighty degrees.", encoding="utf-8")
        (tmp_path / "in" / "black.txt").write_text("Black tea takes boiling water.", encoding="utf-8")
        (tmp_path / "soil.txt").write_text("Compost makes the soil of a garden loose.", encoding="utf-8")
        opened.library.ingest_folder(tmp_path / "in", "tea")
        opened.library.ingest_file(tmp_path / "soil.txt", "garden")
        yield opened


def where_found(workspace: Workspace, query: str, **options: str) -> tuple[str, str]:
    best = workspace.search(query, **options).documents[0].metadata
    return best["collection"], best["source_file"]


def test_ingest_updates_what_changed_and_deletes_what_is_gone(workspace: Workspace, tmp_path: Path) -> None:
    assert where_found(workspace, "how hot is the water for green tea") == ("tea", "green.txt")
    unchanged = workspace.library.ingest_folder(tmp_path / "in", "tea")
    assert len(unchanged.skipped) == 2
    (tmp_path / "in" / "green.txt").write_text("Matcha is whisked with a bamboo brush.", encoding="utf-8")
    changed = workspace.library.ingest_folder(tmp_path / "in", "tea")
    assert [len(changed.updated), len(changed.skipped)] == [1, 1]
    assert where_found(workspace, "bamboo brush") == ("tea", "green.txt")
    assert workspace.library.delete_source("green.txt", "tea") == 1
    assert workspace.library.list_sources("tea") == ["black.txt"]


def test_sources_and_collections_can_be_moved_renamed_and_deleted(workspace: Workspace) -> None:
    assert workspace.library.move_source("black.txt", "tea", "garden") == 1
    assert where_found(workspace, "boiling water for black tea") == ("garden", "black.txt")
    assert workspace.library.rename_collection("garden", "plot") == 2
    assert workspace.library.list_sources("plot") == ["black.txt", "soil.txt"]
    assert where_found(workspace, "compost", collection="plot") == ("plot", "soil.txt")
    assert workspace.library.delete_collection("plot") == 2
    assert workspace.library.count() == 1


def test_a_query_is_routed_to_a_collection(workspace: Workspace) -> None:
    assert where_found(workspace, "compost for soil", technique="routed") == ("garden", "soil.txt")
    for technique in ("mmr", "parent_document", "sentence_window"):
        assert where_found(workspace, "compost for soil", technique=technique) == ("garden", "soil.txt")


@pytest.mark.parametrize("technique", ["bm25", "hybrid"])
def test_a_technique_that_needs_words_says_so_in_one_line(workspace: Workspace, technique: str) -> None:
    with pytest.raises(ConfigError, match="does not search words.*use 'naive'.*store: {use: local}") as caught:
        workspace.search("tea", technique=technique)
    assert "\n" not in str(caught.value)


def test_techniques_are_compared_on_the_library(workspace: Workspace, tmp_path: Path) -> None:
    queries = [("green tea", "green.txt"), ("boiling black tea", "black.txt"), ("compost", "soil.txt")]
    lines = [json.dumps({"text": text, "sources": [source]}) for text, source in queries]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
    dataset = read_library(workspace, tmp_path / "queries.jsonl")
    found = compare(["naive", "mmr"], dataset, ["RR@10"], workspace=workspace).to_json()
    assert found["techniques"]["naive"]["measures"]["RR@10"]["mean"] == 1.0


def test_an_embedded_chroma_has_one_workspace_at_a_time(tmp_path: Path) -> None:
    from tests.stores.scripts import start

    holding = (
        "import sys, ragistry; w = ragistry.open_workspace(sys.argv[1], store='chroma'); w.store; "
        "print('open', flush=True); __import__('time').sleep(60)"
    )
    with start(holding, tmp_path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        write(tmp_path, "store: {use: chroma, lock_timeout: 0.1}")
        with open_workspace(tmp_path) as workspace, pytest.raises(StoreLockedError, match=f"process {other.pid}"):
            workspace.store.count()
        other.kill()
