"""The command that adds an optional part to this installation of Ragistry."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

if TYPE_CHECKING:
    from importlib.metadata import Distribution

NAME = "ragistry"


def install_command(extra: str = "") -> str:
    """Return a shell command that installs Ragistry's dependencies, or those of an extra, for this copy.

    It names the folder, file or URL that this copy was installed from. If that is unknown or no longer exists, it names
    the packages.

    Args:
        extra: Name of an extra of the package, such as ``ui``.
    """
    if find_spec("pip") is None and shutil.which("uv"):
        command = ["uv", "pip", "install", "--python", sys.executable]
    else:
        command = [sys.executable or "python3", "-m", "pip", "install"]
    command += _requirements(_distribution(), extra)
    return subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command)


def _distribution() -> Distribution | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution(NAME)
    except PackageNotFoundError:
        return None


def _requirements(installed: Distribution | None, extra: str) -> list[str]:
    """Return the arguments of ``pip install``."""
    extras = f"[{extra}]" if extra else ""
    if installed is None:
        clone = Path(__file__).resolve().parents[2]
        return ["--editable", f"{clone}{extras}"] if (clone / "pyproject.toml").is_file() else [f"{NAME}{extras}"]
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    url = urlsplit(origin.get("url", ""))
    if url.scheme == "file":
        path = Path(url2pathname(url.path))
        if path.exists():
            is_editable = origin.get("dir_info", {}).get("editable", False)
            return [*(["--editable"] if is_editable else []), f"{path}{extras}"]
    elif url.scheme:
        return [f"{NAME}{extras} @ {_pip_url(origin)}"]
    return _packages(installed.requires or [], extra)


def _pip_url(origin: dict[str, dict[str, str]]) -> str:
    """Return the URL of a download or of a commit, as pip reads it."""
    url = str(origin["url"])
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    return f"{url}#subdirectory={origin['subdirectory']}" if "subdirectory" in origin else url


def _packages(requirements: list[str], extra: str) -> list[str]:
    """Return the requirements of an extra, or those without one, without their conditions."""
    found = []
    for requirement in requirements:
        package, _, condition = requirement.partition(";")
        needed_by = re.search(r"extra\s*==\s*['\"]([^'\"]+)", condition)
        if (needed_by[1] if needed_by else "") == extra:
            found.append(package.strip())
    return found
