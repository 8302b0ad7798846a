"""`ragistry store copy`: a library moves to another store, and the workspace goes on with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry.testing.chroma_server import ChromaServer
from ragistry.testing.postgres_server import PostgresServer
from tests.cli.conftest import Run
from tests.conftest import Corpus
from tests.messages import check_message


@pytest.fixture(autouse=True)
def _own_collection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The servers have other collections too."""
    monkeypatch.setenv("RAGISTRY_COLLECTION", f"c-{tmp_path.name}"[:50])


@pytest.fixture
def filled(filled: Run, corpus: Corpus) -> Run:
    """The command in a workspace with two sources, and the file of a third."""
    corpus({"rain.txt": "Rain fell.", "snow.txt": "Snow in May."}, folder=".")
    assert filled("ingest", "rain.txt").code == 0
    return filled


@pytest.fixture
def use(corpus: Corpus) -> Callable[[str], Path]:
    return lambda entry: corpus({"vector_stores.yaml": f"store: {entry}\n"}, folder="config")


def test_library_moves_to_chroma_and_back_without_a_model(filled: Run, use: Callable[[str], Path]) -> None:
    entry = "{use: chroma, path: other}"
    done = filled("store", "copy", "local", entry)
    assert done.code == 0
    check_message(done.out, "2 sources copied", "2 chunks compared", f"store: {entry}")
    check_message(done.err, "bm25")
    use(entry)
    assert filled("search", "tea", "-t", "naive", "--json").json["documents"][0]["metadata"]["source_file"] == "tea.txt"
    ingested = filled("ingest", "tea.txt", "rain.txt", "snow.txt", "--json").json
    assert (sorted(ingested["skipped"]), ingested["added"]) == (["rain.txt", "tea.txt"], ["snow.txt"])
    back = filled("store", "copy", "chroma", "local", "--json").json
    assert back == {"copied": 1, "skipped": 2, "removed": 0, "chunks": 3, "differences": []}
    use("{use: local}")
    assert filled("search", "snow", "-t", "bm25", "--json").json["total_results"] == 1
    assert filled("verify").out == "no problems found\n"


def test_address_in_a_variable_is_not_shown(filled: Run, chroma: ChromaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", chroma.url)
    done = filled("store", "copy", "local", '{use: chroma, host: "${PLACE}"}')
    assert done.code == 0, done.err
    assert 'store: {use: chroma, host: "${PLACE}"}' in done.out
    assert str(chroma.port) not in done.out + done.err


def test_library_moves_to_postgres_and_back(
    filled: Run, postgres: PostgresServer, use: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = '{use: postgres, url: "${DATABASE_URL}"}'
    monkeypatch.setenv("DATABASE_URL", postgres.url)
    done = filled("store", "copy", "local", entry)
    assert (done.code, done.err) == (0, "")
    check_message(done.out, f"`store: {entry}`")
    use(entry)
    for technique in ("naive", "bm25", "hybrid"):
        [first, *_] = filled("search", "tea", "-t", technique, "--json").json["documents"]
        assert first["metadata"]["source_file"] == "tea.txt"
    assert filled("ingest", "snow.txt", "tea.txt", "--collection", "notes", "--json").json["skipped"]
    assert filled("backup", "all.zip").code == 0
    assert filled("store", "copy", "postgres", "local", "--json").json["copied"] == 1
    check_message(filled("restore", "all.zip", "new").err, "`ragistry store copy local postgres -w new`")
    assert filled("store", "copy", "local", "postgres", "-w", "new", "--json").json["skipped"] == 3
    monkeypatch.delenv("DATABASE_URL")
    filled("search", "tea").refused(1, "'DATABASE_URL'")
    use("{use: local}")
    assert filled("search", "snow", "-t", "bm25", "--json").json["total_results"] == 1


def test_difference_is_reported_with_exit_code_1(filled: Run) -> None:
    filled("store", "copy", "local", "chroma")
    filled("sources", "delete", "rain.txt", "--collection", "notes", "--yes")
    done = filled("store", "copy", "local", "chroma")
    assert done.code == 1
    check_message(done.err, "notes/rain.txt")
    check_message(done.out, "0 sources copied", "1 difference")
    assert filled("store", "copy", "local", "chroma", "--prune", "--json").json["removed"] == 1
