"""A source in a real store, and a base that finds just the chunks that a test names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ragistry.chunking.chunker import chunk_document
from ragistry.stores.local import LocalStore
from ragistry.types import Document, EmbeddedChunk, StageScore
from ragistry.utils.ids import chunk_id
from tests.techniques.doubles import Ready

GUIDE = """\
# Guide

What this guide is for.

## Install

There are two systems on which it runs. Choose yours.

### Linux

Take the archive. Unpack it where you like. Then run the script that lies in it.

It asks for a password.

### Windows

Take the installer. Start it with a double click. Follow what it says.

## Use

Open the first page. Choose a name. Write it into the field at the top.

Press the button at the right. Wait until the lamp is green.

Then close the page. Nothing is lost when you leave early. It goes on by itself.
"""


def ingest(store: LocalStore, path: Path, size: int, overlap: int = 0, **metadata: Any) -> list[EmbeddedChunk]:
    """Put a file into the collection "notes" of the store and return its chunks, in order."""
    given = {"collection": "notes", "source_file": path.name, "source_hash": "1", **metadata}
    chunks = [
        EmbeddedChunk(text, {**known, **given}, [1.0, float(known["chunk_index"])])
        for text, known in chunk_document(path, size, overlap)
    ]
    store.replace_source("notes", path.name, chunks)
    return chunks


def guide(folder: Path) -> Path:
    path = folder / "guide.md"
    path.write_text(GUIDE, encoding="utf-8")
    return path


class Finds(Ready):
    """A base that finds these chunks of a source, the first one best."""

    def __init__(self, store: LocalStore, source_file: str, *indexes: int) -> None:
        found = store.get([chunk_id("notes", source_file, index) for index in indexes])
        fixed = (StageScore("fixed", "other", 1.0),)
        super().__init__([replace(one, score=1 - rank / 100, scores=fixed) for rank, one in enumerate(found)])


def parts(documents: list[Document]) -> list[list[int]]:
    """The chunks of which each document was made."""
    return [document.metadata["chunk_indexes"] for document in documents]


def words(text: str) -> list[str]:
    return text.split()
