"""Each kind of content is read in every office format that has it, with the same text and at its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ragistry import open_workspace
from ragistry.readers.blocks import ReadDocument, UnreadableFileError
from tests.conftest import write_config
from tests.readers.office_builder import (
    BUILDERS,
    ODF_KINDS,
    PHRASES,
    URL,
    URN,
    XML_URL,
    Part,
    ap,
    book_file,
    cells,
    changed,
    chart_xml,
    deck_file,
    diagram_xml,
    drawing,
    fill,
    frame,
    graphic,
    item,
    odf_content,
    odf_file,
    odf_row,
    odf_table,
    p,
    read,
    run,
    sheet,
    slide,
    sp,
    text_of,
    word_file,
    wp,
    zipped,
)  # fmt: skip
from tests.visits import check_linear

Cell = str | dict[str, str]
"""The body of a file for one phrase, or the body and the pieces of further parts by their kinds."""


def kind(name: str, text: str = "PHRASE", **formats: Cell) -> tuple[str, tuple[str, dict[str, Cell]]]:
    """A kind of content: its name, what is read of one phrase, and the cell of each format.

    A line of the text begins with the kind of its place, unless it is in the body.
    """
    return name, (text, {f".{suffix}": cell for suffix, cell in formats.items()})


def plain(text: str) -> dict[str, str]:
    """A paragraph in each format."""
    of_word, of_slides, of_odf = wp(run(text)), sp(ap(text)), p(text)
    of_cells = {"xlsx": cells(text), "ods": odf_row(of_odf)}
    return {"docx": of_word, "odt": of_odf, "rtf": rf"{text}\par ", "pptx": of_slides, "odp": frame(text), **of_cells}


PAGE = "<text:page-number>3</text:page-number>"
BAR = "<w:tbl>{}</w:tbl>".format
ROW = "<w:tr>{}</w:tr>".format
SPAN, STARTS, GOES_ON = '<w:gridSpan w:val="2"/>', '<w:vMerge w:val="restart"/>', "<w:vMerge/>"


def tc(text: str, properties: str = "") -> str:
    inner = text if text.startswith("<w:") else wp(run(text))
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{inner}</w:tc>"


def slide_table(*rows: str) -> str:
    return graphic(f"<a:tbl>{''.join(f'<a:tr>{row}</a:tr>' for row in rows)}</a:tbl>")


def ac(text: str, merged: str = "") -> str:
    return f"<a:tc {merged}><a:txBody>{ap(text)}</a:txBody></a:tc>"


def field(code: str, inner: str) -> str:
    marks = [f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")]
    return f"{marks[0]}<w:r><w:instrText>{code}</w:instrText></w:r>{marks[1]}{inner}{marks[2]}"


def odf_note(kind: str) -> str:
    citation = "<text:note-citation>NUMBER</text:note-citation>"
    body = f"<text:note-body>{p('PHRASE')}</text:note-body>"
    return p(f'Text<text:note text:note-class="{kind}">{citation}{body}</text:note> more')


def page(body: str = "", /, **parts: str) -> dict[str, str]:
    return {"body": body, **parts}


def picture(title: str, described: str) -> str:
    return f"<draw:frame><draw:image/><svg:title>{title}</svg:title><svg:desc>{described}</svg:desc></draw:frame>"


def shapes(inner: str) -> str:
    return f"<table:shapes>{inner}</table:shapes>"


def anchored(inner: str) -> str:
    return f"<oneCellAnchor>{inner}</oneCellAnchor>"


CLICK = '<a:hlinkClick r:id="web"/>'
CLICKED = ap("PHRASE").replace("<a:t>", f"<a:rPr>{CLICK}</a:rPr><a:t>")
SECOND_RUN = f"<a:r><a:rPr>{CLICK}</a:rPr><a:t>SECOND</a:t></a:r>"
LINKED = f"[PHRASE]({URL})"


def odf_link(text: str) -> str:
    return f'<text:a xlink:href="{XML_URL}">{text}</text:a>'


def linked_cells(cells: str, more: str = "") -> str:
    return f'<hyperlinks><hyperlink ref="{cells}" r:id="web" {more}/></hyperlinks>'


def formula(address: str) -> str:
    return f'<row><c t="str"><f>HYPERLINK("{address}","PHRASE")</f><v>PHRASE</v></c></row>'


COMMENT = f"<office:annotation><dc:creator>Ann B</dc:creator><dc:date>2026-01-01</dc:date>{p('FIRST')}{p('SECOND')}"
COMMENT += "</office:annotation>"
LIST = '<text:list text:style-name="{}" {}>{}</text:list>'.format
ITEM = "<text:list-item>{}</text:list-item>".format
OBJECT = '<draw:frame><draw:object xlink:href="./Object NUMBER"/><draw:image/></draw:frame>'
OMML = (
    "<m:oMath><m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>FIRST</m:t></m:r></m:den></m:f>"
    "<m:r><m:t>=</m:t></m:r><m:sSup><m:e><m:r><m:t>SECOND</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup>"
    "</m:sSup><m:rad><m:radPr/><m:deg/><m:e><m:r><m:t>n</m:t></m:r></m:e></m:rad></m:oMath>"
)
MATHML = (
    '<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mrow><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow>'
    "<mi>FIRST</mi></mfrac><mo>=</mo><msup><mi>SECOND</mi><mn>2</mn></msup><msqrt><mi>n</mi></msqrt></mrow>"
    '<annotation encoding="StarMath 5.0">source</annotation></semantics></math>'
)
DIAGRAM = diagram_xml("FIRST", "Rain", "SECOND")
CHART = chart_xml("PHRASE", "Rain", "May", "0.25")
BOX = f"<w:txbxContent>{wp(run('PHRASE'))}</w:txbxContent>"
ODF_CHART = odf_content(
    "chart",
    f"<chart:chart><chart:title>{p('PHRASE')}</chart:title><chart:axis><chart:title>{p('Month')}</chart:title>"
    f"</chart:axis><table:table><table:table-header-rows>{odf_row('', 'Rain')}</table:table-header-rows>"
    f"{odf_row('May', '25%')}</table:table></chart:chart>",
)
TABLE = "| FIRST | a\\|b |\n| --- | --- |\n| 1 | SECOND |"
MERGED = "| PHRASE |  | x |\n| --- | --- | --- |\n| y | 2 | 3 |\n|  | 4 | 5 |"

KINDS = dict([
    # --- The text ---
    kind("paragraphs", **plain("PHRASE")),
    kind("headings", "## PHRASE",
         docx=wp(run("PHRASE"), properties='<w:outlineLvl w:val="1"/>'),
         odt='<text:h text:outline-level="2">PHRASE</text:h>',
         rtf=r"\pard\outlinelevel1 PHRASE\par "),
    kind("headings by their style", "# PHRASE",
         docx=wp(run("PHRASE"), "Chapter"),
         odt=p("PHRASE", "P1"),
         rtf=r"\pard\s1 PHRASE\par "),
    kind("no headings", "\\# PHRASE", **plain("# PHRASE")),
    kind("lists", "- PHRASE",
         docx=item(1, 0, "PHRASE"),
         odt=LIST("L2", "", ITEM(p("PHRASE"))),
         rtf=r"{\pntext\f1\'B7\tab}PHRASE\par ",
         pptx=sp(ap("PHRASE", '<a:buChar char="•"/>')),
         odp=frame("").replace(p(""), LIST("", "", ITEM(p("PHRASE"))))),
    kind("numbered lists", "NUMBER. PHRASE\nINDENT- a) sub\nINDENT- b) sub",
         docx=item(2, 0, "PHRASE") + item(2, 1, "sub") + item(2, 1, "sub"),
         odt=LIST("L1", 'text:continue-numbering="true"', ITEM(p("PHRASE") + LIST("", "", ITEM(p("sub")) * 2)))),
    kind("numbered items", "1. PHRASE\n2. end",
         odt=LIST("L1", "", ITEM(p("PHRASE")) + ITEM(p("end"))),
         rtf=r"{\listtext 1.\tab}PHRASE\par{\listtext 2.\tab}end\par\pard ",
         pptx=sp(ap("PHRASE", "<a:buAutoNum/>") + ap("end", "<a:buAutoNum/>"))),
    kind("tables", TABLE,
         docx=BAR(ROW(tc("FIRST") + tc("a|b")) + ROW(tc("1") + tc("SECOND"))),
         odt=odf_table(("FIRST", "a|b"), ("1", "SECOND")),
         rtf=r"\trowd\intbl FIRST\cell a|b\cell\row\intbl 1\cell SECOND\cell\row\pard\par ",
         pptx=slide_table(ac("FIRST") + ac("a|b"), ac("1") + ac("SECOND")),
         odp=f"<draw:frame>{odf_table(('FIRST', 'a|b'), ('1', 'SECOND'))}</draw:frame>",
         xlsx=cells("FIRST", "a|b") + cells("1", "SECOND", row=2),
         ods=odf_row("FIRST", "a|b") + odf_row("1", "SECOND")),
    kind("merged cells", MERGED,
         docx=BAR(ROW(tc("PHRASE", SPAN) + tc("x")) + ROW(tc("y", STARTS) + tc("2") + tc("3"))
             + ROW(tc("", GOES_ON) + tc("4") + tc("5"))),
         odt=odf_table(("PHRASE", "", "x"), ("y", "2", "3"), ("", "4", "5")),
         pptx=slide_table(ac("PHRASE") + ac("no", 'hMerge="1"') + ac("x"), ac("y") + ac("2") + ac("3"),
             ac("no", 'vMerge="1"') + ac("4") + ac("5")),
         xlsx=cells("PHRASE", "", "x") + cells("y", "2", "3", row=2) + cells("", "4", "5", row=3),
         ods=odf_row("PHRASE", "", "x") + odf_row("y", "2", "3") + odf_row("", "4", "5")),
    kind("nested tables", "| x | FIRST SECOND |\n| --- | --- |",
         docx=BAR(ROW(tc("x") + tc(BAR(ROW(tc("FIRST") + tc("SECOND"))) + wp("")))),
         odt=odf_table(("x", odf_table(("FIRST", "SECOND"))))),
    kind("tabs",
         docx=wp("<w:r><w:t>FIRST</w:t><w:tab/><w:ptab/><w:t>SECOND</w:t></w:r>"),
         odt=p("FIRST<text:tab/>SECOND"),
         rtf=r"FIRST\tab SECOND\par "),
    kind("line breaks", "FIRST\nSECOND",
         docx=wp("<w:r><w:t>FIRST</w:t><w:br/><w:t>SECOND</w:t></w:r>"),
         odt=p("FIRST<text:line-break/>SECOND"),
         rtf=r"FIRST\line SECOND\par ",
         pptx=sp(ap("FIRST</a:t></a:r><a:br/><a:r><a:t>SECOND")),
         odp=frame("FIRST<text:line-break/>SECOND")),
    kind("line ends of the file", odt=p("FIRST\n   SECOND"), ods=odf_row("FIRST\n   SECOND")),
    kind("numbers in the text", "3. PHRASE", odt=p("<text:number>3.</text:number>PHRASE")),
    kind("blanks", "FIRST   SECOND", docx=wp(run("FIRST   SECOND")), odt=p('FIRST<text:s text:c="3"/>SECOND')),
    kind("links", LINKED,
         docx=wp(f'<w:hyperlink r:id="web">{run("PHRASE")}</w:hyperlink>'),
         odt=p(f"<text:span>{odf_link('PHRASE')}</text:span>"),
         rtf=rf'{{\field{{\*\fldinst{{HYPERLINK "{URL}"}}}}{{\fldrslt{{\ul PHRASE}}}}}}\par ',
         pptx=sp(CLICKED),
         odp=frame(odf_link("PHRASE")),
         xlsx=page(cells("PHRASE"), after=linked_cells("A1")),
         ods=odf_row(p(odf_link("PHRASE")))),
    kind("links of fields", LINKED, docx=wp(field(f'HYPERLINK "{XML_URL}"', run("PHRASE")))),
    kind("links of simple fields", LINKED,
         docx=wp(f'<w:fldSimple w:instr=" HYPERLINK &quot;{XML_URL}&quot; \\o &quot;tip&quot; ">{run("PHRASE")}'
             "</w:fldSimple>")),
    kind("links of two runs", f"[FIRSTSECOND]({URL})",
         pptx=sp(CLICKED.replace("PHRASE", "FIRST").replace("</a:p>", f"{SECOND_RUN}</a:p>"))),
    kind("links of formulas", LINKED,
         xlsx=formula(XML_URL),
         ods='<table:table-row><table:table-cell office:value-type="string" table:formula="of:=HYPERLINK(&quot;'
             f'{XML_URL}&quot;;&quot;PHRASE&quot;)">{p("PHRASE")}</table:table-cell></table:table-row>'),
    kind("links in boxes", LINKED,
         pptx=f"<p:grpSp>{sp(CLICKED)}</p:grpSp>",
         xlsx=page(drawing=anchored(f"<sp><txBody>{CLICKED}</txBody></sp>"))),
    kind("links in tables", f"| {LINKED} |\n| --- |", pptx=slide_table(f"<a:tc><a:txBody>{CLICKED}</a:txBody></a:tc>")),
    kind("links in notes", f"note: Notes: {LINKED}", pptx=page(notesSlide=sp(CLICKED, "body"))),
    kind("links of numbers", f"[NUMBER]({URL})",
         xlsx=page('<row><c r="A1"><v>NUMBER</v></c></row>', after=linked_cells("A1"))),
    kind("clicked shapes", f"PHRASE\n[Link]({URL})",
         pptx=sp(ap("PHRASE")).replace("<p:cNvPr />", f"<p:cNvPr>{CLICK}</p:cNvPr>")),
    kind("clicked shapes on sheets", f"[Link]({URL})\nPHRASE",
         xlsx=page(drawing=anchored(f"<sp><nvSpPr><cNvPr>{CLICK}</cNvPr></nvSpPr><txBody>{ap('PHRASE')}</txBody></sp>")),
         odp='<draw:custom-shape><office:event-listeners><presentation:event-listener presentation:action="show" '
             f'xlink:href="{XML_URL}"/></office:event-listeners>{p("PHRASE")}</draw:custom-shape>'),
    kind("linked frames", f"[Link]({URL})\nPHRASE", odp=f'<draw:a xlink:href="{XML_URL}">{frame("PHRASE")}</draw:a>'),
    kind("links to a part of a page", f"[PHRASE]({URL}#part)",
         docx=wp(f'<w:hyperlink r:id="web" w:anchor="part">{run("PHRASE")}</w:hyperlink>'),
         xlsx=page(cells("PHRASE"), after=linked_cells("A1:B2", 'location="part"'))),
    kind("links to a place",
         docx=wp(f'<w:hyperlink w:anchor="here">{run("PHRASE")}</w:hyperlink>'),
         odt=p('<text:a xlink:href="#here">PHRASE</text:a>'),
         xlsx=formula("#Two!A1")),
    kind("computed addresses", "[PHRASE](https://e.org/…/x)", xlsx=formula('https://e.org/"&amp;A2&amp;"/x')),
    kind("addresses with a pipe", "| [PHRASE](https://e.org/a\\|b) | b |\n| --- | --- |",
         xlsx=formula("https://e.org/a|b").replace("</row>", '<c t="inlineStr"><is><t>b</t></is></c></row>')),
    kind("fields",
         docx=wp(field("DATE", run("PHRASE"))),
         odt=p("<text:author-name>PHRASE</text:author-name>"),
         rtf=r"{\field{\*\fldinst DATE}{\fldrslt PHRASE}}\par ",
         pptx=sp('<a:p><a:fld type="datetime1"><a:t>PHRASE</a:t></a:fld></a:p>')),
    kind("simple fields", docx=wp(f'<w:fldSimple w:instr="DATE">{run("PHRASE")}</w:fldSimple>')),
    kind("check boxes", "☒ PHRASE",
         docx=wp('<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData>'
             '</w:fldChar><w:instrText>FORMCHECKBOX</w:instrText><w:fldChar w:fldCharType="end"/></w:r>'
             + run(" PHRASE")),
         odt='<office:forms><form:form><form:checkbox form:id="cNUMBER" form:label="PHRASE" '
             'form:current-state="checked"/></form:form></office:forms>' + p('<draw:control draw:control="cNUMBER"/>'),
         rtf=r"{\field{\*\fldinst{\*\formfield{\fftype1\ffres25\ffdefres1}}}} PHRASE\par "),
    kind("check boxes of controls", "☐ PHRASE",
         docx=wp('<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val="0"/></w14:checkbox></w:sdtPr><w:sdtContent>'
             + run("☐") + "</w:sdtContent></w:sdt>" + run(" PHRASE"))),
    kind("fields of forms", "Name: PHRASE",
         odt='<office:forms><form:form><form:text form:id="cNUMBER" form:title="Name" form:current-value="PHRASE"/>'
             "</form:form></office:forms>" + p('<draw:control draw:control="cNUMBER"/>')),
    kind("choices",
         odt=p('<text:drop-down><text:label text:value="no"/>PHRASE</text:drop-down>'),
         rtf=r"{\field{\*\fldinst{\*\formfield{\fftype2\ffres1{\*\ffl One}{\*\ffl PHRASE}}}}}\par "),
    kind("runs without a paragraph", docx=run("PHRASE")),
    kind("tables of one cell", docx=BAR(ROW(tc("PHRASE")))),
    kind("insertions", docx=wp(f'<w:ins w:id="1">{run("PHRASE")}</w:ins>')),
    kind("deleted text",
         docx=wp(f"{run('PHRASE')}<w:del><w:r><w:delText> gone</w:delText></w:r></w:del>"
             f"<w:moveFrom>{run(' away')}</w:moveFrom>"),
         odt="<text:tracked-changes><text:changed-region><text:deletion>" + p("gone") + "</text:deletion>"
             "</text:changed-region></text:tracked-changes>" + p("PHRASE"),
         rtf=r"PHRASE{\deleted  gone}\par "),
    kind("hidden text",
         docx=wp(run("PHRASE") + run(" unseen", "<w:vanish/>") + run(" unseen", '<w:rStyle w:val="Secret"/>')),
         odt=f'<text:section text:display="none">{p("unseen")}</text:section>'
             + p('PHRASE<text:span text:style-name="T2"> unseen</text:span>')),
    kind("content controls", docx=f"<w:sdt><w:sdtPr/><w:sdtContent>{wp(run('PHRASE'))}</w:sdtContent></w:sdt>"),
    kind("inline controls", docx=wp(f"<w:sdt><w:sdtPr/><w:sdtContent>{run('PHRASE')}</w:sdtContent></w:sdt>")),
    kind("sections", odt=f'<text:section text:name="a">{p("PHRASE")}</text:section>'),
    kind("indexes",
         odt="<text:table-of-content><text:table-of-content-source><text:index-title-template>Template"
             "</text:index-title-template></text:table-of-content-source><text:index-body>" + p("PHRASE") +
             "</text:index-body></text:table-of-content>"),
    kind("superscripts", "PHRASE 10⁶ m",
         docx=wp(run("PHRASE 10") + run("6", '<w:vertAlign w:val="superscript"/>') + run(" m")),
         odt=p('PHRASE 10<text:span text:style-name="T1">6</text:span> m')),
    kind("raised letters", "PHRASE 4th",
         docx=wp(run("PHRASE 4") + run("th", '<w:vertAlign w:val="superscript"/>')),
         odt=p('PHRASE 4<text:span text:style-name="T1">th</text:span>')),
    kind("ruby", "漢字(PHRASE)",
         docx=wp("<w:ruby><w:rt><w:r><w:t>PHRASE</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢字</w:t></w:r></w:rubyBase>"
             "</w:ruby>"),
         odt=p("<text:ruby><text:ruby-base>漢字</text:ruby-base><text:ruby-text>PHRASE</text:ruby-text></text:ruby>")),
    kind("hyphens", "FIRST-SECOND softly.",
         docx=wp("<w:r><w:t>FIRST</w:t><w:noBreakHyphen/><w:t>SECOND soft</w:t><w:softHyphen/>"
             "<w:t>ly\u00ad.</w:t></w:r>"),
         odt=p("FIRST-SECOND soft\u00ad<text:soft-page-break/>ly<text:bookmark/>."),
         rtf=r"FIRST\_SECOND soft\-ly.\par "),
    kind("signs of symbol fonts", "PHRASE \u03b1✔",
         docx=wp(run("PHRASE ") +
             '<w:r><w:sym w:font="Symbol" w:char="F061"/><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>'),
         rtf=r"{\fonttbl{\f1\fcharset2 Symbol;}{\f2 Wingdings;}}PHRASE {\f1 a}{\f2 \'fc}\par "),
    kind("formulas", "where (a+b)/FIRST=SECOND^2√(n)",
         docx=wp(run("where ") + OMML),
         pptx=sp(f"<a:p><a:r><a:t>where </a:t></a:r>{OMML}</a:p>"),
         odt=page(p(f"where {OBJECT}"), object=MATHML)),
    # --- What follows a paragraph ---
    kind("footnotes", "Text more\nnote: [Note NUMBER: PHRASE]",
         docx=page(wp(run("Text") + '<w:r><w:footnoteReference w:id="NUMBER"/></w:r>' + run(" more")),
             footnotes=f'<w:footnote w:id="NUMBER">{wp(run("PHRASE"))}</w:footnote>'
             '<w:footnote w:type="separator" w:id="0"><w:p/></w:footnote>'),
         odt=odf_note("footnote")),
    kind("endnotes", "Text more\nnote: [Note NUMBER: PHRASE]",
         docx=page(wp(run("Text") + '<w:r><w:endnoteReference w:id="NUMBER"/></w:r>' + run(" more")) +
             '<w:sectPr><w:endnotePr><w:numFmt w:val="decimal"/></w:endnotePr></w:sectPr>',
             endnotes=f'<w:endnote w:id="NUMBER">{wp(run("PHRASE"))}</w:endnote>'),
         odt=odf_note("endnote")),
    kind("notes of RTF", "Text[NUMBER] more\nnote: [Note NUMBER: PHRASE]",
         rtf=r"Text{\super\chftn}{\footnote\chftn  PHRASE} more\par "),
    kind("comments", "Text\ncomment: [Comment by Ann B: PHRASE]",
         docx=page(wp(f'<w:commentRangeStart w:id="NUMBER"/>{run("Te")}<w:r><w:commentReference w:id="NUMBER"/></w:r>'
             + run("xt")),
             comments=f'<w:comment w:id="NUMBER" w:author="Ann B">{wp(run("FIRST"))}{wp(run("SECOND"))}</w:comment>'),
         odt=p(f"Te{COMMENT}xt"),
         rtf=r"Text{\*\atnid Z}{\*\atnauthor Ann B}\chatn{\*\annotation PHRASE}\par ",
         pptx=page(sp(ap("Text")), comments='<p:cm authorId="0"><p:text>PHRASE</p:text></p:cm>'),
         odp=frame(f"Te{COMMENT}xt")),
    kind("comments on cells", "Text\ncomment: [Comment on A1 by Ann B: FIRST\ncomment: SECOND]",
         xlsx=page(cells("Text"), comments='<authors><author>Ann B</author></authors><comment ref="A1" '
             'authorId="0"><text><t>Ann B:\nFIRST\nSECOND</t></text></comment>'),
         ods=odf_row(COMMENT + p("Text"))),
    kind("notes and comments", "PHRASE text\nnote: [Note NUMBER: below]\ncomment: [Comment by Ann B: why so]",
         docx=page(wp(run("PHRASE") + '<w:r><w:commentReference w:id="NUMBER"/></w:r>'
             '<w:r><w:footnoteReference w:id="NUMBER"/></w:r>' + run(" text")),
             footnotes=f'<w:footnote w:id="NUMBER">{wp(run("below"))}</w:footnote>',
             comments=f'<w:comment w:id="NUMBER" w:author="Ann B">{wp(run("why"))}{wp(run("so"))}</w:comment>'),
         odt=odf_note("footnote").replace("PHRASE", "below").replace("Text<",
             f"PHRASE{COMMENT.replace('FIRST', 'why').replace('SECOND', 'so')}<").replace(" more", " text")),
    kind("headers", "header: PHRASE",
         docx=page(header=wp(run("PHRASE")) + wp(field("PAGE", run("3")))),
         odt=page(pages=f"<style:master-page><style:header>{p('PHRASE')}{p(PAGE)}</style:header></style:master-page>"),
         rtf=r"{\header PHRASE\par}",
         xlsx=page(after="<headerFooter><oddHeader>&amp;LPHRASE&amp;CPage &amp;P</oddHeader></headerFooter>")),
    kind("footers", "footer: PHRASE",
         docx=page(footer=wp(run("PHRASE"))),
         odt=page(pages=f"<style:master-page><style:footer-left>{p('PHRASE')}</style:footer-left></style:master-page>"),
         rtf=r"{\footerl PHRASE}",
         pptx=sp(ap("PHRASE"), "ftr") + sp(ap("NUMBER"), "sldNum"),
         xlsx=page(after="<headerFooter><oddFooter>PHRASE</oddFooter></headerFooter>")),
    kind("notes of slides", "note: Notes: PHRASE", pptx=page(notesSlide=sp(ap("PHRASE"), "body"))),
    kind("boxes of notes", "note: Notes: PHRASE", pptx=page(notesSlide=f"<p:grpSp>{sp(ap('PHRASE'))}</p:grpSp>")),
    kind("tables of notes", "note: Notes: | PHRASE |\nnote: | --- |", pptx=page(notesSlide=slide_table(ac("PHRASE")))),
    kind("pictures of notes", "note: Notes: [Picture: PHRASE]",
         pptx=page(notesSlide='<p:pic><p:nvPicPr><p:cNvPr descr="PHRASE"/><p:nvPr/></p:nvPicPr></p:pic>')),
    kind("headers of notes", "header: PHRASE", pptx=page(notesSlide=sp(ap("PHRASE"), "hdr"))),
    kind("footers of notes", "footer: FIRST\nfooter: SECOND",
         pptx=page(notesSlide=sp(ap("FIRST"), "ftr") + sp(ap("SECOND"), "dt"))),
    kind("notes of open slides", "note: [Notes: PHRASE]",
         odp=f"<presentation:notes>{frame('PHRASE')}</presentation:notes>"),
    # --- Drawings ---
    kind("text boxes",
         docx=wp('<w:r><mc:AlternateContent><mc:Choice Requires="wps">' + drawing(
             f"<wps:wsp><wps:txbx>{BOX}</wps:txbx></wps:wsp>")[5:-6] + "</mc:Choice><mc:Fallback><w:pict>"
             f"<v:shape><v:textbox>{BOX}</v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>"),
         odt=frame("PHRASE"),
         rtf=r"{\shp{\*\shpinst{\sp{\sn x}{\sv y}}{\shptxt PHRASE}}{\shprslt PHRASE}}\par ",
         pptx=f"<mc:AlternateContent><mc:Choice>{sp(ap('PHRASE'))}</mc:Choice><mc:Fallback>{sp(ap('no'))}</mc:Fallback>"
             "</mc:AlternateContent>",
         odp=f"<draw:rect>{p('PHRASE')}</draw:rect>",
         ods=shapes(frame("PHRASE")),
         xlsx=page(drawing=anchored(f"<sp><txBody>{ap('PHRASE')}</txBody></sp>"))),
    kind("groups of boxes",
         odt=p(f"<draw:g><draw:rect>{p('PHRASE')}</draw:rect></draw:g>"),
         odp=f"<draw:g><draw:rect>{p('PHRASE')}</draw:rect></draw:g>",
         pptx=f"<p:grpSp><p:grpSp>{sp(ap('PHRASE'))}</p:grpSp></p:grpSp>",
         ods=odf_row(f"<draw:custom-shape>{p('PHRASE')}</draw:custom-shape>")),
    kind("alternative texts", "[Picture: Cedars: PHRASE]",
         docx=wp(drawing("", 'title="Cedars" descr="PHRASE"')),
         odt=p(picture("Cedars", "PHRASE")),
         rtf=r"{\*\shppict{\pict{\*\picprop{\sp{\sn wzDescription}{\sv Cedars: PHRASE}}}\bin4 }}}{}}\par ",
         pptx=sp("", properties='title="Cedars" descr="PHRASE"'),
         odp=picture("Cedars", "PHRASE"),
         xlsx=page(drawing=anchored('<sp><nvSpPr><cNvPr title="Cedars" descr="PHRASE"/></nvSpPr></sp>')),
         ods=shapes(picture("Cedars", "PHRASE"))),
    kind("alternative texts of parts", "[Picture: FIRST] [Picture: SECOND]",
         odt=p("<draw:frame><draw:image/><draw:image-map><draw:area-circle><svg:title>FIRST</svg:title>"
             "</draw:area-circle></draw:image-map></draw:frame><dr3d:scene><svg:title>SECOND</svg:title><dr3d:sphere/>"
             "</dr3d:scene>")),
    kind("alternative texts of tables", "[Table: PHRASE: Rain]\n| x | y |\n| --- | --- |",
         docx=BAR('<w:tblPr><w:tblCaption w:val="PHRASE"/><w:tblDescription w:val="Rain"/></w:tblPr>'
             + ROW(tc("x") + tc("y"))),
         odt=odf_table(("x", "y")).replace("<table:table>", "<table:table><table:title>PHRASE</table:title>"
             "<table:desc>Rain</table:desc>")),
    kind("watermarks", docx=wp('<w:r><w:pict><v:shape><v:textpath string="PHRASE"/></v:shape></w:pict></w:r>')),
    kind("diagrams", "- FIRST\n    - SECOND\n    - Rain",
         docx=page(wp(drawing('<dgm:relIds r:dm="diagramDataNUMBER"/>')), diagramData=DIAGRAM),
         pptx=page(graphic('<dgm:relIds r:dm="diagramData"/>'), diagramData=DIAGRAM),
         xlsx=page(drawing='<dgm:relIds r:dm="diagramData"/>', diagramData=DIAGRAM)),
    kind("charts", "chart: Chart: PHRASE. Axes: Month\nchart: |  | Rain |\nchart: | --- | --- |\nchart: | May | 25% |",
         docx=page(wp(drawing('<c:chart r:id="chartNUMBER"/>')), chart=CHART),
         pptx=page(graphic('<c:chart r:id="chart"/>'), chart=CHART)),
    kind("charts of OpenDocument",
         "chart: Chart: PHRASE. Month\nchart: |  | Rain |\nchart: | --- | --- |\nchart: | May | 25% |",
         odt=page(p(OBJECT), object=ODF_CHART),
         odp=page(OBJECT, object=ODF_CHART)),
    kind("charts on sheets", "chart: Chart: PHRASE. Axes: Month. Series: Rain",
         xlsx=page(drawing='<c:chart r:id="chart"/>', chart=CHART),
         ods=page(shapes(OBJECT), object=ODF_CHART)),
    # --- Sheets ---
    kind("hidden sheets", ods=page(odf_row("PHRASE"), style="h")),
    kind("shared strings", xlsx='<row><c t="s"><v>NUMBER</v></c></row>'),
    kind("prompts", "form: [Prompt: FIRST\nform: SECOND\nform: Rain]",
         xlsx=page(after="<dataValidations>" + '<dataValidation promptTitle="FIRST" prompt="SECOND" '
             'error="Rain"/>' * 3 + "<dataValidation/></dataValidations>")),
])  # fmt: skip

CELLS = [(kind, suffix) for kind, (_, formats) in KINDS.items() for suffix in formats]


def build(kind: str, suffix: str, phrases: list[str]) -> bytes:
    cell = KINDS[kind][1][suffix]
    return BUILDERS[suffix](phrases, **({"body": cell} if isinstance(cell, str) else cell))


def split_place(line: str) -> tuple[str, str]:
    """Return the kind of place and the text of a line of the table."""
    found = re.fullmatch(r"(?:(note|comment|header|footer|form|chart): )?(.*)", line)
    assert found
    return found[1] or "", found[2]


def lines_of(document: ReadDocument) -> list[tuple[str, str, int | str | None]]:
    """The lines of a document with their places, without the headings of slides and sheets."""
    return [
        (block.place.kind, line, block.place.page or block.place.sheet)
        for block in document.blocks
        for line in block.text.splitlines()
        if line and not line.startswith("## S")
    ]


@pytest.mark.parametrize(("kind", "suffix"), CELLS)
def test_each_kind_of_content_is_read_in_each_format(kind: str, suffix: str) -> None:
    document = read(build(kind, suffix, PHRASES), suffix)
    found = lines_of(document)
    for number, phrase in enumerate(PHRASES, 1):
        where = {".pptx": number, ".odp": number, ".xlsx": f"S{number}", ".ods": f"S{number}"}.get(suffix, "")
        expected = [
            (place, fill(line, number, phrase).replace("INDENT", " " * len(f"{number}. ")), where)
            for place, line in map(split_place, KINDS[kind][0].splitlines())
        ]
        read_here = found[: len(expected)]
        assert read_here == expected, f"{kind} in {suffix}, {phrase!r}: {read_here} instead of {expected}"
        del found[: len(expected)]
    assert (found, document.lost, document.warnings) == ([], {}, []), f"{kind} in {suffix}"


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [(kind, suffix) for kind, suffix in CELLS if kind in ("headers", "footers") and suffix != ".rtf"],
)
def test_equal_headers_and_footers_stand_once(kind: str, suffix: str) -> None:
    assert len(lines_of(read(build(kind, suffix, ["Oak Ltd"] * 3), suffix))) == 1


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [(kind, suffix) for kind, suffix in CELLS if kind in ("paragraphs", "comments", "comments on cells")],
)
def test_a_file_is_read_in_linear_steps(kind: str, suffix: str) -> None:
    def read_phrases(count: int) -> None:
        phrases = [f"planted{number} cedar{number}" for number in range(count)]
        assert len(read(build(kind, suffix, phrases), suffix).blocks) >= count

    check_linear(read_phrases, 100)


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [(kind, suffix) for kind, suffix in CELLS if KINDS[kind][0] == LINKED],
)
def test_an_address_that_is_the_text_of_its_link_stands_once(kind: str, suffix: str) -> None:
    text = text_of(read(build(kind, suffix, [URL if suffix == ".rtf" else XML_URL]), suffix))
    assert text.count(URL) == 1, f"{kind} in {suffix}: {text}"


CORE = (
    "<title>Cedars</title><creator>Ann</creator><subject>Trees</subject><keywords>wood, soil</keywords>"
    "<created>2026-01-02T03:04:00</created><modified>2026-02-03T04:05:00</modified>"
)
META = (
    "<dc:title>Cedars</dc:title><dc:subject>Trees</dc:subject><meta:initial-creator>Ann</meta:initial-creator>"
    "<meta:keyword>wood</meta:keyword><meta:keyword>soil</meta:keyword>"
    "<meta:creation-date>2026-01-02T03:04:00</meta:creation-date><dc:date>2026-02-03T04:05:00</dc:date>"
)
WITH_PROPERTIES = {
    ".docx": word_file("", core=CORE),
    ".pptx": deck_file([], core=CORE),
    ".xlsx": book_file({}, core=CORE),
    **{suffix: odf_file(kind, "", meta=META) for suffix, kind in ODF_KINDS.items()},
    ".rtf": rb"{\rtf1{\info{\title Cedars}{\author Ann}{\subject Trees}{\keywords wood, soil}"
    rb"{\creatim\yr2026\mo1\dy2\hr3\min4}{\revtim\yr2026\mo2\dy3\hr4\min5}{\doccomm no}}}",
}


@pytest.mark.parametrize("suffix", WITH_PROPERTIES)
def test_the_properties_are_known(suffix: str) -> None:
    assert read(WITH_PROPERTIES[suffix], suffix).info == {
        "Title": "Cedars",
        "Author": "Ann",
        "Subject": "Trees",
        "Keywords": "wood, soil",
        "Created": "2026-01-02T03:04:00",
        "Modified": "2026-02-03T04:05:00",
    }


def test_a_document_is_found_by_its_author_keywords_and_subject(tmp_path: Path) -> None:
    files = {
        "a.docx": word_file("<w:p><w:r><w:t>The valve leaks.</w:t></w:r></w:p>", core=CORE),
        "b.odt": odf_file("text", "<text:p>A pump runs.</text:p>", meta=META),
        "c.rtf": WITH_PROPERTIES[".rtf"].replace(b"}}}", b"}}The valve.}"),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    write_config(tmp_path, documents="embed_model: ragistry.testing.hashed:HashingEmbedder\n")
    with open_workspace(tmp_path) as workspace:
        library = workspace.library
        library.create_collection("notes")
        assert not library.ingest_paths([tmp_path / name for name in files], "notes").failed
        assert [info.metadata["subject"] for info in library.sources("notes")] == ["Trees"] * 3
        for word in ("Ann", "soil", "Trees"):
            found = workspace.search(word, "bm25", top_k=20).documents
            assert {one.metadata["source_file"] for one in found} == files.keys()


FILES = {kind: Part(kind, target=f"/embeddings/{kind}.bin") for kind in ("package", "oleObject")}
OLD_OBJECT = '<draw:frame><draw:object{0} xlink:href="./Object {1}"/></draw:frame>'
WITH_FILES = {
    ".docx": word_file("", **FILES),
    ".pptx": deck_file([slide(graphic("<p:oleObj/>") * 2)]),
    ".xlsx": book_file({"S1": sheet("", **FILES)}),
    ".odt": odf_file(
        "text", p(OLD_OBJECT.format("-ole", 1) * 2 + OLD_OBJECT.format("", 2)), **{"Object 1": "a", "Object 2": "b"}
    ),
    ".ods": odf_file(
        "spreadsheet",
        f"<table:table>{shapes(OLD_OBJECT.format('-ole', 1) + OLD_OBJECT.format('', 2))}</table:table>",
        **{"Object 1": "a", "Object 2/content.xml": odf_content("text", "")},
    ),
}


@pytest.mark.parametrize("suffix", WITH_FILES)
def test_embedded_files_are_counted(suffix: str) -> None:
    assert read(WITH_FILES[suffix], suffix).warnings == ["embedded files were not read: 2"]


PACKED = [suffix for suffix in BUILDERS if suffix != ".rtf"]
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
MANIFEST = f'<m:manifest xmlns:m="{URN}:manifest:1.0"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>'


def is_main(name: str) -> bool:
    return name in ("word/document.xml", "ppt/presentation.xml", "xl/workbook.xml", "content.xml")


BROKEN: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "encrypted": ("is encrypted", lambda _: OLE + "EncryptedPackage".encode("utf-16-le")),
    "older": ("has an older format", lambda _: OLE),
    "empty": ("is damaged", lambda _: b""),
    "no archive": ("is damaged", lambda _: b"PK\x03\x04garbage"),
    "half": ("is damaged", lambda whole: whole[: len(whole) // 2]),
    "no main part": ("is not a", lambda _: zipped({"a.txt": "b"})),
    "another main part": ("is not a", lambda whole: changed(whole, lambda name, xml: "<a/>" if is_main(name) else xml)),
    "half a main part": (
        "broken XML|is damaged",
        lambda whole: changed(whole, lambda name, xml: xml[:-40] if is_main(name) else xml),
    ),
    "encrypted parts": ("is encrypted", lambda _: zipped({"META-INF/manifest.xml": MANIFEST, "content.xml": "noise"})),
}
"""What is said of a broken file, and how a whole one is broken."""
REFUSED = [
    (way, suffix)
    for way in BROKEN
    for suffix in PACKED
    if (way != "encrypted parts" or suffix in ODF_KINDS) and (way, suffix) != ("half a main part", ".ods")
]


@pytest.mark.parametrize(("way", "suffix"), REFUSED)
def test_a_broken_file_is_refused_with_a_remedy(way: str, suffix: str) -> None:
    reason, break_file = BROKEN[way]
    with pytest.raises(UnreadableFileError, match=reason) as refusal:
        read(break_file(build("paragraphs", suffix, PHRASES)), suffix)
    assert ";" in str(refusal.value)


@pytest.mark.parametrize("suffix", PACKED)
def test_entities_and_addresses_open_nothing(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret words", encoding="utf-8")
    uri = (tmp_path / "secret").as_uri()
    entities = f'<!DOCTYPE a [<!ENTITY e SYSTEM "{uri}"><!ENTITY b "bomb">]>'

    def with_entities(name: str, xml: str) -> str:
        return entities + xml.replace("planted0", "&e;&b;") if "planted0" in xml else xml

    document = read(changed(build("paragraphs", suffix, PHRASES), with_entities), suffix)
    assert "secret" not in text_of(document)
    assert PHRASES[1] in text_of(document)


@pytest.mark.parametrize(
    ("kind", "suffix", "named"),
    [
        ("footnotes", ".docx", "footnotes.xml"),
        ("charts", ".docx", "chart3.xml"),
        ("notes of slides", ".pptx", "notesSlide3.xml"),
        ("charts", ".pptx", "chart3.xml"),
        ("paragraphs", ".pptx", "slide3.xml"),
        ("paragraphs", ".xlsx", "worksheet3.xml"),
        ("charts on sheets", ".xlsx", "drawing3.xml"),
        ("paragraphs", ".ods", "content.xml"),
    ],
)
def test_a_damaged_or_missing_part_is_named(kind: str, suffix: str, named: str) -> None:
    whole = build(kind, suffix, PHRASES)
    half = changed(whole, lambda name, xml: xml[: len(xml) * 2 // 3] if name.endswith(named) else xml)
    document = read(half, suffix)
    assert named in document.warnings[0], (kind, suffix)
    assert named == "footnotes.xml" or PHRASES[3] in text_of(document)
    if named == "content.xml":
        return
    gone = changed(whole, lambda name, xml: None if name.endswith(named) else xml)
    document = read(gone, suffix)
    assert suffix == ".docx" or any(f"/{named}" in line for line in document.warnings), (kind, suffix)


DEEP = {
    ".docx": ("<w:sdt><w:sdtContent>", "</w:sdtContent></w:sdt>"),
    ".odt": ("<text:section>", "</text:section>"),
    ".odp": ("<draw:g>", "</draw:g>"),
    ".ods": ("<table:table-row-group>", "</table:table-row-group>"),
    ".pptx": ("<p:grpSp>", "</p:grpSp>"),
}


@pytest.mark.parametrize("suffix", DEEP)
def test_deep_nesting_is_refused_or_named(suffix: str) -> None:
    before, after = DEEP[suffix]
    inner = fill(str(KINDS["paragraphs"][1][suffix]), 1, PHRASES[0])

    def deep(depth: int) -> ReadDocument:
        whole = build("paragraphs", suffix, PHRASES[:1])
        return read(changed(whole, lambda _, xml: xml.replace(inner, before * depth + inner + after * depth)), suffix)

    assert PHRASES[0] in text_of(deep(40))
    with suppress(UnreadableFileError):
        assert "damaged parts" in deep(20_000).warnings[0]


SHARED = {
    "chart.pptx": "| 2022 | 175 | 130 |",
    "comments.docx": "[Comment by John Reviewer: This is a sample reviewer comment",
    "comments.pptx": "[Reply by Jane Smith: This is a sample response]",
    "comments.xlsx": "[Comment on A1 by John Reviewer: Why Python specifically?]",
    "headers-footers.docx": "REGULAR HEADER (page 2 onward)",
    "notes.pptx": "Notes: Notes",
    "rich-cells.docx": "A B C Cell 1 Cell 2 Cell 3",
    "rich-comments.docx": "[Comment by Steve Canny: Text with hyperlink",
    "rich-text.odt": "This is simple text with bold, strikethrough and italic formatting with x² and H₂O",
    "textbox.docx": "Health Bureau:",
}
"""Some of the files of other projects, and what their text has."""


def test_files_of_other_projects_are_read_without_false_alarms(shared_office: Path) -> None:
    found = {path.name: path for path in shared_office.iterdir() if path.suffix in BUILDERS}
    assert found.keys() >= SHARED.keys()
    for name, path in found.items():
        document = read(path.read_bytes(), path.suffix)
        assert (document.lost, document.warnings) == ({}, []), name
        assert SHARED.get(name, "") in text_of(document), name
