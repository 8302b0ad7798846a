"""The file in which the answers of a technique outlive a stop."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation.answers import Answer
from ragistry.utils.suggest import listed
from ragistry.utils.wording import agreeing

NAMED = 3
"""Levels of an identity whose parts have a digest each, by which one can say what differs."""


class AnswerFile:
    """Answers of one technique, one a line, behind a line that says what they are answers of.

    ``begin_anew``: nothing tells whether the answers that are there are of this very technique, so they are dropped.
    """

    def __init__(self, path: Path, identity: dict[str, Any], *, begin_anew: bool = False) -> None:
        self.path = path
        self.begin_anew = begin_anew
        self.head = {"of": dict(_digests(identity))}

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
                f"{self.path} holds answers of another test set, configuration, code, model, kept data, depth or "
                f"version of Ragistry: {self._other(head)}; give another folder, or delete that file"
            )
        if self.begin_anew:
            self.remove()
            return {}
        return {
            row["query"]: Answer(**{**row, "ranking": [(id, score) for id, score in row["ranking"]]}) for row in rows
        }

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
        """Add answers; they are kept even if the process is killed the next moment."""
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
