"""Read presentations: every slide with its tables, charts, diagrams, notes and comments, in the order of the show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lxml import etree

from ragistry.readers.blocks import REPAIR, Block, Place, ReadDocument
from ragistry.readers.drawing import (
    body_text,
    chart_blocks,
    children,
    diagram_blocks,
    paragraph_text,
    shape_text,
)
from ragistry.readers.office_package import (
    Package,
    attribute,
    clean,
    heading,
    local,
    markdown_cell,
    markdown_table,
    plain_markdown,
    whole_number,
)
from ragistry.readers.word_processing import Level, ListLines, comment_label, count_item

TITLES = {"title", "ctrTitle"}
REPEATED = {"ftr", "dt", "hdr", "sldNum"}
"""Kinds of placeholders that are on every slide."""
LONGEST_TITLE = 120
"""Characters of a first line that is taken for the title of a slide without one."""
_DEEPEST = 50
_ESCAPE = re.compile(r"^(\d*)\\(?!<)")  # of a mark at the start of a line, which is none in a heading
_LEVELS = 9


def read(data: bytes, suffix: str) -> ReadDocument:  # noqa: ARG001 - every reader has these parameters
    """Read a presentation (.pptx, .pptm). Raises `UnreadableFileError`."""
    return _Deck(Package(data)).read()


class _Deck:
    def __init__(self, package: Package) -> None:
        self.package = package
        self.name, self.root = package.open_main("ppt/presentation.xml", "presentation")
        self.authors = self._read_authors()
        self.repeated: set[str] = set()
        self.objects = 0

    def read(self) -> ReadDocument:
        document = ReadDocument(info=self.package.info())
        shift = max(0, whole_number(self.root.get("firstSlideNum"), 1)) - 1
        slides: list[str] = []
        missing: list[int] = []
        for number, entry in enumerate(self.root.iterfind("{*}sldIdLst/{*}sldId"), start=1):
            place = Place(page=number, label=str(number + shift) if shift else "")
            name = self.package.part(self.name, attribute(entry, "id"))
            root = self.package.xml(name) if name else None
            if root is None:
                missing.append(number)
                document.blocks.append(Block("", place))
                continue
            slides.append(name)
            blocks = list(_Slide(self, name, root, place).blocks())
            document.blocks += blocks or [Block("", place)]
        for name, master in self.package.roots(self.name, "handoutMaster"):
            document.blocks += _Slide(self, name, master, Place()).repeated_blocks(margins=True)
        document.warnings += self._warnings(slides, missing)
        document.warnings += self.package.warnings(self.objects)
        return document

    def layout_chain(self, slide: str) -> list[str]:
        """Return the layout and the master of a slide, or the master of a page of notes."""
        layouts = self.package.related(slide, "slideLayout", "notesMaster")[:1]
        return layouts + [master for layout in layouts for master in self.package.related(layout, "slideMaster")[:1]]

    def _read_authors(self) -> dict[str, str]:
        roots = self.package.roots(self.name, "commentAuthors", "authors")
        return {one.get("id") or "": clean(one.get("name") or "") for _, root in roots for one in root}

    def _warnings(self, slides: Sequence[str], missing: Sequence[int]) -> Iterator[str]:
        listed = {name.casefold() for name in slides}
        unlisted = [
            name for name in self.package.names if re.fullmatch(r"ppt/slides/[^/]+\.xml", name) and name not in listed
        ]
        if missing:
            yield f"slides without content in the file: {', '.join(map(str, missing[:10]))}; {REPAIR}"
        if unlisted:
            yield f"slides that are in the file and not in the presentation were not read: {len(unlisted):,}"


class _Slide:
    """One slide, from which blocks are made."""

    def __init__(self, deck: _Deck, part: str, root: etree._Element, place: Place) -> None:
        self.deck, self.part, self.root, self.place = deck, part, root, place
        self.package = deck.package
        self.chain = deck.layout_chain(part)

    def blocks(self) -> Iterator[Block]:
        title = ""
        body: list[Block] = []
        for shape in self._shapes():
            if local(shape) == "sp" and _placeholder(shape) in TITLES and not title:
                title = " ".join(body_text(shape.find("{*}txBody"), " ").split())
                continue
            body += self._shape_blocks(shape, 0)
        notes, comments = list(self._notes()), list(self._comments())
        if not title and body and not body[0].place.kind and _is_line(body[0].text):
            title = _ESCAPE.sub(r"\1", body.pop(0).text)
            yield Block(f"## {title}", self.place)
        elif title:
            yield Block(heading(title), self.place)
        elif body or notes or comments:
            yield Block(f"## Slide {self.place.label or self.place.page}", self.place)
        yield from body
        yield from notes
        yield from comments
        yield from self._master_blocks()

    def _shapes(self) -> Iterator[etree._Element]:
        tree = self.root.find("{*}cSld/{*}spTree")
        yield from children(tree) if tree is not None else ()

    def _shape_blocks(self, shape: etree._Element, depth: int) -> Iterator[Block]:
        kind = local(shape)
        if kind not in ("sp", "grpSp", "graphicFrame", "pic", "cxnSp") or depth > _DEEPEST:
            return
        if kind == "sp" and _placeholder(shape) in REPEATED:
            yield from self._repeated(shape)
            return
        properties = shape.find("./*/{*}cNvPr")
        if kind in ("sp", "cxnSp"):
            for line in self._paragraphs(shape):
                yield Block(line, self.place)
        elif kind == "grpSp":
            for child in children(shape):
                yield from self._shape_blocks(child, depth + 1)
        elif kind == "graphicFrame":
            yield from self._frame_blocks(shape)
        if properties is not None and (text := shape_text(properties)):
            yield Block(text, self.place)

    def _repeated(self, shape: etree._Element) -> Iterator[Block]:
        """Yield a footer or a fixed date that no earlier slide has, but no slide numbers and no date of today."""
        paragraphs = shape.iter("{*}p")
        text = " ".join(" ".join(paragraph_text(one, counters=False) for one in paragraphs).split())
        if text and _placeholder(shape) != "sldNum" and text not in self.deck.repeated:
            self.deck.repeated.add(text)
            yield Block(
                plain_markdown(text), replace(self.place, kind="header" if _placeholder(shape) == "hdr" else "footer")
            )

    def _master_blocks(self) -> Iterator[Block]:
        """Yield what a layout or master shows on its slides, at the first of them."""
        for name in self.chain:
            root = self.package.xml(name)
            if root is not None and name not in self.deck.repeated:
                self.deck.repeated.add(name)
                yield from _Slide(self.deck, name, root, self.place).repeated_blocks()

    def repeated_blocks(self, *, margins: bool = False) -> Iterator[Block]:
        """Yield what a layout or master shows. ``margins``: also its header and footer, which handouts show."""
        for shape in self._shapes():
            if shape.find("./*/{*}nvPr/{*}ph") is None:
                for block in self._shape_blocks(shape, 0):
                    if block.text not in self.deck.repeated:
                        self.deck.repeated.add(block.text)
                        yield Block(block.text, replace(self.place, kind="footer"))
            elif margins:
                yield from self._repeated(shape)

    def _frame_blocks(self, frame: etree._Element) -> Iterator[Block]:
        for element in frame.iter("{*}tbl", "{*}chart", "{*}relIds", "{*}oleObj"):
            match local(element):
                case "tbl":
                    if rows := _table_rows(element):
                        yield Block(markdown_table(rows), self.place)
                case "chart":
                    name = self.package.part(self.part, attribute(element, "id"))
                    yield from chart_blocks(self.package, name, self.place)
                case "relIds":
                    name = self.package.part(self.part, attribute(element, "dm"))
                    yield from diagram_blocks(self.package, name, self.place)
                case "oleObj":
                    self.deck.objects += 1
                    return

    def _notes(self) -> Iterator[Block]:
        """Yield the page of notes: its text and tables as one block, before its header and footer."""
        for part, root in self.package.roots(self.part, "notesSlide"):
            page = _Slide(self.deck, part, root, self.place)
            blocks = [block for shape in page._shapes() for block in page._shape_blocks(shape, 0)]
            if text := "\n\n".join(block.text for block in blocks if not block.place.kind):
                yield Block(f"Notes: {text}", replace(self.place, kind="note"))
            yield from (block for block in blocks if block.place.kind)
            yield from page._master_blocks()

    def _comments(self) -> Iterator[Block]:
        """Comments of both formats, with the replies after each."""
        for _, root in self.package.roots(self.part, "comments"):
            for one in root.iter("{*}cm", "{*}reply"):
                text = one.find("{*}text")
                body = clean(text.text or "") if text is not None else body_text(one.find("{*}txBody"))
                if body.strip():
                    author = self.deck.authors.get(one.get("authorId") or "", "")
                    word = "Reply" if local(one) == "reply" or one.find(".//{*}parentCm") is not None else "Comment"
                    line = plain_markdown(f"[{comment_label(author, word)}: {body.strip()}]")
                    yield Block(line, replace(self.place, kind="comment"))

    def _paragraphs(self, shape: etree._Element) -> Iterator[str]:
        """Yield the paragraphs of a shape; consecutive items of lists in one piece."""
        body = shape.find("{*}txBody")
        if body is None:
            return
        items = ListLines(indent=4)
        counts: dict[int, int] = {}
        kinds: dict[int, str] = {}
        styles = self._list_styles(shape, body)
        for paragraph in body.iterfind("{*}p"):
            text = plain_markdown(paragraph_text(paragraph).strip())
            if not text:
                continue
            level, bullet = _bullet(paragraph, styles)
            if bullet is not None:
                items.add(level, _label(bullet, level, counts, kinds), text)
                continue
            yield from filter(None, [items.take()])
            counts.clear()
            yield text
        yield from filter(None, [items.take()])

    def _list_styles(self, shape: etree._Element, body: etree._Element) -> list[etree._Element]:
        """Return the places that may define the marks of a shape's lists, the nearest first."""
        found = [body.find("{*}lstStyle")]
        mark = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
        kind, index = _placeholder(shape), None if mark is None else mark.get("idx")
        for name in self.chain if kind else ():
            root = self.package.xml(name)
            for other in root.iterfind("{*}cSld/{*}spTree/{*}sp") if root is not None else ():
                own = other.find("{*}nvSpPr/{*}nvPr/{*}ph")
                if own is None:
                    continue
                same_kind = (own.get("type") or "obj") == kind or {own.get("type") or "obj", kind} <= {"obj", "body"}
                if (name == self.chain[0] and index is not None and own.get("idx") == index) or (
                    (name != self.chain[0] or index is None) and same_kind
                ):
                    found.append(other.find("{*}txBody/{*}lstStyle"))
                    break
            if root is not None and local(root) == "sldMaster" and kind in ("obj", "body"):
                found.append(root.find("{*}txStyles/{*}bodyStyle"))
        return [one for one in found if one is not None]


def _is_line(text: str) -> bool:
    return "\n" not in text and len(text) <= LONGEST_TITLE and not text.startswith(("- ", "1. ", "|", "["))


def _placeholder(shape: etree._Element) -> str:
    """Return the kind of a placeholder; empty for another shape."""
    mark = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    return "" if mark is None else mark.get("type") or "obj"


def _bullet(paragraph: etree._Element, styles: Sequence[etree._Element]) -> tuple[int, etree._Element | None]:
    """Return the level of a paragraph, and its mark or automatic number; None if it is not an item of a list."""
    own = paragraph.find("{*}pPr")
    level = 0 if own is None else max(0, whole_number(own.get("lvl"), 0, _LEVELS - 1))
    for style in (own, *(style.find(f"{{*}}lvl{level + 1}pPr") for style in styles)):
        for one in style if style is not None else ():
            if (name := local(one)) in ("buNone", "buChar", "buAutoNum", "buBlip"):
                return level, None if name == "buNone" else one
    return level, None


def _label(bullet: etree._Element, level: int, counts: dict[int, int], kinds: dict[int, str]) -> str:
    """Count an item and return its number, or ``-``; another kind of number than the item before has starts again."""
    kind, start = bullet.get("type") or "arabicPeriod", bullet.get("startAt") or "1"
    is_number = local(bullet) == "buAutoNum"
    own = kind + start if is_number else ""
    if kinds.get(level) != own:
        counts.pop(level, None)
        kinds[level] = own
    case = "upper" if "Uc" in kind else "lower"
    after = ")" if "Paren" in kind else "." if "Period" in kind else ""
    before = "(" if "ParenBoth" in kind else ""
    if not is_number:
        style = "bullet"
    elif kind.startswith("alpha"):
        style = f"{case}Letter"
    elif kind.startswith("roman"):
        style = f"{case}Roman"
    else:
        style, before, after = "decimal", "", after or "."
    return count_item({level: Level(style, (before, level, after), whole_number(start, 1))}, level, counts)


def _table_rows(table: etree._Element) -> list[list[str]]:
    """Return the rows of a table; a merged cell has its text in its first place."""
    rows = [
        [
            ""
            if one.get("hMerge") in ("1", "true") or one.get("vMerge") in ("1", "true")
            else markdown_cell(body_text(one))
            for one in row.iterfind("{*}tc")
        ]
        for row in table.iterfind("{*}tr")
    ]
    width = max(map(len, rows), default=0)
    return [row + [""] * (width - len(row)) for row in rows] if any(cell for row in rows for cell in row) else []
