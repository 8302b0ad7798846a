"""What every page stands on: one workspace, its background jobs, and the folders that may be taken in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from nicegui import ui

from ragistry.config.folder import EVALUATION, UPLOADS
from ragistry.errors import RagistryError, SourceError
from ragistry.types import SourceInfo
from ragistry.web.comparisons import Comparisons
from ragistry.web.holdings import Holdings, holdings
from ragistry.web.jobs import Jobs
from ragistry.web.reports import Listed, reports
from ragistry.web.shared import Shared
from ragistry.web.uploads import Uploads
from ragistry.workspace import Workspace

P = ParamSpec("P")
Result = TypeVar("Result")

UPLOAD_MEGABYTES = 200
PATIENCE = 60.0
"""Seconds that a page may take until it is there: a store on another machine may be slow to list its sources."""


@dataclass(slots=True)
class Site:
    """One served workspace. ``roots``: folders below which "add folder" may read.

    ``holdings``, ``listed``: what the library holds, and the reports of comparisons, read for all windows.
    """

    workspace: Workspace
    roots: tuple[Path, ...]
    uploads: Uploads = field(init=False)
    jobs: Jobs = field(init=False)
    comparisons: Comparisons = field(init=False)
    holdings: Shared[Holdings] = field(init=False)
    listed: Shared[list[Listed]] = field(init=False)

    def __post_init__(self) -> None:
        self.roots = tuple(root.resolve() for root in self.roots)
        self.uploads = Uploads(self.workspace.path_of(self.workspace.settings.data_dir) / UPLOADS)
        self.jobs = Jobs(lambda: self.workspace.library, self.uploads)
        self.comparisons = Comparisons(self.workspace, self.reports)
        self.holdings = Shared(lambda: holdings(self.workspace.library))
        self.listed = Shared(lambda: reports(self.reports))

    @property
    def reports(self) -> Path:
        """Where ``ragistry compare`` keeps what it found."""
        return self.workspace.path_of(self.workspace.settings.data_dir) / EVALUATION / "reports"

    def folder(self, name: str) -> Path:
        """A folder that a visitor named. Raises `SourceError` where it lies outside the allowed roots."""
        if not name:
            raise SourceError("no folder is named; type the path of one")
        try:
            path = (self.workspace.root / Path(name).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise SourceError(f"{name[:200]!r} is not a path ({error}); check it") from error
        if not any(path.is_relative_to(root) for root in self.roots):
            allowed = ", ".join(map(str, self.roots))
            raise SourceError(f"{name!r} is outside of {allowed}; start `ragistry ui` with --root {name!r} to allow it")
        if not path.is_dir():
            raise SourceError(f"no such folder: {name!r}; check the path")
        return path

    def is_upload(self, path: str) -> bool:
        """Whether a source was dropped on the page, so that its file is ours to remove."""
        return self.uploads.holds(path)

    def forget_uploads(self, sources: Iterable[SourceInfo]) -> None:
        """Remove the files of sources that are no more, where they were dropped on the page.

        Not where a source stands on the file all the same: another window may have moved it before the visitor said
        yes.
        """
        self.uploads.forget_unneeded(self.workspace.library.store, (info.source_path for info in sources))

    def close(self) -> None:
        self.jobs.close()
        self.comparisons.close()
        self.workspace.close()


async def in_thread(work: Callable[P, Result], *args: P.args, **options: P.kwargs) -> Result:
    """Run what reads files or calls a model beside the event loop."""
    return await asyncio.to_thread(work, *args, **options)


async def attempt(work: Callable[P, Result], *args: P.args, **options: P.kwargs) -> Result | None:
    """The same; what goes wrong is shown as one line, and gives None."""
    try:
        return await in_thread(work, *args, **options)
    except RagistryError as error:
        complain(str(error))
        return None


def complain(message: str) -> None:
    """One line that stays until it is dismissed."""
    ui.notify(message, type="negative", multi_line=True, timeout=0, close_button="Dismiss")
