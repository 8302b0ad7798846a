"""Cut a source into chunks, with metadata of their place.

`spans` decides where to cut; this module gives it Markdown's sections and fences as regions, and adds the metadata.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ragistry.chunking.breadcrumb import KEY as BREADCRUMB
from ragistry.chunking.breadcrumb import SENTENCE_AFTER, SENTENCE_BEFORE, TABLE_HEADER, breadcrumb
from ragistry.chunking.joined import LINE_FEEDS
from ragistry.chunking.places import KEYS, PLACES, Place, places_metadata
from ragistry.chunking.spans import Region, Span, check_sizes, cut_region
from ragistry.chunking.table_headers import DELIMITERS, TableRange, delimited_table, header_at, markdown_tables
from ragistry.readers.extract import extract, outlined
from ragistry.readers.extracted import Extracted
from ragistry.readers.formats import MARKDOWN_EXTS, suffix_of
from ragistry.readers.markdown import Outline, Section
from ragistry.text.boundaries import first_sentence_start, last_sentence_end, next_word
from ragistry.types import Chunk

_log = logging.getLogger(__name__)

Room = Callable[[Sequence[Chunk]], Sequence[int]]
"""Maximum number of characters of the pieces of each chunk; the length of its text if it fits."""

_PROSE_EXTS = MARKDOWN_EXTS | {"", ".txt", ".text", ".adoc", ".asciidoc", ".mdx", ".qmd", ".rmd", ".textile"}
"""Text of sentences. Other text consists of lines: code, configuration, tables, logs."""
_PAGE_NUMBER = re.compile(r"\n\s*[-\u2013]?\s*(?:\d{1,5}|[ivxlc]{1,8})\s*[-\u2013]?\Z")

MOST_PLACES = 200
"""Approximate number of sections and parts of a chunk, however large it is."""
LONGEST_PART = 300
"""Maximum length of the part of a sentence that is on another page."""
HEADER_SHARE = 4
"""A table header in the metadata has at most this fraction of the size of a chunk."""


def chunk_document(file_path: str | Path, max_chunk_size: int, overlap: int = 0) -> list[Chunk]:
    """Read a file and cut it into chunks, in order. A file without text gives no chunks, which is logged.

    Args:
        file_path: Path of the file.
        max_chunk_size: Maximum number of characters of a chunk, 1 or more.
        overlap: Maximum number of characters shared by neighbours, 0 to ``max_chunk_size - 1``.

    Returns:
        The chunks, with the metadata of `chunk_extracted`.

    Raises:
        ConfigError: A size is invalid.
        SourceNotFoundError: The file does not exist.
        UnsupportedFormatError: The format is not supported.
        ExtractionError: The file cannot be read.
    """
    check_sizes(max_chunk_size, overlap)
    chunks = chunk_extracted(extract(file_path), max_chunk_size, overlap)
    if not chunks:
        _log.warning("%s has no text: no chunks", file_path)
    return chunks


def chunk_extracted(
    extracted: Extracted,
    max_chunk_size: int,
    overlap: int = 0,
    *,
    room: Room | None = None,
    headings: bool = False,
) -> list[Chunk]:
    """Cut a text into chunks.

    Args:
        extracted: The text.
        max_chunk_size: See `chunk_document`.
        overlap: See `chunk_document`.
        room: Returns the maximum length of each chunk; longer ones are cut again.
        headings: Add ``breadcrumb`` to the metadata, which stores search with the text (`chunking.breadcrumb`).

    Metadata: the source's own, ``source``, ``chunk_index`` (0, 1, …), ``start`` and ``end`` (``text[start:end]`` is
    the chunk), ``line_feeds`` (their number before ``start``); PDF and slides: ``page`` (1, 2, …; no chunk has text
    of two), and ``page_label`` if another number is printed on it; spreadsheets: ``sheet``; attachments of mails:
    ``part``; Markdown: ``has_code``, and below a heading ``heading_context`` ("Install > Requirements") and
    ``section`` ("Requirements"). ``headings``: also ``breadcrumb``, which stores search with the text
    (`chunking.breadcrumb`). Chunks that continue a table have its header row as ``table_header``, which is searched
    in the same way, and chunks at the end of a page that cuts a sentence ``sentence_before`` or ``sentence_after``.
    Text, Markdown, reStructuredText and code: ``line``, the number of the first line in the file. A chunk with
    several short sections has ``places`` (`chunking.places`).
    """
    check_sizes(max_chunk_size, overlap)
    text = extracted.text
    sketch = extracted.outline
    if sketch is None and extracted.format == "markdown":
        sketch = outlined(extracted).outline
    parts: Iterable[Region] = section_regions(sketch, max_chunk_size) if sketch else [_whole(extracted)]
    known = {key: value for key, value in extracted.metadata.items() if value is not None}
    known["source"] = extracted.source
    place_starts = [offset for offset, _ in extracted.places]
    within = _PlacesWithin(extracted, sketch)
    sentences = _CutSentences(extracted)
    parts = _within_places(parts, sorted({*_place_changes(extracted), *within.changes[MOST_PLACES::MOST_PLACES]}))
    parts = _with_lead_ins(text, parts, max_chunk_size)
    tables = _tables(extracted, sketch, max_chunk_size // HEADER_SHARE)
    cuts = [(region, span) for region in parts for span in cut_region(text, region, max_chunk_size, overlap)]

    def chunk_at(span: Span) -> Chunk:
        start, end = span
        metadata = known | {"start": start, "end": end}
        if sketch:
            _place(sketch, metadata)
        _add_place(extracted, place_starts, metadata)
        within.add(metadata)
        sentences.add(metadata)
        if header := header_at(tables, start):
            metadata[TABLE_HEADER] = header
        if headings and (line := breadcrumb(metadata)):
            metadata[BREADCRUMB] = line
        return Chunk(text[start:end], metadata)

    if room:
        chunks = _fitted(text, cuts, overlap / max_chunk_size, chunk_at, room)
    else:
        chunks = [chunk_at(span) for _, span in cuts]
    feeds = reached = 0
    for index, chunk in enumerate(chunks):
        feeds += text.count("\n", reached, chunk.metadata["start"])
        reached = chunk.metadata["start"]
        chunk.metadata.update({"chunk_index": index, LINE_FEEDS: feeds})
    return chunks


class _PlacesWithin:
    """The sections and lines of a text, which may change within a chunk."""

    def __init__(self, extracted: Extracted, sketch: Outline | None) -> None:
        self._sections = sketch.sections if sketch else []
        self._known = {key: extracted.metadata[key] for key in KEYS if extracted.metadata.get(key) is not None}
        self._numbers = extracted.line_numbers
        self._starts = list(_line_starts(extracted.text)) if self._numbers else []
        jumps = [
            start
            for start, (before, number) in zip(self._starts[1:], pairwise(self._numbers), strict=False)
            if number != before + 1
        ]
        self.changes = sorted({*(section.start for section in self._sections), *jumps})

    def add(self, metadata: dict[str, Any]) -> None:
        """Add ``line`` to the metadata of a chunk, and ``places`` if its lines are in several sections."""
        start, end = metadata["start"], metadata["end"]
        if self._numbers:
            metadata["line"] = self._line(start)
        inside = self.changes[bisect_right(self.changes, start) : bisect_left(self.changes, end)]
        fixed = {key: metadata[key] for key in KEYS if key in metadata and key not in ("heading_context", "section")}
        places = [(offset - start, fixed | self._at(offset)) for offset in (start, *inside)]
        if inside or any(metadata.get(key) != places[0][1].get(key) for key in KEYS):
            metadata[PLACES] = places_metadata(places)

    def _at(self, offset: int) -> Place:
        place = {key: value for key, value in self._known.items() if key in ("heading_context", "section")}
        if self._sections:
            section = self._sections[bisect_right(self._sections, offset, key=lambda one: one.start) - 1]
            place |= {"heading_context": section.context} if section.context else {}
            place |= {"section": section.title} if section.title else {}
        return place | ({"line": self._line(offset)} if self._numbers else {})

    def _line(self, offset: int) -> int:
        return self._numbers[bisect_right(self._starts, offset) - 1]


class _CutSentences:
    """The sentences of a PDF that the end of a page cuts.

    They are recognised by their letters: the page ends with one or with a comma or hyphen, and the next page does not
    begin with a capital. A number below the text is skipped.
    """

    def __init__(self, extracted: Extracted) -> None:
        self._text = extracted.text
        starts = [start for start, _ in extracted.places] if extracted.format == "pdf" else []
        self._pages = (
            [
                (first, first + len(_PAGE_NUMBER.sub("", extracted.text[first:stop].rstrip())))
                for first, stop in pairwise([*starts, len(extracted.text)])
            ]
            if starts
            else []
        )

    def add(self, metadata: dict[str, Any]) -> None:
        """Add the other part of the first and the last sentence to the metadata of a chunk."""
        if not self._pages:
            return
        page, text = metadata["page"], self._text
        first, last = self._pages[page - 1]
        if page > 1 and self._cut(page - 1) and not text[first : metadata["start"]].strip():
            before, end = self._pages[page - 2]
            low = max(before, end - LONGEST_PART)
            start = last_sentence_end(text, low, end - 1)
            part = text[start if start > 0 else low : end]
            metadata[SENTENCE_BEFORE] = " ".join(part.split())
        if page < len(self._pages) and self._cut(page) and not text[metadata["end"] : last].strip():
            start, after = self._pages[page]
            end = first_sentence_start(text, start + 1, min(after, start + LONGEST_PART))
            part = text[start : end if end > 0 else min(after, start + LONGEST_PART)]
            metadata[SENTENCE_AFTER] = " ".join(part.split())

    def _cut(self, page: int) -> bool:
        """Return whether a sentence continues after the page."""
        (start, end), (following, stop) = self._pages[page - 1 : page + 1]
        before, after = self._text[start:end][-1:], self._text[following:stop][:1]
        return bool(before) and (before.isalpha() or before in ",-\u2013") and after.isalpha() and not after.isupper()


def _line_starts(text: str) -> Iterator[int]:
    start = 0
    while start >= 0:
        yield start
        start = text.find("\n", start) + 1 or -1


def _place_changes(extracted: Extracted) -> list[int]:
    """Return the offsets at which another page, slide, sheet, chapter or part of the document begins."""
    changes: list[int] = []
    last = None
    for offset, place in extracted.places:
        current = (place.page, place.sheet, place.chapter, place.part)
        if current != last:
            changes.append(offset)
        last = current
    return changes


def _within_places(regions: Iterable[Region], changes: Sequence[int]) -> Iterator[Region]:
    """Divide regions such that none contains more than one page, slide, sheet, chapter or part.

    So a result names one place, which contains all its lines.
    """
    for region in regions:
        first, last = bisect_right(changes, region.start), bisect_left(changes, region.stop)
        ends = [region.start, *changes[first:last], region.stop]
        if len(ends) == 2:
            yield region
            continue
        for start, stop in pairwise(ends):
            blocks = [block for block in region.blocks if start <= block[0] and block[1] <= stop]
            yield region._replace(start=start, stop=stop, body=min(max(region.body, start), stop), blocks=blocks)


def _with_lead_ins(text: str, regions: Iterable[Region], size: int) -> Iterator[Region]:
    """Keep a line that introduces a list, a table or code in one chunk with it."""
    for region in regions:
        if region.lines:
            yield region
        else:
            yield region._replace(blocks=with_lead_ins(text, region.start, region.stop, region.blocks, size))


def _fitted(
    text: str, cuts: Sequence[tuple[Region, Span]], share: float, chunk_at: Callable[[Span], Chunk], room: Room
) -> list[Chunk]:
    """Return the chunks of the spans, cut again if they are too long; ``share``: overlap as a share of the size."""
    fitted: list[Chunk] = []
    chunks = [chunk_at(span) for _, span in cuts]
    for (region, (start, end)), chunk, size in zip(cuts, chunks, room(chunks), strict=True):
        pieces = [chunk]
        if size < end - start:
            part = region._replace(start=start, stop=end)
            smaller = [(part, piece) for piece in cut_region(text, part, size, int(share * size))]
            pieces = _fitted(text, smaller, share, chunk_at, room)
        for piece in pieces:
            _append(fitted, piece)
    return fitted


def _append(chunks: list[Chunk], chunk: Chunk) -> None:
    """Add the next chunk. If one of two contains the other, which an overlap can cause, the later one is kept."""
    while chunks and chunk.metadata["start"] <= chunks[-1].metadata["start"]:
        chunks.pop()
    if not chunks or chunks[-1].metadata["end"] < chunk.metadata["end"]:
        chunks.append(chunk)


def _whole(extracted: Extracted) -> Region:
    lines = extracted.format == "text" and suffix_of(extracted.source) not in _PROSE_EXTS
    return Region(0, len(extracted.text), lines=lines)


def _tables(extracted: Extracted, sketch: Outline | None, size: int) -> list[TableRange]:
    """Return the tables whose header rows are repeated, in order."""
    if sketch:
        return [one for one in markdown_tables(extracted.text, size) if not sketch.has_code(one.start, one.start + 1)]
    suffix = suffix_of(extracted.source)
    return delimited_table(extracted.text, DELIMITERS[suffix], size) if suffix in DELIMITERS else []


def _add_place(extracted: Extracted, place_starts: Sequence[int], metadata: dict[str, Any]) -> None:
    """Add the page, slide, sheet or part in which the chunk begins."""
    start = metadata["start"]
    if at := bisect_right(place_starts, start):
        place = extracted.places[at - 1][1]
        named = {"page": place.page, "page_label": place.label, "sheet": place.sheet}
        named |= {"part": place.part, "chapter": place.chapter}
        metadata.update({key: value for key, value in named.items() if value})


def _place(sketch: Outline, metadata: dict[str, Any]) -> None:
    """Add the metadata of a chunk from the outline."""
    start, end = metadata["start"], metadata["end"]
    section = sketch.section_at(start, end)
    if section.context:
        metadata["heading_context"] = section.context
    if section.title:
        metadata["section"] = section.title
    metadata["has_code"] = sketch.has_code(start, end)


def section_regions(sketch: Outline, size: int) -> Iterator[Region]:
    """Yield the regions of a Markdown text, which chunks of ``size`` characters do not cross.

    Each is a section. A section shorter than a quarter of ``size`` also takes the following ones of its level or
    deeper, as long as all fit in one chunk. Headings without text join the next section; those at the end of a text
    join the previous one if it fits.
    """
    fences = sketch.fences
    for section in _with_neighbours(_with_bare_headings(sketch.sections), size):
        start, stop, body = section[:3]
        blocks = fences[bisect_left(fences, (start,)) : bisect_left(fences, (stop,))]
        yield Region(start, stop, body, blocks)


def _with_bare_headings(sections: Iterable[Section]) -> Iterator[Section]:
    above: Section | None = None
    for section in sections:
        whole = section._replace(start=above.start, level=min(above.level, section.level)) if above else section
        above = whole if whole.bare else None
        if not above:
            yield whole
    if above:
        yield above


def _with_neighbours(sections: Iterable[Section], size: int) -> Iterator[Section]:
    above: Section | None = None
    for section in sections:
        if above and _goes_with(above, section, size):
            above = above._replace(stop=section.stop)
            continue
        if above:
            yield above
        above = section
    if above:
        yield above


def _goes_with(above: Section, section: Section, size: int) -> bool:
    small = above.stop - above.start < size // 4 and section.level >= above.level
    return (small or section.bare) and section.stop - above.start <= size


# --- Lines that introduce a list, a table or code ---


LONGEST = 300
"""Maximum number of characters of a lead-in; of a longer sentence, its last line counts."""

_COLON = re.compile(r"[:：][*_`\"'”)]{0,3}[ \t]*\n")  # noqa: RUF001 - includes a wide colon
_ITEM = re.compile(r"[ \t]*(?:[-*+•◦▪–]|\(?\d{1,3}[.)]|\(?[a-z]\))[ \t]+\S")  # noqa: RUF001 - includes a dash
_ROW = re.compile(r"[^\n|]*\|")
_CODE = re.compile(r"(?: {4}|\t)[ \t]*\S")
_SENTENCE_END = re.compile(r"[.!?。！？]\W{0,3}$")  # noqa: RUF001 - includes wide marks


def with_lead_ins(text: str, start: int, stop: int, fences: Sequence[Span], size: int) -> list[Span]:
    """Return the fences of ``text[start:stop]`` and each lead-in with what it introduces, as spans in order.

    Of a list, a table or indented code that does not fit into ``size`` characters with its lead-in, the first item,
    row or line counts; a fence that does not fit stays a span of its own.

    Args:
        text: The text.
        start: Start of the part.
        stop: End of the part.
        fences: Spans of fenced code in the part, in order.
        size: Maximum number of characters of a chunk.
    """
    blocks: list[Span] = []
    left = list(reversed(fences))
    for colon in _COLON.finditer(text, start, stop):
        at = colon.start()
        while left and left[-1][1] <= at:
            blocks.append(left.pop())
        done = blocks[-1][1] if blocks else start
        if at < done or (left and left[-1][0] < at):
            continue  # in what another line introduces, or in code
        lead = _lead_start(text, done, at)
        if left and next_word(text, colon.end()) >= left[-1][0]:
            if left[-1][1] - lead <= size:
                left[-1] = (lead, left[-1][1])
        elif end := _end_of_introduced(text, colon.end(), left[-1][0] if left else stop, lead + size):
            blocks.append((lead, end))
    return [*blocks, *reversed(left)]


def _lead_start(text: str, done: int, colon: int) -> int:
    """Return the start of the sentence that ends with the colon; ``done`` is the end of the block before."""
    before = last_sentence_end(text, max(done, colon - LONGEST), colon - 1)
    return next_word(text, before if before >= 0 else max(done, text.rfind("\n", done, colon)))


def _end_of_introduced(text: str, start: int, stop: int, limit: int) -> int:
    """Return the end of the list, table or indented code at ``start``; of its beginning if it goes past ``limit``."""
    kind, first, last, is_after_blank = None, 0, 0, False
    while start < stop and last <= limit:
        line_end = text.find("\n", start, stop)
        line = text[start : line_end if line_end >= 0 else stop].rstrip()
        if line:
            if kind is None:
                kind = _kind(line, is_after_blank)
                if kind is None:
                    return 0
            elif kind.match(line) and not (is_after_blank and kind is _ROW):
                first = first or last
            elif kind is not _ITEM or not _continues_item(line, is_after_blank, text[last - 4 : last]):
                break
            last = start + len(line)
        is_after_blank = not line
        start = line_end + 1 if line_end >= 0 else stop
    return last if last <= limit else first


def _kind(line: str, is_after_blank: bool) -> re.Pattern[str] | None:
    kinds = (_ITEM, _CODE, _ROW) if is_after_blank else (_ITEM, _ROW)
    return next((kind for kind in kinds if kind.match(line)), None)


def _continues_item(line: str, is_after_blank: bool, before: str) -> bool:
    """Return whether a line without a marker continues the item above: it is indented, or completes its sentence."""
    return line[0] in " \t" or not (is_after_blank or _SENTENCE_END.search(before))
