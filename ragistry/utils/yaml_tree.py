"""Parse YAML 1.2 without building objects from tags, keeping the line of each value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import yaml

from ragistry.errors import InvalidConfigError
from ragistry.utils.wording import shown

MOST = 200_000
"""Maximum number of values in a file, with aliases expanded."""
DEEPEST = 100
"""Maximum depth of lists and mappings."""
_STANDARD = "tag:yaml.org,2002:"
_KINDS = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?(0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)",
    "float": r"[-+]?(\.[0-9][0-9_]*|[0-9][0-9_]*\.[0-9_]*|[0-9][0-9_]*(?=[eE]))([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    "timestamp": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "merge": "<<",
}
"""Kinds of scalars without quotes in YAML 1.2, in which ``no``, ``on`` and ``1:30`` are texts, and ``010`` is ten."""
_PATTERNS = {kind: re.compile(pattern) for kind, pattern in _KINDS.items()}
_BASES = {"0b": 2, "0o": 8, "0x": 16}
_TRUTH = {"true": True, "false": False}


@dataclass(slots=True)
class Node:
    """A value of a file as plain Python objects, and the nodes in it.

    ``children``: nodes of a mapping by key, or of a list by index. ``lines``: the line of each, from 0; a key that
    ``<<`` merges is not in it. ``size``: the number of values, with aliases expanded. ``depth``: of nested values.
    """

    data: Any
    children: dict[Any, Node] = field(default_factory=dict)
    lines: dict[Any, int] = field(default_factory=dict)
    size: int = 1
    depth: int = 0

    def add(self, key: Any, child: Node, line: int | None = None) -> None:
        """Add the node of a key or item, whose data the caller adds."""
        self.children[key] = child
        if line is not None:
            self.lines[key] = line


def converted(kind: str, text: str) -> Any:
    """Return the value of a scalar. Dates and kinds of other programs stay texts."""
    digits = text.replace("_", "").lower()
    if kind == "null":
        return None
    if kind == "bool":
        return _TRUTH[text.lower()]
    if kind == "int":
        sign, number = (digits[0], digits[1:]) if digits[:1] in ("-", "+") else ("", digits)
        base = _BASES.get(number[:2], 10)
        return int(sign + (number if base == 10 else number[2:]), base)
    if kind == "float":
        return float(digits.replace(".inf", "inf").replace(".nan", "nan"))
    if kind == "timestamp":
        datetime.fromisoformat(text)
    return text


def parse_yaml(text: str, place: str, convert: Callable[[str, str], Any] = converted) -> Node:
    """Return the root of a YAML text.

    Args:
        text: The text.
        place: Name of the text in messages.
        convert: Returns the value of a scalar, given its kind and its text. It is also called with each tag of a list
            or mapping and an empty text, to refuse it.

    Raises:
        InvalidConfigError: The text cannot be parsed, or `convert` refuses a value.
    """
    parser = getattr(yaml, "CBaseLoader", yaml.BaseLoader)(text)  # PyYAML can be built without the C library
    try:
        return _Document(place, parser.get_event, convert).read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{place}:{mark.line + 1}" if mark else place
        raise InvalidConfigError(f"{where}: {' '.join(str(error.problem or error.context).split())}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InvalidConfigError(f"{place}:{line}: the character {error.character!r} is not allowed") from error
    finally:
        parser.dispose()


class _Document:
    """Builds the nodes of a file from the events of a parser.

    The parser's own loaders use the rules of YAML 1.1, accept duplicate keys, and have no limit for aliases.
    """

    def __init__(self, place: str, next_event: Any, convert: Callable[[str, str], Any]) -> None:
        self._convert = convert
        self._place = place
        self._next = next_event
        self._anchors: dict[str, Node | None] = {}  # None: the value is not complete
        self._values = 0

    def read(self) -> Node:
        """Return the root of the only document."""
        self._next()  # the start of the stream
        if isinstance(self._next(), yaml.StreamEndEvent):
            return Node(None)
        root = self._node(self._next(), 0)
        self._next()  # the end of the document
        if not isinstance(event := self._next(), yaml.StreamEndEvent):
            raise self._error(event, "found a second document; write a file with one document")
        return root

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            node = self._copy(event)
        else:
            if event.anchor is not None:
                self._anchors[event.anchor] = None
            if isinstance(event, yaml.ScalarEvent):
                node = Node(self._value(event))
            elif depth == DEEPEST:
                raise self._too_deep()
            else:
                if event.tag is not None:
                    self._value(event)
                is_mapping = isinstance(event, yaml.MappingStartEvent)
                node = self._mapping(depth + 1) if is_mapping else self._sequence(depth + 1)
            if event.anchor is not None:
                self._anchors[event.anchor] = node
            self._count(1)
        if depth + node.depth > DEEPEST:  # an alias
            raise self._too_deep()
        return node

    def _copy(self, event: Any) -> Node:
        """Return the value of an alias; its data is a copy, because the program may change the data of one place."""
        if event.anchor not in self._anchors:
            raise self._error(event, f"found undefined alias {event.anchor!r}")
        node = self._anchors[event.anchor]
        if node is None:
            raise self._error(event, f"the value of the anchor {event.anchor!r} contains itself")
        self._count(node.size)
        return Node(deepcopy(node.data), node.children, node.lines, node.size, node.depth)

    def _sequence(self, depth: int) -> Node:
        node = Node([], depth=1)
        for event in self._events():
            child = self._node(event, depth)
            node.add(len(node.data), child, event.start_mark.line)
            node.data.append(child.data)
            node.size += child.size
            node.depth = max(node.depth, child.depth + 1)
        return node

    def _mapping(self, depth: int) -> Node:
        node, merged = Node({}, depth=1), None
        for event in self._events():
            if is_merge := isinstance(event, yaml.ScalarEvent) and _kind(event) == "merge":
                key: Any = "<<"
            else:
                key = self._node(event, depth).data
            value = self._node(self._next(), depth)
            if isinstance(key, list | dict):
                raise self._error(event, "found a list or mapping as a key; write the key in quotes")
            if key in node.data or (is_merge and merged is not None):
                old = "" if is_merge else f' with value "{value.data}" (original value: "{node.data[key]}")'
                raise self._error(event, f'found duplicate key "{key}"{old}')
            node.size += 1 + value.size
            node.depth = max(node.depth, value.depth + 1)
            if is_merge:
                merged = self._parts(event, value)
            else:
                node.add(key, value, event.start_mark.line)
                node.data[key] = value.data
        for other, data in merged or ():
            for key in data:
                if key not in node.data:
                    node.add(key, other.children[key])
                    node.data[key] = data[key]
        return node

    def _parts(self, event: Any, value: Node) -> list[tuple[Node, dict[Any, Any]]]:
        """Return the mappings of a merge with their data; a key of several has the value of the first."""
        if isinstance(value.data, list):
            parts = list(zip(value.children.values(), value.data, strict=True))
        else:
            parts = [(value, value.data)]
        if not all(isinstance(data, dict) for _, data in parts):
            raise self._error(event, "expected a mapping or a list of mappings for merging")
        return parts

    def _events(self) -> Iterator[Any]:
        """Yield the events of the items, up to the end of the list or mapping."""
        while not isinstance(event := self._next(), yaml.CollectionEndEvent):
            yield event

    def _value(self, event: Any) -> Any:
        kind, text = _kind(event), getattr(event, "value", "")
        try:
            return self._convert(kind, text)
        except InvalidConfigError as error:
            raise self._error(event, str(error)) from error
        except (KeyError, ValueError) as error:
            raise self._error(
                event, f"{shown(text)} is not a valid {kind}; correct it, or write it in quotes"
            ) from error

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > MOST:
            raise InvalidConfigError(f"{self._place}: it means more than {MOST:,} values; write out its aliases (*)")

    def _too_deep(self) -> InvalidConfigError:
        return InvalidConfigError(f"{self._place}: lists or mappings are nested too deeply")

    def _error(self, event: Any, message: str) -> InvalidConfigError:
        return InvalidConfigError(f"{self._place}:{event.start_mark.line + 1}: {message}")


def _kind(event: Any) -> str:
    """Return the kind of a scalar: that of its tag, or of its text if it has neither tag nor quotes."""
    if event.tag is not None:
        return str(event.tag).removeprefix(_STANDARD)
    if not event.implicit[0]:
        return "str"
    return next((kind for kind, pattern in _PATTERNS.items() if pattern.fullmatch(event.value)), "str")
