"""Files whose lines say where they are, to compare with the places that are named for them.

The lines of place ``n`` have the word ``mark<n>``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ragistry.chunking.places import place_at
from ragistry.types import Chunk, Document
from tests.readers.office_builder import epub_file

MARK = re.compile(r"mark(\d+)")
SENTENCE = re.compile(r"(?:Sentence \d+ of |Section )mark\d+(?: has words to read\.)?")


def words_of(place: int, count: int) -> list[str]:
    """The lines of a place."""
    return [f"Sentence {number} of mark{place} has words to read." for number in range(count)]


def pdf(path: Path, counts: Sequence[int]) -> list[dict[str, Any]]:
    from fpdf import FPDF

    file = FPDF()
    file.set_auto_page_break(auto=False)
    for place, count in enumerate(counts):
        file.add_page(orientation="landscape" if place % 2 else "portrait", format=(150, 150 + 5 * count))
        file.set_font("helvetica", size=9)
        for line in words_of(place, count):
            file.multi_cell(0, 5, line, new_x="LMARGIN", new_y="NEXT")
    file.output(str(path))
    return [{"page": place + 1} for place in range(len(counts))]


def pptx(path: Path, counts: Sequence[int]) -> list[dict[str, Any]]:
    from pptx import Presentation

    deck = Presentation()
    for place, count in enumerate(counts):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = f"Slide mark{place}"
        slide.placeholders[1].text = "\n".join(words_of(place, count))
        slide.notes_slide.notes_text_frame.text = f"Note of mark{place}."
    deck.save(str(path))
    return [{"page": place + 1} for place in range(len(counts))]


def xlsx(path: Path, counts: Sequence[int]) -> list[dict[str, Any]]:
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for place, count in enumerate(counts):
        sheet = book.create_sheet(f"Sheet mark{place}")
        for row, line in enumerate(words_of(place, count)):
            sheet.append([line, row, f"mark{place}"])
    if not counts:
        book.create_sheet("Empty")
    book.save(str(path))
    return [{"sheet": f"Sheet mark{place}"} for place in range(len(counts))]


def docx(path: Path, counts: Sequence[int]) -> list[dict[str, Any]]:
    from docx import Document as Docx

    document = Docx()
    for place, count in enumerate(counts):
        document.add_heading(f"Part mark{place}", 1)
        for line in words_of(place, count):
            document.add_paragraph(line)
    document.save(str(path))
    return [{"heading_context": f"Part mark{place}"} for place in range(len(counts))]


def epub(path: Path, counts: Sequence[int], more: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A book whose chapters have their titles in the text, in the table of contents, or in both; and ``more`` words."""
    pages = {}
    for place, count in enumerate(counts):
        heading = f"<h2>Chapter mark{place}</h2>" if place % 3 else ""
        pages[f"c {place}.xhtml"] = heading + "".join(
            f"<p>{line}</p>" for line in [*words_of(place, count), *more[place : place + 1]]
        )
    links = (f'<li><a href="c%20{n}.xhtml#top">Chapter mark{n}</a></li>' for n in range(len(counts)) if n % 3 != 1)
    path.write_bytes(epub_file(pages, "".join(links)))
    return [{"chapter": f"Chapter mark{place}"} for place in range(len(counts))]


def md(path: Path, counts: Sequence[int]) -> list[dict[str, Any]]:
    """A page with front matter; every third section is below the one before."""
    lines = ["---", "title: Page", "---", ""]
    places = []
    above = ""
    for place, count in enumerate(counts):
        inner = place % 3 == 2
        lines += [f"{'##' if inner else '#'} Section mark{place}", *words_of(place, count), ""]
        places.append({"heading_context": f"{above if inner else ''}Section mark{place}"})
        above = above if inner else f"Section mark{place} > "
    path.write_text("\n".join(lines), encoding="utf-8")
    return places


def rst(path: Path, counts: Sequence[int]) -> list[dict[str, Any]]:
    """A text with markup, lists, code and tables, whose words stand in the order of the page."""
    lines: list[str] = []
    for place, count in enumerate(counts):
        lines += [f"Section mark{place}", "=" * 20, "", ".. index:: hidden", ""]
        for number, line in enumerate(words_of(place, count)):
            lines += {
                0: [f"**{line}**", f"And ``more`` of it{number}.", ""],
                1: [f"- {line}", ""],
                2: ["::", "", f"    {line}", ""],
                3: [f".. note:: {line}", ""],
            }[number % 4]
    path.write_text("\n".join(lines), encoding="utf-8")
    return [{"heading_context": f"Section mark{place}"} for place in range(len(counts))]


MAKERS: dict[str, Callable[[Path, Sequence[int]], list[dict[str, Any]]]] = {
    make.__name__: make for make in (pdf, pptx, xlsx, docx, epub, md, rst)
}


def misplaced(path: Path, places: Sequence[dict[str, Any]], chunks: Sequence[Chunk]) -> Iterator[str]:
    """Yield the lines of chunks that are in another place than the one named for them."""
    file = path.read_text(encoding="utf-8").split("\n") if path.suffix in (".md", ".rst") else []
    for chunk in chunks:
        document, offset = Document(chunk.text, chunk.metadata, 1.0), 0
        for line in chunk.text.split("\n"):
            named = place_at(document, offset)
            for mark in set(MARK.findall(line)):
                expected = places[int(mark)]
                if any(named.get(key) != value for key, value in expected.items()):
                    yield f"{line!r} is at {expected}, not {named}"
            written = [line] if path.suffix == ".md" else SENTENCE.findall(line)
            if file and any(one not in file[named["line"] - 1] for one in written):
                yield f"{line!r} is not line {named['line']}"
            offset += len(line) + 1
