"""The block of metadata at the start of a Markdown file: YAML between ``---``, TOML between ``+++``, or JSON.

Every key is kept whose value can be stored (`utils.metadata`). A line that cannot be read costs only its own
key, or is text if it is ``key: value``, such as ``title: Pumps: a guide``. What is not kept is reported, and it is not
text either.

`TEXTS` are always text, and `LISTS` lists of text, for which a text is split at commas. The names of both are found in
any case. ``linkTitle`` replaces a missing title.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, time
from itertools import chain
from typing import Any, NamedTuple

from ragistry.errors import InvalidConfigError
from ragistry.readers.blocks import reason_of
from ragistry.utils.metadata import MAX_KEYS, RESERVED, accepted_metadata, date_text, scalar_problem
from ragistry.utils.wording import one_line
from ragistry.utils.yaml_tree import converted, parse_yaml

Load = Callable[[str], Any]

TEXTS = ("title", "description")
LISTS = ("tags", "categories", "keywords")
ANY_CASE = frozenset({*TEXTS, *LISTS, "author", "date", "section", "weight"})
_RESERVED = RESERVED - {"section"}  # chunks below a heading have their own

_ATTEMPTS = 200  # to load parts of a block that cannot be read as a whole
_LIMIT = 65_536  # characters; YAML and TOML take a second for every 200,000
_DEEP_KEY = re.compile(r"^(?:[^.\n]*\.){200}", re.MULTILINE)  # of TOML, whose time grows with the square of the depth
_FENCED = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?)^(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_LOOKS_MEANT = re.compile(r"(?:---[ \t]*\n[\w-]+:(?:\s|$)|\+\+\+[ \t]*\n|\{\s*\")")
_ENTRY = {"---": re.compile(r"[^\s#:-][^:\n]*:(?=\s|$)"), "+++": re.compile(r"[^\s#=\[][^=\n]*=|\[")}
_CODE = re.compile(r"[-+]?0[0-9]+")
_TEXT = re.compile(r"([^\s#:-][^:\n]*):[ \t]+([^\s!&*#].*)")
_COLON = re.compile(r"[^\[\]{}\"'|>%@`,?-].*:(?:\s|$)")  # what people write without quotes
_DECIMAL = re.compile(r"""(?:^|[{,])[ \t]*["']?([\w-]+)["']?[ \t]*[:=]([^"'#\n]*\d\.\d*0)(?!\d)""", re.MULTILINE)
_SHORTENED = re.compile(r"(?<![\w.+-])-?\d+\.\d*0(?![\w.])")
_CONTINUED = re.compile(r"[\s#\]})-]|$")  # lines of a value, comments and empty lines
_KINDS = frozenset({"null", "bool", "int", "float", "timestamp", "str", "seq", "map", "!"})
_PARSER_ERRORS = (RecursionError, ArithmeticError, LookupError, TypeError, ValueError)  # `InvalidConfigError` too


class FrontMatter(NamedTuple):
    """The metadata, the text after the block, and a warning about what was not kept."""

    metadata: dict[str, Any]
    body: str
    warning: str = ""


def split(text: str) -> FrontMatter:
    """Split the front matter from ``text`` (newlines ``\\n``).

    A block without an end, and malformed JSON, stay in the body with a warning. A line of dashes at the start is not
    front matter and causes no warning.
    """
    try:
        fields, unread, end = _parse(text)
    except _PARSER_ERRORS as error:
        return FrontMatter({}, text, f"front matter cannot be read and was kept as text: {_reason(error)}")
    if fields is None:
        return FrontMatter({}, text, _why_text(text) if _LOOKS_MEANT.match(text) else "")
    metadata, problems = _kept(fields)
    problems = [*unread, *problems]
    warning = f"front matter was not read completely: {'; '.join(problems[:10])}" if problems else ""
    shortened = "; ".join(_shortened_decimals(text[:end], metadata)[:10])
    warnings = [warning, f"front matter: {shortened}" if shortened else ""]
    return FrontMatter(metadata, text[end:].lstrip("\n"), "; ".join(filter(None, warnings)))


def _shortened_decimals(block: str, metadata: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each decimal whose last zeros were lost, because it may be a version such as 1.10."""
    found = []
    for line in _DECIMAL.finditer(block):
        value = metadata.get(line[1])
        values = value if isinstance(value, list) else [value]
        for number in _SHORTENED.findall(line[2]):
            short = repr(float(number))
            if short != number and float(number) in values and not any(isinstance(one, str) for one in values):
                found.append(f"`{line[1]}: {number}` is read as {short}; quote it")
    return list(dict.fromkeys(found))


def _why_text(text: str) -> str:
    """Return why apparent front matter is read as text."""
    found = _FENCED.match(text)
    if (found and found.end() > _LIMIT) or (text.startswith("{") and len(text) > _LIMIT):
        return (
            f"front matter has no end within its first {_LIMIT:,} characters, the limit, and was kept as text: "
            "shorten it"
        )
    return "front matter has no end and was kept as text: close it with the line that opened it"


def _parse(text: str) -> tuple[Mapping[Any, Any] | None, list[str], int]:
    """Parse the fields, the problems of lines, and the start of the body; None without front matter."""
    if re.match(r'\{\s*"', text):
        try:
            fields, end = json.JSONDecoder().raw_decode(text[:_LIMIT])
        except ValueError:
            if len(text) > _LIMIT:
                return None, [], 0
            raise
        return fields, [], end
    found = _FENCED.match(text[:_LIMIT])
    if found is None:
        return None, [], 0
    load = _load_yaml if found[1] == "---" else _load_toml
    try:
        fields = load(found[2])
    except _PARSER_ERRORS:
        entries = _entries(found[2], _ENTRY[found[1]])
        if not _is_meant(entries):
            raise
        return *_readable(entries, load), found.end()
    if fields is None and not found[2].strip():
        fields = {}
    return (fields if isinstance(fields, Mapping) else None), [], found.end()


class _Entry(NamedTuple):
    """The lines of a key and its value; ``is_key``: whether the first one looks like a key."""

    number: int
    text: str
    is_key: bool


def _entries(block: str, key: re.Pattern[str]) -> list[_Entry]:
    """Divide a block at the lines that begin a key, and in YAML also at others that no value continues with."""
    found: list[tuple[int, list[str]]] = []
    in_table = False
    for at, line in enumerate(block.split("\n"), start=2):
        is_key = bool(key.match(line)) and not in_table
        in_table |= line.startswith("[")
        if is_key or not (_CONTINUED.match(line) or in_table):
            found.append((at, [line]))
        elif found:
            found[-1][1].append(line)
    return [_Entry(number, "\n".join(lines), bool(key.match(lines[0]))) for number, lines in found]


def _is_meant(entries: Sequence[_Entry]) -> bool:
    """Return whether lines are front matter, not text between two rules. Lines of a template may be both."""
    entries = [entry for entry in entries if not entry.text.startswith("{")]
    return bool(entries) and entries[0].is_key and 2 * sum(entry.is_key for entry in entries) >= len(entries)


def _readable(entries: Sequence[_Entry], load: Load) -> tuple[dict[Any, Any], list[str]]:
    """Return the fields of the entries that can be read, and the problems of the others.

    Halves are loaded again, so that a few faults in many lines cost little time.
    """
    fields: dict[Any, Any] = {}
    problems: list[str] = []
    waiting, attempts = [list(entries)], _ATTEMPTS
    while waiting:
        part = waiting.pop()
        attempts -= 1
        try:
            if attempts < 0:
                raise ValueError("too many lines cannot be read")
            found = load("\n".join(entry.text for entry in part))
            if not isinstance(found, Mapping):
                raise TypeError("not a key with a value")
        except _PARSER_ERRORS as error:
            first = part[0]
            if len(part) == 1 and load is _load_yaml and (text := _as_text(first.text)):
                fields.setdefault(*text)
                if not _COLON.match(text[1]):
                    problems.append(
                        f"line {first.number} ({one_line(first.text, 60)!r}) is read as text: {_reason(error)}"
                    )
                continue
            line, _, rest = first.text.partition("\n")
            if len(part) > 1 and attempts >= 0:
                waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
            elif rest.strip() and attempts >= 0:
                waiting += [[_Entry(first.number + 1, rest, False)], [_Entry(first.number, line, True)]]
            else:
                problems.append(f"line {first.number} ({one_line(line, 60)!r}): {_reason(error)}")
        else:
            for key, value in found.items():
                if key in fields:
                    problems.append(f"the key {key!r:.60} occurs twice, of which the first is kept")
                fields.setdefault(key, value)
    return fields, problems


def _as_text(entry: str) -> tuple[str, str] | None:
    """Return the key of an entry and its value as text, with the lines that continue it; None if it is no text."""
    line, _, rest = entry.partition("\n")
    found = _TEXT.fullmatch(line)
    more = [one.strip() for one in rest.split("\n") if one.strip()]
    if found is None or any(one.startswith(("- ", "#")) or _ENTRY["---"].match(one) for one in more):
        return None
    return found[1].strip().strip("\"'"), " ".join([found[2].strip(), *more])


def _load_yaml(block: str) -> Any:
    return parse_yaml(block, "", _value).data


def _value(kind: str, text: str) -> Any:
    """Return the value of a scalar; codes such as ``00123``, and numbers of more than 64 bits, stay text."""
    if kind not in _KINDS:
        raise InvalidConfigError(f"the tag {kind!r} is unknown")
    value = converted(kind, text)
    is_code = kind == "int" and (_CODE.fullmatch(text) or (text.isdigit() and scalar_problem(value)))
    return text if is_code else value


def _load_toml(block: str) -> dict[str, Any]:
    if _DEEP_KEY.search(block):
        raise ValueError("a line with more than 200 dots, the limit")
    return tomllib.loads(block)


def _reason(error: Exception) -> str:
    """Return the reason without the line in the block, which may be a part of the front matter."""
    return one_line(str(error).partition(": ")[2]) if isinstance(error, InvalidConfigError) else reason_of(error)


def _kept(fields: Mapping[Any, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the metadata, and the problems of the keys that are left out."""
    values: dict[str, Any] = {}
    for key, value in fields.items():
        name = str(key).lower() if isinstance(key, bool) else f"{key!s:.100}" if not isinstance(key, str) else key
        known = name.lower()
        values[known if known in ANY_CASE else name] = _scalar(value)
    values["title"] = values.get("title") or values.get("linkTitle") or values.get("linktitle")
    lists = {name: _texts(values.get(name)) for name in LISTS}
    values |= {name: texts for name, (texts, _) in lists.items()}
    for name in TEXTS:
        if isinstance(values.get(name), int | float) and not scalar_problem(values[name]):
            values[name] = str(values[name])
    kept, problems = accepted_metadata({key: value for key, value in values.items() if value != ""}, _RESERVED)
    if len(kept) > MAX_KEYS:
        problems.append(f"{len(kept):,} keys, of which the first {MAX_KEYS} are kept")
    problems += [f"an entry of {name} {problem}" for name, (_, dropped) in lists.items() for problem in dropped]
    return {key: kept[key] for key in sorted(kept, key=lambda key: key not in ANY_CASE)[:MAX_KEYS]}, problems


def _scalar(value: Any) -> Any:
    if isinstance(value, time):
        return value.isoformat()
    return value.strip() if isinstance(value, str) else value


def _texts(value: Any) -> tuple[list[str], list[str]]:
    """Return the entries of a list as text, and the problems of others, each once."""
    values = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    flat = chain.from_iterable(one if isinstance(one, list) else [one] for one in values)
    scalars = [
        (date_text(one) or one) if isinstance(one, date) else _scalar(one) for one in flat if one not in (None, "")
    ]
    problems = [scalar_problem(one) for one in scalars]
    texts = [str(one) for one, problem in zip(scalars, problems, strict=True) if one != "" and not problem]
    return list(dict.fromkeys(texts)), list(dict.fromkeys(filter(None, problems)))
