"""Choose small faults of the product's code, for `benchmarks.mutations`."""

from __future__ import annotations

import ast
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, cycle, islice
from pathlib import Path
from types import CodeType

PLACES = {
    "ragistry/techniques/hybrid.py": "tests/techniques",
    "ragistry/techniques/fusion.py": "tests/techniques",
    "ragistry/library/service.py": "tests/library",
    "ragistry/library/ingest": "tests/library",
    "ragistry/stores/local": "tests/stores",
    "ragistry/evaluation": "tests/evaluation",
    "ragistry/readers": "tests/readers",
    "ragistry/models": "tests/models",
    "ragistry/tools": "tests/tools",
    "ragistry/server": "tests/server",
    "ragistry/cli": "tests/cli",
}
"""The mutated code, and the folder of its own tests."""
KINDS = ("operator", "statement", "constant")
TOTAL, LEAST, SEED = 60, 4, 20_251
FLIPS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Lt: ("<", "<=", ">="), ast.LtE: ("<=", "<", ">"), ast.Gt: (">", ">=", "<="), ast.GtE: (">=", ">", "<"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
"""An operator's text, and what may replace it."""
MESSAGES = re.compile(r"(_log|log|logger|logging|warnings)\.")
Span = tuple[int, int, int]
"""Line, first byte and end byte of the replaced text."""


@dataclass(frozen=True)
class Mutation:
    """One changed line; ``occurrence`` counts equal lines of the function from 1."""

    file: str
    function: str
    kind: str
    old: str
    new: str
    occurrence: int

    @property
    def place(self) -> str:
        return next(place for place in PLACES if self.file.startswith(place))

    @property
    def line(self) -> tuple[str, str, str, int]:
        """What identifies the line in any version of the tree."""
        return self.file, self.function, self.old, self.occurrence

    def line_in(self, text: str) -> int:
        """The number of the line in a version of the file; `LookupError` if the line is not there."""
        bodies = [node for name, node in functions(ast.parse(text)) if name == self.function]
        numbers = sorted({n for node in bodies for n in range(node.lineno, (node.end_lineno or 0) + 1)})
        lines = text.split("\n")
        equal = [number for number in numbers if lines[number - 1].strip() == self.old]
        if len(equal) < self.occurrence:
            raise LookupError(f"{self.file}: {self.function} has no line {self.old!r}")
        return equal[self.occurrence - 1]

    def apply(self, text: str) -> str:
        lines = text.split("\n")
        number = self.line_in(text)
        lines[number - 1] = lines[number - 1].replace(self.old, self.new)
        return "\n".join(lines)


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions of a module with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not isinstance(child, ast.ClassDef):
                yield prefix + child.name, child
            yield from functions(child, f"{prefix}{child.name}.")
        else:
            yield from functions(child, prefix)


def nodes(parents: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """What may be mutated: no nested functions, which count as functions, and no messages or annotations."""
    for node in parents:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.JoinedStr):
            continue
        if isinstance(node, ast.Expr) and (
            isinstance(node.value, ast.Constant) or MESSAGES.match(ast.unparse(node.value))
        ):
            continue
        yield node
        if isinstance(node, ast.AnnAssign):
            yield from nodes([node.value] if node.value else [])
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "cast":
            yield from nodes(node.args[1:])
        elif not isinstance(node, ast.Raise):
            yield from nodes(ast.iter_child_nodes(node))


def changes(node: ast.AST, lines: list[bytes]) -> Iterator[tuple[str, Span, str]]:
    """The mutations of one node: kind, span and new text."""
    if isinstance(node, ast.Compare | ast.BoolOp):
        operands = [node.left, *node.comparators] if isinstance(node, ast.Compare) else node.values
        operators = node.ops if isinstance(node, ast.Compare) else [node.op] * (len(operands) - 1)
        for left, operator, right in zip(operands, operators, operands[1:], strict=False):
            if left.end_lineno == right.lineno and left.end_col_offset is not None:
                span = (right.lineno, left.end_col_offset, right.col_offset)
                old, *others = FLIPS[type(operator)]
                between = lines[span[0] - 1][span[1] : span[2]].decode()
                yield from (("operator", span, between.replace(old, new, 1)) for new in others)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and node.lineno == node.operand.lineno:
        yield "operator", (node.lineno, node.col_offset, node.col_offset + len("not ")), ""
    elif isinstance(node, ast.Constant) and node.lineno == node.end_lineno and node.end_col_offset is not None:
        span = (node.lineno, node.col_offset, node.end_col_offset)
        source = lines[span[0] - 1][span[1] : span[2]].decode()
        if isinstance(node.value, bool | int | float):
            changed = not node.value if isinstance(node.value, bool) else node.value + 1
            yield "constant", span, repr(changed)
        elif isinstance(node.value, str) and re.fullmatch(r'"[^"\s]*"', source):
            yield "constant", span, f'{source[:-1]}X"'
    elif isinstance(node, ast.stmt) and node.lineno == node.end_lineno and _droppable(node):
        end = len(lines[node.lineno - 1])
        yield "statement", (node.lineno, node.col_offset, end), "pass"


def _droppable(node: ast.stmt) -> bool:
    """Exclude assignments that would only leave names undefined."""
    if isinstance(node, ast.Assign):
        names = {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        read = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
        is_part = isinstance(node.targets[0], ast.Attribute | ast.Subscript)
        return is_part or bool(names & read)
    return isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Return | ast.Continue | ast.Break | ast.Delete)


def candidates(file: str, text: str) -> Iterator[Mutation]:
    """All mutations of a file. A last return and assignments of ``__init__`` are not dropped: any test would fail."""
    lines = text.split("\n")
    coded = [line.encode() for line in lines]
    for function, body in functions(ast.parse(text)):
        for node in nodes(body.body):
            is_vital = isinstance(node, ast.Return) and node is body.body[-1]
            if is_vital or (isinstance(node, ast.Assign) and body.name == "__init__"):
                continue
            for kind, (number, start, end), replacement in changes(node, coded):
                line, old = coded[number - 1], lines[number - 1].strip()
                new = (line[:start] + replacement.encode() + line[end:]).decode().strip()
                occurrence = [other.strip() for other in lines[body.lineno - 1 : number]].count(old)
                yield Mutation(file, function, kind, old, new, occurrence)


def changes_code(mutation: Mutation, text: str) -> bool:
    """Return true if the byte code without positions differs."""

    def code(part: CodeType) -> tuple[object, ...]:
        constants = [code(item) if isinstance(item, CodeType) else repr(item) for item in part.co_consts]
        return part.co_code, part.co_names, part.co_varnames, part.co_freevars, constants

    before, after = (compile(source, mutation.file, "exec") for source in (text, mutation.apply(text)))
    return code(before) != code(after)


def choose(tree: Path) -> list[Mutation]:
    """Choose mutations in proportion to the lines that can be mutated, the three kinds in turn, one per line."""
    paths = {place: sorted((tree / place).rglob("*.py")) or [tree / place] for place in PLACES}
    texts = {path.relative_to(tree).as_posix(): path.read_text(encoding="utf-8") for path in chain(*paths.values())}
    found = defaultdict[str, list[Mutation]](list)
    for mutation in (mutation for file, text in texts.items() for mutation in candidates(file, text)):
        found[mutation.place].append(mutation)
    lines = {place: len({mutation.line for mutation in found[place]}) for place in PLACES}
    counts = dict.fromkeys(PLACES, LEAST)
    while sum(counts.values()) < TOTAL:
        counts[max(PLACES, key=lambda place: lines[place] / (counts[place] + 1))] += 1
    rng, chosen = random.Random(SEED), dict[object, Mutation]()
    for place, count in counts.items():
        rng.shuffle(found[place])
        for kind in islice(cycle(KINDS), count):
            of_kind = (one for one in found[place] if one.kind == kind and one.line not in chosen)
            mutation = next(one for one in of_kind if changes_code(one, texts[one.file]))
            chosen[mutation.line] = mutation
    return list(chosen.values())
