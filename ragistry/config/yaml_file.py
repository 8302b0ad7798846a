"""Read YAML files, keeping the line of each value, and replace ``${NAME}`` by environment variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragistry.errors import InvalidConfigError
from ragistry.utils.yaml_tree import Node, parse_yaml

LARGEST = 1_000_000
"""Maximum size of a file in bytes."""

VARIABLE = re.compile(r"\$\{([^}]*)\}")

Lookup = Callable[[str, Sequence[str | int]], str]
"""Returns the text for a variable, given its name and the keys of the value that contains it."""


@dataclass(frozen=True, slots=True)
class YamlFile:
    """``data``: the file as plain mappings, lists and scalars. ``tree``: the same, with lines."""

    path: Path
    data: dict[str, Any]
    tree: Node

    def line(self, keys: Sequence[str | int]) -> int:
        """Return the line (from 1) of the longest prefix of ``keys`` in the file."""
        line, node = 0, self.tree
        for key in keys:
            if key not in node.children:
                break
            line, node = node.lines.get(key, line), node.children[key]
        return line + 1

    def place(self, keys: Sequence[str | int]) -> str:
        """``file:line`` of the value at ``keys``."""
        return f"{self.path}:{self.line(keys)}"


def read_yaml(path: Path) -> YamlFile:
    """Read a YAML mapping without building objects from tags. Raises `InvalidConfigError` with the line of an error."""
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise InvalidConfigError(f"{path}: larger than {LARGEST:,} bytes; keep only the configuration in it")
        tree = parse_yaml(content.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise InvalidConfigError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8") from error
    except OSError as error:
        raise InvalidConfigError(f"{path}: cannot be read: {error.strerror}") from error
    data = {} if tree.data is None else tree.data
    if not isinstance(data, dict):
        raise InvalidConfigError(f"{path}:1: must be a mapping of settings, got {data!r}")
    return YamlFile(path, data, tree)


def fill_in(value: Any, keys: Sequence[str | int], look_up: Lookup) -> Any:
    """Return ``value`` with the variables replaced in all its texts; ``keys``: its place in the file."""
    if isinstance(value, dict):
        return {key: fill_in(one, [*keys, key], look_up) for key, one in value.items()}
    if isinstance(value, list):
        return [fill_in(one, [*keys, place], look_up) for place, one in enumerate(value)]
    if not isinstance(value, str):
        return value
    return VARIABLE.sub(lambda match: look_up(match[1], keys), value)
