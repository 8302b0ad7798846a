"""The tool ``outline``: headings, pages, slides, sheets and chapters of a source with their lines; and its chunks."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragistry.chunking.breadcrumb import searched_names, searched_with
from ragistry.chunking.joined import lines_of, pieces_of, stored_chunks
from ragistry.chunking.places import place_at
from ragistry.config.folder import missing
from ragistry.library.ingest.plan import read_file
from ragistry.presentation.hits import place_text
from ragistry.readers.markdown import outline as outline_of
from ragistry.tools.reach import Reach
from ragistry.tools.read import PLACE
from ragistry.tools.sources import find_source, named_sources, sources_in
from ragistry.tools.tokens import estimated_tokens
from ragistry.tools.tool import COLLECTION, SOURCE, TOKENS, Tool
from ragistry.utils.quoting import visible_line
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.workspace import Workspace


@dataclass(frozen=True, slots=True)
class OutlineRequest:
    """List the headings, pages, slides, sheets and chapters of a source with their lines.

    Attributes:
        source: Name of the source.
        collection: Its collection, if several have a source of this name.
        line: List what begins at this line or later.
        max_tokens: Maximum size of the answer.
    """

    source: str = field(metadata=SOURCE)
    collection: str | None = field(default=None, metadata=COLLECTION)
    line: int = field(default=1, metadata={"description": "Begin at this line.", "ge": 1})
    max_tokens: int = field(default=4_000, metadata=TOKENS)


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A heading, page, sheet, chapter or part. ``level``: that of a heading, otherwise 0."""

    line: int
    kind: str
    title: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class OutlineAnswer:
    """The outline of a source. ``lines``: number of its lines. ``next_line`` continues it; None at the end."""

    collection: str
    source: str
    entries: list[OutlineEntry]
    lines: int
    next_line: int | None = None


def outline(reach: Reach, request: OutlineRequest) -> OutlineAnswer:
    """List what a source consists of. Raises `CallError`."""
    name, info = find_source(reach, request.source, request.collection)
    entries, total, is_markdown, texts = list[OutlineEntry](), 0, False, list[str]()
    last: dict[str, Any] = {}
    for lines in lines_of(reach.library.store, info):
        for line, place in lines.places():
            for kind in ("part", "chapter", "sheet", "page"):
                if place.get(kind) not in (None, last.get(kind)):
                    entries.append(OutlineEntry(line, kind, visible_line(place[kind], 200)))
            last = place
        is_markdown |= any("section" in piece.chunk.metadata for _, piece in lines.pieces)
        texts += lines.texts
        total = lines.first + len(lines.texts) - 1
    if is_markdown:
        text, reached, line = "\n".join(texts), 0, 1
        for section in outline_of(text).sections:
            line, reached = line + text.count("\n", reached, section.start), section.start
            if section.title:
                entries.append(OutlineEntry(line, "heading", visible_line(section.title, 200), section.level))
    entries.sort(key=lambda one: (one.line, one.level))
    room, found = request.max_tokens, list[OutlineEntry]()
    for entry in entries:
        if entry.line >= request.line:
            room -= estimated_tokens(entry.title) + 12
            if room < 0 and found:
                return OutlineAnswer(name, info.source_file, found, total, entry.line)
            found.append(entry)
    return OutlineAnswer(name, info.source_file, found, total)


def outline_text(found: OutlineAnswer) -> str:
    """Write an outline."""
    head = f"{visible_line(found.source)} [{found.collection}], {numbered(found.lines, 'line[|s]')}"
    lines = [
        f"  {one.line}: {'  ' * max(0, one.level - 1)}{'' if one.kind == 'heading' else f'{one.kind} '}{one.title}"
        for one in found.entries
    ] or ["  no headings or pages"]
    more = [f"[more: line {found.next_line}]"] if found.next_line is not None else []
    return "\n".join([head, *lines, *more])


def split(workspace: Workspace, source: str, collection: str | None) -> tuple[dict[str, Any], str]:
    """Describe the chunks of a source, or those that an ingest would make of a file, as values and as text."""
    path, warnings = os.path.realpath(source), list[str]()
    is_new = missing(workspace.root, workspace.settings)  # to read the library would create it
    known = [] if is_new else sources_in(Reach(workspace.library), collection, None)
    here = [one for one in known if one[1].source_path == path]
    if here or named_sources(known, source) or not (is_new or os.path.exists(source)):  # noqa: PTH110, for names that are too long
        name, info = here[0] if here else find_source(Reach(workspace.library), source, collection)
        head, chunks = f"{info.source_file} [{name}]", [*stored_chunks(workspace.store, info)]
    else:
        head = f"{source} (not in the library)"
        chunks, warnings = read_file(source, workspace.reading, workspace.embedder)
    rows, lines = list[dict[str, Any]](), [f"{visible_line(head)}, {numbered(len(chunks), 'chunk[|s]')}"]
    for number, piece in enumerate(pieces_of(chunks, whole=True)):
        text, place, first = piece.chunk.content, place_at(piece.chunk, 0), piece.line_feeds + 1
        last, tokens = first + text.count("\n"), piece.chunk.metadata.get("token_count")
        found = searched_with(piece.chunk.metadata) | searched_names(piece.chunk.metadata)
        row = {"chunk": number, "line": first, "last_line": last, "place": place, "tokens": tokens}
        rows.append(row | {"searched_with": found, "text": text})
        where = place_text({key: place[key] for key in PLACE if key in place})
        parts = f"lines {first} to {last}", where, f"{tokens or '?'} tokens"
        lines.append(f"  {number}: {', '.join(filter(None, parts))}")
        lines += [f"     + {kind}: {visible_line(value, 200)}" for kind, value in found.items()]
        lines.append(f"     {visible_line(text, 70)}")
    lines += [f"  [{warning}]" for warning in warnings]
    return {"source": head, "chunks": rows, "warnings": warnings}, "\n".join(lines)


OUTLINE = Tool(
    "outline",
    "List headings",
    "List the headings, pages, slides, sheets and chapters of a source with their lines.",
    OutlineRequest,
    OutlineAnswer,
    outline,
    outline_text,
)
