"""Office documents, books, web pages, mails and notebooks: their text as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from ragistry.errors import ConfigError
from ragistry.readers.blocks import REPAIR, Place, words_of
from ragistry.readers.extracted import Extracted, ExtractLimits
from ragistry.readers.formats import added_readers, suffix_of
from ragistry.readers.pdf import describe
from ragistry.readers.reader_process import read_in_worker, use_versions
from ragistry.utils.wording import numbered

FEW_WORDS, FEW_SHARE = 10, 0.02
"""Words of a kind of content, and share of all words, that may be missing without a report."""


def read_office(path: str, limits: ExtractLimits) -> Extracted:
    """Return a document as Markdown: headings, lists, tables, code; slides and sheets have a heading each.

    Raises:
        ExtractionError: The file is broken, encrypted, or over a limit.
    """
    readers = added_readers(suffix_of(path))
    with suppress(ConfigError):  # the worker reports it
        use_versions({reader: reader.version() for reader in readers.values()})
    sent = {suffix: asdict(reader) for suffix, reader in readers.items()}
    answer = read_in_worker(path, "office", limits, REPAIR, readers=sent)
    text: str = answer["text"]
    metadata = describe({**answer["info"], "Subject": ""})
    warnings = list(answer["warnings"])
    if not text.strip():
        warnings.append("the document is empty: it has no text to search")
    lost = (*answer["unread"], *_lost(answer["lost"], text))
    places = tuple((int(start), Place(**values)) for start, values in answer["places"])
    return Extracted(
        text,
        path,
        "markdown",
        page_starts=_page_starts(places),
        metadata=metadata,
        warnings=(*warnings, *lost),
        lost=lost,
        digest=answer["digest"],
        places=places,
    )


def _lost(counts: Mapping[str, Any], text: str) -> tuple[str, ...]:
    """Say which kinds of content are missing in the text, if that is more than a few words."""
    total = words_of(text).total() + sum(counts.values())
    return tuple(
        f"{numbered(count, f'[word of its {kind} was|words of its {kind} were]')} not read; save it as PDF or text to "
        "have all of it searched"
        for kind, count in sorted(counts.items())
        if count >= FEW_WORDS or count > FEW_SHARE * total
    )


def _page_starts(places: tuple[tuple[int, Place], ...]) -> tuple[int, ...]:
    """Return the offset of each page or slide, if the document has them; a page without text has that of the next."""
    starts: dict[int, int] = {}
    for start, place in places:
        if place.page is not None and not place.part:
            starts.setdefault(place.page, start)
    if not starts:
        return ()
    ends = max(starts)
    following, found = 0, []
    for page in range(ends, 0, -1):
        following = starts.get(page, following or starts[ends])
        found.append(following)
    return tuple(reversed(found))
