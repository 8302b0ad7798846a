"""Org files as Markdown: headings, lists, tables, code, quotations and marks; the lines keep their order."""

from __future__ import annotations

import re

from ragistry.readers.blocks import Block, ReadDocument
from ragistry.readers.encoding import decode
from ragistry.readers.word_processing import link

_HEADING = re.compile(r"(\*+)[ \t]+(.*)")
_TAGS = re.compile(r"[ \t]+:([\w@#%:]+):$")
_KEYWORD = re.compile(r"[ \t]*#\+(\w+)(?:\[[^\]]*\])?:[ \t]*(.*)")
_BLOCK = re.compile(r"[ \t]*#\+(begin|end)_(\w+)[ \t]*(\S*).*", re.IGNORECASE)
_COMMENT = re.compile(r"[ \t]*#(?:[ \t]|$)")
_DRAWER = re.compile(r"[ \t]*:([\w-]+):[ \t]*(.*)")
_FIXED = re.compile(r"[ \t]*:(?:[ \t](.*)|$)")
_RULE = re.compile(r"[ \t]*\|-[-+|]*[ \t]*$")
_STRUCTURAL = re.compile(r"^(?=[ \t]*(?:#{1,6}\s|[=-]+\s*$))")  # signs of Markdown that are none of Org
_LINK = re.compile(r"\[\[([^\[\]]+)\](?:\[([^\[\]]+)\])?\]")
_NOTE = re.compile(r"\[fn:([\w-]*)(:?)")
_TERM = re.compile(r"^([ \t]*[-+*] .*?\S)[ \t]+::(?=\s|$)")
_MARKS = {"*": "**", "/": "*", "=": "`", "~": "`", "+": "~~"}
_MARK = re.compile(
    "|".join(rf"(?<![\w{sign}])[{sign}](?=\S)([^{sign}]*[^{sign}\s])[{sign}](?![\w{sign}])" for sign in _MARKS)
)
_INFO = {"title": "Title", "author": "Author", "date": "Created", "keywords": "Keywords"}
_SHOWN = frozenset({"title", "subtitle", "author", "date", "caption", "description", "keywords", "name", "email"})
"""Keywords whose values are text; the others are settings."""
_CODE = frozenset({"src", "example", "export", "verbatim"})


def read(data: bytes, suffix: str) -> ReadDocument:  # noqa: ARG001, one reader for one suffix
    """Read an Org file."""
    decoded = decode(data)
    info: dict[str, str] = {}
    lines: list[str] = []
    fence, is_quote, is_comment, in_table = "", False, False, False
    for line in decoded.text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        block = _BLOCK.fullmatch(line)
        if fence:
            ends = block is not None and block[1].lower() == "end" and block[2].lower() == fence
            lines.append("```" if ends else line.replace(",*", "*", 1).replace(",#+", "#+", 1))
            fence = "" if ends else fence
            continue
        if block is not None:
            kind, begins = block[2].lower(), block[1].lower() == "begin"
            if kind in _CODE and begins:
                fence = kind
                lines += ["", f"```{block[3] if kind == 'src' else ''}"]
            is_quote, is_comment = begins and kind == "quote", begins and kind == "comment"
            continue
        if is_comment or _COMMENT.match(line) or _RULE.match(line):
            continue  # the rule below the first row is written with it
        shown = f"> {_line(line, info)}" if is_quote else _line(line, info)
        is_row = line.lstrip().startswith("|")
        if is_row:
            shown = shown.strip().rstrip("|") + "|"
            if not in_table:
                shown = f"\n{shown}\n|{' --- |' * (shown.count('|') - 1)}"
        elif in_table:
            shown = f"\n{shown}"
        in_table = is_row
        lines.append(shown)
    if fence:
        lines.append("```")
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    return ReadDocument([Block(text)], info, warnings=[decoded.warning] if decoded.warning else [])


def _line(line: str, info: dict[str, str]) -> str:
    """Return a line outside of code as Markdown, and note what it says about the file."""
    if heading := _HEADING.fullmatch(line):
        title = _TAGS.sub(lambda tags: f" ({tags[1].replace(':', ', ')})", heading[2].rstrip())
        return f"\n{'#' * min(6, len(heading[1]))} {_inline(title)}\n"
    if keyword := _KEYWORD.fullmatch(line):
        name, value = keyword[1].lower(), keyword[2].strip()
        if name in _INFO and value:
            info.setdefault(_INFO[name], value)
        return f"**{keyword[1].capitalize()}**: {_inline(value)}\n" if name in _SHOWN and value else ""
    if drawer := _DRAWER.fullmatch(line):
        return f"**{drawer[1]}**: {drawer[2]}\n" if drawer[2] else ""
    if fixed := _FIXED.fullmatch(line):
        return f"    {fixed[1] or ''}"
    return _STRUCTURAL.sub(r"\\", _TERM.sub(r"\1:", _inline(line)))


def _inline(text: str) -> str:
    literals: list[str] = []  # links and code, in which nothing is a mark

    def keep(text: str) -> str:
        literals.append(text)
        return f"\ue000{len(literals) - 1}\ue001"

    def linked(found: re.Match[str]) -> str:
        return keep(link(found[2] or found[1], found[1]))

    def mark(found: re.Match[str]) -> str:
        sign = _MARKS[found[0][0]]
        return f"{sign}{found[0][1:-1]}{sign}"

    text = _NOTE.sub(lambda note: f"[{note[1]}{': ' if note[1] and note[2] else ''}", text.translate(_PLACEHOLDERS))
    text = _MARK.sub(mark, _LINK.sub(linked, text))
    return re.sub("\ue000(\\d+)\ue001", lambda found: literals[int(found[1])], text)


_PLACEHOLDERS = dict.fromkeys((0xE000, 0xE001))
