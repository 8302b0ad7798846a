"""Open Word documents: names of elements, parts by what they are, styles, and the numbers before paragraphs."""

from __future__ import annotations

import re
from typing import NamedTuple

from lxml import etree

from ragistry.readers.blocks import REPAIR, UnreadableFileError
from ragistry.readers.office_package import EMBEDDED, Package, Relation, whole_number
from ragistry.readers.office_text import Element
from ragistry.readers.word_processing import Level, count_item

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
PPR, RPR, VAL, ID = W + "pPr", W + "rPr", W + "val", W + "id"
_MAIN_TYPE = re.compile(r"word.*(?:main|template).*\+xml$", re.IGNORECASE)
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")


class WordPackage(Package):
    """The parts of a Word document by what they are. Each is parsed once."""

    def __init__(self, data: bytes, suffix: str) -> None:
        super().__init__(data)
        self._names = frozenset(self.names)
        self._names_of_roots: dict[Element | None, str] = {}
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
                root = etree.fromstring(text, etree.XMLParser(resolve_entities=False, no_network=True))
            self._trees[key] = root
            self._names_of_roots[root] = key
        return self._trees[key]

    def relation(self, element: Element, attribute: str) -> Relation | None:
        """Return what an identifier in an attribute of an element leads to."""
        part = self._names_of_roots[element.getroottree().getroot()]
        return self.relations(part).get(element.get(R + attribute, ""))

    def parts(self, kind: str) -> list[str]:
        """Return the names of the document's parts of a kind, first those to which a relation leads."""
        names = [*map(str.casefold, self.related(self.document_name, kind)), *self.typed(kind)]
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
        return sum(len(self.related(name, *EMBEDDED)) for name in texts)

    def first(self, kind: str) -> Element:
        """Return the root of the first part of a kind; an element without content if there is none."""
        names = self.parts(kind)
        root = self.xml(names[0]) if names else None
        return etree.Element(kind) if root is None else root

    def notes(self, kind: str) -> dict[str, Element]:
        """Return notes or comments by their identifiers, without the lines that separate notes from the text."""
        notes = self.first(f"{kind}s").iter(W + kind)
        return {note.get(ID, ""): note for note in notes if note.get(W + "type", "normal") == "normal"}


def is_on(element: Element | None) -> bool:
    """Return whether a property is there and not switched off."""
    return element is not None and element.get(VAL, "true") not in ("0", "false", "off")


def value_of(parent: Element | None, name: str, default: str = "") -> str:
    """Return the value of the property of this name in an element of properties, or the default."""
    found = None if parent is None else parent.find(W + name)
    return default if found is None else str(found.get(VAL, default))


# --- Styles ---


class _Style(NamedTuple):
    level: int
    """Level of the heading; 0 for other paragraphs."""
    number: str
    """Identifier of the numbering, if the style has one."""
    depth: int
    hidden: bool


PLAIN = _Style(0, "", -1, False)
_HEADING = re.compile(r"heading ?([1-9])", re.IGNORECASE)


class Styles:
    """The styles of paragraphs by their identifiers, each with what it takes from the one above."""

    def __init__(self, root: Element) -> None:
        self._found = {style.get(W + "styleId"): style for style in root.iter(W + "style")}
        self._known: dict[str, _Style] = {}
        self.may_hide = next(root.iter(W + "vanish"), None) is not None
        default = f"{W}docDefaults/{W}rPrDefault/{RPR}/{W}vanish"
        self.hides = is_on(root.find(default))
        self.default = next((key for key, style in self._found.items() if _is_default(style)), "")

    def __getitem__(self, name: str) -> _Style:
        known = self._known.get(name)
        if known is None:
            self._known[name] = PLAIN  # for styles that are based on each other in a circle
            known = self._known[name] = self._resolve(name)
        return known

    def _resolve(self, name: str) -> _Style:
        style = self._found.get(name)
        if style is None:
            match = _HEADING.fullmatch(name)  # a generator left the definition out
            return PLAIN._replace(level=int(match[1]) if match else 0)
        level, number, depth, hidden = self[value_of(style, "basedOn")]
        title = value_of(style, "name")
        properties = style.find(PPR)
        if outline := value_of(properties, "outlineLvl"):
            level = (whole_number(outline, 9) + 1) % 10
        elif match := _HEADING.fullmatch(title):
            level = int(match[1])
        elif title.lower() == "title":
            level = 1
        number, depth = numbering_of(properties, number, depth)
        marked = style.find(f"{RPR}/{W}vanish")
        return _Style(level, number, depth, hidden if marked is None else is_on(marked))


def _is_default(style: Element) -> bool:
    return style.get(W + "type") == "paragraph" and style.get(W + "default") in ("1", "true", "on")


def numbering_of(properties: Element | None, number: str, depth: int) -> tuple[str, int]:
    """Return the numbering and the level that properties of a paragraph name, otherwise those that are passed."""
    numbered = None if properties is None else properties.find(W + "numPr")
    if numbered is None:
        return number, depth
    found, level = numbered.find(W + "numId"), numbered.find(W + "ilvl")
    if found is not None:
        number = found.get(VAL, "")
    if level is not None:
        depth = whole_number(level.get(VAL), 0)
    return number, depth


class _Definition(NamedTuple):
    """A numbering: the name under which it is counted, the starts that it changes, and its levels."""

    name: str
    starts: dict[int, int]
    levels: dict[int, Level]
    styles: dict[str, int]
    """Levels by the style of paragraphs that are on them."""


class Numbering:
    """The numbers that Word sets before paragraphs, counted in the order in which they are asked for."""

    def __init__(self, root: Element) -> None:
        self._abstract: dict[str, Element] = {}
        self._definitions: dict[str, _Definition] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._overridden: set[tuple[str, int]] = set()
        links: dict[str, str] = {}
        styles: dict[str, str] = {}
        for abstract in root.iter(W + "abstractNum"):
            name = abstract.get(W + "abstractNumId")
            self._abstract[name] = abstract
            for tag, names in ((W + "numStyleLink", links), (W + "styleLink", styles)):
                linked = abstract.find(tag)
                if linked is not None:
                    names[linked.get(VAL, "")] = name
        # A definition inside another one, by a style.
        self._linked = {name: styles[style] for style, name in links.items() if style in styles}
        self._numbers: dict[str, Element] = {number.get(W + "numId", ""): number for number in root.iter(W + "num")}

    def _definition(self, number: str) -> _Definition:
        if number not in self._definitions:
            element = self._numbers[number]
            name = value_of(element, "abstractNumId")
            found = self._definitions[number] = _Definition(name, {}, {}, {})
            for override in element.iter(W + "lvlOverride"):
                if start := value_of(override, "startOverride"):
                    found.starts[whole_number(override.get(W + "ilvl"), 0)] = whole_number(start, 1)
            for parent in (self._abstract.get(name), self._abstract.get(self._linked.get(name, ""))):
                if parent is not None and not found.levels:
                    _add_levels(parent, found)
            _add_levels(element, found)
        return self._definitions[number]

    def depth_of(self, number: str, style: str) -> int:
        """Return the level of a numbering that is linked to a style."""
        return self._definition(number).styles.get(style, 0) if number in self._numbers else 0

    def label(self, number: str, depth: int) -> str:
        """Count a paragraph and return its number, ``-`` for a bullet, or an empty text."""
        if number not in self._numbers:
            return ""
        name, starts, levels, _ = self._definition(number)
        if depth not in levels:
            return ""
        start = starts.get(depth) if (number, depth) not in self._overridden else None
        self._overridden.add((number, depth))
        return count_item(levels, depth, self._counts.setdefault(name, {}), start)


def _add_levels(parent: Element, definition: _Definition) -> None:
    for level in parent.iter(W + "lvl"):
        depth = whole_number(level.get(W + "ilvl"), 0)
        pieces = re.split(r"%([1-9])", value_of(level, "lvlText"))
        restart = value_of(level, "lvlRestart")
        definition.levels[depth] = Level(
            next((item.get(VAL, "") for item in level.iter(W + "numFmt")), "decimal"),
            tuple(int(piece) - 1 if at % 2 else piece for at, piece in enumerate(pieces)),
            whole_number(value_of(level, "start"), 0),
            whole_number(restart, 0) if restart else None,
            is_on(level.find(W + "isLgl")),
        )
        if style := value_of(level, "pStyle"):
            definition.styles.setdefault(style, depth)
