"""Each optional part of the package can be taken away: the rest ingests, searches and compares without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Corpus
from tests.messages import check_message
from tests.stores.scripts import ROOT, run

CORE_READERS = frozenset(
    ["blocks", "encoding", "extract", "extracted", "formats", "front_matter", "line_numbers", "markdown", "text_files"]
)
"""The modules of `ragistry.readers` that read text and Markdown."""
ROOMS = {
    "readers": [path.stem for path in sorted((ROOT / "ragistry" / "readers").glob("*.py"))],
    "chroma": ["ragistry.stores.chroma", "chromadb"],
    "postgres": ["ragistry.stores.postgres", "psycopg"],
    "ray": ["ragistry.engines.ray", "ray"],
    "archives": ["ragistry.library.remote", "ragistry.tools.archives", "ragistry.tools.archive_search"],
    "doors": [f"ragistry.{name}" for name in ("web", "server", "http", "mcp", "client")],
}
ROOMS["readers"] = [f"ragistry.readers.{name}" for name in ROOMS["readers"] if name not in {"__init__", *CORE_READERS}]
WALL = """
import importlib.metadata, sys

rooms = sys.argv[2].split()

class Wall:
    def find_spec(self, name, path=None, target=None):
        if any(name == room or name.startswith(f"{room}.") for room in rooms):
            raise ModuleNotFoundError(f"{name} was taken away", name=name)

sys.meta_path.insert(0, Wall())
"""
COMMAND = f"""{WALL}
from ragistry.cli.app import run
sys.argv[1:] = [*sys.argv[3:], "--workspace", sys.argv[1]]
try:
    run()
except SystemExit as end:
    print(end.code)
"""
PROGRAM = (
    WALL
    + """
def scan(**query):
    assert query, "installed packages were searched for a built-in name"
    return ()  # pydantic asks for a group

importlib.metadata.entry_points = scan
import ragistry
from ragistry.evaluation import Dataset, Text, compare

class Reversed:
    '''Search for the words of the query from the last to the first.'''
    def __init__(self, config, *, base):
        self.base = base
    def retrieve(self, query, **options):
        return self.base.retrieve(" ".join(query.split()[::-1]), **options)

with ragistry.open_workspace(sys.argv[1], embed_model="ragistry.testing.hashed:HashingEmbedder") as workspace:
    workspace.library.create_collection("notes")
    report = workspace.library.ingest_folder(sys.argv[1] + "/notes", "notes")
    print(len(report.added), [str(failure.error) for failure in report.failed])
    for technique in ("hybrid", "naive", "bm25"):
        print(workspace.search("prune roses", technique=technique, top_k=1).documents[0].metadata["source_file"])
    own = workspace.build({"use": Reversed, "base": "bm25"})
    print(own.retrieve("roses prune", top_k=1)[0].metadata["source_file"])
    texts = [Text("a", "", "Prune roses in March."), Text("b", "", "Water tomatoes daily.")]
    dataset = Dataset("made", texts, {"1": "roses"}, {"1": {"a": 1}})
    compared = compare({"bm25": None, "own": own}, dataset, workspace=workspace, progress=False)
    print(sorted(compared.techniques), compared.failures)
"""
)


@pytest.mark.parametrize(
    ("command", "extra", "room"),
    [
        ("serve", "server", "ragistry.server"),
        ("serve", "server", "fastapi"),
        ("serve --ui", "ui", "ragistry.web"),
        ("serve --mcp", "mcp", "ragistry.mcp"),
        ("ui", "ui", "ragistry.web"),
        ("ui", "ui", "nicegui"),
        ("mcp", "mcp", "ragistry.mcp"),
        ("mcp --http", "mcp", "mcp"),
    ],
)
def test_a_command_without_its_room_names_the_extra(tmp_path: Path, command: str, extra: str, room: str) -> None:
    *lines, code = run(COMMAND, tmp_path, room, *command.split()).splitlines()
    assert (len(lines), code) == (1, "1")
    check_message(lines[0], room, f"[{extra}]")


@pytest.mark.parametrize("room", ROOMS)
def test_the_core_works_without_the_room(tmp_path: Path, corpus: Corpus, room: str) -> None:
    corpus({"roses.md": "# Roses\n\nPrune roses in March.", "tomatoes.txt": "Water tomatoes each day."}, "notes")
    printed = run(PROGRAM, tmp_path, " ".join(ROOMS[room])).splitlines()
    assert printed == ["2 []", *["roses.md"] * 4, "['bm25', 'own'] {}"]


def test_the_wall_keeps_a_room_from_being_imported(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="was taken away"):
        run(PROGRAM, tmp_path, "ragistry.techniques")
