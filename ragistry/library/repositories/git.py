"""Access to the files of a Git clone at a commit.

It runs read-only commands of the `git` program, because users with a clone have it, and it supports all formats of
packs and hashes. Reading a file takes about 4 ms. No file of the working tree is opened, and no file name is passed to
the operating system. So links, submodules and unusual names are harmless, and only committed content is indexed.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from ragistry.errors import SourceError, SourceNotFoundError
from ragistry.readers.formats import MARKDOWN_EXTS
from ragistry.utils.urls import public_url

GIT_SECONDS = 60.0
"""Time limit of one command in seconds."""

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REGULAR = (b"100644", b"100755", b"100664")
"""Modes of regular files; 120000 is a symbolic link, 160000 a submodule."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a clone.

    Attributes:
        folder: The clone, or a folder in it.
        id: Hash of the commit.
        url: Address of ``origin`` without password and query; without one, the path.
    """

    folder: Path
    id: str
    url: str


@dataclass(frozen=True, slots=True)
class Blob:
    """A file at a commit: its path in the repository, the id of its content, and its size in bytes."""

    path: str
    id: str
    size: int


def head(folder: str | os.PathLike[str]) -> Commit:
    """Return the checked-out commit of a clone.

    Raises:
        SourceNotFoundError: The folder does not exist.
        SourceError: The folder is not a clone.
    """
    path = Path(folder).resolve()
    if not path.is_dir():
        raise _no_such_folder(folder)
    commit = _git(path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip()
    if not _COMMIT.fullmatch(commit):
        raise SourceError(
            f"{str(path)!r}: Git reports {commit!r:.80} instead of a commit; check out a branch with a commit"
        )
    try:
        url = _git(path, "config", "--get", "remote.origin.url").decode("utf-8", "backslashreplace").strip()
    except SourceError:
        url = ""
    return Commit(path, commit, (public_url(url) if "://" in url else url) or str(path))


def markdown_files(commit: Commit) -> list[Blob]:
    """List the Markdown files of a commit, ordered by path.

    Hidden folders, links and submodules are left out.
    """
    listing = _git(commit.folder, "ls-tree", "-r", "-z", "-l", "--full-name", commit.id)
    blobs = []
    for line in filter(None, listing.split(b"\0")):
        head, _, name = line.partition(b"\t")
        mode, kind, identity, size = head.split()
        path = name.decode("utf-8", "backslashreplace")
        pure = PurePosixPath(path)
        is_page = pure.suffix.lower() in MARKDOWN_EXTS and not any(part.startswith(".") for part in pure.parts)
        if kind == b"blob" and mode in _REGULAR and is_page:
            blobs.append(Blob(path, identity.decode(), int(size)))
    return sorted(blobs, key=lambda blob: blob.path)


def unchanged(commit: Commit, earlier: str, blobs: Iterable[Blob]) -> set[str]:
    """Return the paths of blobs that an earlier commit also has.

    If the clone lacks that commit, no blob counts as unchanged.
    """
    if not _COMMIT.fullmatch(earlier):
        return set()
    try:
        before = set(markdown_files(replace(commit, id=earlier)))
    except SourceError:
        return set()
    return {blob.path for blob in blobs if blob in before}


def content(commit: Commit, blob: Blob) -> bytes:
    """Read a file."""
    return _git(commit.folder, "cat-file", "blob", blob.id)


def _no_such_folder(folder: str | os.PathLike[str]) -> SourceNotFoundError:
    return SourceNotFoundError(f"no such folder: {os.fspath(folder)!r}; give the folder of a Git clone")


def _git(folder: Path, *words: str) -> bytes:
    command = ["git", "-c", "core.fsmonitor=false", *words]
    try:
        done = subprocess.run(
            command, cwd=folder, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=GIT_SECONDS,
        )  # fmt: skip
    except (FileNotFoundError, NotADirectoryError) as error:
        if not folder.is_dir():
            raise _no_such_folder(folder) from error
        raise SourceError(
            "the program `git` is not installed; install it, or ingest the folder with `ragistry ingest`"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"{str(folder)!r}: `git {words[0]}` took over {GIT_SECONDS:.0f} s; check the disk") from error
    except OSError as error:
        raise SourceError(
            f"{str(folder)!r}: `git` cannot be run there: {error.strerror}; check the permissions"
        ) from error
    if done.returncode:
        reason = (
            " ".join(done.stderr.decode("utf-8", "backslashreplace").split())[:300] or f"exit code {done.returncode}"
        )
        remedy = "give the folder of a Git clone that has a commit"
        if words[0] in ("ls-tree", "cat-file") and _is_partial(folder):
            remedy = "the clone lacks some files; fetch them with `git fetch --refetch --no-filter`"
        raise SourceError(f"{str(folder)!r}: `git {words[0]}` failed ({reason}); {remedy}")
    return done.stdout


def _is_partial(folder: Path) -> bool:
    """Return whether the clone fetches objects on demand (``git clone --filter``)."""
    try:
        return bool(_git(folder, "config", "--get-regexp", r"^remote\..*\.promisor$"))
    except SourceError:
        return False


def _environment() -> dict[str, str]:
    """Return an environment in which git works offline and without questions.

    It also ignores settings of the caller's repository.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    fixed = ("GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT")
    return inherited | dict.fromkeys(fixed, "0") | {"GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1"}
