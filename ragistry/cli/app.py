"""The commands together, and the one place where an error becomes a line and an exit code."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ragistry.cli import (
    ask,
    backup,
    collections,
    compare,
    config,
    demo,
    doctor,
    ingest,
    init,
    maintenance,
    mcp,
    repo,
    route,
    search,
    serve,
    skill,
    sources,
    store,
    technique,
    techniques,
    testset,
    ui,
)
from ragistry.cli.options import DebugOption, path
from ragistry.cli.output import error_line
from ragistry.cli.streams import make_robust
from ragistry.errors import RagistryError

app = typer.Typer(
    name="ragistry",
    help="Name a retrieval technique, ingest once, ask, and see which technique is better on your documents.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo.demo)
app.command()(init.init)
app.command()(ingest.ingest)
app.add_typer(collections.app, name="collections")
app.add_typer(sources.app, name="sources")
app.add_typer(repo.app, name="repo")
app.command()(search.search)
app.command()(ask.ask)
app.command()(route.route)
app.command(context_settings={"allow_extra_args": True})(techniques.techniques)
app.add_typer(technique.app, name="technique")
app.command()(config.config)
app.command()(doctor.doctor)
app.command()(maintenance.verify)
app.command()(maintenance.repair)
app.command()(maintenance.reembed)
app.command()(backup.backup)
app.command()(backup.restore)
app.add_typer(store.app, name="store")
app.command()(mcp.mcp)
app.command()(skill.skill)
app.command()(ui.ui)
app.add_typer(serve.app, name="serve")
app.command()(compare.compare)
app.add_typer(testset.app, name="testset")


def _version(wanted: bool) -> None:
    if wanted:
        from ragistry import __version__

        typer.echo(f"ragistry {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    workspace: Annotated[
        Path,
        typer.Option("--workspace", "-w", help="Folder of the workspace.", envvar="RAGISTRY_WORKSPACE", parser=path),
    ] = Path(),
    debug: DebugOption = False,
    version: bool = typer.Option(  # noqa: ARG001, its callback prints
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    """Options that may stand before a command; those after it win."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)
    defaults = {"workspace": workspace, "folder": workspace, "debug": debug}
    command = context.command.get_command(context, context.invoked_subcommand)  # type: ignore[attr-defined] # a group
    below = dict.fromkeys(getattr(command, "commands", {}), defaults)
    context.default_map = {context.invoked_subcommand: defaults | below}


def run() -> None:
    """Run a command. Exit codes: 0 done, 1 not (or only in part), 2 used wrongly, 130 interrupted; `ingest` has 3.

    A reader of our output that goes away changes none of them.
    """
    make_robust()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s", handlers=[_WarningHandler()])
    debug = "--debug" in sys.argv or bool(os.environ.get("RAGISTRY_DEBUG"))
    try:
        sys.exit(app(prog_name="ragistry", standalone_mode=False))
    except typer.TyperException as error:
        error_line(_usage(error))
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)
    except RagistryError as error:
        if debug:
            raise
        note = _technique_note(error)
        error_line(f"{error} ({note})" if note else str(error))
        sys.exit(1)
    except Exception as error:
        told = _of_technique(error) or (_of_system(error) if isinstance(error, OSError) else None)
        if debug or told is None:
            raise
        error_line(f"{told}; `--debug` shows where")
        sys.exit(1)


def _of_technique(error: Exception) -> str | None:
    """What a technique of the user's raised, and which it was."""
    note = _technique_note(error)
    return note and " ".join(f"{note}: {type(error).__name__}: {error}".split())


def _technique_note(error: Exception) -> str | None:
    """Which technique failed, and at which line of the user's; the innermost, of techniques that build on another."""
    return next((note for note in getattr(error, "__notes__", ()) if note.startswith("technique ")), None)


def _of_system(error: OSError) -> str:
    """What the system refused, and of which file."""
    place = "" if error.filename is None else f"{os.fsdecode(error.filename)!r}: "
    return place + " ".join((error.strerror or str(error) or type(error).__name__).split())


def _usage(error: typer.TyperException) -> str:
    """What was used wrongly, and which help says how, on one line."""
    context: typer.Context | None = getattr(error, "ctx", None)
    command = context.command_path if context else "ragistry"
    return f"{' '.join(error.format_message().split())}{_got(error)} (`{command} --help` says how)"


def _got(error: typer.TyperException) -> str:
    """The value that was refused, where the message of a type leaves it out."""
    from pydantic import ValidationError

    cause = error.__cause__
    return f", got {cause.errors()[0]['input']!r}" if isinstance(cause, ValidationError) else ""


class _WarningHandler(logging.Handler):
    """A warning is one line on standard error, in the same form as an error, and said once."""

    def __init__(self) -> None:
        super().__init__()
        self.said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if record.name.split(".")[0] == "ragistry" and message not in self.said:
            self.said.add(message)
            error_line(message, label=record.levelname.lower())
