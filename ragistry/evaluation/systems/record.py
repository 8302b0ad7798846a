"""Record the answers of models to a file, and replay them, so that a comparison can be repeated exactly and offline.

`recording` wraps the models of a comparison; `replaying` returns models that answer from a file, without network. While
recording, known questions are answered from the file too, so that an interrupted recording continues without paying
twice. A replay gives the recorded answers at the recorded cost (see `vectors`).
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
    """A `Reranker`; a query with all its texts is one question, because some models compare the texts."""

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        asked = {"role": "rerank", "text": query, "texts": list(texts)}
        [said] = self.file.answers(self.model, [asked], lambda _: [list(map(float, self.live.rerank(query, texts)))])
        return list(json.loads(said))


_KEPT = {"embedder": KeptVectors, "generator": KeptGenerator, "reranker": KeptReranker}


def recording(parts: Mapping[str, Any], file: str | Path) -> dict[str, Any]:
    """The parts, with each embedder, generator and reranker recorded to ``file``.

    The file is created or continued. Raises `EvaluationError` if it was recorded with another model.
    """
    records, found = AnswerStore(file), dict(parts)
    for name, part in parts.items():
        kind = next((kind for kind, protocol in KINDS.items() if isinstance(part, protocol)), None)
        if kind is not None:
            records.use_model(name, kind, model := model_of(part))
            found[name] = _KEPT[kind](records, model, part)
    return found


def replaying(file: str | Path) -> dict[str, Any]:
    """The parts recorded to ``file``, by name; they need no model and no network.

    A question without a recorded answer raises `MissingRecordError`. Raises `EvaluationError` if the file does not
    exist.
    """
    records = AnswerStore(file, replay=True)
    return {name: _KEPT[kind](records, model) for name, (kind, model) in records.models().items()}


SECRET = re.compile(r"(api_?key|access_token|auth_token|authorization|passw(or)?d|secret)$", re.IGNORECASE)
"""Endings of the names of secret settings, which are not written to reports and recordings."""
LOGIN = re.compile(r"(?<=//)[^/?#\s]*@")
"""User name and password in a URL."""


def model_of(part: Any) -> Any:
    """The identity of a model as plain values: an embedder's fingerprint, else class and settings.

    Settings are plain attributes, also in mappings, and the URL of its server.
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
    """Settings as JSON values, without secrets; other values as text."""
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
