"""Files that were dropped on the page: each in a folder of its own, for as long as a source stands on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from ragistry.errors import RagistryError
from ragistry.protocols import LibraryStore
from ragistry.types import SourceInfo


class Uploads:
    """The files below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def place(self, name: str) -> Path:
        """Where a new file of this name is to be kept, beside whatever has the name already."""
        return self.folder / uuid4().hex / name

    async def keep(self, name: str, save: Callable[[Path], Awaitable[None]]) -> Path:
        """Save a new file of this name, and return where it is. Raises `OSError`, and then nothing is left of it."""
        place = self.place(name)
        try:
            await save(place)
        except OSError:
            self.forget([place])
            raise
        return place

    def holds(self, path: str | Path) -> bool:
        """Whether a file was dropped on the page, so that it is ours to remove."""
        return bool(path) and Path(path).is_relative_to(self.folder)

    def forget(self, paths: Iterable[str | Path]) -> None:
        """Remove those of the files that are ours."""
        for path in filter(self.holds, paths):
            with suppress(OSError):  # what cannot be removed is in nobody's way; a folder may hold another file
                Path(path).unlink(missing_ok=True)
                Path(path).parent.rmdir()

    def forget_unneeded(self, store: LibraryStore, paths: Iterable[str]) -> None:
        """Remove those of the files that are ours and that no source of any collection stands on."""
        left = _sources(store)
        if left is not None:
            self.forget(set(paths) - {info.source_path for info in left})

    @contextmanager
    def swept(self, store: LibraryStore, collection: str, brought: Collection[Path]) -> Iterator[None]:
        """Around what takes ``brought`` into a collection: of these files, and of those of the sources whose names they
        take, the ones that no source stands on afterwards are removed: they were replaced, or could not be taken in.

        No others: another page over this workspace may be keeping files that are no sources yet.
        """
        names = {path.name for path in brought}
        earlier = {info.source_path for info in _sources(store, collection) or () if info.source_file in names}
        try:
            yield
        finally:
            self.forget_unneeded(store, {*earlier, *(str(path.resolve()) for path in brought)})


def _sources(store: LibraryStore, collection: str | None = None) -> list[SourceInfo] | None:
    """Those of every collection, also of one that is defined no more; None where the store cannot tell."""
    with suppress(RagistryError):
        return list(store.sources(collection))
    return None
