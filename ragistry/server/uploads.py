"""Files that were uploaded for jobs, in a folder for each job."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from ragistry.errors import RagistryError, RequestError
from ragistry.readers.formats import suffix_of
from ragistry.types import SourceInfo

UPLOAD_MEGABYTES = 2_000
"""Default of the maximum size of one upload, all files together."""
NAME_LENGTH = 1_000


class Uploads:
    """The uploaded files below a folder.

    The files of a program are deleted after their job. Those of the page stay as the files of their sources, until no
    source uses them. A zip file is one upload with many sources, whose paths lead into it.

    Args:
        folder: Folder that contains the folders of the jobs.
        sources: Returns all sources of the store.
        megabytes: Maximum size of one upload, all files together.
    """

    def __init__(
        self, folder: Path, sources: Callable[[], Iterable[SourceInfo]], megabytes: int = UPLOAD_MEGABYTES
    ) -> None:
        self.folder = folder.resolve()
        self.megabytes = megabytes
        self._sources = sources

    def file_of(self, path: str | Path) -> Path | None:
        """Return the uploaded file that a path is, or that it leads into; None if it was not uploaded."""
        if not path or not Path(path).is_relative_to(self.folder):
            return None
        return self.folder.joinpath(*Path(path).relative_to(self.folder).parts[:2])

    def forget(self, paths: Iterable[str]) -> None:
        """Delete those of the files that were uploaded and that no source uses, also of an undefined collection."""
        files = set(filter(None, map(self.file_of, paths)))
        with suppress(RagistryError):  # if the store cannot list its sources, the files stay
            needed = {self.file_of(info.source_path) for info in self._sources()} if files else set()
            for path in files - needed:
                with suppress(OSError):  # errors are harmless; the folder may contain another file
                    path.unlink(missing_ok=True)
                    path.parent.rmdir()

    def forget_job(self, id: str, request: Mapping[str, Any]) -> None:
        """Delete the files of an ended job that no source uses."""
        if "paths" not in request:
            shutil.rmtree(self.folder / id, ignore_errors=True)
            return
        self.forget([*request["paths"], *request.get("unneeded", ())])
        with suppress(OSError):  # no file was uploaded
            (self.folder / id).rmdir()


def source_name(name: str) -> str:
    """Check the name of an uploaded file: a relative path in the client's folder.

    Raises:
        RequestError: It is not a relative path, or too long.
    """
    parts = PurePosixPath(name).parts
    if not parts or name != "/".join(parts) or ".." in parts or not name.isprintable() or len(name) > NAME_LENGTH:
        raise RequestError(f"{name[:100]!r} is not a valid source name; send a relative path such as guides/setup.md")
    return name


def kept_name(number: int, name: str) -> str:
    """Name the file of a program by its number, with the suffix, which determines the format, if it is valid."""
    suffix = suffix_of(name)
    return f"{number}{suffix if re.fullmatch(r'[.][a-z0-9]{1,15}', suffix) else ''}"
