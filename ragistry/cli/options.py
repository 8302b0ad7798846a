"""Options that every command has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

WorkspaceOption = Annotated[
    Path,
    typer.Option("--workspace", "-w", help="Folder of the workspace.", envvar="RAGISTRY_WORKSPACE", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
