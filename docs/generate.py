"""What the pages say of the code, made from the code: `python -m docs.generate` writes it, a test compares it.

A page marks the places: ``<!-- generated: NAME ARGUMENT -->`` … ``<!-- end -->``. The text between them is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from docs.api import api_modules
from docs.commands import command_reference
from docs.floors import floors_table
from docs.llms import llms_txt
from docs.settings import archive_settings_table, file_keys_table, settings_table
from docs.techniques import technique_parameters, technique_summaries
from ragistry.utils.metadata import RESERVED

FOLDER = Path(__file__).parent
LLMS = FOLDER / "llms.txt"
MARK = re.compile(r"(<!-- generated: (\w+) ?(\S*) -->\n).*?(<!-- end -->)", flags=re.DOTALL)


def shown_file(path: str) -> str:
    """A file of the project as a block of code."""
    text = (FOLDER.parent / path).read_text(encoding="utf-8")
    return f'```python title="{Path(path).name}"\n{text}```'


def reserved_keys() -> str:
    """The metadata keys that people cannot set."""
    return ", ".join(f"`{key}`" for key in sorted(RESERVED)) + "."


GENERATORS: dict[str, Callable[..., str]] = {
    "api_modules": api_modules,
    "archive_settings": archive_settings_table,
    "commands": command_reference,
    "file": shown_file,
    "file_keys": file_keys_table,
    "floors_table": floors_table,
    "reserved": reserved_keys,
    "settings": settings_table,
    "technique": technique_parameters,
    "techniques": technique_summaries,
}


def generated(text: str) -> str:
    """A page with every marked place filled in."""

    def filled(match: re.Match[str]) -> str:
        opening, name, argument, closing = match.groups()
        made = GENERATORS[name](argument) if argument else GENERATORS[name]()
        return f"{opening}\n{made.strip()}\n\n{closing}"

    return MARK.sub(filled, text)


def pages() -> list[Path]:
    """Every page of the site."""
    return sorted(FOLDER.rglob("*.md"))


def main() -> None:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if generated(text) != text:
            page.write_text(generated(text), encoding="utf-8")
    LLMS.write_text(llms_txt(), encoding="utf-8")


if __name__ == "__main__":
    main()
