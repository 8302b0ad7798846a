"""A Markdown file at a commit as a source to take in: read when it is asked for, told by the id of its content."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ragistry.errors import ExtractionError
from ragistry.library.repository_git import Blob, Commit
from ragistry.library.repository_git import content as bytes_of
from ragistry.library.source import Reading, SourceText
from ragistry.utils import front_matter
from ragistry.utils.encoding import decode
from ragistry.utils.extracted import Extracted
from ragistry.utils.markdown import outline

# The lengths are bounded and a mark ends before the next: one that is never closed costs little.
_SHORTCODE = re.compile(r"\{\{(?:<(?!/\*)[^{}]{0,2000}?>|%(?!/\*)[^{}]{0,2000}?%)\}\}")
_ESCAPED = re.compile(r"\{\{([<%])/\*([^{}]{0,2000}?)\*/([>%])\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(SourceText):
    """A file of a repository; its chunks know the ``repository``, the ``file_path`` and when they were made."""

    commit: Commit
    blob: Blob
    repository: str
    processed_at: str

    def content_hash(self, reading: Reading) -> str:
        """Known without reading the file: that is how an update finds what changed."""
        return f"{self.blob.id}/{reading.signature().decode()}"

    def read(self, reading: Reading, content: str) -> tuple[Extracted, str]:
        """The text without front matter and shortcodes, and what every chunk of it is to say."""
        if self.blob.size > reading.limits.bytes:
            raise ExtractionError(
                f"{self.blob.path!r} has {self.blob.size:,} bytes, more than the limit of {reading.limits.bytes:,}; "
                "split it or raise limits.megabytes"
            )
        page = read_page(bytes_of(self.commit, self.blob), self.blob.path)
        page.metadata.update(file_path=self.blob.path, repository=self.repository, processed_at=self.processed_at)
        return page, content


def read_page(data: bytes, path: str) -> Extracted:
    """A Markdown file's text, and its front matter as metadata.

    ``title``: of the front matter, else the first heading of level 1. It stands in as ``heading_context`` and
    ``section`` of what is above the first heading. Raises `ExtractionError` for what is no text.
    """
    try:
        decoded = decode(data)
    except ValueError as error:
        raise ExtractionError(f"{path!r} is no text file: {error}") from error
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n")
    metadata, body, malformed = front_matter.split(text)
    body = cleaned(body)
    title = metadata.get("title") or next((s.title for s in outline(body).sections if s.level == 1 and s.title), "")
    placed: dict[str, Any] = {"title": title, "heading_context": title, "section": title} if title else {}
    warnings = tuple(filter(None, (decoded.warning, malformed)))
    return Extracted(body, path, "markdown", metadata={**placed, **metadata}, warnings=warnings)


def cleaned(text: str) -> str:
    """Markdown without what readers of the site do not see: comments and the marks of shortcodes.

    What stands between the marks stays, and so does fenced code, in which escaped shortcodes are written as shown.
    """
    parts: list[str] = []
    done = 0
    for start, end in [*outline(text).fences, (len(text), len(text))]:
        parts.append(_SHORTCODE.sub("", _without_comments(text[done:start])))
        parts.append(text[start:end])
        done = end
    return _ESCAPED.sub(r"{{\1\2\3}}", "".join(parts))


def _without_comments(text: str) -> str:
    parts: list[str] = []
    done = 0
    while (start := text.find("<!--", done)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts.append(text[done:start])
        done = end + 3
    return "".join([*parts, text[done:]])
