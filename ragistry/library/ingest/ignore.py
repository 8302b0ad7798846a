"""Decide which files of a folder are ignored: by ``.gitignore`` and ``.ignore``, by a pattern of the user, or by name.

A pattern matches what git matches with it. Git compares bytes, so text has one character for each byte here.
"""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator
from errno import EFBIG
from pathlib import Path
from stat import S_ISREG

from ragistry.errors import SourceError
from ragistry.library.ingest.report import Failure

IGNORE_FILES = (".ignore", ".gitignore")
"""Names of the files with patterns in folders."""
_REPOSITORY = ".git"
_RANKS = ("--exclude", *IGNORE_FILES, f"{_REPOSITORY}/info/exclude")
"""Where patterns come from, the strongest first."""
RULES = tuple(f"/{name}" for name in _RANKS[1:])
"""How the paths of the files with patterns end."""
FILLED_BY_PROGRAMS: dict[str, frozenset[str]] = {
    "node_modules": frozenset(),
    "__pycache__": frozenset(),
    ".tox": frozenset(),
    ".venv": frozenset(),
    "target": frozenset(["Cargo.toml", "pom.xml"]),
    "dist": frozenset(["package.json", "pyproject.toml"]),
}
"""Folders that programs fill; some only count beside one of these files."""
_LARGEST = 1_000_000
"""Maximum size of a file with patterns in bytes."""
_LONGEST = 4_096
"""Maximum length of a pattern, which is that of a path."""

_WILD = re.compile(r"[*?[\\]")
_SUFFIX = re.compile(r"\*\.[^*?[\\/.]*")
_ITEM = r"(?>(?:\\.|ONE)-(?:\\.|[^]\\])|\[:[^]]*:\]|\\.|ONE)"
_FIRST, _MORE = (_ITEM.replace("ONE", one) for one in (r"[^\\]", r"[^]\\]"))
_ITEMS = re.compile(_FIRST, re.DOTALL)
_ENDS = re.compile(r"\\?(.)(?:-\\?(.))?", re.DOTALL)
_SET = rf"\[(?:(?P<negated>[!^])|(?![!^]))(?P<items>{_FIRST}{_MORE}*)\]"
_TOKEN = re.compile(rf"(?P<folders>(?:(?<=/)|\A)\*\*+(?:/|\Z))|\*+|{_SET}|\[.*|\\.|.", re.DOTALL)
_CLASSES = {
    "[:alnum:]": "0-9A-Za-z",
    "[:alpha:]": "A-Za-z",
    "[:blank:]": r" \t",
    "[:cntrl:]": r"\0-\x1f\x7f",
    "[:digit:]": "0-9",
    "[:graph:]": "!-~",
    "[:lower:]": "a-z",
    "[:print:]": " -~",
    "[:punct:]": r"!-/:-@\[-`{-~",
    "[:space:]": r"\t-\r ",
    "[:upper:]": "A-Z",
    "[:xdigit:]": "0-9A-Fa-f",
}
_NEVER = "(?!)"
"""An expression that matches nothing."""
_STAR, _FOLDERS = "\u0100\u0101"
"""Placeholders for ``*`` and ``**/`` while a pattern is translated. They are above 255, so no byte equals them."""
_STAR_BEFORE_STAR = re.compile(f"{_STAR}([^{_STAR}{_FOLDERS}]*)(?={_STAR})")
_FOLDERS_BEFORE_FOLDERS = re.compile(f"{_FOLDERS}([^{_FOLDERS}]*)(?={_FOLDERS})")


class Rules:
    """The patterns of one file. The last one that matches decides.

    Names and suffixes are looked up. The other patterns are joined to one regular expression for each run of patterns
    that ignore, or that do not, so that a file with thousands of patterns stays usable.

    Attributes:
        origin: One of `_RANKS`.
    """

    def __init__(self, patterns: Iterable[str], origin: str, start: int) -> None:
        """``start`` is where the part of a path begins that the patterns describe."""
        self.origin = origin
        self._start = start
        self._literal: dict[str, int] = {}
        runs: dict[int, tuple[list[str], list[str]]] = {}
        run = 1  # odd if its patterns ignore
        for pattern in patterns:
            if len(pattern) > _LONGEST:
                continue
            glob = pattern.removeprefix("!")
            run += (glob == pattern) != run % 2
            end = "/" if glob.endswith("/") else ""
            glob = glob.removesuffix("/")
            is_path = "/" in glob
            glob = glob.removeprefix("/")
            if not _WILD.search(glob) or (not is_path and _SUFFIX.fullmatch(glob)):
                self._literal["/" * is_path + glob + end] = run
            else:
                # No component of a path is empty, so `tmp/*` is not `tmp/`.
                runs.setdefault(run, ([], []))[is_path].append(f"{_regex_of(glob)}(?<!/){end or '/?'}")
        self._globs = [
            (run, is_path, re.compile("|".join(globs), re.DOTALL))
            for run in sorted(runs, reverse=True)
            for is_path, globs in enumerate(runs[run])
            if globs
        ]

    def ignores(self, path: str, end: str) -> bool | None:
        """Return whether a path is ignored, None if no pattern matches; ``end`` is ``/`` for a folder."""
        inside = path[self._start :]
        name = inside[inside.rfind("/") + 1 :]
        keys = [name, f"/{inside}", f"*{name[name.rfind('.') :]}"]
        if end:
            keys += [key + end for key in keys]
        found = max([self._literal.get(key, 0) for key in keys])
        for run, is_path, globs in self._globs:
            if run <= found:
                break
            if globs.fullmatch((inside if is_path else name) + end):
                return run % 2 == 1
        return found % 2 == 1 if found else None


def _regex_of(glob: str) -> str:
    """Translate a pattern with wildcards. As git does, take ``**`` for folders also if it is the first wildcard.

    The text between two ``*`` or ``**/`` is matched at its first place, without backtracking (``(?>``). So the time is
    bounded for every pattern.
    """
    literal = len(_WILD.split(glob)[0])
    regex = re.escape(glob[:literal]) + _TOKEN.sub(_regex_of_token, glob[literal:])
    regex = _STAR_BEFORE_STAR.sub(r"(?>[^/]*?\1)", regex).replace(_STAR, "[^/]*")
    return _FOLDERS_BEFORE_FOLDERS.sub(r"(?>(?:.*?/)??\1)", regex).replace(_FOLDERS, "(?:.*?/)??")


def _regex_of_token(token: re.Match[str]) -> str:
    text = token[0]
    if token["folders"]:
        return _FOLDERS if text.endswith("/") else "(?:(?<!/).*|.+)"
    if not token["items"]:
        known = {"*": _STAR, "?": "[^/]", "[": _NEVER, "\\": _NEVER if len(text) == 1 else re.escape(text[-1])}
        return known.get(text[0]) or re.escape(text)
    found = ""
    for item in _ITEMS.findall(token["items"]):
        if item.startswith("[:"):
            if item not in _CLASSES:
                return _NEVER
            found += _CLASSES[item]
        elif ends := _ENDS.fullmatch(item):  # git takes the first one also of a range from high to low
            first, last = ends[1], ends[2] or ends[1]
            found += f"{re.escape(first)}-{re.escape(max(first, last))}"
    return f"(?!/)[{'^' if token['negated'] else ''}{found}]"


def _patterns_in(data: bytes) -> Iterator[str]:
    for line in data.removeprefix(BOM_UTF8).decode("latin-1").split("\n"):
        if not line.startswith("#"):
            pattern = line.removesuffix("\r").partition("\0")[0]
            trimmed = pattern.rstrip(" ")
            escapes = len(trimmed) - len(trimmed.rstrip("\\"))
            yield trimmed + " " * (trimmed != pattern and escapes % 2)


def _as_bytes(text: str) -> str:
    return text if text.isascii() else os.fsencode(text).decode("latin-1")


class Ignored:
    """What is ignored below a folder. A walk from the top enters its folders.

    Args:
        root: The folder. The rules of its parents count up to the root of their repository, unless they ignore it.
        exclude: Patterns of the user.
        failed: Gets the files with patterns that cannot be read.
    """

    def __init__(self, root: Path, exclude: Iterable[str], failed: list[Failure]) -> None:
        real = Path(os.path.realpath(root))
        self._top, self._inside, self._failed = _place(real), len(str(root / "a")) - 1, failed
        patterns = [_as_bytes(one) for one in exclude if one]
        self._rules = {root.parent: [*_rules(patterns, "--exclude", self._top), *self._rules_above(real)]}

    def enter(self, folder: Path, names: Collection[str]) -> Callable[[str, str], str]:
        """Return a function that returns why a file or subfolder is ignored; empty if it is not.

        Args:
            folder: The folder, after the folder that contains it.
            names: Names of its files and subfolders.
        """
        inside = folder.as_posix()[self._inside :]
        place = self._top + _as_bytes(f"{inside}/") if inside else self._top
        rules = self._rules[folder] = self._with_files(folder, place, names, self._rules[folder.parent])

        def why(name: str, end: str) -> str:
            if rules and (decided := _decided(rules, place + _as_bytes(name), end)) is not None:
                return decided
            beside = FILLED_BY_PROGRAMS.get(name) if end else None
            return f"in {name}" if beside is not None and (not beside or not beside.isdisjoint(names)) else ""

        return why

    def _rules_above(self, real: Path) -> list[Rules]:
        """Read the files of the folders above, from the root of the repository on."""
        rules: list[Rules] = []
        above = [real, *real.parents]
        top = next((number for number, folder in enumerate(above) if os.path.lexists(folder / _REPOSITORY)), 0)
        for number in range(top, 0, -1):
            names = (*IGNORE_FILES, *([_REPOSITORY] if number == top else []))
            rules = self._with_files(above[number], _place(above[number]), names, rules)
            if _decided(rules, _place(above[number - 1])[:-1], "/"):
                return []
        return rules

    def _with_files(self, folder: Path, place: str, names: Collection[str], rules: list[Rules]) -> list[Rules]:
        """Add the rules of a folder: of equal rank, the deepest come first. A repository has its own rules of git."""
        if _REPOSITORY in names:
            rules = [one for one in rules if one.origin in _RANKS[:2]]
        for name in _RANKS[1:]:
            if name.partition("/")[0] in names:
                rules = [*_rules(self._read(folder / name), name, place), *rules]
        return sorted(rules, key=lambda one: _RANKS.index(one.origin))

    def _read(self, path: Path) -> list[str]:
        """Return the patterns of a file. As git does, follow no link."""
        try:
            status = path.lstat()
            if status.st_size > _LARGEST:
                raise OSError(EFBIG, os.strerror(EFBIG))
            return list(filter(None, _patterns_in(path.read_bytes()))) if S_ISREG(status.st_mode) else []
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            reason = f"{str(path)!r} cannot be read, so what it ignores is read: {error.strerror}; make it readable"
            self._failed.append(Failure(str(path), SourceError(reason)))
            return []


def _rules(patterns: list[str], origin: str, place: str) -> list[Rules]:
    return [Rules(patterns, origin, len(place))] if patterns else []


def _place(folder: Path) -> str:
    """Return the path of a folder, as bytes, with a ``/`` at its end."""
    return _as_bytes(f"{folder.as_posix().rstrip('/')}/")


def _decided(rules: Iterable[Rules], path: str, end: str) -> str | None:
    """Return why the first rules with a pattern for a path ignore it; empty if they do not, None without a pattern."""
    for one in rules:
        if (ignores := one.ignores(path, end)) is not None:
            return f"ignored by {one.origin}" if ignores else ""
    return None
