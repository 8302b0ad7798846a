"""Jupyter notebooks as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ragistry.readers.blocks import Block, ReadDocument, UnreadableFileError
from ragistry.readers.encoding import decode, without_commands
from ragistry.readers.html_page import fenced, to_markdown


def read(data: bytes, suffix: str) -> ReadDocument:  # noqa: ARG001, one reader for one suffix
    """Read the cells of a notebook (nbformat 3 to 5): Markdown as it is, code and its outputs fenced."""
    try:
        notebook = json.loads(decode(data).text)
        described = notebook.get("metadata", {})
        language = described.get("language_info", {}).get("name", "python")
        cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]
        blocks = [Block(part) for part in _parts(cells, language) if part]
        authors = [str(one.get("name", "")) for one in described.get("authors") or () if isinstance(one, dict)]
        info = {"Title": str(described.get("title", "")), "Author": ", ".join(filter(None, authors))}
    except json.JSONDecodeError as error:
        raise UnreadableFileError(f"line {error.lineno} is not JSON") from error
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise UnreadableFileError("it is not a notebook") from error
    return ReadDocument(blocks, info)


def _parts(cells: Iterable[dict[str, Any]], language: str) -> Iterator[str]:
    for cell in cells:
        text = _joined(cell["source"] if "source" in cell else cell["input"])
        if cell["cell_type"] == "heading":  # of nbformat 3
            yield f"{'#' * min(6, cell['level'])} {text}"
        elif cell["cell_type"] == "code":
            yield _fenced(text, language)
            for output in cell.get("outputs", ()):
                yield from _output(output)
        else:
            yield text


def _output(output: dict[str, Any]) -> Iterator[str]:
    """Yield the richest text of an output: Markdown, HTML, plain text, or an error with its traceback."""
    if output.get("output_type") in ("error", "pyerr"):
        trace = "\n".join(map(str, output.get("traceback") or ()))
        error = f"{output.get('ename', '')}: {output.get('evalue', '')}"
        yield _fenced(without_commands(trace if str(output.get("evalue", "")) in trace else f"{trace}\n{error}"), "")
        return
    data = output.get("data") or {}
    if markdown := data.get("text/markdown"):
        yield _joined(markdown)
    elif page := data.get("text/html") or output.get("html"):
        yield to_markdown(_joined(page)).strip()
    else:
        yield _fenced(without_commands(_joined(output.get("text") or data.get("text/plain") or "")), "")


def _joined(lines: str | list[str]) -> str:
    text = lines if isinstance(lines, str) else "".join(lines)
    return (
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip("\n")
    )  # JSON may have half a character


def _fenced(text: str, language: str) -> str:
    return fenced(text, language) if text.strip() else ""
