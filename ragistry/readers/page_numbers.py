"""Tell the number of a page, such as ``Page 3 of 12``, from other text with numbers."""

from __future__ import annotations

import re

_PAGE = (
    r"(?:pages?|pg|[psс]\.|slides?|folie|seiten?|páginas?|pág|pagin[ae]|strona|str|strana|stránka|страница|стр|сторінка"  # noqa: RUF001
    r"|sida|sivu|side|oldal|blad|sayfa|σελίδα|trang|halaman|صفحة|ページ|페이지|第|页|頁|frm)"
)
_OF = r"(?:/?共|/|of|von|sur|de|do|da|di|del|du|z|из|з|с|af|av|van|από|من|第)"  # noqa: RUF001
_ROMAN = r"(?=[ivxlcdm])m{0,3}(?:c[md]|d?c{0,3})(?:x[cl]|l?x{0,3})(?:i[xv]|v?i{0,3})"
_NUMBER = rf"(?P<number>(?:[a-z][-.]?)?\d+|{_ROMAN})"
_GAP = r"[^\w/#$€£%+§№]*"
_COUNT = rf"(?P<count>{_NUMBER}(?:\s*{_OF}\s*\d+)?)"
AT_EDGE = (
    re.compile(rf"{_COUNT}(?P<gap>\s*[|·•]\s*|\s+)(?P<title>.+)"),
    re.compile(rf"(?P<title>.+?)(?P<gap>\s*[|·•]\s*|\s+){_COUNT}"),
)
"""A title after the number of a page, and before it."""
ALONE = re.compile(
    rf"{_GAP}(?:{_PAGE}{_GAP})?(?:{_NUMBER}{_GAP})?(?:{_PAGE}{_GAP})?"
    rf"(?:{_OF}{_GAP}(?:{_PAGE}{_GAP})?(?:(?P<total>\d+){_GAP})?(?:{_PAGE}{_GAP})?)?"
)
"""A line that has nothing but the number of a page, or only words around one."""
NAMED = re.compile(rf"(?<!\w)(?<!\w-){_PAGE}[^\w/]{{0,3}}(?:n[or°º][^\w/]{{0,2}})?{_NUMBER}(?![^\W页頁]|[.,]\d)")
"""The number of a page after a word that says so, anywhere in a line."""


def is_page_number(text: str) -> bool:
    """Return whether a line with a page field has only that, such as ``Page 3 of 12``, or ``Page`` if it is empty."""
    found = ALONE.fullmatch(text.casefold())
    return found is not None and len(found["number"] or "") <= len(found["total"] or text)
