"""Detect whether an incoming source is already stored under the same or another name, and which files are gone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from stat import S_ISDIR

from ragistry.errors import SourceError, SourceNotFoundError
from ragistry.library.ingest.folder import SHOWN, Listing
from ragistry.library.ingest.source import IngestSource, start_of
from ragistry.library.ingest.zip_folder import is_member
from ragistry.types import SourceInfo
from ragistry.utils.ids import composed
from ragistry.utils.urls import is_url
from ragistry.utils.wording import numbered


def check_same_source(source: IngestSource, info: SourceInfo, is_same: bool) -> None:
    """Check that a source does not replace another source of the same name.

    A source may replace another one if the other's file is gone and both have the same content. An unreachable file
    must not lose its name to another file.

    Args:
        source: The incoming source.
        info: The stored source of this name.
        is_same: Whether both have the same content.

    Raises:
        SourceError: The name belongs to another source.
    """
    if source.place == info.source_path:
        return
    if source.path and absence(source.path):
        return  # the reader reports it
    if composed(source.place) == composed(info.source_path) and absence(info.source_path):
        return  # the file has the same name in another Unicode form
    if info.source_path and (why := absence(info.source_path)):
        if not is_same:
            raise _gone(source, info, why)
    elif not is_same_file(source.place, info.source_path):
        raise taken(source, info.collection, info.source_path)


def absence(path: str) -> str:
    """Explain why a path cannot be reached now.

    Returns:
        The reason; empty for URLs, and for an existing file or member of a zip file.
    """
    if is_url(path):
        return ""
    try:
        return "is a folder now" if S_ISDIR(Path(path).stat().st_mode) else ""
    except (FileNotFoundError, NotADirectoryError):
        return "" if is_member(path) else "does not exist now"
    except (OSError, ValueError) as error:
        return f"cannot be reached now ({getattr(error, 'strerror', None) or error})"


def is_same_file(one: str, other: str) -> bool:
    """Return whether two places are equal, or paths of one existing file.

    An empty place is never the same as another.
    """
    try:
        return bool(one and other) and (one == other or Path(one).samefile(other))
    except (OSError, ValueError):
        return False


def earlier_names(sources: Sequence[IngestSource], stored: Iterable[SourceInfo]) -> dict[str, SourceInfo]:
    """Find files that are stored under another name.

    For example, ``x/a.md`` of a folder was ``a.md`` when it was ingested as a single file. Only names that are the end
    of the file's path count, because a file may be stored under its own name and under the name of a link.

    Returns:
        The stored source, by the place of the file.
    """
    names = {source.source_file for source in sources}
    others = {
        info.source_path: info
        for info in stored
        if info.source_file not in names and _ends_path(info.source_file, info.source_path)
    }
    bare = {_bare(info.source_file) for info in others.values()}  # to skip most files quickly
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
    """Return the error for a source whose name is already used.

    Args:
        source: The source.
        collection: Name of the collection.
        by: Path of the file with this name; empty for a text.
    """
    is_now, wanted = (repr(path) if path else "a text" for path in (by, source.shown if source.place else ""))
    return SourceError(
        f"{source.source_file!r} in collection {collection!r} is {is_now}, not {wanted}; rename one of the two, ingest "
        "the folder that contains both, use another collection, replace the source (`--replace`), or delete it with "
        "`ragistry sources delete`"
    )


def _gone(source: IngestSource, info: SourceInfo, why: str) -> SourceError:
    wanted = repr(source.shown) if source.place else "the text"
    return SourceError(
        f"{source.source_file!r} in collection {info.collection!r} is {info.source_path!r}, which {why}, "
        f"and {wanted} has other content; put that file back, replace it (`--replace`), or delete the source with "
        "`ragistry sources delete`"
    )


def vanished(listing: Listing, stored: Iterable[SourceInfo], *, follow_links: bool = False) -> list[str]:
    """List the sources whose files were below a folder and are gone.

    An existing file remains a source, even if the listing does not include it, such as a hidden file. Files of a hidden
    subfolder remain too, and files of a subfolder that is now empty, because its disk may not be mounted.

    Args:
        listing: Listing of the folder.
        stored: Sources of the collection.
        follow_links: Apply the same rules to files that were reached by a link.

    Returns:
        Names of the sources.
    """
    # What is behind a broken link may come back, such as a disk that is not mounted.
    names = [link.relative_to(listing.root).as_posix() for link in listing.links]
    present = {composed(name) for name in (*(file.source_file for file in listing.files), *names)}
    start = start_of(listing.root)

    def was_here(info: SourceInfo) -> bool:
        path = info.source_path
        if path + os.sep == start:
            return True  # the folder has replaced a file of its name
        if path and path in (start + info.source_file, follow_links and os.path.realpath(start + info.source_file)):
            return True
        hidden = f"{os.sep}." in path[len(start) - 1 :]
        return path.startswith(start) and not hidden and not may_come_back(path, Path(start))

    return [
        info.source_file
        for info in stored
        if composed(info.source_file) not in present and was_here(info) and is_gone(info.source_path)
    ]


def may_come_back(path: str, root: Path) -> bool:
    """Return whether a file was in a subfolder that is now empty or unreadable."""
    try:
        folder = next((parent for parent in Path(path).parents if parent.is_dir()), root)
        return folder != root and next(folder.iterdir(), None) is None
    except OSError:
        return True


def is_gone(path: str) -> bool:
    """Return whether the path does not exist, not even as a broken link, or is a folder now.

    A path that cannot be read is not gone.
    """
    try:
        os.lstat(path)
        return Path(path).is_dir()
    except (FileNotFoundError, NotADirectoryError):
        return not is_member(path)
    except (OSError, ValueError):
        return False


def emptied(folder: str | Path, collection: str, gone: Sequence[str]) -> SourceError:
    """Return the error for an empty folder, whose sources are not deleted."""
    return SourceError(
        f"{os.fspath(folder)!r} has no file to ingest, and collection {collection!r} has {_named(gone)} "
        "from it; nothing was deleted: put the files back (is its disk mounted?), or delete what came from it with "
        f"`ragistry ingest {quote(os.fspath(folder))} -c {collection} --prune --yes`"
    )


def gone_from(path: str | Path, stored: Iterable[SourceInfo], error: SourceNotFoundError) -> SourceNotFoundError:
    """Return the error for a missing path.

    If the path was a folder with sources, the message explains how to delete them.
    """
    start = start_of(path)
    gone = [info.source_file for info in stored if info.source_path.startswith(start)]
    if not gone:
        return error
    return SourceNotFoundError(
        f"{error}; {_named(gone)} came from it; to delete them, create the folder again, without files, and "
        "ingest it with `--prune`"
    )


def _named(names: Sequence[str]) -> str:
    """Return the number of sources and some of their names."""
    listed = ", ".join(map(repr, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")
    return f"{numbered(len(names), 'source[|s]')} ({listed})"
