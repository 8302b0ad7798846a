"""Read Word documents (.docx, .docm) as Markdown from the XML parts of the file.

python-docx refuses macro-enabled files, the strict variant and files with missing parts, and has no access to notes,
charts, formulas and numbers of lists. The parts are therefore read with lxml, which opens nothing outside of the file.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from lxml import etree

from ragistry.readers.blocks import REPAIR, Block, Kind, Place, ReadDocument, UnreadableFileError, words_of
from ragistry.readers.drawing import chart_markdown, chart_parts, diagram_markdown, paragraph_text
from ragistry.readers.formulas import M, office_formula
from ragistry.readers.lost_words import WORD, lost_words, related_parts
from ragistry.readers.office_package import Package, Relation, picture_text
from ragistry.readers.word_processing import (
    FORMULA_EDGE,
    ListLines,
    escape_markup,
    finish_text,
    format_number,
    is_page_number,
    link,
    raised,
    table_markdown,
    without_breaks,
)

MOST_COLUMNS = 64
"""Word allows 63 columns in a table."""

Element = Any  # lxml has no type hints

# --- Names ---

_OPEN = "http://schemas.openxmlformats.org/"
W = f"{{{_OPEN}wordprocessingml/2006/main}}"
A = f"{{{_OPEN}drawingml/2006/main}}"
C = f"{{{_OPEN}drawingml/2006/chart}}"
R = f"{{{_OPEN}officeDocument/2006/relationships}}"
WP = f"{{{_OPEN}drawingml/2006/wordprocessingDrawing}}"
DGM = f"{{{_OPEN}drawingml/2006/diagram}}"
MC = f"{{{_OPEN}markup-compatibility/2006}}"
CX = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"
W14 = "{http://schemas.microsoft.com/office/word/2010/wordml}"
V = "{urn:schemas-microsoft-com:vml}"
TYPES = f"{{{_OPEN}package/2006/content-types}}"

_P, _R, _T, _TBL, _TR, _TC = (W + name for name in ("p", "r", "t", "tbl", "tr", "tc"))
_PPR, _RPR, _VAL, _ID = W + "pPr", W + "rPr", W + "val", W + "id"
_SDT, _SDT_CONTENT, _BOX = W + "sdt", W + "sdtContent", W + "txbxContent"
_ALTERNATE, _FALLBACK = MC + "AlternateContent", MC + "Fallback"
_FIELD_MARK, _INSTRUCTION = W + "fldChar", W + "instrText"
_OMITTED = frozenset(
    {_PPR, _RPR, _INSTRUCTION, W + "del", W + "moveFrom", W + "delText", W + "delInstrText", W + "sdtPr", W + "sectPr"}
    | {W + name for name in ("sdtEndPr", "tblPr", "tblGrid", "trPr", "tcPr", "tblPrEx", "softHyphen", "ffData")}
)

# --- Documents ---


def read(data: bytes, suffix: str) -> ReadDocument:
    """Read a Word document.

    Args:
        data: Content of the file.
        suffix: ``.docx`` or ``.docm``.

    Raises:
        UnreadableFileError: The file is broken, encrypted or not a Word document.
    """
    package = _Package(data, suffix or ".docx")
    try:
        reader = _Reader(package)
        reader.read()
        lost = _lost(package, reader)
    except RecursionError as error:
        raise UnreadableFileError(f"has elements that are nested too deeply; {REPAIR}") from error
    return ReadDocument(reader.blocks, package.info(), lost, [*reader.warnings, *package.warnings(package.embedded())])


class _Package(Package):
    """The parts of a Word document by what they are. Each is parsed once."""

    def __init__(self, data: bytes, suffix: str) -> None:
        super().__init__(data)
        self._names = frozenset(self.names)
        types = self.xml("[Content_Types].xml")
        self.types: dict[str, str] = {}
        for override in () if types is None else types.iter(TYPES + "Override"):
            name = (override.get("PartName") or "").lstrip("/").casefold()
            self.types[name] = override.get("ContentType") or ""
        self.document_name = self._document_name(suffix)
        root = self.xml(self.document_name)
        if self.document_name in self.damaged:
            raise UnreadableFileError(f"has broken XML in {self.document_name}; {REPAIR}")
        if root is None or root.tag != W + "document":
            raise UnreadableFileError(f"is not a {suffix} document; {REPAIR}")
        self.document: Element = root

    def _document_name(self, suffix: str) -> str:
        typed = [name for name, kind in self.types.items() if _MAIN_TYPE.search(kind)]
        for name in (self.main.casefold(), *typed, "word/document.xml"):
            if name in self._names:
                return name
        raise UnreadableFileError(f"is not a {suffix} document: it has no main part; {REPAIR}")

    def xml(self, name: str) -> Element | None:
        """Return the root element of a part, or None without one; names of the strict variant are replaced."""
        key = name.casefold()
        if key not in self._trees:
            root = super().xml(key)
            if root is not None and any("purl.oclc.org/ooxml" in uri for uri in root.nsmap.values()):
                text = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", etree.tostring(root))
                self._trees[key] = etree.fromstring(text, etree.XMLParser(resolve_entities=False, no_network=True))
        return self._trees[key]

    def relations(self, name: str) -> dict[str, Relation]:
        """Return the relations of a part by their ids, with the names of parts in lower case."""
        if name not in self._relations:
            found = super().relations(name)
            self._relations[name] = {
                key: one if one.external else one._replace(target=one.target.casefold()) for key, one in found.items()
            }
        return self._relations[name]

    def parts(self, kind: str) -> list[str]:
        """Return the names of the document's parts of a kind, first those to which a relation leads."""
        names = [*self.related(self.document_name, kind), *self.typed(kind)]
        return [name for name in dict.fromkeys(names) if name in self._names]

    def typed(self, *kinds: str) -> list[str]:
        """Return the parts whose content type ends with one of the kinds, such as ``footnotes``."""
        ends = tuple(f".{kind}+xml" for kind in kinds)
        return [
            name
            for name, kind in self.types.items()
            if kind.endswith(ends) and name in self._names and "/glossary/" not in name
        ]

    def embedded(self) -> int:
        """Return the number of files in the text and its notes; those of charts hold the values of the chart."""
        texts = self.document_name, *self.typed("header", "footer", "footnotes", "endnotes", "comments")
        found = [one for name in texts for one in self.relations(name).values() if not one.external]
        return sum(one.kind in ("package", "oleObject") for one in found)

    def first(self, kind: str) -> Element | None:
        """Return the root of the first part of a kind."""
        names = self.parts(kind)
        return self.xml(names[0]) if names else None


_MAIN_TYPE = re.compile(r"word.*(?:main|template).*\+xml$", re.IGNORECASE)
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")


def _is_on(element: Element | None) -> bool:
    return element is not None and element.get(_VAL, "true") not in ("0", "false", "off")


def _number(text: str | None, default: int) -> int:
    try:
        return int(text or "")
    except ValueError:
        return default


# --- Styles and numbers ---


class _Style(NamedTuple):
    level: int
    """Level of the heading; 0 for other paragraphs."""
    number: str
    """Identifier of the numbering, if the style has one."""
    depth: int
    hidden: bool


_PLAIN = _Style(0, "", -1, False)
_HEADING = re.compile(r"heading ?([1-9])", re.IGNORECASE)


class _Styles:
    def __init__(self, root: Element | None) -> None:
        self._found = {} if root is None else {style.get(W + "styleId"): style for style in root.iter(W + "style")}
        self._known: dict[str, _Style] = {}
        self.may_hide = root is not None and next(root.iter(W + "vanish"), None) is not None
        default = f"{W}docDefaults/{W}rPrDefault/{_RPR}/{W}vanish"
        self.hides = root is not None and _is_on(root.find(default))
        self.default = next((key for key, style in self._found.items() if _is_default(style)), "")

    def __getitem__(self, name: str) -> _Style:
        known = self._known.get(name)
        if known is None:
            self._known[name] = _PLAIN  # for styles that are based on each other in a circle
            known = self._known[name] = self._resolve(name)
        return known

    def _resolve(self, name: str) -> _Style:
        style = self._found.get(name)
        if style is None:
            match = _HEADING.fullmatch(name)  # a generator left the definition out
            return _PLAIN._replace(level=int(match[1]) if match else 0)
        above = style.find(W + "basedOn")
        level, number, depth, hidden = _PLAIN if above is None else self[above.get(_VAL, "")]
        own = style.find(W + "name")
        title = "" if own is None else own.get(_VAL, "")
        properties = style.find(_PPR)
        outline = None if properties is None else properties.find(W + "outlineLvl")
        if outline is not None:
            level = (_number(outline.get(_VAL), 9) + 1) % 10
        elif match := _HEADING.fullmatch(title):
            level = int(match[1])
        elif title.lower() == "title":
            level = 1
        numbered = None if properties is None else properties.find(W + "numPr")
        if numbered is not None:
            number, depth = _numbered(numbered, number, depth)
        marked = style.find(f"{_RPR}/{W}vanish")
        return _Style(level, number, depth, hidden if marked is None else _is_on(marked))


def _is_default(style: Element) -> bool:
    return style.get(W + "type") == "paragraph" and style.get(W + "default") in ("1", "true", "on")


def _numbered(properties: Element, number: str, depth: int) -> tuple[str, int]:
    found, level = properties.find(W + "numId"), properties.find(W + "ilvl")
    if found is not None:
        number = found.get(_VAL, "")
    if level is not None:
        depth = _number(level.get(_VAL), 0)
    return number, depth


class _Level(NamedTuple):
    start: int
    style: str
    text: str
    restart: int | None
    legal: bool
    paragraph_style: str


class _Numbering:
    """The numbers that Word sets before paragraphs, counted in the order in which they are asked for."""

    def __init__(self, root: Element | None) -> None:
        self._abstract: dict[str, Element] = {}
        self._numbers: dict[str, Element] = {}
        self._linked: dict[str, str] = {}  # a definition inside another one, by a style
        self._levels: dict[str, tuple[str, dict[int, int], dict[int, _Level]]] = {}
        self._counters: dict[str, dict[int, int]] = {}
        self._overridden: set[tuple[str, int]] = set()
        if root is None:
            return
        links: dict[str, str] = {}
        styles: dict[str, str] = {}
        for abstract in root.iter(W + "abstractNum"):
            name = abstract.get(W + "abstractNumId", "")
            self._abstract[name] = abstract
            for tag, names in ((W + "numStyleLink", links), (W + "styleLink", styles)):
                linked = abstract.find(tag)
                if linked is not None:
                    names[linked.get(_VAL, "")] = name
        self._linked = {name: styles[style] for style, name in links.items() if style in styles}
        self._numbers = {number.get(W + "numId", ""): number for number in root.iter(W + "num")}

    def _levels_of(self, number: str) -> tuple[str, dict[int, int], dict[int, _Level]]:
        """Return the definition of a numbering, the starts that it changes, and its levels."""
        if number not in self._levels:
            element = self._numbers[number]
            target = element.find(W + "abstractNumId")
            starts = {}
            for override in element.iter(W + "lvlOverride"):
                start = override.find(W + "startOverride")
                if start is not None:
                    starts[_number(override.get(W + "ilvl"), 0)] = _number(start.get(_VAL), 1)
            name = "" if target is None else target.get(_VAL, "")
            levels = _levels(self._abstract[name]) if name in self._abstract else {}
            if not levels and (other := self._linked.get(name)) is not None:
                levels = _levels(self._abstract[other])
            self._levels[number] = name, starts, {**levels, **_levels(element)}
        return self._levels[number]

    def depth_of(self, number: str, style: str) -> int:
        """Return the level of a numbering that is linked to a style."""
        levels = self._levels_of(number)[2] if number in self._numbers else {}
        return next((at for at, level in levels.items() if level.paragraph_style == style), 0)

    def label(self, number: str, depth: int) -> str:
        """Count a paragraph and return its number, ``-`` for a bullet, or an empty text."""
        if number not in self._numbers:
            return ""
        name, starts, levels = self._levels_of(number)
        level = levels.get(depth)
        if level is None:
            return ""
        counters = self._counters.setdefault(name, {})
        if depth in starts and (number, depth) not in self._overridden:
            self._overridden.add((number, depth))
            counters[depth] = starts[depth]
        else:
            counters[depth] = counters[depth] + 1 if depth in counters else level.start
        for other in [other for other in counters if other > depth]:
            restart = levels[other].restart if other in levels else None
            if restart is None or depth < restart:
                del counters[other]
        if level.style == "bullet":
            return "-"

        def shown(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            other = levels.get(at)
            if other is None:
                return ""
            value = counters.setdefault(at, other.start)
            return format_number(value, "decimal" if level.legal and other.style != "none" else other.style)

        return " ".join(_PLACEHOLDER.sub(shown, level.text).split())


_PLACEHOLDER = re.compile(r"%([1-9])")


def _levels(parent: Element) -> dict[int, _Level]:
    found = {}
    for level in parent.iter(W + "lvl"):
        values = {
            name: (item.get(_VAL) if (item := level.find(W + name)) is not None else None)
            for name in ("start", "lvlText", "lvlRestart", "pStyle")
        }
        style = next((item.get(_VAL, "") for item in level.iter(W + "numFmt")), "decimal")
        restart = None if values["lvlRestart"] is None else _number(values["lvlRestart"], 0)
        legal = _is_on(level.find(W + "isLgl"))
        text, paragraph = values["lvlText"] or "", values["pStyle"] or ""
        start = _number(values["start"], 0)
        found[_number(level.get(W + "ilvl"), 0)] = _Level(start, style, text, restart, legal, paragraph)
    return found


# --- Symbols ---

_GREEK = " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"  # noqa: RUF001
_SIGNS = "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…|—↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ 〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭"  # noqa: RUF001
_SYMBOLS: dict[str, dict[int, str]] = {
    "symbol": dict(enumerate(_GREEK, 0x20)) | dict(enumerate(_SIGNS, 0xA0)),
    "wingdings": dict(
        zip(
            b"\x28\x2a\x46\x4a\x4c\x6c\x6e\x6f\x71\x76\x78\x9f\xa7\xa8\xd8\xdf\xe0\xe1\xe2\xe8\xef\xf0\xfb\xfc\xfd\xfe",
            "☎✉☞☺☹●■☐❑❖☒•▪☐➢←→↑↓➔⇦⇨✘✔☒☑",
            strict=True,
        )
    ),
    "wingdings 2": dict(zip(b"\x4f\x50\x51\x52\x53\x54\xa3", "✘✔☒☑☒☒☐", strict=True)),
    "wingdings 3": {},
    "webdings": {},
}
_PRIVATE = re.compile("[\uf020-\uf0ff]")


def symbol(font: str, code: int) -> str | None:
    """Return the character of a symbol font; an empty text for an unknown pictogram, None for an unknown font."""
    table = _SYMBOLS.get(font.lower())
    if table is not None:
        return table.get(code & 0xFF, "")
    return chr(code) if 0x20 <= code < 0xD800 or 0xF900 <= code < 0xFFFE else None


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

    def __init__(self, package: _Package) -> None:
        self.blocks: list[Block] = []
        self.warnings: list[str] = []
        self.unmapped = 0
        self.unread: list[str] = []
        self._package = package
        self._part = package.document_name
        self._kind: Kind = ""
        self._list = ListLines()
        self._later: list[Block] = []
        self._styles = _Styles(package.first("styles"))
        self.left_out: list[str] = []
        """Texts that Word does not show, and copies of a header."""
        self._numbers = _Numbering(package.first("numbering"))
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
        self._fields: list[bool] = []  # whether the text is an instruction, for each field around it
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
                    styles[kind] = found.get(_VAL, "decimal")
        return styles

    def _read_margins(self, kind: Kind) -> None:
        """Headers or footers, once each."""
        seen: set[str] = set()
        for name in self._package.parts(kind):
            root = self._package.xml(name)
            before, self.blocks = self.blocks, []
            self._story(name, root, kind)
            text = "\n".join(block.text for block in self.blocks)
            if text in seen:
                self.left_out.append(text)
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
                else:
                    self._leave_out(child)
            elif child.tag not in _OMITTED and isinstance(child.tag, str):
                yield from self._rows(child)

    def _row(self, row: Element) -> list[str]:
        properties = row.find(W + "trPr")
        before = None if properties is None else properties.find(W + "gridBefore")
        texts = [""] * min(_number(None if before is None else before.get(_VAL), 0), MOST_COLUMNS)
        for cell in _cells(row):
            properties = cell.find(W + "tcPr")
            span = None if properties is None else properties.find(W + "gridSpan")
            texts.append(self._flat(cell))
            texts += [""] * (min(_number(None if span is None else span.get(_VAL), 1), MOST_COLUMNS) - 1)
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
        properties = element.find(_PPR)
        named = None if properties is None else properties.find(W + "pStyle")
        name = self._styles.default if named is None else named.get(_VAL, "")
        style = self._styles[name]
        outer, self._hidden = self._hidden, style.hidden
        self._inline(element, line)
        self._hidden = outer
        if self._muted:  # an instruction does not continue in the next paragraph, so its end is missing
            self._fields, self._muted = [False] * len(self._fields), 0
        text = finish_text(line.parts)
        if self._page_field and self._kind in ("header", "footer") and is_page_number(text):
            self.left_out.append(text)
            text = ""
        level, number, depth = None, None, None
        if properties is not None:
            for item in properties:
                tag = item.tag
                if tag == W + "outlineLvl":
                    level = (_number(item.get(_VAL), 9) + 1) % 10
                elif tag == W + "numPr":
                    number, depth = _numbered(item, "", -1)
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
                if self._muted:
                    self.left_out.append(child.text or "")
                else:
                    self._text(child.text or "", line)
            elif (handle := _INLINE.get(tag)) is not None:
                handle(self, child, line)
            elif tag in _BREAKS:
                if not self._muted:
                    line.parts.append(_BREAKS[tag])
            elif tag not in _OMITTED and isinstance(tag, str):
                self._inline(child, line)

    def _run(self, run: Element, line: _Line) -> None:
        properties = run.find(_RPR)
        if self._is_hidden(properties):
            self._leave_out(run)
            for mark in run.iter(_FIELD_MARK):
                self._field_mark(mark, None)
            return
        outer, self._font = self._font, properties
        before = len(line.parts)
        self._inline(run, line)
        self._font = outer
        if len(line.parts) == before + 1:
            line.parts[before] = raised(line.parts[before], _position(properties))

    def _leave_out(self, element: Element) -> None:
        self.left_out += element.itertext("{*}t")
        self.left_out += (picture_text(*map(one.get, ("title", "descr"))) for one in element.iter(WP + "docPr"))

    def _is_hidden(self, properties: Element | None) -> bool:
        """Return whether a run is hidden: by itself, otherwise by one of its two styles; both together show it."""
        vanish = None if properties is None else properties.find(W + "vanish")
        if vanish is not None:
            return _is_on(vanish)
        if not self._styles.may_hide:
            return False
        style = None if properties is None else properties.find(W + "rStyle")
        by_character = style is not None and self._styles[style.get(_VAL, "")].hidden
        return self._styles.hides or by_character != self._hidden

    def _text(self, text: str, line: _Line) -> None:
        if _PRIVATE.search(text):
            fonts = None if self._font is None else self._font.find(W + "rFonts")
            names = [] if fonts is None else [fonts.get(W + name, "") for name in ("ascii", "hAnsi", "cs")]
            font = next((name for name in names if name.lower() in _SYMBOLS), "")
            text = _PRIVATE.sub(lambda char: (symbol(font, ord(char[0])) or "") if font else char[0], text)
        line.parts.append(text.replace("\n", " ").replace("\r", " "))

    def _field_mark(self, mark: Element, line: _Line | None) -> None:
        kind = mark.get(W + "fldCharType")
        if kind == "begin":
            if line is not None and not self._muted:
                line.parts += _form_field(mark.find(W + "ffData"))
            self._fields.append(True)
            self._muted += 1
        elif self._fields and kind in ("separate", "end"):
            self._muted -= self._fields[-1]
            self._fields[-1] = False
            if kind == "end":
                self._fields.pop()

    def _instruction(self, element: Element, line: _Line) -> None:
        text = element.text if element.tag == _INSTRUCTION else element.get(W + "instr", "")
        if _PAGE_FIELD.search(text or ""):
            self._page_field = True
        if element.tag != _INSTRUCTION:
            self._inline(element, line)

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
        if relation is not None and relation.external and not self._muted:
            line.parts[before:] = [link(finish_edges(line.parts[before:]), relation.target)]

    def _content_control(self, element: Element, line: _Line) -> None:
        box = element.find(f"{W}sdtPr/{W14}checkbox")
        if box is not None and not self._muted:
            self._leave_out(element)
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
        name = element.get(_ID, "")
        label = ""
        if element.get(W + "customMarkFollows") not in ("1", "true", "on"):
            self._note_count[kind] += 1
            label = format_number(self._note_count[kind], self._note_styles[kind])
        if name in self._notes[kind] and (kind, name) not in self._used:
            self._used.add((kind, name))
            self._waiting_notes.append((kind, name, label))

    def _comment(self, element: Element, _line: _Line) -> None:
        name = element.get(_ID, "")
        if name in self._comments and ("comment", name) not in self._used:
            self._used.add(("comment", name))
            self._waiting_comments.append(name)

    def _deleted(self, element: Element, line: _Line) -> None:
        for reference in element.iter(W + "footnoteReference", W + "endnoteReference"):
            kind = "footnote" if reference.tag == W + "footnoteReference" else "endnote"
            name = reference.get(_ID, "")
            if name in self._notes[kind] and (kind, name) not in self._used:
                self._leave_out(self._notes[kind][name])
            self._used.add((kind, name))
        for reference in element.iter(W + "commentReference"):
            self._comment(reference, line)

    def _maths(self, element: Element, line: _Line) -> None:
        if self._is_hidden(next(element.iter(_RPR), None)):
            self._leave_out(element)
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
    return "" if position is None else position.get(_VAL, "").removesuffix("script")


def _by_id(root: Element | None, tag: str) -> dict[str, Element]:
    """Notes or comments by their identifiers, without the lines that separate notes from the text."""
    if root is None:
        return {}
    return {item.get(_ID, ""): item for item in root.iter(tag) if item.get(W + "type", "normal") == "normal"}


def _table_text(table: Element) -> str:
    """Return the title and the description of a table, which its properties hold."""
    found = [table.find(f"{W}tblPr/{W}tbl{name}") for name in ("Caption", "Description")]
    text = picture_text(*(one.get(_VAL) for one in found if one is not None))
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
        return ["☒" if _is_on(box.find(W + "default") if checked is None else checked) else "☐"]
    choices = data.find(W + "ddList")
    if choices is None:
        return []
    chosen = choices.find(W + "result")
    if chosen is None:
        chosen = choices.find(W + "default")
    at = _number(None if chosen is None else chosen.get(_VAL), 0)
    entries = [entry.get(_VAL, "") for entry in choices.iterchildren(W + "listEntry")]
    return [entries[at]] if 0 <= at < len(entries) else []


# --- What was not read ---

_KINDS = {
    **{name: name for name in ("footnotes", "endnotes", "comments")},
    **{"header": "headers", "footer": "footers", "diagramData": "diagrams"},
    **dict.fromkeys(("chart", "chartEx", "chartUserShapes"), "charts"),
}


def _lost(package: _Package, reader: _Reader) -> dict[str, int]:
    """Count the words in the parts that are missing in the blocks."""
    parts = [("text", package.document), *related_parts(package, [package.document_name], _KINDS)]
    lost = lost_words(parts, WORD, reader.blocks, reader.left_out)
    if reader.unmapped:
        lost["symbols"] = reader.unmapped
    for name in dict.fromkeys(reader.unread):
        data = package.data(name)
        text = "" if data.startswith(b"PK") else re.sub(r"<[^>]*>", " ", data.decode(errors="replace"))
        lost["inserted files"] = lost.get("inserted files", 0) + max(1, words_of(text).total())
    if reader.unread:
        reader.warnings.append("an inserted file is not read; open and save the document in Word to include it")
    return lost
