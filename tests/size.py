"""Count what readers and users have to know, and compare it with the ceilings of ``size.txt``.

``python -m tests.size`` lowers the ceilings to the present counts. It never raises a total.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "ragistry"
FILE = ROOT / "tests" / "size.txt"
LAYOUT = {"COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER", "ENCODING"}
SLACK = 0.02
"""A total may be this share above the count; so it follows what is removed."""
RECORDED = ("tests", "messages.txt")
"""Totals that are written down but do not bind yet."""
OTHERS = ("tests", "benchmarks", "scripts", "examples")
UNITS = {
    "package files": "bytes",
    "messages.txt": "lines",
    "manual": "words",
    "commands": "commands",
    "options": "options",
    "YAML": "keys",
}
HEAD = "# Ceilings of size, written by `make size`; see CONTRIBUTING.md, Size. Totals come first, then rooms.\n"


def tokens(text: str) -> int:
    """Count the tokens of Python code without comments, docstrings and layout; an f-string is one on every Python."""
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    depth = count = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        if name in ("FSTRING_START", "TSTRING_START"):
            depth += 1
            count += depth == 1
        elif name in ("FSTRING_END", "TSTRING_END"):
            depth -= 1
        elif not depth:
            count += name not in LAYOUT and not (name == "STRING" and token.start[0] in docstrings)
    return count


def counts(*, without: Collection[str] = ()) -> tuple[dict[str, int], dict[str, int]]:
    """Return the totals and the tokens of each room of the package, by name; counting ``tests`` takes the longest."""
    rooms: Counter[str] = Counter()
    for path in _modules(PACKAGE):
        first, *rest = path.relative_to(PACKAGE).parts
        rooms[f"ragistry/{first}" if rest else "ragistry"] += tokens(path.read_text(encoding="utf-8"))
    totals = {"package": sum(rooms.values()) - rooms["ragistry/testing"], "testing": rooms["ragistry/testing"]}
    for name in (name for name in OTHERS if name not in without):
        totals[name] = sum(tokens(path.read_text(encoding="utf-8")) for path in _modules(ROOT / name))
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc"))
    totals["package files"] = sum(path.stat().st_size for path in files)
    totals["messages.txt"] = len((ROOT / "tests" / "messages.txt").read_text(encoding="utf-8").splitlines())
    totals["manual"] = sum(len(path.read_text(encoding="utf-8").split()) for path in (ROOT / "docs").rglob("*.md"))
    return totals | _interface(), dict(sorted(rooms.items()))


def problems(counted: Mapping[str, int], ceilings: Mapping[str, int], totals: Collection[str]) -> Iterator[str]:
    """Say which counts are above their ceilings, and which ceilings of totals lag behind the counts."""
    for name in sorted(counted.keys() | ceilings.keys()):
        count, ceiling = counted.get(name, 0), ceilings.get(name, 0)
        if name in RECORDED:
            continue
        if count > ceiling:
            yield f"{name} is {count - ceiling:,} {unit(name)} above its ceiling of {ceiling:,}"
        elif name in totals and ceiling > count * (1 + SLACK):
            yield f"the ceiling of {name} is over {SLACK:.0%} above its {count:,} {unit(name)}; run `make size`"


def read_ceilings() -> dict[str, int]:
    """Return the ceilings of ``size.txt`` by name."""
    lines = (line for line in FILE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    rows = (re.fullmatch(r"(\S.*?) +([\d,]+) \w+", line) for line in lines)
    return {row[1]: int(row[2].replace(",", "")) for row in rows if row is not None}


def unit(name: str) -> str:
    """Return what is counted under a name."""
    return UNITS.get(name, "tokens")


def main() -> int:
    """Write the counts as ceilings; a total that is above its ceiling stays and is an error."""
    totals, rooms = counts()
    old = read_ceilings()
    kept = {name: old[name] for name, count in totals.items() if count < old.get(name, 0) <= count * (1 + SLACK)}
    raised = {name for name, count in totals.items() if name not in RECORDED and count > old.get(name, count)}
    new = totals | kept | {name: old[name] for name in raised}
    lines = [_row(name, count) for name, count in new.items()]
    FILE.write_text("\n".join([HEAD, *lines, "", *(_row(*room) for room in rooms.items()), ""]), encoding="utf-8")
    for problem in problems({name: totals[name] for name in raised}, {name: new[name] for name in raised}, totals):
        sys.stderr.write(f"{problem}\n")
    return bool(raised)


def _row(name: str, count: int) -> str:
    return f"{name:<22}{count:>9,} {unit(name)}"


def _modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def _interface() -> dict[str, int]:
    """Count the commands, their options, and the keys of the four YAML files."""
    from docs.commands import commands, subcommands
    from ragistry.cli.init import schemas

    runnable = [command for command in commands().values() if not subcommands(command)]
    options = [p for command in runnable for p in command.params if p.param_type_name == "option" and not p.hidden]
    return {"commands": len(runnable), "options": len(options), "YAML": _keys(schemas())}


def _keys(schema: Any) -> int:
    if isinstance(schema, list):
        return sum(map(_keys, schema))
    if not isinstance(schema, dict):
        return 0
    properties = schema.get("properties")
    own = sum("const" not in field for field in properties.values()) if isinstance(properties, dict) else 0
    return own + sum(map(_keys, schema.values()))


if __name__ == "__main__":
    sys.exit(main())
