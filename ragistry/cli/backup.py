"""``ragistry backup`` and ``ragistry restore``: save a workspace to one file, and restore it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.command import Output, on_workspace
from ragistry.cli.options import JsonOption
from ragistry.cli.options import path as given_path
from ragistry.cli.output import console, error_line, print_json, progress_bar
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.workspace import Workspace

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.", parser=given_path)]


@on_workspace()
def backup(
    opened: Workspace,
    as_json: bool,
    file: FileArgument,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> Output:
    """Write the workspace to one zip file: configuration, library, documentation repositories.

    Other processes may keep reading and writing: the backup has each source as it was before or after a change. It has
    no passwords if the configuration names them as `${NAME}`; config/tokens.yaml has only hashes. Indexes, uploads,
    jobs and reports of comparisons are left out.
    """
    from ragistry.library.backup import write_backup
    from ragistry.stores.records import waiting_line

    with progress_bar(not as_json) as progress:
        repositories = opened.repositories.root
        report = write_backup(file, opened.root, opened.store, repositories, force=force, progress=progress)

    def write() -> None:
        console().print(
            f"wrote {file} ({report.size:,} bytes): {numbered(report.sources, 'source[|s]')} with "
            f"{numbered(report.chunks, 'chunk[|s]')}, {numbered(len(report.repositories), 'repositor[y|ies]')}"
        )
        if report.waiting:
            error_line(waiting_line(report.waiting), label="note")

    return Output({"file": str(file)} | {name: getattr(report, name) for name in report.__slots__}, write)


def restore(
    file: FileArgument,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="An empty or new folder.", parser=given_path)],
    as_json: JsonOption = False,
) -> None:
    """Restore a backup as a workspace in a new folder: completely, or not at all if the file is damaged.

    If it is killed, the folder cannot be used; run the command again; it starts from the beginning.

    The restored library is in the local store of that folder, whichever store it was in before.
    """
    from ragistry.config.resolve import resolve
    from ragistry.config.settings import LOCAL, Settings
    from ragistry.library.backup import restore_backup
    from ragistry.utils.wording import local_time

    manifest = restore_backup(file, folder)
    if as_json:
        print_json({"folder": str(folder), "program": manifest.program, "created": manifest.created})
    else:
        console().print(f"restored {folder}: made by {manifest.program} on {local_time(manifest.created)}")
    # The settings may name another store or data folder than the restored one.
    resolved, place = resolve(folder), shlex.quote(os.fspath(folder))
    store = resolved.settings.store
    if store != LOCAL:
        error_line(
            f"the library is in the local store, but {resolved.origins['store']} says {store!r}: copy it there with "
            f"`ragistry store copy local {store} -w {place}`, or set `store: {{use: local}}`",
            label="note",
        )
    if resolved.settings.data_dir != Settings.model_fields["data_dir"].default:
        error_line(f"{resolved.origins['data_dir']} sets another data folder; unset it to use {place}", label="note")
