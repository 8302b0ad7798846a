"""``ragistry ingest``: add files, folders, web pages and standard input to a collection."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ragistry.cli.collections import all_collections
from ragistry.cli.command import show
from ragistry.cli.confirm import YesOption, ask_yes_no, confirm
from ragistry.cli.flags import FlagsError, refuse_all_but, refuse_together, refuse_without
from ragistry.cli.options import JsonOption, WorkspaceOption, checked, collection_option, display_name_of
from ragistry.cli.options import path as given_path
from ragistry.cli.output import console, error_line, print_json, progress_bar
from ragistry.cli.sources import delete_source, listed_sources
from ragistry.cli.watch import changes_in, follow
from ragistry.errors import CollectionNotFoundError
from ragistry.library.ingest.methods import ProgressObserver
from ragistry.library.ingest.report import left_out_line, report_as_mapping
from ragistry.plugins import resolve_object
from ragistry.utils.metadata import parse_assignments
from ragistry.utils.urls import is_url
from ragistry.utils.wording import agreeing, closest, did_you_mean, listed, numbered

if TYPE_CHECKING:
    from ragistry.library.ingest.report import IngestReport
    from ragistry.protocols import Engine
    from ragistry.types import Progress
    from ragistry.workspace import Workspace


UNREAD = 3
"""Exit code if only files of unsupported formats were skipped."""
STDIN = "-"


def _path_or_url(word: str) -> Path | str:
    """Parse a path; a URL and ``-`` stay text. The file ``-`` is ``./-``."""
    return word if word == STDIN or is_url(word) else given_path(word)


def ingest(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH|URL|-",
            help="Files, folders, zip files, web pages; -: standard input.",
            parser=_path_or_url,
            show_default=False,
        ),
    ] = None,
    collection: Annotated[
        str | None,
        collection_option("Name of the collection."),
    ] = None,
    create: Annotated[
        str | None, typer.Option("--create", metavar="DESCRIPTION", help="Create the collection, with a description.")
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete sources whose files are gone from an ingested folder, after asking.")
    ] = False,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Follow links that lead out of an ingested folder.")
    ] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="PATTERN",
            help="Leave out what a pattern of .gitignore names in a folder, now and later; '' ends that.",
            show_default=False,
        ),
    ] = None,
    all_files: Annotated[
        bool, typer.Option("--all", help="Read ignored files, keys, lock files and encoded text of folders too.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a source of the same name that came from another file.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="FILE",
            help="Name of the source on standard input; its suffix gives the format.",
            show_default=False,
        ),
    ] = None,
    meta: Annotated[
        list[str] | None,
        typer.Option(
            "--meta",
            metavar="KEY=VALUE",
            help="Metadata to set on every source: a number, true, false, a date or text; KEY:=JSON.",
            show_default=False,
            callback=checked(lambda values: parse_assignments(values or ())),
        ),
    ] = None,
    allow_private: Annotated[bool, typer.Option("--allow-private", help="Fetch pages from private addresses.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Ingest changes in the folders until Ctrl-C.")] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="List the collections; with --collection, the sources of one.")
    ] = False,
    delete: Annotated[
        str | None, typer.Option("--delete", metavar="FILE", help="Delete a source of --collection.")
    ] = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option("--engine", help="Where to run the work: local or ray.")
    ] = "local",
    ray_address: Annotated[
        str | None,
        typer.Option(
            "--ray-address",
            metavar="HOST:PORT",
            help="The Ray cluster; auto: the one on this machine (default: a new one for this command).",
        ),
    ] = None,
    yes: YesOption = False,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Add files, folders and web pages to a collection. Unchanged files are skipped.

    In a terminal, the command asks before it makes a collection; --create makes it without asking. The first one of a
    workspace is made without a question.

    A file that cannot be read does not stop the others. Exit code 1 if a source failed or --prune was refused, 3 if
    files of unsupported formats were skipped.
    """
    from ragistry.workspace import open_workspace

    if bool(paths) + listing + (delete is not None) != 1:
        raise FlagsError("give exactly one of paths, --list and --delete FILE")
    common = ("collection", "as_json", "workspace")
    if listing:
        refuse_all_but(context, "--list", "listing", *common)
    if delete is not None:
        refuse_all_but(context, "--delete", "delete", "yes", *common)
    refuse_together(context, "watch", "as_json")
    refuse_together(context, "all_files", "exclude")
    if not prune:
        refuse_without(context, "delete", "yes")
    refuse_without(context, "collection", "create")
    if delete is not None and collection is None:
        raise FlagsError(f"--delete needs the collection of {delete!r}; add --collection NAME")
    sources: list[Any] = list(paths or ())  # URLs and `-` among them
    if sources:
        _check_folders(
            sources, watch, {"--prune": prune, "--follow-links": follow_links, "--all": all_files, "--exclude": exclude}
        )
        _check_input(sources, name)
    if allow_private and not any(map(is_url, sources)):
        raise FlagsError("--allow-private does nothing without the address of a page; add one, or remove it")
    if ray_address is not None and engine == "local":
        raise FlagsError("--ray-address does nothing without --engine ray; add it, or remove --ray-address")
    with open_workspace(workspace, existing=not paths) as opened:
        if paths:
            given = _with_input(sources, name, opened)
            changes = changes_in(paths) if watch else iter([set[str]()])
            next(changes)  # changes are recorded from here on, also while the first files are read
            options: dict[str, Any] = {"follow_links": follow_links, "all_files": all_files, "exclude": exclude}
            options |= {"replace": replace, "allow_private": allow_private, "metadata": parse_assignments(meta or ())}
            with _ended_in_order():
                with _opened_engine(engine, ray_address) as workers:
                    into, report, told = _ingest(opened, given, collection, create, as_json, workers, **options)
                try:
                    if prune:
                        _prune(opened, report, into, yes)
                finally:  # the ingested sources stay, whatever the answer
                    _tell(opened, report, into, as_json, prune=prune, told=told)
                if watch:
                    _follow(opened, paths, into, report, changes, prune=prune, **options)
                    return
            if report.failed:
                raise typer.Exit(1)
            if report.unread:
                raise typer.Exit(UNREAD)
        elif delete is None and collection is None:
            show(all_collections(opened), as_json)
        elif delete is None:
            show(listed_sources(opened, collection), as_json)
        else:
            assert collection is not None  # checked above
            show(delete_source(opened, delete, collection, yes), as_json)


@contextmanager
def _opened_engine(name: str, ray_address: str | None) -> Iterator[Engine | None]:
    """Open the engine that the options name; None for this process. Ray prints to standard error."""
    if name == "local":
        yield None
        return
    with redirect_stdout(sys.stderr), resolve_object("ragistry.engines.ray:RayEngine")(ray_address) as engine:
        yield engine


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let SIGTERM end the block by an exception, as Ctrl-C does, so that it cleans up."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:  # the parent process has set another action
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _ingest(
    opened: Workspace,
    paths: list[Any],
    collection: str | None,
    create: str | None,
    as_json: bool,
    engine: Engine | None,
    **options: Any,
) -> tuple[str, IngestReport, int]:
    name, is_new = _collection(
        opened, paths, collection, create, all_files=options["all_files"], exclude=options["exclude"] or ()
    )
    report = None
    try:
        with progress_bar(not as_json) as progress:
            observer = _EarlyWarnings(progress, as_json)
            report = opened.library.ingest_paths(paths, name, **options, observer=observer, engine=engine)
    except (KeyboardInterrupt, SystemExit):
        from ragistry.stores.records import waiting_line

        if waiting := sum(info.waiting for info in opened.store.sources()):
            error_line(waiting_line(waiting), label="interrupted")
        raise
    finally:
        # A collection that was created for these files is deleted if none was ingested.
        if is_new and (report is None or report.failed) and not opened.library.list_sources(name):
            opened.library.delete_collection(name)
    return name, report, observer.told


class _EarlyWarnings(ProgressObserver):
    """Prints the warnings that are known before texts are embedded; ``told`` is their number."""

    def __init__(self, progress: Progress | None, quiet: bool) -> None:
        super().__init__(progress)
        self.quiet, self.told = quiet, 0

    def planned(self, report: IngestReport) -> None:
        if not self.quiet:
            _print_warnings(report.warnings[self.told :])
        self.told = len(report.warnings)


def _follow(
    opened: Workspace,
    paths: list[Path],
    collection: str,
    first: IngestReport,
    changes: Iterator[set[str]],
    *,
    prune: bool,
    **options: Any,
) -> None:
    """Ingest changes until Ctrl-C, and print the totals."""
    error_line(f"{', '.join(map(str, paths))}; Ctrl-C ends", label="watching")

    def take(changed: set[str]) -> IngestReport:
        return opened.library.ingest_paths(paths, collection, changed=changed, prune=prune, **options)

    total = follow(changes, take, partial(_tell, opened, collection=collection, as_json=False, prune=prune), first)
    console().print(f"watched {_counts(total, collection)}")


def _prune(opened: Workspace, report: IngestReport, collection: str, yes: bool) -> None:
    """Delete sources whose files are gone, after asking: an unmounted disk looks the same."""
    gone = _vanished_sources(report)
    if gone:
        named = ", ".join(gone[:5]) + (", …" if len(gone) > 5 else "")
        sources = numbered(len(gone), "source[|s]")
        confirm(f"{sources} of collection {collection!r} no longer in the folder ({named})", yes)
        opened.library.delete_sources(gone, collection)
        report.deleted.extend(gone)


def _vanished_sources(report: IngestReport) -> list[str]:
    """Return the stored sources whose files are gone from the folder and were not found elsewhere."""
    left = {*report.added, *report.updated, *report.skipped, *report.deleted}
    return [name for name in dict.fromkeys(report.vanished) if name not in left]


def _tell(
    opened: Workspace, report: IngestReport, collection: str, as_json: bool, *, prune: bool, told: int = 0
) -> None:
    """Print a report, without its first ``told`` warnings, and how many files are not searchable."""
    from ragistry.library.unsearchable import unsearchable_line

    if as_json:
        print_json(report_as_mapping(report, collection))
    else:
        _print_warnings(report.warnings[told:])
        _print(report, collection, prune=prune)
        kept = [entry.name for entry in opened.library.collections.entries()]  # of a new one, only if it has a source
        if collection in kept and (line := unsearchable_line(opened.library.scope, collection)):
            error_line(line, label="note")
    sys.stdout.flush()  # a watch continues


def _collection(
    opened: Workspace, paths: list[Any], name: str | None, create: str | None, **options: Any
) -> tuple[str, bool]:
    """Return the collection, and whether it was created.

    It is created with --create, as the first of the workspace, or if the person at the terminal agrees.
    """
    known = [entry.name for entry in opened.library.collections.entries()]
    if name is None:
        if len(known) != 1:
            raise CollectionNotFoundError(f"choose a collection with --collection NAME{_existing_collections(opened)}")
        return known[0], False
    if name not in known:
        from ragistry.readers.formats import with_readers

        with with_readers(opened.reading.readers):
            _check_paths(paths, **options)
        if create is None and known:
            name = _ask_for_collection(name, known, paths)
            if name in known:
                return name, False
        opened.library.create_collection(name, create or "", display_name_of(name))
        return name, True
    if create and not opened.library.collections.entry(name).description:
        opened.library.update_description(name, create)
    elif create is not None:
        error_line(f"collection {name!r} exists; its description stays", label="note")
    return name, False


def _ask_for_collection(name: str, known: list[str], paths: list[Any]) -> str:
    """Ask whether to create a collection, or whether an existing one was meant, and return its name.

    Raises `CollectionNotFoundError` without a terminal to ask on.
    """
    is_source = not all(isinstance(path, Path | str) for path in paths)  # standard input is read, not asked
    if is_source or not sys.stdin.isatty():
        others = did_you_mean(name, known) or f"; there are {listed(known)}"
        raise CollectionNotFoundError(f"no collection {name!r}{others}; to make it, run: {_command('--create', '')}")
    close = closest(name, known)
    # Enter alone never adds documents to a collection that was not typed.
    if close is not None and ask_yes_no(f"There is no collection {name!r}. Did you mean {close!r}?", default=False):
        return close
    if ask_yes_no(f"Make collection {name!r}?", default=True):
        return name
    error_line("nothing was ingested", label="note")
    raise typer.Exit(1)


def _command(*more: str) -> str:
    """Return the command that runs, with more options."""
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    return shlex.join(["ragistry", *words[:end], *more, *words[end:]])


def _existing_collections(opened: Workspace) -> str:
    return f"; there are {', '.join(entry.name for entry in opened.library.collections.entries()) or 'none yet'}"


def _check_folders(paths: list[Any], watch: bool, options: dict[str, Any]) -> None:
    """Refuse options of folders if only files are given, as when a shell expands ``folder/*``."""
    from ragistry.library.ingest.folder import is_folder
    from ragistry.library.ingest.folder_sync import absence
    from ragistry.library.ingest.zip_folder import is_zip

    others = [path for path in paths if isinstance(path, str) or not (absence(str(path)) or is_folder(path))]
    files = [*others, *(path for path in paths if isinstance(path, Path) and is_zip(path))]
    for option in (name for name, value in options.items() if value):
        if len(files if option == "--exclude" else others) == len(paths):
            raise FlagsError(
                f"{option} does nothing without a folder, and {str(paths[0])!r} is a file; name its folder"
            )
    if watch and files:
        raise FlagsError(
            f"--watch needs folders, and {str(files[0])!r} is a file or page; give its folder, or remove --watch"
        )


def _check_input(paths: list[Any], name: str | None) -> None:
    """Refuse a name without standard input, and standard input without a name."""
    if STDIN not in paths and name is not None:
        raise FlagsError("--name does nothing without `-`, which reads standard input")
    if STDIN in paths and name is None:
        raise FlagsError("give standard input a name with the suffix of its format: --name notes.md")


def _with_input(paths: list[Any], name: str | None, opened: Workspace) -> list[Any]:
    """Return the paths, with the bytes of standard input in place of ``-``."""
    if name is None:
        return paths
    from ragistry.errors import SourceError
    from ragistry.library.ingest.source import SourceBytes

    limit = opened.reading.limits.bytes
    data = sys.stdin.buffer.read(limit + 1)
    if len(data) > limit:
        raise SourceError(f"standard input has more than {limit:,} bytes, the limit; raise limits.megabytes")
    return [*(path for path in paths if path != STDIN), SourceBytes(data, name)]


def _check_paths(paths: list[Any], **options: Any) -> None:
    """Refuse paths without a readable file, before a collection is created for them."""
    from ragistry.library.ingest.folder import check_path, list_folder, nothing_readable

    for path in paths:
        if isinstance(path, Path):
            check_path(path)
    listing = None
    for path in paths:
        if not isinstance(path, Path) or path.is_file():
            return
        listing = list_folder(path, **options)
        # The targets of links are not listed: they may be large or unwanted.
        if listing.files or listing.links or listing.failed or listing.special:
            return
    if listing is not None:
        raise nothing_readable(listing)


def _print_warnings(warnings: Sequence[str]) -> None:
    for warning in warnings:
        error_line(warning, label="warning")


def _print(report: IngestReport, collection: str, *, prune: bool) -> None:
    if line := left_out_line(report):
        error_line(line, label="left out")
    for failure in report.failed:
        error_line(failure.error, label="failed")
    gone = _vanished_sources(report)
    if gone and not prune:
        removes = agreeing(len(gone), "--prune removes [it|them]")
        error_line(f"{len(gone):,} no longer in the folder: {', '.join(gone[:5])}; {removes}", label="warning")
    console().print(_counts(report, collection))


def _counts(report: IngestReport, collection: str) -> str:
    counts = [
        f"{len(sources)} {word}"
        for word, sources in (
            ("added", report.added),
            ("updated", report.updated),
            ("skipped", report.skipped),
            ("deleted", report.deleted),
            ("failed", report.failed),
        )
    ]
    chunks = f"{numbered(report.chunks, 'chunk[|s]')} written"
    if report.embedded > report.chunks:  # also those that waited after an interrupted ingest
        chunks += f", {report.embedded:,} embedded"
    return f"{collection}: {', '.join(counts)} ({chunks})"
