"""Read form fields and annotations of PDFs, which are not part of the text of a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from ctypes import c_ushort
from html import unescape
from typing import Any, Literal, NamedTuple
from weakref import finalize

from pypdfium2 import raw

MOST_ANNOTATIONS = 50_000
"""Annotations of a file that are looked at. Pages can share a list of them, so that a small file can have millions."""
_HIDDEN = 2
_PASSWORD = 1 << 13
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
        kind: ``"note"`` for text on the page or a sticky note, ``"comment"`` for a mark with a text, ``"field"``.
        label: Name of a field for people, or its technical name.
        text: Contents, or value of the field.
        is_outside: Whether it is outside of the page, so that pages can share it.
    """

    kind: Literal["note", "comment", "field"]
    label: str
    text: str
    is_outside: bool = False


class Form:
    """The form of a document, whose fields inherit from each other. It is loaded for the first widget."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._handle: Any = None

    def handle(self, page: Any) -> Any:
        """Return pdfium's handle of the form, with the widgets of a page that the form does not list."""
        if self._handle is None:
            config = raw.FPDF_FORMFILLINFO(version=2)
            self._handle = raw.FPDFDOC_InitFormFillEnvironment(self._document, config)
            # the form needs its configuration, and ends before the document
            finalize(
                self._document, lambda handle, _: raw.FPDFDOC_ExitFormFillEnvironment(handle), self._handle, config
            )
        raw.FORM_OnAfterLoadPage(page, self._handle)
        return self._handle


def annotations_of(page: Any, textpage: Any, most: int, form: Form) -> tuple[list[Annotation], int, int]:
    """Return the annotations with text, and the numbers of those looked at and of all in the list.

    An annotation whose text is already on the page, at its place, is left out.
    """
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
            one = _annotation(annotation, page, textpage, form)
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
        if one is not None:
            found.append(one)
    return found, looked_at, listed


def _annotation(annotation: Any, page: Any, textpage: Any, form: Form) -> Annotation | None:
    subtype = raw.FPDFAnnot_GetSubtype(annotation)
    if subtype in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP) or raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
        return None
    if subtype == raw.FPDF_ANNOT_WIDGET:
        return _widget(annotation, page, textpage, form)
    text, rich = (_string(raw.FPDFAnnot_GetStringValue, annotation, key) for key in (b"Contents", b"RC"))
    text = text or tidy(unescape(_TAG.sub(" ", rich)))
    if not text:
        return None
    kind: Literal["note", "comment"] = "comment"
    if subtype in (raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_TEXT):
        kind = "note"
    on_page, is_outside = _under(annotation, page, textpage)
    return None if is_within(text, on_page) else Annotation(kind, "", text, is_outside)


def _widget(annotation: Any, page: Any, textpage: Any, form: Form) -> Annotation | None:
    """Return the widget of a field with a value. Buttons without a choice, and passwords, have none."""
    handle = form.handle(page)
    kind = raw.FPDFAnnot_GetFormFieldType(handle, annotation)
    flags = raw.FPDFAnnot_GetFormFieldFlags(handle, annotation)
    if kind in (raw.FPDF_FORMFIELD_UNKNOWN, raw.FPDF_FORMFIELD_PUSHBUTTON) or flags & _PASSWORD:
        return None
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        text = _string(raw.FPDFAnnot_GetStringValue, annotation, b"AS")
        if text in _OFF:
            return None
        if raw.FPDFAnnot_IsChecked(handle, annotation):
            text = _string(raw.FPDFAnnot_GetFormFieldExportValue, handle, annotation) or text
    else:
        chosen = [
            _string(raw.FPDFAnnot_GetOptionLabel, handle, annotation, number)
            for number in range(raw.FPDFAnnot_GetOptionCount(handle, annotation))
            if raw.FPDFAnnot_IsOptionSelected(handle, annotation, number)
        ]
        text = ", ".join(filter(None, chosen)) or _string(raw.FPDFAnnot_GetFormFieldValue, handle, annotation)
    on_page, is_outside = _under(annotation, page, textpage)
    if not text or is_within(text, on_page):
        return None
    name = _string(raw.FPDFAnnot_GetFormFieldName, handle, annotation).rpartition(".")[2]
    label = _string(raw.FPDFAnnot_GetFormFieldAlternateName, handle, annotation) or name
    return Annotation("field", label, text, is_outside)


def _string(get: Callable[..., int], *arguments: Any) -> str:
    """Return a text of pdfium, which is asked for its size first; empty without words."""
    size = get(*arguments, None, 0)
    if size <= 2 or size > 2 * _LONGEST:
        return ""
    buffer = (c_ushort * (size // 2))()
    get(*arguments, buffer, size)
    text = tidy(bytes(buffer).decode("utf-16-le", "replace"))
    return text if _WORD.search(text) else ""


def tidy(text: str) -> str:
    """Return the text without control characters and blank lines."""
    lines = _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    return "\n".join(line.strip() for line in lines if line.strip())


def _under(annotation: Any, page: Any, textpage: Any) -> tuple[str, bool]:
    """Return the text of the page under an annotation, and whether it is outside of the page."""
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


def lines_of(annotations: Sequence[Annotation], seen: set[str]) -> list[str]:
    """Return a line for each annotation of a page.

    Args:
        annotations: The annotations of the page.
        seen: Lines of annotations outside of their page; each is given once in a document, and added here.
    """
    lines: dict[str, None] = {}
    for one in annotations:
        line = f"{_OPENING[one.kind]}{f'{one.label}: ' if one.label else ''}{one.text}]"
        if line not in seen:
            lines[line] = None
            if one.is_outside:
                seen.add(line)
    return list(lines)
