"""The commands together, and the one place where an error becomes a line and an exit code."""

from __future__ import annotations

import logging
import os
import sys

import typer

from ragistry.cli import config, doctor, ingest, init, maintenance, search, techniques
from ragistry.cli.output import error_line
from ragistry.errors import RagistryError

app = typer.Typer(
    name="ragistry",
    help="Name a retrieval technique, ingest once, ask, and see which technique is better on your documents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(init.init)
app.command()(ingest.ingest)
app.command()(search.search)
app.command()(techniques.techniques)
app.command()(config.config)
app.command()(doctor.doctor)
app.command()(maintenance.verify)
app.command()(maintenance.repair)
app.command()(maintenance.reembed)


def _version(wanted: bool) -> None:
    if wanted:
        from ragistry import __version__

        typer.echo(f"ragistry {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    """Options of every command."""


def run() -> None:
    """Run a command. Exit codes: 0 done, 1 not (or only in part), 2 used wrongly, 130 interrupted."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s", handlers=[_WarningHandler()])
    debug = "--debug" in sys.argv or bool(os.environ.get("RAGISTRY_DEBUG"))
    try:
        app()
    except RagistryError as error:
        if debug:
            raise
        error_line(str(error))
        sys.exit(1)
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


class _WarningHandler(logging.Handler):
    """A warning is one line on standard error, in the same form as an error."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.split(".")[0] == "ragistry":
            error_line(record.getMessage(), label=record.levelname.lower())
