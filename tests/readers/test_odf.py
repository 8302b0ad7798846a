"""OpenDocument texts and presentations: what no other format has. What they share is in test_office_table.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.readers.office_builder import frame, odf_content, odf_file, odf_table, p, read, text_of
from tests.visits import steps


def test_headings_are_counted_in_tables_too() -> None:
    level = '<text:outline-level-style text:level="{0}" style:num-format="1" text:display-levels="{0}"/>'
    outline = f"<text:outline-style>{level.format(1)}{level.format(2)}</text:outline-style>"
    first, second = ('<text:h text:outline-level="1">Oak</text:h>', '<text:h text:outline-level="2">Bark</text:h>')
    body = first + odf_table([second]) + second + first
    text = text_of(read(odf_file("text", body, outline), ".odt"))
    assert text == "# 1 Oak\n\n| 1.1 Bark |\n| --- |\n\n## 1.2 Bark\n\n# 2 Oak"


def hiding_style(name: str, parent: str = "", shown: str = "", family: str = "paragraph") -> str:
    above = f'style:parent-style-name="{parent}"' if parent else ""
    display = f'<style:text-properties text:display="{shown}"/>' if shown else ""
    return f'<style:style style:name="{name}" style:family="{family}" {above}>{display}</style:style>'


HIDING_STYLES = (
    hiding_style("H", shown="none")
    + hiding_style("P1", "H")
    + hiding_style("P2", "P1", "true")
    + hiding_style("S", shown="true", family="text")
    + hiding_style("T1", "N", family="text")
    + hiding_style("N", shown="none", family="text")
)


@pytest.mark.parametrize(
    ("style", "span", "visible"),
    [
        ("H", "", False),
        ("P1", "", False),
        ("P2", "", True),
        ("H", "S", True),
        ("P1", "S", True),
        ("P1", "other", False),
        ("", "T1", False),
        ("P2", "N", False),
    ],
)
def test_text_is_hidden_by_the_nearest_style(style: str, span: str, visible: bool) -> None:
    body = p("Text") + p(f'<text:span text:style-name="{span}">cedar planted here</text:span>', style)
    document = read(odf_file("text", body, HIDING_STYLES), ".odt")
    assert text_of(document) == "Text" + "\n\ncedar planted here" * visible
    assert document.lost == {}


def test_empty_columns_and_repeated_rows_cost_nothing() -> None:
    cell = f"<table:table-cell>{p('a')}</table:table-cell>"

    def read_table(repeats: int) -> None:
        cells = f'{cell}<table:table-cell table:number-columns-repeated="{repeats}"/>{cell}</table:table-row>'
        rows = f'<table:table-row>{cells}<table:table-row table:number-rows-repeated="{repeats}">{cells}'
        document = read(odf_file("text", f"<table:table>{rows}</table:table>"), ".odt")
        assert text_of(document).startswith("| a | a |\n| --- | --- |\n| a | a |")
        assert document.lost == {}

    assert steps(read_table, 1_048_576) == steps(read_table, 16_384)


EMPTY_MARGINS = (  # what programs write on every master
    frame("<presentation:header/>", "header")
    + frame("<presentation:date-time/>", "date-time")
    + frame("<presentation:footer>&lt;footer&gt;</presentation:footer>", "footer")
    + frame("<text:page-number>&lt;number&gt;</text:page-number>", "page-number")
    + frame("Slide <text:page-number>&lt;number&gt;</text:page-number>", "page-number")
)


def test_what_masters_notes_and_handouts_show_stands_once() -> None:
    notes = frame("Oak notes", "header") + frame("of 3 May", "footer") + frame("Say it", "notes")
    slide = f"<draw:page><presentation:notes>{notes}</presentation:notes></draw:page>"
    declared = (
        '<presentation:footer-decl presentation:name="f">Oak Ltd</presentation:footer-decl>'
        '<presentation:date-time-decl presentation:source="fixed">4 May</presentation:date-time-decl>'
        '<presentation:date-time-decl presentation:source="current-date">today</presentation:date-time-decl>'
    )
    master = f"<style:handout-master>{EMPTY_MARGINS}{frame('Oak handout', 'header')}</style:handout-master>"
    prompt = frame("Click to edit", "title", 'presentation:placeholder="true"')
    master += f"<style:master-page>{EMPTY_MARGINS}{frame('Oak slides', 'footer')}{prompt}{frame('Oak box')}"
    master += f"<presentation:notes>{EMPTY_MARGINS}{frame('Oak slides', 'footer')}</presentation:notes>"
    master += "</style:master-page>"
    document = read(odf_file("presentation", declared + slide * 2, pages=master), ".odp")
    assert [(block.text, block.place.page, block.place.kind) for block in document.blocks if block.text] == [
        ("Oak handout", None, "header"),
        ("Oak slides", None, "footer"),
        ("Oak box", None, "header"),
        ("Oak Ltd", None, "footer"),
        ("4 May", None, "footer"),
        ("## Slide 1", 1, ""),
        ("[Notes: Say it]", 1, "note"),
        ("Oak notes", 1, "header"),
        ("of 3 May", 1, "footer"),
        ("## Slide 2", 2, ""),
        ("[Notes: Say it]", 2, "note"),
    ]
    assert document.lost == {}


def test_objects_may_lead_to_nothing_outside_or_to_themselves(tmp_path: Path) -> None:
    (tmp_path / "content.xml").write_text("secret", encoding="utf-8")
    hrefs = ("./Gone", "../../etc", "https://e.org/a", tmp_path.as_uri(), "./Object 1")
    frames = "".join(f'<draw:frame><draw:object xlink:href="{href}"/></draw:frame>' for href in hrefs)
    inner = odf_content("text", p(f"Inner {frames}"))
    document = read(odf_file("text", p(f"Text {frames}"), **{"Object 1/content.xml": inner}), ".odt")
    assert text_of(document) == "Text\n\nInner"
