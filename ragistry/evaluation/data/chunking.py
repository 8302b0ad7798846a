"""Data of a chunking evaluation: whole texts, and questions answered by ranges of characters.

Smith and Troynikov, Evaluating Chunking Strategies for Retrieval (Chroma technical report, 2024). Ranges are spans of a
test set, so that `compare` can measure chunk sizes and techniques that widen chunks:
``compare(["naive"], folder, ["SR@5", "SP@5"], grid={"chunk_size": [400, 1000]})``.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from pydantic import Field

from ragistry.errors import DatasetError
from ragistry.evaluation.data.dataset import Dataset, Spans, Text, raise_together
from ragistry.evaluation.data.lines import Row, rows_of


class QuestionRow(Row):
    """A line of queries.jsonl: its text, and the ranges that answer."""

    id: str = Field(alias="_id")
    text: str
    corpus: str
    references: list[tuple[int, int]] = Field(min_length=1)


def is_chunking_set(folder: Path) -> bool:
    """Whether a folder has whole texts with questions instead of a corpus in BEIR's layout."""
    return (folder / "queries.jsonl").is_file() and not any(folder.glob("corpus.jsonl*")) and bool(_texts_in(folder))


def read_chunking_set(folder: str | Path) -> Dataset:
    """``NAME.md.gz`` or ``NAME.md``, and ``queries.jsonl``: ``_id``, ``text``, ``corpus`` (NAME), ``references``.

    Line ends are kept, because references count characters. Raises `DatasetError` with all errors.
    """
    root, problems, queries, spans = Path(folder), list[str](), dict[str, str](), Spans()
    texts = {path.name.partition(".md")[0]: _read(path) for path in _texts_in(root)}
    for place, row in rows_of(root / "queries.jsonl", QuestionRow, problems):
        queries[row.id] = row.text
        if row.corpus not in texts:
            problems.append(f"{place}: 'corpus' is {row.corpus!r}; the texts are {sorted(texts)!r:.200}")
            continue
        before = len(texts[row.corpus]) - len(texts[row.corpus].lstrip())  # the searched text begins after white space
        spans[row.id] = {row.corpus: [(start - before, end - before) for start, end in row.references]}
    raise_together(root.name, problems)
    return Dataset(root.name, [Text(name, "", text) for name, text in texts.items()], queries, {}, spans=spans)


def _texts_in(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.glob("*.md*") if path.name.endswith((".md", ".md.gz")) and path.name != "README.md"
    )


def _read(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DatasetError(f"{str(path)!r} cannot be read: {error}; it must be UTF-8 text, plain or gzip") from error
