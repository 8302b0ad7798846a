"""Files that were uploaded on the page. Each has its own folder, and is deleted when no source uses it.

A zip file is one upload with many sources, whose paths lead into it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from ragistry.errors import RagistryError
from ragistry.protocols import LibraryStore
from ragistry.types import SourceInfo


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

    def forget_unneeded(self, store: LibraryStore, paths: Iterable[str]) -> None:
        """Delete those of the files that were uploaded and that no source uses."""
        left = _sources(store)
        if left is not None:
            needed = {self.file_of(info.source_path) for info in left}
            self.forget(file for file in {*map(self.file_of, paths)} - needed if file is not None)

    @contextmanager
    def swept(self, store: LibraryStore, collection: str, brought: Collection[Path]) -> Iterator[None]:
        """Delete unused uploads after the block.

        The block ingests ``brought`` into a collection. Afterwards, files that could not be ingested or were replaced
        are deleted. Other files stay, because another page may be saving files that are not sources yet.
        """
        names = {path.name for path in brought}
        known = _sources(store, collection) or ()
        earlier = {info.source_path for info in known if info.source_file.partition("/")[0] in names}
        try:
            yield
        finally:
            self.forget_unneeded(store, {*earlier, *(str(path.resolve()) for path in brought)})


def _sources(store: LibraryStore, collection: str | None = None) -> list[SourceInfo] | None:
    """Return the sources of one or all collections, including undefined ones; None if the store cannot list them."""
    with suppress(RagistryError):
        return list(store.sources(collection))
    return None
