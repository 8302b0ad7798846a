"""llms.txt: the pages of the manual with one line each, for language models that look for the right one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

import ragistry

FOLDER = Path(__file__).parent
INVISIBLE = re.MULTILINE | re.DOTALL


def llms_txt() -> str:
    """The text of the file, in the order of ``nav`` in mkdocs.yml."""
    nav = yaml.safe_load((FOLDER.parent / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    alone = [entry for entry in nav if isinstance(_only(entry)[1], str)]
    sections = [("Manual", alone), *(_only(entry) for entry in nav if entry not in alone)]
    parts = ["# Ragistry", f"> {(ragistry.__doc__ or '').splitlines()[0]}"]
    parts += [f"## {title}\n\n" + "\n".join(map(_line, entries)) for title, entries in sections]
    return "\n\n".join(parts) + "\n"


def _only(entry: dict[str, Any]) -> tuple[str, Any]:
    [(title, below)] = entry.items()
    return title, below


def _line(entry: dict[str, Any]) -> str:
    title, page = _only(entry)
    text = re.sub(r"^```.*?^```$|^<!--.*?-->$", "", (FOLDER / page).read_text(encoding="utf-8"), flags=INVISIBLE)
    sections = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    return f"- [{title}]({page}): {first_sentence(text)}" + (f" Sections: {', '.join(sections)}." if sections else "")


def first_sentence(text: str) -> str:
    """The first sentence of the prose, its links as plain words."""
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    first = next(part for part in paragraphs if part and part[0] not in "#|!-")
    words = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", first)
    return re.sub(r":$", ".", re.split(r"(?<=[.:])\s", words)[0])
