"""Open OpenDocument files: names of elements, parts, and the styles that change what is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ragistry.readers.blocks import UnreadableFileError
from ragistry.readers.office_package import ENCRYPTED, Package, whole_number
from ragistry.readers.office_text import Element
from ragistry.readers.word_processing import Level

URN = "urn:oasis:names:tc:opendocument:xmlns:"
OFFICE, TEXT, TABLE, DRAW, STYLE, SVG, FORM, CHART, PRESENTATION = (
    f"{{{URN}{name}:1.0}}"
    for name in ("office", "text", "table", "drawing", "style", "svg-compatible", "form", "chart", "presentation")
)
XLINK = "{http://www.w3.org/1999/xlink}"
DC = "{http://purl.org/dc/elements/1.1/}"
MATH = "{http://www.w3.org/1998/Math/MathML}math"
XML_ID = "{http://www.w3.org/XML/1998/namespace}id"


class OpenDocument(Package):
    """The parts of the file. Raises `UnreadableFileError` if they are encrypted."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        manifest = self.xml("META-INF/manifest.xml")
        if manifest is not None and next(manifest.iter("{*}encryption-data"), None) is not None:
            raise UnreadableFileError(ENCRYPTED)

    def xml(self, name: str) -> Element | None:
        """Return the root element of a part, or None without one."""
        return super().xml(name) if name.casefold() in self.names else None

    def masters(self, *tags: str) -> Iterator[Element]:
        """Yield the elements of these tags in the master pages."""
        styles = self.xml("styles.xml")
        found = None if styles is None else styles.find(OFFICE + "master-styles")
        yield from () if found is None else found.iter(*tags)


_FORMATS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman", "": "none"}


_NUMBERED = TEXT + "list-level-style-number", TEXT + "outline-level-style"


def _depth(item: Element) -> int:
    return whole_number(item.get(TEXT + "level"), 0)


def _levels(style: Element) -> dict[int, Level]:
    levels: dict[int, Level] = {}
    for item in sorted(style, key=_depth):
        depth = _depth(item)
        if item.tag not in _NUMBERED:
            levels[depth] = Level("bullet")
            continue
        name = _FORMATS.get(item.get(STYLE + "num-format", ""), "decimal")
        text: list[str | int] = [item.get(STYLE + "num-prefix", "")]
        if name != "none":
            first = depth - whole_number(item.get(TEXT + "display-levels"), 1, 10) + 1
            for above in range(first, depth):
                if above in levels and levels[above].style not in ("bullet", "none"):
                    text += [above, "."]
            text.append(depth)
        text.append(item.get(STYLE + "num-suffix", ""))
        levels[depth] = Level(name, tuple(text), whole_number(item.get(TEXT + "start-value"), 1))
    return levels


def _position(text: str) -> str:
    """Return ``super`` or ``sub`` for the start of a ``text-position``, which may be a share of the height."""
    if text.endswith("%"):
        return "sub" if text.startswith("-") else "" if text == "0%" else "super"
    return text


_AUTOMATIC = re.compile(r"P\d+")
"""Names of styles that an office program makes when a paragraph differs from its style."""


class Styles:
    """The styles of the document that change what is read."""

    def __init__(self, roots: Iterable[Element | None]) -> None:
        self.lists: dict[str, dict[int, Level]] = {}
        self.outline: dict[int, Level] = {}
        self._parents: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._list_names: dict[str, str] = {}
        self.positions: dict[str, str] = {}
        self._displays: dict[str, str] = {}
        for root in roots:
            if root is None:
                continue
            for style in root.iter(STYLE + "style"):
                self._add(style)
            for style in root.iter(TEXT + "list-style"):
                self.lists[style.get(STYLE + "name", "")] = _levels(style)
            for style in root.iter(TEXT + "outline-style"):
                self.outline = _levels(style)

    def _add(self, style: Element) -> None:
        name = style.get(STYLE + "name", "")
        family = style.get(STYLE + "family")
        if family not in ("paragraph", "text"):
            return
        shown = style.find(STYLE + "text-properties")
        if shown is not None:
            if position := shown.get(STYLE + "text-position"):
                self.positions[name] = _position(position.split()[0])
            if display := shown.get(TEXT + "display"):
                self._displays[name] = display
        self._parents[name] = style.get(STYLE + "parent-style-name", "")
        if family == "paragraph":
            self._names[name] = style.get(STYLE + "display-name", name)
            if list_name := style.get(STYLE + "list-style-name"):
                self._list_names[name] = list_name

    def _line(self, name: str) -> Iterator[str]:
        seen = set()
        while name and name not in seen:
            seen.add(name)
            yield name
            name = self._parents.get(name, "")

    def hides(self, name: str) -> bool | None:
        """Return whether a style hides text; None if neither it nor one that it is based on says so."""
        if not self._displays:
            return None
        display = next((self._displays[above] for above in self._line(name) if above in self._displays), None)
        return None if display is None else display == "none"

    def level(self, name: str) -> int:
        """Return the level of a heading in a paragraph style; 0 for other paragraphs."""
        for above in [name, self._parents.get(name, "")] if _AUTOMATIC.fullmatch(name) else [name]:
            shown = self._names.get(above, above).replace("_20_", " ")
            if match := re.fullmatch(r"Heading ([1-9])", shown):
                return int(match[1])
            if shown == "Title":
                return 1
        return 0

    def list_name(self, name: str) -> str:
        """Return the name of the list style of a paragraph style."""
        return next((self._list_names[above] for above in self._line(name) if above in self._list_names), "")
