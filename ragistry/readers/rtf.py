"""Read RTF: text with its headings, lists and tables, headers, footers, notes, comments, text boxes and form values.

A group takes over the state of the group around it. Bytes are collected and decoded together, because one character may
be two escapes, or an escape and a letter, in the encodings of East Asia.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field, replace

from ragistry.readers.blocks import Block, Kind, Place, ReadDocument, UnreadableFileError, words_of
from ragistry.readers.office_package import markdown_table
from ragistry.readers.word_processing import comment_label, field_address, link, symbol

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?[0-9]{1,10})? ?|\\'([0-9a-fA-F]{2})|\\(.)|([{}])|[\r\n\0]+|([^\\{}\r\n\0]+)|\\", re.DOTALL
)
_CHARSETS = {
    0: "cp1252", 77: "mac_roman", 78: "cp932", 79: "cp949", 80: "gbk", 81: "cp950", 83: "cp1255", 84: "cp1256",
    85: "mac_greek", 86: "mac_turkish", 88: "mac_latin2", 89: "mac_cyrillic", 128: "cp932", 129: "cp949",
    130: "johab", 134: "gbk", 136: "cp950", 161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256",
    186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
"""The encoding of each character set of a font. A font of another one uses the encoding of the document."""
_PAGES = {708: "iso8859-6", 10000: "mac_roman"}
"""Encodings that Python does not know by the number of their page."""
_WHOLE = {"ansi": "cp1252", "mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
_SYMBOL_CHARSET, _DEEPEST_TABLE = 2, 9
_SIGNS = {
    "tab": " ", "line": "\n", "softline": "\n", "page": "\n", "column": "\n", "emdash": "—", "endash": "\u2013",
    "emspace": " ", "enspace": " ", "qmspace": " ", "bullet": "•", "lquote": "\u2018", "rquote": "\u2019",
    "ldblquote": "“", "rdblquote": "”", "mden": "/", "msup": "^", "msub": "_", "mrad": "√",
    "~": " ", "_": "-", "\t": " ",
}  # fmt: skip
"""What a control stands for; ``mden`` to ``mrad`` are parts of formulas."""
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("header", "headerl", "headerr", "headerf"), "header"),
    **dict.fromkeys(("footer", "footerl", "footerr", "footerf"), "footer"),
    **{"footnote": "note", "annotation": "comment", "shptxt": "", "dptxbxtext": ""},
}
"""Destinations that are texts of their own, and their kind."""
_INFO = {"title": "Title", "author": "Author", "subject": "Subject", "keywords": "Keywords"}
_MOMENTS = {"creatim": "Created", "revtim": "Modified"}
_COLLECTED = frozenset({"sn", "sv", "fldinst", "atnauthor", "ffl", "listtext", "pntext", "pict"})
"""Destinations whose text is needed at the end of their group."""
_TABLES = frozenset({"fonttbl", "stylesheet"})
_SKIPPED = frozenset(
    {
        *("colortbl", "filetbl", "listtable", "listoverridetable", "objdata", "shprslt", "nonshppict", "info"),
        *("xe", "tc", "tcn", "ftnsep", "ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn", "nonesttables", "upr"),
        *("mmathPict", "mctrlPr", "fontemb", "falt", "panose", "background"),
    }
)
_STARRED = frozenset(
    {"shpinst", "shppict", "do", "nesttableprops", "picprop", "moMath", "moMathPara", "formfield", "ud"}
)
"""Destinations with text, beside those above, that a program may ignore."""
_ALTERNATIVES = {"wzDescription": " [Picture: {}] ", "gtextUNICODE": "{}"}
"""Properties of shapes that are text, and how they are shown."""
_HEADING = re.compile(r"heading ([1-6])\b", re.IGNORECASE)


@dataclass(slots=True)
class _Table:
    """An open table: its rows, the cells of the open row, and the paragraphs of the open cell."""

    rows: list[list[str]] = field(default_factory=list)
    row: list[str] = field(default_factory=list)
    cell: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Flow:
    """A text of its own, such as a footnote: its finished blocks, the open paragraph, and the open tables."""

    kind: Kind = ""
    blocks: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    mark: str = ""
    tables: list[_Table] = field(default_factory=list)


@dataclass(slots=True)
class _State:
    """What a group takes over from the group around it."""

    flow: _Flow
    encoding: str
    destination: str = ""
    text: list[str] | None = None  # of a destination that is not part of a paragraph
    symbols: str = ""
    link: str = ""
    link_start: int = 0  # pieces of the line before it
    is_skipped: bool = False
    is_deleted: bool = False
    is_hidden: bool = False
    fallbacks: int = 1  # characters after \u for programs that do not know it
    nesting: int = 0
    style: int = 0
    level: int = 0  # of a heading by its place in the outline
    depth: int = 0  # of the list


def read(data: bytes, suffix: str) -> ReadDocument:  # noqa: ARG001, one reader for one suffix
    """Read an RTF document. Raises `UnreadableFileError`."""
    start = data[:1_000].find(b"{\\rtf")
    if start < 0:
        raise UnreadableFileError("it does not begin as RTF does")
    return _Reader().read(data, start)


class _Reader:
    def __init__(self) -> None:
        self.encoding = "cp1252"
        self.body = _Flow()
        self.state = _State(self.body, self.encoding)
        self.stack: list[_State] = []
        self.blocks: list[Block] = []
        self.waiting: list[Block] = []  # notes, comments and text boxes of the open paragraph
        self.info: dict[str, str] = {}
        self.hidden: list[str] = []
        self._bytes = bytearray()
        self._omitted = 0  # characters that still stand for the last \u
        self._starred = False
        self._fonts: dict[int, tuple[str, str]] = {}
        self._font = self._default_font = self._notes = self._field_type = 0
        self._field_result: int | None = None
        self._styles: dict[int, int] = {}
        self._moment: dict[str, int] = {}
        self._property = self._author = self._instruction = self._value = ""
        self._choices: list[str] = []

    def read(self, data: bytes, position: int) -> ReadDocument:
        while found := _TOKEN.match(data, position):
            position = found.end()
            word, number, escaped, sign, brace, plain = found.groups()
            if plain is not None:
                self._add_bytes(plain)
            elif escaped is not None:
                self._add_bytes(bytes((int(escaped, 16),)))
            elif brace is not None:
                self._decode()
                self._omitted = 0
                self._open() if brace == b"{" else self._close()
            elif word == b"bin":
                position += max(0, int(number or 0))
            elif word is not None:
                self._control(word.decode(), None if number is None else int(number))
            elif sign is not None and sign in b"\\{}":  # perhaps the second byte of a character
                self._add_bytes(sign)
            elif sign is not None:
                self._sign(sign.decode("latin-1"))
        self._decode()
        while self.stack:
            self._close()
        self._end_flow(self.body)
        hidden = words_of(" ".join(self.hidden)).total()
        return ReadDocument(self.blocks, self.info, {"hidden text": hidden} if hidden else {})

    # Text

    def _add_bytes(self, data: bytes) -> None:
        omitted = min(self._omitted, len(data))
        self._omitted -= omitted
        if not self.state.is_skipped:
            self._bytes += data[omitted:]

    def _decode(self) -> None:
        """Add the bytes that were collected. Called before anything that ends them or changes their encoding."""
        if self._bytes:
            data, state = bytes(self._bytes), self.state
            self._bytes.clear()
            if state.symbols:
                self._add("".join(symbol(state.symbols, code) or "" for code in data))
            else:
                self._add(data.decode(state.encoding, "replace"))

    def _add(self, text: str) -> None:
        state = self.state
        if state.is_skipped or state.is_deleted:
            return
        if state.text is not None:
            state.text.append(text)
        elif state.is_hidden:
            self.hidden.append(text)
        else:
            state.flow.line.append(text)

    # Groups

    def _open(self) -> None:
        self.stack.append(self.state)
        self.state = replace(self.state, link="")
        if self.state.destination in _TABLES:
            self.state.text = []

    def _close(self) -> None:
        if not self.stack:
            return
        state, self.state = self.state, self.stack.pop()
        if state.link and not (state.is_skipped or state.is_deleted or state.is_hidden):
            line = state.flow.line
            # The result may have ended its paragraph.
            line[state.link_start :] = [link("".join(line[state.link_start :]) or state.link, state.link)]
        if state.flow is not self.state.flow:
            self._end_flow(state.flow)
        if state.text is not None and state.text is not self.state.text:
            self._end_collected(state.destination, _whole("".join(state.text)), state)
        elif state.destination != self.state.destination:
            if state.destination == "formfield":
                self._end_form_field()
            elif state.destination in _MOMENTS and "yr" in self._moment:
                year, month, day, hour, minute = (self._moment.get(name, 0) for name in ("yr", "mo", "dy", "hr", "min"))
                self.info[_MOMENTS[state.destination]] = f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:00"
            elif state.destination == "fonttbl":
                self._use_font(self._default_font)

    def _enter(self, name: str) -> None:
        """Begin a destination, which lasts until the end of the group."""
        state = self.state
        outer, state.destination = state.destination, name
        if name in _KINDS and not state.is_skipped:
            state.flow, state.text, state.is_hidden = _Flow(_KINDS[name]), None, False
            state.nesting = state.style = state.level = 0
        elif name in _TABLES or name in _COLLECTED:
            state.text = []
        elif name in _INFO or name in _MOMENTS:
            state.is_skipped, state.text, self._moment = False, [] if name in _INFO else state.text, {}
        elif name == "ud" and outer == "upr":
            state.is_skipped = False
        elif name == "formfield":
            self._choices, self._field_type, self._field_result = [], 0, None
        elif name in _SKIPPED or (self._starred and name not in _STARRED):
            state.is_skipped = True

    def _end_collected(self, name: str, text: str, state: _State) -> None:
        text = " ".join(text.split())
        if name in _INFO:
            self.info.setdefault(_INFO[name], text)
        elif name == "fonttbl":
            self._name_font(text)
        elif name == "stylesheet":
            found = _HEADING.match(text)
            level = int(found[1]) if found else state.level
            if level and state.style:
                self._styles[state.style] = level
        elif name == "sn":
            self._property = text
        elif name == "sv" and text and self._property in _ALTERNATIVES:
            if not self.state.is_skipped:  # beside the data of a picture, which are collected and dropped
                self.state.flow.line.append(_ALTERNATIVES[self._property].format(text))
        elif name == "atnauthor":
            self._author = text
        elif name == "ffl":
            self._choices.append(text)
        elif name == "fldinst":
            self._instruction = text
            self._add(self._value)
            self._value = ""
        elif name in ("listtext", "pntext"):
            self.state.flow.mark = f"{text} " if any(map(str.isalnum, text)) else "- "

    def _end_form_field(self) -> None:
        if self._field_type == 1:
            self._value = "☒" if self._field_result == 1 else "☐"
        elif self._field_type == 2:
            self._value = "".join(self._choices[self._field_result or 0 :][:1])

    # Controls

    def _sign(self, sign: str) -> None:
        self._decode()
        if self._omitted:
            self._omitted -= 1
        elif sign == "*":
            self._starred = True
        elif sign in "\r\n":
            self._end_paragraph()
        elif sign in _SIGNS:
            self._add(_SIGNS[sign])

    def _control(self, word: str, number: int | None) -> None:
        self._decode()
        if self._omitted and word != "u":
            self._omitted -= 1
            return
        state, value = self.state, number or 0
        if word in _SIGNS:
            self._add(_SIGNS[word])
            return
        match word:
            case "u":
                self._add_code(value)
            case "uc":
                state.fallbacks = min(max(0, value), 1_000)
            case "par" | "sect":
                self._end_paragraph()
            case "pard":
                state.nesting = state.style = state.level = state.depth = 0
            case "plain":
                state.is_hidden = state.is_deleted = False
                self._use_font(self._default_font)
            case "f":
                self._font = value
                if state.destination == "fonttbl":
                    self._fonts[value] = (self.encoding, "")
                else:
                    self._use_font(value)
            case "fcharset" if state.destination == "fonttbl":
                is_symbol = value == _SYMBOL_CHARSET
                self._fonts[self._font] = (_CHARSETS.get(value, self.encoding), "symbol" if is_symbol else "")
            case "cpg" if state.destination == "fonttbl":
                self._fonts[self._font] = (self._codec(value), "")
            case "deff":
                self._default_font = value
            case "ansicpg":
                self._use_encoding(self._codec(value))
            case "ansi" | "mac" | "pc" | "pca":
                self._use_encoding(_WHOLE[word])
            case "v":
                state.is_hidden = number != 0
            case "deleted":
                state.is_deleted = number != 0
            case "s":
                state.style = value
            case "outlinelevel":
                state.level = value + 1 if value < 6 else 0
            case "ilvl":
                state.depth = min(max(0, value), _DEEPEST_TABLE)
            case "intbl":
                state.nesting = max(1, state.nesting)
            case "itap":
                state.nesting = min(max(0, value), _DEEPEST_TABLE)
            case "cell" | "nestcell":
                self._end_cell(1 if word == "cell" else max(2, state.nesting))
            case "row" | "nestrow":
                self._end_row(1 if word == "row" else max(2, state.nesting))
            case "chftn" if state.flow.kind != "note":
                self._notes += 1
                self._add(f"[{self._notes}]")
            case "fldrslt":
                state.link, state.link_start = field_address(self._instruction), len(state.flow.line)
                self._instruction = ""
            case "fftype":
                self._field_type = value
            case "ffres" if value != 25:  # of a checkbox without a choice of its own
                self._field_result = value
            case "ffdefres" if self._field_result is None:
                self._field_result = value
            case "yr" | "mo" | "dy" | "hr" | "min":
                self._moment[word] = value
            case _ if word in _KINDS or word in _COLLECTED or word in _SKIPPED or word in _TABLES or self._starred:
                self._enter(word)
            case _ if (word in _INFO or word in _MOMENTS) and state.destination == "info":
                self._enter(word)
        self._starred = False

    def _add_code(self, value: int) -> None:
        """Add a character, which may be half of a pair of surrogates, and omit what stands for it."""
        value += 65_536 if value < 0 else 0
        char = chr(value) if 0 < value < 0x110000 else "\ufffd"
        if 0xF020 <= value <= 0xF0FF:
            char = symbol(self.state.symbols or "symbol", value & 0xFF) or ""
        self._add(char)
        self._omitted = self.state.fallbacks

    def _codec(self, page: int) -> str:
        name = _PAGES.get(page, f"cp{page}")
        try:
            return codecs.lookup(name).name
        except LookupError:
            return self.encoding

    def _use_encoding(self, name: str) -> None:
        self.encoding = self.state.encoding = name

    def _use_font(self, number: int) -> None:
        self.state.encoding, self.state.symbols = self._fonts.get(number, (self.encoding, ""))

    def _name_font(self, name: str) -> None:
        """Note the name of a font with symbols, for which the same bytes are other signs."""
        name = name.rstrip(";").strip().lower()
        if symbol(name, 0xE000) is not None:
            self._fonts[self._font] = (self.encoding, name)

    # Paragraphs and tables

    def _end_paragraph(self) -> None:
        state, flow = self.state, self.state.flow
        if state.is_skipped or state.text is not None:
            return
        text = _whole("".join(flow.line))
        text = "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))
        flow.line.clear()
        mark, flow.mark = flow.mark, ""
        self._close_tables(flow, state.nesting)
        if not text:
            return
        level = self._styles.get(state.style) or state.level
        if state.nesting:
            self._open_tables(flow, state.nesting)
            flow.tables[-1].cell.append(mark + text)
        elif level and not flow.kind:
            self._put(flow, f"{'#' * level} {mark.replace('- ', '')}{' '.join(text.split())}")
        elif mark:
            flow.items.append(f"{'  ' * state.depth}{mark}{text}")
        else:
            self._put(flow, re.sub(r"^(?=#{1,6}\s|[=-]+\s*$)", r"\\", text, flags=re.MULTILINE))

    def _put(self, flow: _Flow, block: str) -> None:
        """Add a block to a text; to the body with what was waiting for the end of its paragraph."""
        blocks = list(filter(None, ("\n".join(flow.items), block)))
        flow.items.clear()
        if flow is self.body:
            self.blocks += map(Block, blocks)
            self.blocks += self.waiting
            self.waiting.clear()
        else:
            flow.blocks += blocks

    def _end_flow(self, flow: _Flow) -> None:
        state, self.state = self.state, _State(flow, self.encoding)
        self._end_paragraph()
        self._put(flow, "")
        self.state = state
        text = "\n\n".join(flow.blocks)
        if not text or flow is self.body:
            return
        if flow.kind == "note":
            text = f"[Note {self._notes}: {text}]" if self._notes else f"[Note: {text}]"
        elif flow.kind == "comment":
            text = f"[{comment_label(self._author)}: {text}]"
            self._author = ""
        target = self.blocks if flow.kind in ("header", "footer") else self.waiting
        target.append(Block(text, Place(kind=flow.kind)))

    def _open_tables(self, flow: _Flow, nesting: int) -> None:
        flow.tables += [_Table() for _ in range(nesting - len(flow.tables))]

    def _end_cell(self, nesting: int) -> None:
        self.state.nesting, before = nesting, self.state.nesting
        self._end_paragraph()
        self.state.nesting = before
        self._open_tables(self.state.flow, nesting)
        table = self.state.flow.tables[-1]
        table.row.append(" ".join(" ".join(table.cell).split()))
        table.cell = []

    def _end_row(self, nesting: int) -> None:
        flow = self.state.flow
        self._close_tables(flow, nesting)
        if len(flow.tables) == nesting and flow.tables[-1].row:
            flow.tables[-1].rows.append(flow.tables[-1].row)
            flow.tables[-1].row = []

    def _close_tables(self, flow: _Flow, nesting: int) -> None:
        while len(flow.tables) > nesting:
            table = flow.tables.pop()
            rest = [*table.row, *table.cell]
            rows = [row for row in (*table.rows, rest) if any(row)]
            if flow.tables:
                flow.tables[-1].cell.append("; ".join(", ".join(filter(None, row)) for row in rows))
            elif max(map(len, rows), default=0) > 1:
                self._put(flow, markdown_table([[cell.replace("|", "\\|") for cell in row] for row in rows]))
            elif rows:
                self._put(flow, "\n\n".join(row[0] for row in rows))


def _whole(text: str) -> str:
    """Join the halves of characters beyond 16 bits."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
