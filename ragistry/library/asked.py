"""Keep the questions that people ask, so that they can become a test set. Off unless ``log_questions`` is true."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragistry.errors import DatasetError
from ragistry.utils.ids import text_hash

if TYPE_CHECKING:
    from filelock import FileLock

    from ragistry.types import Document

FILE = "questions.jsonl"
"""File of the questions, in the data folder of a workspace."""
MOST = 10_000
"""Maximum number of questions; the oldest are deleted first."""
ROOM = 500
"""Number of questions that are deleted at once, so that few writes rewrite the file."""
Door = Literal["page", "server", "mcp", "shell"]
_KEY = re.compile(
    r"(?i:-----BEGIN)|\beyJ[\w-]{10,}\.|\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[a-z]|hf|AKIA|ASIA|AIza)[-_]?[\w-]{12,}"
    r"|(?i:(?:\b|_)(?:password|passwd|pwd|secret|token|api[ _-]?key|bearer|authorization)(?:"
    r"\b['\"]?\s*(?:[:=]|is\b|\s)\s*['\"]?(?=\S*\d)\S{6,}|(?:[_-]\w{1,20})?\s*[:=]\s*['\"]?\S{6,}))"
    r"|\b(?=[\w+/-]*\d)(?=[\w+/-]*[a-z])(?=[\w+/-]*[A-Z])[\w+/-]{24,}"
    r"|\b(?=[a-f]*\d)[0-9a-f]{32,}\b|://[^\s/:@]+:[^\s/@]+@"
)
"""What looks like a key or a password."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question.

    Attributes:
        text: The question.
        time: When it was asked, in UTC.
        door: Where it was asked.
        limited: Whether its token was limited to some collections.
        confirmed: Hashes of passages that answer it, as a person or the check of an answer said.
    """

    text: str
    time: str
    door: str
    limited: bool = False
    confirmed: Sequence[str] = ()


class QuestionLog:
    """The questions that were asked in a workspace; never the text of a result or an answer.

    Args:
        path: The file, which only its owner can read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = (-1, 0)  # size of the file, and number of lines at that size

    def add(self, text: str, door: Door, *, limited: bool = False, confirmed: Iterable[Document] = ()) -> bool:
        """Keep a question, and return whether it was kept: it may seem to contain a key.

        A file that cannot be written is only a warning.
        """
        if not text.strip() or _KEY.search(text):
            return False
        hashes = [text_hash(one.content) for one in confirmed]
        asked = AskedQuestion(text, datetime.now(UTC).isoformat(timespec="seconds"), door, limited, hashes)
        try:
            with self._lock():
                self._append(json.dumps(asdict(asked)) + "\n")  # in ASCII, so that no character ends a line
        except OSError as error:
            log.warning("the question was not kept: %s", error)
            return False
        return True

    def read(self) -> list[AskedQuestion]:
        """Return the questions, oldest first. Raises `DatasetError` if the file has other content."""
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
            return [AskedQuestion(**json.loads(line)) for line in lines]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            raise DatasetError(f"{str(self.path)!r} is not a file of questions ({error}); delete it") from error

    def _lock(self) -> FileLock:
        from filelock import FileLock  # a search without a log does not need it

        self.path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(f"{self.path}.lock")

    def _append(self, line: str) -> None:
        size, count = self._known
        if (now := self.path.stat().st_size if self.path.exists() else 0) != size:
            count = len(self.path.read_bytes().splitlines()) if now else 0
        if count >= MOST:
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)[ROOM - MOST :]
            count, shorter = len(lines), self.path.with_suffix(".new")
            shorter.touch(0o600)
            shorter.write_text("".join(lines), encoding="utf-8")
            shorter.replace(self.path)
        self.path.touch(0o600)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)
        self._known = (self.path.stat().st_size, count + 1)


def log_question(
    library: Any, text: str, door: Door, *, limited: bool = False, confirmed: Sequence[Document] = ()
) -> bool:
    """Keep a question if the library, which may be that of a server, has a `QuestionLog`. Returns whether it was kept.

    ``confirmed``: results that answer it. They become candidates when a person judges the question, never grades.
    """
    questions: QuestionLog | None = getattr(library, "questions", None)
    if questions is None:
        return False
    if confirmed:  # a technique may join chunks or cut them
        stored = {one.id: one for one in library.store.get([one.id for one in confirmed])}
        confirmed = [stored.get(one.id, one) for one in confirmed]
    return questions.add(text, door, limited=limited, confirmed=confirmed)
