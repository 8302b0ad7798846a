"""`ragistry store copy`: a library moves to another store, and the workspace goes on with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

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


@pytest.fixture
def places(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Places of a store of each kind: a folder, and the addresses of servers."""
    return {"FOLDER": str(tmp_path / "other")} | {
        name: request.getfixturevalue(name).url for name in ("postgres", "chroma")
    }


@pytest.mark.parametrize(
    ("entry", "place", "lost"),
    [
        ('{use: chroma, path: "${PLACE}"}', "FOLDER", "bm25"),
        ('{use: chroma, host: "${PLACE}"}', "chroma", "bm25"),
        ('{use: postgres, url: "${PLACE}"}', "postgres", ""),
    ],
)
def test_library_moves_to_another_store_and_back_without_a_model(
    filled: Run, use: Callable[[str], Path], places: dict[str, str], monkeypatch: pytest.MonkeyPatch,
    entry: str, place: str, lost: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("PLACE", places[place])
    done = filled("store", "copy", "local", entry)
    assert done.code == 0, done.err
    check_message(done.out, "2 sources copied", "2 chunks compared", f"store: {entry}")
    assert places[place] not in done.out + done.err, "what a variable says is not shown"
    assert (lost in done.err, bool(done.err)) == (True, bool(lost))
    kind = use(entry) and entry[6:].partition(",")[0]
    for technique in ("naive", "bm25", "hybrid")[: 1 if lost else 3]:
        [first, *_] = filled("search", "tea", "-t", technique, "--json").json["documents"]
        assert first["metadata"]["source_file"] == "tea.txt"
    ingested = filled("ingest", "tea.txt", "rain.txt", "snow.txt", "--collection", "notes", "--json").json
    assert (sorted(ingested["skipped"]), ingested["added"]) == (["rain.txt", "tea.txt"], ["snow.txt"])
    back = filled("store", "copy", kind, "local", "--json").json
    assert back == {"copied": 1, "skipped": 2, "removed": 0, "chunks": 3, "differences": []}
    assert filled("backup", "all.zip").code == 0
    check_message(filled("restore", "all.zip", "new").err, f"`ragistry store copy local {kind} -w new`")
    assert filled("store", "copy", "local", kind, "-w", "new", "--json").json["skipped"] == 3
    monkeypatch.delenv("PLACE")
    filled("search", "tea").refused(1, "'PLACE'")
    use("{use: local}")
    assert filled("search", "snow", "-t", "bm25", "--json").json["total_results"] == 1
    assert filled("verify").out == "no problems found\n"


def test_difference_is_reported_with_exit_code_1(filled: Run) -> None:
    filled("store", "copy", "local", "chroma")
    filled("sources", "delete", "rain.txt", "--collection", "notes", "--yes")
    done = filled("store", "copy", "local", "chroma")
    assert done.code == 1
    check_message(done.err, "notes/rain.txt")
    check_message(done.out, "0 sources copied", "1 difference")
    assert filled("store", "copy", "local", "chroma", "--prune", "--json").json["removed"] == 1
