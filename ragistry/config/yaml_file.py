"""Read YAML files, keeping the line of each value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragistry.errors import InvalidConfigError
from ragistry.utils.wording import shown

LARGEST = 1_000_000
"""Maximum size of a file in bytes, for which the parser needs up to two seconds."""
MOST = 200_000
"""Maximum number of values in a file, with aliases expanded."""
_UNFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions of the YAML library, besides its own errors, for invalid values."""


class TooManyValuesError(InvalidConfigError):
    """The aliases of the file expand to too many values."""


@dataclass(frozen=True, slots=True)
class YamlFile:
    """``data``: the file as plain mappings, lists and scalars. ``tree``: the same, with lines and comments."""

    path: Path
    data: dict[str, Any]
    tree: Any

    def line(self, keys: Sequence[str | int]) -> int:
        """The line (from 1) of the longest prefix of ``keys`` in the file."""
        line = 0
        node: Any = self.tree
        for key in keys:
            marks = getattr(node, "lc", None)
            if marks is None or marks.data is None or not _has(node, key):  # a tagged list has no marks
                break
            if key in marks.data:  # merged keys (<<) have no marks
                line = marks.data[key][0]
            node = node[key]
        return int(line) + 1

    def place(self, keys: Sequence[str | int]) -> str:
        """``file:line`` of the value at ``keys``."""
        return f"{self.path}:{self.line(keys)}"


def _has(node: Any, key: str | int) -> bool:
    return key in node if isinstance(node, dict) else isinstance(key, int) and 0 <= key < len(node)


def read_yaml(path: Path) -> YamlFile:
    """Read a YAML mapping without building objects from tags. Raises `InvalidConfigError` with the line of an error."""
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise InvalidConfigError(f"{path}: larger than {LARGEST:,} bytes; keep only the configuration in it")
        tree = _loaded(path, content.decode("utf-8"))
        data = {} if tree is None else plain(tree)
    except UnicodeDecodeError as error:
        raise InvalidConfigError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8") from error
    except OSError as error:
        raise InvalidConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except TooManyValuesError as error:
        raise InvalidConfigError(f"{path}: {error}") from error
    if not isinstance(data, dict):
        raise InvalidConfigError(f"{path}:1: must be a mapping of settings, got {data!r}")
    return YamlFile(path, data, tree)


def _loaded(path: Path, text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import ConstructorError, RoundTripConstructor
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    class Constructor(RoundTripConstructor):
        """Adds the line to errors of invalid values, such as ``!!int x`` or a date with month 13."""

        def construct_object(self, node: Any, deep: bool = False) -> Any:
            try:
                return super().construct_object(node, deep)
            except _UNFIT as error:
                kind = node.tag.rpartition(":")[2]
                said = f"{shown(node.value)} is not a valid {kind}; correct it, or write it in quotes"
                raise ConstructorError(None, None, said, node.start_mark) from error

    yaml = YAML(typ="rt", pure=True)
    yaml.Constructor = Constructor
    try:
        return yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise InvalidConfigError(f"{place}: {' '.join(str(error.problem or error.context).split())}") from error
    except YAMLError as error:
        raise InvalidConfigError(f"{path}: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise InvalidConfigError(f"{path}: lists or mappings are nested too deeply") from error


def plain(node: Any) -> Any:
    """The value as plain Python objects.

    Raises `TooManyValuesError` above `MOST` values: a few lines with aliases can exceed the memory.
    """
    values = 0

    def of(node: Any) -> Any:
        nonlocal values
        values += 1
        if values > MOST:
            raise TooManyValuesError(f"it means more than {MOST:,} values; write out its aliases (*)")
        if isinstance(node, dict):
            return {of(key): of(value) for key, value in node.items()}
        if isinstance(node, list):
            return [of(item) for item in node]
        for kind in (bool, int, float, str):
            if isinstance(node, kind):
                return kind(node)
        return node if node is None else str(node)

    return of(node)
