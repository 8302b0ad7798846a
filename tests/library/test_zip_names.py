"""Names of members as other programs write them: none is lost, garbled or hidden by another."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ragistry import Workspace
from tests.library.raw_zip import raw_zip
from tests.messages import check_message

pytestmark = pytest.mark.usefixtures("embedder")

TEA = b"Green tea."


def ingested(workspace: Workspace, path: Path) -> list[str]:
    report = workspace.library.ingest_paths([path], "notes")
    assert (report.failed, report.left_out, report.unread) == ([], {}, {})
    assert len(report.added) == workspace.library.count("notes"), "each member was unpacked and has a chunk"
    return [name.removeprefix("a.zip/") for name in report.added]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("./tea.md", "tea.md"),
        ("./docs/tea.md", "docs/tea.md"),
        (".\\docs\\tea.md", "docs/tea.md"),
        ("docs/./tea.md", "docs/tea.md"),
        ("././docs//.\\tea.md", "docs/tea.md"),
        ("tea.md ", "tea.md"),
        ("my docs /tea.MD\t", "my docs/tea.MD"),
        ("tea.md\u3000", "tea.md"),
        *(
            (name, name)
            for name in ("Notes: May.md", "12:30 call.md", "b:c/d.md", "Q: x.md", "Q:x.md", "A:.md", ":/x.md")
        ),
        *((name, name) for name in ("docs/C:/x.md", "q&a/Q: one.md", "1:/x.md", "a..b/x.md")),
    ],
)
def test_path_of_a_member_is_normal(workspace: Workspace, tmp_path: Path, written: str, name: str) -> None:
    path = raw_zip(tmp_path / "a.zip", [(written.encode(), b"# Tea\n\nSteep it.")], flags=0x800)
    assert ingested(workspace, path) == [name]
    [found] = workspace.store.scan()
    assert found.metadata["title"] == "Tea", "it is read as Markdown"


@pytest.mark.parametrize(
    ("encoding", "names"),
    [
        ("utf-8", ["Übersicht.md", "отчёт.txt", "表.md"]),
        ("utf-8", ["e\u0301te\u0301.md"]),
        ("cp437", ["Größe.md", "café/menü.txt"]),
        ("cp437", ["señor.md"]),
        ("cp850", ["São Paulo.md", "ação.txt", "Lição 3.txt"]),
        ("cp852", ["Żółw.txt", "Łódź/święto.md"]),
        ("cp866", ["Отчёт.md", "Документы/план работ.txt"]),
        ("cp866", ["фото.md"]),
        ("cp1251", ["Договор.md", "счета.txt"]),
        ("cp932", ["ソフト.md", "表/予定表.txt", "資料/能力.txt"]),
        ("cp932", ["表.md"]),
        ("cp932", ["十.txt"]),
        ("gbk", ["报告.md", "文档/会议记录.txt"]),
        ("gbk", ["说明.md"]),
        ("cp949", ["보고서.md", "문서/회의록.txt"]),
        ("big5", ["會議記錄.md", "許功蓋.txt"]),
        ("cp737", ["Αναφορά.md", "έγγραφα.txt"]),
    ],
)
def test_names_without_a_flag_are_read_in_their_encoding(
    workspace: Workspace, tmp_path: Path, encoding: str, names: list[str]
) -> None:
    path = raw_zip(tmp_path / "a.zip", [(name.encode(encoding), TEA) for name in ("plain.md", *names)])
    assert ingested(workspace, path) == sorted(["plain.md", *names])


def test_the_name_in_unicode_beside_another_one_counts(workspace: Workspace, tmp_path: Path) -> None:
    name = "отчёт.md".encode()
    extra = struct.pack("<HHBL", 0x7075, 5 + len(name), 1, 0) + name
    assert ingested(workspace, raw_zip(tmp_path / "a.zip", [(b"ot__t.md", TEA)], extra=extra)) == ["отчёт.md"]


@pytest.mark.parametrize(
    "names", [("a.md", "./a.md"), ("a.md", "a.md"), ("a.md", "a.md "), ("d/a.md", "d\\a.md"), ("é.md", "e\u0301.md")]
)
def test_of_two_members_of_one_name_none_is_lost_in_silence(
    workspace: Workspace, tmp_path: Path, names: tuple[str, str]
) -> None:
    first, last = (name.encode() for name in names)
    path = raw_zip(tmp_path / "a.zip", [(first, b"One."), (last, b"Two."), (b"b.md", TEA)], flags=0x800)
    report = workspace.library.ingest_paths([path], "notes")
    assert {document.content for document in workspace.store.scan()} == {"Two.", "Green tea."}
    [failure] = report.failed
    check_message(failure.error, path)
    raw_zip(path, [(first, b"Two."), (last, b"Two.")], flags=0x800)
    assert workspace.library.ingest_paths([path], "notes", prune=True).failed == [], "equal members are one"


OUTSIDE = [
    *("../a.md", "a/../../a.md", "..\\a.md", "./../a.md", ".. /a.md", "/etc/a.md", ".\\/a.md", "\\\\host\\share\\a.md"),
    *("C:/Users/me/a.md", "C:\\a.md", "./C:/a.md", "z:/a.md", "."),
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_member_that_leads_out_is_refused_alone(workspace: Workspace, tmp_path: Path, name: str) -> None:
    path = raw_zip(tmp_path / "a.zip", [(b"b.md", TEA), (name.encode(), TEA), (b"d/c.md", TEA)])
    report = workspace.library.ingest_paths([tmp_path], "notes")
    assert report.added == ["a.zip/b.md", "a.zip/d/c.md"]
    [failure] = report.failed
    check_message(failure.error, str(path), repr(name))
    assert failure.source.endswith(name)
