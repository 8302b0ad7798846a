"""Read Word documents (.docx, .docm) as Markdown from the XML parts of the file.

python-docx refuses macro-enabled files, the strict variant and files with missing parts, and has no access to notes,
charts, formulas and numbers of lists. The parts are therefore read with lxml, which opens nothing outside of the file.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ragistry.readers.blocks import REPAIR, Block, Kind, Place, ReadDocument, UnreadableFileError, words_of
from ragistry.readers.docx_package import (
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
    Element,
    R,
    V,
    W,
    WordPackage,
    is_on,
    whole_number,
)  # fmt: skip
from ragistry.readers.docx_styles import Numbering, Styles, numbering_of
from ragistry.readers.docx_symbols import PRIVATE_USE, SYMBOLS, symbol
from ragistry.readers.drawing import chart_markdown, chart_parts, diagram_markdown, paragraph_text
from ragistry.readers.formulas import M, office_formula
from ragistry.readers.office_package import picture_text
from ragistry.readers.page_numbers import is_page_number
from ragistry.readers.word_processing import (
    FORMULA_EDGE,
    ListLines,
    escape_markup,
    field_address,
    finish_text,
    format_number,
    joined_address,
    link,
    raised,
    table_markdown,
    without_breaks,
)

MOST_COLUMNS = 64
"""Word allows 63 columns in a table."""

_P, _R, _T, _TBL, _TR, _TC = (W + name for name in ("p", "r", "t", "tbl", "tr", "tc"))
_SDT, _SDT_CONTENT, _BOX = W + "sdt", W + "sdtContent", W + "txbxContent"
_ALTERNATE, _FALLBACK = MC + "AlternateContent", MC + "Fallback"
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


class _Line:
    """The text of a paragraph so far, and what follows it."""

    __slots__ = ("after", "parts")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.after: list[Any] = []  # elements of text boxes, and blocks


class _Paragraph(NamedTuple):
    text: str
    level: int
    label: str
    depth: int
    after: list[Any]

    @property
    def labelled(self) -> str:
        """The text in one line, after its number."""
        return without_breaks(f"{self.label} {self.text}" if self.label and self.text else self.text)


class _Reader:
    """Walk through the document in reading order."""

    def __init__(self, package: WordPackage) -> None:
        self.blocks: list[Block] = []
        self.warnings: list[str] = []
        self.unmapped = 0
        self.unread: list[str] = []
        self._package = package
        self._part = package.document_name
        self._kind: Kind = ""
        self._list = ListLines()
        self._later: list[Block] = []
        self._styles = Styles(package.first("styles"))
        self._numbers = Numbering(package.first("numbering"))
        self._notes = {kind: _by_id(package.first(kind + "s"), W + kind) for kind in ("footnote", "endnote")}
        self._comments = _by_id(package.first("comments"), W + "comment")
        kinds = ("footnotes", "endnotes", "comments")
        self._note_parts = {kind: names[0] for kind in kinds if (names := package.parts(kind))}
        self._waiting_notes: deque[tuple[str, str, str]] = deque()
        self._waiting_comments: deque[str] = deque()
        self._note_styles = self._find_note_styles()
        self._note_count = {"footnote": 0, "endnote": 0}
        self._used: set[tuple[str, str]] = set()
        self._parts_read: set[str] = set()
        # For each field around the text, where its result begins and the address of a link; None in its code.
        self._fields: list[tuple[_Line | None, int, str] | None] = []
        self._code = ""
        self._muted = 0
        self._hidden = False  # whether the style of the paragraph hides it
        self._font: Element | None = None
        self._page_field = False

    def read(self) -> None:
        """Fill the blocks."""
        self._read_margins("header")
        self._read_margins("footer")
        self._children(self._package.document)
        self._flush()
        self._read_leftovers()

    def _find_note_styles(self) -> dict[str, str]:
        styles = {"footnote": "decimal", "endnote": "lowerRoman"}
        settings = self._package.first("settings")
        for root in [part for part in (settings, self._package.document) if part is not None]:
            for kind in styles:
                found = next((item.find(W + "numFmt") for item in root.iter(f"{W}{kind}Pr")), None)
                if found is not None:
                    styles[kind] = found.get(VAL, "decimal")
        return styles

    def _read_margins(self, kind: Kind) -> None:
        """Headers or footers, once each."""
        seen: set[str] = set()
        for name in self._package.parts(kind):
            root = self._package.xml(name)
            before, self.blocks = self.blocks, []
            self._story(name, root, kind)
            text = "\n".join(block.text for block in self.blocks)
            self.blocks = before + ([] if text in seen else self.blocks)
            seen.add(text)

    def _story(self, name: str, root: Element, kind: Kind) -> None:
        outer = self._part, self._kind
        self._part, self._kind, self._fields, self._muted = name, kind, [], 0
        self._children(root)
        self._flush()
        self._part, self._kind = outer

    def _read_leftovers(self) -> None:
        """Notes and comments that nothing refers to, and charts and diagrams outside of paragraphs."""
        for kind, notes in self._notes.items():
            for name in notes:
                if (kind, name) not in self._used:
                    self._waiting_notes.append((kind, name, ""))
        self._waiting_comments += [name for name in self._comments if ("comment", name) not in self._used]
        related = {relation.target for relation in self._package.relations(self._package.document_name).values()}
        for name in self._package.typed("chart"):
            if name not in self._parts_read and name in related:
                self._later += self._chart(name)
        self._flush()

    # Blocks

    def _emit(self, text: str, kind: Kind | None = None) -> None:
        if text:
            self.blocks.append(Block(text, _PLACES[self._kind if kind is None else kind]))

    def _flush(self) -> None:
        """End the list, and add what belongs after the paragraph or table that was just read."""
        self._emit(self._list.take())
        self._flush_later()

    def _flush_later(self) -> None:
        while self._later or self._waiting_notes or self._waiting_comments:
            self._emit(self._list.take())
            self.blocks += self._later
            self._later = []
            if self._waiting_notes:
                kind, name, label = self._waiting_notes.popleft()
                self._emit_note(f"Note {label}".strip(), self._notes[kind][name], kind + "s", "note")
            elif self._waiting_comments:
                comment = self._comments[self._waiting_comments.popleft()]
                author = (comment.get(W + "author") or "").strip()
                self._emit_note(f"Comment by {author}" if author else "Comment", comment, "comments", "comment")

    def _emit_note(self, label: str, element: Element, part: str, kind: Kind) -> None:
        outer, state = self._part, (self._fields, self._muted)
        self._part, self._fields, self._muted = self._note_parts.get(part, outer), [], 0
        text = self._flat(element)
        self._part, (self._fields, self._muted) = outer, state
        if text:
            self._emit(f"[{label}: {text}]", kind)

    def _children(self, parent: Element) -> None:
        for child in parent:
            tag = child.tag
            if tag == _P:
                self._add_paragraph(child)
            elif tag == _TBL:
                self._add_table(child)
            elif tag == _ALTERNATE:
                self._first_with_text(child)
            elif tag == W + "altChunk":
                self._note_unread(child)
            elif tag in _INLINE_ONLY:
                line = _Line()
                self._inline([child], line)
                self._add(_Paragraph(finish_text(line.parts), 0, "", 0, line.after))
            elif tag not in _OMITTED and isinstance(tag, str):
                self._children(child)

    def _first_with_text(self, alternate: Element) -> None:
        for branch in alternate:
            before = len(self.blocks)
            self._children(branch)
            if len(self.blocks) > before:
                return

    def _add_paragraph(self, element: Element) -> None:
        self._add(self._paragraph(element))

    def _add(self, paragraph: _Paragraph) -> None:
        text, level, label, depth, after = paragraph
        if text:
            if level and not self._kind:
                self._emit(self._list.take())
                number = f"{label} " if label not in ("", "-") else ""
                self._emit(f"{'#' * min(level, 6)} {number}{without_breaks(text).lstrip(chr(92))}")
            elif label:
                self._list.add(depth, label, text)
            else:
                self._emit(self._list.take())
                self._emit(text)
        for item in after:
            self._emit(self._list.take())
            if isinstance(item, Block):
                self.blocks.append(item)
            else:
                self._children(item)
        if self._later or self._waiting_notes or self._waiting_comments:
            self._flush_later()

    def _add_table(self, table: Element) -> None:
        self._emit(self._list.take())
        self._emit(_table_text(table))
        rows = [*self._rows(table)]
        if len(rows) == 1 and len(cells := [*_cells(rows[0])]) == 1:  # a frame around text
            self._children(cells[0])
        else:
            self._emit(table_markdown([self._row(row) for row in rows]))
        self._flush()

    def _rows(self, parent: Element) -> Iterator[Element]:
        for child in parent:
            if child.tag == _TR:
                if child.find(f"{W}trPr/{W}del") is None:
                    yield child
            elif child.tag not in _OMITTED and isinstance(child.tag, str):
                yield from self._rows(child)

    def _row(self, row: Element) -> list[str]:
        properties = row.find(W + "trPr")
        before = None if properties is None else properties.find(W + "gridBefore")
        texts = [""] * min(whole_number(None if before is None else before.get(VAL), 0), MOST_COLUMNS)
        for cell in _cells(row):
            properties = cell.find(W + "tcPr")
            span = None if properties is None else properties.find(W + "gridSpan")
            texts.append(self._flat(cell))
            texts += [""] * (min(whole_number(None if span is None else span.get(VAL), 1), MOST_COLUMNS) - 1)
        return texts

    def _flat(self, parent: Element) -> str:
        return " ".join(filter(None, self._pieces(parent)))

    def _pieces(self, parent: Element) -> Iterator[str]:
        """Yield the text of paragraphs and tables without marks; charts and the like follow the block around them."""
        for child in parent:
            tag = child.tag
            if tag == _P:
                paragraph = self._paragraph(child)
                yield paragraph.labelled
                for item in paragraph.after:
                    if isinstance(item, Block):
                        self._later.append(item)
                    else:
                        yield self._flat(item)
            elif tag == _TBL:
                yield _table_text(child)
                for row in self._rows(child):
                    yield from self._row(row)
            elif tag == _ALTERNATE:
                yield next((text for branch in child if (text := self._flat(branch))), "")
            elif tag in _INLINE_ONLY:
                line = _Line()
                self._inline([child], line)
                yield without_breaks(finish_text(line.parts))
            elif tag == W + "altChunk":
                self._note_unread(child)
            elif tag not in _OMITTED and isinstance(tag, str):
                yield from self._pieces(child)

    def _note_unread(self, chunk: Element) -> None:
        relation = self._package.relations(self._part).get(chunk.get(R + "id", ""))
        if relation is not None and not relation.external:
            self.unread.append(relation.target)

    # Paragraphs

    def _paragraph(self, element: Element) -> _Paragraph:
        line = _Line()
        self._page_field = False
        properties = element.find(PPR)
        named = None if properties is None else properties.find(W + "pStyle")
        name = self._styles.default if named is None else named.get(VAL, "")
        style = self._styles[name]
        outer, self._hidden = self._hidden, style.hidden
        self._inline(element, line)
        self._hidden = outer
        if self._muted:  # an instruction does not continue in the next paragraph, so its end is missing
            self._fields, self._muted = [(None, 0, "")] * len(self._fields), 0
        text = finish_text(line.parts)
        if self._page_field and self._kind in ("header", "footer") and is_page_number(text):
            text = ""
        level, number, depth = None, None, None
        if properties is not None:
            for item in properties:
                tag = item.tag
                if tag == W + "outlineLvl":
                    level = (whole_number(item.get(VAL), 9) + 1) % 10
                elif tag == W + "numPr":
                    number, depth = numbering_of(item, "", -1)
        number = number or style.number
        label = ""
        if number and number != "0":
            if depth is None or depth < 0:
                depth = style.depth if style.depth >= 0 else self._numbers.depth_of(number, name)
            label = self._numbers.label(number, depth)
        return _Paragraph(text, style.level if level is None else level, label, depth or 0, line.after)

    def _inline(self, parent: Iterable[Element], line: _Line) -> None:
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
                self._inline(child, line)

    def _run(self, run: Element, line: _Line) -> None:
        properties = run.find(RPR)
        if self._is_hidden(properties):
            for mark in run.iter(_FIELD_MARK):
                self._field_mark(mark, _Line())
            return
        outer, self._font = self._font, properties
        before = len(line.parts)
        self._inline(run, line)
        self._font = outer
        if len(line.parts) == before + 1:
            line.parts[before] = raised(line.parts[before], _position(properties))

    def _is_hidden(self, properties: Element | None) -> bool:
        """Return whether a run is hidden: by itself, otherwise by one of its two styles; both together show it."""
        vanish = None if properties is None else properties.find(W + "vanish")
        if vanish is not None:
            return is_on(vanish)
        if not self._styles.may_hide:
            return False
        style = None if properties is None else properties.find(W + "rStyle")
        by_character = style is not None and self._styles[style.get(VAL, "")].hidden
        return self._styles.hides or by_character != self._hidden

    def _text(self, text: str, line: _Line) -> None:
        if PRIVATE_USE.search(text):
            fonts = None if self._font is None else self._font.find(W + "rFonts")
            names = [] if fonts is None else [fonts.get(W + name, "") for name in ("ascii", "hAnsi", "cs")]
            font = next((name for name in names if name.lower() in SYMBOLS), "")
            text = PRIVATE_USE.sub(lambda char: (symbol(font, ord(char[0])) or "") if font else char[0], text)
        line.parts.append(text.replace("\n", " ").replace("\r", " "))

    def _field_mark(self, mark: Element, line: _Line) -> None:
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

    def _instruction(self, element: Element, line: _Line) -> None:
        text = element.text if element.tag == _INSTRUCTION else element.get(W + "instr", "")
        if _PAGE_FIELD.search(text or ""):
            self._page_field = True
        if element.tag != _INSTRUCTION:
            before = len(line.parts)
            self._inline(element, line)
            self._link(line, before, field_address(text or ""))
        self._code += text or ""

    def _sym(self, element: Element, line: _Line) -> None:
        try:
            code = int(element.get(W + "char", ""), 16)
        except ValueError:
            return
        sign = symbol(element.get(W + "font", ""), code)
        self.unmapped += sign is None
        if not self._muted:
            line.parts.append(sign or "")

    def _break(self, _element: Element, line: _Line) -> None:
        if not self._muted:
            line.parts.append("\n")

    def _hyperlink(self, element: Element, line: _Line) -> None:
        relation = self._package.relations(self._part).get(element.get(R + "id", ""))
        before = len(line.parts)
        self._inline(element, line)
        if relation is not None and relation.external:
            self._link(line, before, joined_address(relation.target, element.get(W + "anchor")))

    def _link(self, line: _Line, start: int, url: str) -> None:
        """Make a link of the pieces of a line from a number on."""
        if url and not self._muted:
            line.parts[start:] = [link(finish_edges(line.parts[start:]), url)]

    def _content_control(self, element: Element, line: _Line) -> None:
        box = element.find(f"{W}sdtPr/{W14}checkbox")
        if box is not None and not self._muted:
            if self._is_hidden(None):
                return
            checked = box.find(W14 + "checked")
            line.parts.append("☒" if checked is not None and checked.get(W14 + "val", "1") in ("1", "true") else "☐")
            return
        for content in element.iterchildren(_SDT_CONTENT):
            self._inline(content, line)

    def _ruby(self, element: Element, line: _Line) -> None:
        for name, form in ((W + "rubyBase", "{}"), (W + "rt", "({})")):
            inner = _Line()
            for part in element.iterchildren(name):
                self._inline(part, inner)
            line.parts.append(form.format("".join(inner.parts)) if inner.parts else "")

    def _note(self, element: Element, _line: _Line) -> None:
        kind = "footnote" if element.tag == W + "footnoteReference" else "endnote"
        name = element.get(ID, "")
        label = ""
        if element.get(W + "customMarkFollows") not in ("1", "true", "on"):
            self._note_count[kind] += 1
            label = format_number(self._note_count[kind], self._note_styles[kind])
        if name in self._notes[kind] and (kind, name) not in self._used:
            self._used.add((kind, name))
            self._waiting_notes.append((kind, name, label))

    def _comment(self, element: Element, _line: _Line) -> None:
        name = element.get(ID, "")
        if name in self._comments and ("comment", name) not in self._used:
            self._used.add(("comment", name))
            self._waiting_comments.append(name)

    def _deleted(self, element: Element, line: _Line) -> None:
        for reference in element.iter(W + "footnoteReference", W + "endnoteReference"):
            kind = "footnote" if reference.tag == W + "footnoteReference" else "endnote"
            self._used.add((kind, reference.get(ID, "")))
        for reference in element.iter(W + "commentReference"):
            self._comment(reference, line)

    def _maths(self, element: Element, line: _Line) -> None:
        if self._is_hidden(next(element.iter(RPR), None)):
            return
        edge = "\t" if element.tag == M + "oMathPara" else FORMULA_EDGE
        formulas = [element] if element.tag == M + "oMath" else element.findall(M + "oMath")
        for formula in formulas:
            line.parts += [edge, " ".join(office_formula(formula).split()), edge]

    def _alternate(self, element: Element, line: _Line) -> None:
        for branch in element:
            before = len(line.parts), len(line.after)
            self._inline(branch, line)
            if (len(line.parts), len(line.after)) != before:
                return

    # Pictures, text boxes, charts, diagrams

    def _drawing(self, element: Element, line: _Line) -> None:
        described: dict[str, None] = {}
        self._graphic(element, line, described)
        if described:
            pictures = "".join(f"\t[Picture: {text}]\t" for text in described)
            if element.find(WP + "anchor") is None:
                line.parts.append(pictures)
            else:  # it floats, so its place in the text says nothing
                line.after.insert(0, Block(finish_text([pictures]), _PLACES[self._kind]))

    def _graphic(self, parent: Element, line: _Line, described: dict[str, None]) -> None:
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
                line.after += self._chart(self._target(child.get(R + "id")))
            elif tag == DGM + "relIds":
                line.after += self._diagram(self._target(child.get(R + "dm")))
            elif tag == A + "p":
                if text := escape_markup(" ".join(paragraph_text(child).split())):
                    line.after.append(Block(text, _PLACES[self._kind]))
            elif isinstance(tag, str):
                names = ("alt",) if tag.startswith(V) else ("title", "descr")
                if (len(names) == 1 or tag.endswith(("}docPr", "}cNvPr"))) and (
                    description := picture_text(*map(child.get, names))
                ):
                    described[description] = None
                if tag == V + "textpath" and child.get("string"):
                    line.after.append(Block(finish_text([child.get("string")]), _PLACES[self._kind]))
                self._graphic(child, line, described)

    def _target(self, name: str | None) -> str:
        relation = self._package.relations(self._part).get(name or "")
        return "" if relation is None or relation.external else relation.target

    def _chart(self, name: str) -> list[Block]:
        root = self._package.xml(name) if name else None
        if root is None:
            return []
        self._parts_read.add(name)
        texts = [chart_markdown(root)]
        for drawing in chart_parts(self._package, name):
            texts += ["\n".join(paragraph_text(one) for one in drawing.iter(A + "p"))]
        return [Block(text, _PLACES["chart"]) for text in texts if text.strip()]

    def _diagram(self, name: str) -> list[Block]:
        root = self._package.xml(name) if name else None
        text = "" if root is None else diagram_markdown(root)
        return [Block(text, _PLACES[self._kind])] if text else []


_PLACES: dict[Kind, Place] = {
    "": Place(),
    "note": Place(kind="note"),
    "comment": Place(kind="comment"),
    "header": Place(kind="header"),
    "footer": Place(kind="footer"),
    "chart": Place(kind="chart"),
}
_PAGE_FIELD = re.compile(r"\b(PAGE|NUMPAGES|SECTIONPAGES)\b", re.IGNORECASE)
_BREAKS = {
    W + "tab": "\t",
    W + "ptab": "\t",
    W + "noBreakHyphen": "-",
}
_INLINE: dict[str, Callable[[_Reader, Element, _Line], None]] = {
    W + "br": _Reader._break,
    W + "cr": _Reader._break,
    W + "sym": _Reader._sym,
    W + "fldChar": _Reader._field_mark,
    W + "instrText": _Reader._instruction,
    W + "fldSimple": _Reader._instruction,
    W + "hyperlink": _Reader._hyperlink,
    W + "sdt": _Reader._content_control,
    W + "ruby": _Reader._ruby,
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


def finish_edges(parts: Iterable[str]) -> str:
    """Join pieces of a link, with blanks for tabs and line breaks."""
    return "".join(parts).replace("\t", " ").replace("\n", " ").replace(FORMULA_EDGE, "")


def _position(properties: Element | None) -> str:
    position = None if properties is None else properties.find(W + "vertAlign")
    return "" if position is None else position.get(VAL, "").removesuffix("script")


def _by_id(root: Element | None, tag: str) -> dict[str, Element]:
    """Notes or comments by their identifiers, without the lines that separate notes from the text."""
    if root is None:
        return {}
    return {item.get(ID, ""): item for item in root.iter(tag) if item.get(W + "type", "normal") == "normal"}


def _table_text(table: Element) -> str:
    """Return the title and the description of a table, which its properties hold."""
    found = [table.find(f"{W}tblPr/{W}tbl{name}") for name in ("Caption", "Description")]
    text = picture_text(*(one.get(VAL) for one in found if one is not None))
    return finish_text([f"[Table: {text}]"]) if text else ""


def _cells(parent: Element) -> Iterator[Element]:
    for child in parent:
        if child.tag == _TC:
            yield child
        elif child.tag not in _OMITTED and isinstance(child.tag, str):
            yield from _cells(child)


def _form_field(data: Element | None) -> list[str]:
    """Return the state of a check box or the chosen entry of a list; text fields have a result."""
    if data is None:
        return []
    box = data.find(W + "checkBox")
    if box is not None:
        checked = box.find(W + "checked")
        return ["☒" if is_on(box.find(W + "default") if checked is None else checked) else "☐"]
    choices = data.find(W + "ddList")
    if choices is None:
        return []
    chosen = choices.find(W + "result")
    if chosen is None:
        chosen = choices.find(W + "default")
    at = whole_number(None if chosen is None else chosen.get(VAL), 0)
    entries = [entry.get(VAL, "") for entry in choices.iterchildren(W + "listEntry")]
    return [entries[at]] if 0 <= at < len(entries) else []


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
