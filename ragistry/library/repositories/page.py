"""Markdown files at a commit as sources, which are read on demand and identified by their content id.

Code in Hugo's shortcodes becomes fenced code, which the chunker recognises: a comment in it (``# install``) is not a
heading. Hugo expands shortcodes before it parses Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from ragistry.errors import ExtractionError
from ragistry.library.ingest.source import ReadOptions, SourceText
from ragistry.library.repositories.git import Blob, Commit
from ragistry.library.repositories.git import content as bytes_of
from ragistry.readers.extract import markdown, text_of
from ragistry.readers.extracted import Extracted, ExtractLimits
from ragistry.readers.markdown import outline
from ragistry.text.languages import AUTO, canonical_language

# Lengths are bounded, and a mark ends before the next one, so that matching an unclosed mark stays fast.
_SHORTCODE = re.compile(r"\{\{(?:<(?!/\*)[^{}]{0,2000}?>|%(?!/\*)[^{}]{0,2000}?%)\}\}")
_ESCAPED = re.compile(r"\{\{([<%])/\*([^{}]{0,2000}?)\*/([>%])\}\}")

VERSION = 5
"""Increase it when pages are read differently, so that an update reads all of them again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryPage(SourceText):
    """A file of a repository.

    Its chunks have ``repository``, ``file_path`` and the time of processing.
    """

    commit: Commit
    blob: Blob
    repository: str
    processed_at: str

    def content_hash(self, reading: ReadOptions) -> str:
        """Return a hash without reading the file, so that updates find changes quickly."""
        return f"{self.blob.id}/{VERSION}/{reading.language}/{reading.signature().decode()}"

    def digest(self, limits: ExtractLimits) -> bytes:  # noqa: ARG002
        return self.blob.id.encode()

    def hash_of(self, digest: bytes, reading: ReadOptions) -> str:  # noqa: ARG002
        return self.content_hash(reading)

    def read(self, reading: ReadOptions) -> tuple[Extracted, bytes]:
        """Return the text without front matter and shortcodes, and its metadata."""
        if self.blob.size > reading.limits.bytes:
            raise ExtractionError(
                f"{self.blob.path!r} has {self.blob.size:,} bytes, more than the limit of {reading.limits.bytes:,}; "
                "split it or increase limits.megabytes"
            )
        page = read_page(bytes_of(self.commit, self.blob), self.blob.path)
        page.metadata.update(file_path=self.blob.path, repository=self.repository, processed_at=self.processed_at)
        if reading.language != AUTO:  # the store of a repository has no setting of its own
            page.metadata["language"] = canonical_language(reading.language)
        return page, self.digest(reading.limits)


def read_page(data: bytes, path: str) -> Extracted:
    """Read the text of a Markdown file, and its front matter as metadata.

    ``title`` comes from the front matter, or else from the first heading of level 1. It is also ``heading_context`` and
    ``section`` of the text above the first heading.

    Raises:
        ExtractionError: The file is not text.
    """
    text, warning = text_of(path, data)
    page = markdown(text, path, warning, cleaned)
    title = page.metadata.get("title")
    placed = {"title": title, "heading_context": title, "section": title} if title else {}
    return replace(page, metadata={**placed, **page.metadata})


def cleaned(text: str) -> str:
    """Remove comments and the marks of shortcodes from Markdown.

    Text between the marks remains. Code in them is put into fences, in which escaped shortcodes are unescaped.
    """
    text = _without_comments(text)
    parts: list[str] = []
    done = 0
    for block in _blocks(text)[0]:
        parts += [text[done : block.start], _as_fence(text, block)]
        done = block.end
    text, parts, done = "".join([*parts, text[done:]]), [], 0
    for start, end in [*outline(text).fences, (len(text), len(text))]:
        parts.append(_SHORTCODE.sub("", text[done:start]))
        parts.append(text[start:end])
        done = end
    return _ESCAPED.sub(r"{{\1\2\3}}", "".join(parts))


def _without_comments(text: str) -> str:
    """Remove comments that begin outside code."""
    parts: list[str] = []
    done = at = 0
    last = text.rfind("-->")
    blocks, fences = _blocks(text)
    code = sorted([*fences, *((block.start, block.end) for block in blocks)])
    for start, end in [*code, (len(text), len(text))]:
        while 0 <= (opened := text.find("<!--", at, max(at, start))) <= last - 4:
            parts.append(text[done:opened])
            done = at = text.index("-->", opened + 4) + 3
        at = max(at, end)
    return "".join([*parts, text[done:]])


# --- Code in fences ---

_MARK = re.compile(
    r"\{\{[<%]\s*+(?P<closing>/)?\s*+(?P<name>highlight|code-toggle)(?=[\s/>%])"
    r"(?P<words>(?:\s++(?P<language>[\w+#.-]++)(?=[\s>%]))?[^{}]{0,2000}?)[>%]\}\}"
)
_LEAD = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?")

_Span = tuple[int, int]


class _CodeBlock(NamedTuple):
    """The marks of a shortcode and the text between them, as offsets."""

    start: int
    body: int
    body_end: int
    end: int
    language: str


def _blocks(text: str) -> tuple[list[_CodeBlock], list[_Span]]:
    """List the shortcodes with code, and the fences outside them."""
    pairs = list(_pairs(text))
    parts, done = [], 0
    for pair in pairs:
        parts += [text[done : pair.start], " " * (pair.end - pair.start)]
        done = pair.end
    sketch = outline("".join([*parts, text[done:]]))
    return [pair for pair in pairs if not sketch.has_code(pair.start, pair.end)], sketch.fences


def _pairs(text: str) -> Iterator[_CodeBlock]:
    opened: re.Match[str] | None = None
    for mark in _MARK.finditer(text):
        if not mark["closing"]:
            opened = opened if mark["words"].rstrip().endswith("/") else mark
        elif opened and opened["name"] == mark["name"]:
            language = opened["language"] if opened["name"] == "highlight" else ""
            yield _CodeBlock(opened.start(), opened.end(), mark.start(), mark.end(), language or "")
            opened = None


def _as_fence(text: str, block: _CodeBlock) -> str:
    """Convert a shortcode to a fence, or to code in backticks within a line."""
    body = text[block.body : block.body_end]
    is_led = _LEAD.fullmatch(text, text.rfind("\n", 0, block.start) + 1, block.start) is not None
    rest = text[block.end :].partition("\n")[0].strip()
    if "\n" not in body and (not is_led or rest):
        return body if "`" in body else f"`{body.strip()}`"
    if body.partition("\n")[0].strip() or "\n" not in body:
        body = f"\n{body}"
    if body.rpartition("\n")[2].strip(" \t>"):
        body += "\n"
    fence = "`" * max([3, *(len(marks) + 1 for marks in re.findall("`+", body))])  # that is not in the body
    return "".join(["" if is_led else "\n", fence, block.language, body, fence, "\n" if rest else ""])
