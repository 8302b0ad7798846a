"""What a comparison writes: answers that outlive a stop, one TREC run for each technique, and where that may go."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation.answers import Answer
from ragistry.evaluation.data.dataset import Run
from ragistry.evaluation.data.trec import file_name, write_run
from ragistry.utils.suggest import listed
from ragistry.utils.wording import agreeing

NAMED = 3
"""Levels of a key whose parts have a digest each, by which one can say what differs."""
Paths = Mapping[str, str | Path | None]
"""What is written → where; None: it is not asked for."""


class AnswerFile:
    """Answers of one technique, one a line, behind a line that says what they are answers of.

    ``begin_anew``: nothing tells whether the answers that are there are of this very technique, so they are dropped.
    """

    def __init__(self, path: Path, key: dict[str, Any], *, begin_anew: bool = False) -> None:
        self.path = path
        self.begin_anew = begin_anew
        self.head = {"of": dict(_digests(key))}

    def read(self) -> dict[str, Answer]:
        """Query → answer; a line that a stopped process left unfinished is taken off the file.

        Raises `EvaluationError` where the file holds answers of another comparison.
        """
        if not self.path.exists():
            return {}
        lines = self.path.read_bytes().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        if len(whole) < len(lines):
            self.path.write_bytes(b"".join(whole))
        if not whole:
            return {}
        try:
            head, *rows = [json.loads(line) for line in whole]
        except ValueError as error:
            raise EvaluationError(f"{self.path} holds no answers of a comparison: {error}; delete that file") from error
        if head != self.head:
            raise EvaluationError(
                f"{self.path} holds answers of another test set, configuration, code, model, depth or version: "
                f"{self._other(head)}; give another folder, or delete that file"
            )
        if self.begin_anew:
            self.remove()
            return {}
        pairs = ("ranking", "passages")
        return {row["query"]: Answer(**row | {key: list(map(tuple, row[key])) for key in pairs}) for row in rows}

    def _other(self, head: Any) -> str:
        """What the answers of another first line differ in."""
        theirs, ours = head.get("of") if isinstance(head, dict) else None, self.head["of"]
        if not isinstance(theirs, dict):
            return "its first line does not tell which"
        parts = sorted(part for part in theirs.keys() | ours if theirs.get(part) != ours.get(part))
        return f"{listed(parts)} {agreeing(len(parts), '[is|are]')} not the same"

    def remove(self) -> None:
        """Keep nothing."""
        self.path.unlink(missing_ok=True)

    def append(self, answers: Iterable[Answer]) -> None:
        """Add answers; they are kept even if the process is killed the next moment. The last one of a query counts."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists() or not self.path.stat().st_size
        with self.path.open("a", encoding="utf-8") as file:
            for row in [*([self.head] if new else []), *map(asdict, answers)]:
                file.write(json.dumps(row) + "\n")


def _digests(part: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    if isinstance(part, dict) and part and len(path) < NAMED:
        for name, value in part.items():
            yield from _digests(value, (*path, name))
    else:
        yield ".".join(path), sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:32]


def answer_files(
    folder: Path, keys: Mapping[str, dict[str, Any]], begin_anew: Container[str] = ()
) -> dict[str, AnswerFile]:
    """Where the answers of each technique are kept, with their times, which differ from run to run.

    ``begin_anew``: techniques that nothing is resumed of. Raises `EvaluationError` where two would share a file.
    """
    names: dict[str, str] = {}
    for name in keys:
        other = names.setdefault(file_name(name).casefold(), name)
        if other != name:
            raise EvaluationError(f"{other!r} and {name!r} would share the file {file_name(name)}.run; rename one")
    return {
        name: AnswerFile(folder / f"{file_name(name)}.answers.jsonl", key, begin_anew=name in begin_anew)
        for name, key in keys.items()
    }


def write_runs(folder: Path, runs: Mapping[str, Run], failed: Iterable[str] = ()) -> None:
    """Write a TREC run for each technique; the same rankings give the same bytes. Delete those of failed ones."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in failed:
        (folder / f"{file_name(name)}.run").unlink(missing_ok=True)
    for name, run in runs.items():
        write_run(run, folder / f"{file_name(name)}.run", tag=file_name(name))


def check_outputs(*, files: Paths, folders: Paths, seed: int) -> None:
    """Raise `EvaluationError` with every file and folder that cannot be written, and for a seed that cannot be drawn.

    What would fail at the end of a comparison fails at its beginning. What has to be made to find out is removed again.
    """
    asked = {name: Path(path) for name, path in {**files, **folders}.items() if path is not None}
    problems = [
        f"{one} and {other} would both be written to {str(asked[one])!r}; name another for one of them"
        for one, other in combinations([name for name in files if name in asked], 2)
        if asked[one].absolute() == asked[other].absolute()
    ]
    for name, path in asked.items():
        kind, other = ("folder", "file") if name in folders else ("file", "folder")
        if wrong := _unwritable(path, kind):
            remedy = f"give a {kind} for {name}" if other in wrong else f"give another {kind}"
            problems.append(f"cannot write the {name} {str(path)!r}: {wrong}; {remedy}")
    if not isinstance(seed, int) or seed < 0:
        problems.append(f"the seed is {seed!r}; give a whole number from 0")
    if problems:
        count = [f"{len(problems)} problems:"] if len(problems) > 1 else []
        raise EvaluationError("\n  ".join([*count, *problems]))


def _unwritable(path: Path, kind: str) -> str:
    """Why a file or folder cannot be written; empty if it can."""
    missing: list[Path] = []
    try:
        if path.is_file() if kind == "folder" else path.is_dir():
            return f"it is a {'file' if kind == 'folder' else 'folder'}"
        home = path if kind == "folder" else path.parent
        missing = [above for above in (home, *home.parents) if not above.exists()]
        home.mkdir(parents=True, exist_ok=True)
        if kind == "file" and path.exists():
            path.open("ab").close()
        else:
            TemporaryFile(dir=home).close()
    except (FileExistsError, NotADirectoryError):
        return "a part of its path is not a directory"
    except OSError as error:
        return str(error.strerror)
    finally:
        with suppress(OSError):
            for folder in missing:
                folder.rmdir()
    return ""
