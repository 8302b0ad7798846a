"""Whether what is to be taken in under a name is the source that has that name already."""

from __future__ import annotations

from pathlib import Path

from ragistry.errors import SourceError
from ragistry.library.source import SourceFile, SourceText
from ragistry.types import SourceInfo


def check_same_source(source: SourceFile | SourceText, info: SourceInfo, is_same: bool) -> None:
    """A name that another source has is not given to this one, unless that is gone and this one says the same.

    A file that is not reachable just now must not be lost to whatever has its name. Raises `SourceError`.
    """
    if not source.path and not info.source_path:
        return
    if source.path and not Path(source.path).exists():
        return  # whoever extracts its text says so
    if info.source_path and not Path(info.source_path).exists():
        if not is_same:
            raise _gone(source, info)
    elif not is_same_file(source.path, info.source_path):
        raise taken(source, info.collection, info.source_path)


def has_place_of(source: SourceFile | SourceText, info: SourceInfo) -> bool:
    """Whether what is stored says where the source is; a file that was moved is written again, not embedded again."""
    return info.source_path == (str(Path(source.path).resolve()) if source.path else "")


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths, neither empty, lead to one file that is there."""
    return bool(one and other) and Path(one).exists() and Path(other).exists() and Path(one).samefile(other)


def taken(source: SourceFile | SourceText, collection: str, by: str) -> SourceError:
    """What is wrong with a source whose name in the collection belongs to the file ``by``, or to a text."""
    is_now, wanted = (repr(path) if path else "a text" for path in (by, source.path))
    return SourceError(
        f"{source.source_file!r} in collection {collection!r} is {is_now}, not {wanted}; rename one of the two, ingest "
        "the folder that holds both, use another collection, or delete what is there with `ragistry sources delete`"
    )


def _gone(source: SourceFile | SourceText, info: SourceInfo) -> SourceError:
    wanted = repr(source.path) if source.path else "the text"
    return SourceError(
        f"{source.source_file!r} in collection {info.collection!r} is {info.source_path!r}, which is not there now, "
        f"and {wanted} says something else; put that file back, or replace it (`--replace`), or "
        "delete what is there with `ragistry sources delete`"
    )
