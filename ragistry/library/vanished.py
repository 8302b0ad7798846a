"""Sources of a folder whose files are no longer there, and what is said before any of them is deleted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote

from ragistry.errors import SourceError, SourceNotFoundError
from ragistry.library.file_names import start_of
from ragistry.library.listing import SHOWN, Listing
from ragistry.types import SourceInfo
from ragistry.utils.wording import numbered


def vanished(listing: Listing, stored: Iterable[SourceInfo], *, follow_links: bool = False) -> list[str]:
    """The names of the sources whose files were below a folder, whatever they were called, and are no longer there.

    A file that is there stays a source, also where the folder does not bring it in: a hidden one, say, was asked for.
    So does what came from a folder below that is hidden, or there and empty, as where its disk is not mounted.
    With ``follow_links`` the same goes for files that are reached by a link.
    """
    present, start = {file.source_file for file in listing.files}, start_of(listing.root)

    def was_here(info: SourceInfo) -> bool:
        path = info.source_path
        if path and path in (start + info.source_file, follow_links and os.path.realpath(start + info.source_file)):
            return True
        hidden = f"{os.sep}." in path[len(start) - 1 :]
        return path.startswith(start) and not hidden and not _may_come_back(path, Path(start))

    return [
        info.source_file
        for info in stored
        if info.source_file not in present and was_here(info) and _is_gone(info.source_path)
    ]


def _may_come_back(path: str, root: Path) -> bool:
    """Whether a file was in a folder below the root that is there and holds nothing, or cannot be looked into."""
    try:
        folder = next((parent for parent in Path(path).parents if parent.is_dir()), root)
        return folder != root and next(folder.iterdir(), None) is None
    except OSError:
        return True


def _is_gone(path: str) -> bool:
    """Whether nothing is there, not even a link; of what cannot be looked at, nobody knows."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def emptied(folder: str | Path, collection: str, gone: Sequence[str]) -> SourceError:
    """Why nothing is removed for want of files in a folder that holds none at all."""
    return SourceError(
        f"{os.fspath(folder)!r} holds no file that can be taken in, and collection {collection!r} has {_named(gone)} "
        "from it; nothing was deleted: put the files back (is its disk mounted?), or delete what came from it with "
        f"`ragistry ingest {quote(os.fspath(folder))} -c {collection} --prune --yes`"
    )


def gone_from(path: str | Path, stored: Iterable[SourceInfo], error: SourceNotFoundError) -> SourceNotFoundError:
    """What is wrong with a path that leads nowhere, with the remedy for the sources of a folder that was there."""
    start = start_of(path)
    gone = [info.source_file for info in stored if info.source_path.startswith(start)]
    if not gone:
        return error
    return SourceNotFoundError(
        f"{error}; {_named(gone)} came from it: to delete them, make the folder again, empty, and ingest it with "
        "`--prune`"
    )


def _named(names: Sequence[str]) -> str:
    """How many sources, and some of them."""
    listed = ", ".join(map(repr, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")
    return f"{numbered(len(names), 'source[|s]')} ({listed})"
