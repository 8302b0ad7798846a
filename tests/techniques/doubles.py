"""Bases and generators that the tests of techniques share, and the facts that they find."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ragistry.models.registry import choose_embedder
from ragistry.stores.local import LocalStore
from ragistry.trace import collect, model_call
from ragistry.types import Document, EmbeddedChunk, RetrievalResult, Stage, StageScore

MINILM = choose_embedder("minilm")
FACTS = {
    "discovery": "Superconductivity was discovered in 1911 by Heike Kamerlingh Onnes.",
    "taft": "William Howard Taft was president of the United States from 1909 to 1913.",
    "wilson": "Woodrow Wilson was president of the United States from 1913 to 1921.",
    "magnet": "Superconductivity is used in magnets. A magnet of a scanner is cooled with helium.",
    "tea": "Green tea is steeped in water of eighty degrees.",
    "education": "Estella Leopold has degrees in botany from Wisconsin, Berkeley and Yale.",
}
COLLECTIONS = {name: "science" if name in ("discovery", "magnet", "tea") else "people" for name in FACTS}
QUESTION = "Who was president of the United States when superconductivity was discovered?"


class Ready:
    """A base that has its answer ready, and remembers what it was asked."""

    def __init__(self, documents: Sequence[Document] = ()) -> None:
        self.documents = documents
        self.asked: list[dict[str, Any]] = []

    @property
    def queries(self) -> list[str]:
        return [asked["query"] for asked in self.asked]

    def retrieve(self, query: str, *, top_k: int | None = None, where: Any = None) -> list[Document]:
        self.asked.append({"query": query, "top_k": top_k, "where": where})
        return list(self.documents[:top_k])


def scored(kind: Any = "other", stage: str = "base", **scores: float) -> list[Document]:
    """Documents of these ids and scores, in this order."""
    return [Document(f"text of {id}", {}, score, id, (StageScore(stage, kind, score),)) for id, score in scores.items()]


class Facts(Ready):
    """A base that finds these facts, the first one best."""

    def __init__(self, *names: str, texts: Mapping[str, str] = FACTS) -> None:
        found = scored(**{name: 1 / rank for rank, name in enumerate(names, 1)})
        places = [{"source_file": name, "collection": COLLECTIONS.get(name, "science")} for name in names]
        super().__init__(
            [
                Document(texts[one.id], place, one.score, one.id, one.scores)
                for one, place in zip(found, places, strict=True)
            ]
        )


def fill_with_facts(store: LocalStore) -> None:
    """Write a source of one chunk for each fact."""
    store.use_embedder(MINILM.fingerprint)
    for (name, text), vector in zip(FACTS.items(), MINILM.embed(list(FACTS.values())), strict=True):
        place = {"collection": COLLECTIONS[name], "source_file": name, "chunk_index": 0, "source_hash": "1"}
        chunk = EmbeddedChunk(text, {**place, "start": 0, "end": len(text)}, vector)
        store.replace_source(COLLECTIONS[name], name, [chunk])


class Says:
    """A generator of one answer, or of what a function makes of the prompt.

    A mapping is sent as JSON, a text as it is, an exception is raised.
    """

    def __init__(self, reply: Any) -> None:
        self.reply: Callable[[str], Any] = reply if callable(reply) else lambda _: reply
        self.prompts: list[str] = []

    def generate(self, prompt: str, *, schema: Any = None) -> str:
        self.prompts.append(prompt)
        model_call(tokens=11)
        said = self.reply(prompt)
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, str) else json.dumps(said)


def traced(technique: Any, query: str = QUESTION, **options: Any) -> tuple[list[Document], tuple[Stage, ...]]:
    """The results of a technique, and its stages."""
    with collect() as trace:
        documents = technique.retrieve(query, **options)
    return documents, trace.stages()


def degraded(stages: tuple[Stage, ...]) -> str:
    return "; ".join(RetrievalResult("", [], 0, 0.0, stages).degraded)


def ids(documents: Sequence[Document]) -> list[str]:
    return [document.id for document in documents]


def names(documents: Sequence[Document]) -> list[str]:
    return [str(document.metadata["source_file"]) for document in documents]
