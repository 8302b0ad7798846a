"""Eight collections in one workspace, for `routing`: forty documents a source, each document one chunk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.scifact import DATA, records
from ragistry import Workspace, open_workspace
from ragistry.types import EmbeddedChunk

COLLECTIONS = {
    "scifact": "Abstracts of biomedical research: genes, cells, diseases, drugs and clinical trials.",
    "cranfield": "Abstracts on aerodynamics: wings, boundary layers, shock waves, heat transfer and flight structures.",
    "cacm": "Communications of the ACM, titles and abstracts: algorithms, programming languages, computers.",
    "npl": "Titles and abstracts on electronics and physics: circuits, transistors, radio waves, the ionosphere.",
    "cisi": "Abstracts on library and information science: indexing, catalogues, retrieval, scientific literature.",
    "hotpotqa-pooled500": "Paragraphs of an encyclopaedia: people, places, films, music, history and sport.",
    "claude-docs": "Documentation of an API for language models: prompts, tools, messages, errors, limits.",
    "hugo-known-item": "Documentation of a static site generator: templates, content, settings, commands.",
}
PER_SOURCE = 40
QUICK = 150
"""Documents of each collection in a quick run."""


class Query(NamedTuple):
    """A query, the collection that it belongs to (None: none), and its judged documents."""

    id: str
    text: str
    collection: str | None
    judged: dict[str, int]


def queries() -> list[Query]:
    """The labelled queries."""
    folder = DATA / "routing"
    judged: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        judged.setdefault(query, {})[document] = int(grade)
    lines = map(json.loads, (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    return [Query(line["_id"], line["text"], line["collection"], judged.get(line["_id"], {})) for line in lines]


def workspace(keep: Path, quick: bool = False) -> Workspace:
    """The collections in a workspace below ``keep``; what is there already is not embedded and not written again."""
    root = keep / ("quick" if quick else "whole")
    root.mkdir(parents=True, exist_ok=True)
    opened = open_workspace(root)
    known = {item["name"]: item["chunk_count"] for item in opened.library.list_collections()}
    for name, description in COLLECTIONS.items():
        if name not in known:
            opened.library.create_collection(name, description)
        if not known.get(name):
            _fill(opened, name, keep, QUICK if quick else None)
    return opened


def _fill(opened: Workspace, name: str, keep: Path, limit: int | None) -> None:
    items = list(records(DATA / name, "corpus.jsonl"))[:limit]
    texts = [f"{item['title']} {item['text']}" for item in items]
    vectors = _vectors(opened, name, texts, keep, whole=limit is None)
    chunks = [
        EmbeddedChunk(text, _metadata(name, item, row), vector)
        for row, (text, item, vector) in enumerate(zip(texts, items, vectors, strict=True))
        if text.strip()
    ]
    opened.store.add_documents(chunks)


def _metadata(name: str, item: dict[str, str], row: int) -> dict[str, str | int]:
    source, index = divmod(row, PER_SOURCE)
    return {
        "collection": name, "source_file": f"{source:04}.jsonl", "chunk_index": index,
        "doc": f"{name}/{item['_id']}", "title": item["title"], "source_hash": "1",
    }  # fmt: skip


def _vectors(opened: Workspace, name: str, texts: list[str], keep: Path, *, whole: bool) -> np.ndarray:
    kept = keep / "vectors" / f"{name}.npy"
    if kept.exists():
        return np.load(kept)[: len(texts)]
    vectors = opened.embedder.embed(texts)
    if whole:
        kept.parent.mkdir(exist_ok=True)
        np.save(kept, vectors)
    return vectors
