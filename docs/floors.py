"""The floors of the code, from the layers that import-linter checks, so that the table cannot lie."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from docs.markdown import code, table

ROOT = Path(__file__).resolve().parents[1]
WHAT = {
    "cli": "commands, one file each",
    "web": "the page, a part of the server",
    "mcp": "the library for agents",
    "server": "the HTTP API, background jobs",
    "http": "guards and error responses of the server, the page and MCP",
    "client": "a workspace on a server, with the methods of an open one",
    "tools": "tools for language models: search_library, search_archives, LangChain",
    "evaluation": "test sets, measures, statistics, reports",
    "workspace": "the composition root: reads the configuration, builds each part once, on first use",
    "library": "collections, ingest, search; documentation repositories",
    "presentation": "how results look: blocks, excerpts, matches; as text and as HTML",
    "pipelines": "techniques joined as graphs; the only importer of PocketFlow",
    "answers": "answers with citations; quotations compared with the texts",
    "techniques": "ways to retrieve; they use stores and models through protocols",
    "models": "embedders and rerankers: text to vectors, pairs to scores",
    "ollama": "a client of Ollama",
    "engines": "where sources are read and texts embedded: in this process, or on Ray",
    "stores": "the local store, ChromaDB, Postgres",
    "fetch": "web pages, fetched within limits",
    "transport": "HTTP clients whose exchanges end in bounded time and memory",
    "config": "settings, files, their checks",
    "chunking": "texts to chunks: chunker, spans, lead-ins, headers of tables, places",
    "readers": "documents to text with places: formats, encodings, the process that reads them",
    "text": "analysis of words, spellings, phrases, languages",
    "plugins": "find and import classes by name",
    "utils": "functions without state: conditions, ids, limits, wording",
    "protocols": "Technique, Embedder, Generator, Reranker, DocumentStore",
    "trace": "the stages of a retrieval",
    "types": "Document, Chunk, RetrievalResult: the values that pass between the parts",
    "errors": "one tree of errors",
}


def floors() -> list[list[str]]:
    """The packages of each floor, from the top down."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    return [re.findall(r"\w+", layer) for layer in layers]


def floors_table() -> str:
    """The floor of each package, counted from the top, and what it is for."""
    rows = ((str(floor), code(name), WHAT[name]) for floor, names in enumerate(floors(), 1) for name in names)
    return table(["floor", "package", "what"], rows)
