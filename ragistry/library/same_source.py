"""Whether what is to be taken in under a name is the source that has that name already, or one of another name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ragistry.errors import SourceError
from ragistry.library.source import IngestSource
from ragistry.library.zip_folder import is_member
from ragistry.types import SourceInfo
from ragistry.utils.urls import is_url


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
