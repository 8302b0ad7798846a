"""How well an embedder knows the texts of a library: measured from the texts, recorded, and used by `hybrid`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry import Workspace
from ragistry.library import fit as fits
from ragistry.library.copying import copy_library
from ragistry.library.fit import knowledge, measure_if_due
from ragistry.models.known import fit_line
from ragistry.stores.local import LocalStore
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import KNOWN, Document, Fit, Role

WORDS = [f"{first}{second}" for first in "badefogimulin" for second in ("tar", "nel", "dos", "rik", "pum", "lav")]


class Drawn:
    """Vectors of 32 random numbers; with ``topics``, those of a text lean towards the topic that it names."""

    fingerprint = HashingEmbedder().fingerprint

    def __init__(self, topics: float = 0.0, offset: float = 0.0) -> None:
        self.rng, self.topics, self.offset = np.random.default_rng(0), topics, offset
        self.centres = np.random.default_rng(1).normal(size=(40, 32))

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Any:
        names = [int(text.split()[1]) for text in texts]
        made = self.rng.normal(size=(len(texts), 32)) + self.topics * self.centres[names] + self.offset
        return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def chunks(count: int, copies: int = 1) -> list[Document]:
    """Chunks of one sentence each on 40 topics, every text ``copies`` times."""
    texts = [f"topic {number % 40} is about {WORDS[number % 78]} number {number}" for number in range(count)]
    every = [text for text in texts for _ in range(copies)]
    return [Document(text, {"source_file": f"{at}.md"}, 0.0, str(at)) for at, text in enumerate(every)]


def score(count: int, embedder: Any, copies: int = 1) -> float | None:
    documents = chunks(count, copies)
    vectors = embedder.embed([one.content for one in documents[::copies]])
    return knowledge(documents, np.repeat(vectors, copies, axis=0), embedder)


@pytest.mark.parametrize("count", [100, 150, 400, 900])
def test_noise_is_about_zero_and_knowledge_stands_out_at_any_size(count):
    assert abs(score(count, Drawn())) < 0.12
    assert abs(score(count, Drawn(offset=3.0))) < 0.12  # cosines from 0.8 to 1
    assert score(count, Drawn(topics=2.0)) > KNOWN


def test_copies_of_chunks_change_little():
    assert score(200, Drawn(1.0), copies=2) == pytest.approx(score(200, Drawn(1.0)), abs=0.15)


@pytest.mark.parametrize(
    ("documents", "vectors"),
    [
        (chunks(99), Drawn().embed([one.content for one in chunks(99)])),  # too few
        (chunks(200), np.ones((200, 32), np.float32)),  # a constant embedder
        (chunks(1, copies=200), np.repeat(Drawn().embed(["topic 1"]), 200, axis=0)),  # one text repeated
        (
            [replace(one, content="| 1 | 2 | 3 |") for one in chunks(200)],
            Drawn().embed([one.content for one in chunks(200)]),
        ),  # a table of numbers is no sentence
    ],
)
def test_what_cannot_be_measured_is_unknown(documents, vectors):
    assert knowledge(documents, vectors, Drawn()) is None


def test_the_expected_best_of_fifty_is_that_of_random_draws():
    weights, rng = fits._expected_best(300), np.random.default_rng(0)
    assert weights.sum() == pytest.approx(1)
    best = [min(rng.choice(300, 50, replace=False)) for _ in range(4_000)]
    assert weights[:5] == pytest.approx([best.count(rank) / 4_000 for rank in range(5)], abs=0.02)


def test_languages_are_measured_by_themselves_and_the_best_counts():
    def of(language: str, count: int) -> list[Document]:
        return [
            replace(one, metadata={**one.metadata, "collection": language, "language": language})
            for one in chunks(count)
        ]

    foreign, english, few = of("yo", 300), of("en", 120), of("de", 30)
    assert [len(group) for group in fits._by_language([*foreign, *english, *few])] == [300, 120]
    assert [len(group) for group in fits._by_language(few)] == [30]


def test_the_weight_falls_from_one_but_not_to_nothing():
    assert [round(Fit(score, 100, "minilm").weight, 2) for score in (1, 0.4, 0.2, 0.0, -0.1)] == [
        1,
        1,
        0.25,
        0.01,
        0.01,
    ]


@pytest.fixture
def foreign(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A library of 120 sources in words that no model knows."""
    monkeypatch.setattr(fits, "knowledge", lambda *_: 0.16)
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(120):
        words = " ".join(WORDS[(number * 7 + step * 11) % 78] for step in range(12))
        (folder / f"{number}.txt").write_text(f"{words}.\n", encoding="utf-8")
    workspace.library.ingest_paths([folder], "notes")
    return workspace


def test_an_ingest_measures_once_and_again_when_the_chunks_double(foreign: Workspace, monkeypatch: Any) -> None:
    store: Any = foreign.store
    assert (store.fit().score, store.fit().chunks) == (0.16, store.count())
    foreign.library.ingest_text("one more text", "more.txt", "notes")
    assert store.fit().chunks == store.count() - 1
    monkeypatch.setattr(fits, "knowledge", lambda *_: None)
    for number in range(store.fit().chunks):
        foreign.library.ingest_text(f"text {number}", f"{number}.md", "notes")
    assert store.fit().score == KNOWN  # too little to measure: the default stands
    assert measure_if_due(store, foreign.embedder) is None


@pytest.mark.parametrize("workspace", ["local", "postgres"], indirect=True)
def test_words_decide_where_the_embedder_hardly_knows_the_texts(foreign: Workspace) -> None:
    fuse = next(one for one in foreign.search("tar nel", "hybrid").trace if one.name == "fuse")
    weight = {one["base"]: one["weight"] for one in fuse.detail["gate"]}
    assert fuse.detail["fit"].startswith("all-MiniLM-L6-v2 hardly knows these texts (0.16 of 0.4), so words decide")
    assert weight["naive"] + weight["bm25"] == pytest.approx(1, abs=0.01)
    assert foreign.search("qqqq", "hybrid").documents  # words find nothing: vectors still do


def test_a_copy_keeps_what_was_measured(foreign: Workspace, tmp_path: Path) -> None:
    store: Any = foreign.store
    with closing(LocalStore(tmp_path / "copy")) as copy:
        copy_library(store, copy)
        assert copy.fit() == store.fit()


@pytest.mark.parametrize(
    ("fit", "said"),
    [
        (Fit(0.16, 9, "minilm", "ar"), "`embed_model: multilingual` is made for Arabic"),
        (Fit(-0.2, 9, "minilm", "en"), "(0.00 of 0.4), so words decide"),
        (Fit(0.16, 9, "bge-m3", "ar"), "so words decide"),
        (Fit(0.31, 9, "minilm", "ar"), ""),
        (None, ""),
    ],
)
def test_a_weak_embedder_is_said_with_the_remedy(fit, said):
    line = fit_line(fit)
    assert line.endswith(said)
    assert bool(line) == bool(said)


def test_a_language_that_is_not_recorded_is_told_from_the_texts():
    """With a fixed `language` no chunk has one; the order of the chunks stays."""

    def of(text: str) -> list[Document]:
        return [Document(text * 3, {"source_file": f"{text[:3]}{number}"}, 0.0) for number in range(120)]

    english = of("The houses at the river were built in the last century, and many of them are empty in this year. ")
    german = of("Die Häuser am Fluss wurden im letzten Jahrhundert gebaut, und viele von ihnen stehen heute leer. ")
    mixed = [one for pair in zip(english, german, strict=True) for one in pair]
    assert fits._by_language(mixed) == [english, german]
