"""Sources of a folder whose files are missing, and the checks before they are deleted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote

from ragistry.errors import SourceError, SourceNotFoundError
from ragistry.library.file_names import start_of
from ragistry.library.listing import SHOWN, Listing
from ragistry.library.zip_folder import is_member
from ragistry.types import SourceInfo
from ragistry.utils.wording import numbered


def vanished(listing: Listing, stored: Iterable[SourceInfo], *, follow_links: bool = False) -> list[str]:
    """The names of the sources whose files were below a folder and are missing.

    An existing file stays a source, even if the folder would not include it, such as a hidden one. Files from a hidden
    subfolder, or from one that is now empty (its disk may not be mounted), stay too. With ``follow_links`` the same
    applies to files reached by a link.
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
    """Whether a file was in a subfolder that is now empty or unreadable."""
    try:
        folder = next((parent for parent in Path(path).parents if parent.is_dir()), root)
        return folder != root and next(folder.iterdir(), None) is None
    except OSError:
        return True


def _is_gone(path: str) -> bool:
    """Whether the path does not exist, not even as a link; False if it cannot be read."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return not is_member(path)
    except (OSError, ValueError):
        return False
    return False


def emptied(folder: str | Path, collection: str, gone: Sequence[str]) -> SourceError:
    """The error for a folder without any files, for which nothing is removed."""
    return SourceError(
        f"{os.fspath(folder)!r} has no file to ingest, and collection {collection!r} has {_named(gone)} "
        "from it; nothing was deleted: put the files back (is its disk mounted?), or delete what came from it with "
        f"`ragistry ingest {quote(os.fspath(folder))} -c {collection} --prune --yes`"
    )


def gone_from(path: str | Path, stored: Iterable[SourceInfo], error: SourceNotFoundError) -> SourceNotFoundError:
    """The error for a missing path, with the remedy for the sources of a removed folder."""
    start = start_of(path)
    gone = [info.source_file for info in stored if info.source_path.startswith(start)]
    if not gone:
        return error
    return SourceNotFoundError(
        f"{error}; {_named(gone)} came from it: to delete them, make the folder again, empty, and ingest it with "
        "`--prune`"
    )


def _named(names: Sequence[str]) -> str:
    """The number of sources, and some names."""
    listed = ", ".join(map(repr, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")
    return f"{numbered(len(names), 'source[|s]')} ({listed})"
