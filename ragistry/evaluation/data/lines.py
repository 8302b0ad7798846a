"""Read and write text files of test sets, plain or gzip."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ragistry.errors import DatasetError
from ragistry.evaluation.data.dataset import Qrels

R = TypeVar("R", bound="Row")


class Row(BaseModel):
    """A line with a JSON object; ids may be numbers, and unknown keys are ignored."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """Each line that is not blank, and its place ``file:line``. Raises `DatasetError` for a file that is not text."""
    opened: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield f"{path.name}:{number}", line.rstrip("\r\n")
    except FileNotFoundError as error:
        raise DatasetError(f"there is no file {str(path)!r}; give the path of one that exists") from error
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DatasetError(f"{str(path)!r} cannot be read: {error}; it must be UTF-8 text, plain or gzip") from error


def rows_of(path: Path, model: type[R], problems: list[str]) -> Iterator[tuple[str, R]]:
    """Each line as a model, with its place; invalid lines are added to ``problems``."""
    for place, line in lines_of(path):
        try:
            row = model.model_validate_json(line)
        except ValidationError as error:
            wrong = error.errors()[0]
            key = f"{wrong['loc'][0]!r}: " if wrong["loc"] else ""
            problems.append(f"{place}: {key}{wrong['msg']}, in {line!r:.80}")
        else:
            yield place, row


def judge(qrels: Qrels, query: str, document: str, grade: str) -> None:
    """Add a judgement; some sets write grades as ``1.0``. Raises `ValueError` if it contradicts an earlier one."""
    number = float(grade)
    if not number.is_integer():
        raise ValueError(f"the grade {grade!r} is not a whole number")
    before = qrels.setdefault(query, {}).setdefault(document, int(number))
    if before != number:
        raise ValueError(f"{document!r} has grade {before} for query {query!r}, too; keep one")


def fields_of(
    path: Path, take: Callable[..., None], shape: str, split: Callable[[str], Iterable[str]], problems: list[str]
) -> None:
    """Pass the fields of each line to ``take``; lines that it rejects are added to ``problems``."""
    for place, line in lines_of(path):
        try:
            take(*split(line))
        except TypeError:  # too many fields, or too few
            problems.append(f"{place}: {line!r:.80} is not {shape!r}")
        except (ValueError, OverflowError) as error:
            problems.append(f"{place}: {line!r:.80}: {error}")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8, each ended by a line feed on every system, with gzip where the name ends in ``.gz``."""
    encoded = (f"{line}\n".encode() for line in lines)
    with path.open("wb") as file:
        if path.suffix != ".gz":
            file.writelines(encoded)
            return
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as stream:  # without name and time: always the same bytes
            stream.writelines(encoded)
