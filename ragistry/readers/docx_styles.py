"""Read the styles of a Word document, and count the numbers that it sets before paragraphs."""

from __future__ import annotations

import re
from typing import NamedTuple

from ragistry.readers.docx_package import PPR, RPR, VAL, Element, W, is_on, whole_number
from ragistry.readers.word_processing import format_number


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

    def __init__(self, root: Element | None) -> None:
        self._found = {} if root is None else {style.get(W + "styleId"): style for style in root.iter(W + "style")}
        self._known: dict[str, _Style] = {}
        self.may_hide = root is not None and next(root.iter(W + "vanish"), None) is not None
        default = f"{W}docDefaults/{W}rPrDefault/{RPR}/{W}vanish"
        self.hides = root is not None and is_on(root.find(default))
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
        above = style.find(W + "basedOn")
        level, number, depth, hidden = PLAIN if above is None else self[above.get(VAL, "")]
        own = style.find(W + "name")
        title = "" if own is None else own.get(VAL, "")
        properties = style.find(PPR)
        outline = None if properties is None else properties.find(W + "outlineLvl")
        if outline is not None:
            level = (whole_number(outline.get(VAL), 9) + 1) % 10
        elif match := _HEADING.fullmatch(title):
            level = int(match[1])
        elif title.lower() == "title":
            level = 1
        numbered = None if properties is None else properties.find(W + "numPr")
        if numbered is not None:
            number, depth = numbering_of(numbered, number, depth)
        marked = style.find(f"{RPR}/{W}vanish")
        return _Style(level, number, depth, hidden if marked is None else is_on(marked))


def _is_default(style: Element) -> bool:
    return style.get(W + "type") == "paragraph" and style.get(W + "default") in ("1", "true", "on")


def numbering_of(properties: Element, number: str, depth: int) -> tuple[str, int]:
    """Return the numbering and the level that properties name, otherwise those that are passed."""
    found, level = properties.find(W + "numId"), properties.find(W + "ilvl")
    if found is not None:
        number = found.get(VAL, "")
    if level is not None:
        depth = whole_number(level.get(VAL), 0)
    return number, depth


class _Level(NamedTuple):
    start: int
    style: str
    text: str
    restart: int | None
    legal: bool
    paragraph_style: str


class Numbering:
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
                    names[linked.get(VAL, "")] = name
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
                    starts[whole_number(override.get(W + "ilvl"), 0)] = whole_number(start.get(VAL), 1)
            name = "" if target is None else target.get(VAL, "")
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
            name: (item.get(VAL) if (item := level.find(W + name)) is not None else None)
            for name in ("start", "lvlText", "lvlRestart", "pStyle")
        }
        style = next((item.get(VAL, "") for item in level.iter(W + "numFmt")), "decimal")
        restart = None if values["lvlRestart"] is None else whole_number(values["lvlRestart"], 0)
        legal = is_on(level.find(W + "isLgl"))
        text, paragraph = values["lvlText"] or "", values["pStyle"] or ""
        start = whole_number(values["start"], 0)
        found[whole_number(level.get(W + "ilvl"), 0)] = _Level(start, style, text, restart, legal, paragraph)
    return found
