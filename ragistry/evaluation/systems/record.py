"""Models that record their answers to a file, and models that answer from it: a comparison repeats offline, exactly.

`recording` wraps the parts that a comparison has, `replaying` gives those parts back without a model or a network.
While it is recorded, a question that the file has is answered from the file: an interrupted recording continues without
paying twice, and a replay gives what the recording gave.

The file has JSON lines. A line with ``model`` says which model a part is; every other one is an answer: ``part``,
``asked``, ``answer``, and what the call cost (``calls``, ``tokens``, ``ms``), so that a replay reports the same cost.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import RLock
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ragistry.errors import EvaluationError, MissingRecordError
from ragistry.evaluation.systems.vectors import CHARGED
from ragistry.protocols import Embedder, Generator, Reranker, TokenCounter
from ragistry.trace import collect, model_call, stage
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ragistry.protocols import Vectors

Asked = dict[str, Any]
"""What a model was asked: ``role``, ``text``, and what else decides the answer."""

Ask = Callable[[list[Asked]], list[Any]]
"""Asks the model itself: one answer a question."""

KINDS: dict[str, Any] = {"embedder": Embedder, "generator": Generator, "reranker": Reranker}
SHOWN = 80
"""Characters of a text that a message shows."""


def recording(parts: Mapping[str, Any], file: str | Path) -> dict[str, Any]:
    """The parts, each embedder, generator and reranker among them recorded to ``file``; the others as they are.

    The file is made, or continued. Raises `EvaluationError` where it was recorded with another model.
    """
    records = RecordFile(Path(file), write=True)
    wrapped = dict(parts)
    for name, part in parts.items():
        kind = next((kind for kind, protocol in KINDS.items() if isinstance(part, protocol)), None)
        if kind is not None:
            counts = isinstance(part, TokenCounter)
            records.use_model(name, {"kind": kind, "model": model_of(part), "counts_tokens": counts})
            wrapped[name] = _recorded(records, name, part)
    return wrapped


def replaying(file: str | Path) -> dict[str, Any]:
    """The parts that were recorded to ``file``, by name; they need no model and no network.

    What was not recorded raises `MissingRecordError`, which says what was asked. Raises `EvaluationError` where there
    is no such file.
    """
    records = RecordFile(Path(file))
    return {name: _recorded(records, name) for name in records.models}


def _recorded(records: RecordFile, name: str, live: Any = None) -> Any:
    known = records.models[name]
    if known["kind"] != "embedder":
        return (RecordedGenerator if known["kind"] == "generator" else RecordedReranker)(records, name, live)
    return (RecordedEmbedderAndTokens if known["counts_tokens"] else RecordedEmbedder)(records, name, live)


SECRET = re.compile(r"(api_?key|access_token|auth_token|authorization|passw(or)?d|secret)$", re.IGNORECASE)
"""Ends of the names of settings that are not written down: reports and recordings are shown to others."""
LOGIN = re.compile(r"(?<=//)[^/?#\s]*@")
"""Name and password in an address."""


def model_of(part: Any) -> Any:
    """What tells a model from another, as plain values: an embedder's fingerprint, else its class and settings.

    Settings are plain attributes, also of a mapping, and the address of the server that it asks.
    """
    if isinstance(part, _Recorded):
        return part.model
    if isinstance(part, Embedder):
        return asdict(part.fingerprint)
    found: dict[str, Any] = {"use": f"{type(part).__module__}:{type(part).__qualname__}"}
    for name, value in getattr(part, "__dict__", {}).items():
        for address in ("base_url", "host"):
            if isinstance(at := getattr(value, address, None), str):
                found["at"] = LOGIN.sub("", at)
        with suppress(TypeError, ValueError, RecursionError):  # a connection is not a setting
            found |= json.loads(json.dumps({name.lstrip("_"): value}), object_hook=_told)
    return found | ({"model": str(part.model)} if hasattr(part, "model") else {})


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON has them, without secrets; other values as their text."""
    found: dict[str, Any] = json.loads(json.dumps(settings, default=_json_value), object_hook=_told)
    return found


def _json_value(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return value.model_dump() if hasattr(value, "model_dump") else str(value)


def _told(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings without secrets."""
    return {
        name: LOGIN.sub("", value) if isinstance(value, str) else value
        for name, value in settings.items()
        if not SECRET.search(name)
    }


class _Recorded:
    """``live``: the part that answers what the file does not have; None in a replay."""

    def __init__(self, records: RecordFile, name: str, live: Any = None) -> None:
        self.records, self.name, self.live = records, name, live

    @property
    def model(self) -> Any:
        """What `model_of` said of the live part."""
        return self.records.models[self.name]["model"]

    def _answers(self, wanted: list[Asked], ask: Ask) -> list[Any]:
        return self.records.answers(self.name, wanted, None if self.live is None else ask)

    def close(self) -> None:
        """Close the live part's connections, where it has any."""
        close = getattr(self.live, "close", None)
        if callable(close):
            close()


class RecordedEmbedder(_Recorded):
    """See `ragistry.protocols.Embedder`; each text is a record of its own, whatever it was asked together with."""

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return EmbedderFingerprint(**self.model)

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        import numpy as np

        def ask(missing: list[Asked]) -> list[str]:
            vectors = self.live.embed([asked["text"] for asked in missing], role=role)
            return [b64encode(np.asarray(vector, "<f4").tobytes()).decode("ascii") for vector in vectors]

        rows = b"".join(map(b64decode, self._answers([{"role": role, "text": text} for text in texts], ask)))
        return np.frombuffer(rows, "<f4").astype(np.float32).reshape(-1, self.fingerprint.dimension)


class RecordedEmbedderAndTokens(RecordedEmbedder):
    """The same of an embedder that counts tokens."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        def ask(missing: list[Asked]) -> list[int]:
            return list(self.live.count_tokens([asked["text"] for asked in missing]))

        return self._answers([{"role": "tokens", "text": text} for text in texts], ask)


class RecordedGenerator(_Recorded):
    """See `ragistry.protocols.Generator`; the schema is part of the question."""

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        asked = {"role": "prompt", "text": prompt, "schema": schema.model_json_schema() if schema else None}
        return str(self._answers([asked], lambda _: [self.live.generate(prompt, schema=schema)])[0])


class RecordedReranker(_Recorded):
    """See `ragistry.protocols.Reranker`; a query and its texts are one record: some judge a text by the others."""

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        asked = {"role": "rerank", "text": query, "texts": list(texts)}
        return list(self._answers([asked], lambda _: [list(map(float, self.live.rerank(query, texts)))])[0])


# The file


class RecordFile:
    """``write``: make the file, or continue it; else read it. Safe for threads, not for two processes that write."""

    def __init__(self, path: Path, *, write: bool = False) -> None:
        self.path = path
        self.models: dict[str, Any] = {}
        self._kept: dict[str, dict[str, Any]] = {}
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
        known = self.models.setdefault(part, model)
        if known != model:
            raise EvaluationError(
                f"{str(self.path)!r} holds answers of {known['model']!r} for the {part}, not of {model['model']!r}; "
                "record to another file"
            )
        if known is model:
            self._append([{"part": part, **model}])

    def answers(self, part: str, wanted: Sequence[Asked], ask: Ask | None) -> list[Any]:
        """One answer a question, in order. ``ask`` answers what the file does not have; None: a replay.

        Raises `MissingRecordError` in a replay for the first question that was not recorded.
        """
        keys = [_key(part, asked) for asked in wanted]
        with self._lock:
            missing = {key: asked for key, asked in zip(keys, wanted, strict=True) if key not in self._kept}
            if missing and ask is None:
                raise self._absent(part, list(missing.values()))
            if missing and ask is not None:
                self._ask(part, missing, ask)
            kept = {key: self._kept[key] for key in keys}
        calls, tokens = (sum(record[name] for record in kept.values()) for name in ("calls", "tokens"))
        with stage("recorded") as this:
            for call in range(calls):
                model_call(tokens if call == 0 else 0)
            this.detail[CHARGED] = sum(record["ms"] for key, record in kept.items() if key not in missing)
        return [kept[key]["answer"] for key in keys]

    def _ask(self, part: str, missing: dict[str, Asked], ask: Ask) -> None:
        """Ask the model and keep what it answers; its own trace is kept from the one outside."""
        with collect() as trace, stage("record"):
            start = perf_counter()
            given = ask(list(missing.values()))
            ms = (perf_counter() - start) * 1000 / len(missing)
        cost = {name: sum(getattr(one, name) for one in trace.opened) for name in ("model_calls", "tokens")}
        records: list[dict[str, Any]] = []
        for asked, answer in zip(missing.values(), given, strict=True):
            calls, tokens = (0, 0) if records else cost.values()  # questions that were asked together cost once
            kept = {"answer": answer, "calls": calls, "tokens": tokens, "ms": ms}
            records.append({"part": part, "asked": asked, **kept})
        self._kept |= zip(missing, records, strict=True)
        self._append(records)

    def _absent(self, part: str, missing: list[Asked]) -> MissingRecordError:
        model, asked = self.models[part]["model"], missing[0]
        name = " ".join(model[key] for key in ("provider", "model") if key in model) or model["use"]
        others = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
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
            self.path.write_bytes(data[:whole])
        for number, line in enumerate(data[:whole].splitlines(), 1):
            try:
                record = json.loads(line)
                if "asked" in record:
                    found = {name: record[name] for name in ("answer", "calls", "tokens", "ms")}
                    self._kept[_key(record["part"], record["asked"])] = found
                else:
                    self.models[record["part"]] = {name: record[name] for name in ("kind", "model", "counts_tokens")}
                    dict(**record["model"])
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise EvaluationError(
                    f"{self.path.name}:{number}: no record: {line[:SHOWN]!r}; take the line out, or record again"
                ) from error


def _key(part: str, asked: Asked) -> str:
    return json.dumps([part, asked], sort_keys=True)
