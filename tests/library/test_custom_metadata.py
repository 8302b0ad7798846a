"""Metadata that people set on sources: stored, kept, changed and filtered, on every store and through a client."""

from __future__ import annotations

import os
import unicodedata
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import pytest

from ragistry import RemoteWorkspace, Workspace, open_workspace
from ragistry.errors import InvalidMetadataError, SourceNotFoundError
from ragistry.library.backup import restore_backup, write_backup
from ragistry.testing.techniques import same_answer
from tests.conftest import Corpus, everywhere
from tests.messages import check_message

Either = Workspace | RemoteWorkspace

VALUES = {
    "client": "acme",
    "year": 2026,
    "price": 2.5,
    "whole": 3.0,
    "draft": False,
    "due": date(2026, 5, 1),
    "signed": datetime(2026, 5, 1, 12, 0, 0, 999, tzinfo=timezone(timedelta(hours=2))),
    "tags": ["tea", "green"],
    "weights": [1, 2.5],
    "größe $": "L",
    "large": 2**62 + 1,
    "nul": "a\0b",
}
STORED = VALUES | {"due": "2026-05-01", "signed": "2026-05-01T10:00:00Z", "weights": [1.0, 2.5]}


def own(workspace: Either, source: str, collection: str = "notes") -> dict[str, Any]:
    found = dict(workspace.library.source(source, collection).metadata)
    found.pop("modified", None)
    return found


def found(workspace: Either, where: dict[str, Any]) -> list[str]:
    documents = workspace.search("tea", "naive", where=where).documents
    return sorted({document.metadata["source_file"] for document in documents})


@everywhere
def test_metadata_of_a_text_are_stored_and_filtered(workspace: Either) -> None:
    library = workspace.library
    library.ingest_text("Green tea.", "a", "notes", metadata=VALUES)
    library.ingest_text("Black tea.", "b", "notes")
    assert own(workspace, "a") == STORED
    assert {key: type(value) for key, value in own(workspace, "a").items()} == {k: type(v) for k, v in STORED.items()}
    [row] = [row for row in library.list_sources_detail("notes") if row["source_file"] == "a"]
    assert row["metadata"] == STORED
    [document] = workspace.search("tea", "naive", where={"client": "acme"}).documents
    assert {key: document.metadata[key] for key in STORED} == STORED
    for where in (
        {"year": {"$gte": 2026}},
        {"draft": False},
        {"due": {"$lt": "2026-06"}},
        {"signed": {"$gte": "2026-05-01T09:59:59Z"}},
        {"tags": {"$contains": "tea"}},
        {"price": {"$in": [2.5]}},
        {"größe $": "L"},
        {"large": 2**62 + 1},
    ):
        assert found(workspace, where) == ["a"], where


@everywhere
def test_composed_and_decomposed_metadata_are_one(workspace: Either) -> None:
    decomposed = {unicodedata.normalize("NFD", key): unicodedata.normalize("NFD", "größe") for key in ("größe", "a")}
    tags = ["é", unicodedata.normalize("NFD", "ö")]
    workspace.library.ingest_text("Green tea.", "a", "notes", metadata=decomposed | {"tags": tags})
    workspace.library.ingest_text("Black tea.", "b", "notes", metadata={"größe": "klein", "a": "x", "tags": ["x"]})
    assert own(workspace, "a") == {"größe": "größe", "a": "größe", "tags": ["é", "ö"]}
    for form in ("NFC", "NFD"):
        key, value, tag = (unicodedata.normalize(form, text) for text in ("größe", "größe", "ö"))
        for where in ({key: value}, {key: {"$in": ["x", value]}}, {"tags": {"$contains": tag}}):
            assert found(workspace, where) == ["a"], where
        for where in ({key: {"$ne": value}}, {"a": {"$nin": [value]}}, {"tags": {"$not_contains": tag}}):
            assert found(workspace, where) == ["b"], where
    assert workspace.library.set_metadata("a", "notes", {unicodedata.normalize("NFD", "größe"): None}).metadata == {
        "a": "größe",
        "tags": ["é", "ö"],
    }


@everywhere
def test_metadata_are_kept_until_they_are_set_again(workspace: Either) -> None:
    library = workspace.library
    library.ingest_text("Green tea.", "a", "notes", metadata={"client": "acme", "year": 2026})
    assert library.ingest_text("Green tea.", "a", "notes") == 0
    assert library.ingest_text("Green tea.", "a", "notes", metadata={"year": 2026}) == 0
    assert library.ingest_text("Green tea, steeped.", "a", "notes") == 1
    assert own(workspace, "a") == {"client": "acme", "year": 2026}
    assert library.ingest_text("Green tea, steeped.", "a", "notes", metadata={"year": 2027, "client": None}) == 1
    assert own(workspace, "a") == {"year": 2027}
    assert library.set_metadata("a", "notes", {"year": None, "client": "new", "tags": ["x"]}).metadata == {
        "client": "new",
        "tags": ["x"],
    }
    library.ingest_text("Green tea, cold.", "a", "notes")
    assert own(workspace, "a") == {"client": "new", "tags": ["x"]}
    assert library.source("a", "notes").set_keys == ("client", "tags", "year")
    assert found(workspace, {"client": "new"}) == ["a"]


@everywhere
def test_paths_take_a_mapping_or_a_function(workspace: Either, corpus: Corpus) -> None:
    library, folder = workspace.library, corpus({"a.md": "# Tea\n\nGreen tea.", "b/c.txt": "Black tea."})
    library.ingest_folder(folder, "notes", metadata=lambda path: {"name": path.stem} if path.suffix == ".txt" else None)
    assert (own(workspace, "b/c.txt"), own(workspace, "a.md")) == ({"name": "c"}, {"title": "Tea"})
    library.ingest_paths([folder], "notes", metadata={"client": "acme"})
    assert own(workspace, "b/c.txt") == {"name": "c", "client": "acme"}
    library.ingest_file(folder / "a.md", "notes", metadata={"title": "Set", "year": 1})
    assert own(workspace, "a.md") == {"title": "Set", "year": 1, "client": "acme"}
    (folder / "a.md").write_text("# Tea\n\nGreen tea, cold.")
    library.ingest_file(folder / "a.md", "notes")
    assert own(workspace, "a.md") == {"title": "Set", "year": 1, "client": "acme"}


@everywhere
def test_changed_metadata_embed_nothing(workspace: Either, corpus: Corpus) -> None:
    library, folder = workspace.library, corpus({"a.txt": " ".join(f"Green tea {n}." for n in range(300))})
    report = library.ingest_folder(folder, "notes")
    before = workspace.search("tea", "naive", top_k=9).documents
    changed = library.ingest_folder(folder, "notes", metadata={"client": "acme"})
    assert (report.embedded > 1, changed.embedded, changed.updated) == (True, 0, ["a.txt"])
    library.set_metadata("a.txt", "notes", {"year": 1})
    after = workspace.search("tea", "naive", top_k=9).documents
    assert [one.content for one in after] == [one.content for one in before]
    assert same_answer(after, before)
    assert library.ingest_folder(folder, "notes").skipped == ["a.txt"]


@everywhere
def test_metadata_that_cannot_be_stored_are_refused_and_change_nothing(workspace: Either) -> None:
    library = workspace.library
    for metadata in ({"source_file": "x"}, {"a": float("nan")}, {f"key{n}": n for n in range(5_000)}):
        with pytest.raises(InvalidMetadataError):
            library.ingest_text("Green tea.", "a", "notes", metadata=metadata)
    assert library.list_sources() == []
    library.ingest_text("Green tea.", "a", "notes", metadata={"a": 1})
    with pytest.raises(InvalidMetadataError):
        library.set_metadata("a", "notes", {"a": {"b": 1}})
    with pytest.raises(SourceNotFoundError):
        library.set_metadata("b", "notes", {"a": 1})
    assert own(workspace, "a") == {"a": 1}


def test_metadata_stay_through_a_move_a_rename_and_a_backup(workspace: Workspace, tmp_path: Path) -> None:
    library = workspace.library
    library.create_collection("other")
    library.ingest_text("Green tea.", "a", "other", metadata=VALUES)
    library.ingest_text("Black tea.", "b", "notes", metadata={"year": 2025, "gone": None})
    library.move_source("a", "other", "notes")
    library.rename_collection("notes", "new")
    before = workspace.store.sources()
    write_backup(tmp_path / "all.zip", workspace.root, workspace.store, tmp_path / "none")
    restore_backup(tmp_path / "all.zip", tmp_path / "new")
    with open_workspace(tmp_path / "new") as restored:
        assert restored.store.sources() == before
        assert own(restored, "a", "new") == STORED
        for where in ({"signed": {"$lt": "2026-05-02"}}, {"tags": {"$contains": "green"}}, {"draft": False}):
            assert found(restored, where) == ["a"], where
        restored.library.ingest_text("Black tea, cold.", "b", "new")
        assert own(restored, "b", "new") == {"year": 2025}


@everywhere
@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("metadata.csv", "file_name,client,year,due\na.md,acme,2026,2026-05-01T10:00+02:00\nb/c.txt,,2027,\n"),
        ("metadata.csv", "\ufefffile;client;year;due\r\nb\\c.txt;;2027;\r\na.md;acme;2026;2026-05-01 08:00\r\n"),
        (
            "metadata.jsonl",
            '{"file_name": "./a.md", "client": "acme", "year": 2026, "due": "2026-05-01T08:00:00Z"}\n\n'
            '{"file_name": "b/../b/c.txt", "year": 2027, "client": null}',
        ),
    ],
    ids=["csv", "semicolons", "jsonl"],
)
def test_a_table_beside_the_files_has_their_metadata(workspace: Either, corpus: Corpus, table: str, rows: str) -> None:
    library = workspace.library
    folder = corpus({"a.md": "---\nclient: other\nkind: note\n---\nGreen tea.", "b/c.txt": "Black tea.", table: rows})
    report = library.ingest_folder(folder, "notes")
    assert (sorted(report.added), report.warnings) == (["a.md", "b/c.txt"], [])
    expected = {"client": "acme", "year": 2026, "due": "2026-05-01T08:00:00Z", "kind": "note"}
    assert (own(workspace, "a.md"), own(workspace, "b/c.txt")) == (expected, {"year": 2027})
    assert found(workspace, {"year": {"$gt": 2026}}) == ["b/c.txt"]
    assert sorted(library.ingest_folder(folder, "notes").skipped) == ["a.md", "b/c.txt"]
    library.ingest_paths([folder], "notes", metadata={"year": 1})
    (folder / table).write_text(rows.replace("acme", "new"), encoding="utf-8")
    report = library.ingest_folder(folder, "notes")
    assert (report.updated, report.embedded) == (["a.md"], 0)
    assert own(workspace, "a.md") == expected | {"client": "new", "year": 1}
    library.ingest_file(folder / "a.md", "notes")
    assert own(workspace, "a.md") == expected | {"client": "new", "year": 1}
    (folder / table).unlink()
    assert sorted(library.ingest_folder(folder, "notes").updated) == ["a.md", "b/c.txt"]
    assert own(workspace, "a.md") == {"client": "other", "kind": "note", "year": 1}


@pytest.mark.parametrize(
    ("cells", "stored"),
    [
        (["1.9", "1.10"], ["1.9", "1.10"]),
        (["3.2", "3.20"], ["3.2", "3.20"]),
        (["2", "1.10", "1.9"], ["2", "1.10", "1.9"]),
        (["2.50", "1.99"], [2.5, 1.99]),
        (["1.5", "2.0"], [1.5, 2.0]),
        (["1.5", "2.25", "-0.125"], [1.5, 2.25, -0.125]),
    ],
)
def test_decimals_that_are_versions_stay_text(
    cells: list[str], stored: list[object], workspace: Workspace, corpus: Corpus
) -> None:
    names = [f"{number}.txt" for number in range(len(cells))]
    table = "\n".join(["file,version", *(f"{name},{cell}" for name, cell in zip(names, cells, strict=True))])
    workspace.library.ingest_folder(corpus({**dict.fromkeys(names, "Green tea."), "metadata.csv": table}), "notes")
    assert [own(workspace, name)["version"] for name in names] == stored


def test_faults_of_a_table_are_reported_and_cost_only_their_values(workspace: Workspace, corpus: Corpus) -> None:
    lines = [
        '{"file_name": "a.txt", "year": 1, "nested": {"a": 1}, "source_file": "x", "$a": 1, "size": NaN}',
        '{"file_name": "a.txt", "year": 2}',
        '{"file_name": "absent.txt", "year": 2}',
        '{"file_name": "b/metadata.csv", "year": 2}',
        '{"year": 3}',
        "[1]",
        "{broken",
        '{"file_name": 7}',
        '{"file_name": "b/c.txt", "year": 1, "outer": true}',
    ]
    inner = 'file_name,year,note\nc.txt,2,"two\nlines"\nc.txt,3,\n../a.txt,9,,extra\n'
    folder = corpus(
        {"a.txt": "Green tea.", "b/c.txt": "Black tea.", "metadata.jsonl": "\n".join(lines), "b/metadata.csv": inner}
    )
    report = workspace.library.ingest_folder(folder, "notes")
    assert sorted(report.added) == ["a.txt", "b/c.txt"]
    assert own(workspace, "a.txt") == {"year": 9}
    assert own(workspace, "b/c.txt") == {"year": 2, "note": "two\nlines", "outer": True}
    check_message("\n".join(report.warnings).replace(str(folder), "<folder>"), "absent.txt", "nested", "source_file")


def test_other_files_of_that_name_are_documents(workspace: Workspace, corpus: Corpus) -> None:
    folder = corpus(
        {
            "metadata.csv": "name,price\ntea,3\n",
            "b/metadata.jsonl": '{"text": "tea"}\n',
            "c/metadata.csv": "",
            "d/metadata.csv": b"\x00\xff\x00",
            "a.txt": "Green tea.",
        }
    )
    report = workspace.library.ingest_folder(folder, "notes")
    assert sorted(report.added) == ["a.txt", "b/metadata.jsonl", "metadata.csv"]


@everywhere
def test_files_bring_their_times_and_properties(workspace: Either, corpus: Corpus) -> None:
    library, folder = workspace.library, corpus({"a.txt": "Green tea.", "b.md": "---\nmodified: 2026-01-01\n---\nTea."})
    os.utime(folder / "a.txt", (1_700_000_000.5, 1_700_000_000.5))
    with ZipFile(folder / "z.zip", "w") as archive:
        archive.writestr(ZipInfo("c.txt", (2026, 5, 1, 10, 0, 0)), "Black tea.")
        archive.writestr("metadata.csv", "file,year\nc.txt,2026\n")
    library.ingest_folder(folder, "notes")
    modified = {info.source_file: info.metadata["modified"] for info in library.sources("notes")}
    zipped = datetime(2026, 5, 1, 10).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert modified == {"a.txt": "2023-11-14T22:13:20Z", "b.md": "2026-01-01", "z.zip/c.txt": zipped}
    assert own(workspace, "z.zip/c.txt") == {"year": 2026}
    assert found(workspace, {"modified": {"$gte": "2026-01-01"}}) == ["b.md", "z.zip/c.txt"]
    assert sorted(library.ingest_folder(folder, "notes").skipped) == sorted(modified)


def test_so_many_keys_in_all_are_refused(workspace: Workspace, corpus: Corpus) -> None:
    keys = "".join(f"key{number}: {number}\n" for number in range(100))
    folder = corpus({"a.md": f"---\n{keys}---\nGreen tea."})
    report = workspace.library.ingest_folder(folder, "notes", metadata={"one": 1, "two": 2})
    assert [type(failure.cause) for failure in report.failed] == [InvalidMetadataError]
    workspace.library.ingest_text("Green tea.", "b", "notes", metadata={f"k{n}": n for n in range(100)})
    with pytest.raises(InvalidMetadataError):
        workspace.library.set_metadata("b", "notes", {"more": 1})


def test_a_changed_table_is_read_by_a_watch(workspace: Workspace, corpus: Corpus) -> None:
    name = unicodedata.normalize("NFD", "größe.txt")
    table = unicodedata.normalize("NFC", "file,year\ngröße.txt,{}\n")
    folder = corpus({name: "Green tea.", "metadata.csv": table.format(1), "b/c.txt": "Black tea."})
    workspace.library.ingest_folder(folder, "notes")
    (folder / "metadata.csv").write_text(table.format(2), encoding="utf-8")
    for changed, updated in (({str(folder / "b")}, 0), ({str(folder / "metadata.csv")}, 1)):
        report = workspace.library.ingest_paths([folder], "notes", changed=changed)
        assert len(report.updated) == updated
    assert [info.metadata.get("year") for info in workspace.library.sources("notes")] == [None, 2]
