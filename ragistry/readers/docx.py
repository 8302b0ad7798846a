"""Read Word documents (.docx, .docm) as Markdown from the XML parts of the file.

python-docx refuses macro-enabled files, the strict variant and files with missing parts, and has no access to notes,
charts, formulas and numbers of lists. The parts are therefore read with lxml, which opens nothing outside of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ragistry.readers.blocks import REPAIR, Block, ReadDocument, UnreadableFileError, words_of
from ragistry.readers.docx_parts import (
    CX,
    DGM,
    ID,
    MC,
    PPR,
    RPR,
    VAL,
    W14,
    WP,
    A,
    C,
    Numbering,
    Styles,
    V,
    W,
    WordPackage,
    is_on,
    numbering_of,
    value_of,
)  # fmt: skip
from ragistry.readers.drawing import chart_blocks, diagram_blocks, paragraph_text
from ragistry.readers.formulas import M, office_formula
from ragistry.readers.office_package import picture_text, whole_number
from ragistry.readers.office_text import Element, Line, OfficeText, Paragraph, Table
from ragistry.readers.word_processing import (
    FORMULA_EDGE,
    PRIVATE_USE,
    SYMBOLS,
    escape_markup,
    field_address,
    finish_text,
    format_number,
    joined_address,
    symbol,
)

MOST_COLUMNS = 64
"""Word allows 63 columns in a table."""

_P, _R, _T, _TBL, _TR, _TC = (W + name for name in ("p", "r", "t", "tbl", "tr", "tc"))
_BOX, _ALTERNATE = W + "txbxContent", MC + "AlternateContent"
_FIELD_MARK, _INSTRUCTION = W + "fldChar", W + "instrText"
_OMITTED = frozenset(
    {PPR, RPR, _INSTRUCTION, W + "del", W + "moveFrom", W + "delText", W + "delInstrText", W + "sdtPr", W + "sectPr"}
    | {W + name for name in ("sdtEndPr", "tblPr", "tblGrid", "trPr", "tcPr", "tblPrEx", "softHyphen", "ffData")}
)


def read(data: bytes, suffix: str) -> ReadDocument:
    """Read a Word document.

    Args:
        data: Content of the file.
        suffix: ``.docx`` or ``.docm``.

    Raises:
        UnreadableFileError: The file is broken, encrypted or not a Word document.
    """
    package = WordPackage(data, suffix or ".docx")
    try:
        reader = _Reader(package)
        reader.read()
        lost = _lost(package, reader)
    except RecursionError as error:
        raise UnreadableFileError(f"has elements that are nested too deeply; {REPAIR}") from error
    return ReadDocument(reader.blocks, package.info(), lost, [*reader.warnings, *package.warnings(package.embedded())])


# --- The text ---


class _Reader(OfficeText):
    """Walk through the document in reading order."""

    ruby_tags = (W + "rubyBase", W + "rt")

    def __init__(self, package: WordPackage) -> None:
        super().__init__()
        self.warnings: list[str] = []
        self.unmapped = 0
        self.unread: list[str] = []
        self._package = package
        self._styles = Styles(package.first("styles"))
        self._numbers = Numbering(package.first("numbering"))
        self._unused = {kind: package.notes(kind) for kind in ("footnote", "endnote", "comment")}
        self._note_styles = self._find_note_styles()
        self._note_count = {"footnote": 0, "endnote": 0}
        self._parts_read: set[str] = set()
        # For each field around the text, where its result begins and the address of a link; None in its code.
        self._fields: list[tuple[Line | None, int, str] | None] = []
        self._code = ""
        self._muted = 0
        self._hidden = False  # whether the style of the paragraph hides it
        self._font: Element | None = None

    def read(self) -> None:
        """Fill the blocks."""
        for kind in ("header", "footer"):
            roots = map(self._package.xml, self._package.parts(kind))
            self.write_margins(kind, (root for root in roots if root is not None))
        self.write(self._package.document)
        self.flush()
        self._read_leftovers()

    def _find_note_styles(self) -> dict[str, str]:
        styles = {"footnote": "decimal", "endnote": "lowerRoman"}
        for root in (self._package.first("settings"), self._package.document):
            for kind in styles:
                styles[kind] = value_of(next(root.iter(f"{W}{kind}Pr"), None), "numFmt", styles[kind])
        return styles

    def _read_leftovers(self) -> None:
        """Notes and comments that nothing refers to, and charts and diagrams outside of paragraphs."""
        for kind, notes in self._unused.items():
            for name in [*notes]:
                self._add_note(kind, name)
        related = {
            relation.target.casefold() for relation in self._package.relations(self._package.document_name).values()
        }
        for name in self._package.typed("chart"):
            if name not in self._parts_read and name in related:
                self.blocks += self._chart(name)
        self.flush()

    def items(self, parent: Iterable[Element]) -> Iterator[Paragraph | Table]:
        """Yield the paragraphs and tables in an element."""
        for child in parent:
            tag = child.tag
            if tag == _P:
                yield self._paragraph(child)
            elif tag == _TBL:
                yield self._table(child)
            elif tag == _ALTERNATE:
                yield from self._first_with_text(child)
            elif tag == W + "altChunk":
                if (relation := self._package.relation(child, "id")) and not relation.external:
                    self.unread.append(relation.target)
            elif tag in _INLINE_ONLY:
                line = Line()
                self.inline([child], line)
                yield Paragraph(self.finished(line), line.after)
            elif tag not in _OMITTED and isinstance(tag, str):
                yield from self.items(child)

    def _first_with_text(self, alternate: Element) -> Iterator[Paragraph | Table]:
        for branch in alternate:
            has_text = False
            for item in self.items(branch):
                has_text = has_text or isinstance(item, Table) or bool(item.text or item.after)
                yield item
            if has_text:
                return

    def _table(self, table: Element) -> Table:
        properties = table.find(W + "tblPr")
        title = picture_text(*(value_of(properties, f"tbl{name}") for name in ("Caption", "Description")))
        rows = [*_within(table, _TR)]
        cells = [*_within(rows[0], _TC)] if len(rows) == 1 else []
        return Table(title, [], cells[0]) if len(cells) == 1 else Table(title, [*map(self._row, rows)])

    def _row(self, row: Element) -> list[str]:
        before = whole_number(value_of(row.find(W + "trPr"), "gridBefore"), 0)
        texts = [""] * min(before, MOST_COLUMNS)
        for cell in _within(row, _TC):
            span = whole_number(value_of(cell.find(W + "tcPr"), "gridSpan"), 1)
            texts += [self.flat(cell), *[""] * (min(span, MOST_COLUMNS) - 1)]
        return texts

    # Paragraphs

    def _paragraph(self, element: Element) -> Paragraph:
        line = Line()
        properties = element.find(PPR)
        name = value_of(properties, "pStyle", self._styles.default)
        style = self._styles[name]
        outer, self._hidden = self._hidden, style.hidden
        self.inline(element, line)
        self._hidden = outer
        if self._muted:  # an instruction does not continue in the next paragraph, so its end is missing
            self._fields, self._muted = [(None, 0, "")] * len(self._fields), 0
        level = style.level
        if outline := value_of(properties, "outlineLvl"):
            level = (whole_number(outline, 9) + 1) % 10
        number, depth = numbering_of(properties, "", -1)
        number = number or style.number
        label = ""
        if number and number != "0":
            if depth < 0:
                depth = style.depth if style.depth >= 0 else self._numbers.depth_of(number, name)
            label = self._numbers.label(number, depth)
        return Paragraph(self.finished(line), line.after, level, label, depth)

    def inline(self, parent: Iterable[Element], line: Line) -> None:
        """Add what is within a paragraph to its line."""
        for child in parent:
            tag = child.tag
            if tag == _R:
                self._run(child, line)
            elif tag == _T:
                if not self._muted:
                    self._text(child.text or "", line)
            elif (handle := _INLINE.get(tag)) is not None:
                handle(self, child, line)
            elif tag in _BREAKS:
                if not self._muted:
                    line.parts.append(_BREAKS[tag])
            elif tag not in _OMITTED and isinstance(tag, str):
                self.inline(child, line)

    def _run(self, run: Element, line: Line) -> None:
        properties = run.find(RPR)
        if self._is_hidden(properties):
            for mark in run.iter(_FIELD_MARK):
                self._field_mark(mark, Line())
            return
        outer, self._font = self._font, properties
        before = len(line.parts)
        self.inline(run, line)
        self._font = outer
        line.raise_number(before, value_of(properties, "vertAlign").removesuffix("script"))

    def _is_hidden(self, properties: Element | None) -> bool:
        """Return whether a run is hidden: by itself, otherwise by one of its two styles; both together show it."""
        vanish = None if properties is None else properties.find(W + "vanish")
        if vanish is not None:
            return is_on(vanish)
        if not self._styles.may_hide:
            return False
        by_character = self._styles[value_of(properties, "rStyle")].hidden
        return self._styles.hides or by_character != self._hidden

    def _text(self, text: str, line: Line) -> None:
        if PRIVATE_USE.search(text):
            fonts = None if self._font is None else self._font.find(W + "rFonts")
            names = [] if fonts is None else [fonts.get(W + name, "") for name in ("ascii", "hAnsi", "cs")]
            font = next((name for name in names if name.lower() in SYMBOLS), "")
            text = PRIVATE_USE.sub(lambda char: (symbol(font, ord(char[0])) or "") if font else char[0], text)
        line.parts.append(text.replace("\n", " ").replace("\r", " "))

    def _field_mark(self, mark: Element, line: Line) -> None:
        kind = mark.get(W + "fldCharType")
        if kind == "begin":
            if not self._muted:
                line.parts += _form_field(mark.find(W + "ffData"))
            self._fields.append(None)
            self._code = ""
            self._muted += 1
        elif self._fields and kind in ("separate", "end"):
            field = self._fields.pop()
            if field is None:
                self._muted -= 1
                field = line, len(line.parts), field_address(self._code)
            if kind == "separate":
                self._fields.append(field)
            else:
                self._link(line, field[1] if field[0] is line else 0, field[2])

    def _instruction(self, element: Element, line: Line) -> None:
        text = element.text if element.tag == _INSTRUCTION else element.get(W + "instr", "")
        if _PAGE_FIELD.search(text or ""):
            line.has_page_field = True
        if element.tag != _INSTRUCTION:
            before = len(line.parts)
            self.inline(element, line)
            self._link(line, before, field_address(text or ""))
        self._code += text or ""

    def _sym(self, element: Element, line: Line) -> None:
        try:
            code = int(element.get(W + "char", ""), 16)
        except ValueError:
            return
        sign = symbol(element.get(W + "font", ""), code)
        self.unmapped += sign is None
        if not self._muted:
            line.parts.append(sign or "")

    def _hyperlink(self, element: Element, line: Line) -> None:
        relation = self._package.relation(element, "id")
        before = len(line.parts)
        self.inline(element, line)
        if relation is not None and relation.external:
            self._link(line, before, joined_address(relation.target, element.get(W + "anchor")))

    def _link(self, line: Line, start: int, url: str) -> None:
        if not self._muted:
            line.make_link(start, url)

    def _content_control(self, element: Element, line: Line) -> None:
        box = element.find(f"{W}sdtPr/{W14}checkbox")
        if box is not None and not self._muted:
            if self._is_hidden(None):
                return
            checked = box.find(W14 + "checked")
            line.parts.append("☒" if checked is not None and checked.get(W14 + "val", "1") in ("1", "true") else "☐")
            return
        for content in element.iterchildren(W + "sdtContent"):
            self.inline(content, line)

    def _note(self, element: Element, _line: Line) -> None:
        kind = "footnote" if element.tag == W + "footnoteReference" else "endnote"
        label = ""
        if element.get(W + "customMarkFollows") not in ("1", "true", "on"):
            self._note_count[kind] += 1
            label = format_number(self._note_count[kind], self._note_styles[kind])
        self._add_note(kind, element.get(ID, ""), label)

    def _comment(self, element: Element, _line: Line) -> None:
        self._add_note("comment", element.get(ID, ""))

    def _add_note(self, kind: str, name: str, label: str = "") -> None:
        """Write a note or comment after the paragraph, if nothing referred to it before."""
        element = self._unused[kind].pop(name, None)
        if element is not None and kind == "comment":
            self.add_comment(element.get(W + "author"), element)
        elif element is not None:
            self.add_note(label, element)

    def _deleted(self, element: Element, line: Line) -> None:
        for kind in ("footnote", "endnote"):
            for reference in element.iter(f"{W}{kind}Reference"):
                self._unused[kind].pop(reference.get(ID, ""), None)
        for reference in element.iter(W + "commentReference"):
            self._comment(reference, line)

    def _maths(self, element: Element, line: Line) -> None:
        if self._is_hidden(next(element.iter(RPR), None)):
            return
        edge = "\t" if element.tag == M + "oMathPara" else FORMULA_EDGE
        formulas = [element] if element.tag == M + "oMath" else element.findall(M + "oMath")
        for formula in formulas:
            line.parts += [edge, " ".join(office_formula(formula).split()), edge]

    def _alternate(self, element: Element, line: Line) -> None:
        for branch in element:
            before = len(line.parts), len(line.after)
            self.inline(branch, line)
            if (len(line.parts), len(line.after)) != before:
                return

    # Pictures, text boxes, charts, diagrams

    def _drawing(self, element: Element, line: Line) -> None:
        described: dict[str, None] = {}
        self._graphic(element, line, described)
        if described:
            pictures = "".join(f"\t[Picture: {text}]\t" for text in described)
            if element.find(WP + "anchor") is None:
                line.parts.append(pictures)
            else:  # it floats, so its place in the text says nothing
                line.after.insert(0, Block(finish_text([pictures]), self.place))

    def _graphic(self, parent: Element, line: Line, described: dict[str, None]) -> None:
        for child in parent:
            tag = child.tag
            if tag == _BOX:
                line.after.append(child)
            elif tag == _ALTERNATE:
                for branch in child:
                    before = len(line.parts), len(line.after), len(described)
                    self._graphic(branch, line, described)
                    if (len(line.parts), len(line.after), len(described)) != before:
                        break
            elif tag in (C + "chart", CX + "chart"):
                line.after += self._chart(self._target(child, "id"))
            elif tag == DGM + "relIds":
                line.after += diagram_blocks(self._package, self._target(child, "dm"), self.place)
            elif tag == A + "p":
                if text := escape_markup(" ".join(paragraph_text(child).split())):
                    line.after.append(Block(text, self.place))
            elif isinstance(tag, str):
                names = ("alt",) if tag.startswith(V) else ("title", "descr")
                if (len(names) == 1 or tag.endswith(("}docPr", "}cNvPr"))) and (
                    description := picture_text(*map(child.get, names))
                ):
                    described[description] = None
                if tag == V + "textpath" and child.get("string"):
                    line.after.append(Block(finish_text([child.get("string")]), self.place))
                self._graphic(child, line, described)

    def _target(self, element: Element, attribute: str) -> str:
        relation = self._package.relation(element, attribute)
        return "" if relation is None or relation.external else relation.target

    def _chart(self, name: str) -> list[Block]:
        self._parts_read.add(name.casefold())
        return chart_blocks(self._package, name, self.place)


_PAGE_FIELD = re.compile(r"\b(PAGE|NUMPAGES|SECTIONPAGES)\b", re.IGNORECASE)
_BREAKS = {W + "br": "\n", W + "cr": "\n", W + "tab": "\t", W + "ptab": "\t", W + "noBreakHyphen": "-"}
_INLINE: dict[str, Callable[[_Reader, Element, Line], None]] = {
    W + "sym": _Reader._sym,
    W + "fldChar": _Reader._field_mark,
    W + "instrText": _Reader._instruction,
    W + "fldSimple": _Reader._instruction,
    W + "hyperlink": _Reader._hyperlink,
    W + "sdt": _Reader._content_control,
    W + "ruby": _Reader.ruby,
    W + "footnoteReference": _Reader._note,
    W + "endnoteReference": _Reader._note,
    W + "commentReference": _Reader._comment,
    W + "del": _Reader._deleted,
    W + "moveFrom": _Reader._deleted,
    W + "drawing": _Reader._drawing,
    W + "pict": _Reader._drawing,
    W + "object": _Reader._drawing,
    M + "oMath": _Reader._maths,
    M + "oMathPara": _Reader._maths,
    _ALTERNATE: _Reader._alternate,
}
_INLINE_ONLY = frozenset({_R, _T, W + "hyperlink", W + "fldSimple", M + "oMath", M + "oMathPara"})


def _within(parent: Element, tag: str) -> Iterator[Element]:
    """Yield the rows of a table or the cells of a row, also those in content controls; no deleted rows."""
    for child in parent:
        if child.tag == tag:
            if child.find(f"{W}trPr/{W}del") is None:
                yield child
        elif child.tag not in _OMITTED and isinstance(child.tag, str):
            yield from _within(child, tag)


def _form_field(data: Element | None) -> list[str]:
    """Return the state of a check box or the chosen entry of a list; text fields have a result."""
    if data is None:
        return []
    box = data.find(W + "checkBox")
    if box is not None:
        checked = box.find(W + "checked")
        return ["☒" if is_on(box.find(W + "default") if checked is None else checked) else "☐"]
    choices = data.find(W + "ddList")
    at = whole_number(value_of(choices, "result", value_of(choices, "default")), 0)
    entries = [] if choices is None else [entry.get(VAL, "") for entry in choices.iterchildren(W + "listEntry")]
    return entries[at : at + 1] if at >= 0 else []


# --- What was not read ---


def _lost(package: WordPackage, reader: _Reader) -> dict[str, int]:
    """Count the symbols without a letter, and the words of inserted files."""
    lost = {"symbols": reader.unmapped} if reader.unmapped else {}
    for name in dict.fromkeys(reader.unread):
        data = package.data(name)
        text = "" if data.startswith(b"PK") else re.sub(r"<[^>]*>", " ", data.decode(errors="replace"))
        lost["inserted files"] = lost.get("inserted files", 0) + max(1, words_of(text).total())
    if reader.unread:
        reader.warnings.append("an inserted file is not read; open and save the document in Word to include it")
    return lost
