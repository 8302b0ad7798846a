"""An embedder without a model for tests in which vectors do not matter, and texts of a known number of chunks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from ragistry import Workspace
from ragistry.testing.hashed import HashingEmbedder


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> HashingEmbedder:
    """The embedder of every workspace that the test opens, whose chunks do not overlap; its `check` may be set."""
    monkeypatch.setenv("RAGISTRY_CHUNK_OVERLAP", "0")
    made = HashingEmbedder(64)
    monkeypatch.setattr("ragistry.workspace.choose_embedder", lambda *_, **__: made)
    return made


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


def deny(monkeypatch: pytest.MonkeyPatch, call: str, *places: Path) -> None:
    """Let ``os.stat``, ``os.lstat`` or ``os.scandir`` refuse what is at and below these places, also to root."""
    allowed = getattr(os, call)

    def denied(path: str | Path, **options: bool) -> object:
        if isinstance(path, str | Path) and any(Path(path).is_relative_to(place) for place in places):
            raise PermissionError(13, "Permission denied", str(path))
        return allowed(path, **options)

    monkeypatch.setattr(os, call, denied)
