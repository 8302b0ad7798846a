"""The tools that read texts: lines, places, outlines and sources, within their limits, through every door."""

# ruff: noqa: RUF001 - texts in many scripts

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ragistry import Workspace, open_workspace
from ragistry.chunking.joined import pieces_of
from ragistry.readers.extract import extract
from ragistry.tools.grep import GrepAnswer, GrepRequest, grep
from ragistry.tools.reach import Reach
from ragistry.tools.read import ReadRequest, read
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.tools.sources import SourcesRequest, sources
from ragistry.tools.tokens import estimated_tokens
from ragistry.tools.toolbox import READING, TOOLS
from ragistry.utils.quoting import visible
from tests.conftest import ROOT
from tests.messages import check_message
from tests.readers.office_files import MAKERS
from tests.readers.raw_pdf import one_page

HASHED = "ragistry.testing.hashed:HashingEmbedder"
SCRIPTS = {
    "latin": "Der Café-Keller ist groß.",
    "decomposed": "Der Cafe\u0301-Keller ist gross.",
    "greek": "Η βάρκα είναι μεγάλη.",
    "cyrillic": "Лодка стоит в гавани.",
    "hebrew": "הסירה עומדת בנמל.",
    "arabic": "القارب في الميناء.",
    "hindi": "नाव बंदरगाह में है।",
    "thai": "เรืออยู่ในท่าเรือ",
    "chinese": "船停在港口里。",
    "japanese": "ボートは港にあります。",
    "korean": "배가 항구에 있습니다.",
}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Sources of all formats with small chunks, also sparse and indented lines, to be read only."""
    folder = tmp_path_factory.mktemp("shelf")
    files = folder / "files"
    files.mkdir()
    for suffix, make in MAKERS.items():
        make(files / f"cedar{suffix}")
    (files / "page.pdf").write_bytes(one_page("Cedar wood", Title=b"Cedar"))
    for name, line in SCRIPTS.items():
        lines = [f"{line} {number}" if number % 3 else "" for number in range(60)]
        (files / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    steps = "".join(f"1. Step {n}\n\n   ```sh\n   run {n}\n   ```\n\n   Indented text {n}.\n\n\n" for n in range(40))
    (files / "steps.md").write_text(f"---\ntitle: Steps\n---\n# Steps\n\n{steps}## End\n\nDone.\n", encoding="utf-8")
    with open_workspace(folder, embed_model=HASHED, chunk_size=200, chunk_overlap=20) as opened:
        opened.library.create_collection("files")
        opened.library.create_collection("other")
        opened.library.ingest_folder(files, "files")
        opened.library.ingest_folder(ROOT / "fixtures" / "handbook", "other")
        yield opened


def lines_in(found: GrepAnswer) -> set[tuple[str, int]]:
    return {(one.source, line.line) for one in found.sources for line in one.lines}


def all_lines(reach: Reach, request: GrepRequest) -> set[tuple[str, int]]:
    """Find lines page after page."""
    found = grep(reach, request)
    lines = lines_in(found)
    while found.cursor:
        found = grep(reach, replace(request, cursor=found.cursor))
        assert not lines & lines_in(found), "no line is on two pages"
        lines |= lines_in(found)
    return lines


def test_lines_are_those_of_the_extracted_text(shelf: Workspace) -> None:
    """Every line, except blanks at its ends, by its number and by the chunk that has it."""
    reach = Reach(shelf.library)
    for info in shelf.store.sources():
        text = extract(info.source_path).text.split("\n")
        found = read(reach, ReadRequest(info.source_file, info.collection, lines=10_000, max_tokens=50_000)).lines
        assert [one.text.strip() for one in found] == [line.strip() for line in text][: len(found)], info.source_file
        assert not "".join(text[len(found) :]).strip()
    chunks = list(shelf.store.scan({"source_file": "steps.md"}))
    for piece in pieces_of(sorted(chunks, key=lambda one: one.metadata["start"])):
        for at, line in enumerate(piece.chunk.content.split("\n")[1:-1], piece.line_feeds + 2):
            [shown] = read(reach, ReadRequest("steps.md", line=at, lines=1)).lines
            assert (shown.line, shown.text) == (at, line)
            assert shown.place["line"] == at + 3, "the file has three lines of front matter before"


@pytest.mark.parametrize(
    "pattern", ["harbour", "e", "1", "Cafe\u0301", "Café", "港", "nav", "नाव", "배가 항구에", "text 7.", "step"]
)
@pytest.mark.parametrize("options", [{}, {"ignore_case": True}, {"words": True}], ids=str)
def test_a_literal_finds_what_python_finds(pattern: str, options: dict[str, bool], shelf: Workspace) -> None:
    literal = re.escape(unicodedata.normalize("NFC", pattern))
    literal = rf"(?<!\w){literal}(?!\w)" if options.get("words") else literal
    wanted = re.compile(literal, re.IGNORECASE if options.get("ignore_case") else 0)
    expected = {
        (info.source_file, number)
        for info in shelf.store.sources("files")
        for number, line in enumerate(extract(info.source_path).text.split("\n"), 1)
        if wanted.search(unicodedata.normalize("NFC", line))
    }
    request = GrepRequest(pattern, collection="files", max_tokens=2_000, **options)
    assert all_lines(Reach(shelf.library), request) == expected


@pytest.mark.parametrize(
    "pattern",
    [
        r"^run 7$",
        r"(?-m)^\s+run 3$",
        r"\A\s+run 3\z",
        r"\bstep\b",
        r"(?i)STEP \d+$",
        r"[^a]{30}",
        r"(?s)text.*7",
        r"^\s*$",
        r"\B7\B|7\s*\z",
    ],
)
def test_a_regular_expression_sees_line_by_line(pattern: str, shelf: Workspace) -> None:
    """Ends of lines are ends of the text, also where a whole source is searched before its lines."""
    wanted = re.compile(pattern.replace(r"\z", r"\Z").replace("(?-m)", ""))
    expected = {
        (info.source_file, number)
        for info in shelf.store.sources("files")
        for number, line in enumerate(extract(info.source_path).text.split("\n"), 1)
        if line.strip() and wanted.search(unicodedata.normalize("NFC", line.rstrip()))
    }
    found = all_lines(Reach(shelf.library), GrepRequest(pattern, regex=True, collection="files", max_tokens=50_000))
    blank = {one for one in found if one not in expected and pattern == r"^\s*$"}
    assert found - blank == expected


def test_reading_a_line_reads_few_chunks(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.library.create_collection("notes")
    counts = []
    for lines in (1_000, 8_000):
        workspace.library.ingest_text("\n".join(f"boat {number}" for number in range(lines)), "long.txt", "notes")
        get, read_chunks = workspace.store.get, list[str]()
        monkeypatch.setattr(workspace.store, "get", lambda ids, get=get, seen=read_chunks: seen.extend(ids) or get(ids))
        for line in (1, lines // 2, lines):
            assert (
                read(Reach(workspace.library), ReadRequest("long.txt", line=line)).lines[0].text == f"boat {line - 1}"
            )
        monkeypatch.undo()
        counts.append(len(read_chunks))
    assert counts[1] <= counts[0] + 30
    assert counts[1] < workspace.library.count("notes")


def test_words_of_a_literal_narrow_the_search_without_losing_a_line(shelf: Workspace) -> None:
    reach = Reach(shelf.library)
    pattern = "stops with `LNT-1042` before it has touched anything"
    found = grep(reach, GrepRequest(pattern))
    assert [one.source for one in found.sources] == ["operations/upgrades.md"]
    assert lines_in(found) == lines_in(grep(reach, GrepRequest(re.escape(pattern).replace(r"\ ", " "), regex=True)))


def test_lines_around_counts_and_sources(shelf: Workspace) -> None:
    reach = Reach(shelf.library)
    [one] = grep(reach, GrepRequest(r"^run|\s+run (3|4)$", regex=True, source="steps*", context=1)).sources
    assert [(line.text.strip(), line.match) for line in one.lines] == [
        ("```sh", False), ("run 3", True), ("```", False), ("```sh", False), ("run 4", True), ("```", False),
    ]  # fmt: skip
    [counted] = grep(reach, GrepRequest("run", source="steps.md", count=True)).sources
    assert (counted.matches, counted.lines) == (40, [])
    named = grep(reach, GrepRequest("cedar", ignore_case=True, sources_only=True, collection="files"))
    assert {"cedar.docx", "page.pdf"} <= {one.source for one in named.sources}
    paged = grep(reach, GrepRequest("cedar", ignore_case=True, where={"page": 2})).sources
    assert {line.place["page"] for one in paged for line in one.lines} == {2}


def test_a_page_ends_after_its_time_and_names_sources_that_changed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = workspace.library
    library.create_collection("notes")
    for name in ("a.txt", "b.txt", "c.txt"):
        library.ingest_text("\n".join(f"boat {number}" for number in range(2_000)), name, "notes")
    reach = Reach(library)
    whole = all_lines(reach, GrepRequest("boat 1", max_tokens=50_000))
    monkeypatch.setattr("ragistry.tools.grep.SECONDS", -1.0)
    monkeypatch.setattr("ragistry.chunking.joined.AT_ONCE", 5)
    request = GrepRequest("boat 1", max_tokens=50_000)
    assert all_lines(reach, request) == whole
    first = grep(reach, request)
    assert first.has_more
    assert 0 < first.chunks_read < first.chunks
    assert f"{first.chunks_read} of {first.chunks} chunks read" in first.notes
    library.ingest_text("\n".join(f"boat {number}!" for number in range(2_000)), "a.txt", "notes")
    second = grep(reach, replace(request, cursor=first.cursor))
    assert "a.txt" in second.notes[0]
    check_message(second.notes[0])


def test_sources_are_listed_page_after_page(shelf: Workspace) -> None:
    reach = Reach(shelf.library)
    listed = sources(reach, SourcesRequest(name="operations/*", where={"collection": "other"}))
    assert listed.total == len(listed.sources) > 2
    short = sources(reach, SourcesRequest(max_tokens=200))
    rest = sources(reach, SourcesRequest(max_tokens=50_000, cursor=short.cursor))
    assert len(short.sources) + len(rest.sources) == short.total == len(shelf.store.sources())


def test_long_lines_are_read_in_parts(workspace: Workspace) -> None:
    workspace.library.create_collection("notes")
    line = "".join(f"word\u00ad{number}\u200b " for number in range(20_000))
    workspace.library.ingest_text(f"first\n{line}needle\nlast", "long.txt", "notes")
    reach = Reach(workspace.library)
    [found] = grep(reach, GrepRequest("needle")).sources
    assert found.lines[0].line == 2
    assert len(found.lines[0].text) < 400
    assert "needle" in found.lines[0].text
    parts, at, column = "", 2, 1
    while at == 2:
        part = read(reach, ReadRequest("long.txt", line=2, lines=1, column=column, max_tokens=30_000))
        parts += part.lines[0].text
        at, column = part.next_line or 3, part.next_column
    assert parts == f"{visible(line)} needle", "a column counts what is shown"


WORD, CASE, REGEX = {"words": True}, {"ignore_case": True}, {"regex": True}
CAFE = "Cafe\u0301"
MATCHES: list[tuple[str, str, dict[str, bool], str]] = [
    ("Close the VALVE at night.", "VALVE", {}, "VALVE"),
    ("Close the VALVE at night.", "valve", CASE, "VALVE"),
    ("An OVERVALVE, a VALVE here", "VALVE", WORD, "VALVE here"),
    ("Close the VALVE at night.", "VAL.E", REGEX, "VALVE"),
    ("Close the VALVE at night.", r"\bv\w+\b", REGEX | CASE, "VALVE"),
    ("It is LNT-1042 or so", r"[A-Z]+-\d+", REGEX, "LNT-1042"),
    ("It is LNT-1042 or so", r"(?x) [A-Z]+-\d+ # a code", REGEX, ""),
    (f"{CAFE} au lait", "Café au", {}, f"{CAFE} au"),
    (f"two {CAFE}s", "CAFÉ", CASE, f"{CAFE}s"),
    ("Café au lait", f"{CAFE} au", WORD, "Café au"),
    ("글 한국어 here", unicodedata.normalize("NFD", "한국어"), {}, "한국어 here"),
    ("ten\u00a0km\u202ffar away", "ten km far", {}, "ten\u00a0km\u202ffar"),
    ("ten km away", "ten\u00a0km", {}, "ten km"),
    ("please don’t stop it", "don't stop", {}, "don’t stop"),
    ("please don't stop it", "DON’T", CASE | WORD, "don't stop"),
    ("please don't stop it", "don’t st.p", REGEX, "don't stop"),
    ("please don’t stop it", r"d\w+[’]t stop", REGEX, "don’t stop"),
    ("the val\u00adve of it stops", "the valve of it", {}, "the valve of it"),
    ("its val\u200bve is there", r"v\w{3}e\b", REGEX, "valve is"),
    ("its valve is here", "val\u00adve", WORD, "valve is here"),
    ("write an e\u2011mail", "e-mail", WORD, "e\u2011mail"),
    ("the “o\ufb03ce” of them", '"office" of', {}, "“o\ufb03ce”"),
    ("no. \uff21\uff11 is it", "A1", {}, "\uff21\uff11 is"),
    ("a “quoted” word", r"[^\x00-\x7f]q", REGEX, "“quoted”"),
]


def test_a_line_shows_its_match_and_read_goes_on_there(workspace: Workspace, tmp_path: Path) -> None:
    """In any form of Unicode and typography, in a short line, and within or at the end of a long one."""
    workspace.library.create_collection("notes")
    words = " ".join(f"word{number}’s \u00ade\u0301te\u0301" for number in range(60))
    arounds = {"short": ("", ""), "within": (f"{words} ", f" {words}"), "end": (f"{words} ", "")}
    for number, (text, *_) in enumerate(MATCHES):
        for name, (before, after) in arounds.items():
            path = tmp_path / f"{number}{name}.txt"
            path.write_text(f"first\n{before}{text}{after}\nlast", encoding="utf-8")
    workspace.library.ingest_paths([*tmp_path.glob("*.txt")], "notes")
    reach = Reach(workspace.library)
    for number, (_, pattern, options, expected) in enumerate(MATCHES):
        found = {
            one.source: one.lines for one in grep(reach, GrepRequest(pattern, max_tokens=50_000, **options)).sources
        }
        for name in arounds:
            [line] = found[source := f"{number}{name}.txt"]
            rest = read(reach, ReadRequest(source, line=2, lines=1, column=line.column)).lines[0].text
            assert rest.startswith(expected), (pattern, source)
            assert expected in line.text, (pattern, source)
            assert len(line.text) <= 302
            if line.text.startswith("…"):
                told = TOOLS["grep"].call(reach, {"pattern": pattern, "source": source, **options}).text
                assert f"(column {line.column})" in told


def test_rows_of_a_long_table_come_with_its_column_names(workspace: Workspace, tmp_path: Path) -> None:
    from openpyxl import Workbook

    library = workspace.library
    library.create_collection("notes")
    book = Workbook()
    for row in (["Part", "Price"], *([f"part{number}", number] for number in range(400))):
        book.active.append(row)
    book.save(str(tmp_path / "a.xlsx"))
    library.ingest_file(tmp_path / "a.xlsx", "notes")
    rows = "".join(f"| part{number} | 7 |\n" for number in range(400))
    (tmp_path / "a.md").write_text(f"A part0 above.\n\n| Part | Price |\n|---|---|\n{rows}\nA part399 below.")
    library.ingest_file(tmp_path / "a.md", "notes")
    library.ingest_text("Part;Price\n" + "".join(f"part{number};7\n" for number in range(400)), "a.csv", "notes")
    library.ingest_text("".join(f"{number},7\n" for number in range(400)), "b.csv", "notes")
    reach = Reach(library)
    for number in (0, 1, 200, 399):
        for one in grep(reach, GrepRequest(f"\\b(part)?{number}\\b", regex=True)).sources:
            header = {"a.csv": "Part;Price", "b.csv": ""}.get(one.source, "| Part | Price |")
            for line in one.lines:
                assert line.table_header == ("" if line.text.startswith("A part") else header), line
    told = TOOLS["grep"].call(reach, {"pattern": "part39[0-9]", "regex": True, "source": "a.csv"}).text
    assert told.startswith("a.csv [notes]: 10\n  columns: Part;Price\n  392: part390;7\n  393: part391;7\n")
    told = TOOLS["grep"].call(reach, {"pattern": "part0", "source": "a.csv", "context": 1}).text
    assert told.startswith("a.csv [notes]: 1\n  1- Part;Price\n  2: part0;7\n  3- part1;7\n"), "shown once"


CATASTROPHIC = [r"(x+x+)+y", r"(.*)*$^", r"[01]*1[01]{100}z", r"(?i)(a|aa)+\b{end}"]


@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_catastrophic_patterns_end(pattern: str, workspace: Workspace) -> None:
    workspace.library.create_collection("notes")
    workspace.library.ingest_text("x" * 30_000 + "01" * 30_000, "x.txt", "notes")
    TOOLS["grep"].call(Reach(workspace.library), {"pattern": pattern, "regex": True})


def test_collections_out_of_reach_leave_no_trace(shelf: Workspace) -> None:
    reach = Reach(shelf.library, ["files"])
    for name, arguments in (
        ("grep", {"pattern": "LNT-1042"}),
        ("grep", {"pattern": "LNT-1042", "collection": "other"}),
        ("grep", {"pattern": "LNT-1042", "where": {"collection": "other"}}),
        ("read", {"source": "configuration.md"}),
        ("read", {"source": "configuration.md", "collection": "other"}),
        ("outline", {"source": "configuration.md"}),
        ("sources", {"name": "*configuration*"}),
        ("check_quotes", {"answer": '"Across major versions the older program meets a schema" (upgrades.md)'}),
    ):
        found = TOOLS[name].call(reach, arguments)
        told = found.text + json.dumps(found.structured, default=str)
        assert "operations" not in told
        assert "lanternctl" not in told
        assert "other" not in re.sub(r"no collection 'other'", "", told)
    everywhere = grep(Reach(shelf.library), GrepRequest("e", max_tokens=200))
    limited = grep(reach, GrepRequest("e", max_tokens=50_000, cursor=everywhere.cursor))
    assert {one.collection for one in limited.sources} == {"files"}, "a cursor opens nothing"


def test_answers_keep_the_budget_of_the_caller_and_say_what_is_left_out(shelf: Workspace) -> None:
    long = "".join(f'Line {n} is "a phrase of nobody {n}" (steps.md). Also {n} boats.\n\n' for n in range(200))
    tools = {
        "grep": {"pattern": "e"}, "read": {"source": "configuration.md"}, "outline": {"source": "troubleshooting.md"},
        "sources": {}, "check_quotes": {"answer": long},
    }  # fmt: skip
    assert [*tools] == [*READING]
    for budget in (200, 1_000, 5_000):
        for name, arguments in tools.items():
            found = TOOLS[name].call(Reach(shelf.library), {**arguments, "max_tokens": budget})
            assert estimated_tokens(found.text) <= budget + 250, (name, budget)
            if budget == 200:
                assert re.search(r"cursor|more: |continue with|left out", found.text), name
    assert found.structured is not None
    assert found.structured["ok"] is False
    tool = SearchLibraryTool(shelf.library, technique="bm25", n=50)
    whole = tool.answer({"query": "indented text"})
    short = tool.answer({"query": "indented text", "max_tokens": 1_500})
    assert estimated_tokens(short.text) <= 1_500 < estimated_tokens(whole.text)
    assert short.cursor in short.text != ""
    assert tool.answer({"query": "indented text", "max_tokens": 50_000}).text == whole.text, "the tool has a limit"
    for wrong in (0, 1_499, "many"):
        refused_call = tool.answer({"query": "indented text", "max_tokens": wrong})
        assert refused_call.error
        check_message(refused_call.text, "max_tokens")
