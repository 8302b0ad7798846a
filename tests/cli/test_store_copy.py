"""`ragistry store copy`: a library moves to another store, and the workspace goes on with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry.testing.chroma_server import chroma_server
from ragistry.testing.postgres_server import postgres_server
from tests.cli.conftest import Done

Run = Callable[..., Done]


@pytest.fixture
def filled(ragistry: Run, tmp_path: Path) -> Run:
    for name, text in {"tea.txt": "Steep green tea in water of eighty degrees.", "rain.txt": "Rain fell."}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert ragistry("ingest", "tea.txt", "rain.txt", "--collection", "notes").code == 0
    return ragistry


def use(tmp_path: Path, entry: str) -> None:
    (tmp_path / "config" / "vector_stores.yaml").write_text(f"store: {entry}\n", encoding="utf-8")


def test_a_library_moves_to_chroma_and_back_without_a_model(filled: Run, tmp_path: Path) -> None:
    done = filled("store", "copy", "local", "{use: chroma, path: other}")
    assert (done.code, done.out) == (
        0,
        "2 sources copied, 0 equal already: 2 chunks compared, both sides are equal\n"
        "to use it: set `store: {use: chroma, path: other}` in config/vector_stores.yaml "
        "(the store is 'local' now, by default)\n",
    )
    assert done.err == "note: that store does not search words: techniques such as bm25 and hybrid need another\n"
    use(tmp_path, "{use: chroma, path: other}")
    assert filled("search", "tea", "-t", "naive", "--json").json["documents"][0]["metadata"]["source_file"] == "tea.txt"
    assert filled("ingest", "tea.txt", "rain.txt", "--collection", "notes", "--json").json["skipped"]
    (tmp_path / "snow.txt").write_text("Snow in May.", encoding="utf-8")
    assert filled("ingest", "snow.txt", "--collection", "notes").code == 0
    back = filled("store", "copy", "chroma", "local", "--json").json
    assert back == {"copied": 1, "skipped": 2, "removed": 0, "chunks": 3, "differences": []}
    use(tmp_path, "{use: local}")
    assert filled("search", "snow", "-t", "bm25", "--json").json["total_results"] == 1
    assert filled("verify").out == "all is well\n"


def test_a_server_is_named_by_a_variable_that_no_message_shows(
    filled: Run, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with chroma_server(tmp_path_factory.mktemp("server")) as server:
        monkeypatch.setenv("PLACE", f"http://{server.host}:{server.port}")
        done = filled("store", "copy", "local", '{use: chroma, host: "${PLACE}"}')
    assert done.code == 0, done.err
    assert 'store: {use: chroma, host: "${PLACE}"}' in done.out
    assert str(server.port) not in done.out + done.err


def test_a_library_moves_to_postgres_and_back(filled: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = '{use: postgres, url: "${DATABASE_URL}"}'
    with postgres_server() as server:
        monkeypatch.setenv("DATABASE_URL", server.url)
        done = filled("store", "copy", "local", entry)
        assert (done.code, done.err) == (0, ""), done.err
        assert f"set `store: {entry}` in config/vector_stores.yaml" in done.out
        use(tmp_path, entry)
        for technique in ("naive", "bm25", "hybrid"):
            assert (
                filled("search", "tea", "-t", technique, "--json").json["documents"][0]["content"].startswith("Steep")
            )
        (tmp_path / "snow.txt").write_text("Snow in May.", encoding="utf-8")
        assert filled("ingest", "snow.txt", "tea.txt", "--collection", "notes", "--json").json["skipped"]
        assert filled("backup", "all.zip").code == 0
        assert filled("store", "copy", "postgres", "local", "--json").json["copied"] == 1
        assert "`ragistry store copy local postgres -w new`" in filled("restore", "all.zip", "new").err
        assert filled("store", "copy", "local", "postgres", "-w", "new", "--json").json["skipped"] == 3
        monkeypatch.delenv("DATABASE_URL")
        assert "'DATABASE_URL' is not set" in filled("search", "tea").err
    use(tmp_path, "{use: local}")
    assert filled("search", "snow", "-t", "bm25", "--json").json["total_results"] == 1


def test_a_difference_is_told_and_ends_with_1(filled: Run) -> None:
    filled("store", "copy", "local", "chroma")
    filled("sources", "delete", "rain.txt", "--collection", "notes", "--yes")
    done = filled("store", "copy", "local", "chroma")
    assert done.code == 1
    assert "differs: notes/rain.txt: only in the copy\n" in done.err
    assert "0 sources copied, 1 equal already: 1 chunk compared, 1 difference\n" in done.out
    assert filled("store", "copy", "local", "chroma", "--prune", "--json").json["removed"] == 1


BAD: dict[str, tuple[str, str, str]] = {
    "one store twice": ("local", "{use: local}", "FROM and TO are the same store"),
    "an empty one": ("chroma", "local", "the store FROM, 'chroma', is empty"),
    "no store": ("nowhere", "local", "FROM: store.use:"),
    "a list": ("local", "[local]", "TO is not a store: '[local]'"),
    "no YAML": ("local", "{use: ", "TO is not a store"),
    "nothing": ("local", "", "TO is not a store"),
    "an unknown key": ("local", "{use: chroma, pfad: x}", "TO: store.pfad:"),
    "an unset variable": ("local", "{use: chroma, path: '${NO_SUCH}'}", "variable 'NO_SUCH' is not set"),
    "a password": ("local", "{use: chroma, host: 'http://bob:hunter2@h'}", "TO has a password in it"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_store_gets_one_line(filled: Run, case: str) -> None:
    source, target, said = BAD[case]
    done = filled("store", "copy", source, target)
    assert done.code == 1
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert "hunter2" not in done.err


def test_a_folder_that_is_no_workspace_is_refused(ragistry: Run) -> None:
    assert ragistry("store", "copy", "local", "chroma").code == 1
