"""An embedder without a model for tests in which vectors do not matter, and texts of a known number of chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from ragistry import Workspace
from ragistry.errors import EmbeddingGenerationError, ModelError
from ragistry.testing.hashed import HashingEmbedder
from tests.library.shelf import Shelf


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> HashingEmbedder:
    """The embedder of every workspace that the test opens, whose chunks do not overlap; its `check` may be set."""
    monkeypatch.setenv("RAGISTRY_CHUNK_OVERLAP", "0")
    made = HashingEmbedder(64)
    monkeypatch.setattr("ragistry.workspace.choose_embedder", lambda *_, **__: made)
    return made


@pytest.fixture
def shelf(workspace: Workspace, embedder: HashingEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A folder and an empty library; the model refuses texts with Poison and with Venom."""
    for_poison, for_venom = refusing("Poison", ModelError), refusing("Venom")
    embedder.check = lambda texts: (for_poison(texts), for_venom(texts))
    return Shelf(workspace, tmp_path / "files", monkeypatch)


def refusing(word: str, error: type[ModelError] = EmbeddingGenerationError) -> Callable[[Sequence[str]], None]:
    """A check for `HashingEmbedder`: texts with this word are refused."""

    def check(texts: Sequence[str]) -> None:
        if any(word in text for text in texts):
            raise error(f"cannot embed {word!r}")

    return check


def paragraphs(*topics: str) -> str:
    """A text whose every paragraph is a chunk of its own."""
    return "\n\n".join(f"{topic} " + f"is what this paragraph is about, and {topic} only. " * 14 for topic in topics)


def texts(**topics: str) -> Mapping[str, str]:
    """Text files with a paragraph about each of their topics: ``texts(one="Tea Rain")`` is ``one.txt``."""
    return {f"{name}.txt": paragraphs(*words.split()) if words else "" for name, words in topics.items()}


def stored(workspace: Workspace, **where: str) -> list[str]:
    """The texts in the store, in the order of their sources and chunks."""
    documents = list(workspace.store.scan(dict(where) or None))
    documents.sort(key=lambda one: (one.metadata["source_file"], one.metadata["chunk_index"]))
    return [document.content for document in documents]


def topics(workspace: Workspace, source: str | None = None) -> list[str]:
    """The first words of the chunks of a source, or of all."""
    return [text.split()[0] for text in stored(workspace, **({} if source is None else {"source_file": source}))]
