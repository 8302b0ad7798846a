"""Count the words of an office file that its reader did not read, over the text elements of all its parts.

A reader names the parts of the file, and the texts that it leaves out on purpose, such as hidden text or a second copy
of a header. Every other word must be in the blocks. The tables say for each format which elements have text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from lxml import etree

from ragistry.readers.blocks import Block, words_of
from ragistry.readers.office_package import Package, picture_text

Element = Any  # lxml has no type hints
Parts = Iterable[tuple[str, Element | None]]
"""Kinds of content, each with the root of a part that has it."""

PICTURES = "alternative texts"
_RUN: Final = "its text continues the text before"
_ESCAPED: Final = "the same, with _x000D_ for a line end"
_PARAGRAPH: Final = "its text is followed by a blank"
_JOINT: Final = "within a paragraph, it divides no words"
_BREAK: Final = "a blank"
_END: Final = "a blank behind it"
_DROPPED: Final = "nobody sees its text"
_FORMULA: Final = "a formula"
_PICTURE: Final = "its attributes are a title and a description"
_CACHE: Final = "its values are counted once in a part"
_ROLES = {_RUN, _ESCAPED, _PARAGRAPH, _JOINT, _BREAK, _END, _DROPPED, _FORMULA, _PICTURE, _CACHE}
_HOLDERS = {_RUN, _ESCAPED, _PARAGRAPH}

_BREAKS = "p tab ptab br cr noBreakHyphen sym tc drawing pict comment threadedComment cm pt"
_OFFICE = {
    **{"{*}" + name: _BREAK for name in _BREAKS.split()},
    **{"{*}" + name: _DROPPED for name in ("Fallback", "del", "moveFrom", "rPh")},
    "{*}t": _RUN,
    "{*}oMath": _FORMULA,
    "{*}strCache": _CACHE,
}
WORD = _OFFICE | {"{*}txbxContent": "text boxes", "{*}rt": "readings", "{*}rubyBase": _END, "{*}docPr": _PICTURE}
SLIDES = _OFFICE | {"{*}text": _RUN, "{*}cNvPr": _PICTURE}
SHEETS = _OFFICE | {"{*}t": _ESCAPED, "{*}text": _ESCAPED, "{*}cNvPr": _PICTURE, "{*}strCache": _BREAK, "{*}tx": _CACHE}

_URN = "{urn:oasis:names:tc:opendocument:xmlns:"
_TEXT, _OFF, _SVG, _SHOW, _TABLE = (
    _URN + name + ":1.0}" for name in ("text", "office", "svg-compatible", "presentation", "table")
)
_ABOUT = "{http://purl.org/dc/elements/1.1/}creator", "{http://purl.org/dc/elements/1.1/}date"
_WITHIN = (
    "span a meta bookmark bookmark-start bookmark-end soft-page-break change change-start change-end ruby-base "
    "reference-mark reference-mark-start reference-mark-end alphabetical-index-mark alphabetical-index-mark-start "
    "alphabetical-index-mark-end meta-field"
)
OPEN_DOCUMENT = {
    **{_TEXT + name: _PARAGRAPH for name in ("p", "h")},
    **{_TEXT + name: _JOINT for name in _WITHIN.split()},
    **{_TEXT + name: _DROPPED for name in ("tracked-changes", "script", "note-citation", "label")},
    **{_OFF + name: _DROPPED for name in ("forms", "scripts", "event-listeners", "binary-data")},
    **{_SHOW + name: _DROPPED for name in ("settings", "date-time-decl", "header", "footer", "date-time")},
    **dict.fromkeys((*_ABOUT, _URN + "meta:1.0}date-string", _URN + "meta:1.0}creator-initials"), _DROPPED),
    **dict.fromkeys((_SVG + "title", _SVG + "desc", _TABLE + "title", _TABLE + "desc"), PICTURES),
    **dict.fromkeys((_SHOW + "header-decl", _SHOW + "footer-decl"), "footers"),
    _TEXT + "note": "notes",
    _OFF + "annotation": "comments",
    _OFF + "annotation-end": _JOINT,
    _SHOW + "notes": "notes pages",
    _TABLE + "tracked-changes": _DROPPED,
    "{http://www.w3.org/1998/Math/MathML}math": _FORMULA,
}
_SIGNS = "{*}t", "{*}mi", "{*}mn", "{*}mtext"
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻₀₁₂₃₄₅₆₇₈₉₊₋", "0123456789+-0123456789+-") | {0xAD: None}
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")


def lost_words(
    parts: Parts, roles: Mapping[str, str], blocks: Iterable[Block], left_out: Iterable[str], cells: Iterable[str] = ()
) -> dict[str, int]:
    """Count the words of each kind of content that are in no block and not left out, each word of the text once."""
    found: dict[str, list[str]] = defaultdict(list, cells=[" ".join(cells)])
    formulas: list[str] = []
    known, tags = _Roles(roles), [tag for tag, role in roles.items() if role is not _JOINT]
    for kind, root in parts:
        if root is not None:
            _collect(root, tags, known, kind, found, formulas)
    text = "\n".join([*(block.text for block in blocks), *left_out]).translate(_RAISED)
    left, lost = words_of(text), {}
    for kind, pieces in found.items():
        lost[kind] = 0
        for word, count in words_of("".join(pieces).translate(_RAISED)).items():
            present = min(count, left[word])
            left[word] -= present
            lost[kind] += count - present
    lost["formulas"] = _missing_formulas(formulas, text) if formulas else 0
    return {kind: count for kind, count in lost.items() if count > 0}


def related_parts(
    package: Package, names: Iterable[str], kinds: Mapping[str, str]
) -> Iterator[tuple[str, Element | None]]:
    """Yield the parts to which relations lead from some parts, each with its kind by the kind of the relation."""
    waiting = [*names]
    seen = set(map(str.casefold, waiting))
    while waiting:
        for one in package.relations(waiting.pop()).values():
            key = one.target.casefold()
            if one.kind in kinds and not one.external and key in package.names and key not in seen:
                seen.add(key)
                waiting.append(one.target)
                yield kinds[one.kind], package.xml(one.target)


def _collect(
    root: Element, tags: list[str], roles: _Roles, kind: str, found: dict[str, list[str]], formulas: list[str]
) -> None:
    """Add the texts of a part to those of their kinds."""
    kinds, cached = [kind], dict[str, None]()
    walker = etree.iterwalk(root, events=("start", "end"), tag=tags)
    for event, element in walker:
        role, pieces = roles[element.tag], found[kinds[-1]]
        if event == "end":
            if role not in _ROLES:
                pieces.append(" ")
                kinds.pop()
            elif role is _PARAGRAPH or role is _END:
                pieces.append(" ")
        elif role in _HOLDERS:
            text = (element.text or "") if not len(element) else "".join(_own_text(element, roles))
            pieces.append(_ESCAPE.sub(" ", text) if role is _ESCAPED else text)
        elif role is _BREAK:
            pieces.append(" ")
        elif role is _DROPPED:
            walker.skip_subtree()
        elif role is _FORMULA:
            formulas.append("".join(element.itertext(*_SIGNS)))
            walker.skip_subtree()
        elif role is _PICTURE:
            found[PICTURES].append(f" {picture_text(element.get('title'), element.get('descr'))} ")
        elif role is _CACHE:
            cached |= dict.fromkeys(value.text or "" for value in element.iter("{*}v"))
        elif role is not _END:
            role = f"{element.get(_TEXT + 'note-class', 'footnote')}s" if role == "notes" else role
            kinds.append(role)
            before = element.getprevious()
            if before is None or before.text != element.text or role != PICTURES:
                found[role].append(picture_text(element.text) if role == PICTURES else element.text or "")
    found[kind] += [f" {value} " for value in (*cached, "")]


class _Roles(dict[str, str]):
    """The roles of elements by their full names, which are found by their local names once."""

    def __missing__(self, tag: str) -> str:
        role = self[tag] = self.get("{*}" + tag.rpartition("}")[2], "") if isinstance(tag, str) else _DROPPED
        return role


def _own_text(element: Element, roles: _Roles) -> Iterator[str]:
    """Yield the text of a paragraph without that of paragraphs, notes and the like in it."""
    yield element.text or ""
    for child in element:
        role = roles[child.tag]
        blank = " " if role is not _JOINT and role not in ("notes", "comments") else ""
        yield blank
        if not role or role is _JOINT:
            yield from _own_text(child, roles)
        yield f"{blank}{child.tail or ''}"


def _missing_formulas(formulas: Iterable[str], text: str) -> int:
    """Count the words of formulas, in which blanks and signs may differ."""
    squeezed, at, missing = _squeezed(text), 0, 0
    for formula in formulas:
        wanted = _squeezed(formula)
        place = squeezed.find(wanted, at)
        place = squeezed.find(wanted) if place < 0 else place
        if place < 0:
            missing += max(1, words_of(formula).total())
        else:
            at = place
    return missing


def _squeezed(text: str) -> str:
    return "".join(filter(str.isalnum, text))
