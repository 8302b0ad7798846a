"""Questions with the text that answers them, and the office files that some of them are about.

The questions were written from the documents, before any result was looked at. An answer is text of the document, in
the words and the spelling that it has there.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Question(NamedTuple):
    """A question, the source that answers it (the end of its name), and the answer as the source spells it."""

    query: str
    source: str
    answer: str


PDFS = (
    Question("what is the capital of Finland", "latex-multicolumn.pdf", "Helsinki"),
    Question("area of Denmark in km2", "latex-multicolumn.pdf", "42,951"),
    Question("how much does the stabilizer wiring change cost", "federal-register-three-column.pdf", "Up to $10,505"),
    Question("cost of the AOA sensor system test for the US fleet", "federal-register-three-column.pdf", "$248,200"),
    Question("phone number of Doug Rudolph", "federal-register-three-column.pdf", "329–4059"),  # noqa: RUF001 - as it is printed
    Question("how many people died in Lion Air Flight 610", "federal-register-three-column.pdf", "189 fatalities"),
    Question("when is MCAS activated", "federal-register-three-column.pdf", "with flaps up"),
    Question("what does a stick shaker do", "federal-register-three-column.pdf", "vibrates the control column"),
    Question("how many background checks were made in Alaska", "nics-wide-table.pdf", "7,095"),
    Question("background checks total of Kentucky", "nics-wide-table.pdf", "295,891"),
    Question("how many queries does the clinc dataset have", "acl-two-column.pdf", "23,700 queries"),
    Question("how much were crowd workers paid per task", "acl-two-column.pdf", "$0.20 per task"),
    Question("out-of-scope recall of the best system", "acl-two-column.pdf", "66% out-of-scope recall"),
    Question("number of training queries per intent in the small variant", "acl-two-column.pdf", "50 training queries"),
    Question("word embeddings of the CNN classifier", "acl-two-column.pdf", "GloVe"),
    Question("how many conversation turns does MTRAG-UN contain", "arxiv-two-column-long.pdf", "over 2,800"),
    Question("how many passages are in the Telco corpus", "arxiv-two-column-long.pdf", "52,350"),
    Question("which retriever performs best in MTRAG-UN", "arxiv-two-column-long.pdf", "Elser still performs best"),
    Question("share of questions that require rewrite", "arxiv-two-column-long.pdf", "45.7% in MTRAG-UN"),
    Question("word limit in the generation prompt", "arxiv-two-column-long.pdf", "less than 150 words"),
    Question("who patented the typewriter", "multi-page-report.pdf", "Christopher Latham Sholes"),
    Question("when was Microsoft Word launched", "multi-page-report.pdf", "MS-DOS in 1983"),
    Question("which operating system was WordStar developed for", "multi-page-report.pdf", "CP/M"),
    Question("tools for writing film scripts", "multi-page-report.pdf", "Final Draft and Celtx"),
    Question("when was undo introduced", "multi-page-report.pdf", "Introduced in the 1980s"),
    Question("storage of the IBM MT/ST", "multi-page-report.pdf", "magnetic tape storage"),
    Question("tools for dictation and voice typing", "multi-page-report.pdf", "NaturallySpeaking"),
    Question("what is the bellows type of self-locking nut made of", "faa-handbook.pdf", "aluminum alloy only"),
    Question("how can a Boots self-locking nut be loosened", "faa-handbook.pdf", "Only a wrench"),
    Question("which line of form 1040NR is farm income", "irs-form-1040nr.pdf", "19 Farm income"),
    Question("which form for scholarship and fellowship grants", "irs-form-1040nr.pdf", "1042-S"),
    Question("airfare of S Cowing from Kansas City to Washington", "senate-expenditures.pdf", "907.96"),
    Question("Verkettung stetiger Abbildungen", "german-geometry-book.pdf", "f : X → Z stetig"),
)  # fmt: skip

ETCD = (
    Question("default heartbeat interval of etcd", "tuning.md", "100ms"),
    Question("upper limit of the election timeout", "tuning.md", "50000ms"),
    Question("set the disk priority of etcd on Linux", "tuning.md", "ionice -c2 -n0"),
    Question("how is a snapshot taken with etcdctl", "op-guide/maintenance.md", "etcdctl snapshot save"),
    Question(
        "command to defragment all endpoints of the cluster", "op-guide/maintenance.md", "etcdctl defrag --cluster"
    ),
    Question("default value of snapshot-count", "op-guide/maintenance.md", "100,000"),
    Question("recommended retention for frequent updates to the same keys", "op-guide/maintenance.md", "1h or 30m"),
    Question("set a small space quota of 16 MiB", "op-guide/maintenance.md", "--quota-backend-bytes=$((16*1024*1024))"),
    Question("maximum size of a request", "dev-guide/limit.md", "1.5 MiB"),
    Question("how do you pronounce etcd", "faq.md", "distributed etc directory"),
    Question("failure tolerance of a cluster of seven members", "faq.md", "7 │ 4 │ 3"),
    Question("how to fix mvcc: database space exceeded", "faq.md", "Disarm"),
    Question("restore a snapshot copied from the data directory", "op-guide/recovery.md", "--skip-hash-check"),
    Question("terminate all watches after a restore", "op-guide/recovery.md", "--mark-compacted"),
    Question("is etcd on Windows supported", "op-guide/supported-platform.md", "Windows │ 3"),
    Question("run etcd on an unsupported architecture", "op-guide/supported-platform.md", "ETCD_UNSUPPORTED_ARCH"),
    Question("instance type on AWS for a small cluster", "op-guide/hardware.md", "m4.large"),
    Question("what is a lease", "learning/glossary.md", "short-lived renewable contract"),
)  # fmt: skip

HUGO = (
    Question("default port of the Hugo development server", "getting-started/usage.md", "localhost:1313"),
    Question("publish drafts from the command line", "getting-started/usage.md", "--buildDrafts"),
    Question("redirect the browser to the page I edited last", "getting-started/usage.md", "--navigateToChanged"),
    Question("virus scanner slows down the build", "troubleshooting/performance.md", "400% or more"),
    Question("find out which templates are slow", "troubleshooting/performance.md", "--templateMetrics"),
    Question("file changes are not detected in WSL", "troubleshooting/faq.md", "--poll 700ms"),
    Question(
        "how long are deprecations logged as a warning", "troubleshooting/deprecation.md", "another 12 minor releases"
    ),
    Question("default number of pages per pager", "configuration/pagination.md", "Default is 10"),
    Question("default quality of AVIF images", "configuration/imaging.md", "Default is 60"),
    Question("fastest resampling filter", "configuration/imaging.md", "Fastest resampling filter"),
    Question("generate a robots.txt file", "templates/robots.md", "enableRobotsTXT"),
    Question("name of a 404 template for German", "templates/404.md", "404.de.html"),
    Question(
        "build option that never renders a page", "content-management/build-options.md", "Never render the page to disk"
    ),
    Question("divider for a manual summary in Emacs Org Mode", "content-management/summaries.md", "# more"),
    Question(
        "command to create new content from an archetype",
        "content-management/archetypes.md",
        "hugo new content posts/my-first-post.md",
    ),
    Question("which index file does a branch bundle have", "content-management/page-bundles.md", "_index.md"),
)  # fmt: skip

OFFICE = (
    Question("budget of the Aarhus pilot", "harbour.pptx", "412,000 kroner"),
    Question("who leads the harbour sensor project", "harbour.pptx", "Ingrid Solberg"),
    Question("battery life of a water sensor", "harbour.pptx", "nineteen months"),
    Question("risk of ice for the buoys", "harbour.pptx", "below minus eight degrees"),
    Question("when does the second phase of the pilot start", "harbour.pptx", "17 March"),
    Question("rent of the warehouse in Turku", "stores.xlsx", "5,840"),
    Question("how many parking places has the store in Malmö", "stores.xlsx", "73"),
    Question("phone extension of the night porter", "stores.xlsx", "4417"),
    Question("how long are visitor badges valid", "staff-handbook.docx", "expires at midnight"),
    Question("allowance for meals when travelling abroad", "staff-handbook.docx", "46 euros a day"),
    Question("who approves overtime", "staff-handbook.docx", "shift supervisor"),
    Question("steps to report a stolen laptop", "staff-handbook.docx", "Call the duty desk"),
    Question("what did the lighthouse keeper find in the boat", "lighthouse.epub", "a brass sextant"),
    Question("name of the keeper's dog", "lighthouse.epub", "Bosun"),
    Question("how many steps has the lighthouse tower", "lighthouse.epub", "two hundred and eleven"),
)  # fmt: skip

QUESTIONS: dict[str, Sequence[Question]] = {"pdfs": PDFS, "docs-etcd": ETCD, "docs-hugo": HUGO, "office": OFFICE}

SLIDES = (
    ("Harbour sensors", "Measuring water in three ports. Autumn review."),
    ("Agenda", "Team. Ports. Hardware. Budget. Risks. Plan."),
    ("Team", "The project is led by Ingrid Solberg. Data: Pekka Laine. Field work: Mads Holm and Ewa Nowak."),
    ("Ports", "Aarhus has nine buoys, Gdynia four and Turku six. All report every ten minutes over radio."),
    ("Hardware", "A sensor measures salt, oxygen and temperature. Its battery lasts nineteen months at ten minutes."),
    ("Budget", "The pilot in Aarhus costs 412,000 kroner. Gdynia is paid by the port itself. Turku is not decided."),
    ("Risks", "Buoys are taken in after a cold week, when the air stays below minus eight degrees at noon."),
    ("Plan", "The first phase ends in February. The second phase starts on 17 March with all three ports."),
    ("Questions", "Thank you. Slides and data are on the shared drive."),
)  # fmt: skip
SHEETS: dict[str, tuple[tuple[object, ...], ...]] = {
    "Stores": (
        ("City", "Street", "Parking places", "Opened"),
        *((city, f"{city} Road {number}", 20 + 7 * number, 1990 + number) for number, city in enumerate((
            "Oslo", "Bergen", "Tromsø", "Bodø", "Narvik", "Molde", "Skien", "Halden", "Moss", "Hamar", "Lund",
            "Kalmar", "Visby", "Borås", "Gävle", "Umeå", "Luleå", "Örebro", "Växjö", "Ystad", "Kiruna", "Falun",
        ))),
        ("Malmö", "Stortorget 4", 73, 2016),
    ),
    "Warehouses": (
        ("Warehouse", "Rent a month", "Area"),
        ("Oslo north", 7_310, 900), ("Turku", 5_840, 1_150), ("Gdynia", 3_925, 870), ("Aarhus", 6_105, 640),
    ),
    "Phones": (
        ("Desk", "Extension"),
        ("Reception", 4400), ("Night porter", 4417), ("Workshop", 4423), ("Canteen", 4431), ("Post room", 4438),
    ),
}  # fmt: skip
HANDBOOK = (
    ("Welcome", "This handbook is for everyone who works at the yard. It is revised every spring."),
    ("Access", ""),
    ("Badges", "Wear your badge where it can be seen. A visitor badge is given at the gate and expires at midnight."),
    ("Keys", "Keys to the halls are kept in the gate house. Sign for them and bring them back on the same day."),
    ("Working time", ""),
    ("Shifts", "The early shift begins at six, the late shift at two. Swap shifts in the calendar before Thursday."),
    ("Overtime", "Overtime is approved by the shift supervisor before it is worked, and is paid with the next salary."),
    ("Travel", ""),
    ("Booking", "Book trains before flights. The travel desk books for groups of four or more."),
    ("Meals", "Within the country you get 28 euros a day for meals. Abroad the allowance is 46 euros a day."),
    ("Equipment", "Laptops belong to the yard. Lock the screen when you leave your desk."),
    ("Loss and theft", "If a laptop or a phone is stolen, do this at once:"),
)  # fmt: skip
THEFT = ("Call the duty desk and give your name.", "Change your password from another device.", "File a police report.")
CHAPTERS = (
    ("The tower", "The tower stood on the outer rock. It had two hundred and eleven steps, and the keeper knew each."),
    ("The dog", "He lived there with a grey dog. The dog was called Bosun and slept beside the stove in all weather."),
    (
        "The boat",
        "In March a boat drifted in without a crew. Under the thwart he found a brass sextant in a wet cloth.",
    ),
    ("The letter", "He wrote to the harbour master that week. The answer came in May and was one line long."),
)


def write_office_files(folder: Path) -> None:
    """Write a deck, a workbook, a handbook and a book of four chapters."""
    from docx import Document
    from openpyxl import Workbook  # type: ignore[import-untyped]
    from pptx import Presentation

    deck = Presentation()
    for title, words in SLIDES:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = "\n".join(f"{one.rstrip('.')}." for one in words.split(". "))
    deck.save(str(folder / "harbour.pptx"))
    book = Workbook()
    book.remove(book.active)
    for name, rows in SHEETS.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for cells in sheet.iter_rows(min_row=2):
            for cell in cells:
                cell.number_format = "#,##0" if name == "Warehouses" else "General"
    book.save(str(folder / "stores.xlsx"))
    handbook = Document()
    handbook.core_properties.title = "Staff handbook"
    for title, words in HANDBOOK:
        handbook.add_heading(title, 1 if not words or title in ("Welcome", "Equipment") else 2)
        if words:
            handbook.add_paragraph(words)
    for step in THEFT:
        handbook.add_paragraph(step, style="List Number")
    handbook.save(str(folder / "staff-handbook.docx"))
    _write_epub(folder / "lighthouse.epub")


def _write_epub(path: Path) -> None:
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    items = "".join(
        f'<item id="c{number}" href="c{number}.xhtml" media-type="application/xhtml+xml"/>'
        for number in range(len(CHAPTERS))
    )
    order = "".join(f'<itemref idref="c{number}"/>' for number in range(len(CHAPTERS)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="i">1</dc:identifier>'
        "<dc:title>The lighthouse</dc:title><dc:language>en</dc:language></metadata>"
        f"<manifest>{items}</manifest><spine>{order}</spine></package>"
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("book.opf", package)
        for number, (title, words) in enumerate(CHAPTERS):
            page = f"<body><h1>{title}</h1><p>{words}</p></body>"
            archive.writestr(f"c{number}.xhtml", f'<html xmlns="http://www.w3.org/1999/xhtml">{page}</html>')
