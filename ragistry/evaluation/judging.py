"""Keep the grades of a person who judges passages, and make an ordinary set of questions of them.

A folder has ``grades.jsonl``, to which each key adds a line, and ``queries.jsonl`` and ``qrels.txt``, which are made of
it. A grade has the source, the lines and a hash of its passage, not the text: a passage whose text changed is a new
one, and one whose source was moved or renamed keeps its grade.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragistry.config.replacing import replace_text
from ragistry.errors import DatasetError
from ragistry.evaluation.data.dataset import ASKED
from ragistry.evaluation.data.library import source_id
from ragistry.evaluation.data.trec import write_qrels
from ragistry.evaluation.measures import parse_measures
from ragistry.evaluation.stopping import DEPTH
from ragistry.types import Document
from ragistry.utils.ids import text_hash

if TYPE_CHECKING:
    from ragistry.library.asked import AskedQuestion
    from ragistry.workspace import Workspace

FILE, QUERIES, QRELS = "grades.jsonl", "queries.jsonl", "qrels.txt"
ANSWERS = ("sources", "source_file", "spans")
"""Keys of a question with an answer; see `read_library`."""
AGAIN = 10
"""Of so many grades, one is asked for twice."""


class Candidates(NamedTuple):
    """Passages by the hash of their text: the first ones of each technique, and all candidates in a shuffled order."""

    rankings: list[list[str]]
    passages: dict[str, Document]

    @property
    def needed(self) -> set[str]:
        """The passages to grade: none if both rankings are equal, because their difference is 0 with any grades."""
        return set() if self.rankings[0] == self.rankings[-1] else {*self.passages}


def candidates(
    workspace: Workspace, question: str, techniques: Iterable[str], confirmed: Iterable[Document] = ()
) -> Candidates:
    """Return the first `DEPTH` passages of several techniques. Only the question and the texts decide their order.

    Args:
        workspace: The workspace.
        question: The question.
        techniques: Names of techniques.
        confirmed: Further candidates; see `confirmed_passages`.
    """
    found = [workspace.search(question, name, top_k=DEPTH).documents for name in techniques]
    union = {text_hash(one.content): one for documents in (confirmed, *found) for one in documents}
    order = sorted(union, key=lambda one: text_hash(question + one))
    return Candidates(
        [[text_hash(one.content) for one in ranking] for ranking in found], {key: union[key] for key in order}
    )


def confirmed_passages(workspace: Workspace, asked: Iterable[AskedQuestion]) -> dict[str, list[Document]]:
    """Return the passages that were confirmed as answers, and are still in the library, by question."""
    wanted, found = defaultdict[str, set[str]](set), defaultdict[str, list[Document]](list)
    for one in asked:
        for key in one.confirmed:
            wanted[key].add(one.text)
    for document in workspace.store.scan() if wanted else ():
        for question in wanted.get(text_hash(document.content), ()):
            found[question].append(document)
    return found


class Judgement:
    """The questions and grades of a folder, and which of them count.

    Each line of the file is an event: a question, the plan, the grades of one key, or an undo.

    Args:
        folder: The folder; created if missing.

    Raises:
        DatasetError: A file has other content.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        folder.mkdir(parents=True, exist_ok=True)
        text = self.path.read_bytes() if self.path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]  # the rest is a line that a power failure cut
        if whole != text:
            os.truncate(self.path, len(whole))
        self.size, self.events = len(whole), list[dict[str, Any]]()
        self.questions: dict[str, str] = {}
        self.candidates: dict[str, Candidates] = {}
        self._judged, self._answered = set[str](), set[str]()
        try:
            for line in filter(str.strip, whole.decode().split("\n")):
                self._take(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise DatasetError(f"{str(folder)!r} is not a folder of questions and grades: {error!r:.80}") from error
        for row in self._queries():
            self.questions.setdefault(row["text"], row.get("kind", ""))
            if row["text"] not in self._judged and any(map(row.get, ANSWERS)):
                self._answered.add(row["text"])

    @property
    def plan(self) -> dict[str, Any]:
        """The techniques ``default`` and ``challenger``, ``margin`` and ``total``; empty before it is made."""
        return next((event for event in self.events if "total" in event), {})

    def keep_answers(self) -> None:
        """Record the questions that came with answers, which stay as they are."""
        recorded = {one for event in self.events for one in event.get("answered", ())}
        if new := self._answered - recorded:
            self.add({"answered": sorted(new)})

    def add(self, event: dict[str, Any]) -> None:
        """Append an event, and wait until the disk has it. Raises `DatasetError` if another program wrote the file."""
        line = json.dumps(event).encode() + b"\n"  # in ASCII, so that no character ends a line
        with self.path.open("ab") as file:
            if file.tell() != self.size:
                raise DatasetError(
                    f"{str(self.path)!r} was changed by another program; run `ragistry testset judge` again to read it"
                )
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self.size += len(line)
        self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        if not event.get("undo"):
            self.events.append(event)
        else:
            last = max((number for number, one in enumerate(self.events) if _is_key(one)), default=None)
            if last is not None:
                del self.events[last]
        self.questions |= event.get("questions", {})
        self._answered.update(event.get("answered", ()))
        if "grades" in event:
            self._judged.add(event["question"])

    @property
    def keys(self) -> int:
        """Number of keys that count."""
        return sum(map(_is_key, self.events))

    def has_grades(self, question: str) -> bool:
        """Return whether a key was pressed for a question, or none was needed."""
        return bool(self._of(question))

    def grade(self, question: str, grades: Mapping[str, int], **more: bool) -> None:
        """Keep the grades of one key: hash → grade. ``again``: shown twice. ``absent``: not in the library."""
        passages = self.candidates[question].passages
        self.add(
            {"question": question, "grades": {key: _placed(passages[key], one) for key, one in grades.items()}, **more}
        )

    def grades(self, question: str, *, again: bool = False) -> dict[str, int]:
        """Return hash → grade of a question, first or ``again``."""
        found = (event for event in self._of(question) if event.get("again", False) == again)
        return {key: one["grade"] for event in found for key, one in event["grades"].items()}

    def _of(self, question: str) -> list[dict[str, Any]]:
        return [event for event in self.events if "grades" in event and event["question"] == question]

    def _is_absent(self, question: str) -> bool:
        return any(event.get("absent") for event in self._of(question))

    def complete(self) -> list[str]:
        """List the questions whose candidates all have a grade or are not needed, in the order of their last grade."""
        last = [one["question"] for one in reversed(self.events) if "grades" in one and not one.get("again")]
        return [
            question
            for question in reversed(dict.fromkeys(last))
            if question in self.candidates
            and (self._is_absent(question) or not self.candidates[question].needed - self.grades(question).keys())
        ]

    def differences(self, measure: str = "RR(rel=2)@3") -> list[float]:
        """Return challenger minus default for each question that counts."""
        [of], found = parse_measures([measure]), []
        for question in self.complete():
            grades = {} if self._is_absent(question) else self.grades(question)
            default, challenger = (of.value(grades, ranking) for ranking in self.candidates[question].rankings)
            found.append(challenger - default)
        return found

    def agreement(self) -> list[float]:
        """Return 1 for each passage that got the same grade twice, else 0."""
        return [
            float(self.grades(question).get(key) == grade)
            for question in self.questions
            for key, grade in self.grades(question, again=True).items()
        ]

    def due(self) -> tuple[str, str] | None:
        """Return the question and the passage to show again, the first of the last ten; None if none is due."""
        shown = AGAIN * sum(event.get("again", False) for event in self.events)
        first = [
            (event["question"], key)
            for event in self.events
            if "grades" in event and not event.get("again") and event["question"] in self.candidates
            for key in event["grades"]
            if key in self.candidates[event["question"]].passages
        ]
        return first[shown] if len(first) >= shown + AGAIN else None

    def write_set(self, workspace: Workspace) -> int:
        """Write the questions and their sources, and return how many grades are of texts that are not there now."""
        known = {text_hash(one.content): source_id(one.metadata) for one in workspace.store.scan()}
        for found in self.candidates.values():  # a technique may join chunks
            known |= {key: source_id(one.metadata) for key, one in found.passages.items()}
        rows, dropped, qrels = self._queries(), 0, {}
        by_text = {row["text"]: row for row in reversed(rows)}
        for question, kind in self.questions.items():
            if question not in by_text:
                row = {"_id": f"q{text_hash(question)[:8]}", "text": question, "kind": kind or ASKED}
                by_text[question] = row
                rows.append(row)
            if question in self._judged:
                row, sources = by_text[question], dict[str, int]()
                grades = {} if self._is_absent(question) else self.grades(question)
                for key, grade in grades.items():
                    if key in known:
                        sources[known[key]] = max(grade, sources.get(known[key], 0))
                dropped += len(grades.keys() - known.keys())
                qrels[str(row.get("_id", rows.index(row) + 1))] = sources
                if question not in self._answered:
                    row.pop("candidates", None)
                    row["sources"] = sources
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        replace_text(self.path.with_name(QUERIES), "".join(lines))
        write_qrels(qrels, self.path.with_name(QRELS))
        return dropped

    def _queries(self) -> list[dict[str, Any]]:
        file, rows = self.path.with_name(QUERIES), list[dict[str, Any]]()
        for line in file.read_text(encoding="utf-8").split("\n") if file.exists() else []:
            try:
                rows += [row | {"text": str(row["text"])} for row in map(json.loads, filter(str.strip, [line]))]
            except (ValueError, KeyError, TypeError):
                raise DatasetError(f"{str(file)!r} has no question in the line {line[:60]!r}; correct it") from None
        return rows


def _is_key(event: Mapping[str, Any]) -> bool:
    """Return whether a person pressed a key, and lists were not equal."""
    return any(map(event.get, ("grades", "absent", "again")))


def _placed(passage: Document, grade: int) -> dict[str, Any]:
    first = passage.metadata.get("line")
    lines = [first, first + passage.content.count("\n")] if isinstance(first, int) else None
    return {"grade": grade, "source": source_id(passage.metadata), "lines": lines}
