"""Models that record their answers to a file, and models that answer from it: a comparison repeats offline, exactly.

`recording` wraps the models that a comparison has, `replaying` gives those of a file back without a model or a network.
A question that the file has is answered from it while it is recorded, too: an interrupted recording continues without
paying twice, and a replay gives what the recording gave, at the same cost (see `vectors`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragistry.evaluation.systems.vectors import AnswerStore, KeptModel, KeptVectors, fingerprint_of
from ragistry.protocols import Embedder, Generator, Reranker

if TYPE_CHECKING:
    from pydantic import BaseModel

KINDS: dict[str, Any] = {"embedder": Embedder, "generator": Generator, "reranker": Reranker}


class KeptGenerator(KeptModel):
    """A `Generator`; the schema is part of the question."""

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        asked = {"role": "prompt", "text": prompt, "schema": schema.model_json_schema() if schema else None}
        return str(
            json.loads(self.file.answers(self.model, [asked], lambda _: [self.live.generate(prompt, schema=schema)])[0])
        )


class KeptReranker(KeptModel):
    """A `Reranker`; a query and its texts are one question: some judge a text by the others."""

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        asked = {"role": "rerank", "text": query, "texts": list(texts)}
        [said] = self.file.answers(self.model, [asked], lambda _: [list(map(float, self.live.rerank(query, texts)))])
        return list(json.loads(said))


_KEPT = {"embedder": KeptVectors, "generator": KeptGenerator, "reranker": KeptReranker}


def recording(parts: Mapping[str, Any], file: str | Path) -> dict[str, Any]:
    """The parts, each embedder, generator and reranker among them recorded to ``file``; the others as they are.

    The file is made, or continued. Raises `EvaluationError` where it was recorded with another model.
    """
    records, found = AnswerStore(file), dict(parts)
    for name, part in parts.items():
        kind = next((kind for kind, protocol in KINDS.items() if isinstance(part, protocol)), None)
        if kind is not None:
            records.use_model(name, kind, model := model_of(part))
            found[name] = _KEPT[kind](records, model, part)
    return found


def replaying(file: str | Path) -> dict[str, Any]:
    """The parts that were recorded to ``file``, by name; they need no model and no network.

    What was not recorded raises `MissingRecordError`, which says what was asked. Raises `EvaluationError` where there
    is no such file.
    """
    records = AnswerStore(file, replay=True)
    return {name: _KEPT[kind](records, model) for name, (kind, model) in records.models().items()}


SECRET = re.compile(r"(api_?key|access_token|auth_token|authorization|passw(or)?d|secret)$", re.IGNORECASE)
"""Ends of the names of settings that are not written down: reports and recordings are shown to others."""
LOGIN = re.compile(r"(?<=//)[^/?#\s]*@")
"""Name and password in an address."""


def model_of(part: Any) -> Any:
    """What distinguishes a model from another, as plain values: an embedder's fingerprint, else class and settings.

    Settings are plain attributes, also of a mapping, and the address of the server that it asks.
    """
    if isinstance(part, KeptModel):
        return part.model
    if isinstance(part, Embedder):
        return fingerprint_of(part)
    found: dict[str, Any] = {"use": f"{type(part).__module__}:{type(part).__qualname__}"}
    for name, value in getattr(part, "__dict__", {}).items():
        for address in ("base_url", "host"):
            if isinstance(at := getattr(value, address, None), str):
                found["at"] = LOGIN.sub("", at)
        with suppress(TypeError, ValueError, RecursionError):  # a connection is not a setting
            found |= json.loads(json.dumps({name.lstrip("_"): value}), object_hook=_without_secrets)
    return found | ({"model": str(part.model)} if hasattr(part, "model") else {})


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON has them, without secrets; other values as their text."""
    found: dict[str, Any] = json.loads(json.dumps(settings, default=_json_value), object_hook=_without_secrets)
    return found


def _json_value(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return value.model_dump() if hasattr(value, "model_dump") else str(value)


def _without_secrets(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        name: LOGIN.sub("", value) if isinstance(value, str) else value
        for name, value in settings.items()
        if not SECRET.search(name)
    }
