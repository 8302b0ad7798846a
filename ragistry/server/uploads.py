"""Files that were uploaded on the page. Each has its own folder, and is deleted when no source uses it.

A zip file is one upload with many sources, whose paths lead into it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from ragistry.errors import RagistryError
from ragistry.server.jobs import flush
from ragistry.workspace import Workspace


class Uploads:
    """The uploaded files below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def place(self, name: str) -> Path:
        """Return an unused path for a file of this name."""
        return self.folder / uuid4().hex / name

    async def keep(self, name: str, save: Callable[[Path], Awaitable[None]]) -> Path:
        """Save a new file, and return its path.

        Raises:
            OSError: The file cannot be saved. Nothing of it is left.
        """
        place = self.place(name)
        try:
            await save(place)
        except OSError:
            self.forget([place])
            raise
        return place

    def flush(self, paths: Iterable[Path]) -> None:
        """Write those of the files that were uploaded to the disk, before a job that needs them is acknowledged."""
        for path in filter(None, map(self.file_of, paths)):
            for place in (path, path.parent, self.folder):
                flush(place)

    def file_of(self, path: str | Path) -> Path | None:
        """Return the uploaded file that a path is, or that it leads into; None if it was not uploaded."""
        if not path or not Path(path).is_relative_to(self.folder):
            return None
        return self.folder.joinpath(*Path(path).relative_to(self.folder).parts[:2])

    def forget(self, paths: Iterable[str | Path]) -> None:
        """Delete those of the files that were uploaded."""
        for path in filter(None, map(self.file_of, paths)):
            with suppress(OSError):  # errors are harmless; the folder may contain another file
                path.unlink(missing_ok=True)
                path.parent.rmdir()

    def forget_unneeded(self, workspace: Workspace, paths: Iterable[str]) -> None:
        """Delete those of the files that were uploaded and that no source uses, also of an undefined collection."""
        with suppress(RagistryError):  # if the store cannot list its sources, the files stay
            needed = {self.file_of(info.source_path) for info in workspace.library.store.sources()}
            self.forget(file for file in {*map(self.file_of, paths)} - needed if file is not None)
