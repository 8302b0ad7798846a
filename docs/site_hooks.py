"""A hook of mkdocs: the site has the reference of the Python interface, which is not committed."""

from __future__ import annotations

from typing import Any

from docs.api import api_reference


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Add the reference to its page."""
    return f"{markdown}\n\n{api_reference()}\n" if page.file.src_uri == "reference/api.md" else markdown
