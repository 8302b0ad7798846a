"""Fixtures for all tests: a workspace behind every door, files to ingest, servers, and real data."""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from filelock import FileLock

if TYPE_CHECKING:
    from ragistry import RemoteWorkspace, Workspace
    from ragistry.library.service import DocumentService
    from tests.chroma_server import ChromaServer
    from tests.postgres_server import PostgresServer

pytest_plugins = ["tests.leaks", "tests.messages", "tests.signals", "tests.skips", "tests.smoke"]
ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("RAGISTRY_DATA", ROOT.parent / "shared" / "data"))
Corpus = Callable[..., Path]
MEMORY = Path("/dev/shm")
if (
    "TMPDIR" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > 4 * 2**30
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC  # some tests start programs that they write
):
    # Stores force each write to the disk, and waiting for that takes as long as the tests themselves.
    os.environ["TMPDIR"], tempfile.tempdir = str(MEMORY), None
_FULL = bool(os.environ.get("RAGISTRY_FULL"))


def full_run() -> bool:
    """Whether crash, damage and load tests run in full, as `make bench` asks with RAGISTRY_FULL=1, or a sample."""
    return _FULL


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The project's own documents."""
    return ROOT / "fixtures"


@pytest.fixture(scope="session")
def data() -> Path:
    """Real corpora; a test that needs them is skipped where they are absent."""
    from tests import skips

    if not DATA.is_dir():
        pytest.skip(skips.DATA)
    return DATA


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the person who runs the tests do not decide how they end."""
    for name in list(os.environ):
        if name.startswith(("RAGISTRY_", "CHROMA_", "OLLAMA_", "DOCPROC_", "RAG_")):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _no_modules_of_other_tests() -> Iterator[None]:
    """Python keeps one module per name: forget the files that a test wrote."""
    yield
    folder = tempfile.gettempdir()
    sys.path[:] = [path for path in sys.path if not path.startswith(folder)]
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(folder):
            del sys.modules[name]


@pytest.fixture(scope="session", autouse=True)
def _model() -> Iterator[None]:
    """Keep the embedding model, its tokenizer and the planes of sketches, which each workspace would make again.

    Clients of model servers wait next to nothing between their attempts.
    """
    from ragistry.models import http, minilm
    from ragistry.stores.local import vectors

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(http, "BACKOFF", 0.001)
        for module, name in ((minilm, "load_tokenizer"), (vectors, "planes_of")):
            patched.setattr(module, name, cache(getattr(module, name)))
        kept = minilm.shared_session()
        yield
        del kept


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Write files into a folder and return the folder: ``corpus({"a.md": "..."}, folder="documents")``."""

    def write(files: Mapping[str, str | bytes], folder: str | Path = "documents") -> Path:
        for name, content in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / folder

    return write


def write_config(root: Path, **files: str) -> Path:
    """Write files of the configuration of a workspace: ``write_config(root, documents="n_results: 3")``."""
    (root / "config").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / "config" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return root


def write_settled(path: Path, text: str) -> None:
    """Write a file with the time of a minute ago; a mistake in a newer one may be half of what an editor is saving."""
    path.write_text(text, encoding="utf-8")
    minute_ago = path.stat().st_mtime - 60
    os.utime(path, (minute_ago, minute_ago))


SERVERS = pytest.StashKey[tuple[ExitStack, IO[str]]]()
"""The servers that a worker started, and a file that each worker locks while it uses servers of the run."""


def _of_the_run(request: pytest.FixtureRequest, name: str, start: Callable[[Path], AbstractContextManager[Any]]) -> Any:
    """Return the server of all workers; the one that started it stops it when no other can use it any more."""
    config, folder = request.config, request.getfixturevalue("tmp_path_factory").getbasetemp()
    folder = folder.parent if hasattr(config, "workerinput") else folder
    if SERVERS not in config.stash:
        stack = ExitStack()
        users = stack.enter_context((folder / "users").open("w"))
        fcntl.flock(users, fcntl.LOCK_SH)
        config.stash[SERVERS] = stack, users
        config.add_cleanup(stack.close)  # after the last test, whose limit of time does not count
    stack, users = config.stash[SERVERS]
    known = folder / f"{name}.server"
    with FileLock(f"{known}.lock"):
        if not known.exists():
            server = stack.enter_context(start(folder / name))
            known.write_bytes(pickle.dumps(replace(server, process=None)))  # no test may end it
            stack.callback(known.unlink, missing_ok=True)  # pytest may have removed it
            stack.callback(fcntl.flock, users, fcntl.LOCK_EX)  # waits for the others; gives up the own lock meanwhile
        return pickle.loads(known.read_bytes())


@pytest.fixture(scope="session")
def chroma(request: pytest.FixtureRequest) -> ChromaServer:
    """One ChromaDB server for all tests of a run; each test uses a collection of its own."""
    from tests.chroma_server import chroma_server

    return _of_the_run(request, "chroma", chroma_server)


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> PostgresServer:
    """One Postgres server for all tests of a run; each test uses a schema of its own and ends no connections."""
    from tests.postgres_server import postgres_server

    return _of_the_run(request, "postgres", lambda _: postgres_server())


everywhere = pytest.mark.parametrize("workspace", ["local", "client", "postgres", "chroma"], indirect=True)
"""Run a test of a workspace on every store, and through a client to a server."""


@pytest.fixture
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Workspace | RemoteWorkspace]:
    """An empty workspace with the collection ``notes``: on the local store, or as `everywhere` says."""
    from ragistry import connect, open_workspace

    kind = getattr(request, "param", "local")
    root = tmp_path / "workspace"
    root.mkdir()
    stores = {}
    if kind == "postgres":
        stores = {"use": "postgres", "url": request.getfixturevalue("postgres").url}
    elif kind == "chroma":
        server = request.getfixturevalue("chroma")
        stores = {"use": "chroma", "host": server.url}
    if stores:
        (root / "config").mkdir()
        (root / "config" / "vector_stores.yaml").write_text(f"store: {stores}\n", encoding="utf-8")
        (root / "config" / "documents.yaml").write_text(f"collection: c{uuid4().hex}\n", encoding="utf-8")
    with ExitStack() as stack:
        opened: Workspace | RemoteWorkspace = stack.enter_context(open_workspace(root))
        if kind == "client":
            from tests.serving import served

            opened = stack.enter_context(connect(stack.enter_context(served(opened))))
        opened.library.create_collection("notes", "Notes about everything")
        yield opened


@pytest.fixture
def library(workspace: Workspace) -> DocumentService:
    """The library of `workspace`."""
    return workspace.library
