"""The command that adds an optional part to this installation of Ragistry."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

NAME = "ragistry"
FOLDER = Path(__file__).resolve().parents[2]
"""The folder with the package: a clone, or where installed packages are."""


def install_command(extra: str = "") -> str:
    """Return a shell command that installs Ragistry's dependencies, or those of an extra, for this copy.

    It names the clone that this copy is part of, else the packages.

    Args:
        extra: Name of an extra of the package, such as ``ui``.
    """
    if find_spec("pip") is None and shutil.which("uv"):
        command = ["uv", "pip", "install", "--python", sys.executable]
    else:
        command = [sys.executable or "python3", "-m", "pip", "install"]
    if (FOLDER / "pyproject.toml").is_file():
        command += ["--editable", f"{FOLDER}[{extra}]" if extra else str(FOLDER)]
    else:
        command += _packages(extra)
    return subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command)


def _packages(extra: str) -> list[str]:
    """Return the requirements of an extra, or those without one, without their conditions."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        required = requires(NAME) or []
    except PackageNotFoundError:
        return [f"{NAME}[{extra}]" if extra else NAME]
    found = []
    for requirement in required:
        package, _, condition = requirement.partition(";")
        needed_by = re.search(r"extra\s*==\s*['\"]([^'\"]+)", condition)
        if (needed_by[1] if needed_by else "") == extra:
            found.append(package.strip())
    return found
