"""Options that every command has.

``ragistry --workspace FOLDER COMMAND`` and ``RAGISTRY_WORKSPACE`` give the workspace of commands that name none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

WorkspaceOption = Annotated[
    Path,
    typer.Option("--workspace", "-w", help="Folder of the workspace [RAGISTRY_WORKSPACE].", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
