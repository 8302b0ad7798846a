"""Models that record their answers to a file, and models that answer from it: a comparison repeats offline, exactly.

Two functions are all that a comparison needs: `recording` wraps the parts that it has, `replaying` gives those parts
back without a model or a network. While it is recorded, a question that the file has is answered from the file: what
was stopped goes on without paying twice, and a replay gives what the recording gave.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragistry.evaluation.identity import settings_of
from ragistry.evaluation.record_file import Ask, Asked, RecordFile
from ragistry.protocols import Embedder, Generator, Reranker, TokenCounter
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ragistry.protocols import Vectors


def recording(parts: Mapping[str, Any], file: str | Path) -> dict[str, Any]:
    """The parts, each embedder, generator and reranker among them recorded to ``file``; the others as they are.

    The file is made, or gone on with. Raises `EvaluationError` where it was recorded with another model.
    """
    records = RecordFile(Path(file), write=True)
    wrapped = dict(parts)
    for name, part in parts.items():
        kind = next((kind for kind, (protocol, _) in _KINDS.items() if isinstance(part, protocol)), None)
        if kind is not None:
            counts = isinstance(part, TokenCounter)
            records.use_model(name, {"kind": kind, "model": model_of(part), "counts_tokens": counts})
            wrapped[name] = _recorded(kind, records, name, counts, part)
    return wrapped


def replaying(file: str | Path) -> dict[str, Any]:
    """The parts that were recorded to ``file``, by name; they need no model and no network.

    What was not recorded raises `MissingRecordError`, which says what was asked. Raises `EvaluationError` where there
    is no such file.
    """
    records = RecordFile(Path(file))
    return {
        name: _recorded(model["kind"], records, name, model["counts_tokens"]) for name, model in records.models.items()
    }


def _recorded(kind: str, records: RecordFile, name: str, counts_tokens: bool, live: Any = None) -> Any:
    cls = RecordedEmbedderAndTokens if counts_tokens else _KINDS[kind][1]
    return cls(records, name, live)


def model_of(part: Any) -> Any:
    """By what to tell a model from another one, as plain values: an embedder's fingerprint, else all its settings."""
    if isinstance(part, _Recorded):
        return part.model
    return asdict(part.fingerprint) if isinstance(part, Embedder) else settings_of(part)


class _Recorded:
    """``live``: the part that answers what the file does not have; None in a replay."""

    def __init__(self, records: RecordFile, name: str, live: Any = None) -> None:
        self.records = records
        self.name = name
        self.live = live

    @property
    def model(self) -> Any:
        return self.records.models[self.name]["model"]

    def _live(self, ask: Ask) -> Ask | None:
        return None if self.live is None else ask

    def close(self) -> None:
        """Let go of the part's connections, where it has any."""
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

        wanted = [{"role": role, "text": text} for text in texts]
        answers = self.records.answers(self.name, wanted, self._live(ask))
        rows = b"".join(map(b64decode, answers))
        return np.frombuffer(rows, "<f4").astype(np.float32).reshape(-1, self.fingerprint.dimension)


class RecordedEmbedderAndTokens(RecordedEmbedder):
    """The same of an embedder that counts tokens."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        def ask(missing: list[Asked]) -> list[int]:
            return list(self.live.count_tokens([asked["text"] for asked in missing]))

        wanted = [{"role": "tokens", "text": text} for text in texts]
        return self.records.answers(self.name, wanted, self._live(ask))


class RecordedGenerator(_Recorded):
    """See `ragistry.protocols.Generator`; the schema is part of the question."""

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        def ask(_: list[Asked]) -> list[str]:
            return [self.live.generate(prompt, schema=schema)]

        asked = {"role": "prompt", "text": prompt, "schema": schema.model_json_schema() if schema else None}
        return str(self.records.answers(self.name, [asked], self._live(ask))[0])


class RecordedReranker(_Recorded):
    """See `ragistry.protocols.Reranker`; a query and its texts are one record: some judge a text by the others."""

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        def ask(_: list[Asked]) -> list[list[float]]:
            return [[float(score) for score in self.live.rerank(query, texts)]]

        asked = {"role": "rerank", "text": query, "texts": list(texts)}
        return list(self.records.answers(self.name, [asked], self._live(ask))[0])


_KINDS: dict[str, tuple[Any, type[_Recorded]]] = {
    "embedder": (Embedder, RecordedEmbedder),
    "generator": (Generator, RecordedGenerator),
    "reranker": (Reranker, RecordedReranker),
}
