"""Data of a chunking evaluation: whole texts, and questions that ranges of their characters answer.

Smith and Troynikov, Evaluating Chunking Strategies for Retrieval (Chroma technical report, 2024). Ranges are spans of a
test set, so that `compare` measures chunk sizes and what widens chunks:
``compare(["naive"], folder, ["SR@5", "SP@5"], grid={"chunk_size": [400, 1000]})``.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

from ragistry.errors import DatasetError
from ragistry.evaluation.data.dataset import Dataset, Spans, Text, raise_together


def is_chunking_set(folder: Path) -> bool:
    """Whether a folder holds whole texts with questions, and no corpus in BEIR's layout."""
    return (folder / "queries.jsonl").is_file() and not any(folder.glob("corpus.jsonl*")) and bool(_texts_in(folder))


def read_chunking_set(folder: str | Path) -> Dataset:
    """``NAME.md.gz`` or ``NAME.md``, and ``queries.jsonl``: ``_id``, ``text``, ``corpus`` (NAME), ``references``.

    Line ends are kept as they are, since references count characters. Raises `DatasetError` with all that is wrong.
    """
    root = Path(folder)
    spans: Spans = {}
    queries: dict[str, str] = {}
    problems = []
    try:
        texts = {path.name.partition(".md")[0]: _read(path) for path in _texts_in(root)}
        lines = (root / "queries.jsonl").read_text(encoding="utf-8").split("\n")  # JSON may hold other ends of lines
        for row in (json.loads(line) for line in lines if line.strip()):
            query, name = str(row["_id"]), str(row["corpus"])
            queries[query] = str(row["text"])
            before = len(texts.get(name, "")) - len(texts.get(name, "").lstrip())
            ranges = [(int(start) - before, int(end) - before) for start, end in row["references"]]
            if name not in texts or not ranges:
                wrong = f"is on {name!r}; the texts are {sorted(texts)!r:.200}" if ranges else "has no answer"
                problems.append(f"question {query!r} {wrong}; correct it, or leave it out")
            else:
                spans[query] = {name: ranges}
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DatasetError(
            f"{str(root)!r} is not a set of texts and questions: {error!r}; see read_chunking_set"
        ) from error
    raise_together(root.name, problems)
    return Dataset(root.name, [Text(name, "", text) for name, text in texts.items()], queries, {}, spans=spans)


def _texts_in(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.glob("*.md*") if path.name.endswith((".md", ".md.gz")) and path.name != "README.md"
    )


def _read(path: Path) -> str:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
