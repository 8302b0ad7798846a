"""Write what word processors hold as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ragistry.readers.office_package import TAG, clean, markdown_table

_TABS = re.compile(r" *\t[\t ]*")
_JOINT = re.compile("(?<=\\w)\x02+(?=\\w)")
_MARKUP = re.compile(r"^(?=#{1,6}(?:\s|$)|```|~~~|[>|])|^(?<=\n)(?=(?:=+|-+)$)", re.MULTILINE)
FORMULA_EDGE = "\x02"
"""Stands before and after a formula until `finish_text` sets a blank where words would run together."""


def finish_text(parts: Iterable[str]) -> str:
    """Join pieces of a paragraph: one blank for tabs, none at the ends of lines, no accidental heading or fence."""
    text = "".join(parts)
    if FORMULA_EDGE in text:
        text = _JOINT.sub(" ", text).replace(FORMULA_EDGE, "")
    if "\t" in text:
        text = _TABS.sub(" ", text)
    text = clean(text.replace("\u00ad", ""))
    text = "\n".join(line for line in map(str.strip, text.split("\n")) if line) if "\n" in text else text.strip()
    return escape_markup(text)


def escape_markup(text: str) -> str:
    """Escape what Markdown would take for a heading, fence, quotation, table or tag; typed lists stay lists."""
    if "<" in text:
        text = TAG.sub(r"\\<", text)
    return _MARKUP.sub(r"\\", text) if text[:1] in ("#", "`", "~", ">", "|") or "\n" in text else text


def raised(text: str, position: str) -> str:
    """Return a number as superscript (``super``) or subscript (``sub``) digits, so that 10⁶ does not become 106."""
    return text.translate(_DIGITS[position]) if position in _DIGITS and _NUMBER.fullmatch(text) else text


_NUMBER = re.compile(r"[-+\u2212]?\d+")
_DIGITS = {
    "super": str.maketrans("0123456789+-\u2212", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻"),
    "sub": str.maketrans("0123456789+-\u2212", "₀₁₂₃₄₅₆₇₈₉₊₋₋"),
}


def without_breaks(text: str) -> str:
    """Return the text with a blank for each line break."""
    return text.replace("\n", " ")


_NO_ADDRESS = ("#", "javascript:", "data:")
_SCHEME = re.compile("^(?:http://|mailto:)", re.IGNORECASE)


def link(text: str, url: str) -> str:
    """Return a Markdown link; for a place in the document itself, or an address that is the text, the text alone."""
    bare = text.strip()
    if not bare or not url or url.startswith(_NO_ADDRESS) or bare in (url, _SCHEME.sub("", url)):
        return text
    url = url.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{head}[{without_breaks(bare)}]({url}){tail}"


_FIELD = re.compile(r'\bHYPERLINK\s+(?:"([^"]+)"|([^\s"\\]\S*))(?:\s+\\l\s+"([^"]+))?')


def field_address(code: str) -> str:
    """Return the address in a code such as ``HYPERLINK "https://e.org" \\l "part"``; empty without one."""
    found = _FIELD.search(code)
    return joined_address(found[1] or found[2], found[3]) if found else ""


def joined_address(url: str, part: str | None) -> str:
    """Return an address with the place in it to which a link leads."""
    return f"{url}#{part}" if part else url


def comment_label(author: str, word: str = "Comment") -> str:
    """Return what stands before a comment: the word, and the author if there is one."""
    name = " ".join(author.split())
    return f"{word} by {name}" if name else word


def table_markdown(rows: list[list[str]]) -> str:
    """Return rows of finished text as a Markdown table under its first row, without empty rows and columns."""
    rows = [row for row in rows if any(row)]
    width = max(map(len, rows), default=0)
    used = [at for at in range(width) if any(at < len(row) and row[at] for row in rows)]
    filled = [[without_breaks(row[at]).replace("|", "\\|") if at < len(row) else "" for at in used] for row in rows]
    return markdown_table(filled) if filled else ""


class ListLines:
    """Collect the items of a list as lines of Markdown, indented below the item that contains them.

    Args:
        indent: Blanks before an item in another one; 0: as many as the mark of that is wide.
    """

    def __init__(self, indent: int = 0) -> None:
        self._indent = indent
        self._lines: list[str] = []
        self._open: list[tuple[int, int]] = []  # depth and width of the marks around the next item

    def add(self, depth: int, label: str, text: str) -> None:
        """Add an item; ``label`` is ``-``, ``1.`` or any other text that stands before it."""
        is_marker = _MARKER.fullmatch(label)
        mark = f"{label} " if is_marker else f"- {label} "
        while self._open and self._open[-1][0] >= depth:
            self._open.pop()
        indent = " " * sum(width for _, width in self._open)
        self._open.append((depth, self._indent or (len(mark) if is_marker else 2)))
        inner = indent + " " * self._open[-1][1]
        self._lines.append(indent + mark + text.replace("\n", "\n" + inner))

    def take(self) -> str:
        """Return the list so far and start a new one."""
        text = "\n".join(self._lines)
        self._lines, self._open = [], []
        return text


_MARKER = re.compile(r"-|\d{1,9}[.)]")


class Level(NamedTuple):
    """How the items on a level of a list are numbered.

    Attributes:
        style: A style of `format_number`, or ``bullet``.
        text: Texts, and the levels whose numbers stand between them.
        start: The first number.
        restart: An item on a level above this one lets the numbers start again; None: on any level above.
        is_legal: Whether the numbers of all levels are decimal.
    """

    style: str
    text: tuple[str | int, ...] = ()
    start: int = 1
    restart: int | None = None
    is_legal: bool = False


def count_item(levels: Mapping[int, Level], depth: int, counts: dict[int, int], start: int | None = None) -> str:
    """Count an item of a list and return its number, or ``-`` for a bullet.

    Args:
        levels: The levels of the list.
        depth: Level of the item.
        counts: The last number on each level, which is changed.
        start: The number of the item, if it does not follow from the one before.
    """
    level = levels.get(depth, _UNNUMBERED)
    counts[depth] = start if start is not None else counts.get(depth, level.start - 1) + 1
    for deeper in [at for at in counts if at > depth]:
        restart = levels[deeper].restart if deeper in levels else None
        if restart is None or depth < restart:
            del counts[deeper]
    if level.style == "bullet":
        return "-"
    label = ""
    for piece in level.text:
        if isinstance(piece, str):
            label += piece
        elif (shown := levels.get(piece)) is not None:
            style = "decimal" if level.is_legal and shown.style != "none" else shown.style
            label += format_number(counts.setdefault(piece, shown.start), style)
    return " ".join(label.split())


_UNNUMBERED = Level("none")


def format_number(value: int, style: str) -> str:
    """Return a number as Word writes it in a style such as ``lowerRoman``; unknown styles are decimal."""
    if style in ("upperLetter", "lowerLetter") and 0 < value < 10_000:
        letters = chr(65 + (value - 1) % 26) * ((value - 1) // 26 + 1)
        return letters if style == "upperLetter" else letters.lower()
    if style in ("upperRoman", "lowerRoman") and 0 < value < 10_000:
        roman, rest = "", value
        for size, sign in _ROMAN:
            roman += sign * (rest // size)
            rest %= size
        return roman if style == "upperRoman" else roman.lower()
    if style == "decimalZero":
        return f"{value:02}"
    if style == "ordinal":
        ending = "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
        return f"{value}{ending}"
    return "" if style == "none" else str(value)


_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)

# The characters of the symbol fonts of Office

_GREEK = " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"  # noqa: RUF001
_SIGNS = "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…|—↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ 〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭"  # noqa: RUF001
SYMBOLS: dict[str, dict[int, str]] = {
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
PRIVATE_USE = re.compile("[\uf020-\uf0ff]")


def symbol(font: str, code: int) -> str | None:
    """Return the character of a symbol font; an empty text for an unknown pictogram, None for an unknown font."""
    table = SYMBOLS.get(font.lower())
    if table is not None:
        return table.get(code & 0xFF, "")
    return chr(code) if 0x20 <= code < 0xD800 or 0xF900 <= code < 0xFFFE else None
