"""A YAML file whose values remember their line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragistry.errors import InvalidConfigError

_UNFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What the YAML library raises, besides its own errors, for a value that does not fit its tag or its form."""

MOST = 200_000
"""Values in a file, each alias counted as all that it stands for."""


class TooManyValuesError(InvalidConfigError):
    """The file says more than it can mean."""


@dataclass(frozen=True, slots=True)
class YamlFile:
    """``data``: the file as plain mappings, lists and scalars. ``tree``: the same, with lines and comments."""

    path: Path
    data: dict[str, Any]
    tree: Any

    def line(self, keys: Sequence[str | int]) -> int:
        """The line (from 1) of the deepest part of ``keys`` that is in the file."""
        line = 0
        node: Any = self.tree
        for key in keys:
            marks = getattr(node, "lc", None)
            if marks is None or marks.data is None or not _has(node, key):  # a tagged list has no marks
                break
            if key in marks.data:  # of what a mapping has by a merge (<<) it has no mark
                line = marks.data[key][0]
            node = node[key]
        return int(line) + 1

    def place(self, keys: Sequence[str | int]) -> str:
        """``file:line`` of the value at ``keys``."""
        return f"{self.path}:{self.line(keys)}"


def _has(node: Any, key: str | int) -> bool:
    return key in node if isinstance(node, dict) else isinstance(key, int) and 0 <= key < len(node)


def read_yaml(path: Path) -> YamlFile:
    """Read a YAML mapping. Raises `InvalidConfigError` with the line of a mistake; tags never build objects."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidConfigError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8") from error
    except OSError as error:
        raise InvalidConfigError(f"{path}: cannot be read: {error.strerror}") from error
    tree = _loaded(path, text)
    if tree is None:
        tree = {}
    try:
        data = plain(tree)
    except TooManyValuesError as error:
        raise InvalidConfigError(f"{path}: {error}") from error
    if not isinstance(data, dict):
        raise InvalidConfigError(f"{path}:1: must be a mapping of settings, got {data!r}")
    return YamlFile(path, data, tree)


def _loaded(path: Path, text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return YAML(typ="rt", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        problem = " ".join(str(error.problem or error.context).split())
        raise InvalidConfigError(f"{place}: {problem}; mend the YAML there") from error
    except YAMLError as error:
        raise InvalidConfigError(f"{path}: {' '.join(str(error).split())}; mend the YAML there") from error
    except RecursionError as error:
        raise InvalidConfigError(f"{path}: lists or mappings stand too deep in each other; mend the YAML") from error
    except _UNFIT as error:
        for node in _scalars(YAML(typ="rt", pure=True).compose(text)):
            if not _fits(node):
                kind, place = node.tag.rpartition(":")[2], f"{path}:{node.start_mark.line + 1}"
                raise InvalidConfigError(
                    f"{place}: {node.value!r} is no {kind}; correct it, or write it in quotes and without a tag"
                ) from error
        raise InvalidConfigError(f"{path}: a value does not fit its tag ({error}); mend the YAML") from error


def _scalars(node: Any) -> Iterator[Any]:
    """The scalars of a composed document, in order."""
    if not isinstance(node.value, list):
        yield node
        return
    for inner in node.value:
        for part in inner if isinstance(inner, tuple) else (inner,):
            yield from _scalars(part)


def _fits(scalar: Any) -> bool:
    from ruamel.yaml import YAML

    try:
        YAML(typ="rt", pure=True).constructor.construct_object(scalar, deep=True)
    except _UNFIT:
        return False
    return True


def plain(node: Any) -> Any:
    """The value without what the YAML library keeps beside it.

    Raises `TooManyValuesError` above `MOST` of them: a few lines of aliases may stand for more than memory holds.
    """
    values = 0

    def of(node: Any) -> Any:
        nonlocal values
        values += 1
        if values > MOST:
            raise TooManyValuesError(f"it stands for more than {MOST:,} values; write out what its aliases (*) mean")
        if isinstance(node, dict):
            return {of(key): of(value) for key, value in node.items()}
        if isinstance(node, list):
            return [of(item) for item in node]
        for kind in (bool, int, float, str):
            if isinstance(node, kind):
                return kind(node)
        return node if node is None else str(node)

    return of(node)
