"""``ragistry store copy``: move a library from one store to another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragistry.cli.options import DebugOption, JsonOption, WorkspaceOption
from ragistry.cli.output import console, error_line, print_json, progress_bar
from ragistry.errors import ConfigError, InvalidConfigError
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.config.resolve import StoreEntry
    from ragistry.library.copying import CopyReport

SHOWN = 20
"""Number of printed differences; --json has all."""

app = typer.Typer(help="Copy a library between stores.")


@app.command()
def copy(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="A store, written as the value of `store:` in vector_stores.yaml.")
    ],
    target: Annotated[str, typer.Argument(metavar="TO", help="The target store, written likewise.")],
    prune: Annotated[bool, typer.Option("--prune", help="Remove sources from TO that FROM does not have.")] = False,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
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
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        resolved, problems = resolve(workspace), Problems()
        choices = [
            choose_store(_entry(text, name, workspace, resolved), problems)
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
        lost = choices[0].abilities - choices[1].abilities
    if as_json:
        print_json({name: getattr(report, name) for name in report.__slots__})
    else:
        _print(report)
        if target != resolved.settings.store:
            console().print(
                f"to use it: set `store: {_as_entry(target)}` in config/vector_stores.yaml "
                f"(the store is {resolved.settings.store!r} now, by {resolved.origins['store']})"
            )
        if "text" in lost:
            error_line(
                "that store does not search words: techniques such as bm25 and hybrid need another", label="note"
            )
    if report.differences:
        error_line("run the same command again to copy what changed meanwhile", label="note")
        raise typer.Exit(1)


def _entry(text: str, name: str, root: Path, resolved: Any) -> StoreEntry:
    """Return the store named by FROM or TO. Raises `ConfigError`."""
    from ragistry.config.folder import folder_of
    from ragistry.config.resolve import StoreEntry, store_entry
    from ragistry.config.settings import CHROMA
    from ragistry.config.yaml_file import fill_in

    entry = _parsed(text, name)
    if isinstance(entry, str):
        if entry == resolved.settings.store:
            return store_entry(root, resolved)
        entry = {"use": entry}
    for value in entry.values():
        _check_no_password(value, name)
    config = fill_in({key: value for key, value in entry.items() if key != "use"}, [name], _variable)
    if entry["use"] == CHROMA and "host" not in config:
        folder = config.get("path") or f"{resolved.settings.data_dir}/chroma"
        config["path"] = str(folder_of(root, str(folder)))
    return StoreEntry(entry["use"], config, {"use": name})


def _parsed(text: str, name: str) -> str | dict[str, Any]:
    from ragistry.utils.yaml_tree import parse_yaml

    try:
        entry = parse_yaml(text, name).data
    except InvalidConfigError:
        entry = None
    if isinstance(entry, dict) and isinstance(entry.get("use"), str) and all(isinstance(key, str) for key in entry):
        return entry
    if isinstance(entry, str):
        return entry
    raise ConfigError(
        f"{name} is not a store: {text!r}; write a name such as local, or '{{use: chroma, path: FOLDER}}'"
    )


def _variable(name: str, keys: Sequence[str | int]) -> str:
    if not (found := os.environ.get(name, "").strip()):
        raise ConfigError(f"{'.'.join(map(str, keys))}: the environment variable {name!r} is not set; set it")
    return found


def _check_no_password(value: object, name: str) -> None:
    from ragistry.utils.urls import split_login

    login = split_login(value)[1] if isinstance(value, str) and "://" in value else None
    if login is not None and login.password and not login.password.startswith("${"):
        raise ConfigError(
            f"{name} has a password in it, which others can read in the list of processes; put the address into a "
            "variable and write '${NAME}' in single quotes"
        )


def _as_entry(text: str) -> str:
    return text if text.lstrip().startswith("{") else f"{{use: {text}}}"


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
