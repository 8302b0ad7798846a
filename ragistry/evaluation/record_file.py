"""A file of what models were asked and what they answered.

JSON lines. A line with ``model`` says which model a part is; every other one is an answer: ``part``, ``asked``,
``answer``, and what the call cost (``calls``, ``tokens``, and ``ms``, its share of the milliseconds), so that a replay
reports the same cost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from time import perf_counter
from typing import Any

from ragistry.errors import EvaluationError, MissingRecordError
from ragistry.evaluation.charges import CHARGED
from ragistry.trace import collect, model_call, stage

Asked = dict[str, Any]
"""What a model was asked: ``role``, ``text``, and what else decides the answer."""

Ask = Callable[[list[Asked]], list[Any]]
"""Asks the model itself: one answer a question."""

SHOWN = 80
"""Characters of a text that a message shows."""


@dataclass(slots=True)
class Cost:
    """Calls of a model, their tokens and milliseconds."""

    calls: int = 0
    tokens: int = 0
    ms: float = 0.0


class RecordFile:
    """``write``: make the file, or go on with it; else read it. Safe for threads, not for two processes that write."""

    def __init__(self, path: Path, *, write: bool = False) -> None:
        self.path = path
        self.models: dict[str, Any] = {}
        self._kept: dict[tuple[str, str], dict[str, Any]] = {}
        self._lock = RLock()
        if path.is_file():
            self._read(write)
        elif write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        else:
            raise EvaluationError(f"no recording {str(path)!r}; record one first with --record {path}")

    def use_model(self, part: str, model: Any) -> None:
        """Say which model answers for a part; raises `EvaluationError` where the file has answers of another one."""
        with self._lock:
            known = self.models.get(part)
            if known is not None and known != model:
                raise EvaluationError(
                    f"{str(self.path)!r} holds answers of {known['model']!r} for the {part}, not of "
                    f"{model['model']!r}; record to another file"
                )
            if known is None:
                self.models[part] = model
                self._append([{"part": part, **model}])

    def answers(self, part: str, wanted: Sequence[Asked], ask: Ask | None) -> list[Any]:
        """One answer a question, in order. ``ask`` answers what the file does not have; None: a replay.

        Raises `MissingRecordError` in a replay for the first question that was not recorded.
        """
        keys = [(part, json.dumps(asked, sort_keys=True)) for asked in wanted]
        with self._lock:
            missing = {key: asked for key, asked in zip(keys, wanted, strict=True) if key not in self._kept}
            if missing and ask is None:
                raise self._absent(part, next(iter(missing.values())), len(missing))
            if missing and ask is not None:
                with _counted() as cost:
                    given = ask(list(missing.values()))
                self._keep(part, missing, given, cost)
            kept = {key: self._kept[key] for key in keys}
        calls, tokens = (sum(record[name] for record in kept.values()) for name in ("calls", "tokens"))
        with stage("recorded") as this:
            for call in range(calls):
                model_call(tokens if call == 0 else 0)
            this.detail[CHARGED] = sum(record["ms"] for key, record in kept.items() if key not in missing)
        return [kept[key]["answer"] for key in keys]

    def _keep(self, part: str, missing: dict[tuple[str, str], Asked], given: list[Any], cost: Cost) -> None:
        records = []
        for (key, asked), answer in zip(missing.items(), given, strict=True):
            record = {
                "part": part, "asked": asked, "answer": answer,
                "calls": cost.calls, "tokens": cost.tokens, "ms": cost.ms / len(missing),
            }  # fmt: skip
            cost.calls = cost.tokens = 0  # questions that were asked together cost once
            self._kept[key] = record
            records.append(record)
        self._append(records)

    def _absent(self, part: str, asked: Asked, count: int) -> MissingRecordError:
        model = self.models[part]["model"]
        name = " ".join(model[key] for key in ("provider", "model") if key in model) or model["use"]
        others = f" (and {count - 1} more)" if count > 1 else ""
        return MissingRecordError(
            f"{str(self.path)!r} has no answer of the {part} {name!r} to the {asked['role']} "
            f"{asked['text'][:SHOWN]!r}{others}; record it with --record {self.path}"
        )

    def _append(self, records: list[dict[str, Any]]) -> None:
        with self.path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write("".join(json.dumps(record) + "\n" for record in records))

    def _read(self, write: bool) -> None:
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if write and whole < len(data):  # it was stopped while writing its last line
            with self.path.open("r+b") as stream:
                stream.truncate(whole)
        for number, line in enumerate(data[:whole].splitlines(), 1):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise EvaluationError(
                    f"{self.path.name}:{number}: no record: {line[:SHOWN]!r}; take the line out, or record again"
                ) from error

    def _take(self, record: dict[str, Any]) -> None:
        part = record.pop("part")
        if "asked" in record:
            key = (part, json.dumps(record.pop("asked"), sort_keys=True))
            self._kept[key] = {name: record[name] for name in ("answer", "calls", "tokens", "ms")}
        else:
            self.models[part] = {name: record[name] for name in ("kind", "model", "counts_tokens")}
            if not isinstance(record["model"], dict):
                raise TypeError("a model is told by what it is made of")


@contextmanager
def _counted() -> Iterator[Cost]:
    """What the models inside the block report, kept from the trace outside, and how long it took."""
    cost = Cost()
    with collect() as trace, stage("record"):
        start = perf_counter()
        yield cost
        cost.ms = (perf_counter() - start) * 1000
        cost.calls = sum(opened.model_calls for opened in trace.opened)
        cost.tokens = sum(opened.tokens for opened in trace.opened)
