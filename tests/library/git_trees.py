"""Git repositories made by a test: written by the `git` program, so that they are what users have."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

WHO = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "Test"), ("EMAIL", "test@example.org"), ("DATE", "2025-09-30T14:00:00Z"))
}


def git(folder: Path, *words: str) -> str:
    """Run `git` without anybody's settings, and return what it prints."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", **WHO}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def write(folder: Path, files: Mapping[str, str | None]) -> None:
    """Write files; None removes one."""
    for name, text in files.items():
        path = folder / name
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def commit(folder: Path, files: Mapping[str, str | None] = {}, message: str = "pages") -> str:
    """Write files, commit everything, and return the commit's id."""
    write(folder, files)
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")
