"""Edit the list ``collections`` in the text of a YAML file; all other text stays unchanged.

Each function returns the new text after parsing it and comparing the result. If the file uses forms that these edits do
not support (anchors, merged keys, comments within brackets), it raises `ConfigError` and changes nothing. (Writing the
file with the YAML library would lose the comment above the entry after a removed one.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import Any, TypeVar

import yaml

from ragistry.errors import ConfigError, InvalidConfigError
from ragistry.utils.yaml_tree import parse_yaml

LIST = "collections"
MARK = "\ufeff"
Edit = TypeVar("Edit", bound=Callable[..., str])
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML can be built without the C library
_PLAIN = re.compile(r"(?!(true|false|yes|no|on|off|null|y|n)$)[a-z][a-z0-9_-]*", re.IGNORECASE)
_NOT_PRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def _after_mark(edit: Edit) -> Edit:
    """Edit the text after a byte order mark, which the parser does not count in its places."""

    @wraps(edit)
    def edited(text: str, *arguments: Any) -> str:
        mark = MARK if text.startswith(MARK) else ""
        return mark + edit(text.removeprefix(mark), *arguments)

    return edited  # type: ignore[return-value]


@_after_mark
def with_entry(text: str, fields: Mapping[str, str]) -> str:
    """Add an entry at the end of the list; adds a missing list."""
    data, key, value = _read(text)
    entries = [*(data.get(LIST) or []), dict(fields)]
    if value is None or key is None:
        changed = _with_lines(text, len(text), [f"{LIST}:", *_lines(fields, 2)])
    elif not data.get(LIST):
        # the list is empty: `[]`, `null` or nothing, perhaps below comments
        colon = text.index(":", key.end_mark.index) + 1
        start, end = value.start_mark.index, value.end_mark.index
        if "#" in text[start:end]:
            raise _refusal()
        if end > start:
            text = _spliced(text, start if "\n" in text[colon:start] else colon, "", end)
        changed = _with_lines(text, colon, _lines(fields, 2))
    elif _in_brackets(value):
        changed = _rewritten(text, value, entries)
    else:
        changed = _with_lines(text, _end(text, value.value[-1]), _lines(fields, value.start_mark.column))
    return _verified(changed, data | {LIST: entries})


@_after_mark
def with_fields(text: str, index: int, fields: Mapping[str, str | None]) -> str:
    """Set these fields of an entry, or remove those whose value is None."""
    data, _, value = _read(text)
    entries = list(data[LIST])
    merged = entries[index] | fields
    entries[index] = {name: value for name, value in merged.items() if value is not None or name not in fields}
    if _in_brackets(value):
        text = _rewritten(text, value, entries)
    elif _in_brackets(item := value.value[index]):
        text = _rewritten(text, item, entries[index])
    else:
        for name, new in fields.items():
            text = _with_field(text, _read(text)[2].value[index], name, new)
    return _verified(text, data | {LIST: entries})


@_after_mark
def with_value(text: str, name: str, value: str) -> str:
    """Set a key at the top of the file to a text."""
    root, data = yaml.compose(text, Loader=_Loader), _content(text)
    old = next((old for key, old in root.value if key.value == name), None) if _is(root, "mapping") else None
    if old is None:
        changed = _with_lines(text, len(text), [f"{name}: {scalar(value)}"])
    else:
        changed = _spliced(text, old.start_mark.index, scalar(value), _end(text, old))
    return _verified(changed, data | {name: value}, name)


@_after_mark
def without_entry(text: str, index: int) -> str:
    """Remove an entry and the comments inside it. Comments around it stay."""
    data, key, value = _read(text)
    entries = [entry for place, entry in enumerate(data[LIST]) if place != index]
    if _in_brackets(value):
        shorter = _rewritten(text, value, entries)
    else:
        item = value.value[index]
        dash = text.rindex("-", 0, item.start_mark.index)
        shorter = _spliced(text, text.rfind("\n", 0, dash) + 1, "", _line_end(text, _end(text, item)))
        if not entries:
            shorter = _spliced(shorter, text.index(":", key.end_mark.index) + 1, " []")
    return _verified(shorter, data | {LIST: entries})


def _read(text: str) -> tuple[dict[str, Any], Any, Any]:
    """Return the content, and the nodes of the list's key and value; None if the key is missing."""
    try:
        data, root = _content(text), yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:  # such as a tag in a form that only the composer refuses
        raise _refusal() from error
    pairs = root.value if _is(root, "mapping") else []
    return data, *next(((key, value) for key, value in pairs if key.value == LIST), (None, None))


@lru_cache(maxsize=2)
def _content(text: str) -> dict[str, Any]:
    """Return the content as the program reads it; the caller must not change it. Raises `InvalidConfigError`."""
    return parse_yaml(text, LIST).data or {}


def _is(node: Any, *kinds: str) -> bool:
    """Return whether a node is a ``mapping``, a ``sequence`` or a ``scalar``."""
    return getattr(node, "id", None) in kinds


def _verified(text: str, expected: dict[str, Any], name: str = LIST) -> str:
    try:
        right = _content(text) == expected
    except InvalidConfigError:
        right = False
    if not right:
        raise _refusal(name)
    return text


def _refusal(name: str = LIST) -> ConfigError:
    return ConfigError(
        f"{name!r} is written in a way that cannot be edited by a program; nothing was changed: edit it by hand"
    )


def _rewritten(text: str, node: Any, value: Any) -> str:
    """Return the text with a list or an entry in brackets rewritten."""
    start, end = node.start_mark.index, node.end_mark.index
    if "\n" in text[start:end] and "#" in text[start:end]:  # a comment would be lost
        raise _refusal()
    return _spliced(text, start, _bracketed(value), end)


def _bracketed(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_bracketed, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_bracketed(one)}' for name, one in value.items())}}}"
    return scalar(value) if isinstance(value, str) else json.dumps(value)


def _lines(fields: Mapping[str, str], column: int) -> list[str]:
    pairs = [f"{name}: {scalar(value)}" for name, value in fields.items()]
    return [" " * column + ("  " if place else "- ") + pair for place, pair in enumerate(pairs)]


def _with_field(text: str, item: Any, name: str, value: str | None) -> str:
    pair = next((pair for pair in item.value if pair[0].value == name), None)
    if pair is None:
        new = [] if value is None else [" " * item.start_mark.column + f"{name}: {scalar(value)}"]
        return _with_lines(text, _end(text, item), new)
    key, old = pair
    if value is None:
        start = text.rfind("\n", 0, key.start_mark.index) + 1
        return _spliced(text, start, "", _line_end(text, _pair_end(text, key, old)))
    start, end = old.start_mark.index, _end(text, old)
    if start == end:  # a key without a value
        return _spliced(text, text.index(":", key.end_mark.index) + 1, f" {scalar(value)}")
    folded = _is(old, "scalar") and old.style in ("|", ">")
    comment = re.match(r"[|>]\S*(\s+#.*)", text[start:end]) if folded else None
    return _spliced(text, start, scalar(value) + (comment[1].rstrip() if comment else ""), end)


def _in_brackets(node: Any) -> bool:
    return _is(node, "mapping", "sequence") and bool(node.flow_style)


def _end(text: str, node: Any) -> int:
    """Return the end of a node's text, without the white space and comments that a block includes."""
    if _is(node, "mapping") and not _in_brackets(node) and node.value:
        return _pair_end(text, *node.value[-1])
    start = node.start_mark.index
    return int(start + len(text[start : node.end_mark.index].rstrip()))


def _pair_end(text: str, key: Any, value: Any) -> int:
    """Return the end of a key and its value; the parser places a missing value at the next token."""
    end = _end(text, value)
    return end if end > value.start_mark.index else text.index(":", key.end_mark.index) + 1


def _line_end(text: str, at: int) -> int:
    """Return the start of the line after the one with ``at``."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _with_lines(text: str, at: int, lines: list[str]) -> str:
    """Return the text with lines inserted after the one with ``at``."""
    newline, place = "\r\n" if "\r\n" in text else "\n", _line_end(text, at)
    begun = newline if lines and place and text[place - 1] != "\n" else ""
    return _spliced(text, place, begun + "".join(line + newline for line in lines))


def _spliced(text: str, start: int, new: str, end: int | None = None) -> str:
    return text[:start] + new + text[start if end is None else end :]


def scalar(text: str) -> str:
    """Write a text as YAML: plain if it is unambiguous, else in double quotes."""
    if _PLAIN.fullmatch(text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _NOT_PRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
