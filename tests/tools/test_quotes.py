"""Quotations and citations in the forms in which models write them: true ones pass, and a changed detail fails."""

# ruff: noqa: RUF001 - quotation marks of many languages

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import QueryError
from ragistry.tools.quotes import CheckAnswer, CheckRequest, check_quotes, check_text
from ragistry.tools.reach import Reach
from tests.messages import refused
from tests.readers.office_files import docx_of
from tests.readers.raw_pdf import CATALOG, FONT, content, page, raw_pdf

HASHED = "ragistry.testing.hashed:HashingEmbedder"
GUIDE = """---
title: Pumps
---
# Operation

Drain the pump before the first frost. Then open the red valve slowly, and wait.

## Cold start

The boiler is kept at **9 degrees** in [winter mode](modes.md#winter). The code is 4712.

It isn\u2019t \u201cfixed\u201d: the users\u2019 board says *never* exceed 1.5 bar.

### 3.2 Limits

Pressure stays below -5 kPa at 80 % load.
Die Ventile \u00f6ffnen bei 30 \u00b0C. L\u2019eau est froide. \u6cf5\u5fc5\u987b\u5728\u51ac\u5929\u6392\u7a7a\u3002
"""
PAGES = [
    ["The first page is about rivers.", "It counts twelve bridges."],
    ["The second page is about tea.", "Tea from the north is sold"],
    ["in small boxes of tin.", "The third page counts 31 ships."],
    ["The fourth page names no harbour."],
]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    from openpyxl import Workbook

    folder = tmp_path_factory.mktemp("quotes")
    files = folder / "files"
    for name, text in {
        "guide.md": GUIDE,
        "my notes.md": "# Notes\n\nThe north gate opens at seven.\n",
        "one/readme.md": "# One\n\nThe east gate opens at six.\n",
        "two/readme.md": "# Two\n\nThe south gate closes at nine.\n",
    }.items():
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (files / name).write_text(text, encoding="utf-8")
    kids = b" ".join(b"%d 0 R" % (6 + 2 * number) for number in range(len(PAGES)))
    pages = [
        one
        for number, lines in enumerate(PAGES)
        for one in (page().replace(b"4 0 R", b"%d 0 R" % (7 + 2 * number)), content(*lines))
    ]
    tree = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(PAGES))
    (files / "report.pdf").write_bytes(raw_pdf(CATALOG, tree, b"null", b"null", FONT, *pages))
    (files / "letter.docx").write_bytes(docx_of("The contract ends in May.", "Nobody answers the door."))
    book = Workbook()
    book.active.title = "Costs"
    book.active.append(["item", "price"])
    book.active.append(["copper pipe", 318])
    book.create_sheet("Rain").append(["May", 40])
    book.save(str(files / "book.xlsx"))
    with open_workspace(folder, embed_model=HASHED) as opened:
        opened.library.create_collection("files")
        opened.library.ingest_folder(files, "files")
        yield opened


def check(shelf: Workspace, answer: str, *, strict: bool = False) -> CheckAnswer:
    return check_quotes(Reach(shelf.library), CheckRequest(answer, strict=strict))


KINDS = [
    # quotation marks and what is in them
    ('It says "Drain the pump before the {} frost" (guide.md).', "first", "second"),
    ('"Drain the pump before the first frost. Then open the {} valve slowly" (guide.md).', "red", "blue"),
    ('It says "Drain the pump … open the {} valve" (guide.md).', "red", "blue"),
    ('It says "Drain the pump ... the {} valve slowly" (guide.md).', "red", "blue"),
    ('It says "Drain the pump [...] open the {} valve" (guide.md).', "red", "blue"),
    ('It says "Drain the pump […] open the {} valve" (guide.md).', "red", "blue"),
    ('"The {} valve … the pump before the first frost" (guide.md) is out of order; "wait" (guide.md)', None, "red"),
    ('It says "[d]rain the {} [of the plant] before the first frost" (guide.md).', "pump", "tank"),
    ('It says "Drain the *pump* before the **{}** frost" (guide.md).', "first", "last"),
    ('It says "Drain the pump before the _{}_ frost" (guide.md).', "first", "last"),
    ('**"Drain the pump before the {} frost"** (guide.md)', "first", "last"),
    ('The code is "{}" (guide.md).', "4712", "4713"),
    ('It allows "{} bar" (guide.md).', "1.5", "15"),
    ('It stays "below {} kPa at 80 % load" (guide.md).', "-5", "5"),
    ('It is "{}" at first (guide.md).', "Cold", "Warm"),
    ("It says “Drain the pump before the {} frost” (guide.md).", "first", "last"),
    ("Es heißt „Die Ventile öffnen bei {} °C“ (guide.md).", "30", "31"),
    ("Es heißt »Die Ventile öffnen bei {} °C« (guide.md).", "30", "31"),
    ("Il dit « L’eau est {} » (guide.md).", "froide", "chaude"),
    ("它说「泵必须在{}天排空」(guide.md)。", "冬", "夏"),
    ("它说“泵必须在{}天排空”（guide.md）。", "冬", "夏"),
    ("它说『泵必须在{}天排空』 [1]。\n\n[1] guide.md", "冬", "夏"),
    ("It says ‘isn’t “fixed”: the users’, and ‘board says {} exceed 1.5 bar’ (guide.md).", "never", "always"),
    ("It says 'the pump before the {} frost' (guide.md).", "first", "last"),
    ('It says "the boiler\'s rule: isn\'t “fixed”" is odd, the users\' "{} exceed" (guide.md)', None, "always"),
    ("It says \"It isn't “{}”: the users' board\" (guide.md).", "fixed", "broken"),
    ('It says "the boiler is kept at {} degrees in winter mode" (guide.md).', "9", "8"),
    ('Set `x = "nothing"`, as "the {} valve" (guide.md).', "red", "blue"),
    ("> Drain the pump before the first frost. Then open the {} valve slowly.\n>\n> — guide.md", "red", "blue"),
    ("> Drain the pump before the {} frost.\n\n(guide.md)", "first", "last"),
    ('> "Drain the pump before the {} frost." (guide.md)', "first", "last"),
    ('| what | quote | source |\n|---|---|---|\n| pump | "the {} frost" | guide.md |', "first", "last"),
    ('- **Pump**: "Drain the pump before\n  the {} frost" (guide.md)', "first", "last"),
    # lines, pages, sheets, sections
    ('"The boiler is kept at 9 degrees" (guide.md, line {})', "7", "6"),
    ('"The boiler is kept at 9 degrees" (guide.md, line {})', "10", "99"),
    ('"The boiler is kept at 9 degrees" (guide.md, lines {})', "6-8", "11–14"),
    ('"The boiler is kept at 9 degrees" (`guide.md:{}`)', "7", "1"),
    ('"The boiler is kept at 9 degrees" ([guide.md](guide.md#L{}))', "7", "1"),
    ('"The boiler is kept at 9 degrees" (guide.md, section {})', "Cold start", "Warm start"),
    ('"Pressure stays below" (guide.md, § {})', "3.2", "3.3"),
    ('"The boiler is kept at 9 degrees" (guide.md, Operation > {})', "Cold start", "3.2 Limits"),
    ('"The boiler is kept at 9 degrees" (guide.md, {})', "Cold start", "3.2 Limits"),
    ('"The boiler is kept at 9 degrees" (guide.md#{})', "cold-start", "32-limits"),
    ('"The second page is about tea" (report.pdf, p. {})', "2", "3"),
    ('"The second page is about tea" (report.pdf, page {})', "2", "12"),
    ('"The second page is about tea" (report.pdf, pp. {})', "2-4", "3-4"),
    ('"The second page is about tea" (report.pdf, p. {})', "1–2", "3–4"),
    ('"The second page is about tea" (report.pdf, pages {})', "1 and 2", "3 and 4"),
    ('"The second page is about tea" (report.pdf, pp. {})', "1, 2", "1, 3"),
    ('"The second page is about tea" (report.pdf, S. {})', "2", "3"),
    ('"The third page counts 31 ships" (report.pdf, p. {})', "2f.", "1f."),
    ('"Tea from the north is sold in small boxes" (report.pdf, p. {})', "2", "1"),
    ('"Tea from the north is sold in small boxes" (report.pdf, p. {})', "3", "4"),
    ('"Tea from the north is sold in {} boxes of tin" (report.pdf, pp. 2-3)', "small", "large"),
    ('On page {}, the report says "twelve bridges" [1].\n\n[1]: report.pdf', "1", "2"),
    ('"twelve bridges" [1, p. {}]\n\n[1]: report.pdf', "1", "2"),
    ('"twelve bridges" [1] (p. {})\n\n[1]: report.pdf', "1", "2"),
    ('"twelve bridges"[^1]\n\n[^1]: report.pdf, p. {}.', "1", "2"),
    ('"twelve bridges"¹\n\n¹ report.pdf, p. {}', "1", "2"),
    ('| Quote | Source | Page |\n|---|---|---|\n| "twelve bridges" | report.pdf | {} |', "1", "2"),
    ('| Page | Quote | Source |\n|---|---|---|\n| {} | "twelve bridges" | report.pdf |', "1", "2"),
    ("The bridges are counted (report.pdf, p. {}).", "4", "5"),
    ('"copper pipe" (book.xlsx, sheet {})', "Costs", "Rain"),
    ('"copper pipe" (book.xlsx, sheet "{}")', "Costs", "Rain"),
    ('"copper pipe" (book.xlsx, {})', "Costs", "Rain"),
    ('The pipe costs "{}" (book.xlsx, sheet Costs).', "318", "381"),
    # names
    ('"Drain the pump" ({})', "guide.md", "userguide.md"),
    ('"Drain the pump" ({})', "see guide.md", "user guide.md"),
    ('"Drain the pump" ({})', "./guide.md", "docs/guide.md"),
    ('"Drain the pump" ({})', "files: guide.md", "my guide.doc"),
    ('"The north gate opens at seven" ({})', "my notes.md", "his notes.md"),
    ('"The {}" (readme.md)', "east gate opens at six", "east gate closes at nine"),
    ('"The {}" (readme.md)', "south gate closes at nine", "south gate opens at six"),
    ('"The east gate opens at six" ({}/readme.md)', "one", "two"),
    ('"Drain the pump" [1]\n\n[1] {}', "guide.md", "aguide.md"),
    ('"Drain the pump" [{}]\n\n[1] guide.md\n[2] report.pdf', "1", "2"),
    ('"Drain the pump" [1], "twelve bridges" [{}]\n\n1. guide.md\n2. report.pdf', "2", "1"),
    ('According to {}, "Drain the pump".', "guide.md", "guides.md"),
    ('From **{}**:\n\n- "Drain the pump"\n- "the red valve"', "guide.md", "report.pdf"),
    ('### {}\n\nIt says "Drain the pump".', "guide.md", "report.pdf"),
    ("See ({}).", "letter.docx", "letters.docx"),
]


@pytest.mark.parametrize(("answer", "true", "invented"), KINDS)
def test_true_details_pass_and_invented_ones_fail(
    answer: str, true: str | None, invented: str, shelf: Workspace
) -> None:
    if true:
        found = check(shelf, answer.replace("{}", true), strict=True)
        assert found.ok, check_text(found)
    found = check(shelf, answer.replace("{}", invented))
    assert not found.ok, check_text(found)


def test_a_quotation_elsewhere_is_told_with_its_place(shelf: Workspace) -> None:
    found = check_text(check(shelf, '"The second page is about tea" (report.pdf, p. 3)'))
    assert found.startswith("line 1: elsewhere: report.pdf (p. 2, line ")


def test_the_summary_says_how_much_was_checked(shelf: Workspace) -> None:
    answer = (
        'It says "Drain the pump" (guide.md) and "the red valve" (guide.md).\n\nIt counts "twelve bridges".\n\n'
        'It adds "the blue valve" (guide.md).\n\nSomebody says "nothing of this kind".\n'
    )
    found = check(shelf, answer)
    assert found.summary == "3 of 5 quotations found, 1 not found, 1 without a source"
    assert [one.line for one in found.quotes] == [1, 1, 3, 5, 7]
    uncited = 'He says "nothing of this kind".'
    assert (check(shelf, uncited).ok, check(shelf, uncited, strict=True).ok) == (True, False)
    assert check(shelf, uncited).summary == "0 of 1 quotation found, 1 without a source"


@pytest.mark.parametrize(
    ("answer", "unread"),
    [
        ('"The contract ends in May" (letter.docx, p. 3)', "p. 3 of letter.docx"),
        ('"Drain the pump" (guide.md, row 3, accessed yesterday)', "accessed yesterday of guide.md"),
        ('It says "Drain the pump" (p. 3).', "p. 3, of no named source"),
        ('It says "Drain the pump (guide.md).', "a quotation mark without its pair"),
        ('The sign is ">=" (guide.md).', ">="),
    ],
)
def test_what_is_not_compared_is_said(answer: str, unread: str, shelf: Workspace) -> None:
    found = check(shelf, answer)
    assert found.ok
    assert f"line 1: {unread}" in found.not_compared
    assert f"{len(found.not_compared)} not compared" in check_text(found).splitlines()[-1]


def test_answer_of_ask_is_checked_by_its_documents_and_other_numbers_are_listed(shelf: Workspace) -> None:
    documents = [{"content": "", "metadata": {"collection": "files", "source_file": "letter.docx"}}]
    saved = json.dumps({"answer": 'It says "ends in May" [1], after 77 days [1].', "documents": documents})
    found = check(shelf, saved)
    assert (found.ok, found.not_quoted) == (True, ["line 1: 77"])
    with refused(QueryError, "text"):
        check(shelf, "{}")


def test_code_is_no_quotation_and_apostrophes_are_none(shelf: Workspace) -> None:
    answer = (
        "The users' board isn't the dogs' board: it's 5\" wide, in the '90s. Run `echo \"x y\"`:\n\n"
        '```sh\necho "nothing here"\n```\n\nSee `guide.md`.\n'
    )
    found = check(shelf, answer, strict=True)
    assert (found.quotes, found.not_compared, found.ok) == ([], [], True)


@pytest.mark.parametrize(
    "sign", ['"', "“", "'a ", "‘", "„", '"a" [1] ', "(a.md, p. 3) ", '> "a\n', "[1] a.md\n", "p. 3-", "| "]
)
def test_a_long_answer_of_signs_is_read_in_time(sign: str, shelf: Workspace) -> None:
    """A page of signs that open and never close takes no longer than others: each is looked at a few times."""
    check(shelf, sign * (20_000 // len(sign)) + " end")
