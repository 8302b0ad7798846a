"""``ragistry verify``, ``repair`` and ``reembed``: maintain the store."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.options import DebugOption, JsonOption, WorkspaceOption
from ragistry.cli.output import console, error_line, print_json, progress_bar
from ragistry.errors import StoreError
from ragistry.utils.wording import duration, numbered

if TYPE_CHECKING:
    from ragistry.protocols import LibraryStore
    from ragistry.types import Repair


def verify(
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Read every file of the store and report problems. Exit code 1 if there are any.

    Chunks that wait for their vectors after an interrupted ingest are counted, but are not a problem. Sources with
    text that could not be extracted are listed too.
    """
    from ragistry.stores.records import waiting_line
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        problems = opened.store.verify()
        if not as_json:
            _print(problems or ["no problems found"])
        sources = [] if problems else opened.store.sources()
        waiting = sum(info.waiting for info in sources)
    incomplete = [info for info in sources if info.lost]
    if as_json:
        rows = [
            {"collection": info.collection, "source_file": info.source_file, "lost": info.lost} for info in incomplete
        ]
        print_json({"problems": problems, "incomplete": rows, "waiting": waiting})
    else:
        for info in incomplete:
            error_line(f"{info.source_file!r} of collection {info.collection!r}: {info.lost}", label="incomplete")
    if waiting and not as_json:
        error_line(waiting_line(waiting), label="note")
    if problems:
        error_line("`ragistry repair` rebuilds indexes and saves what can be read", label="note")
        raise typer.Exit(1)


def repair(
    discard: Annotated[
        bool, typer.Option("--discard", help="Only remove the damaged files kept by earlier repairs.")
    ] = False,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Rebuild damaged indexes, and copy every readable row from a damaged database.

    The damaged database is kept next to the new one. Exit code 1 if anything was lost.
    """
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        if discard:
            _discard(opened.store, as_json)
            return
        paths = _paths(opened.store)
        done = opened.store.repair()
        again = _again(done, paths | _paths(opened.store))
    if as_json:
        sources = [{"collection": collection, "source_file": name} for collection, name in done.again]
        print_json({"rebuilt": done.rebuilt, "lost": done.lost, "again": sources, "kept": done.kept})
    else:
        lines = [*(f"rebuilt: {line}" for line in done.rebuilt), *(f"lost: {line}" for line in done.lost), *again]
        if done.kept:
            lines.append(f"kept: {done.kept}; it may hold deleted text; `ragistry repair --discard` removes it")
        _print(lines or ["nothing was broken"])
    if done.lost:
        raise typer.Exit(1)


def reembed(
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Embed every chunk with the configured embedder; searches use the old vectors until all new ones exist.

    An interrupted run continues where it stopped. A line says how many chunks there are and about how long it takes.
    """
    from ragistry.library.embedding import reembed, reembed_seconds
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        seconds, chunks = reembed_seconds(opened.store, opened.embedder), opened.store.count()
        if seconds is not None:
            error_line(
                f"embedding {numbered(chunks, 'chunk[|s]')} takes at most about {duration(seconds)} on this machine",
                label="note",
            )
        with progress_bar(not as_json) as progress:
            chunks = reembed(opened.store, opened.embedder, progress)
        model = opened.embedder.fingerprint.model
    if as_json:
        print_json({"chunks": chunks, "model": model})
    else:
        console().print(f"{numbered(chunks, 'chunk[|s]')} embedded with {model}")


def _discard(store: LibraryStore, as_json: bool) -> None:
    discard: Callable[[], list[str]] = getattr(store, "discard_kept", list)  # only stores that can repair have it
    removed = discard()
    if as_json:
        print_json({"discarded": removed})
    else:
        _print([f"removed: {path}" for path in removed] or ["no damaged files to remove"])


def _paths(store: LibraryStore) -> dict[tuple[str, str], str]:
    """Return the path of each source's file; empty if the store cannot be read."""
    with suppress(StoreError):
        return {(info.collection, info.source_file): info.source_path for info in store.sources()}
    return {}


def _again(done: Repair, paths: Mapping[tuple[str, str], str]) -> list[str]:
    """Return a line for each incomplete source, with the command that ingests it again."""
    from ragistry.library.ingest.zip_folder import archive_of

    lines = []
    for collection, name in done.again:
        path = paths.get((collection, name), name)
        path = str(archive_of(path) or path)
        command = f"`{shlex.join(['ragistry', 'ingest', path, '--collection', collection])}`"
        how = command if path else "it was added as a text, not as a file"
        lines.append(f"ingest again: {name!r} of collection {collection!r}: {how}")
    return lines


def _print(lines: list[str]) -> None:
    for line in lines:
        console().print(line)
