"""The pages ``/manual/…``: the manual of the installed version, which needs no network."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from nicegui import ui

from ragistry.web.app_state import AppState
from ragistry.web.layout import empty_notice, heading, page_layout
from ragistry.workspace import Workspace

MODELS, TECHNIQUES = "howto/models.md", "techniques.md"
EXTRAS = ["fenced-code-blocks", "tables", "header-ids"]
_TITLED = re.compile(r'^(```\w+) title="([^"]*)"$', re.M)
"""The title of a block of code: the name of a file, or ``prints``."""
_LEFT_OUT = re.compile(r"^!\[.*\]\(.*\)$|<!--.*?-->", re.M)
"""Pictures, which are not installed, and comments."""


def register(state: AppState) -> None:  # noqa: ARG001, the manual is the same for all workspaces
    """Register the pages."""

    @ui.page("/manual/{path:path}")
    def manual(path: str) -> None:
        file = manual_files().get(path)
        text = "" if file is None else file.read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        with page_layout(title or "Manual", "Techniques"):
            if file is None:
                heading("Page not found")
                empty_notice(f"The manual has no page {path!r}.", "See docs/ in the source code of Ragistry.")
                return
            ui.markdown(page_text(text), extras=EXTRAS).classes("rg-manual")


@cache
def manual_files() -> dict[str, Path]:
    """Return the pages of the manual by name: part of an installed package, or the docs of a checkout."""
    package = Path(__file__).parents[1]
    root = package / "manual" if (package / "manual").is_dir() else package.parent / "docs"
    return {file.relative_to(root).as_posix(): file for file in root.rglob("*.md")}


def page_text(text: str) -> str:
    """Return the Markdown of a page without what the site's generator reads."""
    return _TITLED.sub(lambda found: f"*{found[2]}:*\n\n{found[1]}", _LEFT_OUT.sub("", text))


def manual_link(workspace: Workspace, technique: str) -> tuple[str, str]:
    """Return text and address of the page that explains why a technique cannot run: its entry, or its models."""
    is_broken = technique in workspace.registry.broken
    return ("Manual: techniques", f"/manual/{TECHNIQUES}") if is_broken else ("Manual: models", f"/manual/{MODELS}")
