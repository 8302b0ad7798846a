"""Names and paths of files. Stores need text, so names that are not UTF-8 are refused."""

from __future__ import annotations

import os
from pathlib import Path

from ragistry.errors import SourceError
from ragistry.library.source import Reading, SourceFile
from ragistry.utils.extracted import Extracted


def source_file(path: str, name: str) -> SourceFile:
    """A file to ingest under a name, or one with the reason why it cannot be."""
    return (SourceFile if _is_utf8(os.path.realpath(path)) else MisnamedFile)(path, name)


class MisnamedFile(SourceFile):
    """A file with a path that cannot be stored. It is not read."""

    __slots__ = ()

    def content_hash(self, reading: Reading) -> str:  # noqa: ARG002, there is nothing to remember it by
        return ""

    def read(self, reading: Reading, content: str) -> tuple[Extracted, str]:  # noqa: ARG002
        wrong = next(part for part in Path(os.path.realpath(self.path)).parts if not _is_utf8(part))
        raise SourceError(f"'{_escaped(self.path)}': the name '{_escaped(wrong)}' is not UTF-8; rename it")


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escaped(name: str) -> str:
    return os.fsencode(name).decode(errors="backslashreplace")


def start_of(folder: str | Path) -> str:
    """The common prefix of all paths below a folder."""
    real = os.path.realpath(folder)
    return real if real.endswith(os.sep) else real + os.sep
