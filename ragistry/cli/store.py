"""``ragistry store copy``: move a library from one store to another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragistry.cli.command import Output, command_group, on_workspace
from ragistry.cli.options import checked
from ragistry.cli.output import console, error_line, progress_bar
from ragistry.errors import ConfigError, InvalidConfigError
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.config.resolve import StoreEntry
    from ragistry.library.copying import CopyReport
    from ragistry.workspace import Workspace

SHOWN = 20
"""Number of printed differences; --json has all."""

app = command_group("Copy a library between stores.")


def _parsed(name: str, text: str) -> str | dict[str, Any]:
    from ragistry.utils.urls import split_login
    from ragistry.utils.yaml_tree import parse_yaml

    try:
        entry = parse_yaml(text, name).data
    except InvalidConfigError:
        entry = None
    if isinstance(entry, dict) and isinstance(entry.get("use"), str) and all(isinstance(key, str) for key in entry):
        for value in entry.values():
            login = split_login(value)[1] if isinstance(value, str) and "://" in value else None
            if login is not None and login.password and not login.password.startswith("${"):
                raise ConfigError(
                    f"{name} has a password in it, which others can read in the list of processes; put the address "
                    "into a variable and write '${NAME}' in single quotes"
                )
        return entry
    if isinstance(entry, str):
        return entry
    raise ConfigError(
        f"{name} is not a store: {text!r}; write a name such as local, or '{{use: chroma, path: FOLDER}}'"
    )


@app.command()
@on_workspace()
def copy(
    opened: Workspace,
    as_json: bool,
    source: Annotated[
        str,
        typer.Argument(
            metavar="FROM",
            help="A store, written as the value of `store:` in vector_stores.yaml.",
            callback=checked(partial(_parsed, "FROM")),
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="TO", help="The target store, written likewise.", callback=checked(partial(_parsed, "TO"))
        ),
    ],
    prune: Annotated[bool, typer.Option("--prune", help="Remove sources from TO that FROM does not have.")] = False,
) -> Output:
    """Copy the library, with its vectors, from one store of a workspace to another, and compare the two.

    FROM and TO are values of `store:` in config/vector_stores.yaml: `local`, '{use: chroma, path: .ragistry/chroma}',
    '{use: postgres, url: "${DATABASE_URL}"}'. A name alone means the configured store if it is of that kind, else one
    with default settings. `${NAME}` is an environment variable; write it in single quotes, so that the list of
    processes shows no password.

    Nothing is embedded again. Run the command again to continue an interrupted copy, and to copy what changed since.
    The configuration does not change. Exit code 1 if the two stores differ at the end.
    """
    from ragistry.config.problems import Problems
    from ragistry.config.resolve import resolve
    from ragistry.library.copying import copy_library
    from ragistry.stores.registry import choose_store

    resolved, problems = resolve(opened.root), Problems()
    choices = [
        choose_store(_entry(text, name, opened.root, resolved), problems)
        for text, name in ((source, "FROM"), (target, "TO"))
    ]
    problems.report()
    if choices[0] == choices[1]:
        raise ConfigError(f"FROM and TO are the same store: {source!r} and {target!r}; name two")
    with closing(opened.open_store(choices[0])) as old:
        if not old.count():
            raise ConfigError(f"the store FROM, {source!r}, is empty; name the store that holds the library")
        with closing(opened.open_store(choices[1])) as new, progress_bar(not as_json) as progress:
            report = copy_library(old, new, prune=prune, progress=progress)

    def write() -> None:
        _print(report)
        if target != resolved.settings.store:
            entry = target if target.lstrip().startswith("{") else f"{{use: {target}}}"
            console().print(
                f"to use it: set `store: {entry}` in config/vector_stores.yaml "
                f"(the store is {resolved.settings.store!r} now, by {resolved.origins['store']})"
            )
        if "text" in choices[0].abilities - choices[1].abilities:
            error_line(
                "that store does not search words: techniques such as bm25 and hybrid need another", label="note"
            )
        if report.differences:
            error_line("run the same command again to copy what changed meanwhile", label="note")

    values = {name: getattr(report, name) for name in report.__slots__}
    return Output(values, write, int(bool(report.differences)))


def _entry(text: str, name: str, root: Path, resolved: Any) -> StoreEntry:
    """Return the store named by FROM or TO. Raises `ConfigError`."""
    from ragistry.config.folder import folder_of
    from ragistry.config.resolve import StoreEntry, store_entry
    from ragistry.config.settings import CHROMA
    from ragistry.config.yaml_file import fill_in

    entry = _parsed(name, text)
    if isinstance(entry, str):
        if entry == resolved.settings.store:
            return store_entry(root, resolved)
        entry = {"use": entry}
    config = fill_in({key: value for key, value in entry.items() if key != "use"}, [name], _variable)
    if entry["use"] == CHROMA and "host" not in config:
        folder = config.get("path") or f"{resolved.settings.data_dir}/chroma"
        config["path"] = str(folder_of(root, str(folder)))
    return StoreEntry(entry["use"], config, {"use": name})


def _variable(name: str, keys: Sequence[str | int]) -> str:
    if not (found := os.environ.get(name, "").strip()):
        raise ConfigError(f"{'.'.join(map(str, keys))}: the environment variable {name!r} is not set; set it")
    return found


def _print(report: CopyReport) -> None:
    for line in report.differences[:SHOWN]:
        error_line(line, label="differs")
    if len(report.differences) > SHOWN:
        error_line(f"and {len(report.differences) - SHOWN:,} more; --json has all", label="differs")
    removed = f", {report.removed:,} removed" if report.removed else ""
    verdict = f"{numbered(len(report.differences), 'difference[|s]')}" if report.differences else "both sides are equal"
    console().print(
        f"{numbered(report.copied, 'source[|s]')} copied, {report.skipped:,} equal already{removed}: "
        f"{numbered(report.chunks, 'chunk[|s]')} compared, {verdict}"
    )
