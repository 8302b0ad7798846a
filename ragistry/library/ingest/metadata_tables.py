"""Read metadata of files from a ``metadata.jsonl`` or ``metadata.csv`` next to them.

Each line has a file, relative to the folder of the table, in the column `FILE_COLUMNS`, and its metadata. The table
applies to the files of its folder and the subfolders; a table nearer to a file wins. A file of that name without such a
column is an ordinary document.
"""

from __future__ import annotations

import csv
import json
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from ragistry.errors import SourceError
from ragistry.library.ingest.source import IngestSource, SourceFile, with_metadata
from ragistry.readers.encoding import decode
from ragistry.utils.metadata import accepted_metadata, parse_value, shortened
from ragistry.utils.wording import numbered, shown

TABLES = ("metadata.csv", "metadata.jsonl")
"""Names of the tables; of two in one folder, the second wins."""
FILE_COLUMNS = ("file_name", "file", "filename", "path", "source_file", "source")
SHOWN = 10
"""Maximum number of problems and files in a warning."""


@dataclass(slots=True)
class MetadataTable:
    """The metadata of the files that a table names, by normalised path, and the problems of its lines."""

    path: str
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, number: int, row: Mapping[str, Any], column: str) -> None:
        """Add a line. Of two lines with the same file, the first one counts."""
        name = row.get(column)
        if not isinstance(name, str) or not name.strip():
            self.problems.append(f"line {number} names no file")
            return
        path = _normal(PurePath(self.path).parent / name.strip().replace("\\", "/"))
        if path in self.rows:
            self.problems.append(f"line {number} names {shown(name, 80)} again")
            return
        accepted, problems = accepted_metadata({key: value for key, value in row.items() if key != column})
        self.rows[path], long = shortened(accepted)
        self.problems += [f"line {number}: {problem}" for problem in (*problems, *long)]


def add_tables(
    files: Sequence[IngestSource], limit: int, *, alone: bool = False
) -> tuple[list[IngestSource], list[str]]:
    """Add the metadata of tables to the files, and remove the tables from them.

    Args:
        files: Files of a folder; or files that were passed one by one.
        limit: Maximum size of a table in bytes.
        alone: Read the tables in the folders of the files, which are not in ``files``.

    Returns:
        The files, and warnings.
    """
    candidates = _beside(files) if alone else [one for one in files if _name(one) in TABLES]
    candidates.sort(key=lambda one: (one.shown.count("/"), _name(one)))
    tables = {one.shown: table for one in candidates if (table := _read(one, limit)) is not None}
    if not tables:
        return list(files), []
    files = [one for one in files if one.shown not in tables]
    known = {_normal(one.shown) for one in files}
    metadata: dict[str, dict[str, Any]] = {}
    warnings = []
    for path, table in tables.items():
        for name, row in table.rows.items():
            metadata.setdefault(name, {}).update(row)
        if table.problems:
            warnings.append(f"{path}: {'; '.join(table.problems[:SHOWN])}{_more(table.problems)}")
        missing = [] if alone else [PurePath(name).name for name in table.rows if name not in known]
        if missing:
            files_of_it = numbered(len(missing), "file[|s] that [is|are] not read from its folder")
            warnings.append(f"{path} names {files_of_it}: {', '.join(map(repr, missing[:SHOWN]))}{_more(missing)}")
    return [with_metadata(one, table=metadata.get(_normal(one.shown), {})) for one in files], warnings


def _more(items: Sequence[object]) -> str:
    return f" and {len(items) - SHOWN:,} more" if len(items) > SHOWN else ""


def _name(source: IngestSource) -> str:
    return PurePosixPath(source.source_file).name.lower()


def _normal(path: str | PurePath) -> str:
    """Return a path for comparison: without ``..``, and composed."""
    return unicodedata.normalize("NFC", PurePath(os.path.normpath(path)).as_posix())


def _beside(files: Sequence[IngestSource]) -> list[IngestSource]:
    folders = dict.fromkeys(Path(one.path).parent for one in files if isinstance(one, SourceFile))
    paths = (folder / name for folder in folders for name in TABLES)
    return [SourceFile(str(path), path.name) for path in paths if path.is_file()]


def _read(source: IngestSource, limit: int) -> MetadataTable | None:
    """Read a table; None if the file is not one, or cannot be read, which its reader reports."""
    if not isinstance(source, SourceFile):
        return None
    try:
        with source.open() as stream:
            data = stream.read(limit + 1)
        text = decode(data).text if len(data) <= limit else ""
    except (OSError, ValueError, SourceError):
        return None
    table = MetadataTable(source.shown)
    lines = _csv_lines(text, table) if _name(source) == TABLES[0] else _json_lines(text, table)
    column = ""
    for number, row in lines:
        column = column or next((name for name in FILE_COLUMNS if name in row), "")
        if not column:
            return None
        table.add(number, row, column)
    return table if column else None


def _csv_lines(text: str, table: MetadataTable) -> Iterator[tuple[int, dict[str, Any]]]:
    header = text.partition("\n")[0]
    delimiter = max(",;\t", key=header.count)
    reader = csv.DictReader(StringIO(text, newline=""), delimiter=delimiter, restkey="", skipinitialspace=True)
    lines: list[tuple[int, dict[str, str]]] = []
    try:
        for row in reader:
            if row.pop("", None):
                table.problems.append(f"line {reader.line_num} has more cells than the first line")
            lines.append(
                (reader.line_num, {key.strip(): cell.strip() for key, cell in row.items() if cell and cell.strip()})
            )
    except csv.Error as error:
        table.problems.append(f"line {reader.line_num} cannot be read ({error}); the rest is left out")
    texts = {*FILE_COLUMNS, *_version_columns(cells for _, cells in lines)}
    for number, cells in lines:
        yield number, {key: cell if key in texts else parse_value(cell) for key, cell in cells.items()}


def _version_columns(rows: Iterable[Mapping[str, str]]) -> set[str]:
    """Return the columns of decimals of several lengths of which one ends in 0: 1.10 after 1.9 is not 1.1."""
    lengths: dict[str, set[int]] = {}
    ending: set[str] = set()
    for cells in rows:
        for key, cell in cells.items():
            whole, point, decimals = cell.partition(".")
            if point and decimals.isdecimal() and whole.removeprefix("-").isdecimal():
                lengths.setdefault(key, set()).add(len(decimals))
                if len(decimals) > 1 and decimals.endswith("0"):
                    ending.add(key)
    return {key for key in ending if len(lengths[key]) > 1}


def _json_lines(text: str, table: MetadataTable) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            table.problems.append(f"line {number} is not valid JSON ({error})")
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            table.problems.append(f"line {number} is not a JSON object")
