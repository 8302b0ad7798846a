"""Markdown files at a commit as sources, which are read on demand and identified by their content id."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ragistry.errors import ExtractionError
from ragistry.library.ingest.source import ReadOptions, SourceText
from ragistry.library.repositories.code import code_spans, fenced
from ragistry.library.repositories.git import Blob, Commit
from ragistry.library.repositories.git import content as bytes_of
from ragistry.readers import front_matter
from ragistry.readers.encoding import decode
from ragistry.readers.extract import outlined
from ragistry.readers.extracted import Extracted, ExtractLimits
from ragistry.readers.line_numbers import line_numbers
from ragistry.readers.markdown import outline
from ragistry.text.languages import AUTO, canonical_language

# Lengths are bounded, and a mark ends before the next one, so that matching an unclosed mark stays fast.
_SHORTCODE = re.compile(r"\{\{(?:<(?!/\*)[^{}]{0,2000}?>|%(?!/\*)[^{}]{0,2000}?%)\}\}")
_ESCAPED = re.compile(r"\{\{([<%])/\*([^{}]{0,2000}?)\*/([>%])\}\}")

VERSION = 3
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
    try:
        decoded = decode(data)
    except ValueError as error:
        raise ExtractionError(f"{path!r} is not a text file: {error}") from error
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n")
    metadata, body, malformed = front_matter.split(text)
    written, first = body, text.count("\n") - body.count("\n")
    body = cleaned(body)
    numbers = [first + number for number in line_numbers(body, written)]
    warnings = tuple(filter(None, (decoded.warning, malformed)))
    if not body.strip():
        body, numbers = metadata.get("title", ""), [1]  # a page with only a title can still be found
    page = outlined(Extracted(body, path, "markdown", metadata=metadata, warnings=warnings, line_numbers=numbers))
    title = page.metadata.get("title")
    placed = {"title": title, "heading_context": title, "section": title} if title else {}
    return replace(page, metadata={**placed, **metadata})


def cleaned(text: str) -> str:
    """Remove comments and the marks of shortcodes from Markdown.

    Text between the marks remains. Code is put into fences, in which escaped shortcodes are unescaped.
    """
    text = fenced(_without_comments(text))
    parts: list[str] = []
    done = 0
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
    for start, end in [*code_spans(text), (len(text), len(text))]:
        while 0 <= (opened := text.find("<!--", at, max(at, start))) <= last - 4:
            parts.append(text[done:opened])
            done = at = text.index("-->", opened + 4) + 3
        at = max(at, end)
    return "".join([*parts, text[done:]])
