"""List the files of a folder that an ingest reads.

Ignored files (`ignore`) and the files that this program writes are left out. A link may lead to files that the
folder's owner never meant to share. So links that lead out of the folder are left out and reported, unless the caller
follows links.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ragistry.config.settings import CONFIG_FOLDER
from ragistry.errors import SourceError, SourceNotFoundError
from ragistry.library.ingest.ignore import FILLED_BY_PROGRAMS, Ignored
from ragistry.library.ingest.own_files import STORE_FILES, is_data_folder, is_own_file, is_store_file, without_data
from ragistry.library.ingest.report import Failure, is_surprising, left_out_kinds
from ragistry.library.ingest.source import MisnamedFile, SourceFile, source_file, start_of
from ragistry.library.ingest.zip_folder import ZIP, is_zip, members_of
from ragistry.readers.formats import CONVERTED, INSTALL_LIBREOFFICE, UNREAD_FORMATS, is_readable, suffix_of
from ragistry.readers.text_files import is_document, is_media, is_worth_reading, kind_of, sample_of
from ragistry.utils.wording import agreeing, numbered

SHOWN = 3
"""Maximum number of links and sources in a message."""


def check_not_empty(path: str | os.PathLike[str]) -> None:
    """Raise `SourceError` for an empty path.

    It would mean the current folder, and usually comes from an unset variable.
    """
    if not str(path).strip():
        raise SourceError(f"the path {str(path)!r} is empty; name a file or folder, '.' for the current folder")


def check_path(path: str | Path) -> None:
    """Check that a path exists and is reachable.

    Raises:
        SourceNotFoundError: The path does not exist.
        SourceError: The path is empty or unreachable.
    """
    check_not_empty(path)
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceNotFoundError(f"no such file or folder: {os.fspath(path)!r}; check the path") from error
    except (OSError, ValueError) as error:
        raise SourceError(f"{str(path)!r} cannot be read: {error}; check the path and its permissions") from error


def is_folder(path: str | Path) -> bool:
    """Return whether a path is a folder, or a zip file, which is read as a folder."""
    return Path(path).is_dir() or is_zip(path)


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a folder, and what was left out.

    Attributes:
        root: The folder.
        all_files: See `list_folder`.
        files: Readable files.
        failed: Subfolders and zip files that could not be listed.
        links: Links that lead out of the folder, or nowhere.
        unread: Number of files for each suffix of `UNREAD_FORMATS`.
        left_out: Names of other files that are not read (`text_files`), and of ignored files and folders (`ignore`).
        counts: Number of these files by suffix, or by the reason why they are ignored.
        special: Devices, pipes and sockets, which are never opened, and members of zip files of the same name.
        own: Files of this program.
    """

    root: Path
    all_files: bool = False
    files: list[SourceFile] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    links: list[Path] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    special: list[Failure] = field(default_factory=list)
    own: list[Path] = field(default_factory=list)

    def add(self, path: Path, name: str) -> None:
        """Add a file, or the members of a zip file."""
        file = source_file(str(path), name)
        if suffix_of(path) != ZIP or isinstance(file, MisnamedFile):
            self.files.append(file)
            return
        try:
            found = members_of(str(path), name, all_text=self.all_files)
        except SourceError as error:
            self.failed.append(Failure(str(path), error))
            return
        if found.is_backup:
            self.own.append(path)
        self.files.extend(found.members)
        self.unread.update(found.unread)
        for left_out in found.left_out:
            self.leave_out(*left_out)
        self.special.extend(found.failed)

    def leave_out(self, name: str, reason: str, files: int = 1) -> None:
        """Count a file, or the files of a folder, that are not read."""
        self.left_out.append(name)
        self.counts[reason] += files

    @property
    def complete(self) -> bool:
        """Whether the whole folder was listed, so that unlisted files do not exist."""
        return not self.failed

    def warnings(self) -> list[str]:
        """Return warnings about links and unsupported formats, one line each."""
        return [
            *self._links_warnings(),
            *([unread_warning(self.root, self.unread)] if self.unread else []),
        ]

    def _links_warnings(self) -> Iterator[str]:
        links = []
        for link in self.links:
            target = os.path.realpath(link)
            if _is_broken(link):
                nowhere = f"{str(link)!r} is a link that leads nowhere (to {target!r})"
                yield f"{nowhere} and was left out; repair or remove it"
            else:
                links.append(f"{str(link)!r} to {target!r}")
        if links:
            more = ", …" if len(links) > SHOWN else ""
            left_out = numbered(len(links), "of its links [leads out of it and was|lead out of it and were] left out")
            yield (
                f"{str(self.root)!r}: {left_out} ({', '.join(links[:SHOWN])}{more}); ingest what "
                f"{agreeing(len(links), '[it leads|they lead]')} to by itself, or all of it with "
                "`ragistry ingest --follow-links`"
            )


def list_folder(
    folder: str | Path, *, follow_links: bool = False, all_files: bool = False, exclude: Iterable[str] = ()
) -> Listing:
    """List the files below a folder that an ingest reads, ordered by name.

    These are the files of supported formats, and text of any suffix that is worth reading (`text_files`). Hidden files,
    ignored ones (`ignore`) and files of this program (`is_own_file`) are left out. A zip file counts as a folder, in
    which nothing is ignored. A link to a folder that is listed anyway adds nothing, so loops of links end.

    Args:
        folder: Path of the folder.
        follow_links: Enter links that lead out of the folder.
        all_files: List ignored files too, and all text, also keys, lock files, source maps, minified and encoded text.
        exclude: Patterns of files to ignore.

    Raises:
        SourceNotFoundError: The folder does not exist.
        SourceError: The folder is unreachable.
    """
    check_path(folder)
    root = Path(folder)
    if is_zip(root):
        listing = Listing(root, all_files)
        listing.add(root, root.name)
        return listing
    if not root.is_dir():
        raise SourceNotFoundError(f"no such folder: {os.fspath(folder)!r} is a file; check the path")
    listing = Listing(root, all_files)
    for path in sorted(_Walk(root, follow_links, listing, exclude).files()):
        listing.add(path, path.relative_to(root).as_posix())
    listing.links.sort()
    return listing


def files_of(folder: str | Path) -> list[SourceFile]:
    """List the files of a folder; see `list_folder`.

    Raises:
        SourceError: The folder has no readable file.
    """
    listing = list_folder(folder)
    if not listing.files:
        raise nothing_readable(listing)
    return listing.files


def without_covered(paths: Sequence[str | Path], listed: Callable[[str | Path], Listing]) -> list[str | Path]:
    """Remove duplicates, and files that one of the given folders contains.

    A path remains if the listing of the folder does not include it, such as a hidden or ignored file. A folder that
    contains only files of this program is removed too, unless it is the only path: a shell expands ``*`` to it.

    Args:
        paths: The paths.
        listed: Lists a folder as the ingest does.

    Raises:
        SourceError: A folder is unreachable.
    """
    paths = list({Path(path).absolute(): path for path in paths}.values())
    paths = [path for path in paths if not _is_own(path)] or paths
    folders = [start_of(path) for path in paths if is_folder(path)]
    inner = [path for path in paths if os.path.realpath(path).startswith(tuple(folders))]
    if not inner:
        return list(paths)
    outer = [path for path in paths if path not in inner and is_folder(path)]
    files = partial(_files, listed=listed)
    covered = {file for path in outer for file in files(path)}
    return [path for path in paths if path not in inner or not files(path) <= covered]


def _files(path: str | Path, listed: Callable[[str | Path], Listing]) -> set[str]:
    return {file.place for file in listed(path).files} if is_folder(path) else {os.path.realpath(path)}


def _is_own(path: str | Path) -> bool:
    """Return whether a folder contains only files of this program."""
    if not Path(path).is_dir() or not (Path(path).name == CONFIG_FOLDER or is_data_folder(path)):
        return False
    listing = list_folder(path, all_files=True)
    return not (listing.files or listing.failed or listing.links)


def nothing_readable(listing: Listing) -> SourceError:
    """Return the error for a folder without a readable file."""
    if listing.own:
        return SourceError(
            f"{os.fspath(listing.root)!r} contains only configuration files of a workspace, which are not ingested; "
            "put documents in the folder"
        )
    counts = listing.unread + listing.counts
    has = f", only {left_out_kinds(counts)}" if counts else ""
    if is_surprising(counts):
        has += "; ignored files, keys, lock files, minified and encoded text are read with --all"
    return SourceError(
        f"no readable files in {os.fspath(listing.root)!r}{has}; put PDFs, Office documents, Markdown or text in it"
    )


class _Walk:
    """Walks a folder, and enters each subfolder once.

    If a subfolder is also the target of a link, it is entered under its own name.
    """

    def __init__(self, root: Path, follow_links: bool, listing: Listing, exclude: Iterable[str]) -> None:
        self.root = root
        self.real_root = os.path.realpath(root)
        self.follow_links = follow_links
        self.listing = listing
        self._entered = {self.real_root}
        self._ignored = None if listing.all_files else Ignored(root, exclude, listing.special)

    def files(self) -> Iterator[Path]:
        for directory, folders, names in os.walk(self.root, onerror=self._unlisted, followlinks=self.follow_links):
            here, has_store = Path(directory), STORE_FILES.issubset(names)
            why = self._ignored.enter(here, {*folders, *names}) if self._ignored else lambda *_: ""
            entered, folders[:] = sorted(without_data(folders, names)), []
            for name in entered:
                if name.startswith(".") and name not in FILLED_BY_PROGRAMS:
                    continue
                path = here / name
                if reason := why(name, "/"):
                    self.listing.leave_out(self._name(path), reason, _files_in(path))
                elif self._enters(path):
                    folders.append(name)
            for name in names:
                path = here / name
                # Office programs name their lock files ~$NAME.
                if name.startswith((".", "~$")) or (has_store and is_store_file(name)):
                    continue
                if reason := why(name, ""):
                    self.listing.leave_out(self._name(path), reason)
                    continue
                if not self._takes(path):
                    continue
                suffix = suffix_of(name)
                if suffix in UNREAD_FORMATS and not is_readable(suffix):
                    self.listing.unread[suffix] += 1
                    continue
                is_known = is_readable(suffix) or suffix == ZIP
                if is_known and _is_special(path):
                    error = SourceError(f"{str(path)!r} is a device, pipe or socket; it is not read")
                    self.listing.special.append(Failure(str(path), error))
                elif is_known and is_own_file(path):
                    self.listing.own.append(path)
                elif suffix == ZIP or is_document(name) or not (kind := self._unwanted(path, is_known)):
                    yield path
                else:
                    self.listing.leave_out(self._name(path), kind)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _unwanted(self, path: Path, is_known: bool) -> str:
        """Return the kind of a file that is left out. If it cannot be opened, the reader of its suffix reports it."""
        all_files = self.listing.all_files
        if not is_known and (_is_special(path) or (is_media(path.name) and not all_files)):
            return kind_of(path.name)
        try:
            with path.open("rb", buffering=0) as stream:
                size = os.fstat(stream.fileno()).st_size
                sample = sample_of(stream, size, is_known=is_known)
        except (OSError, ValueError):
            return "" if is_known else kind_of(path.name)
        is_wanted = is_worth_reading(path.name, sample, size, all_text=all_files)
        return "" if is_wanted else kind_of(path.name, sample)

    def _enters(self, folder: Path) -> bool:
        if not self.follow_links:
            return self._takes(folder)  # os.walk does not enter links, and the target is listed anyway
        real = os.path.realpath(folder)
        if real in self._entered or (self._is_inside(real) and real != self._own(folder)):
            return False
        self._entered.add(real)
        return True

    def _takes(self, path: Path) -> bool:
        if not _is_link(path) or (
            not _is_broken(path) and (self.follow_links or self._is_inside(os.path.realpath(path)))
        ):
            return True
        self.listing.links.append(path)
        return False

    def _is_inside(self, real: str) -> bool:
        return Path(real).is_relative_to(self.real_root)

    def _own(self, folder: Path) -> str:
        """Return the path that the folder has if no link led to it."""
        return str(Path(self.real_root) / folder.relative_to(self.root))

    def _unlisted(self, error: OSError) -> None:
        reason = f"cannot list {error.filename!r}: {error.strerror}; make the folder readable"
        self.listing.failed.append(Failure(str(error.filename), SourceError(reason)))


def _files_in(folder: Path) -> int:
    """Count the files of a folder that are not hidden. None of a link, whose target may be anywhere."""
    count = 0
    for _, folders, names in () if _is_link(folder) else os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        count += sum(not name.startswith(".") for name in names)
    return count


def _is_special(path: Path) -> bool:
    """Return whether a path is a device, pipe or socket, which may block readers."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # the reader reports it
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _is_broken(link: Path) -> bool:
    try:
        link.stat()
    except PermissionError:  # the reader reports it
        return False
    except OSError:
        return True
    return False


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:  # the folder allows listing, but no access to its files; the reader reports it
        return False


def unread_warning(folder: Path, unread: Counter[str]) -> str:
    """Describe the files that were left out, by suffix, the most frequent first."""
    number = unread.total()
    left_out = numbered(number, "of its files [has|have] a format that is not read and [was|were] left out")
    counts = sorted(unread.items(), key=lambda item: (-item[1], item[0]))
    return (
        f"{str(folder)!r}: {left_out} ({', '.join(f'{count:,} {suffix}' for suffix, count in counts)}); "
        f"convert {agreeing(number, '[it|them]')} to PDF, Markdown or plain text"
        + (f", or {INSTALL_LIBREOFFICE}" if CONVERTED.keys() & unread.keys() else "")
    )
