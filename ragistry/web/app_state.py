"""State that all pages share: the workspace, its background jobs, and the collections."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from ragistry.config.folder import EVALUATION
from ragistry.errors import SourceError
from ragistry.library.ingest.report import folder_line
from ragistry.library.service import DocumentService
from ragistry.library.unsearchable import unsearchable_from
from ragistry.server.jobs import SavedJobs
from ragistry.server.uploads import Uploads
from ragistry.types import SourceInfo, Unsearchable
from ragistry.web.jobs import PageJobs
from ragistry.web.polling import PolledValue
from ragistry.web.reports import ReportRow, list_reports
from ragistry.workspace import Workspace

P = ParamSpec("P")
Result = TypeVar("Result")

MISSING = 500
"""Number of files that are not searchable that the page of a collection lists."""
PAGE_TIMEOUT = 60.0
"""Maximum seconds to build a page. A store on another machine may list its sources slowly."""


@dataclass(frozen=True, slots=True)
class CollectionState:
    """A collection with its sources, its number of chunks, and the first of its files that are not searchable.

    ``left_out``: a line for each folder that left out files.
    """

    name: str
    display_name: str
    description: str
    sources: tuple[SourceInfo, ...]
    chunks: int
    missing: tuple[Unsearchable, ...] = ()
    missing_count: int = 0
    left_out: tuple[str, ...] = ()


CollectionStates = tuple[CollectionState, ...]
"""All collections, in the order of documents.yaml."""


def load_collections(library: DocumentService) -> CollectionStates:
    """Load all collections. A store may have to read all chunks for this, so the result is shared by all pages."""
    sources: dict[str, list[SourceInfo]] = defaultdict(list)
    for info in library.sources():
        sources[info.collection].append(info)
    missing, counts = defaultdict[str, list[Unsearchable]](list), Counter[str]()
    keeps = "unsearchable" in library.store.abilities
    for position, one in unsearchable_from(library.scope) if keeps else ():
        is_listed = one.kind != "waiting" or not position.source  # an ingest is embedding the others
        counts[one.collection] += is_listed
        if is_listed and counts[one.collection] <= MISSING:
            missing[one.collection].append(one)
    folders = library.ingested_folders() if keeps else []
    return tuple(
        CollectionState(
            entry.name,
            entry.display_name or entry.name,
            entry.description,
            tuple(sources[entry.name]),
            sum(info.chunks for info in sources[entry.name]),
            tuple(missing[entry.name]),
            counts[entry.name],
            tuple(folder_line(one) for one in folders if one.collection == entry.name),
        )
        for entry in library.collections.entries()
    )


@dataclass(slots=True)
class AppState:
    """A served workspace.

    Attributes:
        workspace: The open workspace.
        roots: Folders from which folders may be added.
        saved: The jobs of the workspace.
        jobs: Those that the page shows and adds.
        collections: All collections, polled for all windows.
        reports: The reports of comparisons, polled for all windows.
    """

    workspace: Workspace
    roots: tuple[Path, ...]
    saved: SavedJobs
    jobs: PageJobs = field(init=False)
    collections: PolledValue[CollectionStates] = field(init=False)
    reports: PolledValue[list[ReportRow]] = field(init=False)

    def __post_init__(self) -> None:
        self.roots = tuple(root.resolve() for root in self.roots)
        self.jobs = PageJobs(self.workspace, self.saved)
        self.collections = PolledValue(lambda: load_collections(self.workspace.library))
        self.reports = PolledValue(lambda: list_reports(self.reports_folder))

    @property
    def uploads(self) -> Uploads:
        """The uploaded files."""
        return self.saved.uploads

    @property
    def reports_folder(self) -> Path:
        """The folder where `ragistry compare` writes reports."""
        return self.workspace.path_of(self.workspace.settings.data_dir) / EVALUATION / "reports"

    def folder(self, name: str) -> Path:
        """Return the path of a folder that a visitor named.

        Raises:
            SourceError: The folder does not exist, or is outside the allowed roots.
        """
        if not name:
            raise SourceError("the path of the folder is empty; enter a path")
        try:
            path = (self.workspace.root / Path(name).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise SourceError(f"{name[:200]!r} is not a path ({error}); check it") from error
        if not any(path.is_relative_to(root) for root in self.roots):
            allowed = ", ".join(map(str, self.roots))
            raise SourceError(f"{name!r} is outside {allowed}; start `ragistry ui` with --root {name!r} to allow it")
        if not path.is_dir():
            raise SourceError(f"folder {name!r} does not exist; check the path")
        return path

    def forget_uploads(self, sources: Iterable[SourceInfo]) -> None:
        """Delete the uploaded files of deleted sources.

        Files that a source still uses stay, because another window may have moved the source meanwhile.
        """
        self.uploads.forget(info.source_path for info in sources)


async def in_thread(work: Callable[P, Result], *args: P.args, **options: P.kwargs) -> Result:
    """Run a function that reads files or calls a model in a thread."""
    return await asyncio.to_thread(work, *args, **options)
