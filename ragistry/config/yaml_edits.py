"""Edits of the list ``collections`` in the text of a YAML file: what is not edited stays as it was, to the letter.

Each function returns the new text, read again and compared with what it should say. Where a file is written in a way
that these edits do not fit (anchors, merged keys), it raises `ConfigError` and the text stays as its owner wrote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from ragistry.config.yaml_file import plain
from ragistry.errors import ConfigError

LIST = "collections"
_PLAIN = re.compile(r"(?!(true|false|yes|no|on|off|null|y|n)$)[a-z][a-z0-9_-]*", re.IGNORECASE)
_NOT_PRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class _Found(NamedTuple):
    """Where the list stands: its key and its value, None where there is no such key."""

    key: Node | None = None
    value: Node | None = None

    def items(self) -> list[Node]:
        return self.value.value if isinstance(self.value, SequenceNode) else []


def with_entry(text: str, fields: Mapping[str, str]) -> str:
    """The text with one more entry at the end of the list, and with the list where there is none."""
    data, found = _read(text)
    expected = data | {LIST: [*(data.get(LIST) or []), dict(fields)]}
    return _verified(_appended(text, found, fields), expected)


def with_fields(text: str, index: int, fields: Mapping[str, str | None]) -> str:
    """The text with these fields of an entry set, or taken out where the value is None."""
    data, _ = _read(text)
    entries = list(data[LIST])
    merged = entries[index] | fields
    entries[index] = {name: value for name, value in merged.items() if value is not None or name not in fields}
    for name, value in fields.items():
        text = _with_field(text, _read(text)[1].items()[index], name, value)
    return _verified(text, data | {LIST: entries})


def without_entry(text: str, index: int) -> str:
    """The text without an entry. Comments around it stay; those inside of it go with it."""
    data, found = _read(text)
    expected = data | {LIST: [entry for place, entry in enumerate(data[LIST]) if place != index]}
    return _verified(_shortened(text, found, index), expected)


def _read(text: str) -> tuple[dict[str, Any], _Found]:
    yaml = YAML(typ="rt", pure=True)
    data, root = plain(yaml.load(text)) or {}, yaml.compose(text)
    for key, value in root.value if isinstance(root, MappingNode) else ():
        if key.value == LIST:
            return data, _Found(key, value)
    return data, _Found()


def _verified(text: str, expected: dict[str, Any]) -> str:
    try:
        right = plain(YAML(typ="rt", pure=True).load(text)) == expected
    except YAMLError:
        right = False
    if not right:
        raise ConfigError(
            f"{LIST!r} is written in a way that cannot be edited by a program; nothing was changed: edit it by hand"
        )
    return text


def _appended(text: str, found: _Found, fields: Mapping[str, str]) -> str:
    items = found.items()
    if items and _bracketed(found.value):
        return _spliced(text, _end(text, items[-1]), f", {_in_brackets(fields)}")
    if items and found.value:
        return _with_lines(text, _end(text, items[-1]), _lines(fields, found.value.start_mark.column))
    if not found.key or not found.value:
        return _with_lines(text, len(text), [f"{LIST}:", *_lines(fields, 2)])
    colon = text.index(":", found.key.end_mark.index) + 1
    start, end = found.value.start_mark.index, found.value.end_mark.index
    if "#" in text[start:end]:  # comments in empty brackets
        return _spliced(text, start + 1, _in_brackets(fields))
    if end > start:  # `[]`, `~` or `null`; comments may stand before it
        text = _spliced(text, start if "\n" in text[colon:start] else colon, "", end)
    return _with_lines(text, colon, _lines(fields, 2))


def _in_brackets(fields: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {scalar(value)}" for name, value in fields.items()) + "}"


def _lines(fields: Mapping[str, str], column: int) -> list[str]:
    pairs = [f"{name}: {scalar(value)}" for name, value in fields.items()]
    return [" " * column + ("  " if place else "- ") + pair for place, pair in enumerate(pairs)]


def _with_field(text: str, item: Node, name: str, value: str | None) -> str:
    places = {key.value: (key, old) for key, old in item.value}
    if name in places:
        key, old = places[name]
        return _without_field(text, item, key, old) if value is None else _replaced(text, key, old, value)
    if value is None:
        return text
    pair = f"{name}: {scalar(value)}"
    if _bracketed(item):
        return _spliced(text, _pair_end(text, *item.value[-1]), f", {pair}")
    return _with_lines(text, _end(text, item), [" " * item.start_mark.column + pair])


def _replaced(text: str, key: Node, old: Node, value: str) -> str:
    start, end = old.start_mark.index, _end(text, old)
    if start == end:  # a key without a value
        return _spliced(text, text.index(":", key.end_mark.index) + 1, f" {scalar(value)}")
    head = (
        re.match(r"[|>]\S*(\s+#.*)", text[start:end])
        if isinstance(old, ScalarNode) and old.style in ("|", ">")
        else None
    )
    return _spliced(text, start, scalar(value) + (head[1].rstrip() if head else ""), end)


def _without_field(text: str, item: Node, key: Node, old: Node) -> str:
    if _bracketed(item):
        before = [_pair_end(text, *pair) for pair in item.value if pair[0].start_mark.index < key.start_mark.index]
        return _spliced(text, before[-1], "", _pair_end(text, key, old)) if before else text
    start = text.rfind("\n", 0, key.start_mark.index) + 1
    return _spliced(text, start, "", _line_end(text, _pair_end(text, key, old)))


def _shortened(text: str, found: _Found, index: int) -> str:
    items, key, value = found.items(), found.key, found.value
    item = items[index]
    if _bracketed(value):
        if index:
            return _spliced(text, _end(text, items[index - 1]), "", _end(text, item))
        end = items[1].start_mark.index if len(items) > 1 else _end(text, item)
        return _spliced(text, item.start_mark.index, "", end)
    dash = text.rindex("-", 0, item.start_mark.index)
    start = text.rfind("\n", 0, dash) + 1
    shorter = _spliced(text, start, "", _line_end(text, _end(text, item)))
    if len(items) > 1 or not key:
        return shorter
    return _spliced(shorter, text.index(":", key.end_mark.index) + 1, " []")


def _bracketed(node: Node | None) -> bool:
    """Whether it is written with brackets."""
    return isinstance(node, CollectionNode) and bool(node.flow_style)


def _end(text: str, node: Node) -> int:
    """Where a node's own text ends: before the blanks and comments that a block mapping or text takes with it."""
    if isinstance(node, MappingNode) and not _bracketed(node) and node.value:
        return _pair_end(text, *node.value[-1])
    start = node.start_mark.index
    return int(start + len(text[start : node.end_mark.index].rstrip()))


def _pair_end(text: str, key: Node, value: Node) -> int:
    """The same of a key and its value; one without a value has it, as the parser sees it, at what comes next."""
    end = _end(text, value)
    return end if end > value.start_mark.index else text.index(":", key.end_mark.index) + 1


def _line_end(text: str, at: int) -> int:
    """Where the line after the one that holds ``at`` begins."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _with_lines(text: str, at: int, lines: list[str]) -> str:
    """The text with lines after the one that holds ``at``."""
    newline, place = "\r\n" if "\r\n" in text else "\n", _line_end(text, at)
    begun = "" if place == 0 or text[place - 1] == "\n" else newline
    return _spliced(text, place, begun + "".join(line + newline for line in lines))


def _spliced(text: str, start: int, new: str, end: int | None = None) -> str:
    return text[:start] + new + text[start if end is None else end :]


def scalar(text: str) -> str:
    """A text as YAML: a plain word where nothing could take it for something else, else in double quotes."""
    if _PLAIN.fullmatch(text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _NOT_PRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
