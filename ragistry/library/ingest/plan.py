"""Plan an ingest: list the sources to read and the missing ones, and refuse invalid paths before any file is read."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypedDict

from ragistry.errors import SourceError, SourceNotFoundError
from ragistry.library.ingest.folder import (
    SHOWN,
    Listing,
    check_path,
    is_folder,
    list_folder,
    nothing_readable,
    without_covered,
)
from ragistry.library.ingest.folder_sync import emptied, gone_from, vanished
from ragistry.library.ingest.ignore import IGNORE_FILES
from ragistry.library.ingest.metadata_tables import TABLES, add_tables
from ragistry.library.ingest.missing import entry
from ragistry.library.ingest.own_files import refuse_own_file
from ragistry.library.ingest.report import Failure, IngestReport, left_out_kinds
from ragistry.library.ingest.source import (
    IngestSource,
    ReadOptions,
    SourceBytes,
    SourceText,
    ToRead,
    fetched,
    read_source,
    source_file,
    start_of,
    with_metadata,
)
from ragistry.library.ingest.source_metadata import MetadataArgument, argument_of
from ragistry.library.ingest.zip_folder import ZIP
from ragistry.readers.extracted import ExtractLimits
from ragistry.readers.formats import UNREAD_FORMATS, is_readable, suffix_of, with_readers
from ragistry.readers.text_files import kind_of
from ragistry.types import Document, Progress, SourceInfo, Unsearchable
from ragistry.utils.urls import is_url
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.library.ingest.methods import IngestObserver
    from ragistry.protocols import Embedder, Engine

Stored = Callable[[Path], Sequence[SourceInfo]]
"""Returns the sources of the collection that may come from a folder, with their places."""
Kept = Callable[[Path], Sequence[str] | None]
"""Returns the patterns of files to exclude that are kept with a folder; None if the store keeps none."""


@dataclass(slots=True)
class PlannedFolder:
    """A folder of a plan.

    Attributes:
        root: The folder.
        files: The files to read.
        gone: Names of vanished sources.
        listing: All files of the folder; None if it was not listed.
        counts: Number of files that are left out, by reason.
        exclude: Patterns to keep with the folder; None to keep those that it has.
    """

    root: Path
    files: list[IngestSource] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    listing: Listing | None = None
    counts: dict[str, int] = field(default_factory=dict)
    exclude: tuple[str, ...] | None = None


@dataclass(slots=True)
class IngestPlan:
    """The work of an ingest, and its progress.

    Attributes:
        collection: Name of the collection.
        sources: Files, texts and pages that were passed one by one.
        folders: Folders and zip files.
        replace: Whether a source may replace another one of the same name.
        prune: Whether to delete sources whose files are gone.
        missing: What could not be listed or fetched.
        report: Refusals, warnings and unsupported formats that are already known. It is completed while the plan is
            carried out, and describes the finished part if an error ends the ingest.
    """

    collection: str
    sources: list[IngestSource] = field(default_factory=list)
    folders: list[PlannedFolder] = field(default_factory=list)
    replace: bool = False
    prune: bool = False
    missing: list[Unsearchable] = field(default_factory=list)
    report: IngestReport = field(default_factory=IngestReport)

    @property
    def all_sources(self) -> list[IngestSource]:
        """All sources to read, in order."""
        return [*self.sources, *(file for folder in self.folders for file in folder.files)]

    @property
    def gone(self) -> list[str]:
        """The names of the sources whose files are gone, without duplicates."""
        return list(dict.fromkeys(name for folder in self.folders for name in folder.gone))


Given = str | Path | SourceText | SourceBytes
"""What is ingested: a path, a URL, a text, or bytes."""


class IngestOptions(TypedDict, total=False):
    """Options of an ingest.

    Attributes:
        prune: Delete sources whose files were below an ingested folder and are gone. Otherwise they are only reported,
            in ``vanished``. Nothing is deleted if a part of the folder cannot be listed, or if the folder has no file,
            because an unmounted disk looks the same.
        follow_links: Enter links that lead out of the folder. Otherwise they are left out with a warning.
        exclude: Patterns of files and folders to leave out of an ingested folder, as in a ``.gitignore`` there. They
            are kept with the folder, for its next ingests too, until others are given; an empty list removes them.
        all_files: Read all files that are text. Otherwise ignored and excluded files, keys and credentials, lock files,
            source maps, minified and encoded text, and text of an unknown format over 5 MB are left out, and counted
            in ``left_out``.
        replace: Replace another source of the same name.
        allow_private: Fetch pages from private addresses too.
        changed: Read only the files of folders at and below these paths; None to read all.
        metadata: Metadata to set on every source, for conditions and display, or a function that returns those of a
            path, or None: text, numbers, true or false, dates, and lists of one of these; None removes a key. Keys that
            were set before stay. See `utils.metadata`.
        progress: Called before each source.
        observer: Follows the ingest in detail, and may cancel it. It replaces ``progress``.
        engine: Engine that reads files and embeds texts; None for this process.
    """

    prune: bool
    follow_links: bool
    exclude: Sequence[str] | None
    all_files: bool
    replace: bool
    allow_private: bool
    changed: Collection[str] | None
    metadata: MetadataArgument
    progress: Progress | None
    observer: IngestObserver | None
    engine: Engine | None


def plan_ingest(
    plan: IngestPlan, given: Sequence[Given], stored: Stored, kept: Kept, limits: ExtractLimits, options: IngestOptions
) -> None:
    """Fill a plan with paths, URLs, texts and bytes; URLs are fetched.

    Args:
        plan: The plan. After an error, it has the folders that were listed.
        given: Files, folders, zip files, URLs, `SourceText` and `SourceBytes`.
        stored: See `Stored`.
        kept: See `Kept`.
        limits: Limits of web pages.
        options: Options of the ingest.

    Raises:
        InvalidMetadataError: Metadata have a reserved key, or a key or value that is not allowed.
        SourceNotFoundError: A path does not exist.
        SourceError: The only path is a folder without a readable file, or a path is a file of this program.
    """
    urls = [one for one in given if isinstance(one, str) and is_url(one)]
    texts = [one for one in given if isinstance(one, SourceText | SourceBytes)]
    paths = [one for one in given if not (isinstance(one, SourceText | SourceBytes) or is_url(one))]
    for path in paths:
        _check_path(plan, path, stored)
    if len(paths) > 1:
        paths = without_covered(paths, lambda path: _listed(path, kept, options))
    for path in paths:
        if is_folder(path):
            try:
                _add_folder(plan, path, stored, kept, limits, options)
            except SourceError as error:
                if len(given) == 1:
                    raise
                plan.report.failed.append(Failure(str(path), error))
                real = Path(os.path.realpath(path))
                plan.missing.append(entry(plan.collection, real.name, str(real), error))
        else:
            refuse_own_file(path)
            plan.sources.append(source_file(os.fspath(path), Path(path).name))
    plan.sources, warnings = add_tables(plan.sources, limits.bytes, alone=True)
    plan.report.warnings += warnings
    plan.sources += texts
    if urls:
        pages, failed = fetched(urls, limits, allow_private=options.get("allow_private", False))
        plan.sources += pages
        plan.report.failed.extend(failed)
        plan.missing += [entry(plan.collection, one.source, one.source, one.error) for one in failed]
    if (metadata := options.get("metadata")) is not None:
        for sources in (plan.sources, *(folder.files for folder in plan.folders)):
            sources[:] = [with_metadata(one, argument=argument_of(metadata, one.shown)) for one in sources]


def read_file(path: str, reading: ReadOptions, embedder: Embedder) -> tuple[list[Document], list[str]]:
    """Read and chunk a file as an ingest does; return its chunks and warnings. Raises what `read_source` raises."""
    refuse_own_file(path)
    [file], warnings = add_tables([source_file(path, Path(path).name)], reading.limits.bytes, alone=True)
    with with_readers(reading.readers):
        read = read_source(ToRead(file), reading, embedder)
    chunks = read.chunks or []
    file.metadata.add_to(chunks, None, path)
    known = {"source_file": file.source_file}
    return [Document(text, metadata | known, 0.0) for text, metadata in chunks], [*warnings, *read.warnings, *read.lost]


def _add_folder(
    plan: IngestPlan, path: str | Path, stored: Stored, kept: Kept, limits: ExtractLimits, options: IngestOptions
) -> None:
    listing, changed = _listed(path, kept, options), options.get("changed")
    planned = PlannedFolder(listing.root, listing=listing, counts=dict(listing.unread + listing.counts))
    plan.folders.append(planned)
    known = stored(listing.root) if listing.complete else []
    gone = vanished(listing, known, follow_links=options.get("follow_links", False))
    unread = _no_longer_read(listing, known)
    if not (listing.files or listing.failed or listing.links or listing.special or gone or unread):
        raise nothing_readable(listing)
    if plan.prune and gone and not listing.files:
        raise emptied(path, plan.collection, gone)
    files, warnings = add_tables(listing.files, limits.bytes)
    if changed is not None:
        starts = tuple(os.path.realpath(_changed(path)) + os.sep for path in changed)
        files = [one for one in files if (one.place + os.sep).startswith(starts)]
    planned.files, planned.gone, planned.exclude = files, gone, _excluded(options)
    if planned.exclude and kept(listing.root) is None:
        warnings.append(f"{str(listing.root)!r}: this store does not keep what --exclude names; name it at each ingest")
    real = os.path.realpath(path)
    for failure in (*listing.failed, *listing.special):
        name = os.path.relpath(failure.source, listing.root)
        place = os.path.normpath(f"{real}/{name}")
        name = Path(place).name if place == real else Path(name).as_posix()
        plan.missing.append(entry(plan.collection, name, place, failure.error))
    plan.report.merge(
        IngestReport(
            failed=[*listing.failed, *listing.special],
            vanished=gone,
            warnings=[*listing.warnings(), *_first_text(listing, known), *unread, *warnings],
            unread=dict(listing.unread),
            left_out=dict(listing.counts),
        )
    )


def _listed(path: str | Path, kept: Kept, options: IngestOptions) -> Listing:
    all_files, exclude = options.get("all_files", False), _excluded(options)
    if exclude is None and not all_files:
        exclude = tuple(kept(Path(path)) or ())
    return list_folder(
        path, follow_links=options.get("follow_links", False), all_files=all_files, exclude=exclude or ()
    )


def _excluded(options: IngestOptions) -> tuple[str, ...] | None:
    """Return the patterns of the options; None to use those that are kept."""
    exclude = options.get("exclude")
    given = [exclude] if isinstance(exclude, str) else exclude
    return None if given is None else tuple(filter(None, given))


def _first_text(listing: Listing, known: Sequence[SourceInfo]) -> list[str]:
    """Announce the first ingest of a known folder that reads text whose suffix is not a format.

    That text was there before the last ingest, which left it out.
    """
    start = start_of(listing.root)
    before = {info.source_file: info.ingested_at for info in known if info.source_path.startswith(start)}
    if not before or not all(map(_is_format, before)):
        return []
    last = max(before.values())
    new = Counter(
        kind_of(one.source_file)
        for one in listing.files
        if not _is_format(one.source_file) and _changed_at(one.path) < last
    )
    if not new:
        return []
    was_there = "of its files [was|were] there at the last ingest and [is|are] read now, as text of any suffix is"
    files = numbered(new.total(), was_there)
    return [f"{str(listing.root)!r}: {files} ({left_out_kinds(new)})"]


def _changed_at(path: str) -> float:
    """Return when a file was written, moved here or renamed, in seconds since 1970."""
    try:
        return Path(path).stat().st_ctime
    except OSError:
        return math.inf


def _is_format(name: str) -> bool:
    suffix = suffix_of(name)
    return is_readable(suffix) or suffix in UNREAD_FORMATS or suffix == ZIP


def _no_longer_read(listing: Listing, known: Sequence[SourceInfo]) -> list[str]:
    """Name the sources whose files are left out now, such as lock files and those of ignored folders."""
    left_out, start = set(listing.left_out), start_of(listing.root)
    names = [info.source_file for info in known if left_out and info.source_path == start + info.source_file]
    names = [repr(one) for one in names if not left_out.isdisjoint([one, *map(str, PurePosixPath(one).parents)])]
    if not names:
        return []
    sources = numbered(len(names), "of its sources [is|are] no longer read and [stays as it was|stay as they were]")
    more = ", …" if len(names) > SHOWN else ""
    return [
        f"{str(listing.root)!r}: {sources} ({', '.join(names[:SHOWN])}{more}); "
        "delete with `ragistry sources delete`, or read with `ragistry ingest --all`"
    ]


def _changed(path: str) -> str:
    """Return the path with the files to read again: of a table of metadata, or of rules to ignore, its folder."""
    return str(Path(path).parent) if Path(path).name.lower() in (*TABLES, *IGNORE_FILES) else path


def _check_path(plan: IngestPlan, path: str | Path, stored: Stored) -> None:
    try:
        check_path(path)
    except SourceNotFoundError as error:
        plan.folders.append(PlannedFolder(Path(path), listing=Listing(Path(path))))
        raise gone_from(path, stored(Path(start_of(path))), error) from error
