"""Group results by source, and describe each by title and place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from ragistry.chunking.breadcrumb import TABLE_HEADER, older_version, sentence_after, sentence_before
from ragistry.presentation.blocks import HEADER_ROW, PassageBlock, blocks_of
from ragistry.techniques.folding import source_key
from ragistry.types import Document, is_outside
from ragistry.utils.quoting import visible, visible_line
from ragistry.utils.wording import numbered


class Hit(NamedTuple):
    """The best passage of a source, and its other passages in order.

    Attributes:
        rank: Rank of the best passage, from 1.
        document: The best passage.
        more: The other passages.
        more_ranks: Their ranks.
    """

    rank: int
    document: Document
    more: tuple[Document, ...] = ()
    more_ranks: tuple[int, ...] = ()


def grouped(documents: Sequence[Document]) -> list[Hit]:
    """Group documents by source, ordered by the best of each; documents without a source stay separate."""
    groups: dict[tuple[str, str] | int, list[int]] = {}
    for number, document in enumerate(documents):
        groups.setdefault(source_key(document) or number, []).append(number)
    return [
        Hit(
            first + 1,
            documents[first],
            tuple(documents[number] for number in others),
            tuple(number + 1 for number in others),
        )
        for first, *others in groups.values()
    ]


def source_of(document: Document) -> str:
    """Return the name of the source; without one, the beginning of the document's id."""
    get = document.metadata.get
    return visible_line(get("source_file") or get("file_path") or get("source") or document.id[:12])


def title_of(document: Document) -> str:
    """Return the title of the source, or its name without folders."""
    title = document.metadata.get("title")
    return visible_line(title) if title else PurePath(source_of(document)).name


def folded_copies(document: Document, named: int = 3) -> str:
    """Describe the passages that are folded under a result: ``2 copies: manual: a.md; manual: b.md``; else empty."""
    places, number = document.metadata.get("copy_places"), document.metadata.get("copies")
    if not isinstance(places, list) or not isinstance(number, int):
        return ""
    names = [visible_line(place, 100) for place in places[:named]] + ["…"] * bool(places[named:])
    return f"{numbered(number, '[copy|copies]')}: {'; '.join(names)}"


def place_text(place: Mapping[str, Any], *, title: str = "", between: str = ", ", page: str = "p. ") -> str:
    """Describe a place in a source: headings, attachment, sheet, page as counted and as printed, and line.

    Args:
        place: The place, or metadata that contain one.
        title: A heading that is left out, because it stands elsewhere.
        between: Text between the parts.
        page: Text before the number of the page.
    """
    keys = ("heading_context", "part", "chapter", "sheet", "page", "page_label", "line")
    known = {key: visible_line(place[key], 400) for key in keys if place.get(key) not in (None, "")}
    headings = [one for one in known.get("heading_context", "").split(" > ") if one != title]
    parts = [known[key] for key in ("part", "chapter", "sheet") if key in known and known[key] not in headings]
    if "page" in known:
        parts.append(page + known["page"] + (f" (printed {known['page_label']})" if "page_label" in known else ""))
    if "line" in known:
        parts.append(f"line {known['line']}")
    return between.join(filter(None, [" > ".join(headings), *parts]))


def spot_of(document: Document, place: Mapping[str, Any] | None = None) -> str:
    """Describe the place of a line, see `answering_line`; by default that of the beginning of the passage.

    Also says of which passage this is an older version.
    """
    spot = place_text(document.metadata if place is None else place, title=title_of(document), between=" · ")
    return " · ".join(filter(None, (spot, older_version(document))))


def body_of(document: Document) -> list[PassageBlock]:
    """Return the blocks of a passage without the headings that `title_of` and `spot_of` contain.

    A passage that continues a table begins with the header row of the table, and a sentence that the end of a page cuts
    is whole.
    """
    known = {title_of(document), *visible_line(document.metadata.get("heading_context") or "", 400).split(" > ")}
    blocks = blocks_of(document.content, document.metadata)
    header = document.metadata.get(TABLE_HEADER)
    head = blocks_of(header, document.metadata)[:1] if isinstance(header, str) else []
    body = [block for block in blocks if block.kind != "heading" or block.text not in known] or blocks
    before, after = (
        [PassageBlock("paragraph", visible(part))] if part else []
        for part in (sentence_before(document), sentence_after(document))
    )
    return [*(block._replace(kind="row", depth=HEADER_ROW) for block in head), *before, *body, *after]


def collection_of(document: Document) -> str:
    """Return the collection or repository, or that the document is from neither; empty if unknown."""
    if is_outside(document):
        return "outside the library"
    get = document.metadata.get
    return visible_line(get("collection") or get("repository") or "", 63)


def citation_of(document: Document, place: Mapping[str, Any] | None = None) -> str:
    """Cite a passage or a line of it: ``Back up, Operations > Backups (handbook: operations/backups.md)``."""
    title = ", ".join(filter(None, (title_of(document), spot_of(document, place))))
    source = ": ".join(filter(None, (collection_of(document), source_of(document))))
    return f"{title} ({source})"


def score_of(document: Document) -> str:
    """Write a score with its kind, because different kinds are not comparable: ``cosine 0.497``."""
    last = document.scores[-1] if document.scores else None
    kind = last.kind if last is not None and last.value == document.score else "score"
    return f"{kind} {document.score:.3f}"
