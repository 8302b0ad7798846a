"""Markup from a small function that escapes: what a user, a file or a document says is never markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any


class Html(str):
    """Text that is markup already; any other text is escaped where it is put in."""

    __slots__ = ()


Content = str | Iterable["Content"]
"""Text, markup, or any nesting of them."""


def tag(name: str, *content: Content, **attributes: Any) -> Html:
    """An element. ``class_`` is ``class``, ``stroke_width`` is ``stroke-width``; an attribute that is None is left out.

    A float is written with two decimals: no screen shows more, and the same figure gives the same bytes.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{joined(content)}</{name}>")


def joined(content: Content) -> Html:
    """The content as one piece of markup."""
    if isinstance(content, str):
        return Html(content if isinstance(content, Html) else escape(content))
    return Html("".join(joined(part) for part in content))


def _text(value: Any) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
