"""Files of a comparison: answers that survive an interruption, a TREC run for each technique, checks of paths."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import asdict
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation.answers import Answer
from ragistry.evaluation.data.dataset import Run
from ragistry.evaluation.data.trec import file_name, write_run
from ragistry.utils.wording import agreeing, listed

PAIRS = ("ranking", "passages")
"""Fields of an answer whose rows are tuples."""
Paths = Mapping[str, str | Path | None]
"""Output → its path; None if not requested."""


class AnswerFile:
    """Answers of one technique, one per line, after a first line with their ``key``.

    ``begin_anew``: existing answers may belong to another technique, so they are dropped.
    """

    def __init__(self, path: Path, key: Mapping[str, Any], *, begin_anew: bool = False) -> None:
        self.path = path
        self.begin_anew = begin_anew
        self.head = {"of": json.loads(json.dumps(key))}

    def read(self) -> dict[str, Answer]:
        """Query → answer; an unfinished last line of a stopped process is removed from the file.

        Raises `EvaluationError` if the file has answers of another comparison.
        """
        lines = self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []
        if lines and not lines[-1].endswith(b"\n"):
            self.path.write_bytes(b"".join(lines := lines[:-1]))
        if not lines:
            return {}
        try:
            head, *rows = map(json.loads, lines)
            other = sorted(set(_differing(head["of"], self.head["of"])))
            answers = {row["query"]: Answer(**row | {key: list(map(tuple, row[key])) for key in PAIRS}) for row in rows}
        except (ValueError, TypeError, KeyError) as error:
            raise EvaluationError(f"{self.path} holds no answers of a comparison: {error}; delete that file") from error
        if other:
            raise EvaluationError(
                f"{self.path} holds answers of another test set, configuration, code, model, depth or version: "
                f"{listed(other)} {agreeing(len(other), '[is|are]')} not the same; give another folder, or delete that "
                "file"
            )
        if self.begin_anew:
            self.remove()
            return {}
        return answers

    def remove(self) -> None:
        """Delete all answers."""
        self.path.unlink(missing_ok=True)

    def append(self, answers: Iterable[Answer]) -> None:
        """Add answers and write them to disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists() or not self.path.stat().st_size
        with self.path.open("a", encoding="utf-8") as file:
            for row in [*([self.head] if new else []), *map(asdict, answers)]:
                file.write(json.dumps(row) + "\n")


def _differing(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """The paths at which two keys differ, down to single settings: ``technique.config.k``."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in theirs.keys() | ours:
            yield from _differing(theirs.get(name), ours.get(name), f"{path}.{name}" if path else name)
    elif theirs != ours:
        yield path


def answer_files(
    folder: Path, keys: Mapping[str, Mapping[str, Any]], begin_anew: Container[str] = ()
) -> dict[str, AnswerFile]:
    """The file of each technique's answers, with their times, which differ from run to run.

    ``begin_anew``: techniques that are never resumed. Raises `EvaluationError` if two would share a file.
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


def keep_report(folder: Path, report: Mapping[str, Any]) -> Path:
    """Write a comparison's JSON to ``folder``, named by time, test set and a hash; return its path.

    Raises `EvaluationError` if it cannot be written.
    """
    text = json.dumps(report, ensure_ascii=False, indent=2) + "\n"
    made = re.sub(r"[^0-9T]", "", report["provenance"]["made"].split("+")[0])
    name = re.sub(r"[^\w.-]+", "-", report["dataset"])[:60]
    path = folder / f"{made}-{name}-{sha256(text.encode()).hexdigest()[:8]}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EvaluationError(
            f"cannot write {str(path)!r}: {error.strerror}; make room, or check its rights"
        ) from error
    return path


def check_outputs(*, files: Paths, folders: Paths, seed: int) -> None:
    """Raise `EvaluationError` with every file and folder that cannot be written, and for an invalid seed.

    So errors appear at the beginning of a comparison instead of the end. The check creates nothing.
    """
    asked = {name: Path(path) for name, path in {**files, **folders}.items() if path is not None}
    problems = [
        f"{one} and {other} would both be written to {str(asked[one])!r}; name another for one of them"
        for one, other in combinations([name for name in files if name in asked], 2)
        if asked[one].absolute() == asked[other].absolute()
    ]
    for name, path in asked.items():
        kind, wrong = "folder" if name in folders else "file", ""
        above = next(part for part in (path, *path.absolute().parents) if os.path.lexists(part))
        if kind == "file" and path.is_dir():
            wrong = "it is a folder"
        elif kind == "folder" and path.is_file():
            wrong = "it is a file"
        elif above != path and not above.is_dir():
            wrong = "a part of its path is not a folder"
        elif not os.access(above, os.W_OK):
            wrong = f"{str(above)!r} must not be written"
        if wrong:
            problems.append(f"cannot write the {name} {str(path)!r}: {wrong}; give a {kind} that can be written")
    if type(seed) is not int or seed < 0:
        problems.append(f"the seed is {seed!r}; give a whole number from 0")
    if problems:
        count = [f"{len(problems)} problems:"] if len(problems) > 1 else []
        raise EvaluationError("\n  ".join([*count, *problems]))
