"""Convert Jupyter notebooks to Markdown: kreuzberg damages their characters outside of ASCII."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any


def read_notebook(text: str) -> str:
    """Convert the cells of a notebook (nbformat 3 to 5): Markdown unchanged, code and its text output fenced.

    Raises `ValueError` if the text is not a notebook.
    """
    try:
        notebook = json.loads(text)
        language = notebook.get("metadata", {}).get("language_info", {}).get("name", "python")
        cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]
        return "\n\n".join(part for part in _parts(cells, language) if part)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError("not a notebook") from error


def _parts(cells: Iterable[dict[str, Any]], language: str) -> Iterator[str]:
    for cell in cells:
        text = _joined(cell["source"] if "source" in cell else cell["input"])
        if cell["cell_type"] == "heading":  # of nbformat 3
            yield f"{'#' * cell['level']} {text}"
        elif cell["cell_type"] == "code":
            yield _fenced(text, language)
            for output in cell.get("outputs", ()):
                yield _fenced(_joined(output.get("text") or output.get("data", {}).get("text/plain") or ""), "")
        else:
            yield text


def _joined(lines: str | list[str]) -> str:
    return (lines if isinstance(lines, str) else "".join(lines)).strip("\n")


def _fenced(text: str, language: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"{fence}{language}\n{text}\n{fence}" if text.strip() else ""
