"""Read form fields and annotations of PDFs, which are not part of the text of a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from ctypes import c_float, c_ushort
from html import unescape
from io import BytesIO
from typing import Any, Literal, NamedTuple

MOST_ANNOTATIONS = 50_000
"""Annotations of a file that are looked at. Pages can share a list of them, so that a small file can have millions."""
_HIDDEN = 2
_MOST_PARENTS = 32
_PUSH_BUTTON, _PASSWORD = 1 << 16, 1 << 13
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[^<>]*>")
_OPENING = {"note": "[Note: ", "comment": "[Comment: ", "field": "[Field: "}
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_OFF = frozenset({"", "Off"})
_LONGEST = 1_000_000
_MOST_COMPARISONS = 100_000_000
"""Annotations times characters of a page up to which each annotation is compared with the text under it."""


class Annotation(NamedTuple):
    """An annotation or a widget of a form field, as pdfium sees it.

    Attributes:
        number: Number in the list of the page.
        kind: ``"note"`` for text on the page or a sticky note, ``"comment"`` for a mark with a text, ``"field"``.
        label: Name of a field for people, or its technical name.
        text: Contents, or value of the field.
        is_outside: Whether it is outside of the page, so that pages can share it.
    """

    number: int
    kind: Literal["note", "comment", "field"]
    label: str
    text: str
    is_outside: bool = False


def annotations_of(page: Any, textpage: Any, most: int) -> tuple[list[Annotation], int, int]:
    """Return the annotations with text, and the numbers of those looked at and of all in the list.

    An annotation whose text is already on the page, at its place, is left out.
    """
    from pypdfium2 import raw

    listed = max(raw.FPDFPage_GetAnnotCount(page), 0)
    looked_at = min(listed, most)
    if looked_at * textpage.count_chars() > _MOST_COMPARISONS:
        textpage = None
    found = []
    for index in range(looked_at):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            one = _annotation(annotation, index, page, textpage)
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
        if one is not None:
            found.append(one)
    return found, looked_at, listed


def _annotation(annotation: Any, index: int, page: Any, textpage: Any) -> Annotation | None:
    from pypdfium2 import raw

    subtype = raw.FPDFAnnot_GetSubtype(annotation)
    if subtype in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP) or raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
        return None
    if subtype == raw.FPDF_ANNOT_WIDGET:
        return _widget(annotation, index, page, textpage)
    text = _string(annotation, b"Contents") or _without_tags(_string(annotation, b"RC"))
    if not text:
        return None
    kind: Literal["note", "comment"] = "comment"
    if subtype in (raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_TEXT):
        kind = "note"
    on_page, is_outside = _under(annotation, page, textpage)
    return None if is_within(text, on_page) else Annotation(index, kind, "", text, is_outside)


def _widget(annotation: Any, index: int, page: Any, textpage: Any) -> Annotation | None:
    """Return a widget that has a value, or may have one in the tree of fields."""
    from pypdfium2 import raw

    value, state = _string(annotation, b"V"), _string(annotation, b"AS")
    has_state = raw.FPDFAnnot_HasKey(annotation, b"AS")
    is_button = _string(annotation, b"FT") == "Btn"
    if (has_state or is_button) and state in _OFF:
        return None
    if not is_button and _number(annotation, b"Ff") & _PASSWORD:
        return None
    text = state if is_button else value
    has_name = raw.FPDFAnnot_HasKey(annotation, b"T")
    is_list = raw.FPDFAnnot_GetValueType(annotation, b"V") in (raw.FPDF_OBJECT_ARRAY, raw.FPDF_OBJECT_STREAM)
    if has_name and not (text or state or is_list):
        return None
    label = _string(annotation, b"TU") or _string(annotation, b"T")
    on_page, is_outside = _under(annotation, page, textpage)
    if text and is_within(text, on_page):
        return None
    return Annotation(index, "field", label, text, is_outside)


def _string(annotation: Any, key: bytes) -> str:
    from pypdfium2 import raw

    size = raw.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    if size <= 2 or size > 2 * _LONGEST:
        return ""
    buffer = (c_ushort * (size // 2))()
    raw.FPDFAnnot_GetStringValue(annotation, key, buffer, size)
    text = tidy(bytes(buffer).decode("utf-16-le", "replace"))
    return text if _WORD.search(text) else ""


def _number(annotation: Any, key: bytes) -> int:
    from pypdfium2 import raw

    value = c_float()
    return int(value.value) if raw.FPDFAnnot_GetNumberValue(annotation, key, value) else 0


def tidy(text: str) -> str:
    """Return the text without control characters and blank lines."""
    lines = _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    return "\n".join(line.strip() for line in lines if line.strip())


def _without_tags(text: str) -> str:
    return tidy(unescape(_TAG.sub(" ", text))) if text else ""


def _under(annotation: Any, page: Any, textpage: Any) -> tuple[str, bool]:
    """Return the text of the page under an annotation, and whether it is outside of the page."""
    from pypdfium2 import raw

    rectangle = raw.FS_RECTF()
    if not raw.FPDFAnnot_GetRect(annotation, rectangle):
        return "", False
    left, right = sorted((rectangle.left, rectangle.right))
    bottom, top = sorted((rectangle.bottom, rectangle.top))
    box = raw.FS_RECTF()
    raw.FPDF_GetPageBoundingBox(page, box)  # with what the page inherits
    if right < box.left or left > box.right or top < box.bottom or bottom > box.top:
        return "", True
    if textpage is None:
        return "", False
    return str(textpage.get_text_bounded(left - 2, bottom - 2, right + 2, top + 2)), False


def is_within(text: str, on_page: str) -> bool:
    """Return whether the words of a text follow each other on the page."""
    wanted, there = (" ".join(_WORD.findall(one.casefold())) for one in (text, on_page))
    return bool(wanted) and f" {wanted} " in f" {there} "


class Field(NamedTuple):
    """A field of a form: a name for people or a technical one, and the value as it is shown."""

    label: str
    value: str


def read_fields(data: bytes, widgets: Mapping[int, Iterable[int]]) -> dict[tuple[int, int], Field]:
    """Read the fields of widgets from the file, with what they inherit.

    Args:
        data: The file.
        widgets: For each page, counted from 0, the numbers of its widgets in the list of annotations.

    Returns:
        For each page and number, the field; without those that have no value.
    """
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted:
        reader.decrypt("")
    found = {}
    for page, indices in widgets.items():
        annotations = _resolved(reader.pages[page].get("/Annots")) or []
        for index in indices:
            try:
                field = _field(_resolved(annotations[index]))
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - one broken field is left to what pdfium says of it
                continue
            if field is not None:
                found[page, index] = field
    return found


def _resolved(value: Any) -> Any:
    return value.get_object() if hasattr(value, "get_object") else value


def _field(widget: Any) -> Field | None:
    chain = _with_parents(widget)
    kind = _inherited(chain, "/FT")
    flags = _inherited(chain, "/Ff") or 0
    value = _inherited(chain, "/V")
    if kind == "/Btn":
        shown = "" if int(flags) & _PUSH_BUTTON else _chosen_button(widget, value, _inherited(chain, "/Opt"))
    elif kind == "/Ch":
        shown = ", ".join(_chosen(value, _inherited(chain, "/Opt")))
    elif kind == "/Tx":
        shown = "" if int(flags) & _PASSWORD else _text(value)
    else:
        shown = ""
    name = _text(_inherited(chain, "/TU")) or _text(_inherited(chain, "/T"))
    return Field(tidy(name), tidy(shown)) if shown else Field("", "")


def _with_parents(widget: Any) -> list[Any]:
    chain: list[Any] = []
    while widget is not None and len(chain) < _MOST_PARENTS and not any(widget is one for one in chain):
        chain.append(widget)
        widget = _resolved(widget.get("/Parent"))
    return chain


def _inherited(chain: Sequence[Any], key: str) -> Any:
    return next((_resolved(one[key]) for one in chain if key in one), None)


def _text(value: Any) -> str:
    if value is None or isinstance(value, dict | list):
        get_data = getattr(value, "get_data", None)
        data = get_data() if get_data else b""
        return _decoded(data) if isinstance(data, bytes) else str(data)
    return _decoded(value) if isinstance(value, bytes) else str(value)


def _decoded(data: bytes) -> str:
    if data.startswith((b"\xfe\xff", b"\xff\xfe")):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8" if data.startswith(b"\xef\xbb\xbf") else "latin-1", "replace").removeprefix("\ufeff")


def _chosen_button(widget: Any, value: Any, options: Any) -> str:
    state = _text(_resolved(widget.get("/AS", value))).removeprefix("/")
    if state in _OFF:
        return ""
    if isinstance(options, list) and state.isdecimal() and int(state) < len(options):
        return _text(_resolved(options[int(state)]))
    return state


def _chosen(value: Any, options: Any) -> list[str]:
    """Return the choices as they are shown, where a pair in the options has the stored and the shown text."""
    shown = {}
    for option in map(_resolved, options if isinstance(options, list) else []):
        if isinstance(option, list) and len(option) == 2:
            shown[_text(_resolved(option[0]))] = _text(_resolved(option[1]))
    values = [_text(_resolved(one)) for one in (value if isinstance(value, list) else [value])]
    return [shown.get(one, one) for one in values if one]


def lines_of(annotations: Sequence[Annotation], fields: Mapping[int, Field] | None, seen: set[str]) -> list[str]:
    """Return a line for each annotation of a page.

    Args:
        annotations: The annotations of the page.
        fields: What the tree of fields says, by the number of the annotation; None if it could not be read.
        seen: Lines of annotations outside of their page; each is given once in a document, and added here.
    """
    lines: dict[str, None] = {}
    for one in annotations:
        label, text = one.label, one.text
        if one.kind == "field" and fields is not None:
            label, text = fields.get(one.number, Field(label, text))
        line = f"{_OPENING[one.kind]}{f'{label}: ' if label else ''}{text}]"
        if _WORD.search(text) and line not in seen:
            lines[line] = None
            if one.is_outside:
                seen.add(line)
    return list(lines)
