"""``ragistry verify``, ``repair`` and ``reembed``: the files of the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ragistry.cli.options import DebugOption, JsonOption, WorkspaceOption
from ragistry.cli.output import console, error_line, print_json, progress_bar
from ragistry.utils.urls import public_url
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.stores.local import LocalStore
    from ragistry.workspace import Workspace


def verify(
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Read every file of the store and say what is wrong. Exit code 1 where something is.

    Where another process is writing, or the folder cannot be written, only the database is read; a warning says so.
    """
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        found = _local(opened).verify()
    _tell(found, "problems", "all is well", as_json)
    if found:
        error_line("`ragistry repair` makes what can be made again", label="note")
        raise typer.Exit(1)


def repair(
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Make again every index that is broken, and say what has to be ingested again."""
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        found = _local(opened).repair()
    _tell(found, "repaired", "nothing was broken", as_json)


def reembed(
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Embed every chunk with the embedder that is configured now; the old vectors serve until all is done.

    An attempt that was interrupted is gone on with.
    """
    from ragistry.library.reembed import reembed as run
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        store: Any = _local(opened, "set `collection` in documents.yaml to another name and ingest again")
        with progress_bar(not as_json) as progress:
            groups = run(store, opened.embedder, progress)
        model = opened.embedder.fingerprint.model
    if as_json:
        print_json({"sources": groups, "model": model})
    else:
        console().print(f"{numbered(groups, 'source[|s]')} embedded with {model}")


def _local(opened: Workspace, instead: str = "use the server's own tools") -> LocalStore:
    from ragistry.errors import StoreError
    from ragistry.stores.local import LocalStore

    store = opened.store
    if not isinstance(store, LocalStore):
        raise StoreError(
            f"the library lies on the Chroma server {public_url(opened.settings.chroma_host or '')!r}, which keeps its "
            f"own files; {instead}, or take out chroma_host ({opened.origins['chroma_host']}) for the local store"
        )
    return store


def _tell(found: list[str], name: str, well: str, as_json: bool) -> None:
    if as_json:
        print_json({name: found})
        return
    for line in found:
        console().print(line)
    if not found:
        console().print(well)
