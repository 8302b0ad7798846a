"""``ragistry ingest``: take files and folders into a collection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragistry.cli.options import DebugOption, JsonOption, WorkspaceOption
from ragistry.cli.output import console, counted, error_line, print_json, progress_bar

if TYPE_CHECKING:
    from ragistry.library.report import IngestReport
    from ragistry.workspace import Workspace


def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders.")],
    collection: Annotated[str | None, typer.Option("--collection", "-c", help="Name of the collection.")] = None,
    create: Annotated[
        str | None, typer.Option("--create", metavar="DESCRIPTION", help="Make the collection, with a description.")
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Remove what is no longer in an ingested folder.")] = False,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Take files and folders into a collection. Unchanged files cost nothing; a bad file does not stop the rest.

    Exit code 1 where a file could not be taken in.
    """
    from ragistry.workspace import open_workspace

    with open_workspace(workspace) as opened:
        name = _collection(opened, paths, collection, create)
        with progress_bar(not as_json) as progress:
            report = opened.library.ingest_paths(paths, name, prune=prune, progress=progress)
    if as_json:
        print_json(_as_json(report, name))
    else:
        _print(report, name)
    if report.failed:
        raise typer.Exit(1)


def _collection(opened: Workspace, paths: list[Path], name: str | None, create: str | None) -> str:
    """The collection to write to, made where the caller asks for it or where the workspace has none yet."""
    from ragistry.errors import CollectionNotFoundError

    known = [entry.name for entry in opened.library.collections.entries()]
    if name is None:
        if len(known) != 1:
            raise CollectionNotFoundError(
                f"say which collection with --collection NAME; there are {', '.join(known) or 'none yet'}"
            )
        return known[0]
    if name not in known and (create is not None or not known):
        _check_paths(paths)
        opened.library.create_collection(name, create or "")
    elif name in known and create is not None:
        error_line(f"collection {name!r} exists; its description stays", label="note")
    return name


def _check_paths(paths: list[Path]) -> None:
    """Refuse what leads to no file, before a collection is made for it."""
    from ragistry.errors import SourceNotFoundError
    from ragistry.library.source import nothing_readable, readable_files

    for path in paths:
        if not path.exists():
            raise SourceNotFoundError(f"no such file or folder: {str(path)!r}; check the path")
    if not any(path.is_file() or readable_files(path) for path in paths):
        raise nothing_readable(paths[0])


def _as_json(report: IngestReport, collection: str) -> dict[str, Any]:
    return {
        "collection": collection,
        "added": report.added,
        "updated": report.updated,
        "skipped": report.skipped,
        "deleted": report.deleted,
        "failed": [{"source": failure.source, "error": failure.error} for failure in report.failed],
        "vanished": report.vanished,
        "warnings": report.warnings,
        "chunks": report.chunks,
        "embedded": report.embedded,
    }


def _print(report: IngestReport, collection: str) -> None:
    for warning in report.warnings:
        error_line(warning, label="warning")
    for failure in report.failed:
        error_line(failure.error, label="failed")
    gone = [name for name in report.vanished if name not in report.deleted]
    if gone:
        error_line(f"{len(gone)} no longer in the folder: {', '.join(gone[:5])}; --prune removes them", label="warning")
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
    console().print(f"{collection}: {', '.join(counts)} ({counted(report.chunks, 'chunk')} written)")
