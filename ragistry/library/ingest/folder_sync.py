"""Whether what is to be taken in under a name is the source that has that name already, or one of another name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote

from ragistry.errors import SourceError, SourceNotFoundError
from ragistry.library.ingest.folder import SHOWN, Listing
from ragistry.library.ingest.source import IngestSource, start_of
from ragistry.library.ingest.zip_folder import is_member
from ragistry.types import SourceInfo
from ragistry.utils.urls import is_url
from ragistry.utils.wording import numbered


def check_same_source(source: IngestSource, info: SourceInfo, is_same: bool) -> None:
    """A name that another source has is not given to this one, unless that is gone and this one says the same.

    A file that is not reachable just now must not be lost to whatever has its name. Raises `SourceError`.
    """
    if source.place == info.source_path:
        return
    if source.path and absence(source.path):
        return  # whoever extracts its text says so
    if info.source_path and (why := absence(info.source_path)):
        if not is_same:
            raise _gone(source, info, why)
    elif not is_same_file(source.place, info.source_path):
        raise taken(source, info.collection, info.source_path)


def has_place_of(source: IngestSource, info: SourceInfo) -> bool:
    """Whether what is stored says where the source is; a file that was moved is written again, not embedded again."""
    return info.source_path == source.place


def absence(path: str) -> str:
    """Why a path leads to nothing just now; empty where it leads to a file, folder or member, and for a URL."""
    if is_url(path):
        return ""
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return "" if is_member(path) else "is not there now"
    except (OSError, ValueError) as error:
        return f"cannot be reached now ({getattr(error, 'strerror', None) or error})"
    return ""


def is_same_file(one: str, other: str) -> bool:
    """Whether two places, neither empty, are one, or paths of one file that is there."""
    try:
        return bool(one and other) and (one == other or Path(one).samefile(other))
    except (OSError, ValueError):
        return False


def earlier_names(sources: Sequence[IngestSource], stored: Iterable[SourceInfo]) -> dict[str, SourceInfo]:
    """For the places of files that are stored under another name, what is stored of them under that.

    ``x/a.md`` of a folder was ``a.md`` where it was taken in by itself. Each name is the end of the file's path: that
    of a link is not, and a file may well be taken in under its own name and that of a link.
    """
    names = {source.source_file for source in sources}
    others = {
        info.source_path: info
        for info in stored
        if info.source_file not in names and _ends_path(info.source_file, info.source_path)
    }
    bare = {_bare(info.source_file) for info in others.values()}  # most files need not be looked for
    found = {}
    for source in sources:
        if source.path and _bare(source.source_file) in bare:
            place = source.place
            if place in others and _ends_path(source.source_file, place):
                found[place] = others[place]
    return found


def _ends_path(name: str, path: str) -> bool:
    return path.replace(os.sep, "/").endswith(f"/{name}")


def _bare(name: str) -> str:
    return name.rpartition("/")[2]


def taken(source: IngestSource, collection: str, by: str) -> SourceError:
    """What is wrong with a source whose name in the collection belongs to the file ``by``, or to a text."""
    is_now, wanted = (repr(path) if path else "a text" for path in (by, source.shown if source.place else ""))
    return SourceError(
        f"{source.source_file!r} in collection {collection!r} is {is_now}, not {wanted}; rename one of the two, ingest "
        "the folder that holds both, use another collection, replace what is there (`--replace`), or delete it with "
        "`ragistry sources delete`"
    )


def _gone(source: IngestSource, info: SourceInfo, why: str) -> SourceError:
    wanted = repr(source.shown) if source.place else "the text"
    return SourceError(
        f"{source.source_file!r} in collection {info.collection!r} is {info.source_path!r}, which {why}, "
        f"and {wanted} says something else; put that file back, or replace it (`--replace`), or "
        "delete what is there with `ragistry sources delete`"
    )


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
