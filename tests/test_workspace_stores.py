"""Which store a workspace opens: chosen in each file, by a variable or an argument, and refused with its line."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragistry import Workspace, open_workspace
from ragistry.config.resolve import resolve
from ragistry.config.settings import DEFAULTS
from ragistry.errors import InvalidConfigError, StoreLockedError
from ragistry.evaluation import compare, read_library
from ragistry.stores.local import LocalStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.hybrid import HybridTechnique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import EmbeddedChunk
from tests.chroma_server import ChromaServer
from tests.conftest import write_config
from tests.messages import refused
from tests.pages import blocks
from tests.stores.scripts import run, start

STORES = Path(__file__).parents[1] / "docs" / "howto" / "store.md"


def write(root: Path, stores: str = "", documents: str = "", **others: str) -> Path:
    return write_config(root, vector_stores=stores, documents=documents, **others)


def engine(workspace: Workspace) -> tuple[str, str | None]:
    """The class of the store, and the technique that the default stands on with it."""
    return type(workspace.store).__name__, workspace.registry.default


CHROMA_FOLDERS = [
    ("store: {use: chroma}", "", ".ragistry/chroma"),
    ("store: {use: chroma, path: vectors}", "", "vectors"),
    ("store: {use: chroma, persist_directory: vectors}", "", "vectors"),
    ("chromadb: {persist_directory: vectors}", "", "vectors"),
    ("store: {use: chroma}", "chroma_path: vectors", "vectors"),
    ("chromadb: {persist_directory: vectors}", "chroma_path: vectors", "vectors"),
    ("", "chroma_path: vectors", "vectors"),
]


def test_a_chroma_folder_is_selected_in_every_file(tmp_path: Path) -> None:
    for stores, documents, folder in CHROMA_FOLDERS:
        settings = resolve(write(tmp_path, stores, documents), environ={}).settings
        assert (settings.store, settings.chroma_path) == ("chroma", None if folder.startswith(".") else folder)


@pytest.mark.parametrize(("stores", "documents", "folder"), [CHROMA_FOLDERS[0], CHROMA_FOLDERS[-1]])
def test_a_chroma_folder_is_opened(tmp_path: Path, stores: str, documents: str, folder: str) -> None:
    with open_workspace(write(tmp_path, stores, documents)) as workspace:
        assert engine(workspace) == ("ChromaStore", "naive")
    assert (tmp_path / folder / "chroma.sqlite3").is_file()
    assert not (tmp_path / ".ragistry" / "store.db").exists()


def test_variable_or_argument_selects_a_store(
    tmp_path: Path, chroma: ChromaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_workspace(tmp_path, chroma_path="one") as workspace:
        assert (engine(workspace)[0], workspace.origins["store"]) == ("ChromaStore", "argument")
    monkeypatch.setenv("CHROMA_HOST", chroma.url)
    with open_workspace(tmp_path) as workspace:
        assert engine(workspace) == ("ChromaStore", "naive")
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_a_variable_overrides_the_server_of_a_file_and_all_that_belongs_to_it(tmp_path: Path) -> None:
    for stores in ("chromadb: {host: 'http://there:9'}", "store: {use: chroma, host: 'http://there:9'}"):
        settings = resolve(write(tmp_path, stores), environ={}).settings
        assert (settings.store, settings.chroma_host) == ("chroma", "http://there:9")
        resolved = resolve(tmp_path, environ={"CHROMA_HOST": "http://elsewhere"})
        assert resolved.settings.chroma_host == "http://elsewhere"
        assert resolved.origins["chroma_host"] == "environment CHROMA_HOST"
    settings = resolve(tmp_path, environ={"RAGISTRY_STORE": "local"}).settings
    assert (settings.store, settings.chroma_host) == ("local", None)


def test_a_port_in_a_variable_of_its_own_is_refused(tmp_path: Path) -> None:
    with refused(InvalidConfigError, "CHROMA_PORT", "http://HOST:PORT"):
        resolve(tmp_path, environ={"CHROMA_HOST": "http://there", "CHROMA_PORT": "9"})
    assert resolve(tmp_path, environ={"CHROMA_PORT": "9"}).settings.store == "local"


@pytest.mark.parametrize(("stores", "expected"), [
    ("", ("LocalStore", "hybrid")),
    ("store: {use: local, lock_timeout: 0.1}", ("LocalStore", "hybrid")),
    ("store: {use: 'examples.own_store:DictStore'}", ("DictStore", "naive")),
])  # fmt: skip
def test_a_store_is_named_by_its_class_or_is_the_local_one(
    tmp_path: Path, stores: str, expected: tuple[str, str]
) -> None:
    with open_workspace(write(tmp_path, stores)) as workspace:
        assert engine(workspace) == expected
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
    with refused(InvalidConfigError, "vector_stores.yaml:3: store.colur", "vector_stores.yaml:2: store.colour"):
        open_workspace(tmp_path)


@pytest.mark.parametrize(("parameters", "keys", "place"), [
    ("size: int = 3", "size: many", "3: store.size:"),
    ("size: int", "", "2: store.size:"),
    ("size: 'list[int]' = ()", "size: [1, x]", "3: store.size.1:"),
    ("**more", "anything: [1]", ""),
    ("size: 'Unknown' = 3", "size: many", ""),  # an annotation for type checkers only
])  # fmt: skip
def test_arguments_of_a_store_are_checked_by_its_annotations(
    tmp_path: Path, parameters: str, keys: str, place: str
) -> None:
    module = f"checked_store_{len(parameters)}"
    (tmp_path / f"{module}.py").write_text(
        f"from examples.own_store import DictStore\n\n\nclass Typed(DictStore):\n"
        f"    def __init__(self, {'' if parameters[0] == '*' else '*, '}{parameters}):\n        super().__init__()\n",
        encoding="utf-8",
    )
    write(tmp_path, f"store:\n  use: {module}:Typed\n  {keys}\n")
    if not place:
        open_workspace(tmp_path).close()
        return
    with refused(InvalidConfigError, f"vector_stores.yaml:{place}"):
        open_workspace(tmp_path)


HUSH = "postgresql://a:hush@b"


@pytest.mark.parametrize(("stores", "documents", "named"), [
    ("store: {path: x}", "", ["1: store.use:"]),
    ("store: {use: chrma}", "", ["1: store.use:"]),
    ("store: {use: 'ragistry.types:Document'}", "", ["1: store.use:"]),
    ("store: {use: 'nowhere:Store'}", "", ["1: store.use:"]),
    ("store: {use: local, path: x}", "", ["1: store.path:"]),
    ("store: {use: chroma, path: ''}", "", ["1: chroma_path:"]),
    ("store:\n  use: chroma\n  pth: x", "", ["3: store.pth:"]),
    ("store:\n  use: chroma\n  host: there:9", "", ["3: chroma_host:"]),
    ("chromadb:\n  host: http://there\n  ssl: true", "", ["3: chromadb.ssl: 'ssl' is part of the address"]),
    ("store: {use: postgres}", "", ["1: store.url:"]),
    (f"store:\n  use: postgres\n  url: '{HUSH}'\n  conections: 3\n  timeout: 0", "", ["4: store.conections:", "5: "]),
    ("store:\n  use: chroma\n  host: box\n  port: 9\n  ssl: true\n  timeout: no", "",
     ["3: chroma_host: the address 'box' has no scheme; write http://HOST:PORT", "4: store.port:", "5: ", "6: "]),
    ("chromadb:\n  host: box\n  port: 9\nstore:\n  use: chroma\n  batch_size: 0", "", ["2: ", "3: ", "6: store.ba"]),
    ("store:\n  use: postgres\n  url: '${NOT_SET}'\n  timeout: 0\nmore: 1", "", ["3: ", "4: ", "5: "]),
    ("store: local\narchives: {}\nchromadb:\n  port: 9\n  timeout: 0", "", ["1: store:", "2: ", "4: ", "5: "]),
    ("store:\n  use: nowhere", "embed_model: nope\nreaders: {.x: 1}", ["2: ", "documents.yaml:1: ", "ts.yaml:2: "]),
    ("store:\n  use: local\n  path: x", "chunk_overlap: 9000\nembed_model: tei", ["3: ", "ts.yaml:1: ", "ts.yaml:2: "]),
    ("store: {use: local}", "chroma_path: x", ["1", "documents.yaml:1: chroma_path: 'x'"]),
    ("store: {use: local}\nchromadb: {host: 'http://user:hush@there'}", "", ["2: chroma_host: 'http://there'"]),
    ("store: {use: chroma, path: x}\nchromadb: {persist_directory: y}", "", ["2: persist_directory: 'y'", "'x'"]),
    ("chromadb: {host: 'http://there'}", "chroma_path: x", ["1: chroma_host: 'http://there'", "documents.yaml:1"]),
])  # fmt: skip
def test_every_error_of_the_files_is_reported_at_its_line(
    tmp_path: Path, stores: str, documents: str, named: list[str]
) -> None:
    """``named``: in vector_stores.yaml, or where it says so; `refused` compares the other lines too."""
    named = [part if ".yaml" in part or part[0] == "'" else f"vector_stores.yaml:{part}" for part in named]
    with refused(InvalidConfigError, *named) as caught:
        open_workspace(write(tmp_path, stores, documents))
    assert "hush" not in str(caught.value)


WITHOUT_PACKAGE = """
import sys
sys.modules[sys.argv[1]] = None
import ragistry
try:
    with ragistry.open_workspace(sys.argv[2]) as workspace:
        workspace.targets
except ragistry.errors.ConfigError as error:
    print(error)
"""
ARCHIVE = "archives: [{name: a, collection_name: letters, embedding_model: m}]"


@pytest.mark.parametrize(("package", "extra", "stores", "documents", "place"), [
    ("psycopg", "postgres", "store: {use: postgres, url: 'postgresql://a'}", "", "vector_stores.yaml:1"),
    ("chromadb", "chroma", "store: {use: chroma}", "", "vector_stores.yaml:1"),
    ("chromadb", "chroma", "chromadb: {persist_directory: x}", "", "vector_stores.yaml:1"),
    ("chromadb", "chroma", "chromadb: {host: 'http://there'}", "", "vector_stores.yaml:1"),
    ("chromadb", "chroma", "", "chroma_path: x", "documents.yaml:1"),
    ("chromadb", "chroma", ARCHIVE, "", ""),
])  # fmt: skip
def test_without_the_extra_of_a_store_says_what_to_install(
    tmp_path: Path, package: str, extra: str, stores: str, documents: str, place: str
) -> None:
    write(tmp_path, stores, documents)
    message = run(WITHOUT_PACKAGE, package, tmp_path)
    assert place in message
    assert f"[{extra}]'" in message.partition("pip install")[2]
    assert message.count("\n") == 1


def test_an_embedded_chroma_has_one_workspace_at_a_time(tmp_path: Path) -> None:
    holding = (
        "import sys, ragistry; w = ragistry.open_workspace(sys.argv[1], store='chroma'); w.store; "
        "print('open', flush=True); sys.stdin.read()"
    )
    with start(holding, tmp_path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        write(tmp_path, "store: {use: chroma, lock_timeout: 0.1}")
        with open_workspace(tmp_path) as workspace, pytest.raises(StoreLockedError, match=f"process {other.pid}"):
            workspace.store.count()
        other.kill()


@pytest.mark.parametrize("workspace", ["postgres", "chroma"], indirect=True)
def test_techniques_are_compared_on_a_store_of_a_server(workspace: Workspace, tmp_path: Path) -> None:
    texts = {"green": "Steep green tea in hot water.", "black": "Boiling water for black tea.", "soil": "Compost."}
    for name, text in texts.items():
        workspace.library.ingest_text(text, name, "notes")
    lines = [json.dumps({"text": text, "sources": [name]}) for name, text in texts.items()]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
    dataset = read_library(workspace, tmp_path / "queries.jsonl")
    other = "hybrid" if "text" in workspace.store.abilities else "parent_document"
    report = compare(["naive", other], dataset, ["RR@10"], workspace=workspace).to_json()
    assert {name: report["techniques"][name]["measures"]["RR@10"]["mean"] for name in ("naive", other)} == {
        "naive": 1.0, other: 1.0,
    }  # fmt: skip


MODELS = """
def generate(prompt):
    return "Green tea is steeped."

def rerank(query, texts):
    return [float(len(text)) for text in texts]
"""
AUDITED = "store: {use: 'audited_store:AuditedStore', log: '%s', lock_timeout: 0.5}"


def test_every_technique_calls_a_wrapped_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragistry.workspace.choose_embedder", lambda *_, **__: HashingEmbedder(64))
    log, root = tmp_path / "found.txt", write(tmp_path, AUDITED % (tmp_path / "found.txt"), "language: german")
    sparse = '  sparse: {use: learned_sparse, encoder: "ragistry.testing.sparse:WordCounts"}\n'
    techniques = (DEFAULTS / "techniques.yaml").read_text(encoding="utf-8")
    (root / "config" / "techniques.yaml").write_text(techniques + sparse, encoding="utf-8")
    models = "generators: {one: {use: 'wrapped_models:generate'}}\nrerankers: {one: {use: 'wrapped_models:rerank'}}\n"
    (root / "config" / "models.yaml").write_text(models, encoding="utf-8")
    (root / "wrapped_models.py").write_text(MODELS, encoding="utf-8")
    [manual] = [block for block in blocks(STORES) if block.title == "audited_store.py"]
    (root / "audited_store.py").write_text(manual.text, encoding="utf-8")

    def found(workspace: Workspace, name: str) -> list[tuple[str, float]]:
        result = workspace.search("green tea in cup 3", name, top_k=4)
        return [(one.metadata["source_file"], round(one.score, 6)) for one in result.documents]

    with open_workspace(root) as workspace:
        for collection in ("notes", "cups"):
            workspace.library.create_collection(collection)
            for number in range(9):
                workspace.library.ingest_text(f"Green tea in cup {number}.", f"{collection}{number}", collection)
        assert workspace.store._words.language == "german"
        wrapped = {}
        for name in workspace.registry.names():
            log.write_text("", encoding="utf-8")
            wrapped[name] = found(workspace, name)
            assert {source for source, _ in wrapped[name]} <= {*log.read_text(encoding="utf-8").split()}, name
        assert len(wrapped) > 14
        assert all(wrapped.values())
    (root / "config" / "vector_stores.yaml").unlink()
    with open_workspace(root) as workspace:
        assert {name: found(workspace, name) for name in wrapped} == wrapped


WRAPPERS = """
from ragistry.stores.local import LocalStore
from examples.own_store import DictStore

class Passing:
    abilities = LocalStore.abilities

    def __init__(self, folder):
        self.store = LocalStore(folder)

    def __getattr__(self, name):
        return getattr(self.store, name)

    def search(self, query_vector, top_k=10, *, where=None):
        return []

class Copied(DictStore):
    abilities = LocalStore.abilities

class Logging(LocalStore):
    def __init__(self, *, log="", **options):
        super().__init__(**options)
"""


@pytest.mark.parametrize(("store", "named"), [
    ("{use: 'wrong_wrappers:Passing'}", ("search_text", "move_source", "subclass a store")),
    ("{use: 'wrong_wrappers:Copied'}", ("lacks add_vectors, begin_vectors, fit, lacking_vectors,", "WordsFirstStore")),
    ("{use: 'wrong_wrappers:Logging', lgo: x}", ("store.lgo", "log")),
    ("{use: 'wrong_wrappers:Logging', lock_timeout: -1}", ("store.lock_timeout",)),
])  # fmt: skip
def test_wrong_wrappers_are_refused(tmp_path: Path, store: str, named: tuple[str, ...]) -> None:
    (tmp_path / "wrong_wrappers.py").write_text(WRAPPERS, encoding="utf-8")
    with refused(InvalidConfigError, "vector_stores.yaml:1: store", *named):
        open_workspace(write(tmp_path, f"store: {store}"))


@pytest.mark.parametrize("wrap", ["__getattr__", "attribute"])
def test_a_technique_calls_the_search_of_what_it_is_given(tmp_path: Path, wrap: str) -> None:
    space: dict[str, Any] = {}
    exec(WRAPPERS, space)
    with closing(LocalStore(tmp_path)) as store:
        store.add_documents([EmbeddedChunk("Green tea", {}, HashingEmbedder(8).embed(["tea"])[0])])
        given: Any = store
        if wrap == "attribute":
            store.search = lambda *_, **__: []  # type: ignore[method-assign]
        else:
            given = space["Passing"](tmp_path)
        assert NaiveRAGTechnique({}, store=given, embedder=HashingEmbedder(8)).retrieve("tea") == []
        hybrid = HybridTechnique({}, bases=[
            NaiveRAGTechnique({}, store=given, embedder=HashingEmbedder(8)), BM25Technique({}, store=given),
        ])  # fmt: skip
        [found] = hybrid.retrieve("tea")
        assert [one.stage for one in found.scores] == ["bm25", "hybrid"]
        given.close()
