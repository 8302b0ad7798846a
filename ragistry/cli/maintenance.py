"""``ragistry verify``, ``repair`` and ``reembed``: maintain the store."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragistry.cli.command import Output, on_workspace
from ragistry.cli.output import console, error_line, progress_bar
from ragistry.errors import StoreError
from ragistry.utils.wording import duration, numbered

if TYPE_CHECKING:
    from ragistry.protocols import LibraryStore
    from ragistry.types import Repair
    from ragistry.workspace import Workspace


@on_workspace()
def verify(opened: Workspace) -> Output:
    """Read every file of the store and report problems. Exit code 1 if there are any.

    Chunks that wait for their vectors after an interrupted ingest are counted, but are not a problem. Sources with
    text that could not be extracted are listed too.
    """
    from ragistry.library.unsearchable import unsearchable_counts, unsearchable_line
    from ragistry.stores.records import waiting_line

    problems = opened.store.verify()
    sources = [] if problems else opened.store.sources()
    waiting = sum(info.waiting for info in sources)
    incomplete = [info for info in sources if info.lost]
    missing = None if problems else unsearchable_counts(opened.library.scope)

    def write() -> None:
        console().print("\n".join(problems or ["no problems found"]))
        for info in incomplete:
            error_line(f"{info.source_file!r} of collection {info.collection!r}: {info.lost}", label="incomplete")
        if waiting:
            error_line(waiting_line(waiting), label="note")
        if missing:
            error_line(unsearchable_line(opened.library.scope), label="note")
        if problems:
            error_line("`ragistry repair` rebuilds indexes and saves what can be read", label="note")

    rows = [{"collection": info.collection, "source_file": info.source_file, "lost": info.lost} for info in incomplete]
    values: dict[str, Any] = {"problems": problems, "incomplete": rows, "waiting": waiting}
    values["unsearchable"] = None if missing is None else missing.total()
    return Output(values, write, int(bool(problems)))


@on_workspace()
def repair(
    opened: Workspace,
    discard: Annotated[
        bool, typer.Option("--discard", help="Only remove the damaged files kept by earlier repairs.")
    ] = False,
) -> Output:
    """Rebuild damaged indexes, and copy every readable row from a damaged database.

    The damaged database is kept next to the new one. Exit code 1 if anything was lost.
    """
    store = opened.store
    if discard:
        removed: list[str] = getattr(store, "discard_kept", list)()  # only stores that can repair have it
        lines = [f"removed: {path}" for path in removed] or ["no damaged files to remove"]
        return Output({"discarded": removed}, "\n".join(lines))
    paths = _paths(store)
    done = store.repair()
    lines = [*(f"rebuilt: {line}" for line in done.rebuilt), *(f"lost: {line}" for line in done.lost)]
    lines += _again(done, paths | _paths(store))
    if done.kept:
        lines.append(f"kept: {done.kept}; it may hold deleted text; `ragistry repair --discard` removes it")
    sources = [{"collection": collection, "source_file": name} for collection, name in done.again]
    return Output(
        {"rebuilt": done.rebuilt, "lost": done.lost, "again": sources, "kept": done.kept},
        "\n".join(lines or ["nothing was broken"]),
        int(bool(done.lost)),
    )


@on_workspace()
def reembed(opened: Workspace, as_json: bool) -> Output:
    """Embed every chunk with the configured embedder; searches use the old vectors until all new ones exist.

    An interrupted run continues where it stopped. A line says how many chunks there are and about how long it takes.
    """
    from ragistry.library.embedding import reembed, reembed_seconds

    seconds, chunks = reembed_seconds(opened.store, opened.embedder), opened.store.count()
    if seconds is not None:
        error_line(
            f"embedding {numbered(chunks, 'chunk[|s]')} takes at most about {duration(seconds)} on this machine",
            label="note",
        )
    with progress_bar(not as_json) as progress:
        chunks = reembed(opened.store, opened.embedder, progress)
    model = opened.embedder.fingerprint.model
    return Output({"chunks": chunks, "model": model}, f"{numbered(chunks, 'chunk[|s]')} embedded with {model}")


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
