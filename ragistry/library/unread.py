"""Files of a folder that somebody may believe to be searched, though their format is none that is read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ragistry.utils.wording import agreeing, numbered

UNREAD_FORMATS = frozenset(
    {
        *(".doc", ".pages", ".wpd", ".ppt", ".odp", ".xls", ".numbers", ".azw3", ".chm", ".djvu", ".mobi", ".mbox"),
        *(".adoc", ".asciidoc", ".mdx", ".qmd", ".rmd", ".textile", ".ndjson"),
    }
)
"""Suffixes of documents and of code. Of pictures, sounds, fonts and programs nobody expects that words are found."""


def unread_warning(folder: Path, unread: Counter[str]) -> str:
    """How many files of a folder were left out, by their suffix, the most frequent first."""
    number = unread.total()
    left_out = numbered(number, "of its files [has|have] a format that is not read and [was|were] left out")
    counts = sorted(unread.items(), key=lambda item: (-item[1], item[0]))
    return (
        f"{str(folder)!r}: {left_out} ({', '.join(f'{count:,} {suffix}' for suffix, count in counts)}); "
        f"convert {agreeing(number, '[it|them]')} to PDF, Markdown or plain text"
    )
